//! Baselines: the planners of frameworks, each as its original.
//!
//! They do not search, and have no plan before their end. [`Strategy`] runs them on a [`Problem`]; the modules are
//! public for readers who study or compare the originals.

pub mod best_fit;
pub(crate) mod boxes;
mod chunk_order;
pub mod free_list;
pub mod interval_move;
pub mod nnvm;
mod objects;
pub mod onnxruntime;
pub mod pushdown;
mod records;
mod replay;
pub mod tflite;

pub use objects::{Objects, Offsets};
pub use records::{Record, RecordError, RecordSize, Records};

use crate::{
    Problem, Strategy,
    budget::{Budget, Stop},
    plan::Layout,
};

/// Plans a problem within a budget. `None` for the strategies that [end early](Strategy::is_anytime).
pub(crate) fn layout(
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
