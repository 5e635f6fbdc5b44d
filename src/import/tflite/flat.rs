//! Flatbuffers: tables, vectors and strings, each reference checked.
//!
//! References lead forward, so they form no cycle, but many may lead to the same bytes. The reader
//! therefore counts what it reads, and stops when that is many times the size of the file.

use std::cell::Cell;

use super::TfliteError;

/// The bytes of a file, and how many may still be read from it.
pub(crate) struct File<'a> {
    bytes: &'a [u8],
    budget: Cell<usize>,
}

/// A table, at a place in the file that is checked.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    file: &'a File<'a>,
    at: usize,
    size: usize,
    vtable: usize,
    slots: usize,
}

/// A vector, at a place in the file that is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vector {
    /// The place of the first element.
    pub(crate) at: usize,
    /// The number of elements.
    pub(crate) length: usize,
}

impl<'a> File<'a> {
    /// Checks that the bytes have the identifier of a TensorFlow Lite model.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, TfliteError> {
        if bytes.get(4..8) != Some(b"TFL3") {
            return Err(TfliteError::NotTflite);
        }
        Ok(Self::unchecked(bytes))
    }

    /// Takes the bytes of a flatbuffer of another kind, which the caller has checked.
    pub(crate) fn unchecked(bytes: &'a [u8]) -> Self {
        // A whole model reads most of its bytes once.
        let budget = Cell::new(bytes.len().saturating_mul(4).saturating_add(4096));
        Self { bytes, budget }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn root(&'a self) -> Result<Table<'a>, TfliteError> {
        self.table(self.reference(0, "the root")?, "the root")
    }

    fn array<const N: usize>(&self, at: usize, what: &'static str) -> Result<[u8; N], TfliteError> {
        let bytes = at.checked_add(N).and_then(|end| self.bytes.get(at..end));
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or(TfliteError::Damaged { at, what })
    }

    fn u16(&self, at: usize, what: &'static str) -> Result<usize, TfliteError> {
        self.array(at, what).map(|bytes| u16::from_le_bytes(bytes).into())
    }

    fn u32(&self, at: usize, what: &'static str) -> Result<usize, TfliteError> {
        let number = u32::from_le_bytes(self.array(at, what)?);
        usize::try_from(number).map_err(|_| TfliteError::Damaged { at, what })
    }

    /// Follows the reference at a place.
    fn reference(&self, at: usize, what: &'static str) -> Result<usize, TfliteError> {
        let distance = self.u32(at, what)?;
        let target = at.checked_add(distance).filter(|&to| distance > 0 && to < self.bytes.len());
        target.ok_or(TfliteError::Damaged { at, what })
    }

    /// Counts bytes of memory that the contents of the file take.
    ///
    /// # Errors
    ///
    /// If that is far more than the file holds.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), TfliteError> {
        let left = self.budget.get().checked_sub(bytes).ok_or(TfliteError::TooMuch)?;
        self.budget.set(left);
        Ok(())
    }

    fn table(&'a self, at: usize, what: &'static str) -> Result<Table<'a>, TfliteError> {
        let damaged = TfliteError::Damaged { at, what };
        let back = i32::from_le_bytes(self.array(at, what)?);
        let vtable =
            i64::try_from(at).ok().and_then(|at| usize::try_from(at - i64::from(back)).ok());
        let Some(vtable) = vtable else { return Err(damaged) };
        let length = self.u16(vtable, what)?;
        let size = self.u16(vtable + 2, what)?;
        let ends_inside = |start: usize, length: usize| {
            start.checked_add(length).is_some_and(|end| end <= self.bytes.len())
        };
        if length < 4 || size < 4 || !ends_inside(vtable, length) || !ends_inside(at, size) {
            return Err(damaged);
        }
        // A table takes more memory than it takes in the file.
        self.spend(16 + size)?;
        Ok(Table { file: self, at, size, vtable, slots: (length - 4) / 2 })
    }

    pub(crate) fn vector(
        &self,
        at: usize,
        width: usize,
        what: &'static str,
    ) -> Result<Vector, TfliteError> {
        let length = self.u32(at, what)?;
        let start = at + 4;
        let end = length.checked_mul(width).and_then(|bytes| start.checked_add(bytes));
        if end.is_none_or(|end| end > self.bytes.len()) {
            return Err(TfliteError::Damaged { at, what });
        }
        Ok(Vector { at: start, length })
    }

    /// The places that the elements of a vector refer to.
    pub(crate) fn targets(
        &self,
        vector: Vector,
        what: &'static str,
    ) -> Result<Vec<usize>, TfliteError> {
        self.spend(vector.length.saturating_mul(4))?;
        (0..vector.length).map(|index| self.reference(vector.at + 4 * index, what)).collect()
    }

    /// The elements of a vector of 32-bit integers.
    pub(crate) fn i32s(&self, vector: Vector) -> Result<Vec<i32>, TfliteError> {
        self.spend(vector.length.saturating_mul(4))?;
        let place = |index: usize| vector.at + 4 * index;
        let number = |index| self.array(place(index), "a vector").map(i32::from_le_bytes);
        (0..vector.length).map(number).collect()
    }

    /// The elements of a vector of 64-bit integers.
    #[cfg(feature = "files")]
    pub(crate) fn u64s(&self, vector: Vector) -> Result<Vec<u64>, TfliteError> {
        self.spend(vector.length.saturating_mul(8))?;
        let place = |index: usize| vector.at + 8 * index;
        let number = |index| self.array(place(index), "a vector").map(u64::from_le_bytes);
        (0..vector.length).map(number).collect()
    }
}

