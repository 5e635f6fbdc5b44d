//! Contraction: perfect packings, found from the inside out.
//!
//! A packing is perfect if live bodies fill every section up to the bound. Then the bodies that end at a boundary of
//! sections fill the same ranges of bytes as the bodies that begin there. Such a range, with the bodies on its two
//! sides, is a *seam*. Sizes identify most seams: they are the smallest sets of bodies on the two sides with equal
//! sums. If a few bytes are free, *fillers* stand for them: a filler begins where bytes become free, and ends where as
//! many are taken.
//!
//! Start from a seam, add the seams where its bodies begin and end, then the seams of their bodies, and so on: the
//! bodies found form the smallest rectangle around the seam. If they are few, the rectangle is packed at once and
//! becomes one *block*. Bodies between the same two seams become a block too, stacked in any order. Blocks merge until
//! one is left, or a few that a search packs. A tiling of thousands of tiles takes a fraction of a second, where a
//! search from the floor upwards spends millions of nodes in vain.
//!
//! Two sums may be equal by chance, and not every seam is found. So if blocks are left in the end, each is dissolved on
//! trial, and its parts may merge in other ways. A failure proves nothing.

mod filling;

use std::{collections::HashSet, mem};

use smallvec::SmallVec;
use tracing::debug;

use crate::{
    monitor::Monitor,
    search::{
        control::limit_schedule::LimitSchedule,
        engine::{Engine, Share},
        packing::Packing,
        sizes::MAX_WORK,
        state::instance::{Instance, Item},
    },
    sets::distinct,
};
use filling::Filling;

/// The most blocks of a rectangle that is packed at once. Blocks between seams with more blocks are stacked last.
const MAX_BLOCKS: usize = 12;

/// The numbers of blocks on the two sides of the seams that are tried, in this order: up to three on each side.
const SHAPES: [(usize, usize); 9] =
    [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (2, 3), (3, 2), (3, 3)];

/// The most blocks on one side of a boundary of which all single blocks, pairs and triples are examined.
const MAX_SIDE: [usize; 3] = [usize::MAX, 64, 16];

/// At most one byte in this many may be free: with more, fillers seldom find their place.
const FULL: u128 = 8;

/// If more than one block for this many bodies is left, the contracted problem is hardly easier. With two, merging
/// tilings with a percent of slack takes longer, and they are packed no better.
const BODIES_PER_BLOCK: usize = 3;

/// A rectangle filled with smaller ones, or a body, or a filler.
#[derive(Clone, Debug)]
struct Block {
    item: Item,
    /// The blocks inside, each with its offset above this one.
    parts: Vec<(usize, u64)>,
    /// The blocks of the seam that it was made around, or those that were stacked, in ascending order.
    seam: Vec<usize>,
    is_free: bool,
}

/// Blocks that end at a boundary, and blocks that begin there in the same ranges of bytes.
#[derive(Clone, Default, Debug)]
struct Seam {
    ending: Vec<usize>,
    beginning: Vec<usize>,
}

impl Seam {
    fn blocks(&self) -> impl Iterator<Item = usize> {
        self.ending.iter().chain(&self.beginning).copied()
    }

    fn len(&self) -> usize {
        self.ending.len() + self.beginning.len()
    }
}

/// The seams, and by block the one where it begins and the one where it ends.
#[derive(Default)]
struct Seams {
    all: Vec<Seam>,
    begin: Vec<usize>,
    end: Vec<usize>,
    /// The sums examined.
    sums: usize,
}

/// Blocks that replace the bodies of a problem.
pub struct Contraction {
    /// The bodies, the fillers, then the blocks made of them.
    blocks: Vec<Block>,
    /// The number of bodies.
    bodies: usize,
    /// The blocks that lie in no other.
    outer: Vec<usize>,
    sections: usize,
    /// The sums, blocks and boundaries that may still be examined.
    work: u64,
    /// The sets of blocks, in ascending order, whose sums are equal by chance, so that they are no seams.
    given_up: HashSet<Vec<usize>>,
}

/// Packs the blocks that a perfect packing contracts to at the bound.
pub struct Contract;

