//! Counts the bytes that a chunk takes under an alignment and a padding.

use crate::{
    Bytes,
    problem::{ChunkId, Request},
};

/// The alignment and the padding under which a sequence is planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    /// The alignment of every root's offset in bytes, a power of two.
    pub(crate) alignment: Bytes,
    /// The bytes added to every chunk.
    pub(crate) padding: Bytes,
}

impl Default for Placing {
    fn default() -> Self {
        Self { alignment: 1, padding: 0 }
    }
}

impl Placing {
    /// The bytes that a chunk of this size takes at an aligned offset.
    pub(crate) fn count(self, size: Bytes) -> Bytes {
        if size == 0 { 0 } else { self.rounded_up(size) }
    }

    /// The fewest bytes that a chunk of this size takes at an unaligned offset.
    pub(crate) fn floor(self, size: Bytes) -> Bytes {
        if size == 0 { 0 } else { size.saturating_add(self.padding) & !(self.alignment - 1) }
    }

    /// Rounds a number of bytes, with the padding, up to the alignment.
    fn rounded_up(self, bytes: Bytes) -> Bytes {
        let padded = bytes.saturating_add(self.padding);
        padded.checked_next_multiple_of(self.alignment).unwrap_or(Bytes::MAX)
    }
}

/// Counts the bytes that chunks take, in cells of the alignment.
#[derive(Debug)]
pub(crate) struct Cells {
    placing: Placing,
    /// By chunk: true if it may lie off the alignment.
    unaligned: Vec<bool>,
}

impl Cells {
    /// `requests` are all requests between `chunks` chunks, in the order of the operators.
    pub(crate) fn of(placing: Placing, chunks: usize, requests: &[Request]) -> Self {
        // The number of cells that an unaligned overwriter touches depends on its offset in the chain, but is at
        // least the number that it fills. The same holds for whatever may be written over it.
        let mut unaligned = vec![false; chunks];
        if placing.alignment > 1 {
            for request in requests {
                let is_aligned = (request.offset + request.below).is_multiple_of(placing.alignment);
                unaligned[request.overwriter.index()] |=
                    !is_aligned || unaligned[request.overwritten.index()];
            }
        }
        Self { placing, unaligned }
    }

    /// Returns whether every chunk counts the same bytes wherever it lies.
    pub(crate) fn are_exact(&self) -> bool {
        !self.unaligned.contains(&true)
    }

    /// The bytes that a chunk of a size counts.
    pub(crate) fn count(&self, chunk: ChunkId, size: Bytes) -> Bytes {
        if self.unaligned[chunk.index()] {
            self.placing.floor(size)
        } else {
            self.placing.count(size)
        }
    }

    /// The bytes that an output saves by lying over a chunk, given the sizes of both.
    pub(crate) fn shared(&self, request: &Request, output: Bytes, chunk: Bytes) -> Bytes {
        let whole = self.count(request.overwriter, output);
        if request.below == 0 {
            return whole;
        }
        // A partial overlap saves only the bytes that lie over the chunk.
        let shared = chunk.min(output.saturating_sub(request.below));
        self.placing.rounded_up(shared).min(whole)
    }
}
