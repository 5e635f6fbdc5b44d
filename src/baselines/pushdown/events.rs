//! The simulation as data: the change that each event makes to the memory queue, for pictures and
//! for readers who want to look inside.
//!
//! An event changes only one place in the memory queue, between two used blocks. So it holds these
//! two and the blocks between them afterwards, and walking over the events costs no more than the
//! simulation did.

use std::cmp::Reverse;

use crate::{
    Bytes, Problem, Step,
    baselines::{
        chunk_order::{ChunkOrder, Rank, RankLink},
        pushdown::{
            action::Action,
            memory_queue::{BlockKey, Content, MemoryQueue},
            simulate::Simulator,
        },
        replay::{Allocator, replay},
    },
    budget::Budget,
    problem::ChunkId,
};

/// The holder of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A chunk.
    Chunk(ChunkId),
    /// No chunk: the block is in the free queue.
    Free {
        /// The end of the chunk that gave the block up or was placed beside it.
        stamp: Step,
        /// The number of insertions into the free queue before its own.
        age: u64,
    },
}

/// A block of the memory queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// Its size in bytes, padding included.
    pub size: Bytes,
    /// The chunk that holds it, or its place in the free queue.
    pub holder: Holder,
}

/// One event of the simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The step in which it happens.
    pub step: Step,
    /// Its effect.
    pub action: Action,
    /// The chunk that is freed or placed.
    pub chunk: ChunkId,
    /// The nearest used block below; `None` for the floor. An alloc puts it into the chunk's front
    /// space.
    pub below: Option<ChunkId>,
    /// The nearest used block above; `None` for the end of the queue. An alloc puts the chunk into
    /// its front space.
    pub above: Option<ChunkId>,
    /// The blocks between these two after the event, from the bottom up; at most three.
    pub blocks: Vec<Block>,
}

/// Runs the simulation and returns its events in order.
#[must_use]
pub fn events(problem: &Problem) -> Vec<Event> {
    let order = ChunkOrder::new(problem);
    let simulator = Simulator::new(&order);
    let mut recorder = Recorder { order: &order, simulator, events: Vec::new() };
    Budget::unlimited(|budget| {
        replay(&order, &mut recorder, budget)?;
        Ok(recorder.events)
    })
}

/// Both queues at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queues {
    /// The memory queue, from the bottom up.
    pub memory: Vec<Block>,
}

impl Queues {
    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) {
        let find = |chunk: ChunkId| {
            self.memory.iter().position(|block| block.holder == Holder::Chunk(chunk))
        };
        let first = event.below.and_then(find).map_or(0, |below| below + 1);
        let end = event.above.and_then(find).unwrap_or(self.memory.len()).max(first);
        self.memory.splice(first..end, event.blocks.iter().copied());
    }

    /// The free queue, in the order in which an alloc tries its blocks.
    #[must_use]
    pub fn free(&self) -> Vec<Block> {
        let rank = |block: &Block| match block.holder {
            Holder::Free { stamp, age } => Some((block.size, Reverse(stamp), age)),
            Holder::Chunk(_) => None,
        };
        let mut free: Vec<Block> =
            self.memory.iter().copied().filter(|block| rank(block).is_some()).collect();
        free.sort_by_key(rank);
        free
    }
}

/// Runs the simulator and records the blocks around each change.
struct Recorder<'a> {
    order: &'a ChunkOrder<'a>,
    simulator: Simulator<'a>,
    events: Vec<Event>,
}

impl Recorder<'_> {
    fn record(&mut self, action: Action, chunk: Rank, block: BlockKey) {
        let queue = &self.simulator.memory;
        let used = |side: fn(&MemoryQueue, BlockKey) -> Option<BlockKey>| {
            queue.nearest_used(block, side).map(|rank| self.order.id(rank))
        };
        let free = |side: Option<BlockKey>| {
            side.filter(|&side| matches!(queue.get(side).content, Content::Free(_)))
        };
        let around = [free(queue.below(block)), Some(block), free(queue.above(block))];
        let shown = |key: BlockKey| {
            let block = queue.get(key);
            let holder = match block.content {
                Content::Used(rank) => Holder::Chunk(self.order.id(rank)),
                Content::Free(rank) => Holder::Free { stamp: rank.stamp.0, age: rank.age },
            };
            Block { size: block.size, holder }
        };
        self.events.push(Event {
            step: self.simulator.step,
            action,
            chunk: self.order.id(chunk),
            below: used(MemoryQueue::below),
            above: used(MemoryQueue::above),
            blocks: around.into_iter().flatten().map(shown).collect(),
        });
    }
}

impl Allocator for Recorder<'_> {
    fn enter(&mut self, step: Step) {
        self.simulator.enter(step);
    }

    fn free(&mut self, chunk: Rank) {
        let block = self.simulator.block(chunk);
        self.simulator.free(chunk);
        if let Some(block) = block {
            self.record(Action::Free, chunk, block);
        }
    }

    fn alloc(&mut self, chunk: Rank) {
        if let Some((block, action)) = self.simulator.place(chunk) {
            self.record(action, chunk, block);
        }
    }

    fn alloc_overwrite(&mut self, chunk: Rank, link: RankLink) {
        self.simulator.alloc_overwrite(chunk, link);
        if let Some(block) = self.simulator.block(chunk) {
            self.record(Action::Overwrite, chunk, block);
        }
    }
}
