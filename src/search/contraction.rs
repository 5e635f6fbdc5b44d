//! Contraction: perfect packings, found from the inside out.
//!
//! If the bodies alive fill every section up to the bound, nothing is wasted. Then the bodies that end at a boundary of
//! sections and the bodies that begin there fill the same ranges of bytes. Such a range, with the bodies on its two
//! sides, is a *seam*. Sizes tell most seams apart: the smallest sets of bodies on either side with equal sums. Where a
//! little is free, *fillers* take its place: one begins where more becomes free, and ends where as much is taken.
//!
//! The seams where a seam's bodies begin and end, their seams, and so on, close into a smallest rectangle. If it has few
//! bodies, it is packed on the spot and is one *block* from then on; so are bodies between the same two seams, in any
//! order. Blocks merge until one is left, or few that a search packs. A tiling of thousands of tiles takes a fraction of a
//! second; a search from the floor upwards takes millions of nodes in vain. Two sums may be equal by chance, so a failure
//! proves nothing.

mod filling;

use std::mem;

use crate::search::state::instance::{Instance, Item};
use filling::Filling;

/// Rectangles of more blocks are not packed on the spot.
const MAX_BLOCKS: usize = 12;

/// More bodies on one side of a boundary have too many pairs.
const MAX_SIDE: usize = 64;

/// At most one byte in this many may be free: with more, fillers seldom find their place.
const FULL: u128 = 8;

/// A problem of more than one block for this many bodies is hardly easier.
const BODIES_PER_BLOCK: usize = 3;

/// A rectangle filled with smaller ones, or a body, or a filler.
#[derive(Clone, Debug)]
struct Block {
    item: Item,
    /// The blocks inside, each with its offset above this one.
    parts: Vec<(usize, u64)>,
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
}

