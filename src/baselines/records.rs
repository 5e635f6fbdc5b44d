//! Records: the input of planners that plan boxes only.
//!
//! A record is a size and the steps of its first and last use, both inclusive, as in TFLite and
//! many other planners.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{Bytes, Step};

/// The size of a record: bytes, or the dimensions of a texture.
pub trait RecordSize: Ord + Clone {
    /// The number of bytes, or the product of the dimensions.
    fn volume(&self) -> u128;
}

impl RecordSize for Bytes {
    fn volume(&self) -> u128 {
        u128::from(*self)
    }
}

impl<const N: usize> RecordSize for [u32; N] {
    fn volume(&self) -> u128 {
        self.iter().fold(1, |volume: u128, &side| volume.saturating_mul(u128::from(side)))
    }
}

/// The size and lifetime of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<S = Bytes> {
    /// Its size.
    pub size: S,
    /// The first step that uses it.
    pub first: Step,
    /// The last step that uses it, not before the first.
    pub last: Step,
}

impl<S> Record<S> {
    /// Returns whether both are alive in a common step.
    pub fn conflicts<T>(&self, other: &Record<T>) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A checked list of records: no lifetime is empty, and the sum of all sizes fits in 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records<S = Bytes>(pub(super) Vec<Record<S>>);

/// Records, objects or offsets that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A record's last use comes before its first, or no step comes after it.
    #[error("record {record} lives from step {first} to step {last}")]
    Lifetime {
        /// Its index in the list.
        record: usize,
        /// The first step of use.
        first: Step,
        /// The last step of use.
        last: Step,
    },
    /// The sum of the sizes up to this record exceeds 64 bits.
    #[error("the sizes up to record {record} do not fit in 64 bits")]
    SizeOverflow {
        /// Its index in the list.
        record: usize,
    },
    /// The alignment is 0.
    #[error("the alignment must be at least 1")]
    Alignment,
    /// A table does not have exactly one entry per record.
    #[error("there are {records} records, but {entries} entries for them")]
    Count {
        /// The number of records.
        records: usize,
        /// The length of the table.
        entries: usize,
    },
    /// An object id is not in the list of objects.
    #[error("there is no object {object}")]
    UnknownObject {
        /// The id.
        object: usize,
    },
    /// A graph refers to a record that is not in it.
    #[error("there is no record {record}")]
    UnknownRecord {
        /// Its index in the list.
        record: usize,
    },
    /// Two records with offsets supplied by the caller share steps and bytes.
    #[error("the offsets given for records {} and {} let them overlap", records.0, records.1)]
    Clash {
        /// Their indices in the list, ascending.
        records: (usize, usize),
    },
}

impl<S: RecordSize> Records<S> {
    /// Checks the list.
    ///
    /// # Errors
    ///
    /// If a record's last use comes before its first or in the last step that 64 bits can count, or
    /// the sum of all volumes does not fit in 64 bits.
    pub fn new(records: Vec<Record<S>>) -> Result<Self, RecordError> {
        let mut sum: u128 = 0;
        for (index, record) in records.iter().enumerate() {
            let Record { first, last, .. } = *record;
            if first > last || last == Step::MAX {
                return Err(RecordError::Lifetime { record: index, first, last });
            }
            sum = sum.saturating_add(record.size.volume());
            if sum > u128::from(u64::MAX) {
                return Err(RecordError::SizeOverflow { record: index });
            }
        }
        Ok(Self(records))
    }

    /// The indices of the records by first use; equal ones keep their order. Planners that walk
    /// over time use this order, so they do not require a sorted list.
    #[must_use]
    pub fn by_first_use(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|&index| self.0[index].first);
        order
    }
}

impl Records {
    /// The indices of the records by size, largest first; equal ones keep their order.
    #[must_use]
    pub fn by_size(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_by_key(|&index| Reverse(self.0[index].size));
        order
    }

    /// Returns the same records with their sizes rounded up to a multiple of the alignment.
    pub(super) fn rounded_up(&self, alignment: Bytes) -> Result<Self, RecordError> {
        self.check_aligned(alignment)?;
        let rounded =
            |record: &Record| Record { size: record.size.next_multiple_of(alignment), ..*record };
        Ok(Self(self.0.iter().map(rounded).collect()))
    }

    /// Checks that the rounded-up sizes plus one more alignment still fit in 64 bits.
    pub(super) fn check_aligned(&self, alignment: Bytes) -> Result<(), RecordError> {
        if alignment == 0 {
            return Err(RecordError::Alignment);
        }
        let mut sum = alignment;
        for (record, Record { size, .. }) in self.0.iter().enumerate() {
            sum = size
                .checked_next_multiple_of(alignment)
                .and_then(|size| sum.checked_add(size))
                .ok_or(RecordError::SizeOverflow { record })?;
        }
        Ok(())
    }
}

impl<S> std::ops::Deref for Records<S> {
    type Target = [Record<S>];

    fn deref(&self) -> &[Record<S>] {
        &self.0
    }
}

/// The things in use while walking over time, each until a last step of its own.
#[derive(Debug, Default)]
pub(super) struct InUse(BinaryHeap<Reverse<(Step, usize)>>);

impl InUse {
    /// Marks a thing as in use up to and including step `last`.
    pub(super) fn until(&mut self, last: Step, thing: usize) {
        self.0.push(Reverse((last, thing)));
    }

    /// Removes and returns a thing whose last step comes before `step`: by last step, then by
    /// number.
    pub(super) fn ended_before(&mut self, step: Step) -> Option<usize> {
        let &Reverse((last, thing)) = self.0.peek()?;
        (last < step).then(|| {
            self.0.pop();
            thing
        })
    }
}
