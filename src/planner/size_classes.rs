//! Size classes: the fastest plan that shares memory, for where there is no time for a better one.
//!
//! **Idea.** Replay the run with an allocator that rounds every size up to one of four classes per power of
//! two. A chain takes the block of its class that became free last, otherwise a new one at the top.
//!
//! **Cost.** O(n) after sorting by step: for a million chunks, a tenth of what pushdown takes where many are alive
//! at once. The pool can be several times as large.

use std::collections::BTreeMap;

use crate::{
    Bytes, Problem,
    planner::{
        Layout,
        chunk_order::{ChunkOrder, Rank, RankLink},
        replay::{Allocator, replay},
    },
};

/// Plans a problem.
pub(super) fn layout(problem: &Problem) -> Layout {
    let order = ChunkOrder::new(problem);
    // Rounded up, sizes near the limits of 64 bits could exceed them.
    let is_rounded = problem.naive_size() < Bytes::MAX / 2;
    let bases = vec![0; order.len()];
    let mut blocks = Blocks { order: &order, is_rounded, bases, top: 0, free: BTreeMap::new() };
    replay(&order, &mut blocks, &mut || false);
    order.layout(|root| blocks.bases[root.index()])
}

struct Blocks<'a> {
    order: &'a ChunkOrder<'a>,
    is_rounded: bool,
    /// The offset of each root, by rank.
    bases: Vec<Bytes>,
    /// The end of the pool so far, aligned.
    top: Bytes,
    /// The offsets of the free blocks, by the size of their class.
    free: BTreeMap<Bytes, Vec<Bytes>>,
}

impl Blocks<'_> {
    /// The size of the blocks for a root.
    fn class(&self, root: Rank) -> Bytes {
        let size = self.order.get(root).size;
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
        self.free.entry(self.class(root)).or_default().push(self.bases[root.index()]);
    }

    fn alloc(&mut self, chunk: Rank) {
        let class = self.class(chunk);
        let base = self.free.get_mut(&class).and_then(Vec::pop);
        self.bases[chunk.index()] = base.unwrap_or(self.top);
        if base.is_none() {
            self.top = self.order.align_up(self.top + class);
        }
    }

    /// The block of a chain is free when its last chunk ends.
    fn alloc_overwrite(&mut self, _: Rank, _: RankLink) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, planner::search::samples::random_problem, verify::verify};

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
            let plan = Plan::from_offsets(&problem, &layout(&problem).offsets).unwrap();
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
            assert_eq!(layout(&problem).offsets, [0, if shares { 0 } else { 80 }], "{size}");
        }
        // A block has room for the largest size of its class, whatever lies in it first.
        let mut problem = Problem::builder();
        problem.chunk(0..1, 65);
        problem.chunk(0..2, 7);
        problem.chunk(1..2, 80);
        assert_eq!(layout(&problem.build().unwrap()).offsets, [0, 80, 0]);
    }
}
