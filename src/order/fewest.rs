//! Finds the order that moves the fewest operators among all orders within a budget of bytes.
//!
//! An order moves all operators but those of a longest ascending run. So the search builds orders
//! from the beginning and decides for each operator whether it *stays*, that is, belongs to the run.
//! Once an operator stays, those before it in the given order that have not run are moved. Partial
//! orders with the same operators and the same last one that stays have the same future; they are
//! visited by the number of operators moved so far (Dijkstra, 1959).

use crate::effort::Effort;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    rc::Rc,
};

use crate::{
    Bytes,
    order::{
        model::Model,
        mutations::{Mutation, has_mutation},
        sets::{has, insert, narrow},
    },
};

/// The words of memory that all partial orders may take.
pub(super) const MAX_WORDS: u64 = 4_000_000;

/// The words of a partial order besides its set, and the visits that it takes to store one.
const BESIDES: u64 = 16;

/// A partial order.
struct Begun {
    set: Rc<[u64]>,
    live: Bytes,
    /// One more than the last operator that stays.
    next: u32,
    /// The index of the partial order without its last operator, and that operator.
    from: Option<(usize, u32)>,
}

/// The partial orders that have been found.
pub(super) struct Search<'a> {
    model: &'a Model,
    begun: Vec<Begun>,
    /// The fewest operators moved on a way to each set and last operator that stays.
    moved: HashMap<(Rc<[u64]>, u32), usize>,
    /// The open partial orders, by the number of operators moved; among equals, the longest comes first.
    open: BinaryHeap<Reverse<(usize, u32, usize)>>,
}

/// Returns an order with a peak of at most `most` bytes that moves fewer operators than `limit`, and
/// as few as possible; `None` if there is none, the work counted by the effort reaches `end` or the
/// partial orders take too much memory. Operators are numbered in the given order.
pub(super) fn fewest(
    model: &Model,
    most: Bytes,
    limit: usize,
    effort: &mut Effort,
    end: u64,
) -> Option<Vec<u32>> {
    let mut search = Search::new(model);
    let last = search.run(most, limit, effort, end)?;
    Some(order(&search.begun, last))
}

impl<'a> Search<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let set = vec![0; model.words()].into();
        let live = model.live_at_start() + unread(model);
        Self {
            model,
            begun: vec![Begun { set, live, next: 0, from: None }],
            moved: HashMap::new(),
            open: BinaryHeap::from([Reverse((0, narrow(model.operators()), 0))]),
        }
    }

    /// The words that a partial order takes.
    fn words_of_one(&self) -> u64 {
        self.model.words() as u64 + BESIDES
    }

    /// The words that all partial orders take.
    pub(super) fn words(&self) -> u64 {
        self.begun.len() as u64 * self.words_of_one()
    }

    /// Returns the index of the complete order that moves the fewest operators.
    pub(super) fn run(
        &mut self,
        most: Bytes,
        limit: usize,
        effort: &mut Effort,
        end: u64,
    ) -> Option<usize> {
        let model = self.model;
        while let Some(Reverse((count, left, at))) = self.open.pop() {
            if left == 0 {
                return Some(at);
            }
            let Begun { ref set, live, next, from } = self.begun[at];
            let set = Rc::clone(set);
            effort.spend(self.words_of_one());
            if self.moved.get(&(Rc::clone(&set), next)).is_some_and(|&fewest| fewest < count) {
                continue;
            }
            // The number of operators that have to move if the current one stays.
            let mut passed = 0;
            for operator in 0..narrow(model.operators()) {
                let first = model.predecessors.get(operator as usize);
                effort.spend(1 + first.len() as u64);
                if effort.looks() >= end || effort.is_stopped() || self.words() >= MAX_WORDS {
                    return None;
                }
                if has(&set, operator) {
                    continue;
                }
                let stays = (operator >= next).then_some((operator + 1, count + passed));
                passed +=
                    usize::from(operator >= next && !has_mutation(Mutation::FewestWithoutPassed));
                if !first.iter().all(|&first| has(&set, first)) {
                    continue;
                }
                effort.spend(looks(model, operator));
                let excess = Bytes::from(has_mutation(Mutation::FewestWithLooseBudget));
                if live + model.step_adds(operator, &set) > most + excess {
                    continue;
                }
                let unread = if from.is_none() { unread(model) } else { 0 };
                let freed = model.frees(operator, &set) + unread;
                let live = live + model.produced[operator as usize] - freed;
                let mut after = set.to_vec();
                insert(&mut after, operator);
                let after: Rc<[u64]> = after.into();
                let moves = (next, count + usize::from(operator >= next));
                let ways = std::iter::once(moves).chain(stays);
                for (next, count) in ways.filter(|&(_, count)| count < limit) {
                    effort.spend(self.words_of_one());
                    let known = self.moved.entry((Rc::clone(&after), next)).or_insert(limit);
                    if count < *known
                        && (*known == limit || !has_mutation(Mutation::FewestByFirstWay))
                    {
                        *known = count;
                        self.open.push(Reverse((count, left - 1, self.begun.len())));
                        let (set, from) = (Rc::clone(&after), Some((at, operator)));
                        self.begun.push(Begun { set, live, next, from });
                    }
                }
            }
        }
        None
    }
}

/// The bytes of unread inputs, which are live in the first step.
fn unread(model: &Model) -> Bytes {
    if has_mutation(Mutation::FewestWithoutUnread) { 0 } else { model.unread }
}

/// The visits that it takes to find out what an operator adds and frees.
fn looks(model: &Model, operator: u32) -> u64 {
    let reads = model.reads.get(operator as usize).iter();
    reads.map(|&chunk| 1 + model.readers.get(chunk as usize).len() as u64).sum()
}

/// Returns the operators of a partial order.
fn order(begun: &[Begun], mut at: usize) -> Vec<u32> {
    let mut order = Vec::new();
    while let Some((before, operator)) = begun[at].from {
        order.push(operator);
        at = before;
    }
    order.reverse();
    order
}
