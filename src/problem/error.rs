//! Errors in problems.

use crate::{Bytes, Step, problem::Refusal};

/// A problem that cannot be planned. Chunks are named as in the input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// A chunk's lifetime does not end after it begins.
    #[error(
        "chunk '{chunk}' has an empty lifetime [{begin}, {end}): `end` is the last reading step + 1"
    )]
    EmptyLifetime {
        /// The chunk's name.
        chunk: String,
        /// Its first step.
        begin: Step,
        /// Its end.
        end: Step,
    },
    /// Two chunks have the same id.
    #[error("two chunks have the id '{id}'; ids must be unique")]
    DuplicateId {
        /// The id.
        id: String,
    },
    /// The number of ids differs from the number of chunks.
    #[error("the number of ids is not the number of chunks, {chunks}")]
    IdCount {
        /// The number of chunks.
        chunks: usize,
    },
    /// A request refers to a chunk that does not exist.
    #[error("an overwrite request names chunk {id}, which does not exist")]
    UnknownChunk {
        /// The id that no chunk has.
        id: u64,
    },
    /// A chunk requests to overwrite itself.
    #[error("chunk '{chunk}' requests to overwrite itself")]
    OverwritesItself {
        /// The chunk's name.
        chunk: String,
    },
    /// An overwriter does not fit into the chunk that it would overwrite.
    #[error(
        "chunk '{overwriter}' ({size} B) does not fit in '{overwritten}' ({room} B) at offset {offset}"
    )]
    OverwriteDoesNotFit {
        /// The overwriter's name.
        overwriter: String,
        /// The overwritten chunk's name.
        overwritten: String,
        /// The overwriter's size in bytes.
        size: Bytes,
        /// The requested offset in bytes.
        offset: Bytes,
        /// The overwritten chunk's size in bytes.
        room: Bytes,
    },
    /// A required overwrite cannot be honoured.
    #[error("chunk '{overwriter}' must overwrite '{overwritten}', but {reason}")]
    RequiredOverwrite {
        /// The overwriter's name.
        overwriter: String,
        /// The overwritten chunk's name.
        overwritten: String,
        /// The reason.
        reason: Refusal,
    },
    /// The alignment is not a power of two.
    #[error("alignment {alignment} is not a power of two")]
    Alignment {
        /// The alignment in bytes.
        alignment: Bytes,
    },
    /// The padded and aligned sizes of all chunks, plus one more alignment, do not add up in 64
    /// bits.
    #[error(
        "the sizes of all chunks and an alignment add up to 2^64 bytes or more (at chunk '{chunk}' \
         of {size} B; the alignment is {alignment} B, the padding of each chunk {padding} B)"
    )]
    SizeOverflow {
        /// The chunk at which the sum no longer fits.
        chunk: String,
        /// Its size in bytes.
        size: Bytes,
        /// The alignment in bytes.
        alignment: Bytes,
        /// The padding in bytes.
        padding: Bytes,
    },
    /// There are more chunks than ids.
    #[error("a problem holds at most {} chunks", u32::MAX)]
    TooManyChunks,
    /// The file has another format.
    #[error("the format is '{found}', expected '{expected}'")]
    Format {
        /// The format in the file.
        found: String,
        /// The format expected.
        expected: &'static str,
    },
}
