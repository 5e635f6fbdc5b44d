//! Errors in TensorFlow Lite models.

use crate::{SequenceError, import::OpenSize};

/// A TensorFlow Lite model that cannot be read, planned or written. The caller adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TfliteError {
    /// The file does not begin like a TensorFlow Lite model.
    #[error("this is not a TensorFlow Lite model: bytes 4 to 7 are not 'TFL3'")]
    NotTflite,
    /// A reference leads out of the file, or an item extends beyond its end.
    #[error(
        "byte {at}: {what} is damaged or leads out of the file; the file is cut short or not a TensorFlow Lite model"
    )]
    Damaged {
        /// The place in the file.
        at: usize,
        /// The thing found there.
        what: &'static str,
    },
    /// So many references lead to the same bytes that the model is many times as large as the file.
    #[error("the file refers to the same bytes so often that it describes far more than it holds")]
    TooMuch,
    /// A part of the model is invalid.
    #[error("{place}: {reason}")]
    Wrong {
        /// The subgraph with its tensor or operator.
        place: String,
        /// The reason.
        reason: String,
    },
    /// A part of the model is not supported by memplan or by the runtime.
    #[error("{place}: {what}; {remedy}")]
    Unsupported {
        /// The subgraph with its tensor or operator.
        place: String,
        /// The thing that is not supported.
        what: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// Sizes are known only at run time, and nothing bounds them.
    #[error("{}", super::shapes::message(open))]
    OpenSizes {
        /// The sizes, tensor by tensor: of inputs, and of outputs whose operators have inputs of known shapes.
        open: Vec<OpenSize>,
    },
    /// The operators are not a valid sequence.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
}
