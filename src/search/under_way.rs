//! The state that the stages of a search share.

use super::{
    Stage,
    engine::{Schedule, Turn},
    greedy::{Greedy, Key},
    packing::Packing,
    sizes::MAX_WORK,
    solution::Solution,
    state::instance::Instance,
};
use crate::{Bytes, Problem, monitor::Monitor, plan::Layout};

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
            match greedy.pack(key, &[], pool_size, &mut budget) {
                Ok(Some(bases)) => _ = solution.improve(problem, greedy.layout(&bases)),
                Ok(None) => {}
                Err(_) => break,
            }
        }
    }

    /// Improves the solution by a schedule for the instance of all chains; returns the nodes that count against the
    /// effort.
    pub fn run<'i>(
        &mut self,
        inst: &'i Instance,
        schedule: &Schedule,
        turn: Turn<'i>,
        threads: usize,
    ) -> u64 {
        self.improve(inst, threads, |packing, monitor| schedule.run(turn, packing, monitor))
    }

    /// Improves the solution by a packing of all chains.
    pub fn improve<'i>(
        &mut self,
        inst: &'i Instance,
        threads: usize,
        pack: impl FnOnce(&mut Packing<'i>, &mut Monitor<'_>) -> u64,
    ) -> u64 {
        let Self { problem, solution, monitor, .. } = self;
        let packing = Packing::new(inst, solution.lower_bound, solution.pool_size);
        let mut packing = packing.with_threads(threads);
        let nodes = pack(&mut packing, monitor);
        solution.nodes = monitor.add(0);
        let bound = packing.bound();
        if let Some(bases) = packing.bases() {
            solution.improve(problem, Layout::of_bases(problem, bases));
        }
        solution.lower_bound = solution.lower_bound.max(bound.min(solution.pool_size));
        nodes
    }
}
