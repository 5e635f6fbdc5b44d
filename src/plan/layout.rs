//! The layout: the result of a strategy, before it becomes a plan.

use crate::{
    Bytes, Strategy,
    bodies::Body,
    bound::PeakSet,
    problem::{
        ChunkId, Problem,
        constraints::{Place, PoolId, UsedBytes},
    },
};

/// An offset in the pool for every chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// In bytes, by [`ChunkId`]; 0 for chunks without bytes.
    pub offsets: Vec<Bytes>,
    /// The pool of each chunk, by [`ChunkId`]; empty if the problem has one pool.
    pub pools: Vec<PoolId>,
    /// The sizes of the shared objects in bytes, which lie one after another; empty unless the strategy assigns chunks
    /// to objects.
    pub objects: Vec<Bytes>,
    /// The shared object of each chunk, by [`ChunkId`]; a chain shares one. `None` for chunks without bytes; empty
    /// without objects.
    pub object_of: Vec<Option<usize>>,
    /// The strategy that made this layout, if several were tried.
    pub winner: Option<Strategy>,
    /// A lower bound in bytes that the planner proved; 0 if it proved none.
    pub lower_bound: Bytes,
    /// True if a search proved that no layout is better. With one pool, a size equal to the lower bound
    /// proves it as well.
    pub is_proven: bool,
    /// The chunks that the lower bound counts, if there was no time for the heaviest peak set of the problem.
    pub(crate) peak_set: Option<PeakSet>,
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

    /// Places every chain, given these offsets of their roots.
    pub(crate) fn of_bases(
        problem: &Problem,
        bases: impl IntoIterator<Item = (ChunkId, Bytes)>,
    ) -> Self {
        let mut by_root = vec![0; problem.len()];
        for (root, base) in bases {
            by_root[root.index()] = base;
        }
        Self::from_roots(problem, |root| by_root[root.index()])
    }

    /// The peak set that the lower bound counts.
    pub(crate) fn peak_set<'a>(&'a self, problem: &'a Problem) -> &'a PeakSet {
        self.peak_set.as_ref().unwrap_or_else(|| problem.peak_set())
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

    /// Places every body.
    pub(crate) fn from_bodies(problem: &Problem, bodies: &[Body], places: &[Place]) -> Self {
        let mut offsets = vec![0; problem.len()];
        let mut pools = vec![PoolId::default(); problem.len()];
        for (Body { members, .. }, place) in bodies.iter().zip(places) {
            for &(chunk, at) in members {
                offsets[chunk.index()] = place.offset + at;
                pools[chunk.index()] = place.pool;
            }
        }
        if problem.pools().len() < 2 {
            pools.clear();
        }
        Self { offsets, pools, ..Self::default() }
    }

    /// The pool of a chunk.
    #[must_use]
    pub fn pool(&self, chunk: ChunkId) -> PoolId {
        self.pools.get(chunk.index()).copied().unwrap_or_default()
    }

    /// The size of each pool of a constrained problem, in bytes.
    #[must_use]
    pub fn pool_sizes(&self, problem: &Problem) -> Vec<Bytes> {
        let used = problem.ids().filter(|&chunk| problem.chunk(chunk).size > 0);
        problem.pool_sizes(used.map(|chunk| {
            let low = self.offset(chunk);
            let high = low.saturating_add(problem.padded_size(chunk));
            UsedBytes { pool: self.pool(chunk), low, high }
        }))
    }

    /// The figures that planning minimizes, the most important first: the traffic, then the sizes of the
    /// pools, the last pool first.
    #[must_use]
    pub fn objective(&self, problem: &Problem) -> Vec<u128> {
        if problem.is_unconstrained() {
            return vec![self.pool_size(problem).into()];
        }
        let sizes = self.pool_sizes(problem).into_iter().rev().map(u128::from);
        std::iter::once(problem.cost_of(|chunk| self.pool(chunk))).chain(sizes).collect()
    }

    /// The size of the pool in bytes: the highest end of a chunk, rounded up to the alignment (the
    /// book, Offsets and front space). If the problem is constrained, the sum over its pools.
    #[must_use]
    pub fn pool_size(&self, problem: &Problem) -> Bytes {
        if !problem.is_unconstrained() {
            return self.pool_sizes(problem).into_iter().sum();
        }
        // A chunk ends within the one that it overwrites, or overwrites none.
        let used = problem.ids().filter(|&chunk| problem.chunk(chunk).size > 0);
        let ends = used.map(|chunk| self.offset(chunk) + problem.padded_size(chunk));
        problem.align_up(ends.max().unwrap_or(0))
    }
}
