//! Errors in recordings.

use crate::ProblemError;

/// A recording that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
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
    /// The text is not JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A profile has no memory events, or a snapshot has no allocations.
    #[error("no allocations are recorded{remedy}")]
    Empty {
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
    Damaged(crate::import::tflite::TfliteError),
    /// This build has no reader for ExecuTorch's programs.
    #[error("this build of memplan cannot read .pte; build it with feature \"tflite\"")]
    NoPte,
    /// The allocations are not a valid problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

/// The reader of flatbuffers is that of TensorFlow Lite models.
#[cfg(feature = "tflite")]
fn damage(error: &crate::import::tflite::TfliteError) -> String {
    match error {
        crate::import::tflite::TfliteError::Damaged { at, what } => {
            format!("byte {at}: {what} is damaged or leads out of the file; the file is cut short")
        }
        error => error.to_string(),
    }
}
