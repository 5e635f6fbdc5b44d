//! The simulation (the book, Simulation): free, alloc and alloc-overwrite on the memory queue and
//! the free queue. It returns the front space: the pairs of chunks that came to lie directly on
//! each other.

use tracing::trace;

use crate::{
    Bytes, Step,
    baselines::{
        chunk_order::{ChunkOrder, Rank, RankLink},
        pushdown::{
            action::Action,
            free_queue::FreeQueue,
            memory_queue::{BlockKey, Content, MemoryQueue},
        },
        replay::{Allocator, replay},
    },
    budget::{Budget, Stop},
};

/// One chunk lies directly below another at some step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Above {
    pub(super) upper: Rank,
    pub(super) lower: Rank,
}

/// Replays the run and returns the front space, at most two entries per chunk.
pub(super) fn simulate(
    order: &ChunkOrder<'_>,
    budget: &mut Budget<'_>,
) -> Result<Vec<Above>, Stop> {
    let mut simulator = Simulator::new(order);
    replay(order, &mut simulator, budget)?;
    Ok(simulator.front_space)
}

/// The state of the simulation.
pub(super) struct Simulator<'a> {
    order: &'a ChunkOrder<'a>,
    pub(super) step: Step,
    pub(super) memory: MemoryQueue,
    free: FreeQueue<BlockKey>,
    /// The block of each chunk that is alive and not yet overwritten.
    blocks: Vec<Option<BlockKey>>,
    front_space: Vec<Above>,
    /// The merges of the current event: the bytes merged so far, and those of the free neighbour.
    merges: Vec<(Bytes, Bytes)>,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(order: &'a ChunkOrder<'a>) -> Self {
        Self {
            order,
            step: 0,
            memory: MemoryQueue::default(),
            free: FreeQueue::default(),
            blocks: vec![None; order.len()],
            front_space: Vec::new(),
            merges: Vec::new(),
        }
    }

    /// The block of a chunk that is alive and not yet overwritten.
    pub(super) fn block(&self, chunk: Rank) -> Option<BlockKey> {
        self.blocks[chunk.index()]
    }

    /// Finds a block for a root chunk and returns it with the action that found it.
    pub(super) fn place(&mut self, chunk: Rank) -> Option<(BlockKey, Action)> {
        let size = self.order.get(chunk).size;
        let content = Content::Used(chunk);
        let (block, action) = if self.free.len() == 0 {
            (self.memory.push(size, content), Action::Append)
        } else if let Some(block) = self.free.take_at_least(size) {
            let rest = self.memory.get(block).size - size;
            let stored = self.memory.get_mut(block);
            (stored.size, stored.content) = (size, content);
            if rest > 0 {
                let rest_block = self.memory.insert_above(block, rest, content);
                self.release(rest_block, self.order.get(chunk).end);
            }
            (block, if rest > 0 { Action::Split } else { Action::Fit })
        } else {
            // The queue is not empty, so it has a last block.
            let block = self.free.take_last()?;
            let stored = self.memory.get_mut(block);
            (stored.size, stored.content) = (size, content);
            (block, Action::Grow)
        };
        self.settle(chunk, block);
        self.trace(action, chunk);
        Some((block, action))
    }

    /// Frees a block and merges it with free neighbours; the result takes the stamp.
    fn release(&mut self, block: BlockKey, stamp: Step) {
        let mut size = self.memory.get(block).size;
        for neighbour in [self.memory.below(block), self.memory.above(block)].into_iter().flatten()
        {
            if let Content::Free(rank) = self.memory.get(neighbour).content {
                self.merges.push((size, rank.size));
                self.free.remove(rank);
                self.memory.remove(neighbour);
                size += rank.size;
            }
        }
        let rank = self.free.insert(size, stamp, block);
        let stored = self.memory.get_mut(block);
        (stored.size, stored.content) = (size, Content::Free(rank));
        debug_assert!(self.memory.is_sound_at(block), "unsound around a released block");
    }

    /// Records the block of a chunk and the front space on both sides.
    fn settle(&mut self, chunk: Rank, block: BlockKey) {
        self.blocks[chunk.index()] = Some(block);
        if let Some(lower) = self.memory.nearest_used(block, MemoryQueue::below) {
            self.front_space.push(Above { upper: chunk, lower });
        }
        if let Some(upper) = self.memory.nearest_used(block, MemoryQueue::above) {
            self.front_space.push(Above { upper, lower: chunk });
        }
        debug_assert!(self.memory.is_sound_at(block), "unsound around a used block");
    }

    /// Logs the merges of an event and then the event itself, each with both queues as they are
    /// after the event.
    #[inline]
    fn trace(&mut self, action: Action, chunk: Rank) {
        for &(size, with) in &self.merges {
            trace!(
                target: "memplan::simulate",
                step = self.step,
                chunk = self.order.name(chunk),
                size,
                with,
                memory = %self.memory.show(self.order),
                free = %self.free,
                "merge",
            );
        }
        self.merges.clear();
        trace!(
            target: "memplan::simulate",
            step = self.step,
            chunk = self.order.name(chunk),
            size = self.order.get(chunk).size,
            memory = %self.memory.show(self.order),
            free = %self.free,
            "{}",
            action.name(),
        );
    }
}

