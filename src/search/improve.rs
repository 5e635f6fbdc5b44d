//! Improves the packing of a problem: simulation and greedy packings first, then searches.

use crate::search::schedule::{LONG, MEDIUM, SMALL};
use crate::search::{
    cores::{node_weight, search_cores},
    repack::{Repack, is_near},
    solution::Solution,
    tighten::{contract, first_descent, tighten_and_complete, tighten_rounded},
    under_way::Search,
};
use crate::{
    Bytes, Limits, Problem, baselines::free_list, monitor::Monitor, plan::Layout, problem::ChunkId,
    search::first_layout,
};

/// The nodes that problems of more than [`LONG`] chains get on top of the default effort.
const LARGER_EFFORT: u64 = 200_000;

/// The nodes of the first search before chains are repacked, which are enough for the hardest public proof.
const SHORT: u64 = 5_000_000;

/// The same if some chains are staircases, which that search seldom packs well.
const SHORT_OF_STAIRCASES: u64 = 10_000;

/// By default, one in this many of the nodes are for the whole of a problem of 300 to 500 rectangles. All of them
/// follow once more for its cores, which J needs 1.4 million for; fewer chains are searched as a whole as fast as in
/// cores, and more need more nodes than that.
const BEFORE_CORES: u64 = 8;

/// Guided search may have this many times the nodes of the search before it.
const GUIDED: u64 = 8;

/// The least nodes of the first turn of ejection.
const FIRST_EJECTED: u64 = 500_000;

/// The most nodes of ejection on top of the effort if no chain is a staircase. It then packs hundreds of chunks with a
/// little room to spare, and seldom fewer or tighter ones.
const MAX_OF_RECTANGLES: u64 = 500_000;

/// Of the effort, ejection of rectangles has one in this many nodes.
const OF_RECTANGLES: u64 = 16;

/// The next turn of either search has this many times the nodes.
const LONGER: u64 = 32;

/// The most nodes of the first descent, for a short limit: with 5 000 of them, J is within 4 % of its bound, and
/// without them, 80 000 nodes leave it at 15 %.
const FIRST_DESCENT: u64 = 20_000;

/// Pools that are further above the bound than one in this many of its bytes are improved by a first descent.
const FAR: Bytes = 16;

/// The better layout of pushdown and the free list; on some large graphs no greedy packing beats
/// it.
pub fn simulate(problem: &Problem, monitor: &mut Monitor<'_>) -> Solution {
    let layout = first_layout::layout_within(problem, monitor);
    let mut solution = Solution::of(problem, Layout { winner: None, ..layout });
    let Solution { lower_bound, pool_size, .. } = solution;
    if pool_size > lower_bound
        && let Ok(layout) = free_list::quick_layout(problem, monitor.budget())
    {
        solution.improve(problem, layout);
    }
    solution
}

/// Searches the whole problem, or, if it is large, one crowded core after the other.
pub fn search(search: &mut Search<'_, '_>, limits: &Limits) {
    // After the first pass, each stage goes on as long as it can, because ejection gains more the longer it runs.
    let limits = &if limits.times > 1 { limits.nodes(u64::MAX) } else { *limits };
    let roots: Vec<_> = search.problem.roots().collect();
    let scaled_to_gap = |search: &Search<'_, '_>, weight| {
        let Solution { lower_bound, pool_size, .. } = *search.solution;
        limits.scaled_to_gap(lower_bound, pool_size, weight)
    };
    let effort = scaled_to_gap(search, 1);
    let contracted = contract(search, &roots, &effort);
    if search.is_over() {
        return;
    }
    let Solution { lower_bound, pool_size, .. } = *search.solution;
    let is_far = pool_size - lower_bound > lower_bound / FAR;
    if !is_far || !(SMALL..=LONG).contains(&roots.len()) {
        return search_further(search, &roots, limits, contracted);
    }
    // The later stages do not see this packing, so their results stay the same. It serves short limits.
    let before = search.solution.clone();
    let most = FIRST_DESCENT.min(effort.effort().saturating_sub(contracted));
    let spent = first_descent(search, &roots, most);
    if search.is_over() {
        return;
    }
    search.monitor.found(search.solution.pool_size);
    let early = std::mem::replace(search.solution, before);
    let spent = if limits.is_default() { contracted } else { contracted + spent };
    search_further(search, &roots, limits, spent);
    search.solution.improve(search.problem, early.layout);
}

