//! The lower bound: the largest number of bytes alive at one step (the book, Lower bound and
//! verification).
//!
//! With an alignment `a`, the offsets of roots are multiples of `a`, which wastes bytes that no
//! plan can use. Count cells of `a` bytes: a member at offset `o` of `s` bytes touches `ceil((o +
//! s) / a) - floor(o / a)` of them. It shares at most its lowest cell with a neighbour below, and
//! only if `o` is not aligned. So the cells of all members, less one for each unaligned start, are
//! distinct, and their sum, `align_up(o + s) - align_up(o)` for each, is a true bound: a root
//! counts its size rounded up. The plain sum of bytes is another bound; the larger one counts.
//!
//! | file | idea |
//! | --- | --- |
//! | `peak_set` | the chunks alive together that take the most bytes |
//! | `antichain`, `cliques` | the same on several streams: exact, and by hill climbing |
//! | `free_bytes` | the bytes that pins and reserved ranges leave free |
//! | `choices` | a bound for every choice of overwrites and parts |

mod antichain;
mod choices;
pub(crate) mod cliques;
mod free_bytes;
mod peak_set;

pub(crate) use peak_set::PeakSet;

use std::{
    borrow::Cow,
    num::Wrapping,
    ops::{AddAssign, Neg},
};

use crate::{
    Bytes, Step,
    budget::Budget,
    problem::{ChunkId, Problem, Segment, align_up},
    steps::sum_by_step,
};

/// Bytes that are alive from step `begin` to step `end`; no other weight counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveWeight {
    pub(crate) begin: Step,
    pub(crate) end: Step,
    pub(crate) weight: Weight,
}

/// A number of bytes, and the bytes of the cells of the alignment that they alone touch. The weight of bytes whose
/// lives end is added as a negative number, modulo 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) plain: Wrapping<Bytes>,
    pub(crate) aligned_bytes: Wrapping<Bytes>,
}

impl Weight {
    pub(crate) fn new(plain: Bytes, aligned_bytes: Bytes) -> Self {
        Self { plain: Wrapping(plain), aligned_bytes: Wrapping(aligned_bytes) }
    }

    /// The bytes alive: the plain bytes rounded up, or the cells if they are more.
    pub(crate) fn bytes_alive(self, alignment: Bytes) -> Bytes {
        align_up(self.plain.0, alignment).max(self.aligned_bytes.0)
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, change: Self) {
        self.plain += change.plain;
        self.aligned_bytes += change.aligned_bytes;
    }
}

impl Neg for Weight {
    type Output = Self;

    fn neg(self) -> Self {
        Self { plain: -self.plain, aligned_bytes: -self.aligned_bytes }
    }
}

impl Problem {
    /// The lower bound in bytes: no pool can be smaller. With several pools, it bounds the sum of their sizes. A sweep
    /// over the steps computes it in O(n log n).
    ///
    /// A step needs the bytes of every chunk that is alive in it, padding included, with four exceptions. An overwriter
    /// in its first step needs only its bytes outside the chunk that it overwrites. A chunk in a hole needs nothing. A
    /// chunk in a window needs the bytes of the window. Bytes that a part shares with its whole count once.
    ///
    /// The *bytes alive* in a step are the sum of these bytes rounded up to the alignment, or the cells of the
    /// alignment that they take, whichever is larger. If the capacity of a pool is not a multiple of the alignment, the
    /// sum is not rounded up, and the bytes that the last cell of each such pool lacks are subtracted from the cells.
    ///
    /// The bound is at least the bytes alive in the [peak step](Self::peak_step); pins and reserved ranges may raise it
    /// if there is only one pool. With several streams, the bound counts chunks that may be alive together. The chapter
    /// on verification in the book has the details.
    #[must_use]
    pub fn lower_bound(&self) -> Bytes {
        self.peak_set().bytes
    }

    /// The peak step: the first one with the most bytes alive, as for the [lower bound](Self::lower_bound); 0 with
    /// several streams.
    #[must_use]
    pub fn peak_step(&self) -> Step {
        self.peak_set().step
    }

