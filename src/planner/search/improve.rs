//! Improves the packing of a problem: simulation and greedy packings first, then searches.

use super::{
    anew::{Anew, is_near},
    control::{
        ladder,
        monitor::Monitor,
        threads::{self, Board, Standing},
    },
    effort::UNIT,
    greedy::{Greedy, Key, MOST_WORK},
    solution::Solution,
    state::instance::Instance,
};
use crate::{
    Bytes, Limits, Problem,
    planner::{Layout, first_layout, free_list},
    problem::ChunkId,
};

/// In problems with more chains, crowded steps are mended, and crowded cores are searched first.
pub const FEW_CHAINS: usize = 1000;

/// Problems of more chains are not searched as a whole, neither for a pool nor for a capacity.
pub const LARGE: usize = 5000;

/// The live bytes of a step of a crowded core, in thousandths of the most live bytes.
pub const CROWDS: [Bytes; 3] = [950, 900, 800];

/// As [`CROWDS`], for the cores that are searched with the rest of the effort; the last is the
/// whole problem.
const MORE_CROWDS: [Bytes; 16] =
    [990, 980, 970, 960, 950, 940, 930, 920, 900, 880, 850, 800, 700, 600, 400, 0];

/// The most nodes of the first three cores together.
const FIRST_SHARE: u64 = 50_000;

/// The nodes that problems of more than [`FEW_CHAINS`] chains get on top of the default effort.
const LARGER_EFFORT: u64 = 200_000;

/// The nodes for the whole of a problem that is not [`LARGE`], once cores were searched.
const WHOLE_SHARE: u64 = 200_000;

/// The nodes for each further core; four times as many in each later pass over the cores.
const SHARE: u64 = 40_000;

/// A node examines all sections, so it counts once more for each of this many chains in a core.
const CHAINS_PER_NODE: u64 = 500;

/// A node counts for less if chains cover fewer sections than this on average.
const SHORT_LIFE: usize = 16;

/// Runs of taken bytes that count as a node when a core is completed.
const WORK_PER_NODE: u64 = 64;

/// Bodies that cover more sections than this, all added up, are not searched: the setup would take
/// too long.
const MOST_COVERED: usize = 50_000_000;

/// Sizes have no useful common divisor if the bound is more than this many units of it.
const FINE: Bytes = 1 << 14;

/// The number of grains in the bound, when the sizes of such a problem are rounded to grains.
const GRAINS: Bytes = 1 << 12;

/// The shortest rounds of a first search with true sizes, in a problem whose sizes are rounded: the ladder spends that
/// many at the bound.
const EXACT_ROUNDS: u64 = ladder::AT_BOUND * ladder::SHARE;

/// The most nodes for each of the two searches with rounded sizes, so that a search without an end
/// reaches the exact ones.
const MOST_ROUNDED: u64 = 500_000;

/// The nodes of the first search before chains are placed anew, which are enough for the hardest public proof.
const SHORT: u64 = 5_000_000;

/// The same if some chains are staircases, which that search seldom packs well.
const SHORT_OF_STAIRCASES: u64 = 10_000;

/// Guided search may have this many times the nodes of the search before it.
const GUIDED: u64 = 8;

/// The least nodes of the first turn of ejection.
const FIRST_EJECTED: u64 = 500_000;

/// The most nodes of ejection on top of the effort if no chain is a staircase. It then packs hundreds of chunks with a
/// little room to spare, and seldom fewer or tighter ones.
const MOST_OF_RECTANGLES: u64 = 1_000_000;

/// Of the effort, ejection of rectangles has one in this many nodes.
const OF_RECTANGLES: u64 = 16;

/// The next turn of either search has this many times the nodes.
const LONGER: u64 = 32;

/// The most nodes of ejection in a problem of more than [`FEW_CHAINS`] chains that count against the effort, which
/// it may take half of.
const MOST_EJECTED: u64 = 80_000_000;

/// Problems of fewer chains need no rounding, and ejection only if the default effort does not suffice.
const FEW: usize = 150;

/// The better layout of pushdown and the free list; on some large graphs no greedy packing beats
/// it.
pub fn simulate(problem: &Problem, monitor: &mut Monitor<'_>) -> Solution {
    let layout = first_layout::layout_until(problem, &mut || monitor.is_overdue());
    let mut solution = Solution::of(problem, Layout { winner: None, ..layout });
    let Solution { lower_bound, pool_size, .. } = solution;
    if pool_size > lower_bound {
        let mut stop = || monitor.stop(0, lower_bound, pool_size);
        if let Some(layout) = free_list::quick_layout(problem, &mut stop) {
            solution.improve(problem, layout);
        }
    }
    solution
}

