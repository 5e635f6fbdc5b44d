//! **memplan** plans the memory of a deep-learning graph before it runs: one pool, and a fixed
//! offset in it for every tensor.
//!
//! A framework hands over its operators as an [`OpSequence`], or, if it knows the lifetimes of its
//! buffers already, a [`Problem`]; a [`Planner`] answers with a [`Plan`]. [`verify`](mod@verify) says whether a
//! plan is right, without trusting any planner.
//!
//! ```text
//! OpSequence --lower--> Problem --planner--> Layout --> Plan --> verify, report
//! ```

#[cfg(feature = "serde")]
mod file;
#[cfg(any(feature = "files", feature = "onnx"))]
pub mod import;
mod input;
pub mod lower;
pub mod networks;
pub mod order;
pub mod plan;
pub mod planner;
pub mod problem;
pub mod report;
pub mod sequence;
pub mod verify;

pub use input::{Input, InputRef};
pub use plan::{
    InputMemory, Location, OutputMemory, Placement, PlacementError, Plan, PlannedChunk,
    PlannedTensor, StepMemory, TensorPlace,
};
pub use planner::{Layout, PlanError, Planner, Strategy};
pub use problem::{Problem, ProblemError};
pub use sequence::{OpSequence, Operator, Output, SequenceError};

/// A number of bytes: a size, an offset, an alignment.
pub type Bytes = u64;

/// A step: the index of an operator in its sequence, from 0. Lifetimes are half-open ranges of
/// steps.
pub type Step = u64;

/// The README and the chapters of the book that hold code; `cargo test` compiles and runs it.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../book/src/framework.md")]
    struct Framework;
}