impl Allocator for Simulator<'_> {
    fn enter(&mut self, step: Step) {
        self.step = step;
    }

    /// Frees the block of a chunk.
    fn free(&mut self, chunk: Rank) {
        if let Some(block) = self.blocks[chunk.index()].take() {
            // A chunk is freed in the step that is its end.
            self.release(block, self.step);
            self.trace(Action::Free, chunk);
        }
    }

    fn alloc(&mut self, chunk: Rank) {
        self.place(chunk);
    }

    /// Puts an overwriter into its place in the block of the overwritten chunk; head and tail
    /// become free.
    fn alloc_overwrite(&mut self, chunk: Rank, link: RankLink) {
        let Some(block) = self.blocks[link.overwritten.index()].take() else {
            return;
        };
        let size = self.order.get(chunk).size;
        let (head, tail) = (link.offset, self.memory.get(block).size - link.offset - size);
        let content = Content::Used(chunk);
        let stored = self.memory.get_mut(block);
        (stored.size, stored.content) = (size, content);
        let stamp = self.order.get(link.overwritten).end;
        if head > 0 {
            let head = self.memory.insert_below(block, head, content);
            self.release(head, stamp);
        }
        if tail > 0 {
            let tail = self.memory.insert_above(block, tail, content);
            self.release(tail, stamp);
        }
        self.settle(chunk, block);
        self.trace(Action::Overwrite, chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;

    #[test]
    fn traces_show_the_memory_from_the_bottom_up_and_free_blocks_by_size() {
        let mut problem = Problem::builder();
        for (name, size) in [("a", 6), ("b", 2), ("c", 4), ("d\n", 1)] {
            problem.named_chunk(name, 0..1, size);
        }
        let problem = problem.build().unwrap();
        let order = ChunkOrder::new(&problem);
        let mut simulator = Simulator::new(&order);
        let [a, b, c, d] = [0, 1, 2, 3].map(Rank);
        let shown = |simulator: &Simulator<'_>| {
            (simulator.memory.show(&order).to_string(), simulator.free.to_string())
        };
        assert_eq!(shown(&simulator), ("[]".to_owned(), "[]".to_owned()));
        for chunk in [a, b, c, d] {
            simulator.alloc(chunk);
        }
        for chunk in [a, c] {
            simulator.free(chunk);
        }
        let memory = "[free 6, b 2, free 4, d\\n 1]".to_owned();
        assert_eq!(shown(&simulator), (memory, "[4, 6]".to_owned()));
    }
}
