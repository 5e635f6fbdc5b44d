//! The file form of a problem, `memplan-problem/1`.

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Step,
    file::Places,
    problem::{Ids, Problem, ProblemError, Request},
};

const FORMAT: &str = "memplan-problem/1";

/// A problem as it stands in a JSON file, not yet checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProblemFile {
    /// Always `memplan-problem/1`.
    pub format: String,
    /// Alignment of roots in bytes; 1 if omitted.
    #[serde(default = "one")]
    pub alignment: Bytes,
    /// Bytes added to every chunk; 0 if omitted.
    #[serde(default)]
    pub padding: Bytes,
    /// The chunks.
    pub chunks: Vec<ChunkEntry>,
    /// The requests to overwrite, in order.
    #[serde(default)]
    pub overwrites: Vec<OverwriteEntry>,
}

/// A chunk in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChunkEntry {
    /// An arbitrary number, unique in its file.
    pub id: u64,
    /// A name for people; may be omitted.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: Box<str>,
    /// First step.
    pub begin: Step,
    /// Last reading step + 1.
    pub end: Step,
    /// Bytes.
    pub size: Bytes,
}

/// A request to overwrite in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OverwriteEntry {
    /// Id of the overwriter.
    pub chunk: u64,
    /// Id of the overwritten chunk.
    pub overwritten: u64,
    /// Bytes from the overwritten chunk's start.
    pub offset: Bytes,
    /// True if the overwrite must be honoured; `false` if omitted.
    #[serde(default)]
    pub required: bool,
}

fn one() -> Bytes {
    1
}

impl From<Problem> for ProblemFile {
    fn from(problem: Problem) -> Self {
        let labels = problem.labels();
        // Text ids become names, because files of this format number their chunks.
        let name = |chunk| match labels.own_name(chunk) {
            Some(name) => name.into(),
            None if matches!(labels.ids, Ids::Texts(_)) => labels.id(chunk).into(),
            None => "".into(),
        };
        Self {
            format: FORMAT.to_owned(),
            alignment: problem.alignment(),
            padding: problem.padding(),
            chunks: problem
                .ids()
                .zip(problem.chunks())
                .map(|(id, chunk)| ChunkEntry {
                    id: labels.number(id),
                    name: name(id),
                    begin: chunk.begin,
                    end: chunk.end,
                    size: chunk.size,
                })
                .collect(),
            overwrites: problem
                .requests()
                .iter()
                .map(|request| OverwriteEntry {
                    chunk: labels.number(request.overwriter),
                    overwritten: labels.number(request.overwritten),
                    offset: request.offset,
                    required: request.required,
                })
                .collect(),
        }
    }
}

impl TryFrom<ProblemFile> for Problem {
    type Error = ProblemError;

    fn try_from(file: ProblemFile) -> Result<Self, ProblemError> {
        if file.format != FORMAT {
            return Err(ProblemError::Format { found: file.format, expected: FORMAT });
        }
        if u32::try_from(file.chunks.len()).is_err() {
            return Err(ProblemError::TooManyChunks);
        }
        let mut problem = Problem::builder();
        let numbers: Vec<u64> = file.chunks.iter().map(|chunk| chunk.id).collect();
        let named = file.chunks.iter().any(|chunk| !chunk.name.is_empty());
        for chunk in file.chunks {
            if named {
                problem.named_chunk(chunk.name, chunk.begin..chunk.end, chunk.size);
            } else {
                problem.chunk(chunk.begin..chunk.end, chunk.size);
            }
        }
        let places = Places::new(numbers.iter().copied());
        let find = |id: u64| {
            places.find(id).map(super::ChunkId::from_index).ok_or(ProblemError::UnknownChunk { id })
        };
        for entry in &file.overwrites {
            problem.request(Request {
                overwriter: find(entry.chunk)?,
                overwritten: find(entry.overwritten)?,
                offset: entry.offset,
                required: entry.required,
            });
        }
        problem.with_ids(Ids::numbers(numbers));
        problem.alignment(file.alignment).padding(file.padding).finish()
    }
}
