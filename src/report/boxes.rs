//! The bytes that each chunk needs at each time. What pictures draw are the [pieces](Plan::pieces) of these
//! boxes, because chunks share bytes with their parts.

use crate::{Bytes, Plan, Step, plan::PlannedWindow};

/// A run of bytes of the pool that a chunk has to itself for some steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedBox {
    pub(super) begin: Step,
    /// The step after the last.
    pub(super) end: Step,
    pub(super) low: Bytes,
    /// The byte after the highest, padding included.
    pub(super) high: Bytes,
}

impl PlacedBox {
    pub(super) fn is_alive_at(&self, step: Step) -> bool {
        self.begin <= step && step < self.end
    }
}

impl Plan {
    /// The boxes of a chunk in time order, from the step where it has its bytes to itself; its bytes outside
    /// the chunk that it overwrites are its own one step earlier. It has no boxes if it has no bytes or never
    /// has them to itself.
    pub(super) fn boxes(&self, at: usize) -> impl Iterator<Item = PlacedBox> + '_ {
        let chunk = &self.chunks[at];
        let (from, until) = (self.own_begin(chunk), chunk.end);
        let whole = (chunk.offset, if chunk.size > 0 { self.end_of(chunk) } else { chunk.offset });
        let own = move |begin: Step, end: Step, (low, high): (Bytes, Bytes)| {
            let (begin, end) = (begin.max(from), end.min(until));
            (begin < end && low < high).then_some(PlacedBox { begin, end, low, high })
        };
        let mut begun = from;
        let before = self.windows_of(at).iter().flat_map(move |window| {
            let full = own(begun, window.begin, whole);
            begun = window.end.max(begun);
            let low = chunk.offset.saturating_add(window.low);
            let high = chunk.offset.saturating_add(window.high);
            let padded = if low < high { high.saturating_add(self.padding) } else { high };
            [full, own(window.begin, window.end, (low, padded))]
        });
        // The last window ends where all of the bytes are needed again.
        let last = self.windows_of(at).iter().map(|window| window.end).max();
        let after = last.unwrap_or(from);
        self.own_in_first_step(at).chain(before.chain([own(after, until, whole)]).flatten())
    }

    /// The bytes of an overwriter that are its own already in its first step, because the chunk that it overwrites does
    /// not need them then.
    pub(super) fn own_in_first_step(&self, at: usize) -> impl Iterator<Item = PlacedBox> + use<> {
        let end = self.own_begin(&self.chunks[at]);
        let begin = end.saturating_sub(1);
        let old = self.chunks[at].overwrites.map(|link| link.chunk);
        let needed = old.filter(|&old| old < self.chunks.len()).map(|old| {
            let (low, high) = self.needed_at(at, begin);
            let shared = self.needed_at(old, begin);
            if shared.0 < shared.1 {
                [(low, high.min(shared.0)), (low.max(shared.1), high)]
            } else {
                [(low, high), (0, 0)]
            }
        });
        let needed = needed.into_iter().flatten().filter(|(low, high)| low < high);
        needed.map(move |(low, high)| PlacedBox { begin, end, low, high })
    }

    /// The bytes of the pool that a chunk needs in a step of its life.
    fn needed_at(&self, at: usize, step: Step) -> (Bytes, Bytes) {
        let chunk = &self.chunks[at];
        let window = self.windows_of(at).iter().find(|w| w.begin <= step && step < w.end);
        let place = |byte: Bytes| chunk.offset.saturating_add(byte);
        match window {
            Some(window) if window.low == window.high => (0, 0),
            Some(window) => (place(window.low), place(window.high).saturating_add(self.padding)),
            None => (chunk.offset, self.end_of(chunk)),
        }
    }

    /// The steps in which a chunk needs only some of its bytes.
    pub(super) fn windows_of(&self, at: usize) -> &[PlannedWindow] {
        let first = self.windows.partition_point(|window| window.chunk < at);
        let count = self.windows[first..].partition_point(|window| window.chunk == at);
        &self.windows[first..first + count]
    }

    /// All boxes, each with its chunk.
    pub(super) fn all_boxes(&self) -> impl Iterator<Item = (usize, PlacedBox)> + '_ {
        (0..self.chunks.len()).flat_map(|at| self.boxes(at).map(move |each| (at, each)))
    }

    /// Returns whether a chunk needs all of its bytes for its whole lifetime.
    pub(super) fn is_whole(&self, at: usize) -> bool {
        self.windows_of(at).is_empty()
    }
}
