//! The constraints of a problem beyond sizes, lifetimes and overwrites: pools, pins, holes, parts,
//! streams.
//!
//! A problem without such constraints is *unconstrained*. The constraints are only stated and checked here;
//! [`bodies`](crate::bodies) says what follows from them.

mod check;
mod clock;
mod features;
mod pools;

#[cfg(feature = "serde")]
pub(crate) use check::{APART, PART};
pub(crate) use check::{REQUEST, check, check_optional_parts, known};
pub(crate) use clock::{Clock, Clocks};
pub use features::Feature;
pub(crate) use pools::{Place, UsedBytes};
pub use pools::{Pool, PoolId};

use std::ops::Range;

use crate::{Bytes, Step, problem::ChunkId};

/// The step that stands for a clock where one number is needed: the sum of its entries, at most 2^64 - 1.
pub(crate) fn sum(clock: &[Step]) -> Step {
    clock.iter().fold(0, |sum: Step, &at| sum.saturating_add(at))
}

/// The bytes of a chunk that are needed in some steps, if not all are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) steps: Range<Step>,
    /// The bytes, from the start of the chunk.
    pub(crate) bytes: Range<Bytes>,
}

/// A chunk that lies inside a larger one, the whole, and shares its bytes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// The chunk inside.
    pub part: ChunkId,
    /// The chunk around it.
    pub whole: ChunkId,
    /// Bytes from the start of the whole.
    pub offset: Bytes,
}

impl Part {
    /// Places a chunk inside another, this many bytes from its start.
    #[must_use]
    pub const fn new(part: ChunkId, whole: ChunkId, offset: Bytes) -> Self {
        Self { part, whole, offset }
    }
}

/// The constraints on a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkConstraints {
    /// The alignment of the chunk's own offset, in bytes.
    pub(crate) alignment: Bytes,
    /// The steps in which it needs no bytes.
    pub(crate) holes: Vec<Range<Step>>,
    /// The steps in which it needs only some of its bytes.
    pub(crate) windows: Vec<Window>,
    /// The pools that it may lie in; all if `None`.
    pub(crate) pools: Option<Vec<PoolId>>,
    /// The place that it must have.
    pub(crate) pin: Option<Place>,
    /// The bytes that operators move to and from it; its size if `None`.
    pub(crate) traffic: Option<Bytes>,
    /// The stream of its producer.
    pub(crate) stream: usize,
}

impl ChunkConstraints {
    const NONE: Self = Self {
        alignment: 1,
        holes: Vec::new(),
        windows: Vec::new(),
        pools: None,
        pin: None,
        traffic: None,
        stream: 0,
    };

    /// Returns whether all bytes are needed in all steps of the chunk's life.
    pub(crate) fn is_whole(&self) -> bool {
        self.holes.is_empty() && self.windows.is_empty()
    }

    /// The same constraints this many steps later.
    pub(crate) fn later(mut self, by: Step) -> Self {
        let windows = self.windows.iter_mut().map(|window| &mut window.steps);
        for steps in self.holes.iter_mut().chain(windows) {
            *steps = steps.start.saturating_add(by)..steps.end.saturating_add(by);
        }
        self
    }
}

impl Default for ChunkConstraints {
    fn default() -> Self {
        Self::NONE
    }
}

/// The lifetime of a chunk on several streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) begin: Clock,
    pub(crate) end: Clock,
}

/// The constraints of a constrained problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraints {
    /// At least one pool.
    pub(crate) pools: Vec<Pool>,
    /// True if the caller listed the pools; false if the only pool is the default one.
    pub(crate) has_pools: bool,
    /// By chunk, up to the last one that has constraints of its own.
    pub(crate) own: Vec<ChunkConstraints>,
    pub(crate) parts: Vec<Part>,
    /// Groups of chunks that share no bytes of one pool, even if they are never alive together.
    pub(crate) apart: Vec<Vec<ChunkId>>,
    pub(crate) streams: usize,
    /// By chunk; empty if there is one stream.
    pub(crate) lives: Vec<Life>,
}

impl Constraints {
    /// One pool without limits, and no constraints on any chunk.
    pub(crate) fn none() -> Self {
        Self {
            pools: vec![Pool::new("pool")],
            has_pools: false,
            own: Vec::new(),
            parts: Vec::new(),
            apart: Vec::new(),
            streams: 1,
            lives: Vec::new(),
        }
    }

    /// The constraints on a chunk.
    pub(crate) fn of(&self, chunk: ChunkId) -> &ChunkConstraints {
        static NONE: ChunkConstraints = ChunkConstraints::NONE;
        self.own.get(chunk.index()).unwrap_or(&NONE)
    }
}
