//! Errors in files.

use crate::{PlanError, ProblemError, SequenceError, Step};

/// A file that cannot be read. The caller adds the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is not JSON, or not in the format that it states.
    #[cfg(feature = "files")]
    #[error("{}", in_plain_words(.0))]
    Json(#[from] serde_json::Error),
    /// The file has no content.
    #[error("the file is empty")]
    Empty,
    /// The text is not JSON.
    #[error(
        "this is not JSON, which begins with '{{'; if the file is in another format, state it with --format"
    )]
    NotJson,
    /// A JSON object does not state its format.
    #[error(
        "no \"format\" that memplan supports (found {found}); expected \"memplan-sequence/1\" or \"/2\", \"memplan-problem/1\" or \"/2\", or \"memplan-plan/1\" or \"/2\""
    )]
    UnknownFormat {
        /// The format found.
        found: String,
    },
    /// The file is a plan instead of an operator sequence or a problem.
    #[error("this is a plan, not an operator sequence or a problem; give the input of the plan")]
    IsAPlan,
    /// The file is not a plan.
    #[error(
        "this is not a plan; a plan is a .json of format \"memplan-plan/1\" or \"/2\", or a .csv with an 'offset' column"
    )]
    NotAPlan,
    /// The text is not CSV.
    #[cfg(feature = "files")]
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// A comment in a CSV file goes on behind a carriage return, and would hide the lines there.
    #[error("line {line}: a comment has a carriage return in it; end the lines with a newline")]
    CommentGoesOn {
        /// The line, from 1.
        line: u64,
    },
    /// A column is unknown.
    #[error(
        "line {line}: unknown column '{column}'; known are id (buffer, buffer_id), lower (begin, start), upper, end (inclusive), size, alignment, hint, gaps, offset, kind"
    )]
    UnknownColumn {
        /// The line of the headings, from 1.
        line: u64,
        /// Its heading.
        column: String,
    },
    /// Two columns have the same meaning.
    #[error("line {line}: columns '{}' and '{}' have the same meaning; remove one", columns[0], columns[1])]
    RepeatedColumn {
        /// The line of the headings, from 1.
        line: u64,
        /// Their headings.
        columns: [&'static str; 2],
    },
    /// A required column is missing.
    #[error("line {line}: no column '{column}'; needed are id, lower, upper (or end) and size")]
    MissingColumn {
        /// The line of the headings, from 1.
        line: u64,
        /// Its heading.
        column: &'static str,
    },
    /// A field is not a number in range.
    #[error("line {line}, column '{column}': '{value}' is not {expected}")]
    BadField {
        /// Its line, from 1.
        line: u64,
        /// The heading of its column.
        column: &'static str,
        /// The value found.
        value: String,
        /// The value expected.
        expected: &'static str,
    },
    /// A chunk does not end after it begins.
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
        /// The value of its end.
        upper: Step,
        /// True if that is its last step, false if it is the step after.
        inclusive: bool,
    },
    /// A line of a small table, with an entry for an operator, cannot be read.
    #[error("line {line}: {reason}")]
    Entry {
        /// The line, from 1.
        line: usize,
        /// The reason, with what to write instead.
        reason: String,
    },
    /// The chunks are not a valid problem because of one of them.
    #[error("line {line}: {error}")]
    Line {
        /// Its line, from 1.
        line: u64,
        /// The error.
        error: ProblemError,
    },
    /// The chunks are not a valid problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The operators are not a valid sequence.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// The ONNX model cannot be read.
    #[cfg(feature = "onnx")]
    #[error(transparent)]
    Onnx(#[from] super::onnx::OnnxError),
    /// The TensorFlow Lite model cannot be read.
    #[cfg(feature = "tflite")]
    #[error(transparent)]
    Tflite(#[from] super::tflite::TfliteError),
    /// The bytes are not a pickle of plain values.
    #[error("byte {at}: {what}")]
    Pickle {
        /// The place, in bytes from the start of the file.
        at: usize,
        /// The fault found there.
        what: String,
    },
    /// A pickle is not a memory snapshot.
    #[error(
        "this pickle is not a memory snapshot: it has no {missing}; record with torch.cuda.memory._record_memory_history() and write with torch.cuda.memory._dump_snapshot(FILE)"
    )]
    NotASnapshot {
        /// The missing entry.
        missing: &'static str,
    },
    /// An event of a snapshot lacks a number.
    #[error("event {event} of {device} has no {missing}")]
    Event {
        /// The event, from 1.
        event: u64,
        /// The device.
        device: String,
        /// The missing number.
        missing: &'static str,
    },
    /// A profile has no memory events, or a snapshot has no allocations.
    #[error("no allocations are recorded{remedy}")]
    NothingRecorded {
        /// The setting with which they are recorded.
        remedy: &'static str,
    },
    /// The allocations of this device are not recorded.
    #[error("there is no device '{device}'; recorded are {known}")]
    UnknownDevice {
        /// The device.
        device: String,
        /// The names of all devices.
        known: String,
    },
    /// A line of XLA's text is wrong.
    #[error("line {line}: {what}")]
    Xla {
        /// The line, from 1.
        line: usize,
        /// The fault found there.
        what: String,
    },
    /// XLA's text has no live ranges.
    #[error(
        "there are no live ranges; XLA writes them at the end of ...-buffer-assignment.txt or, since 2025, into ...-live-range.txt beside it: keep both in one folder, or join them into one file"
    )]
    NoLiveRanges,
    /// The file is not a program of ExecuTorch.
    #[error("this is not an ExecuTorch program: bytes 4 to 7 are not 'ET12'")]
    NotPte,
    /// A part of an ExecuTorch program is wrong.
    #[error("{place}: {what}")]
    Pte {
        /// The part.
        place: String,
        /// The fault.
        what: &'static str,
    },
    /// An ExecuTorch program is damaged.
    #[cfg(feature = "tflite")]
    #[error("{}", damage(.0))]
    DamagedPte(super::tflite::TfliteError),
    /// This build has no reader for ExecuTorch's programs.
    #[error("this build of memplan cannot read .pte; build it with feature \"tflite\"")]
    NoPte,
    /// An entry of a file of addresses does not state one.
    #[error("{place}: {expected}")]
    Address {
        /// The tensor or the line.
        place: String,
        /// The form that is expected there.
        expected: &'static str,
    },
    /// A tensor has two addresses.
    #[error("'{name}' has two addresses; leave one out, and audit one run only")]
    TwoAddresses {
        /// The tensor.
        name: String,
    },
    /// No tensor of the model has an address.
    #[error("none of these names is a tensor of the model that has bytes; the first is '{first}'")]
    AddressesOfOthers {
        /// The first name in the file.
        first: String,
    },
    /// The operators have bodies, whose tensors have no addresses of their own here.
    #[error("operators with bodies, such as If and Loop, cannot be audited by addresses")]
    AddressesOfBodies,
    /// A tensor does not end below 2^64 at its address.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// This build has no reader for TensorFlow Lite models.
    #[error("this build of memplan cannot read .tflite; build it with feature \"tflite\"")]
    NoTflite,
    /// This build has no reader for ONNX.
    #[error("this build of memplan cannot read ONNX; build it with feature \"onnx\"")]
    NoOnnx,
}

/// The parser's message without its names of types.
#[cfg(feature = "files")]
fn in_plain_words(error: &serde_json::Error) -> String {
    let message = error.to_string();
    ["u64", "u32", "u16", "usize"].iter().fold(message, |message, name| {
        message.replace(
            &format!("expected {name} at line"),
            "expected a whole number of at least 0 at line",
        )
    })
}

/// The message for a damaged program. Programs are read with the flatbuffer reader of TensorFlow Lite models, whose own
/// message names a model.
#[cfg(feature = "tflite")]
fn damage(error: &super::tflite::TfliteError) -> String {
    match error {
        super::tflite::TfliteError::Damaged { at, what } => {
            format!("byte {at}: {what} is damaged or leads out of the file; the file is cut short")
        }
        error => error.to_string(),
    }
}
