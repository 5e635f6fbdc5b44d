//! Lowering: from operators and tensors to chunks with lifetimes (the book, Lowering and
//! Lifetimes).
//!
//! Lowering is a list of passes over the [`OpSequence`]. `place` gives every tensor its place in a chunk;
//! views share their input's chunk. `lifetimes` walks over the steps once; every view extends the lifetime of
//! the chunk that it shares. `requests` turns write dependencies into requests to overwrite and rejects those
//! that are impossible. `gathers` puts inputs of concatenations inside their outputs. If the operators run on
//! several streams, `clocks` expresses the lifetime of every chunk in clocks. The result is a [`Problem`],
//! which has no operators.

mod aliases;
mod bytes;
mod cells;
mod clocks;
mod content;
mod copies;
mod gathers;
mod graph;
mod lifetimes;
mod options;
mod overlaps;
mod place;
mod requests;
mod runs;
mod ties;

use std::collections::HashSet;

use tracing::{Level, debug, enabled};

use crate::{
    Bytes, Problem, SequenceError,
    problem::{ChunkId, ProblemError, RejectReason, Request},
    sequence::{OpSequence, Origin, TensorId, Tie},
};
use bytes::{Made, RunChunk};
pub(crate) use cells::{Cells, Placing};
use clocks::{Life, Lifetimes};
pub(crate) use content::{content_bound, value_graph};
pub(crate) use gathers::accept as gather;
pub(crate) use graph::{CountedGraph, chunk_graph};
pub use options::LoweringOptions;
use place::{DraftChunk, Places};
pub(crate) use ties::{
    has_parts, has_pieces, has_rival_outputs, has_shared_content, has_untried, optional_ties,
    overlap_distances,
};

/// The place of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoweredPlace {
    /// In a chunk of the pool, at an offset in bytes.
    Chunk {
        /// The chunk.
        chunk: ChunkId,
        /// The offset from the chunk's start, in bytes.
        offset: Bytes,
    },
    /// In the memory of a supplied tensor outside the pool, at an offset in bytes.
    Supplied {
        /// The input or weight.
        tensor: TensorId,
        /// The offset from its start, in bytes.
        offset: Bytes,
    },
    /// The tensor has no bytes.
    Nowhere,
}

impl LoweredPlace {
    /// The chunk of the pool, and the offset in it in bytes.
    pub(crate) fn chunk(self) -> Option<(ChunkId, Bytes)> {
        match self {
            Self::Chunk { chunk, offset } => Some((chunk, offset)),
            Self::Supplied { .. } | Self::Nowhere => None,
        }
    }
}

/// The grain of lifetimes: which bytes may have lifetimes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// A chunk is needed as a whole until its last reader.
    Chunks,
    /// Each byte of a chunk is needed until its own last reader.
    Bytes,
    /// The same, and bytes of a chunk may lie inside outputs that gather them.
    Pieces,
}

/// A run: bytes of a chunk that are needed equally long, as a chunk of their own that a plan does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRun {
    /// The chunk of the problem that stands for the bytes.
    pub(crate) run: ChunkId,
    pub(crate) whole: ChunkId,
    /// The offset in the whole.
    pub(crate) low: Bytes,
}

/// A lowered sequence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lowered {
    /// The chunks. The label of a chunk is the name of the tensor that it was made for.
    pub problem: Problem,
    /// The place of each tensor, by [`TensorId`].
    pub(crate) places: Vec<LoweredPlace>,
    /// The requests to overwrite and to gather that were not accepted.
    pub(crate) refused: Vec<RejectedTie>,
    /// The runs of chunks whose bytes are needed for different times.
    pub(crate) runs: Vec<ByteRun>,
    /// The views that are copied because a required overwrite destroys bytes that they show, or because an output must
    /// hold them although it cannot hold their base.
    pub(crate) copied: Vec<Tie>,
}

/// A request to overwrite, or to gather, that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RejectedTie {
    /// The output that would have been written over the input, or around it.
    pub(crate) output: TensorId,
    /// The input.
    pub(crate) input: TensorId,
    /// The reason why it was not accepted.
    pub(crate) reason: RejectReason,
    /// Another tensor of the operator that shares bytes with the input, for [`RejectReason::Alias`].
    pub(crate) alias: Option<TensorId>,
}

impl Lowered {
    /// The chunk that a tensor lies in, and the offset from the chunk's start in bytes; `None` if the tensor lies
    /// outside the pool or has no bytes.
    ///
    /// # Panics
    ///
    /// If the id belongs to another sequence with more tensors.
    #[must_use]
    pub fn chunk_of(&self, tensor: TensorId) -> Option<(ChunkId, Bytes)> {
        self.places[tensor.index()].chunk()
    }