/// Packs greedily in one order after the other, until a pool is small enough.
pub fn pack(
    problem: &Problem,
    greedy: &mut Greedy<'_>,
    orders: &[Key],
    solution: &mut Solution,
    enough: Bytes,
    monitor: &mut Monitor<'_>,
) {
    let most = greedy.work().saturating_add(MOST_WORK);
    for &key in orders {
        let Solution { lower_bound, pool_size, .. } = *solution;
        let mut stop = || monitor.stop(0, lower_bound, pool_size);
        if pool_size <= enough || greedy.work() > most || stop() {
            break;
        }
        if let Some(packing) = greedy.pack(key, pool_size, most, &mut stop) {
            solution.improve(problem, packing);
        }
    }
}

/// Searches the whole problem, or, if it is large, one crowded core after the other.
pub fn search(
    problem: &Problem,
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) {
    let roots: Vec<_> = problem.roots().collect();
    if roots.len() > FEW_CHAINS {
        let mut nodes = limits.stretched(solution.lower_bound, solution.pool_size, 1).effort();
        if limits.is_default() {
            nodes += LARGER_EFFORT;
        }
        let is_default = limits.is_default();
        let limits = limits.nodes(nodes);
        search_cores(problem, &roots, greedy, solution, &limits, is_default, monitor);
        return;
    }
    let weight = node_weight(roots.len());
    let nodes = limits.stretched(solution.lower_bound, solution.pool_size, weight).effort();
    let rounded = climb_rounded(problem, &roots, greedy, solution, &limits.nodes(nodes), monitor);
    let in_turns = search_in_turns(problem, &roots, greedy, solution, limits, rounded, monitor);
    if solution.pool_size > solution.lower_bound && !monitor.stopped() {
        // The gap may be smaller now.
        let limits = limits.stretched(solution.lower_bound, solution.pool_size, weight);
        let limits = limits.nodes(limits.effort().saturating_sub(rounded + in_turns));
        climb_and_complete(problem, &roots, greedy, solution, &limits, monitor);
    }
    if roots.len() < FEW
        && limits.is_default()
        && !is_near(solution)
        && !monitor.stopped()
        && let Some(mut anew) = Anew::new(problem, &roots, monitor)
    {
        anew.eject(problem, solution, 0, anew.on_top(true), monitor);
    }
}

/// Searches all chains, and guides the search or ejects chains, in turns of more and more nodes, until the pool is
/// within a percent of the bound or the effort is spent, of which some nodes are spent already; returns the nodes that
/// count against it.
fn search_in_turns(
    problem: &Problem,
    roots: &[ChunkId],
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    spent: u64,
    monitor: &mut Monitor<'_>,
) -> u64 {
    if roots.len() < FEW || is_near(solution) || monitor.stopped() {
        return 0;
    }
    let Some(mut anew) = Anew::new(problem, roots, monitor) else { return 0 };
    let effort = limits.stretched(solution.lower_bound, solution.pool_size, 1).effort();
    let effort = effort.saturating_sub(spent);
    let has_staircases = anew.has_staircases();
    let (mut left, mut more) = (effort, anew.on_top(limits.is_default()));
    let mut climbed = if has_staircases { SHORT_OF_STAIRCASES } else { SHORT };
    let mut ejected = anew.on_top(true).max(FIRST_EJECTED);
    while left > 0 {
        let limits = limits.nodes(left.min(climbed));
        let climb = climb_and_complete(problem, roots, greedy, solution, &limits, monitor);
        left = left.saturating_sub(climb.nodes);
        if is_near(solution) || monitor.stopped() {
            break;
        }
        let nodes = if has_staircases {
            anew.eject(problem, solution, ejected.min(left / 2), more, monitor)
        } else {
            let more = more.min(MOST_OF_RECTANGLES);
            let ejected = anew.eject(problem, solution, left / OF_RECTANGLES, more, monitor);
            left = left.saturating_sub(ejected);
            if is_near(solution) || monitor.stopped() {
                break;
            }
            let nodes = climbed.saturating_mul(GUIDED).min(left / 4 * 3);
            anew.guide(problem, solution, nodes, monitor)
        };
        left = left.saturating_sub(nodes);
        if is_near(solution) || monitor.stopped() {
            break;
        }
        more = 0;
        climbed = climbed.saturating_mul(LONGER);
        ejected = ejected.saturating_mul(LONGER);
    }
    effort - left
}

