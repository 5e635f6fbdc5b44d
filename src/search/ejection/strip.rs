//! The strip: all bodies over time, some of them placed, and the heights at which these block a body.
//!
//! For a body that is examined repeatedly, the differences of offsets at which others overlap it are cached.

use std::slice;

use crate::search::{
    clashes::{Clash, Clashes},
    ranges::{Grid, merge},
    sizes::MAX_KEPT,
    state::instance::{Item, Part},
};

/// One list of live bodies is kept for every this many bodies.
const STRIDE: usize = 64;

/// The most pairs of bodies that share a section: placing all bodies once then takes 40 million nodes.
const MAX_PAIRS: u64 = 1 << 28;

/// [`Strip::sort`] passes over the blocks this many times.
pub const SORT_PASSES: u64 = 2;

/// Offsets at which a placed body blocks another: those between `low` and `high`, both excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub low: i64,
    pub high: i64,
    /// The body that is placed.
    pub body: usize,
}

/// An end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Low,
    High,
}

impl End {
    pub fn of(self, block: &Block) -> i64 {
        match self {
            Self::Low => block.low,
            Self::High => block.high,
        }
    }
}

/// The result of the last [`Strip::look_at`]: the blocks of its body.
#[derive(Default)]
struct Look {
    blocks: Vec<Block>,
    /// By [`End`]: that end of each block and the number of the block, once they are sorted.
    sorted: [Vec<(i64, u32)>; 2],
    /// The highest offset that was asked about: `most` of [`Strip::look_at`].
    most: i64,
}

/// All bodies by first section, some of them placed.
#[derive(Default)]
pub struct Strip {
    /// By body: the smallest rectangle around it, from its first to its last section and from its offset to its top.
    pub items: Vec<Item>,
    /// The parts of each body that is more than a rectangle; no parts for all others.
    parts: Vec<Vec<Part>>,
    align: i64,
    /// By body: its offsets, from the residue on, unless all are the multiples of the alignment.
    grids: Vec<Grid>,
    /// For every [`STRIDE`]th body, the earlier bodies that are alive at its first section.
    alive: Vec<Vec<u32>>,
    /// By body: its offset, if it cannot move.
    pub fixed: Vec<Option<i64>>,
    /// By body; `None` if it is not placed.
    pub offsets: Vec<Option<i64>>,
    /// The number of pairs of bodies that share a section.
    pub pairs: u64,
    /// The work so far: bodies examined, plus each block sorted, once for each pass.
    pub work: u64,
    /// By body: its clashes with all others; empty if they are not kept.
    clashes: Vec<Vec<Clash>>,
    /// The number of clashes kept; `None` if all are.
    kept: Option<usize>,
    look: Look,
    /// By bucket: where the next block of it goes.
    buckets: Vec<usize>,
}

impl Strip {
    /// Creates a strip of bodies, given by their parts and sorted by first section, and the offsets of those that
    /// cannot move. Returns `None` if more than [`MAX_PAIRS`] of them share a section.
    pub fn new(mut parts: Vec<Vec<Part>>, fixed: Vec<Option<i64>>, align: i64) -> Option<Self> {
        let items: Vec<Item> = parts.iter().map(|parts| Item::around(parts)).collect();
        for (parts, &item) in parts.iter_mut().zip(&items) {
            if **parts == [item.part()] {
                *parts = Vec::new();
            }
        }
        let mut alive = Vec::new();
        let mut live: Vec<(u32, Item)> = Vec::new();
        let mut pairs = 0;
        for (at, &item) in (0u32..).zip(&items) {
            live.retain(|(_, other)| other.end > item.first);
            pairs += live.len() as u64;
            if pairs > MAX_PAIRS {
                return None;
            }
            if (at as usize).is_multiple_of(STRIDE) {
                alive.push(live.iter().map(|&(other, _)| other).collect());
            }
            live.push((at, item));
        }
        Some(Self {
            clashes: vec![Vec::new(); items.len()],
            kept: Some(0),
            offsets: fixed.clone(),
            items,
            parts,
            align,
            alive,
            fixed,
            pairs,
            ..Self::default()
        })
    }

    /// Creates a strip of bodies without sections, given by their sizes, allowed offsets and fixed offsets, and their
    /// clashes.
    pub fn of_clashes(bodies: Vec<(u64, Grid, Option<i64>)>, Clashes(clashes): Clashes) -> Self {
        let item = |size| Item { first: 0, end: 0, size };
        let (items, grids, fixed): (Vec<Item>, Vec<Grid>, Vec<Option<i64>>) =
            bodies.into_iter().map(|(size, grid, fixed)| (item(size), grid, fixed)).collect();
        Self {
            align: 1,
            fixed,
            pairs: clashes.iter().map(|of_body| of_body.len() as u64).sum::<u64>() / 2,
            items,
            grids,
            clashes,
            ..Self::default()
        }
    }

    /// The lowest offset of a body.
    pub fn lowest(&self, body: usize) -> i64 {
        self.grids.get(body).map_or(0, |grid| grid.residue)
    }

