//! The planners that do not search, by strategy.

use crate::{
    Problem, Strategy,
    planner::{
        Layout, best_fit, first_fit, free_list, interval_move, nnvm, pushdown, size_classes, tflite,
    },
};

/// Plans a problem with pushdown, or in size classes if `stop` returns true before that ends.
pub(super) fn first_layout(problem: &Problem, stop: &mut dyn FnMut() -> bool) -> Layout {
    match pushdown::layout_until(problem, stop) {
        Some(layout) => Layout { winner: Some(Strategy::Pushdown), ..layout },
        None => size_classes::layout(problem),
    }
}

/// Plans a problem. `None` for the strategies that search.
pub(super) fn layout(strategy: Strategy, problem: &Problem) -> Option<Layout> {
    let layout = match strategy {
        Strategy::Best | Strategy::Optimal => return None,
        // In one pool without a capacity, every chunk finds a place.
        Strategy::FirstFit => return Some(first_fit::layout(problem).unwrap_or_default()),
        Strategy::Pushdown => pushdown::layout,
        Strategy::BestFit => best_fit::layout,
        Strategy::IntervalMove => interval_move::layout,
        Strategy::FreeList => free_list::layout,
        Strategy::Nnvm => nnvm::layout,
        Strategy::TfliteEquality => tflite::equality::layout,
        Strategy::TfliteGreedyInOrder => tflite::greedy_in_order::layout,
        Strategy::TfliteGreedyByBreadth => tflite::greedy_by_breadth::layout,
        Strategy::TfliteGreedyBySize => tflite::greedy_by_size::layout,
        Strategy::TfliteGreedyBest => tflite::greedy_by_size::best_layout,
        Strategy::TfliteMinCostFlow => tflite::min_cost_flow::layout,
        Strategy::TfliteOffsetsBySize => tflite::offsets_by_size::layout,
        Strategy::TfliteCpuArena => tflite::cpu_arena::layout,
        Strategy::TfliteMicro => tflite::micro::layout,
        Strategy::Naive => tflite::naive::layout,
    };
    Some(layout(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, verify::verify};

    /// Wherever pushdown and best fit are stopped, there is a right plan.
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
        let mut stops = 0;
        for last in 1.. {
            let mut asked = 0;
            let layout = first_layout(&problem, &mut || {
                asked += 1;
                asked == last
            });
            let plan = Plan::from_offsets(&problem, &layout.offsets).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            if asked < last {
                let winner = Some(Strategy::Pushdown);
                assert_eq!(layout, Layout { winner, ..pushdown::layout(&problem) });
                break;
            }
            assert_eq!(layout, size_classes::layout(&problem));
            stops += 1;
        }
        assert!(stops > 4, "both passes ask: {stops}");
        let mut stop = || true;
        assert_eq!(best_fit::layout_until(&problem, &mut stop), None);
        let whole = best_fit::layout_until(&problem, &mut || false);
        assert_eq!(whole, Some(best_fit::layout(&problem)));
    }
}
