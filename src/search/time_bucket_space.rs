//! The bytes taken on several streams, by time bucket, for first packings of 10^5 bodies and more.
//!
//! Each [time bucket](super::time_buckets) keeps the boxes that may be alive in it, in order of their
//! addresses. To find room for a new box, a scan passes the boxes of its buckets from the lowest address upwards. A box
//! that is alive together with the new one lifts it; clocks are compared for many boxes at a time to find out which
//! ones are. The scan ends when the next box lies high enough above. Passing a box takes far less time than searching
//! for the boxes that are alive.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    Bytes,
    bodies::TimedBox,
    search::time_buckets::{Life, TimeBuckets},
};

/// A block of this many boxes is split.
const BLOCK: usize = if cfg!(test) { 4 } else { 64 };

/// By box of a block: not 0 if it is not alive together with another one.
type IsApart = [u32; BLOCK];

/// The boxes that lie in a pool.
pub(super) struct TimeBucketSpace<'a> {
    buckets: &'a TimeBuckets,
    /// By bucket: its boxes in order of their addresses.
    taken: Vec<Vec<Block>>,
    /// By bucket: the highest end of its boxes.
    tops: Vec<Bytes>,
}

/// A few boxes in order of their addresses.
struct Block {
    lows: Vec<Bytes>,
    highs: Vec<Bytes>,
    /// The highest of them.
    top: Bytes,
    /// For each stream, the begins of all boxes, then their ends.
    times: Vec<[u32; BLOCK]>,
}

impl Block {
    fn new(streams: usize) -> Self {
        Self { lows: Vec::new(), highs: Vec::new(), top: 0, times: vec![[0; BLOCK]; 2 * streams] }
    }

    fn add(&mut self, low: Bytes, high: Bytes, life: &Life<'_>) {
        let (at, count) = (self.lows.partition_point(|&other| other <= low), self.lows.len());
        self.lows.insert(at, low);
        self.highs.insert(at, high);
        self.top = high.max(self.top);
        for (times, &time) in self.times.iter_mut().zip(life.times) {
            times.copy_within(at..count, at + 1);
            times[at] = time;
        }
    }

    /// Moves the upper half to a new block.
    fn split_off(&mut self) -> Self {
        let half = self.lows.len() / 2;
        let (lows, highs) = (self.lows.split_off(half), self.highs.split_off(half));
        let mut times = self.times.clone();
        for times in &mut times {
            times.copy_within(half.., 0);
        }
        let top = |highs: &[Bytes]| highs.iter().copied().max().unwrap_or(0);
        self.top = top(&self.highs);
        Self { top: top(&highs), lows, highs, times }
    }

    /// Compares the clocks of all boxes with those of another.
    fn is_apart(&self, life: &Life<'_>) -> IsApart {
        let (mut earlier, mut later) = ([u32::MAX; BLOCK], [u32::MAX; BLOCK]);
        for (times, own) in self.times.chunks_exact(2).zip(life.times.chunks_exact(2)) {
            let ([begins, ends], [begin, end]) = (times, own) else { continue };
            for at in 0..BLOCK {
                earlier[at] &= if ends[at] <= *begin { u32::MAX } else { 0 };
                later[at] &= if *end <= begins[at] { u32::MAX } else { 0 };
            }
        }
        for (earlier, later) in earlier.iter_mut().zip(later) {
            *earlier |= later;
        }
        earlier
    }
}

/// A box of a new body, on its way up through the boxes of a bucket.
struct Rise<'a> {
    own: &'a TimedBox,
    life: Life<'a>,
    /// The blocks that it has not passed entirely, and the number of boxes of the first block that it has passed.
    blocks: &'a [Block],
    passed: usize,
    /// By box of the first block, once some are passed: not 0 if it is not alive together with this one.
    is_apart: IsApart,
}

