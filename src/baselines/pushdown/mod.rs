//! `MegEngine`'s default planner, *pushdown*, in two passes.
//!
//! **Idea.** Replay the run with an allocator whose memory is elastic. `simulate` keeps only the
//! *order* of blocks and lets a free block grow where it stands, so no block is ever too small. It
//! records which chunk came to lie directly below which other: the front space. `offsets` then lets
//! every chain sink until it rests on its front space.
//!
//! **Cost.** O(n log n) time and O(n) memory for n chunks; no recursion.
//!
//! **When.** It finds good plans in microseconds for graphs that run one operator after another,
//! and plans the parts of overwrite chains separately. Where many chunks of odd sizes are alive at
//! once, its pool can be up to half as large again as the lower bound.
//!
//! **Source.** `MegEngine`'s static memory allocator, `PUSHDOWN` (2020); the chapters Simulation
//! and Offsets of the book. The offsets equal the original's, ties included.

mod action;
mod events;
mod free_queue;
mod memory_queue;
mod offsets;
mod simulate;

use tracing::debug;

pub use action::Action;
pub use events::{Block, Event, Holder, Queues, events};

use crate::{
    Problem,
    baselines::chunk_order::ChunkOrder,
    budget::{Budget, Stop},
    plan::Layout,
};

/// Plans a problem: simulate, then resolve offsets.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let order = &ChunkOrder::new(problem);
    let front_space = simulate::simulate(order, budget)?;
    debug!(target: "memplan::simulate", chunks = problem.len(), front_space = front_space.len(), "simulated");
    let layout = offsets::resolve(order, &front_space, budget)?;
    debug!(target: "memplan::resolve", pool = layout.pool_size(problem), "offsets resolved");
    Ok(layout)
}
