//! The reasons why chunks cannot be one body.

use crate::{
    Bytes,
    problem::{ChunkId, RejectReason},
};

/// The reason why chunks cannot be one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinError {
    TwoPlaces(ChunkId),
    Clash(ChunkId, ChunkId),
    NoCommonPool(ChunkId),
    TwoPins(ChunkId),
    Misaligned(ChunkId),
    Pins(ChunkId, PinConflict),
    TooLarge(ChunkId, Bytes),
}

impl JoinError {
    pub(crate) fn reject_reason(self) -> RejectReason {
        match self {
            Self::TwoPlaces(_) => RejectReason::TwoPlaces,
            Self::Clash(..) => RejectReason::Clash,
            Self::NoCommonPool(_) => RejectReason::NoCommonPool,
            Self::TwoPins(_) => RejectReason::TwoPins,
            Self::Misaligned(_) => RejectReason::Misaligned,
            Self::Pins(..) => RejectReason::Pins,
            Self::TooLarge(..) => RejectReason::TooLarge,
        }
    }
}

/// The reason why a body cannot lie where a pin puts it, as the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PinConflict {
    #[error("it would begin below offset 0")]
    BelowThePool,
    #[error("it would begin at {offset}, which does not suit the alignment {modulus}")]
    Alignment { offset: Bytes, modulus: Bytes },
    #[error("it would reach into the reserved bytes [{low}, {high})")]
    Reserved { low: Bytes, high: Bytes },
    #[error("it would end above the capacity of the pool, {0} B")]
    Capacity(Bytes),
    #[error("it would end above 2^64 bytes")]
    Addresses,
    #[error("it would lie across two of the pool's buffers of {0} B")]
    Buffers(Bytes),
    #[error("it would need bytes that another pinned chunk needs")]
    Pinned,
}