impl Rise<'_> {
    /// The lowest allowed offset of the body from `offset` on at which the box is clear of all boxes of the
    /// bucket.
    fn lowest_from(
        &mut self,
        offset: Bytes,
        round_up: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let own = self.own;
        let size = own.bytes.end - own.bytes.start;
        let mut low = offset + own.bytes.start;
        while let Some((block, later)) = self.blocks.split_first() {
            if block.top <= low || self.passed == block.lows.len() {
                (self.blocks, self.passed) = (later, 0);
                continue;
            }
            let is_above = |low: Bytes, next: Bytes| low < next && next - low >= size;
            if is_above(low, block.lows[self.passed]) {
                let lifted = round_up(low - own.bytes.start)? + own.bytes.start;
                if is_above(lifted, block.lows[self.passed]) {
                    return Some(lifted - own.bytes.start);
                }
                low = lifted;
            }
            if self.passed == 0 {
                self.is_apart = block.is_apart(&self.life);
            }
            let before = low;
            let boxes = block.lows.iter().zip(&block.highs).zip(&self.is_apart).skip(self.passed);
            for ((&next, &high), &is_apart) in boxes {
                // Both are compared each time: which one fails cannot be predicted.
                if (low < next) & (next.wrapping_sub(low) >= size) {
                    break;
                }
                low = low.max(if is_apart == 0 { high } else { 0 });
                self.passed += 1;
            }
            if low > before {
                low = round_up(low - own.bytes.start)? + own.bytes.start;
            }
        }
        round_up(low - own.bytes.start)
    }

    /// The highest offset up to which the box is clear, from the one that was found last.
    fn clear_to(&self) -> Bytes {
        let next = self.blocks.first().and_then(|block| block.lows.get(self.passed));
        next.map_or(Bytes::MAX, |next| next - self.own.bytes.end)
    }
}

impl<'a> TimeBucketSpace<'a> {
    pub(super) fn new(buckets: &'a TimeBuckets) -> Self {
        let taken = (0..buckets.count).map(|_| Vec::new()).collect();
        Self { buckets, taken, tops: vec![0; buckets.count] }
    }

    /// Takes the bytes of a body that lies at an offset.
    pub(super) fn take(&mut self, body: usize, boxes: &[TimedBox], offset: Bytes) {
        for (one, life) in boxes.iter().zip(self.buckets.lives(body)) {
            let (low, high) = (offset + one.bytes.start, offset + one.bytes.end);
            for top in &mut self.tops[life.buckets.clone()] {
                *top = high.max(*top);
            }
            for blocks in &mut self.taken[life.buckets.clone()] {
                if blocks.is_empty() {
                    blocks.push(Block::new(one.begin.len()));
                }
                let passed = blocks.partition_point(|b| b.lows.first().is_none_or(|&at| at <= low));
                let at = passed.saturating_sub(1);
                blocks[at].add(low, high, &life);
                if blocks[at].lows.len() == BLOCK {
                    let upper = blocks[at].split_off();
                    blocks.insert(at + 1, upper);
                }
            }
        }
    }

    /// The lowest offset at which the boxes of a body lie above all in their buckets.
    pub(super) fn top_over(&self, body: usize, boxes: &[TimedBox]) -> Bytes {
        let lives = boxes.iter().zip(self.buckets.lives(body));
        let tops = lives.flat_map(|(one, life)| {
            self.tops[life.buckets].iter().map(|top| top.saturating_sub(one.bytes.start))
        });
        tops.max().unwrap_or(0)
    }

    /// The lowest offset from `offset` on, itself allowed, at which the boxes of a body are clear of all that
    /// is taken. `round_up` raises an offset to the next allowed one; `None` if there is none.
    pub(super) fn lowest_from(
        &self,
        body: usize,
        boxes: &[TimedBox],
        mut offset: Bytes,
        round_up: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let mut rises: Vec<Rise<'_>> = Vec::new();
        for (own, life) in boxes.iter().zip(self.buckets.lives(body)) {
            let blocks =
                self.taken[life.buckets.clone()].iter().filter(|blocks| !blocks.is_empty());
            let life = &life;
            rises.extend(blocks.map(|blocks| Rise {
                own,
                life: life.clone(),
                blocks,
                passed: 0,
                is_apart: [0; BLOCK],
            }));
        }
        let mut clear = Vec::with_capacity(rises.len());
        for (at, rise) in rises.iter_mut().enumerate() {
            offset = rise.lowest_from(offset, &round_up)?;
            clear.push(Reverse((rise.clear_to(), at)));
        }
        // Only boxes that are no longer clear rise further.
        let mut clear = BinaryHeap::from(clear);
        while let Some(mut first) = clear.peek_mut()
            && first.0.0 < offset
        {
            let rise = &mut rises[first.0.1];
            offset = rise.lowest_from(offset, &round_up)?;
            first.0.0 = rise.clear_to();
        }
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Step,
        bodies::{TimedBoxes, concurrent},
        budget::Budget,
        search::clashes::{Clashes, PairSpace},
        seeds::times,
    };

