//! The bytes taken on several streams, for first packings of 10^5 bodies and more.
//!
//! If streams seldom wait for each other, time buckets are long, and a tree over clocks is faster than
//! [these](super::time_bucket_space). The leaves of the tree are the boxes of all bodies. Each node keeps the interval
//! set of the bytes that placed boxes below it take. If all boxes below a node are alive together with a new box, the
//! interval set is where the new box cannot lie. So boxes of streams that never wait for each other are not compared
//! one by one.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    Bytes,
    bodies::{BoxTree, TimedBox, TimedBoxes},
    budget::{Budget, Stop},
    search::interval_set::IntervalSet,
};

/// The work of adding a box to the tree.
const WORK_PER_BOX: usize = 4;

/// The boxes that lie in a pool.
pub(super) struct ClockTreeSpace<'a> {
    /// By body: the places of its boxes.
    places: &'a [Vec<usize>],
    tree: BoxTree,
    /// By node: the bytes of the boxes below it.
    taken: Vec<IntervalSet>,
}

/// Bytes of a new box, and runs that it must not share bytes with.
pub(super) struct Overlap<'a> {
    pub(super) own: &'a TimedBox,
    pub(super) runs: &'a [(Bytes, Bytes)],
}

impl Overlap<'_> {
    /// Advances to the next run that the box would overlap at `offset` or above. Returns the first offset of the body
    /// at which they overlap, and the first above it at which they no longer do.
    fn next(&mut self, offset: Bytes) -> Option<(Bytes, Bytes)> {
        let own = &self.own.bytes;
        let passed = self.runs.partition_point(|run| run.1 <= offset.saturating_add(own.start));
        self.runs = &self.runs[passed..];
        let (&(low, high), later) = self.runs.split_first()?;
        self.runs = later;
        Some((low.saturating_add(1).saturating_sub(own.end), high - own.start))
    }
}

/// The average number of nodes that a search for the boxes alive together with a box visits, once all boxes lie in
/// one pool.
///
/// # Errors
///
/// If the budget ends first.
pub(super) fn visited(
    boxes: &[TimedBoxes],
    places: &[Vec<usize>],
    budget: &mut Budget<'_>,
) -> Result<u64, Stop> {
    const SAMPLES: usize = 64;
    let all = || boxes.iter().flatten().zip(places.iter().flatten());
    let (count, streams) = (all().count(), all().next().map_or(1, |(one, _)| one.begin.len()));
    let mut tree = BoxTree::new(count, streams);
    for (one, &place) in all() {
        budget.spend(WORK_PER_BOX)?;
        tree.add(one, place);
    }
    let samples = || all().step_by(count.div_ceil(SAMPLES).max(1));
    let visited: u64 = samples().map(|(one, _)| tree.visit(one, |_| ())).sum();
    Ok(visited / samples().count().max(1) as u64)
}

impl<'a> ClockTreeSpace<'a> {
    pub(super) fn new(places: &'a [Vec<usize>], streams: usize) -> Self {
        let tree = BoxTree::new(places.iter().map(Vec::len).sum(), streams);
        let taken = vec![IntervalSet::default(); tree.len()];
        Self { places, tree, taken }
    }

    /// Takes the bytes of a body that lies at an offset.
    pub(super) fn take(&mut self, body: usize, boxes: &[TimedBox], offset: Bytes) {
        for (one, &place) in boxes.iter().zip(&self.places[body]) {
            self.tree.add(one, place);
            for node in self.tree.nodes(place) {
                self.taken[node].add(offset + one.bytes.start, offset + one.bytes.end);
            }
        }
    }

    /// The bytes of all that is alive together with each of the boxes.
    pub(super) fn meetings<'b>(&'b self, boxes: &'b [TimedBox]) -> Vec<Overlap<'b>> {
        let mut meetings: Vec<Overlap<'b>> = Vec::new();
        for own in boxes {
            let meet = |node: usize| meetings.push(Overlap { own, runs: &self.taken[node].0 });
            self.tree.visit(own, meet);
        }
        meetings
    }

