//! Plans from other planners, of which only the offsets or places are known.

use crate::{
    Bytes, Plan, PlanError, PlannedChunk, PlannedLink, Problem,
    problem::{
        ChunkId,
        constraints::{Place, PoolId},
    },
};

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
    pub fn from_offsets(problem: &Problem, offsets: &[Bytes]) -> Result<Self, PlanError> {
        let places = offsets.iter().map(|&offset| (PoolId(0), offset));
        Self::from_places(problem, &places.collect::<Vec<_>>())
    }

    /// Creates the plan that places each chunk of a problem in a pool at an offset in bytes, by
    /// [`ChunkId`](crate::problem::ChunkId); for problems with several pools. An optional part counts as
    /// inside its whole if its place agrees.
    ///
    /// ```
    /// use memplan::{Plan, Problem, problem::Pool, verify::verify};
    ///
    /// let mut problem = Problem::builder();
    /// let (fast, slow) = (problem.pool(Pool::new("fast").capacity(16)), problem.pool(Pool::new("slow")));
    /// problem.chunk(0..2, 10);
    /// problem.chunk(1..3, 20);
    /// let problem = problem.build()?;
    /// let plan = Plan::from_places(&problem, &[(fast, 0), (slow, 0)])?;
    /// assert_eq!(verify(&problem, &plan), []);
    /// let plan = Plan::from_places(&problem, &[(slow, 0), (fast, 0)])?;
    /// assert!(!verify(&problem, &plan).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`from_offsets`](Self::from_offsets).
    pub fn from_places(problem: &Problem, places: &[(PoolId, Bytes)]) -> Result<Self, PlanError> {
        if places.len() != problem.len() {
            let (expected, found) = (problem.len(), places.len());
            return Err(PlanError::OffsetCount { expected, found });
        }
        let mut chunks = Vec::with_capacity(places.len());
        let place = |chunk: ChunkId| {
            let (pool, offset) = places[chunk.index()];
            Place::new(pool, offset)
        };
        for id in problem.ids() {
            let (chunk, Place { pool, offset }) = (problem.chunk(id), place(id));
            let end = offset.checked_add(problem.padded_size(id));
            if end.and_then(|end| end.checked_add(problem.alignment())).is_none() {
                let (chunk, size) = (problem.name(id), chunk.size);
                return Err(PlanError::BeyondAddresses { chunk, size, offset });
            }
            let link = problem.link_in(id, place);
            chunks.push(PlannedChunk {
                id: problem.number(id),
                name: problem.name(id).into(),
                size: chunk.size,
                begin: chunk.begin,
                end: chunk.end,
                pool: pool.index(),
                offset,
                overwrites: link.map(PlannedLink::of),
                object: None,
            });
        }
        let problem = problem.with_parts_at(place);
        Ok(Self::of_chunks(&problem, chunks))
    }
}
