//! **memplan** plans the memory of a deep-learning graph before it runs: one pool, and a fixed
//! offset in it for every tensor.
//!
//! A framework supplies its operators as an [`OpSequence`] or, if it already knows the lifetimes of
//! its buffers, as a [`Problem`]; a [`Planner`] returns a [`Plan`]. [`verify`](mod@verify) checks
//! the plan without trusting any planner.
//!
//! ```text
//! OpSequence --lower--> Problem --planner--> Plan --> verify, report
//! ```
//!
//! ```
//! use memplan::{OpSequence, Operator, Output, Planner};
//!
//! let sequence = OpSequence::builder()
//!     .input("image", 602_112)
//!     .operator(Operator::new("conv").inputs(["image"]).output(Output::new("a", 1_605_632)))
//!     .operator(Operator::new("relu").inputs(["a"]).output(Output::new("b", 1_605_632).overwrites("a")))
//!     .operator(Operator::new("gemm").inputs(["b"]).output(Output::new("y", 4_000)))
//!     .output("y")
//!     .build()?;
//! let plan = Planner::new().alignment(64).plan(&sequence)?;
//! assert_eq!((plan.pool_size(), plan.offset("b")), (1_609_664, plan.offset("a")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Features.** None is on by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `serde` | `Serialize` and `Deserialize`, in the file formats, for sequences, problems and plans |
//! | `files` | readers and writers for memplan's JSON and MiniMalloc's CSV, reports in JSON and HTML; includes `serde` |
//! | `onnx` | the reader for ONNX models, and the writer of their nodes in another order |
//! | `tflite` | the reader for TensorFlow Lite models, and the writer of plans into them |
//!
//! **Costs.** [`Strategy::Pushdown`] takes O(n log n) time and O(n) memory for n chunks: about
//! 10 µs for a network of a hundred chunks, a second for a million. [`Strategy::Best`], the default,
//! adds a search where no fast planner meets the lower bound; its effort is counted in nodes
//! ([`Limits`]), so that the same input gives the same plan everywhere.
//!
//! **Limits.** Operators run one after another. Sizes and shapes are known before planning. At most
//! 2^32 - 1 chunks, whose sizes plus one alignment have a sum below 2^64 bytes.

pub mod baselines;
mod bodies;
mod bound;
mod boxes;
mod budget;
mod covered;
mod effort;
pub mod export;
#[cfg(feature = "serde")]
mod file;
mod flow;
#[cfg(any(feature = "files", feature = "onnx", feature = "tflite"))]
pub mod import;
mod input;
mod limits;
mod lists;
pub mod lower;
mod monitor;
pub mod networks;
pub mod order;
pub mod plan;
pub mod planner;
mod printable;
pub mod problem;
pub mod recompute;
pub mod report;
#[doc(hidden)]
pub mod search;
#[cfg(test)]
#[path = "../tests/common/seeds.rs"]
mod seeds;
mod segment_tree;
pub mod sequence;
mod sets;
mod steps;
mod strategy;
#[cfg(test)]
#[path = "../tests/common/tilings.rs"]
mod tilings;
pub mod verify;

#[cfg(test)]
extern crate self as memplan;

pub use input::{Input, InputRef};
pub(crate) use limits::Observer;
pub use limits::{Limits, Progress};
pub use plan::{
    error::PlanError,
    placement::Placement,
    planned::{Plan, PlannedBody, PlannedChunk, PlannedLink, PlannedTensor, TensorPlace},
    step_memory::{InputMemory, OutputMemory, StepMemory},
};
pub use planner::Planner;
pub use problem::{Problem, error::ProblemError};
pub use sequence::{
    OpSequence,
    declare::{Operator, Output},
    error::SequenceError,
};
pub use strategy::Strategy;

/// A number of bytes: a size, an offset, an alignment.
pub type Bytes = u64;

/// A step: the index of an operator in its sequence, from 0. Lifetimes are half-open ranges of
/// steps.
pub type Step = u64;

/// The README and the book chapters that contain code; `cargo test` compiles and runs it.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../book/src/framework.md")]
    struct Framework;
}
