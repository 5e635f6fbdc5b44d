//! Errors between an input and its plan.

use crate::{ProblemError, SequenceError};

/// Planning failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The sequence cannot be lowered.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// The sequence that an operator runs cannot be planned.
    #[error("the body of operator {operator} cannot be planned: {source}")]
    Body {
        /// The operator.
        operator: String,
        /// The reason.
        source: Box<PlanError>,
    },
    /// The problem cannot be planned.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}
