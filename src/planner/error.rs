//! Errors between an input and its plan.

use crate::{Bytes, ProblemError, SequenceError, Strategy};

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
    /// The strategy does not know what the problem asks for.
    #[error(
        "strategy {strategy} plans plain problems only, and this one has pools, pins, holes, parts or streams; best, optimal and first-fit know them"
    )]
    Unsupported {
        /// The strategy.
        strategy: Strategy,
    },
    /// A body found no place in any of its pools.
    #[error("no pool has room for chunk '{chunk}' of {size} B, with what is joined to it")]
    NoPlace {
        /// A chunk of the body.
        chunk: String,
        /// The bytes of the body.
        size: Bytes,
    },
    /// The problem cannot be planned.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}