impl Engine for Contract {
    fn run(&mut self, packing: &mut Packing<'_>, share: Share, monitor: &mut Monitor<'_>) -> u64 {
        let inst = packing.inst();
        let Some(contraction) = Contraction::of(inst, monitor) else { return 0 };
        let blocks = contraction.instance(inst);
        debug!(target: "memplan::best", bodies = inst.bodies(), blocks = blocks.bodies(), "contracted");
        let mut outer = packing.at_bound(&blocks).with_threads(1);
        let nodes = LimitSchedule.run(&mut outer, share, monitor);
        if let Some(offsets) = outer.offsets() {
            packing.improve(contraction.offsets(offsets));
        }
        nodes
    }
}

impl Contraction {
    /// Contracts a problem as far as possible. `None` if it has staircases, pins or true sizes beside rounded ones, if
    /// too many bytes are free, or if too many blocks are left.
    pub fn of(inst: &Instance, monitor: &mut Monitor<'_>) -> Option<Self> {
        if !inst.staircases.is_empty() || inst.exact.is_some() || !inst.pins.is_empty() {
            return None;
        }
        let fillers = fillers(inst)?;
        let block =
            |is_free| move |&item| Block { item, parts: Vec::new(), seam: Vec::new(), is_free };
        let bodies = inst.items.iter().map(block(false));
        let blocks: Vec<Block> = bodies.chain(fillers.iter().map(block(true))).collect();
        let outer = (0..blocks.len()).collect();
        let bodies = inst.items.len();
        let (sections, work, given_up) = (inst.sections, MAX_WORK, HashSet::new());
        let mut contraction = Self { blocks, bodies, outer, sections, work, given_up };
        contraction.merge_all(monitor);
        while contraction.give_up_one(monitor) {}
        let Self { blocks, outer, .. } = &mut contraction;
        outer.retain(|&block| !blocks[block].is_free);
        (contraction.outer.len() * BODIES_PER_BLOCK <= bodies).then_some(contraction)
    }

    /// The problem of packing the blocks that are left.
    pub fn instance(&self, inst: &Instance) -> Instance {
        let items = self.outer.iter().map(|&block| (self.blocks[block].item, inst.roots[0]));
        inst.with_bodies(items.collect(), Vec::new(), self.sections)
    }

    /// The offsets of the bodies, given the offsets of the blocks that are left.
    pub fn offsets(&self, outer: &[u64]) -> Vec<u64> {
        let mut offsets = vec![0; self.blocks.len()];
        for (&block, &offset) in self.outer.iter().zip(outer) {
            offsets[block] = offset;
        }
        // A block lies after its parts.
        for (at, block) in self.blocks.iter().enumerate().rev() {
            for &(part, above) in &block.parts {
                offsets[part] = offsets[at] + above;
            }
        }
        offsets.truncate(self.bodies);
        offsets
    }

    /// Merges blocks as long as it is possible.
    fn merge_all(&mut self, monitor: &mut Monitor<'_>) {
        while self.work > 0 && !monitor.must_stop() && self.merge() {}
    }

    /// Gives up a block if fewer blocks are left without it; returns whether there is one.
    fn give_up_one(&mut self, monitor: &mut Monitor<'_>) -> bool {
        let left = self.outer.len();
        if left == 1 || left * BODIES_PER_BLOCK > self.bodies {
            return false;
        }
        let mut made = self.outer.clone();
        made.retain(|&block| !self.blocks[block].parts.is_empty());
        // Sums of few parts are equal by chance more often than sums of many.
        made.sort_by_key(|&block| (self.blocks[block].parts.len(), block));
        let (outer, blocks) = (self.outer.clone(), self.blocks.len());
        for block in made {
            if self.work == 0 || monitor.must_stop() {
                return false;
            }
            let parts = mem::take(&mut self.blocks[block].parts);
            self.outer.retain(|&outer| outer != block);
            self.outer.extend(parts.iter().map(|&(part, _)| part));
            self.given_up.insert(self.blocks[block].seam.clone());
            self.merge_all(monitor);
            if self.outer.len() < left {
                return true;
            }
            self.given_up.remove(&self.blocks[block].seam);
            self.blocks.truncate(blocks);
            self.blocks[block].parts = parts;
            self.outer.clone_from(&outer);
        }
        false
    }

