//! The strip: all bodies over time, some of them placed, and the heights at which these block a body.

use crate::planner::search::state::instance::Item;

/// The number of bodies between two lists of the bodies alive.
const STRIDE: usize = 64;

/// Sorting a block takes about as long as examining this many bodies.
pub const WORK_PER_BLOCK: u64 = 4;

/// Offsets at which a placed body blocks another: those between `low` and `high`, both excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub low: i64,
    pub high: i64,
    /// The body that is placed.
    pub body: u32,
}

/// All bodies by first section, some of them placed.
pub struct Strip {
    pub items: Vec<Item>,
    align: i64,
    /// For every [`STRIDE`]th body, the earlier bodies that are alive at its first section.
    alive: Vec<Vec<u32>>,
    /// By body: its offset, if it cannot move.
    pub fixed: Vec<Option<i64>>,
    /// By body; `None` if it is not placed.
    pub offsets: Vec<Option<i64>>,
    /// The number of pairs of bodies that share a section.
    pub pairs: u64,
    /// The number of bodies examined, and a multiple of the number of blocks found.
    pub work: u64,
}

impl Strip {
    /// Creates a strip of bodies, sorted by first section, and the offsets of those that cannot move. Returns
    /// `None` if more than `most` pairs of them share a section.
    pub fn new(items: Vec<Item>, fixed: Vec<Option<i64>>, align: i64, most: u64) -> Option<Self> {
        let mut alive = Vec::new();
        let mut live: Vec<(u32, Item)> = Vec::new();
        let mut pairs = 0;
        for (at, &item) in (0u32..).zip(&items) {
            live.retain(|(_, other)| other.end > item.first);
            pairs += live.len() as u64;
            if pairs > most {
                return None;
            }
            if (at as usize).is_multiple_of(STRIDE) {
                alive.push(live.iter().map(|&(other, _)| other).collect());
            }
            live.push((at, item));
        }
        Some(Self { items, align, alive, offsets: fixed.clone(), fixed, pairs, work: 0 })
    }

    /// Finds the offsets from 0 to `most` at which placed bodies block a body. The blocks are in no order.
    pub fn blocks(&mut self, body: usize, most: i64, blocks: &mut Vec<Block>) {
        blocks.clear();
        let item = self.items[body];
        let known = self.items.partition_point(|other| other.first <= item.first);
        let list = known.saturating_sub(1) / STRIDE;
        let earlier = self.alive.get(list).map_or(&[][..], Vec::as_slice);
        let end = self.items.partition_point(|other| other.first < item.end);
        let later = list * STRIDE..end;
        self.work += (earlier.len() + later.len()) as u64;
        for at in earlier.iter().map(|&at| at as usize).chain(later) {
            let other = self.items[at];
            let Some(offset) = self.offsets[at].filter(|_| other.end > item.first && at != body)
            else {
                continue;
            };
            let low = offset - self.aligned(item.size);
            let high = offset + self.aligned(other.size);
            if low < most && high > 0 {
                blocks.push(Block { low, high, body: u32::try_from(at).unwrap_or(u32::MAX) });
            }
        }
        self.work += blocks.len() as u64 * WORK_PER_BLOCK;
    }

    /// A size, rounded up to a multiple of the alignment.
    pub fn aligned(&self, size: u64) -> i64 {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        -(-size).div_euclid(self.align) * self.align
    }
}
