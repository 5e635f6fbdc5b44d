//! The chunks of a sequence, whatever the order of its operators: the producer and readers of each,
//! and the chunks that may be written over it.
//!
//! The result of [`lower`](super::lower) depends on the order of the operators only through
//! lifetimes. The same passes make the part that does not depend on it: the chunks and the requests
//! to overwrite are the same in every order, and lifetimes follow from producers and readers.

use crate::{
    Bytes, SequenceError,
    lower::{Cells, LoweringOptions, Placing, copies, lifetimes, place, requests},
    problem::{ChunkId, Request},
    sequence::OpSequence,
};

/// The chunks of a sequence, those outside the pool included.
#[derive(Clone, Debug)]
pub(crate) struct ChunkGraph {
    pub(crate) chunks: Vec<GraphChunk>,
    /// The requests in the order in which rules a to c take them, that of the operators.
    pub(crate) requests: Vec<Request>,
    /// True if views are copied because a required overwrite destroys bytes that they show, in the given order.
    pub(crate) has_copies: bool,
}

/// A [`ChunkGraph`] with sizes counted under an alignment and a padding.
#[derive(Debug)]
pub(crate) struct CountedGraph {
    pub(crate) chunks: Vec<GraphChunk>,
    pub(crate) requests: Vec<CountedRequest>,
    /// True if the size of every chunk is the same wherever it lies, and every output saves the bytes of at most one
    /// chunk.
    pub(crate) is_exact: bool,
}

/// A request to overwrite, and the bytes that it saves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedRequest {
    /// A number for the output, the same for all of its requests.
    pub(crate) output: u32,
    /// The operator that writes it, by its step.
    pub(crate) operator: usize,
    /// The output as a chunk, if it is one.
    pub(crate) made: Option<ChunkId>,
    /// The chunk to overwrite.
    pub(crate) overwritten: ChunkId,
    /// The bytes that the output saves if the chunk dies in its step.
    pub(crate) saved: Bytes,
    /// The size of the output in bytes. If several outputs request the same chunk, the largest one gets it.
    pub(crate) size: Bytes,
    pub(crate) required: bool,
}

impl ChunkGraph {
    /// Counts the bytes of all chunks and requests.
    pub(crate) fn counted(self, placing: Placing) -> CountedGraph {
        let Self { mut chunks, requests, .. } = self;
        let cells = Cells::of(placing, chunks.len(), &requests);
        let counted = requests.iter().filter_map(|request| {
            let (new, old) =
                (&chunks[request.overwriter.index()], &chunks[request.overwritten.index()]);
            (!new.outside).then_some(CountedRequest {
                output: request.overwriter.0,
                operator: new.producer?,
                made: Some(request.overwriter),
                overwritten: request.overwritten,
                saved: cells.shared(request, new.size, old.size),
                size: new.size,
                required: request.required,
            })
        });
        let requests = counted.collect();
        for (index, chunk) in chunks.iter_mut().enumerate() {
            chunk.size = cells.count(ChunkId::from_index(index), chunk.size);
        }
        CountedGraph { chunks, requests, is_exact: cells.are_exact() }
    }
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
    let graph = |sequence: &OpSequence| graph_with_views(sequence, options);
    let (graph, copied) = copies::lower(sequence, options, graph)?;
    Ok(ChunkGraph { has_copies: !copied.is_empty(), ..graph })
}

/// As [`chunk_graph`], without copies of views.
fn graph_with_views(
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
    Ok(ChunkGraph { chunks, requests: resolved.into_requests(), has_copies: false })
}
