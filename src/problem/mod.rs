//! Memory chunks with lifetimes: the input of every planner.
//!
//! A [`Problem`] lists chunks, each a run of bytes alive in a half-open range of steps, and the
//! requests of chunks to overwrite others. It is checked when it is built: lifetimes are not
//! empty, requests fit, and no sum of sizes overflows; a [`ProblemError`] says what is wrong. Each
//! accepted request becomes a link, and chunks joined by links form
//! [chains](Problem::chain), which move as one rigid body.
//!
//! ```
//! use memplan::Problem;
//!
//! let mut problem = Problem::builder();
//! let activation = problem.chunk(0..2, 4096);
//! let relu = problem.chunk(1..3, 4096);
//! problem.overwrite(relu, activation, 0);
//! let problem = problem.build()?;
//! assert_eq!(problem.overwritten(relu), Some((activation, 0)));
//! # Ok::<(), memplan::ProblemError>(())
//! ```

mod builder;
mod concat;
pub(crate) mod constraints;
pub(crate) mod error;
#[cfg(feature = "serde")]
mod file;
mod labels;
pub(crate) mod links;
#[cfg(feature = "serde")]
pub(crate) mod moment;
mod without;

pub(crate) use crate::bodies::Segment;
pub use builder::ProblemBuilder;
pub use constraints::{Feature, Part, Pool, PoolId};
pub(crate) use error::ProblemError;
#[cfg(feature = "serde")]
pub(crate) use file::ProblemFile;
pub(crate) use labels::{Ids, Labels};
pub(crate) use links::{Link, Links, Rejected};
pub use links::{RejectReason, Request};

use std::sync::{Arc, LazyLock, OnceLock};

use crate::{
    Bytes, Step,
    bodies::{Body, BodyLifetimes},
    bound::PeakSet,
    steps::sorted_by_step,
};

/// The index of a chunk in its [`Problem`], from 0.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub u32);

impl ChunkId {
    /// The index of the chunk in tables with an entry per chunk.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id of the chunk at an index of such a table.
    ///
    /// # Panics
    ///
    /// If the index does not fit in a `u32`; no checked problem has that many chunks.
    #[must_use]
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("a problem has fewer than 2^32 chunks"))
    }
}

impl std::fmt::Debug for ChunkId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// A memory chunk: a run of bytes with a lifetime, the smallest unit that is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk {
    /// The step of the operator that produces the chunk.
    pub begin: Step,
    /// The last step that reads the chunk, plus 1; greater than `begin`.
    pub end: Step,
    /// The size in bytes, without padding. A chunk of 0 bytes takes no part in planning and lies
    /// at offset 0.
    pub size: Bytes,
}

/// A checked list of chunks, with the overwrite links between them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "ProblemFile", into = "ProblemFile")
)]
pub struct Problem {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) requests: Vec<Request>,
    /// The accepted requests, derived from the two fields above.
    pub(crate) links: Links,
    /// The names and ids of the chunks in messages and files.
    pub(crate) labels: Labels,
    pub(crate) alignment: Bytes,
    pub(crate) padding: Bytes,
    pub(crate) steps: Step,
    /// `None` if the problem is unconstrained. Copies of a problem share it.
    pub(crate) extra: Option<Arc<Constrained>>,
    /// Copies of a problem share it.
    pub(crate) derived: Arc<Derived>,
    pub(crate) optional_parts: Vec<constraints::Part>,
}

/// What follows from a problem, computed when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// The heaviest peak set.
    pub(crate) peak_set: OnceLock<PeakSet>,
    /// The bodies of an unconstrained problem.
    pub(crate) bodies: OnceLock<Vec<Body>>,
    /// The problem in steps, if there is one.
    pub(crate) linear: OnceLock<Option<Problem>>,
    /// The lives of the bodies of a constrained problem.
    pub(crate) lives: OnceLock<BodyLifetimes>,
}

/// Always equal, because the fields that it follows from are compared themselves.
impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The constraints of a constrained problem, and the bodies that follow from them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constrained {
    pub(crate) constraints: constraints::Constraints,
    pub(crate) bodies: Vec<Body>,
    pub(crate) refused: Vec<Rejected>,
}

impl Problem {
    /// Starts an empty problem: alignment 1, no padding.
    #[must_use]
    pub fn builder() -> ProblemBuilder {
        ProblemBuilder::default()
    }

    /// All chunks, by [`ChunkId`].
    #[must_use]
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The number of chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Returns whether the problem has no chunks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The chunk with this id.
    ///
    /// # Panics
    ///
    /// If the id belongs to another problem with more chunks.
    #[must_use]
    pub fn chunk(&self, chunk: ChunkId) -> &Chunk {
        &self.chunks[chunk.index()]
    }

