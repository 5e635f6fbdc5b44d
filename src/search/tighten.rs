//! Packs some or all chains of a problem below its best pool by the search, and places the others around them.

use crate::search::schedule::LIMITS_ALONE;
use crate::search::sizes::{MAX_COVERED, SMALL};
use crate::search::{
    Stage,
    control::limit_schedule::{LimitSchedule, ROUNDS_AT_BOUND},
    effort::UNIT,
    engine::{Engine, Share, Turn},
    packing::Packing,
    solution::Solution,
    state::instance::Instance,
    under_way::Search,
};
use crate::{Bytes, Limits, plan::Layout, problem::ChunkId};

/// The number of grains in the bound to which sizes without a useful common divisor are rounded. The divisor is useful
/// if a grain would be no larger.
const GRAINS: Bytes = 1 << 12;

/// The most nodes for each of the two searches with rounded sizes, so that a search without an end
/// reaches the exact ones.
const MAX_ROUNDED: u64 = 200_000;

/// Packs the chains of an instance, which are all, with rounded sizes if their sizes have no useful common divisor;
/// returns the nodes.
///
/// Sizes that differ by a few bytes leave floors that differ by a few bytes, and the search tries
/// alternatives one by one that make no difference. So the first search ignores the true sizes. With these, its packing
/// grows by no more than the sum of the rounding errors, a few thousandths. The second search also keeps the true sizes
/// beside the rounded ones, to close that gap.
pub fn tighten_rounded(search: &mut Search<'_, '_>, plain: &Instance, limits: &Limits) -> u64 {
    let (problem, roots) = (search.problem, &plain.roots);
    let unit = plain.unit.max(problem.alignment());
    // Rounded parts of a staircase would no longer fit each other.
    let is_plain = plain.staircases.is_empty();
    let is_on = search.monitor.has(Stage::Rounded);
    let is_fine = search.solution.lower_bound / unit >= 2 * GRAINS;
    if !is_on || roots.len() < SMALL || !is_fine || !is_plain {
        return 0;
    }
    // Sizes that fill the pool without waste are seldom hard to pack as they are.
    let nodes = limits.effort();
    let few = ROUNDS_AT_BOUND * (UNIT + 2 * roots.len() as u64);
    let few = limits.nodes(few.min(nodes / 4));
    let exact = tighten_and_complete(search, roots, &few).nodes;
    if search.is_over() {
        return exact;
    }
    let nodes = nodes.saturating_sub(exact);
    let Solution { lower_bound, pool_size, .. } = *search.solution;
    let grain = problem.align_up(lower_bound / GRAINS);
    let inst = Instance::rounded(problem, roots, grain).without(search.monitor.without());
    let step = inst.unit * inst.align;
    let packing = Packing::between(&inst, inst.bound(), pool_size / step * inst.align);
    let first = tighten_and_settle(search, packing, (nodes / 2).min(MAX_ROUNDED));
    if !search.monitor.has(Stage::Exact) {
        return exact + first;
    }
    let inst = inst.with_exact_sizes(problem);
    let Solution { lower_bound, pool_size, .. } = *search.solution;
    let packing = Packing::between(&inst, lower_bound, pool_size);
    let most = (nodes.saturating_sub(first) / 3).min(MAX_ROUNDED);
    exact + first + tighten_and_settle(search, packing, most)
}

/// Packs all chains and places them in the order of their offsets with their true sizes; returns the
/// nodes.
fn tighten_and_settle(search: &mut Search<'_, '_>, packing: Packing<'_>, most: u64) -> u64 {
    let Search { problem, greedy, solution, monitor } = search;
    if packing.is_proven() || monitor.must_stop() {
        return 0;
    }
    let mut packing = packing.reporting(Some(solution.lower_bound), solution.pool_size);
    let nodes = LimitSchedule.run(&mut packing, Share::of(most), monitor);
    solution.nodes = monitor.add(0);
    if let Some(offsets) = packing.offsets() {
        // The unit makes no difference to the order.
        let roots = packing.inst().roots.iter().copied();
        let found = Layout::of_bases(problem, roots.zip(offsets.iter().copied()));
        if let Some(packing) = greedy.settle(|root| found.offset(root)) {
            solution.improve(problem, packing);
            // The search itself reported the pool before this improvement.
            monitor.stop(0, solution.lower_bound, solution.pool_size);
        }
    }
    nodes
}

/// Searches for a packing of some of the roots below the best pool, and places all others around
/// it.
pub fn tighten_and_complete(
    search: &mut Search<'_, '_>,
    roots: &[ChunkId],
    limits: &Limits,
) -> Outcome {
    let Search { problem, greedy, solution, monitor } = search;
    let inst = Instance::new(problem, roots, monitor).ok();
    let Some(inst) = inst.filter(|inst| inst.covered() <= MAX_COVERED) else {
        return Outcome { nodes: 0, is_over: false, is_too_large: true };
    };
    // The pools of the search are multiples of the step, and so is some smallest pool. The bound is
    // one as well, because the chains alive at the peak are among the roots.
    debug_assert!(solution.lower_bound.is_multiple_of(inst.unit * inst.align));
    let packing = Packing::new(&inst, solution.lower_bound, solution.pool_size);
    let mut packing = packing.with_threads(limits.threads);
    if roots.len() < problem.roots().count() {
        packing = packing.reporting(None, solution.pool_size);
    }
    let nodes =
        LIMITS_ALONE.run(Turn::first(&inst, limits.effort(), limits), &mut packing, monitor);
    solution.nodes = monitor.add(0);
    // A bound of some of the chains is a bound of all.
    solution.lower_bound = solution.lower_bound.max(packing.bound()).min(solution.pool_size);
    let is_over = packing.is_proven();
    if let Some(bases) = packing.bases() {
        for packing in greedy.complete(&bases, monitor.budget()) {
            if solution.improve(problem, packing) <= solution.lower_bound {
                break;
            }
        }
    }
    Outcome { nodes, is_over, is_too_large: false }
}

/// The result of packing some of the roots and completing the packing.
pub struct Outcome {
    /// The nodes of the first thread.
    pub nodes: u64,
    /// True if more nodes cannot improve the packing.
    pub is_over: bool,
    /// True if there are too many roots to search, so that more roots need not be tried.
    pub is_too_large: bool,
}
