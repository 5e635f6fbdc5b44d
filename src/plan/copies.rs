//! The copies that make a pool smaller, or that a required overwrite needs.

use crate::{
    Bytes, Plan,
    sequence::{Dependency, OpSequence, Tie},
};

/// Bytes that an operator copies although its output could share them with an input: a view, or a gathered input. That
/// makes the pool smaller, or a required overwrite would destroy the bytes.
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

impl PlannedCopy {
    /// The copy that giving up a tie causes, if any.
    pub(crate) fn of(sequence: &OpSequence, tie: Tie) -> Option<Self> {
        let (output, input) =
            (sequence.tensor(tie.output), sequence.tensor(sequence.input_of(tie)));
        let size = match sequence.dependency(tie.output) {
            Dependency::Reads { .. } => output.size?,
            Dependency::Gathers(_) => input.size?,
            Dependency::Overwrites(_) | Dependency::Fresh => return None,
        };
        Some(Self { output: output.name.clone(), input: input.name.clone(), size })
    }
}

/// The copies of a plan, and the bytes by which they make its pool smaller.
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
    /// States what else the plan copies, and what all copies save.
    pub(crate) fn with_copies(mut self, more: Vec<PlannedCopy>, saved: Bytes) -> Self {
        self.copies.list.extend(more);
        self.copies.saved = if self.copies.list.is_empty() { 0 } else { saved };
        self
    }
}
