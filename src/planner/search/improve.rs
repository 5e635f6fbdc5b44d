//! Better and better packings of a problem: first simulated and greedy ones, then searched ones.

use super::{
    control::{
        ladder,
        monitor::Monitor,
        threads::{self, Board, Standing},
    },
    greedy::Greedy,
    solution::Solution,
    state::instance::Instance,
};
use crate::{
    Bytes, Limits, Problem,
    planner::{free_list, pushdown},
    problem::ChunkId,
};

/// Problems of more chains are not searched whole.
pub const LARGE: usize = 5000;

/// The live bytes of a step of the crowded core, in percent of the most live bytes.
pub const CROWDS: [Bytes; 3] = [95, 90, 80];

/// The better packing of two planners that simulate; on some large graphs no greedy one is better.
pub fn simulate(problem: &Problem) -> Solution {
    let mut solution = Solution::of(problem, pushdown::layout(problem));
    if solution.pool_size > solution.lower_bound && free_list::is_quick(problem) {
        solution.improve(problem, free_list::layout(problem));
    }
    solution
}

/// Packs greedily in one order after the other, until a pool is small enough.
pub fn pack(
    problem: &Problem,
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    enough: Bytes,
    monitor: &mut Monitor<'_>,
) {
    for &key in greedy.orders() {
        if solution.pool_size <= enough || monitor.stop(0, solution.lower_bound, solution.pool_size)
        {
            break;
        }
        if let Some(packing) = greedy.pack(key) {
            solution.improve(problem, packing);
        }
    }
}

/// Searches the whole problem, or, if it is too large for that, its crowded core.
pub fn search(
    problem: &Problem,
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) {
    let roots: Vec<_> = problem.roots().collect();
    if roots.len() <= LARGE {
        climb_and_complete(problem, &roots, greedy, solution, limits, monitor);
        return;
    }
    // Use the live bytes, not the raised bound: each core contains the one before, and the peak.
    let live = solution.lower_bound;
    let mut left = limits.nodes;
    for crowd in CROWDS {
        let core = greedy.crowded(live / 100 * crowd);
        let limits = Limits { nodes: left / 3 * 2, ..*limits };
        let nodes = climb_and_complete(problem, &core, greedy, solution, &limits, monitor);
        left = left.saturating_sub(nodes);
        if solution.pool_size == solution.lower_bound || monitor.stopped() {
            break;
        }
    }
}

/// Packs some of the roots better than the best pool, and all others around them; returns the nodes
/// of the first thread.
fn climb_and_complete(
    problem: &Problem,
    roots: &[ChunkId],
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> u64 {
    let climb = climb(problem, roots, solution, limits, monitor);
    if let Some(packing) = climb.bases.and_then(|bases| greedy.complete(&bases)) {
        solution.improve(problem, packing);
    }
    // A bound of some of the chains is a bound of all.
    solution.lower_bound = solution.lower_bound.max(climb.bound).min(solution.pool_size);
    climb.nodes
}

/// The result of packing some of the roots.
struct Climb {
    /// Their offsets, if that is better than the best pool.
    bases: Option<Vec<(ChunkId, Bytes)>>,
    /// A lower bound of their pool.
    bound: Bytes,
    /// The nodes of the first thread.
    nodes: u64,
}

/// Packs some of the roots better than the best pool.
fn climb(
    problem: &Problem,
    roots: &[ChunkId],
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Climb {
    let inst = Instance::new(problem, roots);
    let step = inst.unit * inst.align;
    // Every pool that the search makes is a multiple of the step, and so is some smallest one. The
    // bound is one as well: the chains alive at the peak are among the roots.
    debug_assert!(solution.lower_bound.is_multiple_of(step));
    let best = solution.pool_size.div_ceil(step) * inst.align;
    let board = Board::new(solution.lower_bound / inst.unit, best);
    let whole = roots.len() == problem.roots().count();
    let mut stop = |nodes, _| {
        let Standing { bound, best } = board.standing();
        let best = if whole { best * inst.unit } else { solution.pool_size };
        monitor.stop(nodes + board.helped(), bound * inst.unit, best)
    };
    let nodes = threads::together(limits.threads, &board, &mut stop, |thread, stop| {
        ladder::climb(&inst, thread, limits.nodes, &board, stop)
    });
    solution.nodes = monitor.add(nodes + board.helped());
    let bound = board.standing().bound * inst.unit;
    let bases = board.into_offsets().map(|offsets| {
        let bases = offsets.iter().map(|offset| offset * inst.unit);
        inst.roots.iter().copied().zip(bases).collect()
    });
    Climb { bases, bound, nodes }
}
