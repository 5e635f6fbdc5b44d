//! The memory queue: all blocks, in address order (the book, Simulation).
//!
//! While the simulation runs, blocks have no addresses, only neighbours: the queue is elastic. So
//! it is a doubly linked list inside a `slotmap`, whose keys stay valid while blocks around them
//! come and go.

use std::fmt;

use slotmap::{SlotMap, new_key_type};

use crate::{
    Bytes,
    baselines::{
        chunk_order::{ChunkOrder, Rank},
        pushdown::free_queue::FreeRank,
    },
};

new_key_type! {
    /// A block of the memory queue.
    pub(super) struct BlockKey;
}

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Used(Rank),
    /// Free, with its rank in the free queue.
    Free(FreeRank),
}

/// A run of bytes.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Never 0.
    pub(super) size: Bytes,
    pub(super) content: Content,
    /// The neighbour below; its `above` is this block.
    below: Option<BlockKey>,
    /// The neighbour above; its `below` is this block.
    above: Option<BlockKey>,
}

/// All blocks, linked in address order. No two free blocks are neighbours between operations of the
/// simulator.
#[derive(Default)]
pub(super) struct MemoryQueue {
    blocks: SlotMap<BlockKey, Block>,
    /// The block at the lowest address; `None` only while the queue is empty.
    bottom: Option<BlockKey>,
    /// The block at the highest address; `None` only while the queue is empty.
    top: Option<BlockKey>,
}

impl MemoryQueue {
    pub(super) fn get(&self, block: BlockKey) -> &Block {
        &self.blocks[block]
    }

    pub(super) fn get_mut(&mut self, block: BlockKey) -> &mut Block {
        &mut self.blocks[block]
    }

    pub(super) fn below(&self, block: BlockKey) -> Option<BlockKey> {
        self.blocks[block].below
    }

    pub(super) fn above(&self, block: BlockKey) -> Option<BlockKey> {
        self.blocks[block].above
    }

    /// Adds a block above all others.
    pub(super) fn push(&mut self, size: Bytes, content: Content) -> BlockKey {
        self.insert(size, content, self.top, None)
    }

    /// Adds a block directly below another.
    pub(super) fn insert_below(
        &mut self,
        above: BlockKey,
        size: Bytes,
        content: Content,
    ) -> BlockKey {
        self.insert(size, content, self.below(above), Some(above))
    }

    /// Adds a block directly above another.
    pub(super) fn insert_above(
        &mut self,
        below: BlockKey,
        size: Bytes,
        content: Content,
    ) -> BlockKey {
        self.insert(size, content, Some(below), self.above(below))
    }

    fn insert(
        &mut self,
        size: Bytes,
        content: Content,
        below: Option<BlockKey>,
        above: Option<BlockKey>,
    ) -> BlockKey {
        let block = self.blocks.insert(Block { size, content, below, above });
        self.join(below, Some(block));
        self.join(Some(block), above);
        block
    }

    /// Removes a block; its neighbours become neighbours of each other.
    pub(super) fn remove(&mut self, block: BlockKey) {
        if let Some(Block { below, above, .. }) = self.blocks.remove(block) {
            self.join(below, above);
        }
    }

    /// Makes two blocks neighbours; `None` below or above stands for the end of the queue.
    fn join(&mut self, below: Option<BlockKey>, above: Option<BlockKey>) {
        match below {
            Some(below) => self.blocks[below].above = above,
            None => self.bottom = above,
        }
        match above {
            Some(above) => self.blocks[above].below = below,
            None => self.top = below,
        }
    }

    /// The chunk in the nearest used block below or above. This takes at most two steps, since two
    /// free blocks are never neighbours.
    pub(super) fn nearest_used(
        &self,
        block: BlockKey,
        neighbour: impl Fn(&Self, BlockKey) -> Option<BlockKey>,
    ) -> Option<Rank> {
        let mut next = neighbour(self, block);
        while let Some(block) = next {
            match self.blocks[block].content {
                Content::Used(chunk) => return Some(chunk),
                Content::Free(_) => next = neighbour(self, block),
            }
        }
        None
    }

