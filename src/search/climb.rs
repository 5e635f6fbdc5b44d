//! Packs some or all chains of a problem below its best pool by the search, and places the others around them.

use crate::search::{
    Stage,
    control::{
        ladder,
        threads::{self, Incumbent, Standing},
    },
    effort::UNIT,
    solution::Solution,
    state::instance::Instance,
    under_way::Search,
};
use crate::{Bytes, Limits, problem::ChunkId};

/// Problems of fewer chains need no rounding, and ejection only if the default effort does not suffice.
pub const FEW: usize = 150;

/// Bodies that cover more sections than this, all added up, are not searched: the setup would take
/// too long.
const MAX_COVERED: usize = 50_000_000;

/// Sizes have no useful common divisor if the bound is more than this many units of it.
const FINE: Bytes = 1 << 14;

/// The number of grains in the bound, when the sizes of such a problem are rounded to grains.
const GRAINS: Bytes = 1 << 12;

/// The shortest rounds of a first search with true sizes, in a problem whose sizes are rounded: the ladder spends that
/// many at the bound.
const EXACT_ROUNDS: u64 = ladder::AT_BOUND * ladder::SHARE;

/// The most nodes for each of the two searches with rounded sizes, so that a search without an end
/// reaches the exact ones.
const MAX_ROUNDED: u64 = 500_000;

/// Packs all chains with rounded sizes if the sizes have no useful common divisor; returns the nodes.
///
/// Sizes that differ by a few bytes leave floors that differ by a few bytes, and the search tries
/// one by one alternatives that make no difference. So the first search ignores the true sizes: they
/// exceed its packing by no more than the roundings add up to, a few thousandths. The second one
/// keeps them beside the rounded sizes to close that gap.
pub fn climb_rounded(search: &mut Search<'_, '_>, roots: &[ChunkId], limits: &Limits) -> u64 {
    let problem = search.problem;
    let plain = Instance::new(problem, roots);
    let unit = plain.unit.max(problem.alignment());
    // The parts of a staircase would not stay in line.
    let is_plain = plain.staircases.is_empty();
    let is_on = search.monitor.has(Stage::Rounded);
    if !is_on || roots.len() < FEW || search.solution.lower_bound / unit <= FINE || !is_plain {
        return 0;
    }
    // Sizes that fill the pool without waste are seldom hard to pack as they are.
    let nodes = limits.effort();
    let few = EXACT_ROUNDS * (UNIT + 2 * roots.len() as u64);
    let few = limits.nodes(few.min(nodes / 4));
    let exact = climb_and_complete(search, roots, &few).nodes;
    if search.is_over() {
        return exact;
    }
    let nodes = nodes.saturating_sub(exact);
    let Solution { lower_bound, pool_size, .. } = *search.solution;
    let grain = problem.align_up(lower_bound / GRAINS);
    let inst = Instance::rounded(problem, roots, grain).without(search.monitor.without());
    let step = inst.unit * inst.align;
    let board = Incumbent::new(inst.bound(), pool_size / step * inst.align);
    let share = (nodes / 2).min(MAX_ROUNDED);
    let first = climb_and_settle(search, &inst, board, share);
    if !search.monitor.has(Stage::Exact) {
        return exact + first;
    }
    let inst = inst.with_exact_sizes(problem);
    let board = Incumbent::new(search.solution.lower_bound, search.solution.pool_size);
    let share = (nodes.saturating_sub(first) / 3).min(MAX_ROUNDED);
    exact + first + climb_and_settle(search, &inst, board, share)
}

/// Packs all chains and places them in the order of their offsets with their true sizes; returns the
/// nodes.
fn climb_and_settle(
    search: &mut Search<'_, '_>,
    inst: &Instance,
    board: Incumbent,
    nodes: u64,
) -> u64 {
    let Search { problem, greedy, solution, monitor } = search;
    if board.is_over() || monitor.stopped() {
        return 0;
    }
    let mut stop = |nodes, _| monitor.stop(nodes, solution.lower_bound, solution.pool_size);
    let nodes = ladder::climb(inst, 0, nodes, &board, &mut stop);
    solution.nodes = monitor.add(nodes);
    if let Some(offsets) = board.into_offsets() {
        let mut bases = vec![0; problem.len()];
        for (root, offset) in inst.roots.iter().zip(offsets) {
            // The unit makes no difference to the order.
            bases[root.index()] = offset;
        }
        if let Some(packing) = greedy.settle(|root| bases[root.index()]) {
            solution.improve(problem, packing);
            // The search itself reported the pool before this improvement.
            monitor.stop(0, solution.lower_bound, solution.pool_size);
        }
    }
    nodes
}

