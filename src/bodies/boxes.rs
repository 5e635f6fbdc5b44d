//! Boxes: the bytes that a chunk needs, and the time in which it needs them.

use std::{ops::Range, slice};

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes, Step,
    problem::{
        Chunk, ChunkId, Link,
        constraints::{ChunkConstraints, Clock, Constraints},
    },
    sets::{Lists, distinct},
};

/// Bytes that a chunk needs for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimedBox {
    /// The moment from which they are needed.
    pub(crate) begin: Clock,
    /// The moment from which they are no longer needed.
    pub(crate) end: Clock,
    /// The bytes, from the start of the chunk, padding included.
    pub(crate) bytes: Range<Bytes>,
}

/// The boxes of a chunk or a body, mostly one.
pub(crate) type TimedBoxes = SmallVec<[TimedBox; 1]>;

impl TimedBox {
    /// The bytes of the first of some boxes, from the earliest begin of all of them to their latest end, stream by
    /// stream.
    pub(crate) fn around(boxes: impl IntoIterator<Item = Self>) -> Option<Self> {
        boxes.into_iter().reduce(|mut life, next| {
            life.begin.merge(&next.begin, Step::min);
            life.end.merge(&next.end, Step::max);
            life
        })
    }

    /// Returns whether it ends after it begins.
    pub(crate) fn is_life(&self) -> bool {
        happens_before(&self.begin, &self.end) && self.begin != self.end
    }

    /// Returns whether the bytes are needed at a moment. All boxes alive at one moment are
    /// concurrent.
    pub(crate) fn is_alive_at(&self, moment: &[Step]) -> bool {
        happens_before(&self.begin, moment) && !happens_before(&self.end, moment)
    }
}

/// Returns whether everything before `end` is over at `begin`, on every stream.
pub(crate) fn happens_before<S: Ord>(end: &[S], begin: &[S]) -> bool {
    end.iter().zip(begin).all(|(end, begin)| end <= begin)
}

/// Returns whether neither box is over before the other begins.
pub(crate) fn concurrent(p: &TimedBox, q: &TimedBox) -> bool {
    !happens_before(&p.end, &q.begin) && !happens_before(&q.end, &p.begin)
}

/// The chunks of a problem with their constraints and accepted links.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) chunks: &'a [Chunk],
    pub(crate) constraints: &'a Constraints,
    pub(crate) alignment: Bytes,
    pub(crate) padding: Bytes,
}

impl<'a> View<'a> {
    pub(crate) fn padded(&self, chunk: ChunkId) -> Bytes {
        match self.chunks[chunk.index()].size {
            0 => 0,
            size => size + self.padding,
        }
    }

    /// The bytes of a chunk that lies at an offset, padding included.
    pub(crate) fn bytes_at(&self, chunk: ChunkId, offset: i128) -> Range<i128> {
        offset..offset + i128::from(self.padded(chunk))
    }

    /// The begin and the end of a chunk.
    pub(crate) fn life(&self, chunk: ChunkId) -> (&'a [Step], &'a [Step]) {
        let Chunk { begin, end, .. } = &self.chunks[chunk.index()];
        let in_steps = (slice::from_ref(begin), slice::from_ref(end));
        let life = self.constraints.lives.get(chunk.index());
        life.map_or(in_steps, |life| (&life.begin, &life.end))
    }

    pub(crate) fn begin(&self, chunk: ChunkId) -> Clock {
        self.life(chunk).0.into()
    }

    pub(crate) fn end(&self, chunk: ChunkId) -> Clock {
        self.life(chunk).1.into()
    }

    /// The moment at which the producer of a chunk is over.
    pub(crate) fn written(&self, chunk: ChunkId) -> Clock {
        let mut written = self.begin(chunk);
        let step = &mut written[self.constraints.of(chunk).stream];
        *step = step.saturating_add(1);
        written
    }

    /// The boxes of a chunk in time order. With a link, the bytes that the overwritten chunk needs in the step that
    /// both share belong to that chunk, so they are missing from the overwriter's first box.
    pub(crate) fn boxes(&self, chunk: ChunkId, link: Option<Link>) -> TimedBoxes {
        match link {
            None => self.needed(chunk),
            Some(link) => self.without_shared(chunk, link),
        }
    }