    /// The requests to overwrite and to gather that were not accepted: the output that would have been written over the
    /// input or around it, the input, and the reason.
    #[must_use]
    pub fn refused(
        &self,
    ) -> impl ExactSizeIterator<Item = (TensorId, TensorId, RejectReason)> + '_ {
        self.refused.iter().map(|refused| (refused.output, refused.input, refused.reason))
    }
}

/// Lowers a sequence to a problem, with alignment 1 and no padding.
///
/// # Errors
///
/// If a required overwrite or gather cannot be accepted; if views are chunks of their own and an overwriter
/// is larger than the view that it overwrites; if a weight that should lie in the pool has no size; or
/// if an operator has a body, which only a [`Planner`](crate::Planner) can lower.
pub fn lower(sequence: &OpSequence, options: LoweringOptions) -> Result<Lowered, SequenceError> {
    let lowered = lower_apart(sequence, options, Placing::default(), Grain::Chunks)?;
    lowered.log(sequence);
    if !options.gathers || !sequence.has_gathers() {
        return Ok(lowered);
    }
    Ok(gather(sequence, lowered))
}

/// Lowers a sequence with gathered inputs in places of their own, unless they must lie in their outputs. `placing` only
/// decides which overlaps save bytes; the problem itself still has alignment 1 and no padding.
///
/// If a required overwrite or gather is impossible with whole chunks, chunks are split into runs of bytes; if it is
/// still impossible, views that stand in its way are copied.
pub(crate) fn lower_apart(
    sequence: &OpSequence,
    options: LoweringOptions,
    placing: Placing,
    grain: Grain,
) -> Result<Lowered, SequenceError> {
    let lower = |sequence: &OpSequence| lower_with_views(sequence, options, placing, grain);
    let (lowered, copied) = copies::lower(sequence, options, lower)?;
    Ok(Lowered { copied, ..lowered })
}

/// As [`lower_apart`], without copies of views.
fn lower_with_views(
    sequence: &OpSequence,
    options: LoweringOptions,
    placing: Placing,
    grain: Grain,
) -> Result<Lowered, SequenceError> {
    let lower = |grain| lower_in(sequence, options, placing, grain);
    match lower(grain) {
        Err(
            error
            @ (SequenceError::RequiredOverwrite { .. } | SequenceError::RequiredGather { .. }),
        ) if grain == Grain::Chunks => {
            let finer =
                [Grain::Bytes, Grain::Pieces].into_iter().find_map(|grain| lower(grain).ok());
            finer.ok_or(error)
        }
        lowered => lowered,
    }
}

/// As [`lower_with_views`], with this grain alone.
fn lower_in(
    sequence: &OpSequence,
    options: LoweringOptions,
    placing: Placing,
    grain: Grain,
) -> Result<Lowered, SequenceError> {
    let mut places = place::place(sequence, options)?;
    let draft = |places: &mut Places| {
        lifetimes::walk(sequence, places);
        let lives = Lifetimes::of(sequence, places);
        let links = requests::resolve(sequence, options, placing, places, lives.as_ref())?;
        Ok((lives, links))
    };
    if grain != Grain::Chunks {
        bytes::split(sequence, &mut places, options, grain, false);
    }
    let (lives, links) = match draft(&mut places) {
        // Chunks outside the pool take none of its bytes, but a required overwrite may need them split.
        Err(SequenceError::RequiredOverwrite { .. }) if grain != Grain::Chunks => {
            places = place::place(sequence, options)?;
            bytes::split(sequence, &mut places, options, grain, true);
            draft(&mut places)?
        }
        drafted => drafted?,
    };
    gathers::require(sequence, build(sequence, &places, links, lives.as_ref())?)
}

impl Lowered {
    /// Logs the lowered sequence and its rejected requests. Lowerings that only try other choices are not logged.
    pub(crate) fn log(&self, sequence: &OpSequence) {
        if !enabled!(target: "memplan::lower", Level::DEBUG) {
            return;
        }
        let name = |tensor: TensorId| &*sequence.tensor(tensor).name;
        for &RejectedTie { output, input, reason, alias } in &self.refused {
            let Origin::Output { step, .. } = sequence.tensor(output).origin else { continue };
            let operator = sequence.operator_name(step);
            let (output, input, other) = (name(output), name(input), alias.map(name));
            debug!(target: "memplan::lower", operator, output, input, other, %reason, "in-place request dropped");
        }
        debug!(
            target: "memplan::lower",
            operators = sequence.operators().len(),
            tensors = sequence.tensors().len(),
            chunks = self.problem.len(),
            links = self.problem.links_taken(),
            "lowered",
        );
    }
}

