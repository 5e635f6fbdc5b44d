//! The chunks of a sequence, whatever the order of its operators: the producer and readers of each,
//! and the chunks that may be written over it.
//!
//! The result of [`lower`](super::lower) depends on the order of the operators only through
//! lifetimes. The same passes make the part that does not depend on it: the chunks and the requests
//! to overwrite are the same in every order, and lifetimes follow from producers and readers.

use crate::{
    Bytes, SequenceError,
    lower::{LoweringOptions, Placing, lifetimes, place, requests},
    problem::{ChunkId, Request},
    sequence::OpSequence,
};

/// The chunks of a sequence, those outside the pool included.
#[derive(Debug)]
pub(crate) struct ChunkGraph {
    pub(crate) chunks: Vec<GraphChunk>,
    /// The requests in the order in which rules a to c take them, that of the operators.
    pub(crate) requests: Vec<Request>,
}

/// A chunk and the operators that use it, by their steps in the order given.
#[derive(Clone, Debug)]
pub(crate) struct GraphChunk {
    pub(crate) size: Bytes,
    /// The operator that produces it; `None` if it exists before the first step.
    pub(crate) producer: Option<usize>,
    /// The operators that read it through any of its views, except the producer; ascending, without
    /// duplicates.
    pub(crate) readers: Vec<usize>,
    /// True if it lives to the end of the sequence.
    pub(crate) kept: bool,
    /// True if it is memory of a supplied tensor outside the pool.
    pub(crate) outside: bool,
}

/// Returns the chunks of a sequence that [`lower`](super::lower) accepts.
///
/// # Errors
///
/// As [`lower`](super::lower).
pub(crate) fn chunk_graph(
    sequence: &OpSequence,
    options: LoweringOptions,
) -> Result<ChunkGraph, SequenceError> {
    let mut places = place::place(sequence, options)?;
    lifetimes::walk(sequence, &mut places);
    // Which overlaps save something matters only to the links.
    let resolved = requests::resolve(sequence, options, Placing::default(), &places, None)?;
    let mut chunks: Vec<GraphChunk> = places
        .chunks
        .iter()
        .enumerate()
        .map(|(index, chunk)| GraphChunk {
            size: chunk.size,
            producer: None,
            readers: Vec::new(),
            kept: chunk.kept(),
            outside: {
                let (root, _) = resolved.place_in_chain(ChunkId::from_index(index));
                places.chunks[root.index()].outside.is_some()
            },
        })
        .collect();
    let mut made = vec![false; chunks.len()];
    for chunk in lifetimes::supplied(sequence, &places) {
        made[chunk.index()] = true;
    }
    for (step, chunk) in lifetimes::uses(sequence, &places) {
        let known = std::mem::replace(&mut made[chunk.index()], true);
        let chunk = &mut chunks[chunk.index()];
        if !known {
            chunk.producer = Some(step);
        } else if chunk.producer != Some(step) && chunk.readers.last() != Some(&step) {
            chunk.readers.push(step);
        }
    }
    Ok(ChunkGraph { chunks, requests: resolved.into_requests() })
}
