//! The offsets at which bodies on several streams clash, pair by pair.
//!
//! Long chains of overwrites are few bodies with many boxes each. However many boxes are alive together, two bodies
//! clash only if the difference of their offsets lies in one of a few ranges. These ranges are found once; after that,
//! bodies are compared without visiting their boxes.

use crate::search::sizes::{MAX_CLASHES, MAX_WORK, MIN_BOXES};
use std::{cmp::Reverse, slice};

use crate::{
    Bytes,
    bodies::{BoxTree, TimedBox, TimedBoxes, ranks},
    search::{interval_set::IntervalSet, merge},
};

/// Bodies with bytes from here on are not supported: differences of offsets must fit in `i64`.
pub(super) const HIGHEST: Bytes = 1 << 60;

/// A body clashes with `other` if its offset minus the other's lies strictly between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clash {
    pub(super) other: usize,
    pub(super) low: i64,
    pub(super) high: i64,
}

/// By body: its clashes, in order of the other bodies.
#[derive(Clone, Default)]
pub(super) struct Clashes(pub(super) Vec<Vec<Clash>>);

impl Clashes {
    /// The clashes of few bodies of many boxes; `None` for others.
    pub(super) fn of(boxes: &[TimedBoxes]) -> Option<Self> {
        let count = boxes.iter().map(TimedBoxes::len).sum::<usize>();
        let (mut before, mut levels) = (0, 0);
        for body in by_boxes(boxes).into_iter().rev() {
            let count = boxes[body].len();
            levels += before * (1 + count.max(1).ilog2() as usize);
            before += count;
        }
        let is_some = count >= MIN_BOXES * boxes.len() && levels as u64 <= MAX_WORK;
        is_some.then(|| Self::between_all(boxes)).flatten()
    }

    /// The clashes of all pairs of bodies; `None` if there are too many.
    pub(super) fn between_all(boxes: &[TimedBoxes]) -> Option<Self> {
        let streams = boxes.iter().flatten().next()?.begin.len();
        if boxes.iter().flatten().any(|one| one.bytes.end >= HIGHEST) {
            return None;
        }
        let mut clashes = Self(vec![Vec::new(); boxes.len()]);
        let (mut found, mut kept) = (0, 0);
        // The boxes of one body are looked up in a tree of those of the other one, which has more.
        let order = by_boxes(boxes);
        for (at, &second) in order.iter().enumerate() {
            let places = ranks(slice::from_ref(&boxes[second]));
            let mut tree = BoxTree::new(boxes[second].len(), streams);
            // By node of the tree: the bytes of the boxes below it.
            let mut taken = vec![IntervalSet::default(); tree.len()];
            for (one, &place) in boxes[second].iter().zip(&places[0]) {
                tree.add(one, place);
                for node in tree.nodes(place) {
                    taken[node].add(one.bytes.start, one.bytes.end);
                }
            }
            for &first in &order[at + 1..] {
                let mut all: Vec<(i64, i64)> = Vec::new();
                for own in &boxes[first] {
                    tree.visit(own, |node| {
                        let runs = &taken[node].0;
                        found += runs.len();
                        all.extend(ranges(own, runs));
                    });
                    if found as u64 > MAX_WORK {
                        return None;
                    }
                    if all.len() > MAX_CLASHES {
                        merge(&mut all);
                        // The ranges that stay are merged again next time.
                        found += all.len();
                    }
                }
                merge(&mut all);
                kept += all.len();
                clashes.add(first, second, &all);
                if kept > MAX_CLASHES {
                    return None;
                }
            }
        }
        clashes.0.iter_mut().for_each(|of_body| of_body.sort_by_key(|clash| clash.other));
        Some(clashes)
    }

    /// Adds ranges of the offset of the second body from that of the first.
    pub(super) fn add(&mut self, first: usize, second: usize, ranges: &[(i64, i64)]) {
        for &(low, high) in ranges {
            self.0[second].push(Clash { other: first, low, high });
            self.0[first].push(Clash { other: second, low: -high, high: -low });
        }
    }

    /// The ranges of the offset of the second body from that of the first at which the two clash.
    pub(super) fn between(&self, first: usize, second: usize) -> Vec<(i64, i64)> {
        let of_second = &self.0[second];
        let from = of_second.partition_point(|clash| clash.other < first);
        let with_first = of_second[from..].iter().take_while(|clash| clash.other == first);
        with_first.map(|clash| (clash.low, clash.high)).collect()
    }
}

/// Bodies, those with the most boxes first.
fn by_boxes(boxes: &[TimedBoxes]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by_key(|&body| Reverse(boxes[body].len()));
    order
}

/// The offsets at which the bytes of a box meet some of the runs.
fn ranges(own: &TimedBox, runs: &[(Bytes, Bytes)]) -> impl Iterator<Item = (i64, i64)> {
    let [start, end] = [own.bytes.start, own.bytes.end].map(u64::cast_signed);
    let range =
        move |&(low, high): &(Bytes, Bytes)| (start - high.cast_signed(), end - low.cast_signed());
    runs.iter().map(range)
}

/// The bodies that lie in a pool.
pub(super) struct PairSpace<'a> {
    clashes: &'a Clashes,
    /// By body: its offset, if it lies here.
    offsets: Vec<Option<Bytes>>,
}

impl<'a> PairSpace<'a> {
    pub(super) fn new(clashes: &'a Clashes) -> Self {
        Self { clashes, offsets: vec![None; clashes.0.len()] }
    }

    /// Takes the bytes of a body that lies at an offset.
    pub(super) fn take(&mut self, body: usize, offset: Bytes) {
        self.offsets[body] = Some(offset);
    }

    /// The lowest offset at which a body lies above all that it may clash with.
    pub(super) fn top_over(&self, body: usize) -> Bytes {
        let top = |clash: &Clash| self.offsets[clash.other]?.checked_add_signed(clash.high);
        self.clashes.0[body].iter().filter_map(top).max().unwrap_or(0)
    }

    /// The lowest offset from `offset` on, itself allowed, at which a body is clear of all that is taken. `round_up`
    /// raises an offset to the next allowed one; `None` if there is none.
    pub(super) fn lowest_from(
        &self,
        body: usize,
        mut offset: Bytes,
        round_up: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let range = |clash: &Clash| {
            let at = i128::from(self.offsets[clash.other]?);
            Some((at + i128::from(clash.low), at + i128::from(clash.high)))
        };
        let mut ranges: Vec<(i128, i128)> = self.clashes.0[body].iter().filter_map(range).collect();
        ranges.sort_unstable();
        for (low, high) in ranges {
            if i128::from(offset) <= low {
                break;
            }
            if i128::from(offset) < high {
                offset = round_up(Bytes::try_from(high).ok()?)?;
            }
        }
        Some(offset)
    }
}
