//! What can be wrong with a file.

use crate::{ProblemError, SequenceError, Step};

/// A file that cannot be read. The caller adds the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is not JSON, or not of the format it claims.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A JSON object that does not say what it is.
    #[error(
        "no \"format\" that memplan supports (found {found}); expected \"memplan-sequence/1\", \"memplan-problem/1\" or \"memplan-plan/1\""
    )]
    UnknownFormat {
        /// What it says.
        found: String,
    },
    /// A plan where an operator sequence or a problem is wanted.
    #[error("this is a plan, not an operator sequence or a problem; give the input of the plan")]
    IsAPlan,
    /// Something else where a plan is wanted.
    #[error(
        "this is not a plan; a plan is a .json of format \"memplan-plan/1\" or a .csv with an 'offset' column"
    )]
    NotAPlan,
    /// The text is not CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// A column that memplan does not know.
    #[error(
        "line 1: unknown column '{column}'; known are id (buffer, buffer_id), lower (begin, start), upper, end (inclusive), size, alignment, hint, gaps, offset"
    )]
    UnknownColumn {
        /// Its heading.
        column: String,
    },
    /// Two columns that mean the same.
    #[error("line 1: two columns give the {column}")]
    RepeatedColumn {
        /// What both give.
        column: &'static str,
    },
    /// A column that must be there.
    #[error("line 1: no column gives the {column}; needed are id, lower, upper (or end) and size")]
    MissingColumn {
        /// What is missing.
        column: &'static str,
    },
    /// A field that is not a number in range.
    #[error("line {line}, column '{column}': '{value}' is not {expected}")]
    BadField {
        /// Its line, from 1.
        line: u64,
        /// Its column's meaning.
        column: &'static str,
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
    },
    /// A chunk that ends before or when it begins.
    #[error(
        "line {line}: chunk '{id}' has an empty lifetime: it begins in step {begin}, and {}",
        if *inclusive {
            format!("'end', its last step, is {upper}")
        } else {
            format!("'upper', the step after its last, is {upper}")
        }
    )]
    EmptyLifetime {
        /// Its line, from 1.
        line: u64,
        /// The chunk's id.
        id: String,
        /// Its first step.
        begin: Step,
        /// What stands for its end.
        upper: Step,
        /// Whether that is its last step, not the one after.
        inclusive: bool,
    },
    /// Chunks that make no problem, because of one of them.
    #[error("line {line}: {error}")]
    Line {
        /// Its line, from 1.
        line: u64,
        /// What is wrong.
        error: ProblemError,
    },
    /// A field that asks for what memplan cannot do.
    #[error("line {line}: chunk '{id}' has {what}, which memplan does not support; {remedy}")]
    Unsupported {
        /// Its line, from 1.
        line: u64,
        /// The chunk's id.
        id: String,
        /// What it has.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Chunks that make no problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// Operators that make no sequence.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// An ONNX model that cannot be read.
    #[cfg(feature = "onnx")]
    #[error(transparent)]
    Onnx(#[from] super::onnx::OnnxError),
    /// Built without the reader for ONNX.
    #[error("this build of memplan cannot read ONNX; build it with feature \"onnx\"")]
    NoOnnx,
}
