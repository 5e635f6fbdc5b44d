//! The free queue: the free blocks by size, smallest first (the book, Simulation).
//!
//! This is a thin wrapper around `btree-slab`'s map. It uses only insert, remove, first, last and
//! the address functions: `range`, `retain` and `drain_filter` are wrong in the pinned version, and
//! clippy forbids them here. `tests` compares the queue with the standard map.

use std::{cmp::Reverse, fmt};

use btree_slab::{
    BTreeMap,
    generic::map::{BTreeExt, BTreeExtMut},
};

use crate::{Bytes, Step};

/// The position of a free block in the queue: size ascending, stamp descending, age ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FreeRank {
    pub(super) size: Bytes,
    /// The end of the chunk that gave the block up or was placed beside it.
    pub(super) stamp: Reverse<Step>,
    /// Counts insertions, so no two ranks are equal.
    pub(super) age: u64,
}

/// The free blocks, by their keys in the memory queue, in the order in which `alloc` tries them.
pub(super) struct FreeQueue<Key> {
    blocks: BTreeMap<FreeRank, Key>,
    /// The age of the next block.
    next_age: u64,
}

impl<Key> Default for FreeQueue<Key> {
    fn default() -> Self {
        Self { blocks: BTreeMap::new(), next_age: 0 }
    }
}

impl<Key: Copy> FreeQueue<Key> {
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Adds a block and returns its rank, which identifies it later.
    pub(super) fn insert(&mut self, size: Bytes, stamp: Step, block: Key) -> FreeRank {
        let rank = FreeRank { size, stamp: Reverse(stamp), age: self.next_age };
        self.next_age += 1;
        self.blocks.insert(rank, block);
        rank
    }

    pub(super) fn remove(&mut self, rank: FreeRank) -> Option<Key> {
        self.blocks.remove(&rank)
    }

    /// Removes and returns the first block of at least this size.
    pub(super) fn take_at_least(&mut self, size: Bytes) -> Option<Key> {
        let least = FreeRank { size, stamp: Reverse(Step::MAX), age: 0 };
        let address = match self.blocks.address_of(&least) {
            Ok(address) | Err(address) => self.blocks.normalize(address)?,
        };
        let (item, _) = self.blocks.remove_at(address)?;
        Some(*item.value())
    }

    /// Removes and returns the last block, one of the largest.
    pub(super) fn take_last(&mut self) -> Option<Key> {
        self.blocks.pop_last().map(|(_, block)| block)
    }
}

/// The sizes of the free blocks, smallest first.
impl<Key: Copy> fmt::Display for FreeQueue<Key> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        f.write_str("[")?;
        for (index, (rank, _)) in self.blocks.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", rank.size)?;
        }
        match self.len().saturating_sub(SHOWN) {
            0 => f.write_str("]"),
            more => write!(f, ", and {more} more]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::seeds::times;

    /// Runs the same random operations on the queue and on the standard map.
    #[test]
    fn the_free_queue_behaves_like_the_standard_map() {
        times(50, |random| {
            let mut keys = 0..;
            let mut queue = FreeQueue::default();
            let mut model: BTreeMap<FreeRank, u32> = BTreeMap::new();
            while !random.is_empty() {
                match random.int_in_range(0..=9)? {
                    0..=4 => {
                        let size = random.int_in_range(1..=64)?;
                        let stamp = random.int_in_range(0..=8)?;
                        let Some(key) = keys.next() else { break };
                        let rank = queue.insert(size, stamp, key);
                        assert_eq!(model.insert(rank, key), None);
                    }
                    5 | 6 if !model.is_empty() => {
                        let at = random.choose_index(model.len())?;
                        let rank = *model.keys().nth(at).unwrap();
                        assert_eq!(queue.remove(rank), model.remove(&rank));
                        assert_eq!(queue.remove(rank), None);
                    }
                    7 => assert_eq!(queue.take_last(), model.pop_last().map(|(_, key)| key)),
                    _ => {
                        let size = random.int_in_range(1..=70)?;
                        let first = model.iter().find(|(rank, _)| rank.size >= size);
                        let expected = first.map(|(rank, key)| (*rank, *key));
                        if let Some((rank, _)) = expected {
                            model.remove(&rank);
                        }
                        assert_eq!(queue.take_at_least(size), expected.map(|(_, key)| key));
                    }
                }
                assert_eq!(queue.len(), model.len());
            }
            Ok(())
        });
    }
}