    /// Checks the invariants around one block: it has bytes, its links go both ways, and it is not
    /// a free block beside another.
    pub(super) fn is_sound_at(&self, block: BlockKey) -> bool {
        let free = |block: BlockKey| matches!(self.blocks[block].content, Content::Free(_));
        let Block { size, below, above, .. } = self.blocks[block];
        size > 0
            && below.map_or(self.bottom == Some(block), |b| self.blocks[b].above == Some(block))
            && above.map_or(self.top == Some(block), |a| self.blocks[a].below == Some(block))
            && ![below, above].into_iter().flatten().any(|other| free(block) && free(other))
    }

    /// Shows the blocks from the bottom up, for traces.
    pub(super) fn show<'a>(&'a self, order: &'a ChunkOrder<'a>) -> impl fmt::Display + 'a {
        Shown { queue: self, order }
    }
}

struct Shown<'a> {
    queue: &'a MemoryQueue,
    order: &'a ChunkOrder<'a>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        f.write_str("[")?;
        let mut next = self.queue.bottom;
        for index in 0..SHOWN {
            let Some(key) = next else { break };
            let block = &self.queue.blocks[key];
            let comma = if index == 0 { "" } else { ", " };
            match block.content {
                Content::Used(chunk) => {
                    let name = self.order.name(chunk);
                    // A name may contain anything, even terminal control sequences.
                    write!(f, "{comma}{} {}", name.escape_debug(), block.size)?;
                }
                Content::Free(_) => write!(f, "{comma}free {}", block.size)?,
            }
            next = block.above;
        }
        match self.queue.blocks.len().saturating_sub(SHOWN) {
            0 => f.write_str("]"),
            more => write!(f, ", and {more} more]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use rstest::rstest;

    use super::*;

    const FREE: Content = Content::Free(FreeRank { size: 2, stamp: Reverse(0), age: 0 });

    /// A used block, a free one, and a used one, from the bottom up.
    fn queue() -> (MemoryQueue, [BlockKey; 3]) {
        let mut queue = MemoryQueue::default();
        let middle = queue.push(2, FREE);
        let above = queue.insert_above(middle, 3, Content::Used(Rank(1)));
        let below = queue.insert_below(middle, 1, Content::Used(Rank(0)));
        (queue, [below, middle, above])
    }

    #[test]
    fn a_queue_is_sound_after_each_operation() {
        let (mut queue, [below, middle, above]) = queue();
        let sound = |queue: &MemoryQueue| queue.blocks.keys().all(|block| queue.is_sound_at(block));
        assert!(sound(&queue));
        assert_eq!((queue.above(below), queue.below(above)), (Some(middle), Some(middle)));
        queue.remove(middle);
        assert!(sound(&queue));
        assert_eq!((queue.above(below), queue.below(above)), (Some(above), Some(below)));
    }

    type Spoil = fn(&mut MemoryQueue, BlockKey, BlockKey, BlockKey);

    #[rstest]
    #[case::a_block_without_bytes(1, |q: &mut MemoryQueue, _, middle, _| q.blocks[middle].size = 0)]
    #[case::unknown_to_the_block_below(1, |q: &mut MemoryQueue, below, _, _| q.blocks[below].above = None)]
    #[case::unknown_to_the_block_above(1, |q: &mut MemoryQueue, _, _, above| q.blocks[above].below = None)]
    #[case::another_bottom(0, |q: &mut MemoryQueue, _, middle, _| q.bottom = Some(middle))]
    #[case::another_top(2, |q: &mut MemoryQueue, _, middle, _| q.top = Some(middle))]
    #[case::two_free_blocks_the_lower_one(1, |q: &mut MemoryQueue, below, _, _| q.blocks[below].content = FREE)]
    #[case::two_free_blocks_the_upper_one(1, |q: &mut MemoryQueue, _, _, above| q.blocks[above].content = FREE)]
    fn every_broken_invariant_is_detected(#[case] at: usize, #[case] spoil: Spoil) {
        let (mut queue, blocks @ [below, middle, above]) = queue();
        assert!(queue.is_sound_at(blocks[at]));
        spoil(&mut queue, below, middle, above);
        assert!(!queue.is_sound_at(blocks[at]));
    }
}