/// Searches for a packing of some of the roots below the best pool, and places all others around
/// it.
pub fn climb_and_complete(
    search: &mut Search<'_, '_>,
    roots: &[ChunkId],
    limits: &Limits,
) -> Outcome {
    let Climb { bases, bound, best, nodes, is_over, is_too_large } = climb(search, roots, limits);
    let Search { problem, greedy, solution, monitor } = search;
    // A bound of some of the chains is a bound of all.
    solution.lower_bound = solution.lower_bound.max(bound).min(solution.pool_size);
    if let Some(bases) = bases {
        let mut stop = || monitor.stop(0, solution.lower_bound, best);
        for packing in greedy.complete(&bases, solution.lower_bound, &mut stop) {
            solution.improve(problem, packing);
        }
    }
    Outcome { nodes, is_over, is_too_large }
}

/// The result of packing some of the roots and completing the packing.
pub struct Outcome {
    /// The nodes of the first thread.
    pub nodes: u64,
    /// True if more nodes cannot improve it.
    pub is_over: bool,
    /// True if there are too many roots to be searched, and so are more.
    pub is_too_large: bool,
}

/// The result of packing some of the roots.
struct Climb {
    /// Their offsets, if they are packed below the best pool.
    bases: Option<Vec<(ChunkId, Bytes)>>,
    /// A lower bound of their pool.
    bound: Bytes,
    /// The best pool of all roots, before the others are placed.
    best: Bytes,
    /// The nodes of the first thread.
    nodes: u64,
    /// True if their smallest pool is known.
    is_over: bool,
    /// True if they are too many to be searched.
    is_too_large: bool,
}

/// Searches for a packing of some of the roots below the best pool.
fn climb(search: &mut Search<'_, '_>, roots: &[ChunkId], limits: &Limits) -> Climb {
    let Search { problem, solution, monitor, .. } = search;
    let inst = Instance::new_until(problem, roots, &mut || monitor.must_stop());
    let inst = inst.map(|inst| inst.without(monitor.without()));
    let Some(inst) = inst.filter(|inst| inst.covered() <= MAX_COVERED) else {
        return Climb {
            bases: None,
            bound: solution.lower_bound,
            best: solution.pool_size,
            nodes: 0,
            is_over: false,
            is_too_large: true,
        };
    };
    let step = inst.unit * inst.align;
    // The pools of the search are multiples of the step, and so is some smallest pool. The bound is
    // one as well, because the chains alive at the peak are among the roots.
    debug_assert!(solution.lower_bound.is_multiple_of(step));
    let best = solution.pool_size.div_ceil(step) * inst.align;
    let board = Incumbent::new(solution.lower_bound / inst.unit, best);
    let whole = roots.len() == problem.roots().count();
    let best_of_all = |best| if whole { best * inst.unit } else { solution.pool_size };
    let mut stop = |nodes, _| {
        let Standing { bound, best } = board.standing();
        monitor.stop(nodes + board.worker_nodes(), bound * inst.unit, best_of_all(best))
    };
    let nodes = threads::together(limits.threads, &board, &mut stop, |thread, stop| {
        ladder::climb(&inst, thread, limits.effort(), &board, stop)
    });
    solution.nodes = monitor.add(nodes + board.worker_nodes());
    let Standing { bound, best } = board.standing();
    let (bound, best) = (bound * inst.unit, best_of_all(best));
    let is_over = board.is_solved();
    let bases = board.into_offsets().map(|offsets| {
        let bases = offsets.iter().map(|offset| offset * inst.unit);
        inst.roots.iter().copied().zip(bases).collect()
    });
    Climb { bases, bound, best, nodes, is_over, is_too_large: false }
}
