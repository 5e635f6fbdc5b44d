//! Time buckets on several streams: ranges of time, each with the boxes that are alive in it.
//!
//! The moments of a chain projection cut time into buckets. If two boxes have no bucket in common,
//! one is over before the other begins. So only boxes of the same bucket need to be compared. Where streams seldom wait
//! for each other, buckets are long.

use std::ops::Range;

use crate::{
    bodies::{ChainIndex, Lifetimes, TimedBoxes, longest_chains},
    budget::{Budget, Stop},
    problem::constraints::Clocks,
    search::sizes::WORK_PER_NODE,
};

/// Visiting one more bucket takes as long as visiting this many boxes.
const BOXES_PER_BUCKET: u64 = if cfg!(test) { 1 } else { WORK_PER_NODE as u64 };

/// The most buckets of a box, on average.
const BUCKETS_PER_BOX: u64 = 16;

/// Boxes in buckets of time.
pub(super) struct TimeBuckets {
    /// By body: its first box, and the number of all boxes at the end.
    first: Vec<usize>,
    /// By box: for each stream, the begin and the end, as numbers of 32 bits in the same order as the steps.
    times: Vec<u32>,
    /// By box: its buckets.
    within: Vec<Range<usize>>,
    /// The number of buckets.
    pub(super) count: usize,
}

/// The life of a box.
#[derive(Clone)]
pub(super) struct Life<'a> {
    /// For each stream, the begin and the end.
    pub(super) times: &'a [u32],
    pub(super) buckets: Range<usize>,
}

impl TimeBuckets {
    #[cfg(test)]
    pub(super) fn of(boxes: &[TimedBoxes]) -> Self {
        Self::within(boxes, &mut Budget::default()).unwrap()
    }

    /// Finds the buckets.
    ///
    /// # Errors
    ///
    /// If the budget does not suffice.
    pub(super) fn within(boxes: &[TimedBoxes], budget: &mut Budget<'_>) -> Result<Self, Stop> {
        let all = || boxes.iter().flatten();
        let begins: Clocks = all().map(|one| &*one.begin).collect();
        let (count, streams) = (begins.len(), begins.streams());
        let chain = longest_chains(&begins).into_iter().next().unwrap_or_default();
        budget.look()?;
        let lives = Lifetimes::of(streams, count, |visit| {
            all().for_each(|one| visit(&one.begin, &one.end));
        });
        budget.look()?;
        let along = ChainIndex::begins(&lives, &chain.iter().copied());
        let life = |at: usize| {
            let (begun, over) = (along.before(lives.begin(at)), along.over_at(lives.end(at)));
            begun as usize..over as usize + 1
        };
        let on_line: Vec<Range<usize>> = (0..count).map(life).collect();
        let width = best_width(&on_line, chain.len());
        budget.look()?;
        let pairs = |at: usize| lives.begin(at).iter().zip(lives.end(at));
        let mut first = vec![0];
        first.extend(boxes.iter().scan(0, |before, own| {
            *before += own.len();
            Some(*before)
        }));
        Ok(Self {
            first,
            times: (0..count).flat_map(pairs).flat_map(|(&begin, &end)| [begin, end]).collect(),
            within: on_line.iter().map(|life| in_buckets(life, width)).collect(),
            count: chain.len() / width + 1,
        })
    }

    /// The lives of the boxes of a body.
    pub(super) fn lives(&self, body: usize) -> impl Iterator<Item = Life<'_>> {
        let boxes = self.first[body]..self.first[body + 1];
        let numbers = self.times.len() / self.within.len().max(1);
        let life = move |at: usize| Life {
            times: &self.times[at * numbers..][..numbers],
            buckets: self.within[at].clone(),
        };
        boxes.map(life)
    }
}

/// The buckets of a life on the line, if each bucket has `width` moments.
fn in_buckets(life: &Range<usize>, width: usize) -> Range<usize> {
    life.start / width..(life.end - 1) / width + 1
}

/// The width of the buckets, in moments and a power of two, that takes the least work for these lives.
fn best_width(on_line: &[Range<usize>], len: usize) -> usize {
    let boxes = on_line.len() as u64;
    // By bucket: the lives that begin in it, and those that end in it.
    let (mut begun, mut over): (Vec<u64>, Vec<u64>) = (vec![0; len + 1], vec![0; len + 1]);
    for life in on_line {
        begun[life.start] += 1;
        over[life.end - 1] += 1;
    }
    let mut best = (u128::MAX, 1);
    let mut width = 1;
    while width <= 2 * len {
        let (met, buckets) = work(&begun, &over);
        let is_few = buckets <= u128::from(BUCKETS_PER_BOX * boxes);
        let work = if is_few { met + u128::from(BOXES_PER_BUCKET) * buckets } else { u128::MAX };
        best = best.min((work, width));
        // A bucket of the next width is two of this one.
        let pair = |counts: &[u64]| counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        (begun, over, width) = (pair(&begun), pair(&over), 2 * width);
    }
    best.1
}

/// The number of boxes in the buckets of a box, and the number of its buckets, both summed over all boxes. `begun` and
/// `over` hold how many lives begin and end in each bucket.
fn work(begun: &[u64], over: &[u64]) -> (u128, u128) {
    let (mut alive, mut before, mut buckets, mut met) = (0, 0_u128, 0, 0);
    for (&begun, &over) in begun.iter().zip(over) {
        alive += u128::from(begun);
        // Each life meets all lives that begin up to its last bucket, less those that end before its first one.
        met -= before.cast_signed() * i128::from(begun);
        before += alive;
        met += before.cast_signed() * i128::from(over);
        buckets += alive;
        alive -= u128::from(over);
    }
    (met.unsigned_abs(), buckets)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Counting the boxes in the buckets of each box, one by one, for each width.
    fn width_by_counting(on_line: &[Range<usize>], len: usize) -> Option<usize> {
        let widths = std::iter::successors(Some(1), |width| Some(2 * width));
        let widths = widths.take_while(|width| *width <= 2 * len);
        let counted = widths.filter_map(|width| {
            let lives = || on_line.iter().map(|life| in_buckets(life, width));
            let buckets: u64 = lives().map(|life| life.len() as u64).sum();
            // A box counts once in each bucket of both.
            let both = |a: Range<usize>, b: Range<usize>| {
                a.end.min(b.end).saturating_sub(a.start.max(b.start)) as u64
            };
            let met: u64 = lives().flat_map(|a| lives().map(move |b| both(a.clone(), b))).sum();
            let is_few = buckets <= BUCKETS_PER_BOX * on_line.len() as u64;
            is_few.then_some((met + BOXES_PER_BUCKET * buckets, width))
        });
        counted.min().map(|(_, width)| width)
    }

    #[test]
    fn the_best_width_is_that_of_counting_the_boxes_of_each_bucket() {
        let mut widths = BTreeSet::new();
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let len = *random.choose(&[0, 1, 7, 16, 40])?;
            let longest = *random.choose(&[1, 3, 41])?;
            let mut on_line = Vec::new();
            for _ in 0..random.int_in_range(1..=20)? {
                let begin = random.int_in_range(0..=len)?;
                on_line.push(begin..(begin + random.int_in_range(1..=longest)?).min(len + 1));
            }
            if let Some(expected) = width_by_counting(&on_line, len) {
                assert_eq!(best_width(&on_line, len), expected, "{on_line:?}");
                widths.insert(expected);
            }
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(200);
        assert!(widths.len() > 2, "{widths:?}");
    }
}
