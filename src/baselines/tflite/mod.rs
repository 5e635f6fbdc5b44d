//! The planners of TFLite: seven strategies of the GPU delegate, the CPU arena and TFLite Micro.
//!
//! **Idea.** Tensors are [`Record`]s, boxes of steps and sizes. The GPU strategies return shared
//! [`Objects`], buffers or textures that tensors use in turn, except for one that returns
//! [`Offsets`]; the arena and Micro return offsets.
//!
//! **When.** Shared objects suit devices where a tensor must be a whole buffer or texture. Offsets
//! in one pool need less memory. An overwrite chain counts as one box.
//!
//! **Source.** Yury Pisarchyk, Juhyun Lee, *Efficient Memory Management for Deep Neural Net
//! Inference*, 2020; TensorFlow Lite, `delegates/gpu/common/memory_management` (2019 to 2024),
//! `simple_memory_arena`, and `micro/memory_planner`. Ids, sizes and offsets equal the originals',
//! ties included. Where an original silently goes wrong (records not sorted by first use, costs
//! beyond 32 bits, conflicting offline offsets), these planners either plan correctly or return an
//! error.

pub mod cpu_arena;
pub mod equality;
pub mod greedy_by_breadth;
pub mod greedy_by_size;
pub mod greedy_in_order;
pub mod micro;
pub mod min_cost_flow;
pub mod naive;
pub mod offsets_by_size;
mod placed;
mod profiles;
mod reallocation;
mod timeline;

pub use profiles::{offsets_bound, positional_maxima, shared_objects_bound, task_profile};
pub use reallocation::ReallocationGraph;

pub use crate::baselines::{
    objects::{Objects, Offsets},
    records::{Record, RecordError, RecordSize, Records},
};
