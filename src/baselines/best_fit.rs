//! `MegEngine`'s best fit: an allocator with real addresses.
//!
//! **Idea.** Replay the run with an allocator that takes the smallest free range that holds the
//! chunk, the lowest of equal ones, or a new one at the top if none is large enough. An overwriter
//! lies in the place of the chunk that it overwrites; the rest of that chunk is free at once.
//!
//! **Cost.** O(n log n) time and O(n) memory.
//!
//! **When.** It shows what a caching allocator would do at run time. It is seldom better than
//! pushdown, because it places early chunks without regard to later ones.
//!
//! **Source.** `MegEngine`'s static memory allocator, `BEST_FIT` (2020). The offsets equal the
//! original's.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Bytes,
    baselines::{
        chunk_order::{ChunkOrder, Rank, RankLink},
        replay::{Allocator, replay},
    },
    budget::{Budget, Stop},
    plan::Layout,
    problem::Problem,
};

/// Plans a problem; the parts of overwrite chains are planned separately.
pub(super) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let order = ChunkOrder::new(problem);
    let mut memory = Memory {
        order: &order,
        offsets: vec![0; order.len()],
        top: 0,
        free: BTreeMap::new(),
        usable: BTreeSet::new(),
    };
    replay(&order, &mut memory, budget)?;
    Ok(order.layout(|root| memory.offsets[root.index()]))
}

/// A range of bytes, the end excluded.
#[derive(Clone, Copy)]
struct Range {
    begin: Bytes,
    end: Bytes,
}

struct Memory<'a> {
    order: &'a ChunkOrder<'a>,
    /// The offset of each chunk, by rank.
    offsets: Vec<Bytes>,
    /// The aligned end of the pool so far.
    top: Bytes,
    /// The free ranges, as end by begin. No two touch, except where rounding up cut a range off a
    /// chunk beside another free range.
    free: BTreeMap<Bytes, Bytes>,
    /// The free ranges that contain a byte at an aligned offset: by the number of bytes from there,
    /// then by that offset.
    usable: BTreeSet<(Bytes, Bytes)>,
}

impl Memory<'_> {
    fn usable(&self, range: Range) -> Option<(Bytes, Bytes)> {
        let begin = self.order.align_up(range.begin);
        (begin < range.end).then(|| (range.end - begin, begin))
    }

    fn add(&mut self, range: Range) {
        if range.begin < range.end {
            self.free.insert(range.begin, range.end);
            self.usable.extend(self.usable(range));
        }
    }

    fn remove(&mut self, range: Range) {
        self.free.remove(&range.begin);
        if let Some(usable) = self.usable(range) {
            self.usable.remove(&usable);
        }
    }

    /// Places a chunk at an offset inside a free range.
    fn place(&mut self, chunk: Rank, offset: Bytes) {
        self.offsets[chunk.index()] = offset;
        let end = offset + self.order.get(chunk).size;
        if let Some((&free_begin, &free_end)) = self.free.range(..=offset).next_back() {
            debug_assert!(end <= free_end, "the range is too small");
            self.remove(Range { begin: free_begin, end: free_end });
            self.add(Range { begin: free_begin, end: offset });
            self.add(Range { begin: end, end: free_end });
        }
    }
}

impl Allocator for Memory<'_> {
    fn free(&mut self, chunk: Rank) {
        let begin = self.offsets[chunk.index()];
        let mut range = Range { begin, end: begin + self.order.get(chunk).size };
        if let Some((&below, &end)) = self.free.range(..begin).next_back()
            && end == begin
        {
            self.remove(Range { begin: below, end });
            range.begin = below;
        }
        if let Some(&end) = self.free.get(&range.end) {
            self.remove(Range { begin: range.end, end });
            range.end = end;
        }
        self.add(range);
    }

    fn alloc(&mut self, chunk: Rank) {
        let size = self.order.get(chunk).size;
        if let Some(&(_, offset)) = self.usable.range((size, 0)..).next() {
            self.place(chunk, offset);
        } else {
            // A free range below the top is not extended.
            self.offsets[chunk.index()] = self.top;
            let end = self.top + size;
            self.top = self.order.align_up(end);
            self.add(Range { begin: end, end: self.top });
        }
    }

    fn alloc_overwrite(&mut self, chunk: Rank, link: RankLink) {
        self.free(link.overwritten);
        self.place(chunk, self.offsets[link.overwritten.index()] + link.offset);
    }
}
