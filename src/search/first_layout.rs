//! The first layout, from which a search starts: pushdown, or size classes if there is no time for it, or the free list
//! if that is better.

use std::time::Duration;

use crate::{
    Problem, Strategy,
    baselines::{free_list, pushdown},
    budget::Budget,
    monitor::Monitor,
    plan::Layout,
    search::{size_classes, solution::Solution},
};

/// The time that planning in size classes takes for each chunk.
const TIME: Duration = Duration::from_nanos(100);

/// Pushdown takes at least this long for each chunk of many.
const MIN_TIME: Duration = Duration::from_nanos(250);

/// Up to this many chunks are always planned with pushdown.
const MAX_CHUNKS: u32 = 1024;

/// The better layout of pushdown and the free list; on some large graphs no greedy packing beats
/// it.
pub(super) fn solution(problem: &Problem, monitor: &mut Monitor<'_>) -> Solution {
    let layout = layout_within(problem, monitor);
    let mut solution = Solution::of(problem, Layout { winner: None, ..layout });
    let Solution { lower_bound, pool_size, .. } = solution;
    if pool_size > lower_bound
        && let Ok(layout) = free_list::quick_layout(problem, monitor.budget())
    {
        solution.improve(problem, layout);
    }
    solution
}

/// Plans a problem with pushdown, or in size classes if there is no time for pushdown and there are many chunks.
pub(super) fn layout_within(problem: &Problem, monitor: &Monitor<'_>) -> Layout {
    let chunks = u32::try_from(problem.len()).unwrap_or(u32::MAX);
    let monitor = monitor.keeping(chunks * TIME);
    let is_short = || monitor.left().is_some_and(|left| left < chunks * MIN_TIME);
    if chunks > MAX_CHUNKS && is_short() {
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
    use crate::{Limits, Observer, Plan, verify::verify};

    /// Pushdown is not begun where it cannot end in time, unless chunks are so few that it ends at once.
    #[test]
    fn many_chunks_for_which_there_is_no_time_are_planned_in_size_classes() {
        for (chunks, time, is_pushdown) in [
            (MAX_CHUNKS, Some(Duration::ZERO), true),
            (400_000, Some(Duration::ZERO), false),
            (400_000, None, true),
        ] {
            let mut problem = Problem::builder();
            for step in 0..u64::from(chunks) {
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
            let plan = Plan::from_offsets(&problem, &layout.offsets).unwrap();
            assert_eq!(verify(&problem, &plan), []);
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
