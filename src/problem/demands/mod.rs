//! The demands of a problem beyond sizes, lifetimes and overwrites: pools, pins, holes, parts,
//! streams.
//!
//! A plan chooses a [`Place`] for each *body*, chunks joined by links, and two bodies of one pool may not
//! clash. Everything here defines bodies, places or clashes. A problem without such demands is *plain*.

mod antichain;
mod bodies;
mod body;
mod boxes;
mod bytes;
mod chain_index;
mod chains;
mod check;
mod cliques;
mod clock;
mod clock_tree;
mod fault;
mod features;
mod free_bytes;
mod line;
mod lives;
mod peak_set;
mod pinned;
mod pools;
mod short_list;

pub(crate) use bodies::{Bodies, BodyBuilder, Resolved};
pub use body::{AllowedPool, Body};
pub use boxes::TimedBox;
pub(crate) use boxes::{TimedBoxes, View, concurrent, is_over};
pub(crate) use chain_index::ChainIndex;
pub(crate) use chains::{Chains, by_sum, chains, in_chains, wide_sum};
#[cfg(feature = "serde")]
pub(crate) use check::{APART, PART};
pub(crate) use check::{REQUEST, check, check_optional_parts};
pub use clock::Clock;
pub(crate) use clock::Clocks;
pub(crate) use clock_tree::{BoxTree, ClockTree, ranks};
pub(crate) use fault::Fault;
pub use features::Feature;
pub(crate) use features::UnsupportedFeature;
pub(crate) use line::{Line, longest_chains};
pub(crate) use lives::{BodyLives, Lives};
pub(crate) use peak_set::PeakSet;
pub(crate) use pools::UsedBytes;
pub use pools::{Place, Pool, PoolId};
pub use short_list::ShortList;

use std::ops::Range;

use crate::{Bytes, Step, problem::ChunkId};

/// The step that stands for a clock where one number is needed: the steps that are over on all streams.
pub(crate) fn sum(clock: &[Step]) -> Step {
    clock.iter().fold(0, |sum: Step, &at| sum.saturating_add(at))
}

/// The bytes of a chunk that are needed in some steps, if not all are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// The steps.
    pub steps: Range<Step>,
    /// The bytes, from the start of the chunk.
    pub bytes: Range<Bytes>,
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

/// The demands on a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkDemands {
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

impl ChunkDemands {
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

    /// The same demands this many steps later.
    pub(crate) fn later(mut self, by: Step) -> Self {
        let windows = self.windows.iter_mut().map(|window| &mut window.steps);
        for steps in self.holes.iter_mut().chain(windows) {
            *steps = steps.start.saturating_add(by)..steps.end.saturating_add(by);
        }
        self
    }
}

impl Default for ChunkDemands {
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

/// The demands of a problem that is not plain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demands {
    /// At least one pool.
    pub(crate) pools: Vec<Pool>,
    /// True if the caller listed them.
    pub(crate) has_pools: bool,
    /// By chunk, up to the last one that has demands of its own.
    pub(crate) own: Vec<ChunkDemands>,
    pub(crate) parts: Vec<Part>,
    /// Groups of chunks that share no bytes of one pool, even if they are never alive together.
    pub(crate) apart: Vec<Vec<ChunkId>>,
    pub(crate) streams: usize,
    /// By chunk; empty if there is one stream.
    pub(crate) lives: Vec<Life>,
}

impl Demands {
    /// One pool without limits, and no demands on any chunk.
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

    /// The demands on a chunk.
    pub(crate) fn of(&self, chunk: ChunkId) -> &ChunkDemands {
        static NONE: ChunkDemands = ChunkDemands::NONE;
        self.own.get(chunk.index()).unwrap_or(&NONE)
    }
}