impl Contraction {
    /// Contracts a problem as far as it goes; `None` if there are staircases, pins or true sizes beside rounded ones, if too
    /// much is free, or if too many blocks are left.
    pub fn of(inst: &Instance) -> Option<Self> {
        if !inst.staircases.is_empty() || inst.exact.is_some() || !inst.pins.is_empty() {
            return None;
        }
        let fillers = fillers(inst)?;
        let block = |is_free| move |&item| Block { item, parts: Vec::new(), is_free };
        let bodies = inst.items.iter().map(block(false));
        let blocks: Vec<Block> = bodies.chain(fillers.iter().map(block(true))).collect();
        let outer = (0..blocks.len()).collect();
        let bodies = inst.items.len();
        let mut contraction = Self { blocks, bodies, outer, sections: inst.sections };
        while contraction.merge() {}
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

    /// Merges blocks wherever it is possible at once; returns whether it was anywhere.
    fn merge(&mut self) -> bool {
        let seams = self.seams();
        let mut is_merged = vec![false; self.blocks.len()];
        let before = self.blocks.len();
        let mark = |merged: &mut [bool], blocks: &[usize]| {
            for &block in blocks {
                merged[block] = true;
            }
        };
        let by_seams = |&block: &usize| (seams.begin[block], seams.end[block]);
        let mut outer = mem::take(&mut self.outer);
        outer.sort_by_key(|block| (by_seams(block), *block));
        for between in outer.chunk_by(|a, b| by_seams(a) == by_seams(b)) {
            if between.len() > 1 {
                self.stack(between);
                mark(&mut is_merged, between);
            }
        }
        for seam in &seams.all {
            let Some(inside) = self.around(seam, &seams) else { continue };
            if inside.iter().any(|&block| is_merged[block]) {
                continue;
            }
            let items: Vec<Item> = inside.iter().map(|&block| self.blocks[block].item).collect();
            let Some((item, offsets)) = Filling::of(&items) else { continue };
            mark(&mut is_merged, &inside);
            self.add(item, inside.into_iter().zip(offsets).collect());
        }
        outer.retain(|&block| !is_merged[block]);
        outer.extend(before..self.blocks.len());
        outer.sort_by_key(|&block| {
            let Item { first, end, size } = self.blocks[block].item;
            (first, end, size, block)
        });
        self.outer = outer;
        self.blocks.len() > before
    }

    /// Stacks blocks of equal lifetimes.
    fn stack(&mut self, between: &[usize]) {
        let mut item = Item { size: 0, ..self.blocks[between[0]].item };
        let mut parts = Vec::with_capacity(between.len());
        for &block in between {
            parts.push((block, item.size));
            item.size += self.blocks[block].item.size;
        }
        self.add(item, parts);
    }

    fn add(&mut self, item: Item, parts: Vec<(usize, u64)>) {
        let is_free = parts.iter().all(|&(part, _)| self.blocks[part].is_free);
        self.blocks.push(Block { item, parts, is_free });
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
        let mut seams = Seams { all: Vec::new(), begin: unknown.clone(), end: unknown };
        for boundary in boundaries {
            self.split(boundary, &mut seams.all);
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
    fn split(&self, mut boundary: Seam, into: &mut Vec<Seam>) {
        for (ending, beginning) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            if boundary.ending.len() < ending || boundary.beginning.len() < beginning {
                continue;
            }
            let left = self.sums(&boundary.ending, ending);
            let right = self.sums(&boundary.beginning, beginning);
            let (mut l, mut r) = (0, 0);
            while let (Some(ended), Some(begun)) = (left.get(l), right.get(r)) {
                let is_taken =
                    |side: &[usize], sum: &Sum| sum.blocks().any(|block| !side.contains(&block));
                if ended.bytes < begun.bytes || is_taken(&boundary.ending, ended) {
                    l += 1;
                } else if begun.bytes < ended.bytes || is_taken(&boundary.beginning, begun) {
                    r += 1;
                } else {
                    boundary.ending.retain(|&block| ended.blocks().all(|other| other != block));
                    boundary.beginning.retain(|&block| begun.blocks().all(|other| other != block));
                    let (ending, beginning) = (ended.blocks().collect(), begun.blocks().collect());
                    into.push(Seam { ending, beginning });
                }
            }
        }
        if boundary.len() > 0 {
            into.push(boundary);
        }
    }

    /// The sizes of single blocks or of pairs, in ascending order.
    fn sums(&self, blocks: &[usize], of: usize) -> Vec<Sum> {
        let size = |block: usize| self.blocks[block].item.size;
        let mut sums = Vec::new();
        for (at, &first) in blocks.iter().enumerate() {
            if of == 1 {
                sums.push(Sum { bytes: size(first), first, second: None });
            } else if blocks.len() <= MAX_SIDE {
                let pair = |&second| {
                    let bytes = size(first) + size(second);
                    Sum { bytes, first, second: Some(second) }
                };
                sums.extend(blocks[..at].iter().map(pair));
            }
        }
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
            more.sort_unstable();
            more.dedup();
            inside.extend(more);
        }
    }
}

/// The size of one block or two.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Sum {
    bytes: u64,
    first: usize,
    second: Option<usize>,
}

impl Sum {
    fn blocks(&self) -> impl Iterator<Item = usize> {
        [self.first].into_iter().chain(self.second)
    }
}

/// Items that fill what the bodies leave free below the bound; `None` if that is too much.
fn fillers(inst: &Instance) -> Option<Vec<Item>> {
    let mut live = vec![0i128; inst.sections + 1];
    for item in &inst.items {
        live[item.first as usize] += i128::from(item.size);
        live[item.end as usize] -= i128::from(item.size);
    }
    for at in 1..live.len() {
        live[at] += live[at - 1];
    }
    let most = live.iter().copied().max().unwrap_or(0);
    let free = live[..inst.sections].iter().map(|live| (most - live).unsigned_abs()).sum::<u128>();
    if free > most.unsigned_abs() * inst.sections as u128 / FULL {
        return None;
    }
    let (mut fillers, mut open): (Vec<Item>, Vec<Item>) = (Vec::new(), Vec::new());
    let mut before = most;
    for (at, &live) in (0u32..).zip(&live) {
        // After the last section, nothing is free.
        let now = if at as usize == inst.sections { most } else { live };
        let more = u64::try_from(before - now).unwrap_or(0);
        if more > 0 {
            open.push(Item { first: at, end: at, size: more });
        }
        let mut taken = u64::try_from(now - before).unwrap_or(0);
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