/// Searches crowded cores until the effort is spent or the pool is proven. A small core is often
/// packed at the bound at once, and the chains of less crowded steps have room enough around it.
fn search_cores(
    problem: &Problem,
    roots: &[ChunkId],
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    is_default: bool,
    monitor: &mut Monitor<'_>,
) {
    // Use the live bytes, not the raised bound: each core contains the one before, and the peak.
    let live = solution.lower_bound;
    let is_whole = |crowd| greedy.crowded(thousandths(live, crowd)).len() == roots.len();
    // The first cores would then be the whole problem, each time searched from the beginning.
    let is_even = roots.len() <= LARGE && is_whole(CROWDS[0]);
    let mut left = limits.effort().min(FIRST_SHARE);
    let mut most_chains = usize::MAX;
    for crowd in CROWDS.into_iter().filter(|_| !is_even) {
        let core = greedy.crowded(thousandths(live, crowd));
        let nodes = left / 3 * 2;
        // A node places one chain.
        if nodes < core.len() as u64 {
            break;
        }
        let limits = limits.nodes(nodes);
        let climb = climb_and_complete(problem, &core, greedy, solution, &limits, monitor);
        left = left.saturating_sub(climb.nodes);
        if solution.pool_size == solution.lower_bound || monitor.stopped() {
            return;
        }
        if climb.is_too_large {
            most_chains = core.len() - 1;
            break;
        }
    }
    let mut limits = limits.nodes(limits.effort().saturating_sub(FIRST_SHARE));
    if roots.len() <= LARGE {
        let (most, weight) = if is_even {
            (limits.effort() / 2, 1)
        } else {
            (limits.effort().min(WHOLE_SHARE), whole_weight(problem, roots))
        };
        let whole = limits.nodes(most / weight);
        let climb = climb_and_complete(problem, roots, greedy, solution, &whole, monitor);
        // A few nodes may examine more bodies than that, which ejection must not pay for.
        let spent = climb.nodes.saturating_mul(weight).min(most);
        limits = limits.nodes(limits.effort().saturating_sub(spent));
        if solution.pool_size == solution.lower_bound || monitor.stopped() {
            return;
        }
    }
    if let Some(mut anew) = Anew::new(problem, roots, monitor) {
        let nodes = (limits.effort() / 2).min(MOST_EJECTED);
        let ejected = anew.eject(problem, solution, nodes, anew.on_top(is_default), monitor);
        limits = limits.nodes(limits.effort().saturating_sub(ejected));
    }
    if solution.pool_size == solution.lower_bound || monitor.stopped() {
        return;
    }
    if !is_near(solution) {
        let bound = solution.lower_bound;
        let orders = greedy.more_orders();
        pack(problem, greedy, orders, solution, bound, monitor);
        if monitor.stopped() {
            return;
        }
    }
    let cores = MORE_CROWDS.map(|crowd| greedy.crowded(thousandths(live, crowd)));
    let mut open: Vec<_> = cores.iter().filter(|core| core.len() <= most_chains).collect();
    // Of equal cores, one is enough.
    open.dedup_by_key(|core| core.len());
    search_more_cores(problem, open, greedy, solution, &limits, monitor);
}

/// Searches more cores, given from the smallest to the largest, repeatedly with more nodes. Completing their
/// packings counts as nodes too.
fn search_more_cores(
    problem: &Problem,
    mut open: Vec<&Vec<ChunkId>>,
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) {
    let (mut left, mut share) = (limits.effort(), SHARE);
    while left > 0 && !open.is_empty() {
        let mut at = 0;
        while at < open.len() && left > 0 {
            let core = open[at];
            let chains = core.len() as u64;
            let weight = node_weight(core.len());
            let limits = limits.nodes(share.min(left) / weight);
            let before = greedy.work();
            let climb = climb_and_complete(problem, core, greedy, solution, &limits, monitor);
            if solution.pool_size == solution.lower_bound || monitor.stopped() {
                return;
            }
            let completed = (greedy.work() - before) / WORK_PER_NODE;
            let cost = climb.nodes.saturating_mul(weight) + completed + chains;
            left = left.saturating_sub(cost);
            if climb.is_too_large {
                open.truncate(at);
            } else if climb.is_over {
                // A core that is packed at the bound is done.
                open.remove(at);
            } else {
                at += 1;
            }
        }
        share = share.saturating_mul(4);
    }
}

/// The number of nodes that one node counts for, with this many chains.
pub fn node_weight(chains: usize) -> u64 {
    1 + chains as u64 / CHAINS_PER_NODE
}

