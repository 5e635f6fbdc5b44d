//! The data of a plan: its chunks, links, tensors and bodies.

use std::{collections::BTreeMap, ops::Range};

#[cfg(feature = "serde")]
use crate::plan::PlanFile;
use crate::{
    Bytes, Step, Strategy,
    plan::{PlannedCopies, PlannedPart, PlannedPool, PlannedWindow, Scope},
    problem::Link,
    sequence::{DimRange, SizeBasis},
};

/// The size of the pool, and a fixed offset in it for every chunk and every tensor.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "PlanFile", into = "PlanFile")
)]
pub struct Plan {
    pub(crate) strategy: Option<Strategy>,
    pub(crate) winner: Option<Strategy>,
    pub(crate) pool_size: Bytes,
    pub(crate) lower_bound: Bytes,
    pub(crate) proven_optimal: bool,
    pub(crate) scope: Scope,
    pub(crate) content_bound: Option<Bytes>,
    pub(crate) claimed_bound: Option<Bytes>,
    pub(crate) naive_size: Bytes,
    pub(crate) alignment: Bytes,
    pub(crate) padding: Bytes,
    pub(crate) steps: Step,
    pub(crate) peak_step: Step,
    pub(crate) peak: Vec<usize>,
    pub(crate) chunks: Vec<PlannedChunk>,
    pub(crate) tensors: Vec<PlannedTensor>,
    pub(crate) objects: Vec<Bytes>,
    pub(crate) order: Vec<usize>,
    pub(crate) bodies: Vec<PlannedBody>,
    pub(crate) pools: Vec<PlannedPool>,
    pub(crate) parts: Vec<PlannedPart>,
    pub(crate) windows: Vec<PlannedWindow>,
    pub(crate) pinned: Vec<usize>,
    /// By pool.
    pub(crate) reserved: Vec<(usize, Range<Bytes>)>,
    pub(crate) copies: PlannedCopies,
    pub(crate) traffic: u128,
    pub(crate) dims: BTreeMap<Box<str>, DimRange>,
    pub(crate) undeclared: Vec<Box<str>>,
    pub(crate) is_sorted: bool,
}

/// The plan of a body: a sequence that an operator runs, such as a branch or a loop. Its pool lies in the
/// operator's workspace, after a copy of its inputs. The workspace that the operator requests for itself
/// comes after the largest body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlannedBody {
    /// The operator.
    pub step: Step,
    /// Its place in the operator's list of bodies.
    pub body: usize,
    /// Bytes from the start of the workspace to the pool. The inputs of the body are copied there,
    /// one after another, each padded and rounded up to the alignment.
    pub inputs: Bytes,
    /// The plan. Its offsets count from the start of its own pool.
    pub plan: Plan,
}

impl PlannedBody {
    /// The bytes of workspace that the body needs: the copies of its inputs and its pool.
    #[must_use]
    pub fn room(&self) -> Bytes {
        self.inputs.saturating_add(self.plan.pool_size)
    }
}

/// A chunk with its place in the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedChunk {
    /// The chunk's id in its input.
    pub id: u64,
    /// Its name, or its id if it has none.
    pub name: Box<str>,
    /// Its size in bytes, without padding.
    pub size: Bytes,
    /// Its first step.
    pub begin: Step,
    /// Its last reading step + 1.
    pub end: Step,
    /// Its pool, by its index in [`Plan::pools`]; 0 if there is one or none.
    pub pool: usize,
    /// Its offset from the start of the pool, in bytes.
    pub offset: Bytes,
    /// The chunk that it is written over, if any.
    pub overwrites: Option<PlannedLink>,
    /// The shared object that it lies in, by its index in [`Plan::objects`].
    pub object: Option<usize>,
}

/// A link from a chunk to the one that it is written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedLink {
    /// The overwritten chunk, by its place in [`Plan::chunks`].
    pub chunk: usize,
    /// The offset of the overwriter from its start, in bytes; 0 if the overwriter begins below it.
    pub offset: Bytes,
    /// The number of bytes by which the overwriter begins below it; 0 if it lies inside.
    pub below: Bytes,
}

impl PlannedLink {
    /// Links to a chunk, by its place in [`Plan::chunks`], at an offset in bytes.
    #[must_use]
    pub const fn new(chunk: usize, offset: Bytes) -> Self {
        Self { chunk, offset, below: 0 }
    }

    /// Links to a chunk that the overwriter begins this many bytes below.
    #[must_use]
    pub const fn overlap(chunk: usize, below: Bytes) -> Self {
        Self { chunk, offset: 0, below }
    }

    pub(crate) const fn of(link: Link) -> Self {
        Self { chunk: link.overwritten.index(), offset: link.offset, below: link.below }
    }
}

/// A tensor with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedTensor {
    /// Its name.
    pub name: Box<str>,
    /// Its size in bytes.
    pub size: Bytes,
    /// The basis of the size: exact, an upper limit, or only declared.
    pub basis: SizeBasis,
    /// Its place.
    pub place: TensorPlace,
}

/// The place of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorPlace {
    /// In the pool.
    Pool {
        /// Its chunk, by its index in [`Plan::chunks`].
        chunk: usize,
        /// The offset from the start of the pool, in bytes.
        offset: Bytes,
    },
    /// In the memory of a supplied tensor.
    Supplied {
        /// The name of that input or weight.
        tensor: Box<str>,
        /// The offset from its start, in bytes.
        offset: Bytes,
    },
    /// The tensor has no bytes.
    Nowhere,
}
