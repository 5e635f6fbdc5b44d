//! The lower bound: the largest number of bytes alive at one step (the book, Lower bound and
//! verification).
//!
//! With an alignment `a`, the offsets of roots are multiples of `a`, which wastes bytes that no
//! plan can use. Count cells of `a` bytes: a member at offset `o` of `s` bytes touches `ceil((o +
//! s) / a) - floor(o / a)` of them. It shares at most its lowest cell with a neighbour below, and
//! only if `o` is not aligned. So the cells of all members, less one for each unaligned start, are
//! distinct, and their sum, `align_up(o + s) - align_up(o)` for each, is a true bound: a root
//! counts its size rounded up. The plain sum of bytes is another bound; the larger one counts.

use crate::{
    Bytes, Step,
    problem::{ChunkId, Problem, Segment, align_up},
};

/// The lower bound of a problem and where it is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
        self.bound_of(self.ids().filter_map(|chunk| self.segment(chunk)))
    }

    /// The lower bound of these chains alone.
    pub(crate) fn lower_bound_of(&self, roots: &[ChunkId]) -> Bound {
        self.bound_of(roots.iter().flat_map(|&root| self.segments(root)))
    }

    fn bound_of(&self, segments: impl Iterator<Item = Segment>) -> Bound {
        let mut bound = Bound::default();
        self.sweep(segments, |step, bytes| {
            if bytes > bound.bytes {
                bound = Bound { bytes, peak_step: step };
            }
        });
        bound
    }

    /// Calls `visit` with every step at which the number of live bytes may change, in order, and
    /// the bytes that any plan needs from that step on.
    pub fn sweep_live_bytes(&self, visit: impl FnMut(Step, Bytes)) {
        self.sweep(self.ids().filter_map(|chunk| self.segment(chunk)), visit);
    }

    fn sweep(&self, segments: impl Iterator<Item = Segment>, mut visit: impl FnMut(Step, Bytes)) {
        // The step, the bytes, and the bytes of its cells.
        let mut starts: Vec<(Step, Bytes, Bytes)> = Vec::new();
        let mut ends = Vec::new();
        for segment in segments {
            let size = segment.high - segment.low;
            let cells = self.align_up(segment.high) - self.align_up(segment.low);
            starts.push((segment.begin, size, cells));
            ends.push((segment.end, size, cells));
        }
        starts.sort_unstable_by_key(|&(step, ..)| step);
        ends.sort_unstable_by_key(|&(step, ..)| step);
        let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
        let (mut plain, mut celled): (Bytes, Bytes) = (0, 0);
        while let Some(&(end, ..)) = ends.peek() {
            // Every segment starts before it ends, so an end remains until all have started.
            let step = starts.peek().map_or(end, |&(start, ..)| start.min(end));
            while let Some((_, size, cells)) = ends.next_if(|&(at, ..)| at == step) {
                (plain, celled) = (plain - size, celled - cells);
            }
            while let Some((_, size, cells)) = starts.next_if(|&(at, ..)| at == step) {
                (plain, celled) = (plain + size, celled + cells);
            }
            visit(step, celled.max(align_up(plain, self.alignment())));
        }
    }
}