    /// Merges blocks in one pass wherever possible; returns whether any were merged.
    fn merge(&mut self) -> bool {
        let seams = self.seams();
        let work = seams.sums + self.outer.len() + self.sections;
        // A sum takes as long as some runs of bytes.
        self.work = self.work.saturating_sub(8 * work as u64);
        let mut is_merged = vec![false; self.blocks.len()];
        let before = self.blocks.len();
        let by_seams = |&block: &usize| (seams.begin[block], seams.end[block]);
        let mut outer = mem::take(&mut self.outer);
        outer.sort_by_key(|block| (by_seams(block), *block));
        let between = outer.chunk_by(|a, b| by_seams(a) == by_seams(b));
        let may_stack = |stack: &&[usize]| stack.len() > 1 && !self.given_up.contains(*stack);
        let stacks: Vec<&[usize]> = between.filter(may_stack).collect();
        let at_seams = |stack: &[usize]| {
            let (begin, end) = by_seams(&stack[0]);
            seams.all[begin].len() + seams.all[end].len()
        };
        for between in stacks.iter().filter(|stack| at_seams(stack) <= MAX_BLOCKS) {
            self.stack(between, &mut is_merged);
        }
        for seam in &seams.all {
            let Some(inside) = self.around(seam, &seams) else { continue };
            if inside.iter().any(|&block| is_merged[block]) {
                continue;
            }
            let items: Vec<Item> = inside.iter().map(|&block| self.blocks[block].item).collect();
            let Some((item, offsets)) = Filling::of(&items) else { continue };
            let parts = inside.into_iter().zip(offsets).collect();
            self.add(item, parts, seam.blocks().collect(), &mut is_merged);
        }
        // Large seams are unsplit boundaries, between which unrelated blocks may lie. So these blocks are stacked only
        // if nothing else merges.
        if self.blocks.len() == before {
            let least = stacks.iter().map(|stack| at_seams(stack)).min();
            for between in stacks.iter().filter(|stack| Some(at_seams(stack)) == least) {
                self.stack(between, &mut is_merged);
            }
        }
        outer.retain(|&block| !is_merged[block]);
        outer.extend(before..self.blocks.len());
        outer.sort_by_key(|&block| (self.blocks[block].item, block));
        self.outer = outer;
        self.blocks.len() > before
    }

    /// Stacks blocks of equal lifetimes, given in ascending order.
    fn stack(&mut self, between: &[usize], is_merged: &mut [bool]) {
        let mut item = Item { size: 0, ..self.blocks[between[0]].item };
        let mut parts = Vec::with_capacity(between.len());
        for &block in between {
            parts.push((block, item.size));
            item.size += self.blocks[block].item.size;
        }
        self.add(item, parts, between.to_vec(), is_merged);
    }

    /// Adds a block made of parts.
    fn add(
        &mut self,
        item: Item,
        parts: Vec<(usize, u64)>,
        mut seam: Vec<usize>,
        is_merged: &mut [bool],
    ) {
        for &(part, _) in &parts {
            is_merged[part] = true;
        }
        seam.sort_unstable();
        let is_free = parts.iter().all(|&(part, _)| self.blocks[part].is_free);
        self.blocks.push(Block { item, parts, seam, is_free });
    }

    /// All seams of the outer blocks.
    fn seams(&self) -> Seams {
        let mut boundaries = vec![Seam::default(); self.sections + 1];
        for &block in &self.outer {
            let Item { first, end, .. } = self.blocks[block].item;
            boundaries[first as usize].beginning.push(block);
            boundaries[end as usize].ending.push(block);
        }
        let unknown = vec![0; self.blocks.len()];
        let mut seams = Seams { all: Vec::new(), begin: unknown.clone(), end: unknown, sums: 0 };
        for boundary in boundaries {
            self.split(boundary, &mut seams);
        }
        for (at, seam) in seams.all.iter().enumerate() {
            for &block in &seam.ending {
                seams.end[block] = at;
            }
            for &block in &seam.beginning {
                seams.begin[block] = at;
            }
        }
        seams
    }