    /// The boxes of a chunk that overwrites none, in time order.
    fn needed(&self, chunk: ChunkId) -> TimedBoxes {
        let full = self.padded(chunk);
        if full == 0 {
            return TimedBoxes::new();
        }
        let constraints = self.constraints.of(chunk);
        let (begin, end) = (self.begin(chunk), self.end(chunk));
        if constraints.is_whole() {
            return smallvec![TimedBox { begin, end, bytes: 0..full }];
        }
        // Holes and windows exist only with one stream.
        let mut pauses: Vec<(Range<Step>, Option<Range<Bytes>>)> =
            constraints.holes.iter().map(|hole| (hole.clone(), None)).collect();
        pauses.extend(constraints.windows.iter().map(|w| (w.steps.clone(), Some(w.bytes.clone()))));
        pauses.sort_by_key(|(steps, _)| steps.start);
        let one = |begin: Step, end: Step, bytes: Range<Bytes>| TimedBox {
            begin: [begin].into(),
            end: [end].into(),
            bytes,
        };
        let (mut at, end) = (begin[0], end[0]);
        let mut boxes = TimedBoxes::new();
        for (steps, bytes) in pauses {
            if at < steps.start {
                boxes.push(one(at, steps.start, 0..full));
            }
            if let Some(bytes) = bytes {
                boxes.push(one(steps.start, steps.end, bytes.start..bytes.end + self.padding));
            }
            at = steps.end;
        }
        if at < end {
            boxes.push(one(at, end, 0..full));
        }
        boxes
    }

    /// The boxes of an overwriter: its boxes without a link, less the bytes that it shares in its first step.
    fn without_shared(&self, chunk: ChunkId, link: Link) -> TimedBoxes {
        let (first, later) = (self.begin(chunk), self.written(chunk));
        let shared = self.shared(link);
        let mut boxes = TimedBoxes::new();
        for whole in self.needed(chunk) {
            let bytes = whole.bytes.clone();
            let is_shared = shared.start.max(bytes.start) < shared.end.min(bytes.end);
            // Begins after a hole or with a later window, or needs no bytes of the other chunk.
            if whole.begin != first || !is_shared {
                boxes.push(whole);
                continue;
            }
            let outside =
                [bytes.start..bytes.end.min(shared.start), bytes.start.max(shared.end)..bytes.end];
            boxes.extend(
                outside.into_iter().filter(|bytes| !bytes.is_empty()).map(|bytes| TimedBox {
                    begin: first.clone(),
                    end: later.clone(),
                    bytes,
                }),
            );
            if whole.end != later {
                boxes.push(TimedBox { begin: later.clone(), ..whole });
            }
        }
        boxes
    }

    /// The bytes that an overwritten chunk needs in its last step, counted from the start of its overwriter; empty if
    /// it needs none.
    fn shared(&self, Link { overwritten: old, offset, below }: Link) -> Range<Bytes> {
        let last = self.chunks[old.index()].end.saturating_sub(1);
        let ChunkConstraints { holes, windows, .. } = self.constraints.of(old);
        let window = windows.iter().find(|window| window.steps.contains(&last));
        let needed = match window {
            // Holes and windows exist only with one stream.
            _ if holes.iter().any(|hole| hole.contains(&last)) => 0..0,
            Some(window) => window.bytes.start..window.bytes.end + self.padding,
            None => 0..self.padded(old),
        };
        let of_new = |byte: Bytes| byte.saturating_add(below).saturating_sub(offset);
        of_new(needed.start)..of_new(needed.end)
    }
}

/// By chunk: the groups of chunks kept apart that it is in.
pub(crate) struct Apart(Lists);

impl Apart {
    pub(crate) fn of(view: View<'_>) -> Self {
        let groups = view.constraints.apart.iter();
        let groups = groups.map(|chunks| distinct(chunks.iter().map(|chunk| chunk.0)));
        Self(Lists::new(groups).inverted(view.chunks.len()))
    }

    pub(crate) fn groups(&self, chunk: ChunkId) -> &[u32] {
        self.0.get(chunk.index())
    }

    /// Returns whether a chunk is in none of the groups.
    pub(crate) fn is_free(&self, chunk: ChunkId) -> bool {
        self.groups(chunk).is_empty()
    }

    /// Returns whether two chunks may not share bytes of a pool.
    pub(crate) fn keeps(&self, x: ChunkId, y: ChunkId) -> bool {
        let groups = self.groups(y);
        self.groups(x).iter().any(|group| groups.contains(group))
    }

    /// Returns whether two chunks of different bodies of a pool need the same bytes at these offsets. `boxes` returns
    /// the boxes of one of them at its distance from the other.
    pub(crate) fn need_same_bytes(
        &self,
        view: View<'_>,
        (x, low_x): (ChunkId, i128),
        (y, low_y): (ChunkId, i128),
        boxes: impl Fn(ChunkId, (ChunkId, i128)) -> TimedBoxes,
    ) -> bool {
        let overlap = |p: Range<i128>, q: Range<i128>| p.start < q.end && q.start < p.end;
        if !overlap(view.bytes_at(x, low_x), view.bytes_at(y, low_y)) {
            return false;
        }
        let at = |low: i128, Range { start, end }: &Range<Bytes>| {
            low + i128::from(*start)..low + i128::from(*end)
        };
        let meet = |p: &TimedBox, q: &TimedBox| {
            overlap(at(low_x, &p.bytes), at(low_y, &q.bytes)) && concurrent(p, q)
        };
        self.keeps(x, y) || {
            let of_y = boxes(y, (x, low_y - low_x));
            boxes(x, (y, low_x - low_y)).iter().any(|p| of_y.iter().any(|q| meet(p, q)))
        }
    }
}
