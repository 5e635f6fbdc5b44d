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

use std::time::Instant;

use tracing::debug;

use crate::{
    Bytes, Problem, Strategy,
    monitor::Monitor,
    plan::Layout,
    search::{
        self, Fit, Limits, Observer, Progress, Solution, Stage,
        fewer_overwrites::with_fewer_overwrites, first_layout, sizes::SMALL,
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

/// The number of chains above which there is no search by default.
const MAX_SEARCHED: usize = 200_000;

/// Plans with every candidate until one meets the lower bound, then searches within the limits. The
/// time that the candidates take counts towards the limit.
#[must_use]
pub fn layout(problem: &Problem, limits: &Limits, observer: Observer<'_>) -> Layout {
    let solution = solution(problem, limits, observer);
    Layout { lower_bound: solution.lower_bound, ..solution.layout }
}

/// As [`layout`], with the size of its pool.
fn solution(problem: &Problem, limits: &Limits, observer: Observer<'_>) -> Solution {
    let start = Instant::now();
    let mut monitor = Monitor::new(limits, observer);
    let bound = problem.lower_bound();
    let (mut solution, slowest) =
        first_layout::cheapest(problem, CANDIDATES, bound, limits, &mut monitor);
    if solution.pool_size <= bound || monitor.must_stop() {
        return solution;
    }
    let looser = |pool, monitor: &Monitor<'_>| {
        // Planning the looser problem begins with a candidate, too.
        let is_short = monitor.time_left().is_some_and(|left| left <= slowest);
        let is_on = !is_short && monitor.has(Stage::FewerOverwrites);
        is_on.then(|| loosened(problem, (bound, pool), &limits.after(start), observer)).flatten()
    };
    if !is_small(problem) {
        let looser = looser(solution.pool_size, &monitor);
        if looser.is_some() || monitor.must_stop() {
            return looser.unwrap_or(solution);
        }
    }
    if !is_searched(problem, limits) {
        return solution;
    }
    let before = solution.pool_size;
    search::search(problem, &mut solution, bound, limits, &mut monitor);
    let pool = solution.pool_size;
    debug!(target: "memplan::best", strategy = %Strategy::Optimal, pool, nodes = solution.nodes, "tried");
    if is_small(problem)
        && pool > bound
        && !monitor.must_stop()
        && let Some(looser) = looser(pool, &monitor)
    {
        return looser;
    }
    if pool < before {
        solution.layout.winner = Some(Strategy::Optimal);
    }
    solution
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

/// Plans the problem with fewer overwrites; returns the solution if its pool is smaller than `pool` bytes. `bound` is a
/// lower bound in bytes for both problems.
fn loosened(
    problem: &Problem,
    (bound, pool): (Bytes, Bytes),
    limits: &Limits,
    observer: Observer<'_>,
) -> Option<Solution> {
    let start = Instant::now();
    let looser = with_fewer_overwrites(problem)?;
    // A bound that the search proves for the problem with fewer overwrites need not hold for this one.
    let report = |progress: &Progress| {
        if let Some(report) = observer.progress {
            report(&Progress { lower_bound: bound, best: progress.best.min(pool), ..*progress });
        }
    };
    let observer = Observer { progress: Some(&report), ..observer };
    let mut found = solution(&looser, &limits.after(start), observer);
    let given_up = problem.links_taken() - looser.links_taken();
    debug!(target: "memplan::best", given_up, pool = found.pool_size, "tried with fewer overwrites");
    (found.lower_bound, found.layout.winner) = (bound, Some(Strategy::Optimal));
    (found.pool_size < pool).then_some(found)
}

/// Returns whether a problem is first searched with all of its overwrites.
fn is_small(problem: &Problem) -> bool {
    problem.roots().nth(SMALL).is_none()
}

/// Returns whether a problem is small enough to be searched within these limits.
fn is_searched(problem: &Problem, limits: &Limits) -> bool {
    !limits.is_default() || limits.times > 1 || problem.roots().nth(MAX_SEARCHED).is_none()
}
