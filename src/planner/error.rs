//! Errors between an input and its plan.

use crate::{ProblemError, SequenceError};

/// Planning failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The sequence cannot be lowered.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// The problem cannot be planned.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}