/// The number of nodes that one node counts for, with all chains of a problem: fewer if lifetimes
/// are short.
fn whole_weight(problem: &Problem, roots: &[ChunkId]) -> u64 {
    let covered = Instance::new(problem, roots).covered();
    node_weight(roots.len().min(covered / SHORT_LIFE))
}

/// Some thousandths of a number of bytes, rounded down.
pub fn thousandths(bytes: Bytes, part: Bytes) -> Bytes {
    bytes / 1000 * part + bytes % 1000 * part / 1000
}

/// Packs all chains with rounded sizes if the sizes have no useful common divisor; returns the nodes.
///
/// Sizes that differ by a few bytes leave floors that differ by a few bytes, and the search tries
/// one by one alternatives that make no difference. So the first search ignores the true sizes: they
/// exceed its packing by no more than the roundings add up to, a few thousandths. The second one
/// keeps them beside the rounded sizes to close that gap.
fn climb_rounded(
    problem: &Problem,
    roots: &[ChunkId],
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> u64 {
    let plain = Instance::new(problem, roots);
    let unit = plain.unit.max(problem.alignment());
    // The parts of a staircase would not stay in line.
    let is_plain = plain.staircases.is_empty();
    if roots.len() < FEW || solution.lower_bound / unit <= FINE || !is_plain {
        return 0;
    }
    // Sizes that fill the pool without waste are seldom hard to pack as they are.
    let nodes = limits.effort();
    let few = EXACT_ROUNDS * (UNIT + 2 * roots.len() as u64);
    let few = limits.nodes(few.min(nodes / 4));
    let exact = climb_and_complete(problem, roots, greedy, solution, &few, monitor).nodes;
    if solution.pool_size == solution.lower_bound || monitor.stopped() {
        return exact;
    }
    let nodes = nodes.saturating_sub(exact);
    let grain = problem.align_up(solution.lower_bound / GRAINS);
    let inst = Instance::rounded(problem, roots, grain);
    let step = inst.unit * inst.align;
    let board = Board::new(inst.bound(), solution.pool_size / step * inst.align);
    let share = (nodes / 2).min(MOST_ROUNDED);
    let first = climb_and_settle(problem, &inst, board, greedy, solution, share, monitor);
    let inst = inst.with_exact_sizes(problem);
    let board = Board::new(solution.lower_bound, solution.pool_size);
    let share = (nodes.saturating_sub(first) / 3).min(MOST_ROUNDED);
    exact + first + climb_and_settle(problem, &inst, board, greedy, solution, share, monitor)
}

/// Packs all chains and places them in the order of their offsets with their true sizes; returns the
/// nodes.
fn climb_and_settle(
    problem: &Problem,
    inst: &Instance,
    board: Board,
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    nodes: u64,
    monitor: &mut Monitor<'_>,
) -> u64 {
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
fn climb_and_complete(
    problem: &Problem,
    roots: &[ChunkId],
    greedy: &mut Greedy<'_>,
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Outcome {
    let Climb { bases, bound, best, nodes, is_over, is_too_large } =
        climb(problem, roots, solution, limits, monitor);
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
struct Outcome {
    /// The nodes of the first thread.
    nodes: u64,
    /// True if more nodes cannot improve it.
    is_over: bool,
    /// True if there are too many roots to be searched, and so are more.
    is_too_large: bool,
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
fn climb(
    problem: &Problem,
    roots: &[ChunkId],
    solution: &mut Solution,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Climb {
    let inst = Instance::new_until(problem, roots, &mut || monitor.must_stop());
    let Some(inst) = inst.filter(|inst| inst.covered() <= MOST_COVERED) else {
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
    let board = Board::new(solution.lower_bound / inst.unit, best);
    let whole = roots.len() == problem.roots().count();
    let best_of_all = |best| if whole { best * inst.unit } else { solution.pool_size };
    let mut stop = |nodes, _| {
        let Standing { bound, best } = board.standing();
        monitor.stop(nodes + board.helped(), bound * inst.unit, best_of_all(best))
    };
    let nodes = threads::together(limits.threads, &board, &mut stop, |thread, stop| {
        ladder::climb(&inst, thread, limits.effort(), &board, stop)
    });
    solution.nodes = monitor.add(nodes + board.helped());
    let Standing { bound, best } = board.standing();
    let (bound, best) = (bound * inst.unit, best_of_all(best));
    let is_over = board.is_solved();
    let bases = board.into_offsets().map(|offsets| {
        let bases = offsets.iter().map(|offset| offset * inst.unit);
        inst.roots.iter().copied().zip(bases).collect()
    });
    Climb { bases, bound, best, nodes, is_over, is_too_large: false }
}
