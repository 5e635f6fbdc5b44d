//! The lower bound: the largest number of bytes alive at one step (spec 6).
//!
//! With an alignment `a` the offsets of roots are multiples of `a`, which wastes bytes that no
//! plan can use. Count the cells of `a` bytes: a member at offset `o` of `s` bytes touches
//! `ceil((o + s) / a) - floor(o / a)` of them, and shares at most its lowest, and only if `o` is not
//! aligned, with one neighbour below. So the cells of all members, less one for each unaligned
//! start, are distinct, and their sum, `align_up(o + s) - align_up(o)` for each, is a true bound: a
//! root counts its size rounded up. The plain sum of bytes is another; the larger counts.

use crate::{
    Bytes, Step,
    problem::{Problem, align_up},
};

/// The lower bound of a problem and where it is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// No pool can be smaller, in bytes.
    pub bytes: Bytes,
    /// The first step where that many bytes are alive.
    pub peak_step: Step,
}

impl Problem {
    /// Sweeps over the steps in O(n log n).
    #[must_use]
    pub fn lower_bound(&self) -> Bound {
        let mut bound = Bound::default();
        self.sweep_live_bytes(|step, bytes| {
            if bytes > bound.bytes {
                bound = Bound { bytes, peak_step: step };
            }
        });
        bound
    }

    /// Calls `visit` with every step at which the number of live bytes may change, in order, and
    /// the bytes that any plan needs from that step on.
    pub fn sweep_live_bytes(&self, mut visit: impl FnMut(Step, Bytes)) {
        let segments = || self.ids().filter_map(|chunk| self.segment(chunk));
        let mut starts: Vec<(Step, u32)> = segments().map(|s| (s.begin, s.chunk.0)).collect();
        let mut ends: Vec<(Step, u32)> = segments().map(|s| (s.end, s.chunk.0)).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        let weight = |chunk: u32| {
            let (_, low) = self.place_in_chain(super::ChunkId(chunk));
            let size = self.padded_size(super::ChunkId(chunk));
            let cells = self.align_up(low + size) - self.align_up(low);
            (size, cells)
        };
        let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
        let (mut plain, mut celled): (Bytes, Bytes) = (0, 0);
        while let Some(&(end, _)) = ends.peek() {
            // Every segment starts before it ends, so some end is always left to come.
            let step = starts.peek().map_or(end, |&(start, _)| start.min(end));
            while let Some((_, chunk)) = ends.next_if(|&(at, _)| at == step) {
                let (size, cells) = weight(chunk);
                (plain, celled) = (plain - size, celled - cells);
            }
            while let Some((_, chunk)) = starts.next_if(|&(at, _)| at == step) {
                let (size, cells) = weight(chunk);
                (plain, celled) = (plain + size, celled + cells);
            }
            visit(step, celled.max(align_up(plain, self.alignment())));
        }
    }
}
