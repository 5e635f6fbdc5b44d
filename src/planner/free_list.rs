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

use crate::{
    Bytes, Problem,
    planner::{
        Layout,
        boxes::Boxes,
        objects::Offsets,
        records::{InUse, Records},
    },
};

/// Places records; the total is the final end of the pool.
#[must_use]
pub fn offsets(records: &Records) -> Offsets {
    place(records, u64::MAX, &mut || false).unwrap_or_default()
}

/// Places records. `None` if that takes more work than `most`, or if `stop` returns true.
fn place(records: &Records, most: u64, stop: &mut dyn FnMut() -> bool) -> Option<Offsets> {
    let mut pool = Pool::default();
    let mut in_use = InUse::default();
    let order = records.by_first_use();
    for (at, &index) in order.iter().enumerate() {
        if pool.work > most || at % PAUSE == PAUSE - 1 && stop() {
            return None;
        }
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
    Some(answer)
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
    /// The number of blocks and chunks examined.
    work: u64,
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
        self.work += self.available.len() as u64;
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
            self.lift(block.end(), size - block.size);
            self.laid.push(block.offset);
        } else {
            self.laid.push(self.end);
            self.end += size;
        }
    }

    /// Moves up everything that lies at or above an offset.
    fn lift(&mut self, from: Bytes, by: Bytes) {
        self.work += (self.laid.len() + self.available.len()) as u64;
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
const MOST_WORK: u64 = 300_000_000;

/// The number of chunks between two calls of `stop`.
const PAUSE: usize = 256;

/// Plans a problem as [`layout`] does. `None` if that takes more than one or two tenths of a
/// second of work, as with 10^4 chains of which a third is alive at once, or if `stop` returns true.
pub(super) fn quick_layout(problem: &Problem, stop: &mut dyn FnMut() -> bool) -> Option<Layout> {
    let boxes = Boxes::of(problem);
    Some(boxes.layout(problem, &place(&boxes.records, MOST_WORK, stop)?.offsets))
}

/// Plans a problem with every chain as a box.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.layout(problem, &offsets(&boxes.records).offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_plan_is_the_same_one_or_none() {
        let mut problem = Problem::builder();
        for step in 0..3 * PAUSE as u64 {
            problem.chunk(step..step + 1 + step % 7, 1 + step * 7919 % 4096);
        }
        let problem = problem.build().unwrap();
        assert_eq!(quick_layout(&problem, &mut || false), Some(layout(&problem)));
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked == 2
        };
        assert_eq!(quick_layout(&problem, &mut stop), None);
        assert_eq!(asked, 2);
        let records = Boxes::of(&problem).records;
        assert_eq!(place(&records, 1000, &mut || false), None);
    }
}
