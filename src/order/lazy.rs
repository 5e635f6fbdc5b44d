//! Operators that only supply something: constants, converted weights, masks.
//!
//! A *lazy* operator reads no chunk that can die, needs nothing that dies in its own step, and has
//! a successor. Running it raises the live bytes and never lowers them, so it is best run right
//! before the first of its successors. Moving it there from an earlier place lowers every state in
//! between, raises no step and lets no chunk die later. An operator with a workspace or an unread
//! output is not lazy, because it may have to run early, while little else is live.
//!
//! The other operators remain, each with the lazy ones that it *needs*.

use crate::order::{
    faults::{Fault, has_fault},
    model::Model,
    sets::{Lists, narrow},
};

pub(super) struct Lazies {
    pub(super) lazy: Vec<bool>,
    /// The lazy operators to run right before each operator, unless they have run.
    pub(super) needs: Lists,
    /// The operators that need each lazy one.
    pub(super) needed_by: Lists,
    /// The other operators that must have run before each operator and its lazy ones.
    pub(super) predecessors: Lists,
    pub(super) successors: Lists,
}

impl Lazies {
    pub(super) fn new(model: &Model) -> Self {
        let operators = model.operators();
        let lazy: Vec<bool> = (0..operators)
            .map(|operator| {
                model.reads.get(operator).is_empty()
                    && (model.adds[operator] == model.produced[operator]
                        || has_fault(Fault::LazyWithHill))
                    && model.overwrites[operator].is_empty()
                    && !model.successors.get(operator).is_empty()
            })
            .collect();
        let (mut needs, mut predecessors) = (Vec::new(), Vec::new());
        let mut seen = vec![NOBODY; operators];
        for operator in 0..operators {
            let (mut needed, mut before) = (Vec::new(), Vec::new());
            let mut stack = if lazy[operator] { Vec::new() } else { vec![narrow(operator)] };
            while let Some(next) = stack.pop() {
                for &first in model.predecessors.get(next as usize) {
                    if std::mem::replace(&mut seen[first as usize], narrow(operator))
                        == narrow(operator)
                    {
                        continue;
                    }
                    if lazy[first as usize] {
                        needed.push(first);
                        stack.push(first);
                    } else {
                        before.push(first);
                    }
                }
            }
            // Operators are numbered in an executable order.
            needed.sort_unstable();
            before.sort_unstable();
            needs.push(needed);
            predecessors.push(before);
        }
        let (needs, predecessors) = (Lists::new(needs), Lists::new(predecessors));
        let needed_by = needs.inverted(operators);
        let successors = predecessors.inverted(operators);
        Self { lazy, needs, needed_by, predecessors, successors }
    }
}

const NOBODY: u32 = u32::MAX;
