//! The answer of a planner.

use crate::{
    Bytes,
    planner::Strategy,
    problem::{ChunkId, Problem},
};

/// An offset in the pool for every chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// In bytes, by [`ChunkId`]; 0 for chunks without bytes.
    pub offsets: Vec<Bytes>,
    /// The shared objects, if the strategy answers with objects; they lie one after another.
    pub objects: Option<ObjectTable>,
    /// The strategy that made this layout, if several were tried.
    pub winner: Option<Strategy>,
    /// A lower bound in bytes that the planner proved; 0 if it proved none.
    pub lower_bound: Bytes,
}

/// The shared object of every chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectTable {
    /// The size of each object in bytes.
    pub sizes: Vec<Bytes>,
    /// The object of each chunk, by [`ChunkId`]; a chain shares one. `None` for chunks without
    /// bytes.
    pub of_chunk: Vec<Option<usize>>,
}

impl Layout {
    /// Places every chain as a rigid body, its root at `base(root)`.
    pub fn from_roots(problem: &Problem, base: impl Fn(ChunkId) -> Bytes) -> Self {
        let offsets = problem
            .ids()
            .map(|chunk| {
                let (root, offset) = problem.place_in_chain(chunk);
                if problem.chunk(chunk).size > 0 { base(root) + offset } else { 0 }
            })
            .collect();
        Self { offsets, ..Self::default() }
    }

    /// The offset of a chunk, in bytes.
    ///
    /// # Panics
    ///
    /// If the id belongs to another problem with more chunks.
    #[must_use]
    pub fn offset(&self, chunk: ChunkId) -> Bytes {
        self.offsets[chunk.index()]
    }

    /// The size of the pool in bytes: the highest end of a root, rounded up to the alignment
    /// (the book, Offsets and front space).
    #[must_use]
    pub fn pool_size(&self, problem: &Problem) -> Bytes {
        problem
            .roots()
            .map(|root| problem.align_up(self.offset(root) + problem.padded_size(root)))
            .max()
            .unwrap_or(0)
    }
}
