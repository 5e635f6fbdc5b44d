//! Packing all chains anew below lower and lower limits.

use super::{
    control::{
        descent::{Attempts, Packer, descend_from},
        monitor::Monitor,
    },
    ejection::{self, Ejection},
    solution::Solution,
    state::instance::Instance,
};
use crate::{Bytes, Limits, Problem, planner::Layout, problem::ChunkId};

/// By default, two attempts at ejection come on top of the effort, if each takes no more nodes than this.
const MOST_ON_TOP: u64 = 3_000_000;

/// The most nodes of ejection that count against the effort, which it may take half of.
const MOST_EJECTED: u64 = 10_000_000;

/// If the pool is more than a percent above the bound, places all chains anew, and lets those that do not fit
/// eject others. Returns the nodes that count against the effort.
pub fn eject(
    problem: &Problem,
    roots: &[ChunkId],
    solution: &mut Solution,
    limits: &Limits,
    is_default: bool,
    monitor: &mut Monitor<'_>,
) -> u64 {
    let near = solution.lower_bound.saturating_add(solution.lower_bound / 100);
    if solution.pool_size <= near {
        return 0;
    }
    let inst = Instance::new_until(problem, roots, &mut || monitor.must_stop());
    let Some(inst) = inst else { return 0 };
    let Some(mut ejection) = Ejection::new(&inst) else { return 0 };
    let share = ejection.share();
    let more = on_top(share, is_default);
    let enough = if more > 0 { near } else { solution.lower_bound };
    let nodes = (limits.effort() / 2).min(MOST_EJECTED) + more;
    if share > nodes {
        return 0;
    }
    let attempts = Attempts { rungs: &ejection::RUNGS, share, nodes };
    let ejected = descend(problem, &inst, &mut ejection, attempts, enough, solution, monitor);
    ejected.saturating_sub(more)
}

/// The nodes of ejection that come on top of the effort, with attempts of this many nodes.
pub fn on_top(share: u64, is_default: bool) -> u64 {
    if is_default && share <= MOST_ON_TOP { 2 * share } else { 0 }
}

/// Packs all chains below lower and lower limits, until the pool is small enough; returns the nodes.
pub fn descend(
    problem: &Problem,
    inst: &Instance,
    packer: &mut impl Packer,
    attempts: Attempts<'_>,
    enough: Bytes,
    solution: &mut Solution,
    monitor: &mut Monitor<'_>,
) -> u64 {
    let bound = solution.lower_bound;
    let step = inst.unit * inst.align;
    let best = solution.pool_size.div_ceil(step) * inst.align;
    let mut stop =
        |nodes, best| monitor.stop(nodes, bound, best * inst.unit) || best * inst.unit <= enough;
    let found = descend_from(bound / inst.unit, best, attempts, packer, &mut stop);
    solution.nodes = monitor.add(packer.nodes());
    if let Some(offsets) = found {
        let mut bases = vec![0; problem.len()];
        for (root, offset) in inst.roots.iter().zip(offsets) {
            bases[root.index()] = offset * inst.unit;
        }
        solution.improve(problem, Layout::from_roots(problem, |root| bases[root.index()]));
    }
    packer.nodes()
}
