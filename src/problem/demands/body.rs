//! Bodies: chunks joined by overwrites and parts, which move as one.

use crate::{
    Bytes,
    problem::{
        ChunkId,
        demands::{Few, Place, PoolId},
    },
};

/// Chunks joined by links. All lie in one pool, at fixed distances.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Body {
    /// The chunks and their distances from the lowest of them, ascending by id.
    pub members: Few<(ChunkId, Bytes)>,
    /// The pools that all members allow and in which the body fits, in the problem's order.
    pub pools: Few<AllowedPool>,
    /// The place of the lowest chunk, if a pin fixes it.
    pub fixed: Option<Place>,
    /// The bytes from the lowest to the end of the highest, padding included.
    pub extent: Bytes,
}

/// A pool that a body may lie in, and the offsets there that the alignments of its members allow:
/// `rest` modulo `modulus`, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllowedPool {
    /// The pool.
    pub pool: PoolId,
    /// The distance between allowed offsets, in bytes.
    pub modulus: Bytes,
    /// The lowest allowed offset, in bytes.
    pub rest: Bytes,
}

impl AllowedPool {
    /// The lowest allowed offset that is not below this one; `None` if it exceeds 64 bits.
    #[must_use]
    pub fn lift(self, offset: Bytes) -> Option<Bytes> {
        if offset <= self.rest {
            return Some(self.rest);
        }
        let over = (offset - self.rest).checked_next_multiple_of(self.modulus)?;
        self.rest.checked_add(over)
    }
}
