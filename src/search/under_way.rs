//! The state that the stages of a search share.

use super::{
    Stage,
    greedy::{Greedy, Key, MAX_WORK},
    solution::Solution,
};
use crate::{Bytes, Problem, monitor::Monitor};

/// A problem, the best solution so far, and the monitor that may end the search. Each stage is a method that improves
/// the solution.
pub(super) struct Search<'a, 'm> {
    pub problem: &'a Problem,
    pub greedy: Greedy<'a>,
    pub solution: &'a mut Solution,
    pub monitor: &'a mut Monitor<'m>,
}

impl Search<'_, '_> {
    /// Returns whether the pool is proven the smallest or the search must end.
    pub fn is_over(&mut self) -> bool {
        self.solution.pool_size == self.solution.lower_bound || self.monitor.must_stop()
    }

    /// Packs greedily in one order after the other, until a pool is small enough.
    pub fn pack(&mut self, orders: &[Key], enough: Bytes) {
        let Self { problem, greedy, solution, monitor } = self;
        if !monitor.has(Stage::Greedy) {
            return;
        }
        let mut budget = monitor.budget().at_most(MAX_WORK);
        for &key in orders {
            let Solution { lower_bound, pool_size, .. } = **solution;
            if pool_size <= enough || monitor.stop(0, lower_bound, pool_size) {
                break;
            }
            match greedy.pack(key, pool_size, &mut budget) {
                Ok(Some(packing)) => solution.improve(problem, packing),
                Ok(None) => {}
                Err(_) => break,
            }
        }
    }
}
