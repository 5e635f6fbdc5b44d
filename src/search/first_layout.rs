//! The first layout, from which a search starts: the smallest pool of some fast planners. The first one is pushdown, or
//! size classes if there is no time for it.

use std::{
    cell::LazyCell,
    time::{Duration, Instant},
};

use tracing::debug;

use crate::{
    Bytes, Limits, Problem, Step, Strategy,
    baselines::{self, free_list, pushdown},
    budget::Budget,
    monitor::Monitor,
    plan::Layout,
    search::{
        Stage,
        repair_peaks::repair_if_large,
        size_classes,
        sizes::{LONG, TIME_PER_CHUNK, WORK_PER_NODE},
        solution::Solution,
    },
};

/// The number of conflicting pairs above which candidates that compare pairs are skipped. A chain
/// counts as [`WORK_PER_NODE`].
const MAX_CONFLICTS: u64 = 2_000_000;

/// The candidates of a search that is not `best`: on some large graphs, no greedy packing beats the free list.
pub(super) const FEW: &[Strategy] = &[Strategy::Pushdown, Strategy::FreeList];

/// The smallest layout of some candidates, of which the first is pushdown, and the time that the slowest of them took.
/// Peaks of large problems are repaired. It ends as soon as a pool has at most `enough` bytes.
pub(super) fn cheapest(
    problem: &Problem,
    candidates: &[Strategy],
    enough: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> (Solution, Duration) {
    let mut start = Instant::now();
    let mut solution = Solution::of(problem, layout_within(problem, monitor));
    let mut slowest = start.elapsed();
    let bound = solution.lower_bound;
    debug!(target: "memplan::best", strategy = %Strategy::Pushdown, pool = solution.pool_size, bound, "tried");
    monitor.stop(0, bound, solution.pool_size);
    repair(problem, &mut solution, enough, limits, monitor);
    let is_dense = LazyCell::new(|| is_dense(problem));
    let others = if monitor.has(Stage::Candidates) { candidates } else { &[] };
    for &strategy in others.iter().filter(|&&other| other != Strategy::Pushdown) {
        let is_short = monitor.time_left().is_some_and(|left| left <= slowest);
        if solution.pool_size <= enough || is_short || monitor.must_stop() {
            break;
        }
        if walks(strategy) && *is_dense {
            continue;
        }
        start = Instant::now();
        let layout = match strategy {
            Strategy::FreeList => free_list::quick_layout(problem, monitor.budget()).ok(),
            _ => baselines::layout(strategy, problem, &mut monitor.budget()).ok().flatten(),
        };
        slowest = slowest.max(start.elapsed());
        if let Some(layout) = layout {
            let pool = solution.improve(problem, Layout { winner: Some(strategy), ..layout });
            debug!(target: "memplan::best", %strategy, pool, bound, "tried");
            monitor.stop(0, bound, solution.pool_size);
        }
    }
    // A packing by another planner has other crowded steps.
    if !matches!(solution.layout.winner, Some(Strategy::Optimal | Strategy::Pushdown)) {
        repair(problem, &mut solution, enough, limits, monitor);
    }
    (solution, slowest)
}

/// Repairs the peaks of a layout of a large problem, if its pool is larger than `enough`.
fn repair(
    problem: &Problem,
    solution: &mut Solution,
    enough: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) {
    let before = solution.pool_size;
    if before > enough {
        repair_if_large(problem, solution, limits, monitor);
    }
    if solution.pool_size < before {
        solution.layout.winner = Some(Strategy::Optimal);
        debug!(target: "memplan::best", pool = solution.pool_size, nodes = solution.nodes, "repaired");
    }
}

/// Returns whether a candidate compares every pair of conflicting chains.
fn walks(strategy: Strategy) -> bool {
    use Strategy::{TfliteCpuArena, TfliteMicro, TfliteOffsetsBySize};
    matches!(strategy, TfliteOffsetsBySize | TfliteCpuArena | TfliteMicro)
}

/// Returns whether too many pairs of chains conflict for candidates that compare pairs.
fn is_dense(problem: &Problem) -> bool {
    // Counting the pairs takes a while, so they are not counted where the chains alone are too many.
    let chains = WORK_PER_NODE as u64 * problem.roots().count() as u64;
    chains > MAX_CONFLICTS || chains + conflicts(problem) > MAX_CONFLICTS
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

/// Plans a problem with pushdown, or in size classes if there is no time for pushdown and there are many chunks.
fn layout_within(problem: &Problem, monitor: &Monitor<'_>) -> Layout {
    let chunks = u32::try_from(problem.len()).unwrap_or(u32::MAX);
    // Size classes take less than this, and pushdown takes no less.
    let time = chunks * TIME_PER_CHUNK;
    let monitor = monitor.keeping(time);
    let is_short = || monitor.left().is_some_and(|left| left < time);
    if problem.len() > LONG && is_short() {
        return size_classes::layout(problem);
    }
    layout_for(problem, monitor.first_budget())
}

/// Plans a problem with pushdown, or in size classes if the budget does not suffice.
fn layout_for(problem: &Problem, mut budget: Budget<'_>) -> Layout {
    match pushdown::layout(problem, &mut budget) {
        Ok(layout) => Layout { winner: Some(Strategy::Pushdown), ..layout },
        Err(_) => size_classes::layout(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Observer, search::samples::right_plan};

    /// Pushdown is not begun where it cannot end in time, unless chunks are so few that it ends at once.
    #[test]
    fn many_chunks_for_which_there_is_no_time_are_planned_in_size_classes() {
        for (chunks, time, is_pushdown) in [
            (LONG as u64, Some(Duration::ZERO), true),
            (400_000, Some(Duration::ZERO), false),
            (400_000, None, true),
        ] {
            let mut problem = Problem::builder();
            for step in 0..chunks {
                problem.chunk(step..step + 2, 1 + step % 1000);
            }
            let problem = problem.build().unwrap();
            let limits = Limits { time, ..Limits::default() };
            let layout = layout_within(&problem, &Monitor::new(&limits, Observer::default()));
            assert_eq!(
                layout.winner == Some(Strategy::Pushdown),
                is_pushdown,
                "{chunks}, {time:?}"
            );
        }
    }

    /// Wherever pushdown is stopped, there is a right plan.
    #[test]
    fn a_first_plan_comes_out_whenever_it_is_stopped() {
        let mut problem = Problem::builder().alignment(16);
        for step in 0..4000 {
            let end = step + 2 + step % 5;
            let size = 10 + step * 7919 % 4096;
            let chunk = problem.chunk(step..end, size);
            if step % 3 == 0 {
                let overwriter = problem.chunk(end - 1..end + 4, size - 5);
                problem.overwrite(overwriter, chunk, 5);
            }
        }
        let problem = problem.build().unwrap();
        let unlimited = || Budget::until(None, None);
        let mut stops = 0;
        for work in (0..).step_by(10_000) {
            let layout = layout_for(&problem, unlimited().at_most(work));
            right_plan(&problem, &layout);
            let Ok(whole) = pushdown::layout(&problem, &mut unlimited().at_most(work)) else {
                assert_eq!(layout, size_classes::layout(&problem));
                stops += 1;
                continue;
            };
            let winner = Some(Strategy::Pushdown);
            assert_eq!(layout, Layout { winner, ..whole.clone() });
            assert_eq!(Ok(whole), pushdown::layout(&problem, &mut unlimited()));
            break;
        }
        assert!(stops > 9, "both passes spend: {stops}");
    }
}
