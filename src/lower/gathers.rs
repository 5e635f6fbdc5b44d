//! The fourth pass: concatenation without a copy (the book, Several memories, pins and more).
//!
//! An output that gathers inputs holds their bytes. If the chunk of an input lies inside the chunk of
//! the output from the beginning, as its [part](crate::problem::Part), nothing is left to copy. Each
//! gathered input is a request. It is accepted if the input is all of its chunk or consists of whole
//! runs of it, if no chunk needs two places and no two chunks need the same bytes for different
//! contents, and if the lower bound does not rise, which may happen when an overwrite becomes
//! impossible. The largest output comes first.
//!
//! If the output itself consists of runs, a run that shares bytes with an input becomes a part of the input, or the
//! input a part of the run, so that both may be alive.
//!
//! Required inputs lie inside their outputs from the beginning, whatever that costs.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use tracing::debug;

use crate::{
    Bytes, OpSequence, Problem, SequenceError,
    bodies::Gathered,
    lower::{ByteRun, Lowered, LoweredPlace, RejectedTie},
    problem::{ChunkId, RejectReason, Request, constraints::Part},
    sequence::{Dependency, Gather, Origin, TensorId},
};

/// An output that gathers inputs.
struct Concat {
    output: TensorId,
    whole: ChunkId,
    /// By input: the parts that must be accepted together to put it inside the output; the first is a part of the
    /// output.
    parts: Vec<(TensorId, Vec<Part>)>,
}

/// Puts inputs into the outputs that gather them, where that is possible and costs no memory.
pub(crate) fn accept(sequence: &OpSequence, lowered: Lowered) -> Lowered {
    let mut dropped = Vec::new();
    let mut refuse = |output: TensorId, input: TensorId, reason: RejectReason| {
        let name = |tensor: TensorId| &*sequence.tensor(tensor).name;
        debug!(target: "memplan::lower", output = name(output), input = name(input), %reason, "gather dropped");
        dropped.push(RejectedTie { output, input, reason, alias: None });
    };
    let concats = concats(sequence, &lowered, false, &mut refuse);
    let Lowered { problem, places, mut refused, runs, copied } = lowered;
    let parts: Vec<Vec<Vec<Part>>> = concats
        .iter()
        .map(|concat| concat.parts.iter().map(|(_, parts)| parts.clone()).collect())
        .collect();
    let Gathered { problem, refused: missing, lost } = problem.gather_together(&parts);
    let tensors: HashMap<(ChunkId, ChunkId), (TensorId, TensorId)> = concats
        .iter()
        .flat_map(|concat| concat.parts.iter().map(|(input, parts)| (concat.output, *input, parts)))
        .map(|(output, input, parts)| ((parts[0].part, parts[0].whole), (output, input)))
        .collect();
    for (part, reason) in missing {
        if let Some(&(output, input)) = tensors.get(&(part.part, part.whole)) {
            refuse(output, input, reason);
        }
    }
    refused.extend(dropped);
    refused.extend(lost_overwrites(sequence, &places, lost));
    Lowered { problem, places, refused, runs, copied }
}

/// Puts required inputs into the outputs that gather them.
pub(super) fn require(sequence: &OpSequence, lowered: Lowered) -> Result<Lowered, SequenceError> {
    if !sequence.gathers().any(|gather| gather.required) {
        return Ok(lowered);
    }
    let mut wrong = None;
    let mut refuse = |output, input, reason| wrong = wrong.or(Some((output, input, reason)));
    let concats = concats(sequence, &lowered, true, &mut refuse);
    let Lowered { problem, places, mut refused, runs, copied } = lowered;
    if let Some((output, input, reason)) = wrong {
        return Err(impossible(sequence, output, input, reason));
    }
    let groups: Vec<(TensorId, TensorId, Vec<Part>)> = concats
        .into_iter()
        .flat_map(|Concat { output, parts, .. }| {
            parts.into_iter().map(move |(input, parts)| (output, input, parts))
        })
        .collect();
    let before = problem.lost_requests();
    let with =
        |count: usize| problem.with_parts(groups[..count].iter().flat_map(|(_, _, parts)| parts));
    match with(groups.len()) {
        Ok(problem) => {
            refused.extend(lost_overwrites(sequence, &places, problem.lost_since(&before)));
            Ok(Lowered { problem, places, refused, runs, copied })
        }
        Err(error) => {
            // Find the first input that is impossible together with those before it, by bisection.
            let (mut right, mut reason) = (0, RejectReason::of(&error));
            let mut end = groups.len();
            while end - right > 1 {
                let middle = right.midpoint(end);
                match with(middle) {
                    Ok(_) => right = middle,
                    Err(error) => (end, reason) = (middle, RejectReason::of(&error)),
                }
            }
            let (output, input, _) = groups[right];
            Err(impossible(sequence, output, input, reason))
        }
    }
}

fn impossible(
    sequence: &OpSequence,
    output: TensorId,
    input: TensorId,
    reason: RejectReason,
) -> SequenceError {
    let name = |tensor: TensorId| sequence.tensor(tensor).name.to_string();
    let producer = sequence.tensor(output).producer();
    let operator = producer.map(|step| sequence.operator_name(step)).unwrap_or_default();
    SequenceError::RequiredGather { operator, output: name(output), input: name(input), reason }
}

