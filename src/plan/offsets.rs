//! A plan from somewhere else, of which only the offsets or places are known.

use crate::{
    Bytes, Plan, PlannedChunk, PlannedLink, Problem,
    problem::constraints::{Place, PoolId},
};

/// Offsets or places that do not belong to the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffsetsError {
    /// There are more or fewer offsets than chunks.
    #[error("there are {found} offsets, but the problem has {expected} chunks")]
    Count {
        /// The number of chunks.
        expected: usize,
        /// The number of offsets.
        found: usize,
    },
    /// A chunk does not end below 2^64 bytes.
    #[error("chunk '{chunk}' of {size} B does not end below 2^64 bytes at offset {offset}")]
    Beyond {
        /// The name of the chunk.
        chunk: String,
        /// Its size in bytes.
        size: Bytes,
        /// Its offset in bytes.
        offset: Bytes,
    },
}

impl Plan {
    /// Creates the plan that places the chunks of a problem at these offsets in bytes, by
    /// [`ChunkId`](crate::problem::ChunkId). A chunk overwrites another if the problem allows it and
    /// the offsets agree. The plan may be wrong: [`verify`](mod@crate::verify) it.
    ///
    /// ```
    /// use memplan::{Plan, Problem, verify::verify};
    ///
    /// let mut problem = Problem::builder();
    /// problem.chunk(0..2, 10);
    /// problem.chunk(1..3, 20);
    /// let problem = problem.build()?;
    /// assert_eq!(verify(&problem, &Plan::from_offsets(&problem, &[20, 0])?), []);
    /// assert!(!verify(&problem, &Plan::from_offsets(&problem, &[0, 0])?).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is not one offset per chunk, or a chunk does not end below 2^64 bytes.
    pub fn from_offsets(problem: &Problem, offsets: &[Bytes]) -> Result<Self, OffsetsError> {
        let places = offsets.iter().map(|&offset| Place::new(PoolId(0), offset));
        Self::from_places(problem, &places.collect::<Vec<_>>())
    }

    /// Creates the plan that places each chunk of a problem in a pool at an offset, by
    /// [`ChunkId`](crate::problem::ChunkId); for problems with several pools. Optional parts at their
    /// places lie inside.
    ///
    /// ```
    /// use memplan::{Plan, Problem, problem::{Place, Pool}, verify::verify};
    ///
    /// let mut problem = Problem::builder();
    /// let (fast, slow) = (problem.pool(Pool::new("fast").capacity(16)), problem.pool(Pool::new("slow")));
    /// problem.chunk(0..2, 10);
    /// problem.chunk(1..3, 20);
    /// let problem = problem.build()?;
    /// let plan = Plan::from_places(&problem, &[Place::new(fast, 0), Place::new(slow, 0)])?;
    /// assert_eq!(verify(&problem, &plan), []);
    /// let plan = Plan::from_places(&problem, &[Place::new(slow, 0), Place::new(fast, 0)])?;
    /// assert!(!verify(&problem, &plan).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`from_offsets`](Self::from_offsets).
    pub fn from_places(problem: &Problem, places: &[Place]) -> Result<Self, OffsetsError> {
        if places.len() != problem.len() {
            let (expected, found) = (problem.len(), places.len());
            return Err(OffsetsError::Count { expected, found });
        }
        let labels = problem.labels();
        let mut chunks = Vec::with_capacity(places.len());
        for (id, &place) in problem.ids().zip(places) {
            let (chunk, offset) = (problem.chunk(id), place.offset);
            let end = offset.checked_add(problem.padded_size(id));
            if end.and_then(|end| end.checked_add(problem.alignment())).is_none() {
                let (chunk, size) = (labels.name(id), chunk.size);
                return Err(OffsetsError::Beyond { chunk, size, offset });
            }
            let link = problem.link_in(id, |chunk| places[chunk.index()]);
            chunks.push(PlannedChunk {
                id: labels.number(id),
                name: labels.name(id).into(),
                size: chunk.size,
                begin: chunk.begin,
                end: chunk.end,
                pool: place.pool.index(),
                offset,
                overwrites: link.map(PlannedLink::of),
                object: None,
            });
        }
        let problem = problem.with_parts_at(|chunk| places[chunk.index()]);
        Ok(Self::of_chunks(&problem, chunks))
    }
}
