//! Size classes: the fastest plan that shares memory, for where there is no time for a better one.
//!
//! **Idea.** Replay the run with an allocator that rounds every size up to one of four classes per power of
//! two. A chain takes the block of its class that became free last, otherwise a new one at the top.
//!
//! **Cost.** O(n) after sorting by step: for a million chunks, a tenth of what pushdown takes where many are alive
//! at once. The pool can be several times as large.

use std::collections::BTreeMap;

use crate::{
    Bytes,
    planner::{
        Layout,
        chunk_order::{ChunkOrder, Rank, RankLink},
        replay::{Allocator, replay},
    },
};

/// Plans a problem.
pub(super) fn layout(order: &ChunkOrder<'_>) -> Layout {
    // Rounded up, sizes near the limits of 64 bits could exceed them.
    let is_rounded = order.problem().naive_size() < Bytes::MAX / 2;
    let held = vec![Block::default(); order.len()];
    let (classes, free) = (BTreeMap::new(), Vec::new());
    let mut blocks = Blocks { order, is_rounded, held, top: 0, classes, free };
    replay(order, &mut blocks, &mut || false);
    order.layout(|root| blocks.held[root.index()].offset)
}

struct Blocks<'a> {
    order: &'a ChunkOrder<'a>,
    is_rounded: bool,
    /// The block of each root, by rank.
    held: Vec<Block>,
    /// The end of the pool so far, aligned.
    top: Bytes,
    /// The number of each class, by the size of its blocks.
    classes: BTreeMap<Bytes, usize>,
    /// The offsets of the free blocks, by number of the class.
    free: Vec<Vec<Bytes>>,
}

#[derive(Clone, Copy, Default)]
struct Block {
    offset: Bytes,
    /// The number of its class.
    class: usize,
}

impl Blocks<'_> {
    /// The size of the blocks for a chunk of this size.
    fn class(&self, size: Bytes) -> Bytes {
        if !self.is_rounded {
            return size;
        }
        let step = 1 << size.checked_ilog2().unwrap_or(0).saturating_sub(2);
        size.next_multiple_of(step)
    }
}

impl Allocator for Blocks<'_> {
    fn free(&mut self, chunk: Rank) {
        let (root, _) = self.order.place(chunk);
        let Block { offset, class } = self.held[root.index()];
        self.free[class].push(offset);
    }

    fn alloc(&mut self, chunk: Rank) {
        let size = self.class(self.order.get(chunk).size);
        let class = *self.classes.entry(size).or_insert(self.free.len());
        if class == self.free.len() {
            self.free.push(Vec::new());
        }
        let offset = self.free[class].pop().unwrap_or_else(|| {
            let offset = self.top;
            self.top = self.order.align_up(offset + size);
            offset
        });
        self.held[chunk.index()] = Block { offset, class };
    }

    /// The block of a chain is free when its last chunk ends.
    fn alloc_overwrite(&mut self, _: Rank, _: RankLink) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Problem, planner::search::samples::random_problem, verify::verify};

    fn offsets(problem: &Problem) -> Vec<Bytes> {
        layout(&ChunkOrder::new(problem)).offsets
    }

    #[test]
    fn plans_in_size_classes_are_right_however_large_the_sizes_are() {
        let shift = [0, 8, 56];
        arbtest::arbtest(|random| {
            let small = random_problem(random)?;
            let shift = random.choose(&shift)?;
            let mut problem = Problem::builder().alignment(small.alignment());
            let ids: Vec<_> = small
                .ids()
                .map(|id| {
                    let chunk = small.chunk(id);
                    problem.chunk(chunk.begin..chunk.end, chunk.size << shift)
                })
                .collect();
            for id in small.ids() {
                if let Some(link) = small.link(id) {
                    let over = ids[link.overwritten.index()];
                    problem.overwrite(ids[id.index()], over, link.offset << shift);
                }
            }
            let Ok(problem) = problem.build() else { return Ok(()) };
            let plan = Plan::from_offsets(&problem, &offsets(&problem)).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            Ok(())
        })
        .budget_ms(200);
    }

    /// Chunks of a class share a block, others do not.
    #[test]
    fn a_block_is_shared_by_chunks_of_its_class() {
        for (size, shares) in [(80, true), (79, true), (65, true), (64, false), (81, false)] {
            let mut problem = Problem::builder();
            problem.chunk(0..1, 80);
            problem.chunk(1..2, size);
            let problem = problem.build().unwrap();
            assert_eq!(offsets(&problem), [0, if shares { 0 } else { 80 }], "{size}");
        }
        // A block has room for the largest size of its class, whatever lies in it first.
        let mut problem = Problem::builder();
        problem.chunk(0..1, 65);
        problem.chunk(0..2, 7);
        problem.chunk(1..2, 80);
        assert_eq!(offsets(&problem.build().unwrap()), [0, 80, 0]);
    }
}
