//! Shared objects: the other kind of answer that a planner can give.
//!
//! Each record gets an object instead of an offset in one pool. An object is a buffer that records
//! of other steps use as well. Placed one after another, the objects give offsets.

use crate::{
    Bytes,
    baselines::records::{RecordError, RecordSize},
};

/// An object for every record, and the size of every object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects<S = Bytes> {
    ids: Vec<usize>,
    sizes: Vec<S>,
}

/// An offset in one pool for every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offsets {
    /// The offsets in bytes, by record.
    pub offsets: Vec<Bytes>,
    /// The highest end of a record, in bytes.
    pub total: Bytes,
}

impl<S> Default for Objects<S> {
    /// No records and no objects.
    fn default() -> Self {
        Self::for_records(0)
    }
}

impl<S> Objects<S> {
    /// Creates a table in which no record has an object yet.
    pub(super) fn for_records(count: usize) -> Self {
        Self { ids: vec![0; count], sizes: Vec::new() }
    }

    /// Adds an object of this size and returns its id.
    pub(super) fn add(&mut self, size: S) -> usize {
        self.sizes.push(size);
        self.sizes.len() - 1
    }

    /// Assigns an object to a record.
    pub(super) fn assign(&mut self, record: usize, object: usize) {
        self.ids[record] = object;
    }

    /// The object of each record.
    #[must_use]
    pub fn ids(&self) -> &[usize] {
        &self.ids
    }

    /// The size of each object.
    #[must_use]
    pub fn sizes(&self) -> &[S] {
        &self.sizes
    }

    pub(super) fn into_parts(self) -> (Vec<usize>, Vec<S>) {
        (self.ids, self.sizes)
    }
}

impl<S: RecordSize> Objects<S> {
    /// Checks ids and sizes supplied by the caller.
    ///
    /// # Errors
    ///
    /// If an id is not in the list of sizes, or the sum of the sizes exceeds 64 bits.
    pub fn new(ids: Vec<usize>, sizes: Vec<S>) -> Result<Self, RecordError> {
        if let Some(&object) = ids.iter().find(|&&id| id >= sizes.len()) {
            return Err(RecordError::UnknownObject { object });
        }
        let mut sum: u128 = 0;
        for (object, size) in sizes.iter().enumerate() {
            sum = sum.saturating_add(size.volume());
            if sum > u128::from(u64::MAX) {
                return Err(RecordError::SizeOverflow { record: object });
            }
        }
        Ok(Self { ids, sizes })
    }
}

impl Objects {
    /// Grows an object to at least this size.
    pub(super) fn grow(&mut self, object: usize, size: Bytes) {
        self.sizes[object] = self.sizes[object].max(size);
    }

    /// The total size of all objects in bytes. Each object is as large as one of its records, so
    /// the sum fits in 64 bits.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.sizes.iter().sum()
    }

    /// Places the objects one after another.
    #[must_use]
    pub fn offsets(&self) -> Offsets {
        let mut total = 0;
        let starts: Vec<Bytes> = self
            .sizes
            .iter()
            .map(|size| {
                total += size;
                total - size
            })
            .collect();
        Offsets { offsets: self.ids.iter().map(|&id| starts[id]).collect(), total }
    }
}
