//! The planners that always run to their end, by strategy.

use crate::{
    Problem, Strategy,
    planner::{Layout, best_fit, free_list, interval_move, nnvm, pushdown, tflite},
};

/// Plans a problem. `None` for the strategies that [end early](Strategy::ends_early).
pub(super) fn layout(strategy: Strategy, problem: &Problem) -> Option<Layout> {
    let layout = match strategy {
        Strategy::Best | Strategy::Optimal | Strategy::FirstFit => return None,
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
