//! The times when an object is taken: the lifetimes of its records, which never overlap.

use crate::{Step, baselines::tflite::Record};

/// The lifetimes of one object's records, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline(Vec<(Step, Step)>);

impl Timeline {
    /// Creates a timeline with one lifetime.
    pub(super) fn of(record: &Record) -> Self {
        Self(vec![(record.first, record.last)])
    }

    /// Adds a record that conflicts with none of those present.
    pub(super) fn insert(&mut self, record: &Record) {
        let at = self.0.partition_point(|&(first, _)| first < record.first);
        self.0.insert(at, (record.first, record.last));
        debug_assert!(self.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "lives overlap");
    }

    /// Returns the steps between a lifetime and the nearest one here; `None` if they conflict.
    pub(super) fn distance(&self, first: Step, last: Step) -> Option<Step> {
        let after = self.0.partition_point(|&(begin, _)| begin <= last);
        let gap_after = self.0.get(after).map_or(Step::MAX, |&(begin, _)| begin - last);
        let gap_before = match after.checked_sub(1).map(|before| self.0[before]) {
            Some((_, end)) if end >= first => return None,
            Some((_, end)) => first - end,
            None => Step::MAX,
        };
        Some(gap_before.min(gap_after))
    }
}