/// The outputs that gather inputs, the largest first, with those inputs that lie in the pool and are required, or
/// optional, according to `is_required`. Calls `refuse` for inputs that are impossible.
fn concats(
    sequence: &OpSequence,
    Lowered { problem, places, runs, .. }: &Lowered,
    is_required: bool,
    refuse: &mut impl FnMut(TensorId, TensorId, RejectReason),
) -> Vec<Concat> {
    let mut of_chunk: HashMap<ChunkId, Vec<ByteRun>> = HashMap::new();
    for &run in runs {
        of_chunk.entry(run.whole).or_default().push(run);
    }
    let mut concats = Vec::new();
    for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        let Origin::Output { dependency: Dependency::Gathers(gathers), .. } =
            &sequence.tensor(output).origin
        else {
            continue;
        };
        let LoweredPlace::Chunk { chunk: whole, .. } = places[output.index()] else { continue };
        let mut parts: Vec<(TensorId, Vec<Part>)> = Vec::new();
        let mut inside: HashSet<ChunkId> = HashSet::new();
        let gathers = gathers.iter().filter(|gather| gather.required == is_required);
        for &Gather { input, offset, .. } in gathers {
            match places[input.index()] {
                LoweredPlace::Nowhere => {}
                LoweredPlace::Supplied { .. } => {
                    refuse(output, input, RejectReason::OutsideThePool);
                }
                LoweredPlace::Chunk { chunk, offset: at } => {
                    let size = sequence.tensor(input).size.unwrap_or(Bytes::MAX);
                    let bytes = at..at.saturating_add(size);
                    let Some(pieces) = pieces(problem, &of_chunk, chunk, &bytes) else {
                        refuse(output, input, RejectReason::NotAllOfItsChunk);
                        continue;
                    };
                    if !pieces.iter().all(|&(piece, _)| inside.insert(piece)) {
                        refuse(output, input, RejectReason::PartTwice);
                        continue;
                    }
                    let part = |&(piece, from)| Part { part: piece, whole, offset: offset + from };
                    let mut group: Vec<Part> = pieces.iter().map(part).collect();
                    let runs = of_chunk.get(&whole).map_or(&[][..], Vec::as_slice);
                    let shared =
                        |part| runs.iter().filter_map(move |run| same(problem, part, *run));
                    group.extend(group.clone().into_iter().flat_map(shared));
                    parts.push((input, group));
                }
            }
        }
        if !parts.is_empty() {
            concats.push(Concat { output, whole, parts });
        }
    }
    concats.sort_by_key(|concat| std::cmp::Reverse(problem.chunk(concat.whole).size));
    concats
}

/// The chunks that a range of a chunk consists of, the chunk itself or whole runs of it, each with its offset from the
/// start of the range. `None` if the range is neither the whole chunk nor consists of whole runs.
fn pieces(
    problem: &Problem,
    runs: &HashMap<ChunkId, Vec<ByteRun>>,
    chunk: ChunkId,
    bytes: &Range<Bytes>,
) -> Option<Vec<(ChunkId, Bytes)>> {
    if *bytes == (0..problem.chunk(chunk).size) {
        return Some(vec![(chunk, 0)]);
    }
    let end = |run: &ByteRun| run.low + problem.chunk(run.run).size;
    let shares = |run: &&ByteRun| run.low < bytes.end && bytes.start < end(run);
    let inside: Vec<&ByteRun> = runs.get(&chunk)?.iter().filter(shares).collect();
    let is_cut = inside.first()?.low < bytes.start || end(inside.last()?) > bytes.end;
    (!is_cut).then(|| inside.iter().map(|run| (run.run, run.low - bytes.start)).collect())
}

/// Ties a part of a chunk to a run of that chunk with which it shares bytes: the smaller of the two becomes a part of
/// the larger. `None` if neither lies inside the other.
fn same(problem: &Problem, part: Part, ByteRun { run, low, .. }: ByteRun) -> Option<Part> {
    let of_part = part.offset..part.offset + problem.chunk(part.part).size;
    let of_run = low..low + problem.chunk(run).size;
    let is_inside = |small: &Range<Bytes>, large: &Range<Bytes>| {
        large.start <= small.start && small.end <= large.end
    };
    if is_inside(&of_run, &of_part) {
        return Some(Part { part: run, whole: part.part, offset: low - part.offset });
    }
    let offset = part.offset.checked_sub(low)?;
    is_inside(&of_part, &of_run).then_some(Part { part: part.part, whole: run, offset })
}

/// The overwrites that parts have made impossible.
fn lost_overwrites(
    sequence: &OpSequence,
    places: &[LoweredPlace],
    lost: Vec<(Request, RejectReason)>,
) -> Vec<RejectedTie> {
    let pair = |request: Request| (request.overwriter, request.overwritten);
    let lost: HashMap<(ChunkId, ChunkId), RejectReason> =
        lost.into_iter().map(|(request, reason)| (pair(request), reason)).collect();
    let chunk = |tensor: TensorId| Some(places[tensor.index()].chunk()?.0);
    let mut refused = Vec::new();
    for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
            &sequence.tensor(output).origin
        else {
            continue;
        };
        for overwrite in overwrites {
            let pair = chunk(output).zip(chunk(overwrite.input));
            if let Some(&reason) = pair.and_then(|pair| lost.get(&pair)) {
                let input = overwrite.input;
                refused.push(RejectedTie { output, input, reason, alias: None });
            }
        }
    }
    refused
}