    #[test]
    fn the_lowest_free_offset_is_found() {
        let (mut lifted, mut below, mut most_buckets) = (0, 0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut bodies: Vec<TimedBoxes> = Vec::new();
            let (last, many) = *random.choose(&[(5, 10), (30, 40)])?;
            for _ in 0..random.int_in_range(1..=many)? {
                let mut boxes = TimedBoxes::new();
                for _ in 0..*random.choose(&[1, 1, 4])? {
                    let begin: Step = random.int_in_range(0..=last)?;
                    let begin = [begin, (begin + random.int_in_range(0..=5)?).saturating_sub(3)];
                    let (more, beside) = (random.int_in_range(1..=3)?, random.int_in_range(0..=2)?);
                    let end = [begin[0] + more, begin[1] + beside];
                    let low = random.int_in_range(0..=2)?;
                    let bytes = low..low + random.int_in_range(1..=6)?;
                    boxes.push(TimedBox { begin: begin.into(), end: end.into(), bytes });
                }
                bodies.push(boxes);
            }
            let buckets = TimeBuckets::of(&bodies);
            let clashes = Clashes::of(&bodies, &mut Budget::default()).unwrap();
            let mut in_pairs = PairSpace::new(&clashes);
            most_buckets = buckets.count.max(most_buckets);
            let mut in_buckets = TimeBucketSpace::new(&buckets);
            let mut laid: Vec<(&TimedBox, Bytes)> = Vec::new();
            for (body, boxes) in bodies.iter().enumerate() {
                let is_free = |&base: &Bytes| {
                    boxes.iter().all(|new| {
                        laid.iter().all(|&(old, at)| {
                            !concurrent(new, old)
                                || base + new.bytes.end <= at + old.bytes.start
                                || at + old.bytes.end <= base + new.bytes.start
                        })
                    })
                };
                let from = random.int_in_range(0..=3)?;
                let expected = (from..).step_by(2).find(is_free);
                let round_up = |offset: Bytes| Some(offset + (offset - from) % 2);
                let in_bucket = in_buckets.lowest_from(body, boxes, from, round_up);
                assert_eq!(in_bucket, expected, "{bodies:?}");
                assert_eq!(in_pairs.lowest_from(body, from, round_up), expected, "{bodies:?}");
                // Nothing that is alive together with the body lies above these.
                let together = boxes.iter().flat_map(|new| {
                    let old = laid.iter().filter(|(old, _)| concurrent(new, old));
                    old.map(|&(old, at)| (at + old.bytes.end).saturating_sub(new.bytes.start))
                });
                let top = together.max().unwrap_or(0);
                assert_eq!(in_pairs.top_over(body), top);
                let in_bucket = in_buckets.top_over(body, boxes);
                let highest = laid.iter().map(|(old, at)| at + old.bytes.end).max().unwrap_or(0);
                assert!((top..=highest).contains(&in_bucket), "{top}, {in_bucket}, {highest}");
                below += u32::from(in_bucket < highest);
                in_pairs.take(body, expected.unwrap());
                lifted += u32::from(expected > Some(from));
                let base = expected.unwrap();
                in_buckets.take(body, boxes, base);
                laid.extend(boxes.iter().map(|one| (one, base)));
            }
            Ok(())
        };
        times(500, one);
        assert!(lifted > 0 && below > 0 && most_buckets > 4, "{lifted}, {below}, {most_buckets}");
    }
}
