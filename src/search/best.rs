//! Best: the smallest pool that any of the fast planners finds.
//!
//! **Idea.** No simple planner wins everywhere, and each takes milliseconds. Run them in a fixed
//! order, keep the first of the smallest pools, and stop when one meets the lower bound, since no
//! pool can be smaller. If none meets it, the search for the optimum starts from the best one.
//!
//! **Cost.** The sum of its [`CANDIDATES`], O(n log n) together. Four rules apply:
//!
//! - With more than 1000 chains, the crowded steps of the first candidate's plan are repacked at once, which often
//!   meets the lower bound of a long sequence. Later, the crowded steps of the best plan are repacked too.
//! - Three candidates compare conflicting pairs. They are skipped if each would take more than a fiftieth of a second:
//!   a chain costs them as much as a hundred pairs, and the pairs are counted beforehand, so that the choice does not
//!   depend on a clock. The free list counts its work and gives up after one or two tenths of a second.
//! - Above 200 000 chains, the search runs only if an effort or a time is given.
//! - With a time limit, no candidate starts that would exceed it if it took as long as the slowest so far. The first
//!   candidate may exceed it by a fifth of a second. If even that is not enough, or the search is cancelled,
//!   every size is rounded up to a class, and the chunks of a class share blocks.
//!
//! **Fewer overwrites.** Staircases pack badly. So if no candidate meets the lower bound, the problem is planned again
//! without those optional overwrites of a part of a chunk whose bytes have room anyway, and the smaller pool wins.
//! Small problems are first searched with all overwrites, which often proves that no smaller pool exists with all of
//! them.
//!
//! **When.** Whenever a plan is computed once and run often. [`Layout::winner`] names the winner.

use crate::search::sizes::SMALL;
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use tracing::debug;

use crate::{
    Bytes, PlanError, Problem, Step, Strategy,
    baselines::{self, free_list},
    monitor::Monitor,
    plan::Layout,
    search::{
        self, Fit, Limits, Observer, Progress, Stage, fewer_overwrites::with_fewer_overwrites,
        first_layout,
    },
};

/// The strategies to try, in this order.
pub const CANDIDATES: &[Strategy] = &[
    Strategy::Pushdown,
    Strategy::TfliteOffsetsBySize,
    Strategy::BestFit,
    Strategy::TfliteMicro,
    Strategy::TfliteCpuArena,
    Strategy::FreeList,
    Strategy::Nnvm,
    Strategy::TfliteGreedyInOrder,
    Strategy::TfliteEquality,
];

/// The number of conflicting pairs above which candidates that compare pairs are skipped. A chain
/// counts as [`PAIRS_PER_CHAIN`].
const MAX_CONFLICTS: u64 = 2_000_000;

/// The work for each chain costs as much as this many pairs.
const PAIRS_PER_CHAIN: u64 = 100;

/// The number of chains above which there is no search by default.
const MAX_SEARCHED: usize = 200_000;

