//! Finds chunks in the reserved bytes of a pool.

use std::ops::Range;

use crate::Bytes;

/// The begins of a pool's reserved ranges, ascending. Each comes with the range that ends last among all that
/// begin there or before.
pub(super) struct Reserved(Vec<(Bytes, (Bytes, Bytes))>);

impl Reserved {
    pub(super) fn of<'r>(ranges: impl IntoIterator<Item = &'r Range<Bytes>>) -> Self {
        let mut ranges: Vec<(Bytes, Bytes)> =
            ranges.into_iter().map(|range| (range.start, range.end)).collect();
        ranges.sort_unstable();
        let mut last = (0, 0);
        let ranges = ranges.into_iter().map(|range| {
            if range.1 > last.1 {
                last = range;
            }
            (range.0, last)
        });
        Self(ranges.collect())
    }

    /// Returns a range that shares bytes with a chunk from `low` to `high`.
    pub(super) fn meets(&self, low: Bytes, high: u128) -> Option<(Bytes, Bytes)> {
        let begun = self.0.partition_point(|&(begin, _)| u128::from(begin) < high);
        let &(_, range) = self.0.get(begun.checked_sub(1)?)?;
        (range.1 > low).then_some(range)
    }
}
