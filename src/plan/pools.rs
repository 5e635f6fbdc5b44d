//! The parts of a plan for constrained problems: pools, and chunks inside others.

use crate::{
    Bytes, Plan, PlannedChunk, Problem,
    problem::{
        ChunkId,
        constraints::{Pool, PoolId, UsedBytes},
    },
};

/// A pool with the bytes that its chunks take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedPool {
    /// Its name.
    pub name: Box<str>,
    /// The number of bytes that the framework must reserve.
    pub size: Bytes,
    /// Its capacity in bytes, if it is limited.
    pub capacity: Option<Bytes>,
    /// The alignment of roots in this pool, in bytes. The alignment of the plan applies instead if it is larger.
    pub alignment: Bytes,
    /// The cost of a byte of traffic.
    pub cost: u64,
    /// The size of the buffers that the pool consists of, if no chunk may cross their boundaries: the
    /// buffer at index `i` begins at address `i * largest`.
    pub largest: Option<Bytes>,
}

/// A chunk that lies inside another one, or bytes of a chunk that are bytes of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PlannedPart {
    /// The chunk inside, by its place in [`Plan::chunks`].
    pub chunk: usize,
    /// The chunk around it, by its place in [`Plan::chunks`].
    pub whole: usize,
    /// Bytes from the start of the whole.
    pub offset: Bytes,
    /// The first byte of the chunk inside that lies there: 0 unless only some of them do.
    pub low: Bytes,
    /// The number of bytes that lie there: the whole chunk, or the bytes that a gathered view shows of it.
    pub size: Bytes,
}

impl PlannedPart {
    /// The parts of a problem.
    pub(crate) fn all_of(problem: &Problem) -> impl Iterator<Item = Self> {
        problem.parts().iter().map(|part| Self {
            chunk: part.part.index(),
            whole: part.whole.index(),
            offset: part.offset,
            low: 0,
            size: problem.chunk(part.part).size,
        })
    }
}

impl Plan {
    /// Adds the parts, windows and pins of a problem, and the traffic.
    pub(super) fn with_constraints(self, problem: &Problem) -> Self {
        if problem.is_unconstrained() {
            return self;
        }
        let pool = |chunk: ChunkId| self.chunks.get(chunk.index()).map_or(0, |chunk| chunk.pool);
        let traffic = problem.cost_of(|chunk| PoolId::from_index(pool(chunk)));
        let parts = PlannedPart::all_of(problem).collect();
        Self { parts, traffic, ..self }.with_windows(problem)
    }

    /// The figures that planning minimizes, the most important first: the cost of the traffic, then the sizes
    /// of the pools, the last pool first. For an unconstrained problem, the size of its pool alone.
    #[must_use]
    pub fn objective(&self) -> Vec<u128> {
        if self.pools.is_empty() {
            return vec![self.pool_size.into()];
        }
        let sizes = self.pools.iter().rev().map(|pool| u128::from(pool.size));
        std::iter::once(self.traffic).chain(sizes).collect()
    }

    /// The bytes that a run need not copy, because inputs already lie inside the outputs that gather
    /// them.
    #[must_use]
    pub fn not_copied(&self) -> Bytes {
        self.parts.iter().map(|part| part.size).fold(0, Bytes::saturating_add)
    }
}

/// Returns the pools of a constrained problem, with the sizes that its chunks take.
pub(super) fn planned_pools(problem: &Problem, chunks: &[PlannedChunk]) -> Vec<PlannedPool> {
    if problem.is_unconstrained() {
        return Vec::new();
    }
    let padded = |chunk: &PlannedChunk| chunk.size.saturating_add(problem.padding());
    let used = chunks.iter().filter(|chunk| chunk.size > 0);
    let used = used.map(|chunk| UsedBytes {
        pool: PoolId::from_index(chunk.pool),
        low: chunk.offset,
        high: chunk.offset.saturating_add(padded(chunk)),
    });
    let sizes = problem.pool_sizes(used);
    let pool = |(pool, size): (&Pool, Bytes)| PlannedPool {
        name: pool.name.clone(),
        size,
        capacity: pool.capacity,
        alignment: pool.alignment,
        cost: pool.cost,
        largest: pool.largest,
    };
    problem.pools().iter().zip(sizes).map(pool).collect()
}
