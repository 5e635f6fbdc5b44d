//! The replay of a run (the book, Simulation): the order in which free, alloc and alloc-overwrite
//! reach an allocator.

use crate::{
    Step,
    baselines::chunk_order::{ChunkOrder, Rank, RankLink},
    budget::{Budget, Stop},
};

/// An allocator that the replay drives.
pub(super) trait Allocator {
    /// Announces the step of the following calls.
    fn enter(&mut self, _step: Step) {}

    /// Frees a chunk at its end, unless another chunk overwrites it.
    fn free(&mut self, chunk: Rank);

    /// Allocates a root at its beginning.
    fn alloc(&mut self, chunk: Rank);

    /// Allocates an overwriter at its beginning.
    fn alloc_overwrite(&mut self, chunk: Rank, link: RankLink);
}

/// The work for each chunk: it takes as long as passing this many entries of a list.
pub(super) const CHUNK: usize = 16;

/// Walks over the steps. In each step frees come first, then roots, then overwriters, all in chunk
/// order.
pub(super) fn replay(
    order: &ChunkOrder<'_>,
    allocator: &mut impl Allocator,
    budget: &mut Budget<'_>,
) -> Result<(), Stop> {
    let mut ends = order.ends().iter().peekable();
    let mut arrived = Rank(0);
    while let Some(&&(end, _)) = ends.peek() {
        // Every chunk begins before it ends, so an end remains until all have begun.
        let step = order.begin(arrived).map_or(end, |begin| begin.min(end));
        allocator.enter(step);
        while let Some(&(_, rank)) = ends.next_if(|(end, _)| *end == step) {
            if !order.is_overwritten(rank) {
                allocator.free(rank);
            }
        }
        let first = arrived;
        while order.begin(arrived) == Some(step) {
            arrived.0 += 1;
        }
        budget.spend(CHUNK * (arrived.index() - first.index()))?;
        let arriving = || (first.0..arrived.0).map(Rank);
        for rank in arriving() {
            if order.link_of(rank).is_none() {
                allocator.alloc(rank);
            }
        }
        // Overwriters come after the roots because each one frees the rest of the overwritten chunk
        // one step before that chunk's lifetime ends.
        for rank in arriving() {
            if let Some(link) = order.link_of(rank) {
                allocator.alloc_overwrite(rank, link);
            }
        }
    }
    Ok(())
}