/// As [`search`], after some nodes have been spent.
fn search_further(
    search: &mut Search<'_, '_>,
    roots: &[ChunkId],
    limits: &Limits,
    contracted: u64,
) {
    let scaled_to_gap = |search: &Search<'_, '_>, weight| {
        let Solution { lower_bound, pool_size, .. } = *search.solution;
        limits.scaled_to_gap(lower_bound, pool_size, weight)
    };
    let effort = scaled_to_gap(search, 1);
    if roots.len() > LONG {
        let mut nodes = effort.effort().saturating_sub(contracted);
        if limits.is_default() {
            nodes += LARGER_EFFORT;
        }
        search_cores(search, roots, nodes, limits);
        return;
    }
    let weight = node_weight(roots.len());
    let nodes = scaled_to_gap(search, weight).effort().saturating_sub(contracted);
    let spent = contracted + tighten_rounded(search, roots, &limits.nodes(nodes));
    let in_turns = search_in_turns(search, roots, limits, spent);
    if !search.is_over() {
        // The gap may be smaller now.
        let limits = scaled_to_gap(search, weight);
        let limits = limits.nodes(limits.effort().saturating_sub(spent + in_turns));
        tighten_and_complete(search, roots, &limits);
    }
}

/// Searches all chains, and guides the search or ejects chains, in turns of more and more nodes, until the pool is
/// within a percent of the bound or the effort is spent, of which some nodes are spent already; returns the nodes that
/// count against it.
fn search_in_turns(
    search: &mut Search<'_, '_>,
    roots: &[ChunkId],
    limits: &Limits,
    spent: u64,
) -> u64 {
    let is_done = |search: &Search<'_, '_>| is_near(search.solution) || search.monitor.stopped();
    if roots.len() < SMALL || is_done(search) {
        return 0;
    }
    let Some(mut repack) = Repack::new(search, roots) else { return 0 };
    let Solution { lower_bound, pool_size, .. } = *search.solution;
    let effort = limits.scaled_to_gap(lower_bound, pool_size, 1).effort();
    let effort = effort.saturating_sub(spent);
    let has_staircases = repack.has_staircases();
    let (mut left, mut more) = (effort, repack.on_top(limits));
    let is_guided =
        limits.is_default() && !has_staircases && (2 * SMALL..=MEDIUM).contains(&roots.len());
    let mut tightened = match has_staircases {
        true => SHORT_OF_STAIRCASES,
        false if is_guided => effort / BEFORE_CORES,
        false => SHORT,
    };
    let mut ejected = repack.on_top(&Limits::default()).max(FIRST_EJECTED);
    while left > 0 {
        let limits = limits.nodes(left.min(tightened));
        let found = tighten_and_complete(search, roots, &limits);
        left = left.saturating_sub(found.nodes);
        if is_done(search) {
            break;
        }
        if is_guided {
            repack.guide(search, effort);
            left = 0;
            if is_done(search) {
                break;
            }
        }
        let nodes = if has_staircases {
            repack.eject(search, ejected.min(left / 2), more)
        } else {
            let more = more.min(MAX_OF_RECTANGLES);
            let ejected = repack.eject(search, left / OF_RECTANGLES, more);
            left = left.saturating_sub(ejected);
            if is_done(search) {
                break;
            }
            let nodes = tightened.saturating_mul(GUIDED).min(left / 4 * 3);
            repack.guide(search, nodes)
        };
        left = left.saturating_sub(nodes);
        if is_done(search) {
            break;
        }
        more = 0;
        tightened = tightened.saturating_mul(LONGER);
        ejected = ejected.saturating_mul(LONGER);
    }
    effort - left
}