    /// The highest offset at which a body ends at most at a limit.
    pub fn highest(&self, body: usize, limit: i64) -> i64 {
        let highest = limit - self.aligned(self.items[body].size);
        self.grids.get(body).map_or(highest, |grid| grid.round_down(highest))
    }

    /// Finds the offsets from 0 to `most` at which placed bodies block a body. The blocks of one placed body are
    /// apart: a staircase may interlock with another at offsets between two of them. With `again`, the clashes of the
    /// body are kept for another look.
    pub fn look_at(&mut self, body: usize, most: i64, again: bool) {
        let mut look = std::mem::take(&mut self.look);
        look.blocks.clear();
        look.most = most;
        let mut add = |Clash { low, high, other }: Clash, offset: Option<i64>| {
            let Some(offset) = offset else { return };
            let block = Block { low: offset + low, high: offset + high, body: other };
            if block.low < most && block.high > 0 {
                look.blocks.push(block);
            }
        };
        if again && self.keep(body) {
            let clashes = &self.clashes[body];
            self.work += clashes.len() as u64;
            for &clash in clashes {
                add(clash, self.offsets[clash.other]);
            }
        } else {
            self.find(body, add);
        }
        if let Some(grid) = self.grids.get(body) {
            for block in &mut look.blocks {
                block.low = grid.round_down(block.low);
                block.high = grid.round_up(block.high);
            }
        }
        self.look = look;
    }

    /// Keeps the clashes of a body; returns false if there are too many of all bodies.
    fn keep(&mut self, body: usize) -> bool {
        let Some(kept) = self.kept.filter(|_| self.clashes[body].is_empty()) else { return true };
        if kept > MAX_KEPT {
            return false;
        }
        let mut clashes = Vec::new();
        self.find(body, |clash, _| clashes.push(clash));
        self.kept = Some(kept + clashes.len());
        self.clashes[body] = clashes;
        true
    }

    /// Finds the clashes of a body with all others, and their offsets.
    fn find(&mut self, body: usize, mut found: impl FnMut(Clash, Option<i64>)) {
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
            if other.end <= item.first || at == body {
                continue;
            }
            let mut add = |low, high| {
                found(Clash { other: at, low, high }, self.offsets[at]);
            };
            let (steps, others) = (&self.parts[body], &self.parts[at]);
            if steps.is_empty() && others.is_empty() {
                add(-self.aligned(item.size), self.aligned(other.size));
                continue;
            }
            let (whole, other) = (item.part(), other.part());
            let steps = if steps.is_empty() { slice::from_ref(&whole) } else { steps };
            let others = if others.is_empty() { slice::from_ref(&other) } else { others };
            self.work += (steps.len() + others.len()) as u64;
            clash(steps, others, self.align, &mut clashes);
            for &(low, high) in &clashes {
                add(low, high);
            }
        }
    }

    /// Sorts the blocks of the last look by one of their ends: a bucket sort with about one bucket for each block, then
    /// an insertion sort.
    pub fn sort(&mut self, end: End) {
        let Self { look: Look { blocks, sorted, most }, buckets, work, .. } = self;
        let sorted = &mut sorted[end as usize];
        *work += blocks.len() as u64 * SORT_PASSES;
        let most = (*most).max(0);
        let count = blocks.len().next_power_of_two();
        let shift = (i64::BITS - most.leading_zeros()).saturating_sub(count.ilog2());
        let bucket = |block: &Block| {
            usize::try_from(end.of(block).clamp(0, most) >> shift).unwrap_or_default()
        };
        buckets.clear();
        buckets.resize(count + 1, 0);
        for block in &*blocks {
            buckets[bucket(block) + 1] += 1;
        }
        let mut before = 0;
        for next in &mut *buckets {
            before += *next;
            *next = before;
        }
        sorted.resize(blocks.len(), (0, 0));
        for (block, number) in blocks.iter().zip(0..) {
            let next = &mut buckets[bucket(block)];
            sorted[*next] = (end.of(block), number);
            *next += 1;
        }
        sort_by_insertion(sorted);
    }

    /// The blocks of the last look, once they are sorted by that end.
    pub fn sorted(&self, end: End) -> impl Clone + DoubleEndedIterator<Item = &Block> {
        self.look.sorted[end as usize].iter().map(|&(_, block)| &self.look.blocks[block as usize])
    }

    /// A size, rounded up to a multiple of the alignment.
    pub fn aligned(&self, size: u64) -> i64 {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        -(-size).div_euclid(self.align) * self.align
    }
}

/// Sorts numbered offsets by insertion, which is fast if they are nearly in order; otherwise by comparison, once more
/// offsets were shifted than that would compare.
pub fn sort_by_insertion(offsets: &mut [(i64, u32)]) {
    let mut left = offsets.len() * offsets.len().checked_ilog2().unwrap_or(0) as usize;
    for at in 1..offsets.len() {
        let next = offsets[at];
        let mut free = at;
        while free > 0 && next < offsets[free - 1] {
            offsets[free] = offsets[free - 1];
            free -= 1;
        }
        offsets[free] = next;
        let Some(rest) = left.checked_sub(at - free) else {
            offsets.sort_unstable();
            return;
        };
        left = rest;
    }
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
    merge(clashes);
}
