//! The statements of a plan about itself, its chunks and its pools, as violations name them.

use std::fmt;

/// A figure that a plan states about itself, or about one of its chunks, tensors or pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Figure {
    /// The number of steps.
    Steps,
    /// The first step at which the most bytes are alive.
    PeakStep,
    /// The total size with one buffer per chunk.
    NaiveSize,
    /// The bytes that every plan needs.
    LowerBound,
    /// The alignment of the offsets of roots.
    Alignment,
    /// The bytes added to every chunk.
    Padding,
    /// The sum of the pools' sizes.
    PoolSize,
    /// The size of a chunk or tensor in bytes.
    Size,
    /// The first step of a chunk.
    Begin,
    /// The step after the last of a chunk.
    End,
    /// The cost of a byte of traffic in a pool.
    Cost,
    /// The alignment of roots in a pool.
    PoolAlignment,
    /// The size of the buffers that a pool consists of; 0 if it is no row of buffers.
    Largest,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "number of steps",
            Self::PeakStep => "first step with the most bytes alive",
            Self::NaiveSize => "size of one buffer per chunk",
            Self::LowerBound => "lower bound, the most bytes alive at once,",
            Self::Alignment => "required alignment",
            Self::Padding => "required padding",
            Self::PoolSize => "sum of the sizes of all pools",
            Self::Size => "size",
            Self::Begin => "begin",
            Self::End => "end",
            Self::Cost => "cost",
            Self::PoolAlignment => "alignment",
            Self::Largest => "largest buffer",
        })
    }
}
