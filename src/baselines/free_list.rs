//! The linked list with growth: a list of available blocks by offset, the largest of which grows.
//!
//! **Idea.** Walk over the operators. The chunks last read by the previous operator become
//! available and merge with their neighbours. A chunk takes the smallest available block that holds
//! it; if there is none, the largest block grows to its size, and everything above moves up.
//!
//! **Cost.** O(n) per chunk that grows a block, otherwise O(b) for b available blocks.
//!
//! **When.** Like pushdown it lets blocks grow, but it moves chunks that are already placed, dead
//! or alive, so one growth lifts everything above it.
//!
//! **Source.** As published in a patent application of 2022 (the book, The linked list with growth).

use std::mem;

use crate::{
    Bytes, Problem,
    baselines::{
        boxes::Boxes,
        objects::Offsets,
        records::{InUse, Records},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// Places records; the total is the final end of the pool.
#[must_use]
pub fn offsets(records: &Records) -> Offsets {
    Budget::unlimited(|budget| place(records, budget))
}

fn place(records: &Records, budget: &mut Budget<'_>) -> Result<Offsets, Stop> {
    let mut pool = Pool::default();
    let mut in_use = InUse::default();
    let order = records.by_first_use();
    for (at, &index) in order.iter().enumerate() {
        budget.spend(mem::take(&mut pool.work))?;
        let record = &records[index];
        while let Some(ended) = in_use.ended_before(record.first) {
            pool.release(Block { offset: pool.laid[ended], size: records[order[ended]].size });
        }
        pool.alloc(record.size);
        in_use.until(record.last, at);
    }
    let mut answer = Offsets { offsets: vec![0; records.len()], total: pool.end };
    for (&index, offset) in order.iter().zip(pool.laid) {
        answer.offsets[index] = offset;
    }
    Ok(answer)
}

#[derive(Clone, Copy, Debug)]
struct Block {
    offset: Bytes,
    size: Bytes,
}

impl Block {
    fn end(self) -> Bytes {
        self.offset + self.size
    }
}

#[derive(Default)]
struct Pool {
    /// The available blocks, by offset; no two of them touch.
    available: Vec<Block>,
    /// The offset of every chunk placed so far. The offset of a dead chunk still counts for earlier
    /// steps.
    laid: Vec<Bytes>,
    /// The end of the pool: all higher offsets are unused.
    end: Bytes,
    /// The blocks and chunks examined for the last chunk.
    work: usize,
}

impl Pool {
    fn release(&mut self, mut block: Block) {
        if block.size == 0 {
            return;
        }
        let mut at = self.available.partition_point(|other| other.offset < block.offset);
        if at > 0 && self.available[at - 1].end() == block.offset {
            at -= 1;
            let below = self.available.remove(at);
            block = Block { offset: below.offset, size: below.size + block.size };
        }
        if let Some(above) = self.available.get_mut(at).filter(|above| above.offset == block.end())
        {
            *above = Block { offset: block.offset, size: block.size + above.size };
        } else {
            self.available.insert(at, block);
        }
    }

    /// Places the next chunk.
    fn alloc(&mut self, size: Bytes) {
        self.work += self.available.len();
        let fitting = (0..).zip(&self.available).filter(|(_, block)| block.size >= size);
        let smallest = fitting.min_by_key(|(_, block)| block.size).map(|(at, _)| at);
        let largest = || {
            // This finds the lowest of equal blocks.
            let blocks = self.available.iter().enumerate().rev();
            blocks.max_by_key(|(_, block)| block.size).map(|(at, _)| at)
        };
        if let Some(at) = smallest {
            let block = &mut self.available[at];
            self.laid.push(block.offset);
            *block = Block { offset: block.offset + size, size: block.size - size };
            if block.size == 0 {
                self.available.remove(at);
            }
        } else if let Some(at) = largest() {
            let block = self.available.remove(at);
            self.round_up(block.end(), size - block.size);
            self.laid.push(block.offset);
        } else {
            self.laid.push(self.end);
            self.end += size;
        }
    }

    /// Moves up everything that lies at or above an offset.
    fn round_up(&mut self, from: Bytes, by: Bytes) {
        self.work += self.laid.len() + self.available.len();
        for offset in &mut self.laid {
            *offset += if *offset >= from { by } else { 0 };
        }
        for block in &mut self.available {
            block.offset += if block.offset >= from { by } else { 0 };
        }
        self.end += by;
    }
}

/// The most blocks and chunks to examine, which takes one or two tenths of a second.
const MAX_WORK: u64 = 300_000_000;

/// Plans a problem as [`layout`] does, but gives up after one or two tenths of a second of work, as with
/// 10^4 chains of which a third is alive at once.
pub(crate) fn quick_layout(problem: &Problem, budget: Budget<'_>) -> Result<Layout, Stop> {
    layout(problem, &mut budget.at_most(MAX_WORK))
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.layout(problem, &place(&boxes.records, budget)?.offsets))
}
