//! The error of the readers of small tables, which have an entry in each line.

/// A line that cannot be read. The caller adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
#[non_exhaustive]
pub struct LineError {
    /// The line, from 1.
    pub line: usize,
    /// The reason, with what to write instead.
    pub reason: String,
}
