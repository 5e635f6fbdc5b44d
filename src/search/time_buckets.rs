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
};

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
        // As wide as the mean life, buckets take the least work: narrower ones are more, and wider ones are fuller.
        let width = (on_line.iter().map(Range::len).sum::<usize>() / count.max(1)).max(1);
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
