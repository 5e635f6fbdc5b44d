//! The planners that have no plan before their end, by strategy.

use crate::{
    Problem, Strategy,
    planner::{
        Layout, best_fit,
        budget::{Budget, Stop},
        free_list, interval_move, nnvm, pushdown, tflite,
    },
};

/// Plans a problem within a budget. `None` for the strategies that [end early](Strategy::ends_early).
pub(super) fn layout(
    strategy: Strategy,
    problem: &Problem,
    budget: &mut Budget<'_>,
) -> Result<Option<Layout>, Stop> {
    let layout = match strategy {
        Strategy::Best | Strategy::Optimal | Strategy::FirstFit => return Ok(None),
        Strategy::Naive => return Ok(Some(tflite::naive::layout(problem))),
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
    };
    layout(problem, budget).map(Some)
}
