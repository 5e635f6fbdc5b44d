//! The planners of TFLite: seven strategies of the GPU delegate, the arena of the CPU, TFLite
//! Micro.
//!
//! **Idea.** Tensors are [`Record`]s, boxes of steps and sizes. The GPU strategies answer with
//! shared [`Objects`], buffers or textures that tensors of different steps take in turn, and one
//! of them with [`Offsets`]; the arena and Micro answer with offsets.
//!
//! **When.** Shared objects suit devices where a tensor must be a buffer or a texture of its own.
//! In one pool, offsets need less. Overwrite chains count as one box.
//!
//! **Source.** Yury Pisarchyk, Juhyun Lee, *Efficient Memory Management for Deep Neural Net
//! Inference*, 2020; TensorFlow Lite, `delegates/gpu/common/memory_management` (2019 to 2024),
//! `simple_memory_arena`, and `micro/memory_planner`. Ids, sizes and offsets equal the originals',
//! ties included; where an original goes wrong without a word (records that are not sorted by first
//! use, costs beyond 32 bits, offline offsets that clash), these plan rightly or refuse.

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
mod ranges;
mod reallocation;
mod timeline;

pub use profiles::{offsets_bound, positional_maxima, shared_objects_bound, task_profile};
pub use reallocation::ReallocationGraph;

pub use crate::planner::{
    objects::{Objects, Offsets},
    records::{Record, RecordError, Records, Size},
};
