//! Operators that only supply something, such as constants and masks, or only consume something.
//!
//! A *lazy* operator reads no chunk that can die, needs nothing that dies in its own step, and has
//! a successor. Running it raises the live bytes and never lowers them, so it is best run right
//! before the first of its successors. Moving it there from an earlier place lowers every state in
//! between, raises no step and lets no chunk die later. An operator with a workspace or an unread
//! output is not lazy, because it may have to run early, while little else is live.
//!
//! The same from the end: an operator that produces nothing and has no workspace only consumes. It
//! runs as soon as it can, right after the last of its predecessors, because its step adds nothing
//! and it never leaves more bytes live, wherever it runs. So a backward search undoes it right before
//! the first of its predecessors that it undoes. This is valid for all such operators, but only saves
//! time for those that read few bytes, at most half of what one of their predecessors makes. For
//! others, such as the sums of long chains, there would be more ways back from each state, and no fewer
//! states.
//!
//! All other operators remain as moves of the search, each with the lazy operators that it *needs*.

use crate::{
    Bytes,
    order::{
        model::Model,
        mutations::{Mutation, has_mutation},
        sets::{Lists, NOBODY, narrow},
    },
};

/// The operators that wait for others, seen from one end of an order.
pub(super) struct Lazies {
    pub(super) lazy: Vec<bool>,
    /// The lazy operators to move right before each operator, unless they have been moved.
    pub(super) needs: Lists,
    /// The operators that need each lazy one.
    pub(super) needed_by: Lists,
    /// The other operators that must have been moved before each operator and its lazy ones.
    pub(super) predecessors: Lists,
    pub(super) successors: Lists,
}

impl Lazies {
    /// Forwards: operators that only supply something.
    pub(super) fn new(model: &Model) -> Self {
        let lazy = |operator: usize| {
            model.reads.get(operator).is_empty()
                && (model.adds[operator] == model.produced[operator]
                    || has_mutation(Mutation::LazyWithHill))
                && model.overwrites[operator].is_empty()
                && !model.successors.get(operator).is_empty()
        };
        Self::waiting((0..model.operators()).map(lazy).collect(), &model.predecessors)
    }

    /// Backwards: operators that only consume something.
    pub(super) fn backwards(model: &Model) -> Self {
        let lazy = |operator: usize| {
            let reads = model.reads.get(operator).iter();
            let read: Bytes = reads.map(|&chunk| model.sizes[chunk as usize]).sum();
            let before = model.predecessors.get(operator).iter();
            let made = before.map(|&first| model.produced[first as usize]).max();
            (model.adds[operator] == 0 || has_mutation(Mutation::ConsumerWithHill))
                && model.produced[operator] == 0
                && made.is_some_and(|made| read <= made / 2)
        };
        let lazy = (0..model.operators()).map(lazy).collect();
        Self::waiting(lazy, &model.successors)
    }

    /// `before` lists the operators that must have been moved before each.
    fn waiting(lazy: Vec<bool>, before: &Lists) -> Self {
        let operators = lazy.len();
        let (mut needs, mut predecessors) = (Vec::new(), Vec::new());
        let mut seen = vec![NOBODY; operators];
        for operator in 0..operators {
            let (mut needed, mut others) = (Vec::new(), Vec::new());
            let mut stack = if lazy[operator] { Vec::new() } else { vec![narrow(operator)] };
            while let Some(next) = stack.pop() {
                for &first in before.get(next as usize) {
                    if std::mem::replace(&mut seen[first as usize], narrow(operator))
                        == narrow(operator)
                    {
                        continue;
                    }
                    if lazy[first as usize] {
                        needed.push(first);
                        stack.push(first);
                    } else {
                        others.push(first);
                    }
                }
            }
            // Operators are numbered in an executable order.
            needed.sort_unstable();
            others.sort_unstable();
            needs.push(needed);
            predecessors.push(others);
        }
        let (needs, predecessors) = (Lists::new(needs), Lists::new(predecessors));
        let needed_by = needs.inverted(operators);
        let successors = predecessors.inverted(operators);
        Self { lazy, needs, needed_by, predecessors, successors }
    }
}

/// The lazy operators of both ends.
pub(super) struct Waits {
    pub(super) front: Lazies,
    pub(super) back: Lazies,
}

impl Waits {
    pub(super) fn new(model: &Model) -> Self {
        Self { front: Lazies::new(model), back: Lazies::backwards(model) }
    }
}
