//! The planners and the search.

#[path = "../common/chains.rs"]
mod chains;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/hard.rs"]
mod hard;
#[path = "../common/no_op.rs"]
mod no_op_variants;
#[path = "../common/tilings.rs"]
mod tilings;

mod are_right;
mod constraints;
mod every_place;
mod every_plan_is_right;
mod fewer_overwrites;
mod free_list;
mod megengine;
mod nnvm;
mod nnvm_recorded;
mod no_op;
mod onnxruntime;
mod optimal_effort;
mod optimal_limits;
mod optimal_oracle;
mod optimal_tilings;
mod overlap;
mod pinned_tilings;
mod planner;
mod same_plan;
mod simulation_events;
mod spec_examples;
mod stopped;
mod tflite;
mod tflite_recorded;
