//! Interval sets: sets of bytes, as ascending runs.

use smallvec::SmallVec;

use crate::Bytes;

/// An interval set of bytes: ascending runs that neither overlap nor touch. A single run needs no heap memory.
#[derive(Clone, Default)]
pub(super) struct IntervalSet(pub(super) SmallVec<[(Bytes, Bytes); 1]>);

impl IntervalSet {
    /// The end of the last run.
    pub(super) fn top(&self) -> Bytes {
        self.0.last().map_or(0, |run| run.1)
    }

    /// The end of the last run that shares bytes with `low..high`, if there is one.
    pub(super) fn end_of(&self, low: Bytes, high: Bytes) -> Option<Bytes> {
        let begun = self.0.partition_point(|run| run.0 < high);
        let &(_, end) = self.0[..begun].last()?;
        (end > low).then_some(end)
    }

    pub(super) fn add(&mut self, low: Bytes, high: Bytes) {
        let runs = self.0.as_mut_slice();
        // Walking takes fewer instructions than two binary searches.
        let mut end = runs.len();
        while end > 0 && runs[end - 1].0 > high {
            end -= 1;
        }
        let mut first = end;
        while first > 0 && runs[first - 1].1 >= low {
            first -= 1;
        }
        if first == end {
            self.0.insert(first, (low, high));
        } else {
            runs[first] = (low.min(runs[first].0), high.max(runs[end - 1].1));
            self.0.drain(first + 1..end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without holes are one run, however many bodies they come from.
    #[test]
    fn runs_that_touch_are_one() {
        let mut runs = IntervalSet::default();
        for (low, high) in [(4, 6), (10, 12), (0, 2), (6, 7), (8, 9), (12, 14), (3, 4)] {
            runs.add(low, high);
        }
        assert_eq!(*runs.0, [(0, 2), (3, 7), (8, 9), (10, 14)]);
        let ends = [(2, 3), (2, 4), (6, 9), (13, 99)].map(|(low, high)| runs.end_of(low, high));
        assert_eq!(ends, [None, Some(7), Some(9), Some(14)]);
        runs.add(1, 10);
        assert_eq!(*runs.0, [(0, 14)]);
    }
}