/// Plans with every candidate until one meets the lower bound, then searches within the limits. The
/// time that the candidates take counts towards the limit.
///
/// # Errors
///
/// If a candidate cannot plan such a problem.
pub fn layout(
    problem: &Problem,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Layout, PlanError> {
    let start = Instant::now();
    let bound = problem.lower_bound();
    let (cheapest, slowest) = cheapest(problem, bound, limits, observer);
    let Some((pool, cheap)) = cheapest else { return Ok(Layout::default()) };
    let is_over = || {
        let is_late = limits.after(start).time == Some(Duration::ZERO);
        is_late || is_canceled(observer)
    };
    if pool <= bound || is_over() {
        return Ok(cheap);
    }
    // Planning the looser problem begins with a candidate, too.
    let is_short = || limits.after(start).time.is_some_and(|left| left <= slowest);
    let looser = |pool| {
        let looser = || loosened(problem, (bound, pool), &limits.after(start), observer);
        if is_short() || !limits.without.has(Stage::FewerOverwrites) { None } else { looser() }
    };
    if !is_small(problem) {
        let looser = looser(pool);
        if looser.is_some() || is_over() {
            return Ok(looser.unwrap_or(cheap));
        }
    }
    if !is_searched(problem, limits) {
        return Ok(cheap);
    }
    let found = search::continue_from(problem, &cheap, bound, &limits.after(start), observer);
    debug!(target: "memplan::best", strategy = %Strategy::Optimal, pool = found.pool_size, nodes = found.nodes, "tried");
    if is_small(problem)
        && found.pool_size > bound
        && !is_over()
        && let Some(looser) = looser(found.pool_size)
    {
        return Ok(looser);
    }
    let winner = if found.pool_size < pool { Some(Strategy::Optimal) } else { cheap.winner };
    Ok(Layout { winner, lower_bound: found.lower_bound, ..found.layout })
}

/// Decides whether a problem fits into a pool of `capacity` bytes, if need be with fewer overwrites. [`Fit::No`] is
/// proven only for plans with all accepted overwrites.
#[must_use]
pub(crate) fn fits(
    problem: &Problem,
    capacity: Bytes,
    limits: &Limits,
    observer: Observer<'_>,
) -> Fit {
    let start = Instant::now();
    let fits = |problem: &Problem| search::fits(problem, capacity, &limits.after(start), observer);
    let looser = || {
        let looser = with_fewer_overwrites(problem)?;
        Some(fits(&looser)).filter(|fit| matches!(fit, Fit::Yes(_)))
    };
    if !is_small(problem) {
        return looser().unwrap_or_else(|| fits(problem));
    }
    match fits(problem) {
        Fit::Yes(layout) => Fit::Yes(layout),
        fit => looser().unwrap_or(fit),
    }
}

/// Plans the problem with fewer overwrites; returns the layout if its pool is smaller than `pool` bytes. `bound` is a
/// lower bound in bytes for both problems.
fn loosened(
    problem: &Problem,
    (bound, pool): (Bytes, Bytes),
    limits: &Limits,
    observer: Observer<'_>,
) -> Option<Layout> {
    let start = Instant::now();
    let looser = with_fewer_overwrites(problem)?;
    // A bound that the search proves for the problem with fewer overwrites need not hold for this one.
    let report = |progress: &Progress| {
        if let Some(report) = observer.progress {
            report(&Progress { lower_bound: bound, best: progress.best.min(pool), ..*progress });
        }
    };
    let observer = Observer { progress: Some(&report), ..observer };
    let found = layout(&looser, &limits.after(start), observer).ok()?;
    let size = found.pool_size(problem);
    let given_up = problem.links_taken() - looser.links_taken();
    debug!(target: "memplan::best", given_up, pool = size, "tried with fewer overwrites");
    let winner = Some(Strategy::Optimal);
    (size < pool).then_some(Layout { winner, lower_bound: bound, ..found })
}

/// Returns whether a problem is first searched with all of its overwrites.
fn is_small(problem: &Problem) -> bool {
    problem.roots().nth(SMALL).is_none()
}

fn is_canceled(observer: Observer<'_>) -> bool {
    observer.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
}

/// The smallest layout of the candidates with its pool in bytes, and the time that the slowest candidate took, if the
/// time is limited.
fn cheapest(
    problem: &Problem,
    bound: Bytes,
    limits: &Limits,
    observer: Observer<'_>,
) -> (Option<(Bytes, Layout)>, Duration) {
    let start = Instant::now();
    let remaining = || limits.after(start).time;
    let chains = problem.roots().count() as u64;
    // Counting the pairs takes a while, so they are not counted where the chains alone are too many.
    let dense = PAIRS_PER_CHAIN * chains > MAX_CONFLICTS
        || PAIRS_PER_CHAIN * chains + conflicts(problem) > MAX_CONFLICTS;
    let monitor = Monitor::new(limits, observer);
    let mut slowest = Duration::ZERO;
    let mut best: Option<(Bytes, Layout)> = None;
    let is_on = |strategy| strategy == Strategy::Pushdown || monitor.has(Stage::Candidates);
    let left_out = |strategy| !is_on(strategy) || dense && walks(strategy);
    for &strategy in CANDIDATES.iter().filter(|&&strategy| !left_out(strategy)) {
        let before = remaining();
        if best.is_some() && (is_canceled(observer) || before.is_some_and(|time| time <= slowest)) {
            break;
        }
        let budget = || Monitor::new(&limits.after(start), observer).budget();
        let named = |layout| Layout { winner: Some(strategy), ..layout };
        let layout = match strategy {
            Strategy::Pushdown => Some(first_layout::layout_within(problem, &monitor)),
            Strategy::FreeList => free_list::quick_layout(problem, budget()).ok().map(named),
            strategy => {
                baselines::layout(strategy, problem, &mut budget()).ok().flatten().map(named)
            }
        };
        let Some(layout) = layout else { continue };
        let took = before.zip(remaining()).map(|(before, after)| before.saturating_sub(after));
        slowest = slowest.max(took.unwrap_or_default());
        let pool = layout.pool_size(problem);
        debug!(target: "memplan::best", %strategy, pool, bound, "tried");
        if best.as_ref().is_none_or(|&(smallest, _)| pool < smallest) {
            best = Some((pool, layout));
            if let Some(progress) = observer.progress {
                progress(&Progress { lower_bound: bound, best: pool, nodes: 0 });
            }
        }
        if strategy == Strategy::Pushdown {
            repair_peaks(problem, &mut best, bound, &limits.after(start), observer);
        }
        if best.as_ref().is_some_and(|&(smallest, _)| smallest <= bound) {
            break;
        }
    }
    // A packing by another planner has other crowded steps.
    if best.as_ref().is_some_and(|(_, layout)| !is_repaired(layout)) {
        repair_peaks(problem, &mut best, bound, &limits.after(start), observer);
    }
    (best, slowest)
}

/// Repairs the peaks of the best layout of a large problem, if it is above the bound.
fn repair_peaks(
    problem: &Problem,
    best: &mut Option<(Bytes, Layout)>,
    bound: Bytes,
    limits: &Limits,
    observer: Observer<'_>,
) {
    let Some((pool, layout)) = best else { return };
    let is_late = limits.time == Some(Duration::ZERO);
    if *pool <= bound || is_late || !search::is_large(problem) {
        return;
    }
    let found = search::with_repaired_peaks(problem, layout, bound, limits, observer);
    debug!(target: "memplan::best", pool = found.pool_size, nodes = found.nodes, "repaired");
    if found.pool_size < *pool {
        *best = Some((found.pool_size, Layout { winner: Some(Strategy::Optimal), ..found.layout }));
    }
}

/// Returns whether a layout was repaired, or repairing could not improve it.
fn is_repaired(layout: &Layout) -> bool {
    matches!(layout.winner, Some(Strategy::Optimal | Strategy::Pushdown))
}

/// Returns whether a problem is small enough to be searched within these limits.
fn is_searched(problem: &Problem, limits: &Limits) -> bool {
    !limits.is_default() || limits.times > 1 || problem.roots().nth(MAX_SEARCHED).is_none()
}

/// Returns whether a candidate compares every pair of conflicting chains.
fn walks(strategy: Strategy) -> bool {
    use Strategy::{TfliteCpuArena, TfliteMicro, TfliteOffsetsBySize};
    matches!(strategy, TfliteOffsetsBySize | TfliteCpuArena | TfliteMicro)
}

/// Counts the pairs of chains that are alive in a common step.
pub(crate) fn conflicts(problem: &Problem) -> u64 {
    let boxes = || problem.roots().map(|root| problem.bounding_box(root));
    let mut begins: Vec<Step> = boxes().map(|outline| outline.begin).collect();
    let mut ends: Vec<Step> = boxes().map(|outline| outline.end).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let (mut pairs, mut ended) = (0, 0);
    for (begun, begin) in begins.into_iter().enumerate() {
        while ends[ended] <= begin {
            ended += 1;
        }
        // Fewer than 2^32 chains make fewer than 2^63 pairs.
        pairs += (begun - ended) as u64;
    }
    pairs
}