    /// All ids, ascending.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = ChunkId> + Clone + use<> {
        let count = u32::try_from(self.chunks.len()).unwrap_or(u32::MAX);
        (0..count).map(ChunkId)
    }

    /// The chunks that overwrite nothing and have at least one byte. Each is the root of a chain,
    /// and a plan is a choice of their offsets.
    pub fn roots(&self) -> impl Iterator<Item = ChunkId> + '_ {
        self.ids().filter(|&c| self.chunk(c).size > 0 && self.links.get(c).is_none())
    }

    /// The number of bytes to reserve for a chunk, its size plus the padding; 0 for an empty chunk.
    ///
    /// # Panics
    ///
    /// If the id belongs to another problem with more chunks.
    #[must_use]
    pub fn padded_size(&self, chunk: ChunkId) -> Bytes {
        match self.chunk(chunk).size {
            0 => 0,
            size => size + self.padding,
        }
    }

    /// The chunk that this one overwrites, if any, and the distance in bytes from the start of that chunk to the start
    /// of this one; negative if this one begins below it.
    #[must_use]
    pub fn overwritten(&self, overwriter: ChunkId) -> Option<(ChunkId, i128)> {
        self.link(overwriter).map(|link| (link.overwritten, link.distance()))
    }

    /// The link by which a chunk overwrites another, if any.
    pub(crate) fn link(&self, overwriter: ChunkId) -> Option<Link> {
        self.links.get(overwriter)
    }

    /// The link of an overwriter, if these places put it at the link's distance from the overwritten chunk.
    pub(crate) fn link_in(
        &self,
        overwriter: ChunkId,
        place: impl Fn(ChunkId) -> constraints::Place,
    ) -> Option<Link> {
        self.link(overwriter).filter(|link| {
            let (new, old) = (place(overwriter), place(link.overwritten));
            let distance = i128::from(new.offset) - i128::from(old.offset);
            (new.pool, distance) == (old.pool, link.distance())
        })
    }

    /// The chunk that overwrites this one, if any.
    #[must_use]
    pub fn overwriter(&self, overwritten: ChunkId) -> Option<ChunkId> {
        self.links.overwriter(overwritten)
    }

    /// The root of the chain that holds a chunk, and the chunk's offset from it in bytes.
    #[must_use]
    pub fn place_in_chain(&self, chunk: ChunkId) -> (ChunkId, Bytes) {
        self.links.place(chunk)
    }

    /// Returns whether any request is accepted.
    #[must_use]
    pub fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// The number of requests that are accepted.
    #[must_use]
    pub fn links_taken(&self) -> usize {
        self.links.count()
    }

    /// The requests to overwrite, in the order given, accepted or not.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The requests that are accepted, in the order given.
    pub(crate) fn accepted_requests(&self) -> impl Iterator<Item = Request> + '_ {
        self.requests.iter().copied().filter(|request| self.links.is_accepted(request))
    }

    /// The requests that are not accepted, by their index in [`requests`](Self::requests), with the reasons.
    #[must_use]
    pub fn refused(&self) -> Vec<(usize, RejectReason)> {
        if let Some(extra) = &self.extra {
            return extra.refused.clone();
        }
        let (_, mut dropped) = Links::resolve(&self.chunks, &self.requests);
        dropped.sort_by_key(|&(request, _)| request);
        dropped
    }

    /// The alignment of every root's offset in bytes, a power of two.
    #[must_use]
    pub fn alignment(&self) -> Bytes {
        self.alignment
    }

    /// The bytes added to the size of every chunk.
    #[must_use]
    pub fn padding(&self) -> Bytes {
        self.padding
    }

    /// The number of steps; every chunk ends by then.
    #[must_use]
    pub fn steps(&self) -> Step {
        self.steps
    }

    /// Returns whether the problem has no constraints beyond sizes, lifetimes and overwrites.
    #[must_use]
    pub fn is_unconstrained(&self) -> bool {
        self.extra.is_none()
    }

    /// Returns whether chunks lie inside others.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        !self.parts().is_empty()
    }

    /// The chunks that must lie inside others, in the order given.
    #[must_use]
    pub fn parts(&self) -> &[constraints::Part] {
        &self.all_constraints().parts
    }

    /// The chunks that may lie inside others, in the order given.
    #[must_use]
    pub fn optional_parts(&self) -> &[constraints::Part] {
        &self.optional_parts
    }

    /// The pools, at least one. An unconstrained problem has one without limits.
    #[must_use]
    pub fn pools(&self) -> &[constraints::Pool] {
        &self.all_constraints().pools
    }

    /// The bytes that operators move to and from a chunk.
    pub(crate) fn traffic(&self, chunk: ChunkId) -> Bytes {
        self.all_constraints().of(chunk).traffic.unwrap_or(self.chunk(chunk).size)
    }

    /// The constraints of a constrained problem.
    pub(crate) fn constraints(&self) -> Option<&constraints::Constraints> {
        self.extra.as_deref().map(|extra| &extra.constraints)
    }

    /// The constraints; of an unconstrained problem, those that bind nothing.
    pub(crate) fn all_constraints(&self) -> &constraints::Constraints {
        static NONE: LazyLock<constraints::Constraints> =
            LazyLock::new(constraints::Constraints::none);
        self.constraints().unwrap_or(&NONE)
    }

    /// The number of streams.
    pub(crate) fn streams(&self) -> usize {
        self.all_constraints().streams
    }

    /// Rounds a size or offset in bytes up to the alignment.
    #[must_use]
    pub fn align_up(&self, bytes: Bytes) -> Bytes {
        align_up(bytes, self.alignment)
    }

    /// Returns the same chunks and requests under another alignment in bytes.
    ///
    /// # Errors
    ///
    /// If the alignment is not a power of two, or the sum of the sizes exceeds 64 bits.
    pub fn with_alignment(self, bytes: Bytes) -> Result<Self, ProblemError> {
        if bytes == self.alignment {
            return Ok(self);
        }
        self.into_builder().alignment(bytes).finish()
    }

    /// Returns the same chunks and requests with another padding in bytes.
    ///
    /// # Errors
    ///
    /// If the sum of the sizes exceeds 64 bits, or a required overwriter has no room for its padding.
    pub fn with_padding(self, bytes: Bytes) -> Result<Self, ProblemError> {
        if bytes == self.padding {
            return Ok(self);
        }
        self.into_builder().padding(bytes).finish().map_err(|error| match error {
            ProblemError::RequiredOverwrite {
                overwriter,
                overwritten,
                reason: RejectReason::Clash,
            } => {
                let reason = RejectReason::PaddingClash;
                ProblemError::RequiredOverwrite { overwriter, overwritten, reason }
            }
            error => error,
        })
    }

    /// The problem of `chunks` alone, given in ascending order, with the requests and parts that
    /// involve only these chunks.
    pub(crate) fn subset(
        &self,
        chunks: &[ChunkId],
        requests: impl Iterator<Item = Request>,
        parts: impl Iterator<Item = constraints::Part>,
    ) -> Result<Self, ProblemError> {
        let place = |chunk: ChunkId| chunks.binary_search(&chunk).ok().map(ChunkId::from_index);
        let mut builder = Self::builder().alignment(self.alignment).padding(self.padding);
        for &chunk in chunks {
            let Chunk { begin, end, size } = *self.chunk(chunk);
            builder.chunk(begin..end, size);
        }
        if let Some(constraints) = self.constraints() {
            builder.pools(constraints.pools.clone());
            builder.streams(constraints.streams);
            for (at, chunk) in chunks.iter().enumerate() {
                let id = ChunkId::from_index(at);
                let own = constraints.of(*chunk).clone();
                if let Some(constraints::Life { begin, end }) = constraints.lives.get(chunk.index())
                {
                    builder.life(id, begin.clone(), end.clone(), own.stream);
                }
                builder.constrain(id, own);
            }
        }
        for request in requests {
            if let (Some(overwriter), Some(overwritten)) =
                (place(request.overwriter), place(request.overwritten))
            {
                builder.request(Request { overwriter, overwritten, ..request });
            }
        }
        for part in parts {
            if let (Some(inside), Some(whole)) = (place(part.part), place(part.whole)) {
                builder.part(inside, whole, part.offset);
            }
        }
        builder.finish()
    }

    /// Starts a problem with the same chunks and all that is stated about them, to add more.
    #[must_use]
    pub fn into_builder(self) -> ProblemBuilder {
        ProblemBuilder {
            chunks: self.chunks,
            requests: self.requests,
            labels: self.labels,
            alignment: self.alignment,
            padding: self.padding,
            steps: self.steps,
            constraints: self.extra.map(|extra| Box::new(Arc::unwrap_or_clone(extra).constraints)),
            optional_parts: self.optional_parts,
        }
    }

    /// The sum of all chunks' padded and aligned sizes in bytes: the memory of one buffer per chunk.
    #[must_use]
    pub fn naive_size(&self) -> Bytes {
        self.ids().map(|c| self.align_up(self.padded_size(c))).sum()
    }

    /// All chunks of at least one byte in *chunk order*: by `begin`, then `end`, then position (the
    /// book, Simulation). Every planner that walks over time uses this order, so ties are the same
    /// everywhere.
    #[must_use]
    pub fn chunk_order(&self) -> Vec<ChunkId> {
        let begin = |&id: &ChunkId| self.chunk(id).begin;
        let mut order: Vec<ChunkId> = Vec::with_capacity(self.len());
        order.extend(self.ids().filter(|&id| self.chunk(id).size > 0));
        if !order.is_sorted_by_key(begin) {
            order = sorted_by_step(order.iter().copied(), self.steps, begin);
        }
        let begun_together =
            |&a: &ChunkId, &b: &ChunkId| self.chunk(a).begin == self.chunk(b).begin;
        for chunks in order.chunk_by_mut(begun_together).filter(|chunks| chunks.len() > 1) {
            // Chunks are in the order of their positions so far.
            chunks.sort_by_key(|&id| self.chunk(id).end);
        }
        order
    }
}

/// Rounds `bytes` up to a multiple of `alignment`, which is a power of two.
pub(crate) const fn align_up(bytes: Bytes, alignment: Bytes) -> Bytes {
    (bytes + (alignment - 1)) & !(alignment - 1)
}
