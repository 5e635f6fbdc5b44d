//! The copies that make a pool smaller.

use crate::{Bytes, Plan};

/// Bytes that an operator copies although its output could share them with an input, because that makes the pool
/// smaller: a view, or a gathered input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct PlannedCopy {
    pub(crate) output: Box<str>,
    pub(crate) input: Box<str>,
    /// The bytes that are copied.
    pub(crate) size: Bytes,
}

/// What a plan copies to make its pool smaller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct PlannedCopies {
    pub(crate) list: Vec<PlannedCopy>,
    pub(crate) saved: Bytes,
}

impl PlannedCopies {
    #[cfg(feature = "serde")]
    pub(crate) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The bytes that are copied, all together.
    pub(crate) fn size(&self) -> Bytes {
        self.list.iter().map(|copy| copy.size).fold(0, Bytes::saturating_add)
    }
}

impl Plan {
    /// States what the plan copies, and what it saves.
    pub(crate) fn with_copies(self, list: Vec<PlannedCopy>, saved: Bytes) -> Self {
        let copies =
            if list.is_empty() { PlannedCopies::default() } else { PlannedCopies { list, saved } };
        Self { copies, ..self }
    }
}
