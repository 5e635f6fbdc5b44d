//! Finds the order that moves the fewest operators, of those within a budget of bytes.
//!
//! An order moves all operators but those of a longest ascending run. So the search builds orders
//! from the beginning and decides for each operator whether it *stays*, that is, belongs to the run.
//! Once an operator stays, those before it in the given order that have not run are moved. Partial
//! orders with the same operators and the same last one that stays have the same future; they are
//! visited by the number of operators moved so far (Dijkstra, 1959).

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use crate::{
    Bytes,
    order::{
        effort::Effort,
        model::Model,
        sets::{has, insert, narrow},
    },
};

/// A partial order.
struct Begun {
    set: Vec<u64>,
    live: Bytes,
    /// One more than the last operator that stays.
    next: u32,
    /// The index of the partial order without its last operator, and that operator.
    from: Option<(usize, u32)>,
}

/// Returns an order with a peak of at most `most` bytes that moves fewer operators than `limit`, and
/// as few as possible; `None` if there is none or the work counted by the effort reaches `end`.
/// Operators are numbered in the given order.
pub(super) fn fewest(
    model: &Model,
    most: Bytes,
    limit: usize,
    effort: &mut Effort,
    end: u64,
) -> Option<Vec<u32>> {
    let operators = narrow(model.operators());
    let looks = u64::from(operators) + model.reads.entries() as u64 / 4;
    let nothing = vec![0; model.words()];
    let live = model.live_at_start() + model.unread;
    let mut begun = vec![Begun { set: nothing, live, next: 0, from: None }];
    // The fewest operators moved on a way to each set and last operator that stays.
    let mut moved: HashMap<(Vec<u64>, u32), usize> = HashMap::new();
    // Of equally few operators moved, the longest partial order is the next.
    let mut open = BinaryHeap::from([Reverse((0, operators, 0))]);
    while let Some(Reverse((count, left, at))) = open.pop() {
        if left == 0 {
            return Some(order(&begun, at));
        }
        effort.spend(looks);
        if effort.looks() >= end || effort.is_stopped() {
            return None;
        }
        for operator in 0..operators {
            let Begun { set, live, next, from } = &begun[at];
            let (live, next) = (*live, *next);
            let first = model.predecessors.get(operator as usize);
            if has(set, operator)
                || !first.iter().all(|&first| has(set, first))
                || live + model.step_adds(operator, set) > most
            {
                continue;
            }
            let freed = model.frees(operator, set) + if from.is_none() { model.unread } else { 0 };
            let live = live + model.produced[operator as usize] - freed;
            let passed = (next..operator).filter(|&other| !has(set, other)).count();
            let mut after = set.clone();
            insert(&mut after, operator);
            let moves = (next, usize::from(operator >= next));
            let stays = (operator >= next).then_some((operator + 1, passed));
            for (next, more) in std::iter::once(moves).chain(stays) {
                let count = count + more;
                let known = moved.entry((after.clone(), next)).or_insert(limit);
                if count < *known {
                    *known = count;
                    open.push(Reverse((count, left - 1, begun.len())));
                    let from = Some((at, operator));
                    begun.push(Begun { set: after.clone(), live, next, from });
                }
            }
        }
    }
    None
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
