//! The strip: all bodies over time, some of them placed, and the heights at which these block a body.

use std::slice;

use crate::planner::search::state::instance::{Item, Part};

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
    /// From the first section of a body to the last, and from its offset to its top.
    pub items: Vec<Item>,
    /// The parts of each body that is more than a rectangle; no parts for all others.
    parts: Vec<Vec<Part>>,
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
    /// Creates a strip of bodies, given by their parts and sorted by first section, and the offsets of those that
    /// cannot move. Returns `None` if more than `most` pairs of them share a section.
    pub fn new(
        mut parts: Vec<Vec<Part>>,
        fixed: Vec<Option<i64>>,
        align: i64,
        most: u64,
    ) -> Option<Self> {
        let items: Vec<Item> = parts.iter().map(|parts| around(parts)).collect();
        for (parts, &item) in parts.iter_mut().zip(&items) {
            if **parts == [whole(item)] {
                *parts = Vec::new();
            }
        }
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
        Some(Self { items, parts, align, alive, offsets: fixed.clone(), fixed, pairs, work: 0 })
    }

    /// Finds the offsets from 0 to `most` at which placed bodies block a body. The blocks are in no order. Those of
    /// one placed body are apart: a staircase may interlock with another at offsets between two of them.
    pub fn blocks(&mut self, body: usize, most: i64, blocks: &mut Vec<Block>) {
        blocks.clear();
        let item = self.items[body];
        let known = self.items.partition_point(|other| other.first <= item.first);
        let list = known.saturating_sub(1) / STRIDE;
        let earlier = self.alive.get(list).map_or(&[][..], Vec::as_slice);
        let end = self.items.partition_point(|other| other.first < item.end);
        let later = list * STRIDE..end;
        let mut clashes = Vec::new();
        self.work += (earlier.len() + later.len()) as u64;
        for at in earlier.iter().map(|&at| at as usize).chain(later) {
            let other = self.items[at];
            let Some(offset) = self.offsets[at].filter(|_| other.end > item.first && at != body)
            else {
                continue;
            };
            let mut add = |low, high| {
                if low < most && high > 0 {
                    blocks.push(Block { low, high, body: u32::try_from(at).unwrap_or(u32::MAX) });
                }
            };
            let (steps, others) = (&self.parts[body], &self.parts[at]);
            if steps.is_empty() && others.is_empty() {
                add(offset - self.aligned(item.size), offset + self.aligned(other.size));
                continue;
            }
            let (whole, other) = (whole(item), whole(other));
            let steps = if steps.is_empty() { slice::from_ref(&whole) } else { steps };
            let others = if others.is_empty() { slice::from_ref(&other) } else { others };
            self.work += (steps.len() + others.len()) as u64;
            clash(steps, others, self.align, &mut clashes);
            for &(low, high) in &clashes {
                add(offset + low, offset + high);
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

/// The smallest rectangle around the parts of a body.
fn around(parts: &[Part]) -> Item {
    Item {
        first: parts.first().map_or(0, |part| part.first),
        end: parts.last().map_or(0, |part| part.end),
        size: parts.iter().map(|part| part.high).max().unwrap_or(0),
    }
}

/// The only part of a rectangle.
fn whole(Item { first, end, size }: Item) -> Part {
    Part { first, end, low: 0, high: size }
}

/// The differences of aligned offsets at which two bodies overlap, the offset of `a` minus that of `b`: ranges with
/// both ends excluded, ascending and apart.
fn clash(a: &[Part], b: &[Part], align: i64, clashes: &mut Vec<(i64, i64)>) {
    clashes.clear();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(&part), Some(&other)) = (a.peek(), b.peek()) {
        if part.first < other.end && other.first < part.end {
            let low = other.low.cast_signed() - part.high.cast_signed();
            let high = other.high.cast_signed() - part.low.cast_signed();
            clashes.push((low.div_euclid(align) * align, -(-high).div_euclid(align) * align));
        }
        if part.end <= other.end {
            a.next();
        } else {
            b.next();
        }
    }
    clashes.sort_unstable();
    clashes.dedup_by(|next, last| {
        let is_joined = next.0 < last.1;
        if is_joined {
            last.1 = last.1.max(next.1);
        }
        is_joined
    });
}