    /// The chunks that the lower bound counts.
    pub(crate) fn peak_set(&self) -> &PeakSet {
        self.derived.peak_set.get_or_init(|| {
            if !self.is_unconstrained() {
                let (Ok(peak_set) | Err(peak_set)) =
                    self.peak_set_of_bodies(&mut Budget::default());
                return peak_set;
            }
            let segments = self.ids().filter_map(|chunk| self.segment(chunk));
            self.peak_of(segments, self.len())
        })
    }

    /// The chunks that the lower bound counts. On several streams, returns a lighter peak set if the budget ends before
    /// they are found.
    pub(crate) fn peak_set_within(&self, budget: &mut Budget<'_>) -> Cow<'_, PeakSet> {
        if self.is_unconstrained() || self.derived.peak_set.get().is_some() {
            return Cow::Borrowed(self.peak_set());
        }
        match self.peak_set_of_bodies(budget) {
            Ok(peak_set) => Cow::Borrowed(self.derived.peak_set.get_or_init(|| peak_set)),
            Err(lighter) => Cow::Owned(lighter),
        }
    }

    /// The bytes alive in each step, with one stream; the [lower bound](Self::lower_bound) follows from it unless
    /// there are pins, reserved ranges or capacities.
    pub(crate) fn live_weights(&self) -> Vec<LiveWeight> {
        if !self.is_unconstrained() {
            return self.bodies().iter().flat_map(|body| self.body_weights(body)).collect();
        }
        let segments = self.ids().filter_map(|chunk| self.segment(chunk));
        segments.map(|segment| self.live_weight(&segment)).collect()
    }

    fn live_weight(&self, &Segment { begin, end, low, high, .. }: &Segment) -> LiveWeight {
        let aligned_bytes = self.align_up(high) - self.align_up(low);
        LiveWeight { begin, end, weight: Weight::new(high - low, aligned_bytes) }
    }

    /// The peak of these chains alone.
    pub(crate) fn peak_of_chains(&self, roots: &[ChunkId]) -> PeakSet {
        let segments: Vec<Segment> = roots.iter().flat_map(|&root| self.segments(root)).collect();
        let count = segments.len();
        self.peak_of(segments.into_iter(), count)
    }

    /// The peak of about this many segments.
    fn peak_of(&self, segments: impl Iterator<Item = Segment>, count: usize) -> PeakSet {
        let mut peak_set = PeakSet::default();
        self.sweep(segments, count, |step, bytes| {
            if bytes > peak_set.bytes {
                (peak_set.bytes, peak_set.step) = (bytes, step);
            }
        });
        peak_set
    }

    /// Calls `visit` with every step at which the number of live bytes may change, in ascending order, and with the
    /// bytes that any plan needs from that step on.
    pub fn sweep_live_bytes(&self, visit: impl FnMut(Step, Bytes)) {
        self.sweep(self.ids().filter_map(|chunk| self.segment(chunk)), self.len(), visit);
    }

    fn sweep(
        &self,
        segments: impl Iterator<Item = Segment>,
        count: usize,
        mut visit: impl FnMut(Step, Bytes),
    ) {
        let weights = segments.map(|segment| self.live_weight(&segment));
        self.sweep_weights(weights, count, |step, live| {
            visit(step, live.bytes_alive(self.alignment()));
        });
    }

    /// Calls `visit` with every step in which a weight begins or ends, in ascending order, and with the sum of the
    /// weights that are alive from that step on. `count` is an estimate of the number of weights.
    pub(super) fn sweep_weights(
        &self,
        weights: impl Iterator<Item = LiveWeight>,
        count: usize,
        mut visit: impl FnMut(Step, Weight),
    ) {
        if self.alignment() == 1 {
            // Every byte is a cell, so one sum suffices.
            let changes = weights.flat_map(|LiveWeight { begin, end, weight }| {
                [(begin, weight.plain), (end, -weight.plain)]
            });
            let mut live = Wrapping(0);
            sum_by_step(changes, 2 * count, self.steps(), |step, change| {
                live += change;
                visit(step, Weight { plain: live, aligned_bytes: live });
            });
            return;
        }
        let changes =
            weights.flat_map(|LiveWeight { begin, end, weight }| [(begin, weight), (end, -weight)]);
        let mut live = Weight::default();
        sum_by_step(changes, 2 * count, self.steps(), |step, change| {
            live += change;
            visit(step, live);
        });
    }
}
