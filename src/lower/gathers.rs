//! The fourth pass: concatenation without a copy (the book, Several memories, pins and more).
//!
//! An output that gathers inputs holds their bytes. If the chunk of an input lies inside the chunk of
//! the output from the beginning, as its [part](crate::problem::demands::Part), nothing is left to
//! copy. This is a request: it is accepted if the input is all of its chunk, no chunk needs two
//! places, no two need the same bytes for different contents, and the lower bound does not rise, as
//! it may where an overwrite is lost. The largest output comes first.

use std::collections::{HashMap, HashSet};

use tracing::debug;

use crate::{
    OpSequence, Problem,
    lower::{Lowered, LoweredPlace, Obstacle, Refused},
    problem::{ChunkId, Gathered, RejectReason, Request, demands::Part},
    sequence::{Dependency, Gather, Origin, TensorId},
};

/// An output that gathers inputs.
struct Concat {
    output: TensorId,
    whole: ChunkId,
    parts: Vec<(TensorId, Part)>,
}

/// Puts inputs into the outputs that gather them, where that is possible and costs no memory.
pub(crate) fn accept(sequence: &OpSequence, lowered: Lowered) -> Lowered {
    let Lowered { problem, places, mut refused, runs } = lowered;
    let mut refuse = |output: TensorId, input: TensorId, reason: RejectReason| {
        let name = |tensor: TensorId| &*sequence.tensor(tensor).name;
        debug!(target: "memplan::lower", output = name(output), input = name(input), %reason, "gather dropped");
        refused.push(Refused { output, input, obstacle: Obstacle::RejectReason(reason) });
    };
    let concats = concats(sequence, &problem, &places, &mut refuse);
    let parts: Vec<Vec<Part>> =
        concats.iter().map(|concat| concat.parts.iter().map(|&(_, part)| part).collect()).collect();
    let Gathered { problem, refused: missing, lost } = problem.gather(&parts);
    let tensors: HashMap<(ChunkId, ChunkId), (TensorId, TensorId)> = concats
        .iter()
        .flat_map(|concat| concat.parts.iter().map(|(input, part)| (concat.output, *input, part)))
        .map(|(output, input, part)| ((part.part, part.whole), (output, input)))
        .collect();
    for (part, reason) in missing {
        if let Some(&(output, input)) = tensors.get(&(part.part, part.whole)) {
            refuse(output, input, reason);
        }
    }
    refused.extend(lost_overwrites(sequence, &places, lost));
    Lowered { problem, places, refused, runs }
}

/// The outputs that gather inputs, the largest first, with the inputs that are chunks of the pool.
fn concats(
    sequence: &OpSequence,
    problem: &Problem,
    places: &[LoweredPlace],
    refuse: &mut impl FnMut(TensorId, TensorId, RejectReason),
) -> Vec<Concat> {
    let mut concats = Vec::new();
    for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        let Origin::Output { dependency: Dependency::Gathers(gathers), .. } =
            &sequence.tensor(output).origin
        else {
            continue;
        };
        let LoweredPlace::Chunk { chunk: whole, .. } = places[output.index()] else { continue };
        let mut parts: Vec<(TensorId, Part)> = Vec::new();
        let mut inside: HashSet<ChunkId> = HashSet::new();
        for &Gather { input, offset } in gathers {
            let size = sequence.tensor(input).size;
            match places[input.index()] {
                LoweredPlace::Nowhere => {}
                LoweredPlace::Supplied { .. } => {
                    refuse(output, input, RejectReason::OutsideThePool);
                }
                LoweredPlace::Chunk { chunk, offset: at }
                    if at > 0 || size != Some(problem.chunk(chunk).size) =>
                {
                    refuse(output, input, RejectReason::NotAllOfItsChunk);
                }
                LoweredPlace::Chunk { chunk, .. } if !inside.insert(chunk) => {
                    refuse(output, input, RejectReason::PartTwice);
                }
                LoweredPlace::Chunk { chunk, .. } => {
                    parts.push((input, Part { part: chunk, whole, offset }));
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

/// The overwrites that parts have made impossible.
fn lost_overwrites(
    sequence: &OpSequence,
    places: &[LoweredPlace],
    lost: Vec<(Request, RejectReason)>,
) -> Vec<Refused> {
    let pair = |request: Request| (request.overwriter, request.overwritten);
    let lost: HashMap<(ChunkId, ChunkId), RejectReason> =
        lost.into_iter().map(|(request, reason)| (pair(request), reason)).collect();
    let chunk = |tensor: TensorId| match places[tensor.index()] {
        LoweredPlace::Chunk { chunk, .. } => Some(chunk),
        LoweredPlace::Supplied { .. } | LoweredPlace::Nowhere => None,
    };
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
                let obstacle = Obstacle::RejectReason(reason);
                refused.push(Refused { output, input: overwrite.input, obstacle });
            }
        }
    }
    refused
}
