//! The names and ids of chunks in messages and files. Planners never read them.

use crate::problem::{ChunkId, Problem};

/// The ids by which the caller's file or program identifies the chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The position in the list is the id.
    #[default]
    Positions,
    /// Each chunk has a number.
    Numbers(Vec<u64>),
    /// Each chunk has a text, as in MiniMalloc's files. Where a number is needed, the position is
    /// used.
    #[cfg_attr(not(feature = "files"), allow(dead_code, reason = "only CSV files have them"))]
    Texts(Vec<Box<str>>),
}

impl Ids {
    /// Converts numbers to ids, or to `Positions` if they count from 0.
    pub(crate) fn numbers(numbers: Vec<u64>) -> Self {
        if numbers.iter().copied().eq(0..numbers.len() as u64) {
            Self::Positions
        } else {
            Self::Numbers(numbers)
        }
    }

    /// The number of ids; `None` for positions, which every chunk has.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Self::Positions => None,
            Self::Numbers(numbers) => Some(numbers.len()),
            Self::Texts(texts) => Some(texts.len()),
        }
    }
}

/// The ids and names of chunks; takes no memory per chunk if there are neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    /// The ids: one for each chunk, or [`Ids::Positions`].
    pub(crate) ids: Ids,
    /// The names; as many as there are chunks, or empty. An empty name stands for the id.
    pub(crate) names: Vec<Box<str>>,
}

impl Labels {
    pub(crate) fn number(&self, chunk: ChunkId) -> u64 {
        match &self.ids {
            Ids::Numbers(numbers) => numbers[chunk.index()],
            Ids::Positions | Ids::Texts(_) => u64::from(chunk.0),
        }
    }

    pub(crate) fn id(&self, chunk: ChunkId) -> String {
        match &self.ids {
            Ids::Texts(texts) => texts[chunk.index()].to_string(),
            Ids::Positions | Ids::Numbers(_) => self.number(chunk).to_string(),
        }
    }

    pub(crate) fn own_name(&self, chunk: ChunkId) -> Option<&str> {
        self.names.get(chunk.index()).map(AsRef::as_ref).filter(|name| !name.is_empty())
    }

    pub(crate) fn name(&self, chunk: ChunkId) -> String {
        self.own_name(chunk).map_or_else(|| self.id(chunk), str::to_owned)
    }
}

impl Problem {
    /// The id of a chunk as a number.
    ///
    /// # Panics
    ///
    /// If the id belongs to another problem with more chunks.
    #[must_use]
    pub fn number(&self, chunk: ChunkId) -> u64 {
        self.labels.number(chunk)
    }

    /// The id of a chunk as written in its input.
    ///
    /// # Panics
    ///
    /// If the id belongs to another problem with more chunks.
    #[must_use]
    pub fn id(&self, chunk: ChunkId) -> String {
        self.labels.id(chunk)
    }

    /// The name of a chunk, if it has one of its own.
    #[must_use]
    pub fn own_name(&self, chunk: ChunkId) -> Option<&str> {
        self.labels.own_name(chunk)
    }

    /// The name of a chunk for messages: its own, or its id if it has none.
    ///
    /// # Panics
    ///
    /// If the id belongs to another problem with more chunks.
    #[must_use]
    pub fn name(&self, chunk: ChunkId) -> String {
        self.labels.name(chunk)
    }
}
