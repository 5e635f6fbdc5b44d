//! The replay of a run (spec 4): the order in which an allocator sees free, alloc and
//! alloc-overwrite.

use crate::{
    Step,
    problem::{ChunkId, Link, Problem},
};

/// Something that gives memory out and takes it back while the run is replayed.
pub(super) trait Allocator {
    /// The chunks of this step are next.
    fn enter(&mut self, _step: Step) {}

    /// A chunk that nothing overwrites has ended.
    fn free(&mut self, chunk: ChunkId);

    /// A root begins.
    fn alloc(&mut self, chunk: ChunkId);

    /// An overwriter begins.
    fn alloc_overwrite(&mut self, chunk: ChunkId, link: Link);
}

/// Walks over the steps; in each, frees come first, then roots, then overwriters, all in chunk
/// order.
pub(super) fn replay(problem: &Problem, allocator: &mut impl Allocator) {
    let begins = problem.chunk_order();
    let mut ends: Vec<(Step, u32)> =
        (0..).zip(&begins).map(|(rank, &chunk)| (problem.chunk(chunk).end, rank)).collect();
    ends.sort_unstable();
    let (mut next_begin, mut next_end) = (0, 0);
    while let Some(&(end, _)) = ends.get(next_end) {
        let begin = |at: usize| begins.get(at).map(|&chunk| problem.chunk(chunk).begin);
        let step = begin(next_begin).map_or(end, |begin| begin.min(end));
        allocator.enter(step);
        while let Some(&(_, rank)) = ends.get(next_end).filter(|(end, _)| *end == step) {
            let chunk = begins[rank as usize];
            if problem.overwriter(chunk).is_none() {
                allocator.free(chunk);
            }
            next_end += 1;
        }
        let first = next_begin;
        while begin(next_begin) == Some(step) {
            next_begin += 1;
        }
        let arriving = &begins[first..next_begin];
        for &chunk in arriving {
            if problem.link(chunk).is_none() {
                allocator.alloc(chunk);
            }
        }
        // After the allocs: an overwriter gives back the rest of the overwritten chunk one step
        // before that chunk's life ends.
        for &chunk in arriving {
            if let Some(link) = problem.link(chunk) {
                allocator.alloc_overwrite(chunk, link);
            }
        }
    }
}
