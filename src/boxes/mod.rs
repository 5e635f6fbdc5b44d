//! The bytes that each chunk needs at each time, according to a plan, as boxes. Pictures draw the
//! visible pieces of these boxes, because chunks share bytes with their parts.

mod visible;

pub(crate) use visible::visible;

use crate::{Bytes, Plan, PlannedChunk, Step, plan::PlannedWindow};

/// A run of bytes of the pool that a chunk has to itself for some steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedBox {
    pub(crate) begin: Step,
    /// The step after the last.
    pub(crate) end: Step,
    pub(crate) low: Bytes,
    /// The byte after the highest, padding included.
    pub(crate) high: Bytes,
}

impl PlacedBox {
    pub(crate) fn is_alive_at(&self, step: Step) -> bool {
        self.begin <= step && step < self.end
    }

    const fn is_empty(&self) -> bool {
        self.begin >= self.end || self.low >= self.high
    }
}

/// The boxes of the chunks of a plan.
pub(crate) struct Boxes<'a> {
    plan: &'a Plan,
    /// Sorted by chunk: the bytes that overwriters take from a chunk before its end, from the step in which they no
    /// longer share them.
    taken: Vec<(usize, PlacedBox)>,
}

impl<'a> Boxes<'a> {
    pub(crate) fn of(plan: &'a Plan) -> Self {
        let taken = |chunk: &PlannedChunk| {
            let link = chunk.overwrites.filter(|_| chunk.size > 0)?;
            let old = plan.chunks.get(link.chunk)?;
            let begin = plan.own_begin(chunk);
            // An overwriter of the last byte takes the padding too.
            let last = old.offset.saturating_add(old.size);
            let high = chunk.offset.saturating_add(chunk.size);
            let high = if high >= last { plan.end_of(old) } else { high };
            let low = chunk.offset.max(old.offset);
            (begin < old.end).then_some((link.chunk, PlacedBox { begin, end: old.end, low, high }))
        };
        let mut taken: Vec<_> = plan.chunks.iter().filter_map(taken).collect();
        taken.sort_by_key(|&(chunk, _)| chunk);
        Self { plan, taken }
    }

    /// The boxes of a chunk, by step and then by byte, from the step in which it no longer shares its bytes with the
    /// chunk that it is written over; bytes that the overwritten chunk does not need are included one step earlier. No
    /// boxes if the chunk has no bytes or shares them for its whole lifetime. No two boxes share a byte in a step.
    pub(crate) fn of_chunk(&self, at: usize) -> impl Iterator<Item = PlacedBox> + use<> {
        let chunk = &self.plan.chunks[at];
        let own = PlacedBox { begin: self.plan.own_begin(chunk), ..self.whole(at) };
        let is_simple = chunk.size == 0
            || self.is_simple(at)
                && self.under(at).is_none_or(|old| {
                    let old_bytes = self.whole(old);
                    let is_inside = old_bytes.low <= own.low && own.high <= old_bytes.high;
                    is_inside && self.is_simple(old)
                });
        let simple = (is_simple && chunk.size > 0 && !own.is_empty()).then_some(own);
        let cut = if is_simple { Vec::new() } else { self.cut(at, own) };
        simple.into_iter().chain(cut)
    }

    /// All boxes, each with its chunk.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, PlacedBox)> {
        (0..self.plan.chunks.len()).flat_map(|at| self.of_chunk(at).map(move |each| (at, each)))
    }

    /// Returns whether all chunks need all of their bytes for their whole lifetimes.
    pub(crate) fn are_simple(&self) -> bool {
        self.plan.windows.is_empty() && self.taken.is_empty()
    }

    /// Returns whether a chunk needs all of its bytes for its whole lifetime.
    pub(crate) fn is_simple(&self, at: usize) -> bool {
        self.plan.windows_of(at).is_empty() && self.taken(at).is_empty()
    }

    fn taken(&self, at: usize) -> &[(usize, PlacedBox)] {
        let first = self.taken.partition_point(|&(chunk, _)| chunk < at);
        let count = self.taken[first..].partition_point(|&(chunk, _)| chunk == at);
        &self.taken[first..first + count]
    }

    /// The chunk that a chunk is written over.
    fn under(&self, at: usize) -> Option<usize> {
        let old = self.plan.chunks[at].overwrites.map(|link| link.chunk);
        old.filter(|&old| old < self.plan.chunks.len())
    }

    /// The bytes and the lifetime of a chunk.
    fn whole(&self, at: usize) -> PlacedBox {
        let chunk = &self.plan.chunks[at];
        let (low, high) = (chunk.offset, self.plan.end_of(chunk));
        PlacedBox { begin: chunk.begin, end: chunk.end, low, high }
    }

    /// The boxes of a chunk with windows or links. `own` is all of its bytes from the step in which it no longer shares
    /// them.
    fn cut(&self, at: usize, own: PlacedBox) -> Vec<PlacedBox> {
        let mut boxes = self.needed(at, own);
        if let Some((old, first)) = self.under(at).zip(own.begin.checked_sub(1)) {
            let in_first = |bytes: PlacedBox| PlacedBox { begin: first, end: own.begin, ..bytes };
            let shared = self.needed(old, in_first(self.whole(old)));
            boxes.extend(without(&shared, self.needed(at, in_first(own))));
        }
        boxes.sort_by_key(|each| (each.begin, each.low));
        boxes
    }

    /// The bytes that a chunk needs in the steps of `all`, which spans all of its bytes: in a window the bytes of the
    /// window, otherwise all, less the bytes that overwriters have taken.
    fn needed(&self, at: usize, all: PlacedBox) -> Vec<PlacedBox> {
        let Plan { padding, .. } = *self.plan;
        let mut boxes = Vec::new();
        // A wrong plan may say that a chunk ends before it begins.
        let within = |step: Step| step.max(all.begin).min(all.end);
        let mut begun = all.begin;
        for window in self.plan.windows_of(at) {
            let begin = within(window.begin);
            let end = within(window.end);
            boxes.push(PlacedBox { begin: begun, end: begin, ..all });
            begun = begun.max(end);
            let place = |byte: Bytes| self.plan.chunks[at].offset.saturating_add(byte);
            let (low, high) = (place(window.low), place(window.high));
            let high = if low < high { high.saturating_add(padding) } else { high };
            boxes.push(PlacedBox { begin, end, low, high });
        }
        boxes.push(PlacedBox { begin: begun, ..all });
        let taken: Vec<PlacedBox> = self.taken(at).iter().map(|&(_, bytes)| bytes).collect();
        without(&taken, boxes)
    }
}

/// Cuts boxes so that at any step, no byte is in two of them or in one of `others`.
fn without(others: &[PlacedBox], mut boxes: Vec<PlacedBox>) -> Vec<PlacedBox> {
    boxes.retain(|one| !one.is_empty());
    if others.is_empty() && boxes.windows(2).all(|two| two[0].end <= two[1].begin) {
        return boxes;
    }
    let pieces = visible(&[others, &boxes].concat()).into_iter();
    pieces.filter(|&(at, _)| at >= others.len()).map(|(_, piece)| piece).collect()
}

impl Plan {
    /// The steps in which a chunk needs only some of its bytes.
    pub(crate) fn windows_of(&self, at: usize) -> &[PlannedWindow] {
        let first = self.windows.partition_point(|window| window.chunk < at);
        let count = self.windows[first..].partition_point(|window| window.chunk == at);
        &self.windows[first..first + count]
    }
}