impl<'a> Table<'a> {
    /// The number of fields that its layout lists.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The place of a field of this many bytes, if the table has it.
    pub(crate) fn field(
        &self,
        slot: usize,
        width: usize,
        what: &'static str,
    ) -> Result<Option<usize>, TfliteError> {
        if slot >= self.slots {
            return Ok(None);
        }
        match self.file.u16(self.vtable + 4 + 2 * slot, what)? {
            0 => Ok(None),
            offset if offset >= 4 && offset + width <= self.size => Ok(Some(self.at + offset)),
            _ => Err(TfliteError::Damaged { at: self.at, what }),
        }
    }

    pub(crate) fn u8(&self, slot: usize, what: &'static str) -> Result<u8, TfliteError> {
        let place = self.field(slot, 1, what)?;
        place.map_or(Ok(0), |at| self.file.array(at, what).map(|[byte]| byte))
    }

    pub(crate) fn u32(&self, slot: usize, what: &'static str) -> Result<usize, TfliteError> {
        let place = self.field(slot, 4, what)?;
        place.map_or(Ok(0), |at| self.file.u32(at, what))
    }

    pub(crate) fn i32_or(
        &self,
        slot: usize,
        default: i32,
        what: &'static str,
    ) -> Result<i32, TfliteError> {
        let place = self.field(slot, 4, what)?;
        place.map_or(Ok(default), |at| self.file.array(at, what).map(i32::from_le_bytes))
    }

    pub(crate) fn u64(&self, slot: usize, what: &'static str) -> Result<u64, TfliteError> {
        let place = self.field(slot, 8, what)?;
        place.map_or(Ok(0), |at| self.file.array(at, what).map(u64::from_le_bytes))
    }

    /// The place that a field refers to.
    pub(crate) fn target(
        &self,
        slot: usize,
        what: &'static str,
    ) -> Result<Option<usize>, TfliteError> {
        let place = self.field(slot, 4, what)?;
        place.map(|at| self.file.reference(at, what)).transpose()
    }

    pub(crate) fn table(
        &self,
        slot: usize,
        what: &'static str,
    ) -> Result<Option<Table<'a>>, TfliteError> {
        self.target(slot, what)?.map(|at| self.file.table(at, what)).transpose()
    }

    /// A vector of elements of this many bytes; empty if the field is absent.
    pub(crate) fn vector(
        &self,
        slot: usize,
        width: usize,
        what: &'static str,
    ) -> Result<Vector, TfliteError> {
        let place = self.target(slot, what)?;
        place.map_or(Ok(Vector::default()), |at| self.file.vector(at, width, what))
    }

    pub(crate) fn i32s(&self, slot: usize, what: &'static str) -> Result<Vec<i32>, TfliteError> {
        self.file.i32s(self.vector(slot, 4, what)?)
    }

    pub(crate) fn tables(
        &self,
        slot: usize,
        what: &'static str,
    ) -> Result<Vec<Table<'a>>, TfliteError> {
        let vector = self.vector(slot, 4, what)?;
        self.file.spend(vector.length.saturating_mul(4))?;
        let table =
            |index: usize| self.file.table(self.file.reference(vector.at + 4 * index, what)?, what);
        (0..vector.length).map(table).collect()
    }

    /// The text of a field; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self, slot: usize, what: &'static str) -> Result<String, TfliteError> {
        let vector = self.vector(slot, 1, what)?;
        self.file.spend(vector.length)?;
        let bytes = &self.file.bytes[vector.at..vector.at + vector.length];
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}