/// The limits of overlaps that may lead to different plans, ascending; see
/// [`LoweringOptions::overlap_limit`].
pub(crate) fn overlap_limits(
    sequence: &OpSequence,
    options: LoweringOptions,
    placing: Placing,
) -> Result<Vec<Bytes>, SequenceError> {
    let mut places = place::place(sequence, options)?;
    lifetimes::walk(sequence, &mut places);
    let lives = Lifetimes::of(sequence, &places);
    Ok(requests::resolve(sequence, options, placing, &places, lives.as_ref())?.into_limits())
}

/// Drops the chunks outside the pool and renumbers the others.
fn build(
    sequence: &OpSequence,
    places: &Places,
    links: requests::Resolved,
    lives: Option<&Lifetimes>,
) -> Result<Lowered, SequenceError> {
    let whole_of = places.wholes();
    // The supplied tensor in which a chunk lies, and its first byte there.
    let outside = |mut chunk: ChunkId| {
        let mut from = 0;
        loop {
            let (root, offset) = links.place_in_chain(chunk);
            from += offset;
            match whole_of.get(&root) {
                Some(&(whole, low)) => (chunk, from) = (whole, from + low),
                None => return Some((places.chunks[root.index()].outside?, from)),
            }
        }
    };
    let mut problem = Problem::builder();
    problem.at_least_steps(sequence.operators().len() as u64);
    if let Some(lives) = lives {
        problem.streams(lives.streams);
    }
    let mut ids = vec![None; places.chunks.len()];
    let names = places.names(sequence);
    for (index, (chunk, name)) in places.chunks.iter().zip(names).enumerate() {
        if outside(ChunkId::from_index(index)).is_none() {
            let lifetime = chunk.begin..chunk.end;
            let id = problem.named_chunk(name, lifetime, chunk.size);
            if let Some(Life { begin, end, stream }) = lives.map(|lives| lives.life(index)) {
                problem.life(id, begin.clone(), end.clone(), *stream);
            }
            ids[index] = Some(id);
        }
    }
    let is_first = |request: &Request| places.chunks[request.overwriter.index()].begin == 0;
    let first_written: HashSet<ChunkId> =
        links.accepted().filter(is_first).map(|request| request.overwritten).collect();
    let mut runs = Vec::new();
    for (whole, split) in &places.runs {
        // The first operator may write over runs of a supplied chunk. The whole then needs only bytes of another run.
        if lives.is_none()
            && matches!(split.made, Made::Supplied { .. })
            && split.runs.iter().any(|run| first_written.contains(&run.chunk))
            && let Some(kept) = split.runs.iter().find(|run| !first_written.contains(&run.chunk))
            && let Some(id) = ids[whole.index()]
        {
            let DraftChunk { begin, end, .. } = places.chunks[whole.index()];
            problem.window(id, begin..end, kept.low..kept.high);
        }
        for &RunChunk { chunk, low, .. } in &split.runs {
            if let (Some(run), Some(whole)) = (ids[chunk.index()], ids[whole.index()]) {
                problem.part(run, whole, low);
                runs.push(ByteRun { run, whole, low });
            }
        }
    }
    for request in links.accepted() {
        if let (Some(overwriter), Some(overwritten)) =
            (ids[request.overwriter.index()], ids[request.overwritten.index()])
        {
            problem.request(Request { overwriter, overwritten, ..request });
        }
    }
    let places = places
        .tensors
        .iter()
        .map(|place| match *place {
            None => LoweredPlace::Nowhere,
            Some((chunk, offset)) => match (ids[chunk.index()], outside(chunk)) {
                (Some(chunk), _) => LoweredPlace::Chunk { chunk, offset },
                (None, Some((tensor, base))) => {
                    LoweredPlace::Supplied { tensor, offset: base + offset }
                }
                (None, None) => LoweredPlace::Nowhere,
            },
        })
        .collect();
    let problem = problem.finish().map_err(|error| match error {
        ProblemError::SizeOverflow { chunk, size, .. } => {
            SequenceError::SizeOverflow { tensor: chunk, size }
        }
        _ => SequenceError::TooManyTensors,
    })?;
    Ok(Lowered { problem, places, refused: links.refused, runs, copied: Vec::new() })
}
