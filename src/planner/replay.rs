//! The replay of a run (the book, Simulation): the order in which an allocator sees free, alloc and
//! alloc-overwrite.

use crate::{
    Step,
    planner::chunk_order::{ChunkOrder, Rank, RankLink},
};

/// Something that gives memory out and takes it back while the run is replayed.
pub(super) trait Allocator {
    /// The chunks of this step are next.
    fn enter(&mut self, _step: Step) {}

    /// A chunk that nothing overwrites has ended.
    fn free(&mut self, chunk: Rank);

    /// A root begins.
    fn alloc(&mut self, chunk: Rank);

    /// An overwriter begins.
    fn alloc_overwrite(&mut self, chunk: Rank, link: RankLink);
}

/// Walks over the steps; in each, frees come first, then roots, then overwriters, all in chunk
/// order.
pub(super) fn replay(order: &ChunkOrder<'_>, allocator: &mut impl Allocator) {
    let mut ends: Vec<(Step, Rank)> =
        order.ranks().map(|rank| (order.get(rank).end, rank)).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut arrived = Rank(0);
    while let Some(&(end, _)) = ends.peek() {
        // Every chunk begins before it ends, so some end is always left to come.
        let step = order.begin(arrived).map_or(end, |begin| begin.min(end));
        allocator.enter(step);
        while let Some((_, rank)) = ends.next_if(|&(end, _)| end == step) {
            if !order.is_overwritten(rank) {
                allocator.free(rank);
            }
        }
        let first = arrived;
        while order.begin(arrived) == Some(step) {
            arrived.0 += 1;
        }
        let arriving = || (first.0..arrived.0).map(Rank);
        for rank in arriving() {
            if order.link_of(rank).is_none() {
                allocator.alloc(rank);
            }
        }
        // After the allocs: an overwriter gives back the rest of the overwritten chunk one step
        // before that chunk's life ends.
        for rank in arriving() {
            if let Some(link) = order.link_of(rank) {
                allocator.alloc_overwrite(rank, link);
            }
        }
    }
}
