//! The reasons why chunks cannot be one body.

use std::fmt;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinConflict {
    BelowThePool,
    Alignment { offset: Bytes, modulus: Bytes },
    Reserved { low: Bytes, high: Bytes },
    Capacity(Option<Bytes>),
    Buffers(Bytes),
    Pinned,
}

impl fmt::Display for PinConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowThePool => f.write_str("it would begin below offset 0"),
            Self::Alignment { offset, modulus } => {
                write!(f, "it would begin at {offset}, which does not suit the alignment {modulus}")
            }
            Self::Reserved { low, high } => {
                write!(f, "it would reach into the reserved bytes [{low}, {high})")
            }
            Self::Capacity(Some(bytes)) => {
                write!(f, "it would end above the capacity of the pool, {bytes} B")
            }
            Self::Pinned => f.write_str("it would need bytes that another pinned chunk needs"),
            Self::Capacity(None) => f.write_str("it would end above 2^64 bytes"),
            Self::Buffers(largest) => {
                write!(f, "it would lie across two of the pool's buffers of {largest} B")
            }
        }
    }
}