    /// Splits the blocks at a boundary into the smallest sets with equal sums on both sides.
    fn split(&self, mut boundary: Seam, seams: &mut Seams) {
        for (ending, beginning) in SHAPES {
            if boundary.ending.len() < ending || boundary.beginning.len() < beginning {
                continue;
            }
            let left = self.sums(&boundary.ending, ending);
            let right = self.sums(&boundary.beginning, beginning);
            seams.sums += left.len() + right.len();
            let (mut l, mut r) = (0, 0);
            while let (Some(ended), Some(begun)) = (left.get(l), right.get(r)) {
                let is_taken = |side: &[usize], sum: &Sum| {
                    sum.blocks.iter().any(|block| !side.contains(block))
                };
                if ended.bytes < begun.bytes || is_taken(&boundary.ending, ended) {
                    l += 1;
                } else if begun.bytes < ended.bytes
                    || is_taken(&boundary.beginning, begun)
                    || self.is_given_up(ended, begun)
                {
                    r += 1;
                } else {
                    boundary.ending.retain(|block| !ended.blocks.contains(block));
                    boundary.beginning.retain(|block| !begun.blocks.contains(block));
                    let (ending, beginning) = (ended.blocks.to_vec(), begun.blocks.to_vec());
                    seams.all.push(Seam { ending, beginning });
                }
            }
        }
        if boundary.len() > 0 {
            seams.all.push(boundary);
        }
    }

    fn is_given_up(&self, ended: &Sum, begun: &Sum) -> bool {
        let mut seam: Vec<usize> = ended.blocks.iter().chain(&begun.blocks).copied().collect();
        seam.sort_unstable();
        self.given_up.contains(&seam)
    }

    /// The total size of every set of `of` blocks, in ascending order.
    fn sums(&self, blocks: &[usize], of: usize) -> Vec<Sum> {
        if blocks.len() > MAX_SIDE[of - 1] {
            return Vec::new();
        }
        let mut sums = vec![(0, Sum::default())];
        for _ in 0..of {
            let with_one_more = |(from, sum): (usize, Sum)| {
                (from..blocks.len()).map(move |at| {
                    let mut sum = sum.clone();
                    sum.bytes += self.blocks[blocks[at]].item.size;
                    sum.blocks.push(blocks[at]);
                    (at + 1, sum)
                })
            };
            sums = sums.into_iter().flat_map(with_one_more).collect();
        }
        let mut sums: Vec<Sum> = sums.into_iter().map(|(_, sum)| sum).collect();
        sums.sort_unstable();
        sums
    }

    /// The blocks of the smallest rectangle around a seam, if they are few.
    fn around(&self, seam: &Seam, seams: &Seams) -> Option<Vec<usize>> {
        if seam.ending.is_empty() || seam.beginning.is_empty() {
            return None;
        }
        let mut inside: Vec<usize> = seam.blocks().collect();
        loop {
            if inside.len() > MAX_BLOCKS {
                return None;
            }
            let items = || inside.iter().map(|&block| self.blocks[block].item);
            let first = items().map(|item| item.first).min()?;
            let end = items().map(|item| item.end).max()?;
            let mut more = Vec::new();
            for &block in &inside {
                let Item { first: begin, end: over, .. } = self.blocks[block].item;
                let begins = (begin > first).then_some(seams.begin[block]);
                let ends = (over < end).then_some(seams.end[block]);
                for seam in begins.into_iter().chain(ends) {
                    more.extend(seams.all[seam].blocks().filter(|other| !inside.contains(other)));
                }
            }
            if more.is_empty() {
                return Some(inside);
            }
            inside.extend(distinct(more));
        }
    }
}

/// The size of a few blocks together.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sum {
    bytes: u64,
    blocks: SmallVec<[usize; 3]>,
}

/// Items that fill what the bodies leave free below the bound; `None` if that is too much.
fn fillers(inst: &Instance) -> Option<Vec<Item>> {
    let mut live = inst.live();
    let most = live.iter().copied().max().unwrap_or(0);
    let free: u128 = live.iter().map(|live| u128::from(most - live)).sum();
    if free > u128::from(most) * inst.sections as u128 / FULL {
        return None;
    }
    // After the last section, nothing is free.
    live.push(most);
    let (mut fillers, mut open): (Vec<Item>, Vec<Item>) = (Vec::new(), Vec::new());
    let mut before = most;
    for (at, now) in (0u32..).zip(live) {
        let more = before.saturating_sub(now);
        if more > 0 {
            open.push(Item { first: at, end: at, size: more });
        }
        let mut taken = now.saturating_sub(before);
        while taken > 0 {
            let same = open.iter().rposition(|filler| filler.size == taken);
            let last = open.len() - 1;
            let filler = &mut open[same.unwrap_or(last)];
            let size = filler.size.min(taken);
            filler.size -= size;
            taken -= size;
            fillers.push(Item { end: at, size, ..*filler });
            open.retain(|filler| filler.size > 0);
        }
        before = now;
    }
    Some(fillers)
}

#[cfg(test)]
mod tests;