    /// The lowest offset at which boxes lie above all that is alive together with them.
    pub(super) fn top_over(&self, boxes: &[TimedBox]) -> Bytes {
        let top = |meeting: Overlap<'_>| {
            let top = meeting.runs.last().map_or(0, |run| run.1);
            top.saturating_sub(meeting.own.bytes.start)
        };
        self.meetings(boxes).into_iter().map(top).max().unwrap_or(0)
    }

    /// The lowest offset from `offset` on at which boxes are clear of all that is taken. `round_up` raises an
    /// offset to the next allowed one; `None` if there is none.
    pub(super) fn lowest_from(
        &self,
        boxes: &[TimedBox],
        mut offset: Bytes,
        round_up: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let mut meetings = self.meetings(boxes);
        let first = |(at, meeting): (usize, &mut Overlap<'_>)| {
            meeting.next(offset).map(|range| Reverse((range, at)))
        };
        let mut next: BinaryHeap<_> = meetings.iter_mut().enumerate().filter_map(first).collect();
        while let Some(Reverse(((low, high), at))) = next.pop()
            && low <= offset
        {
            if offset < high {
                offset = round_up(high)?;
            }
            next.extend(meetings[at].next(offset).map(|range| Reverse((range, at))));
        }
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Step,
        bodies::{concurrent, ranks},
        problem::Problem,
        search::{
            clashes::{Clashes, PairSpace},
            pool_instance::PoolInstance,
            time_bucket_space::TimeBucketSpace,
            time_buckets::TimeBuckets,
        },
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
            let (places, buckets) = (ranks(&bodies), TimeBuckets::of(&bodies));
            let clashes = Clashes::between_all(&bodies).unwrap();
            let mut in_pairs = PairSpace::new(&clashes);
            most_buckets = buckets.count.max(most_buckets);
            let mut taken = ClockTreeSpace::new(&places, 2);
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
                assert_eq!(taken.lowest_from(boxes, from, round_up), expected, "{bodies:?}");
                let in_bucket = in_buckets.lowest_from(body, boxes, from, round_up);
                assert_eq!(in_bucket, expected, "{bodies:?}");
                assert_eq!(in_pairs.lowest_from(body, from, round_up), expected, "{bodies:?}");
                // Nothing that is alive together with the body lies above these.
                let together = boxes.iter().flat_map(|new| {
                    let old = laid.iter().filter(|(old, _)| concurrent(new, old));
                    old.map(|&(old, at)| (at + old.bytes.end).saturating_sub(new.bytes.start))
                });
                let top = together.max().unwrap_or(0);
                assert_eq!([taken.top_over(boxes), in_pairs.top_over(body)], [top; 2]);
                let in_bucket = in_buckets.top_over(body, boxes);
                let highest = laid.iter().map(|(old, at)| at + old.bytes.end).max().unwrap_or(0);
                assert!((top..=highest).contains(&in_bucket), "{top}, {in_bucket}, {highest}");
                below += u32::from(in_bucket < highest);
                in_pairs.take(body, expected.unwrap());
                lifted += u32::from(expected > Some(from));
                let base = expected.unwrap();
                taken.take(body, boxes, base);
                in_buckets.take(body, boxes, base);
                laid.extend(boxes.iter().map(|one| (one, base)));
            }
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(200);
        assert!(lifted > 0 && below > 0 && most_buckets > 4, "{lifted}, {below}, {most_buckets}");
    }

    /// Four streams of which none waits for another: each box meets thousands of others, in few nodes.
    #[test]
    fn boxes_of_streams_that_do_not_wait_are_not_looked_at_one_by_one() {
        let mut problem = Problem::builder();
        problem.streams(4);
        for at in 0..4096 {
            let chunk = problem.chunk(0..1, 1);
            let (mut begin, mut end) = ([0; 4], [0; 4]);
            (begin[at % 4], end[at % 4]) = (at as u64 / 4, at as u64 / 4 + 3);
            problem.clocks(chunk, begin, end, at % 4);
        }
        let problem = problem.build().unwrap();
        let instance = PoolInstance::of(&problem);
        let places = ranks(&instance.boxes);
        let mut taken = ClockTreeSpace::new(&places, 4);
        for (body, boxes) in instance.boxes.iter().enumerate() {
            taken.take(body, boxes, 0);
        }
        for boxes in &instance.boxes {
            // Ten levels of nodes for each of the other streams at most, and few boxes of its own.
            assert!(taken.meetings(boxes).len() <= 3 * 10 + 8);
        }
    }
}
