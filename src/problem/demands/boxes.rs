//! Boxes: the bytes that a chunk needs, and the time in which it needs them.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes, Step,
    problem::{
        Chunk, ChunkId, Link,
        demands::{Clock, Demands},
    },
};

/// Bytes that a chunk needs for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedBox {
    /// The moment from which they are needed.
    pub begin: Clock,
    /// The moment from which they are no longer needed.
    pub end: Clock,
    /// The bytes, from the start of the chunk, padding included.
    pub bytes: Range<Bytes>,
}

/// The boxes of a chunk or a body, mostly one.
pub(crate) type TimedBoxes = SmallVec<[TimedBox; 1]>;

impl TimedBox {
    /// Returns whether it ends after it begins.
    pub(crate) fn is_life(&self) -> bool {
        is_over(&self.begin, &self.end) && self.begin != self.end
    }

    /// Returns whether the bytes are needed at a moment. All boxes alive at one moment are
    /// concurrent.
    pub(crate) fn is_alive_at(&self, moment: &[Step]) -> bool {
        is_over(&self.begin, moment) && !is_over(&self.end, moment)
    }
}

/// Returns whether everything before `end` is over at `begin`, on every stream.
pub(crate) fn is_over<S: Ord>(end: &[S], begin: &[S]) -> bool {
    end.iter().zip(begin).all(|(end, begin)| end <= begin)
}

/// Returns whether neither box is over before the other begins.
pub(crate) fn concurrent(p: &TimedBox, q: &TimedBox) -> bool {
    !is_over(&p.end, &q.begin) && !is_over(&q.end, &p.begin)
}

/// The chunks of a problem with their demands and honoured links.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) chunks: &'a [Chunk],
    pub(crate) demands: &'a Demands,
    pub(crate) alignment: Bytes,
    pub(crate) padding: Bytes,
}

impl View<'_> {
    pub(crate) fn padded(&self, chunk: ChunkId) -> Bytes {
        match self.chunks[chunk.index()].size {
            0 => 0,
            size => size + self.padding,
        }
    }

    pub(crate) fn begin(&self, chunk: ChunkId) -> Clock {
        match self.demands.lives.get(chunk.index()) {
            Some(life) => life.begin.clone(),
            None => [self.chunks[chunk.index()].begin].into(),
        }
    }

    pub(crate) fn end(&self, chunk: ChunkId) -> Clock {
        match self.demands.lives.get(chunk.index()) {
            Some(life) => life.end.clone(),
            None => [self.chunks[chunk.index()].end].into(),
        }
    }

    /// The boxes of a chunk in time order. An overwriter needs the bytes of the overwritten chunk only from
    /// the step in which that has ended, and its bytes outside that chunk from its own begin.
    pub(crate) fn boxes(&self, chunk: ChunkId, link: Option<Link>) -> TimedBoxes {
        let full = self.padded(chunk);
        if full == 0 {
            return TimedBoxes::new();
        }
        let demands = self.demands.of(chunk);
        let (mut begin, end) = (self.begin(chunk), self.end(chunk));
        if let Some(link) = link {
            if link.below > 0 {
                return self.boxes_outside(chunk, link);
            }
            begin[demands.stream] += 1;
            if begin == end {
                return TimedBoxes::new();
            }
        }
        if demands.is_whole() {
            return smallvec![TimedBox { begin, end, bytes: 0..full }];
        }
        // Holes and windows exist only with one stream.
        let mut pauses: Vec<(Range<Step>, Option<Range<Bytes>>)> =
            demands.holes.iter().map(|hole| (hole.clone(), None)).collect();
        pauses.extend(demands.windows.iter().map(|w| (w.steps.clone(), Some(w.bytes.clone()))));
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
            if let Some(bytes) = bytes
                && at.max(steps.start) < steps.end
            {
                let bytes = bytes.start..bytes.end + self.padding;
                boxes.push(one(at.max(steps.start), steps.end, bytes));
            }
            at = at.max(steps.end);
        }
        if at < end {
            boxes.push(one(at, end, 0..full));
        }
        boxes
    }

    /// The boxes of an overwriter that extends beyond the overwritten chunk: its boxes without a link, less
    /// the bytes of that chunk in the step that both share.
    fn boxes_outside(&self, chunk: ChunkId, link: Link) -> TimedBoxes {
        let shared = self.begin(chunk);
        let mut later = shared.clone();
        later[self.demands.of(chunk).stream] += 1;
        let old = link.below..link.below.saturating_add(self.padded(link.overwritten));
        let mut boxes = TimedBoxes::new();
        for whole in self.boxes(chunk, None) {
            // A window or what follows a hole.
            if whole.begin != shared {
                boxes.push(whole);
                continue;
            }
            let bytes = whole.bytes.clone();
            let outside =
                [bytes.start..bytes.end.min(old.start), bytes.start.max(old.end)..bytes.end];
            boxes.extend(
                outside.into_iter().filter(|bytes| !bytes.is_empty()).map(|bytes| TimedBox {
                    begin: shared.clone(),
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
}
