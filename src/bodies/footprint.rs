//! The footprint of a chain: a rigid body made of segments.
//!
//! In each step, a chain occupies the bytes of its outermost live member. From the step in which the
//! overwritten chunk has ended, these are only the overwriter's own bytes. A chunk without overwrites
//! is one segment; a chain with overwrites is a staircase. Bounds, searches and pictures use segments;
//! planners that can only place boxes use [`Problem::bounding_box`].

use crate::{
    Bytes, Step,
    problem::{Chunk, ChunkId, Problem},
};

/// A rectangle of steps and bytes that a chain occupies; no other chain may overlap it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The chunk that holds the bytes.
    pub(crate) chunk: ChunkId,
    /// The first step.
    pub(crate) begin: Step,
    /// The step after the last.
    pub(crate) end: Step,
    /// The lowest byte, from the root's offset.
    pub(crate) low: Bytes,
    /// The byte after the highest, from the root's offset, padding included.
    pub(crate) high: Bytes,
}

impl Problem {
    /// The members of the chain of `root`, each overwriting the one before.
    pub fn chain(&self, root: ChunkId) -> impl Iterator<Item = ChunkId> + '_ {
        std::iter::successors(Some(root), |&chunk| self.overwriter(chunk))
    }

    /// The part of its chain's footprint that a chunk adds: its bytes, from the step where the
    /// chunk it overwrites has ended. `None` if the chunk has no bytes or lives only in the step
    /// that it shares with the overwritten chunk.
    pub(crate) fn segment(&self, chunk: ChunkId) -> Option<Segment> {
        let Chunk { begin, end, .. } = *self.chunk(chunk);
        let begin = self.link(chunk).map_or(begin, |link| self.chunk(link.overwritten).end);
        let size = self.padded_size(chunk);
        if begin >= end || size == 0 {
            return None;
        }
        let (_, low) = self.place_in_chain(chunk);
        Some(Segment { chunk, begin, end, low, high: low + size })
    }

    /// The segments of the chain of `root`, in time order.
    pub(crate) fn segments(&self, root: ChunkId) -> impl Iterator<Item = Segment> + '_ {
        self.chain(root).filter_map(|chunk| self.segment(chunk))
    }

    /// The smallest rectangle around the chain of `root`: the lifetime of the whole chain and the
    /// size of the root.
    pub(crate) fn bounding_box(&self, root: ChunkId) -> Segment {
        let chunk = self.chunk(root);
        Segment {
            chunk: root,
            begin: chunk.begin,
            end: self.chain(root).map(|c| self.chunk(c).end).max().unwrap_or(chunk.end),
            low: 0,
            high: self.padded_size(root),
        }
    }
}
