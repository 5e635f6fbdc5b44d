//! The parts that the files of sequences, problems and plans share.

use crate::Bytes;

/// Returns whether a number is 0, and so may be omitted from a file.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(crate) fn is_zero(bytes: &Bytes) -> bool {
    *bytes == 0
}

/// Finds chunks by the ids that a file gives them.
pub(crate) struct Places {
    /// The id and list index of each chunk, by id.
    sorted: Vec<(u64, usize)>,
}

impl Places {
    pub(crate) fn new(ids: impl Iterator<Item = u64>) -> Self {
        let mut sorted: Vec<(u64, usize)> = ids.zip(0..).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// Returns the list index of an id, or any of them if the id is repeated.
    pub(crate) fn find(&self, id: u64) -> Option<usize> {
        let at = self.sorted.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(self.sorted[at].1)
    }
}
