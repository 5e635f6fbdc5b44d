//! Chunks that are joined to each other, directly or through others.

use crate::problem::ChunkId;

/// Groups of joined chunks.
pub(super) struct Joined(Vec<usize>);

impl Joined {
    pub(super) fn new(chunks: usize) -> Self {
        Self((0..chunks).collect())
    }

    pub(super) fn find(&mut self, mut chunk: usize) -> usize {
        while self.0[chunk] != chunk {
            self.0[chunk] = self.0[self.0[chunk]];
            chunk = self.0[chunk];
        }
        chunk
    }

    pub(super) fn join(&mut self, a: ChunkId, b: ChunkId) {
        let (a, b) = (self.find(a.index()), self.find(b.index()));
        self.0[b] = a;
    }
}
