//! All chains of a problem as one instance, whose packings improve the solution.

use crate::{
    monitor::Monitor,
    plan::Layout,
    problem::ChunkId,
    search::{
        engine::{Schedule, Turn},
        packing::Packing,
        state::instance::Instance,
        under_way::Search,
    },
};

/// The instance of all chains; `None` if the search is stopped.
pub fn whole_instance(search: &mut Search<'_, '_>, roots: &[ChunkId]) -> Option<Instance> {
    let Search { problem, monitor, .. } = search;
    let inst = Instance::new_within(problem, roots, &mut monitor.budget()).ok()?;
    Some(inst.without(monitor.without()))
}

/// Improves the solution by a schedule for the instance of all chains; returns the nodes that count against the effort.
pub fn run<'a>(
    search: &mut Search<'_, '_>,
    inst: &'a Instance,
    schedule: &Schedule,
    turn: Turn<'a>,
    threads: usize,
) -> u64 {
    improve(search, inst, threads, |packing, monitor| schedule.run(turn, packing, monitor))
}

/// Improves the solution by a packing of all chains.
pub fn improve<'a>(
    search: &mut Search<'_, '_>,
    inst: &'a Instance,
    threads: usize,
    pack: impl FnOnce(&mut Packing<'a>, &mut Monitor<'_>) -> u64,
) -> u64 {
    let Search { problem, solution, monitor, .. } = search;
    let packing = Packing::new(inst, solution.lower_bound, solution.pool_size);
    let mut packing = packing.with_threads(threads);
    let nodes = pack(&mut packing, monitor);
    solution.nodes = monitor.add(0);
    let bound = packing.bound();
    if let Some(offsets) = packing.offsets() {
        let mut bases = vec![0; problem.len()];
        for (root, offset) in inst.roots.iter().zip(offsets) {
            bases[root.index()] = offset * inst.unit;
        }
        solution.improve(problem, Layout::from_roots(problem, |root| bases[root.index()]));
    }
    solution.lower_bound = solution.lower_bound.max(bound.min(solution.pool_size));
    nodes
}
