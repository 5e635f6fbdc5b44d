//! The second pass: one walk over the steps gives every chunk its lifetime (the book, Lifetimes).

use crate::{
    Step,
    lower::place::{DraftChunk, Places},
    problem::ChunkId,
    sequence::{OpSequence, Origin},
};

/// Begins the lifetime of a chunk when one of its tensors is produced, and extends it with every
/// read.
pub(super) fn walk(sequence: &OpSequence, places: &mut Places) {
    let Places { chunks, tensors, workspaces } = places;
    for chunk in supplied(sequence, tensors) {
        // It is supplied before the first step.
        chunks[chunk.index()].touch(0);
    }
    for (step, chunk) in uses(sequence, tensors, workspaces) {
        chunks[chunk.index()].touch(step as Step);
    }
    let steps = sequence.operators().len() as Step;
    for chunk in chunks.iter_mut().filter(|chunk| chunk.kept()) {
        chunk.end = chunk.end.max(steps);
    }
}

/// The chunks that exist before the first step.
pub(super) fn supplied<'a, B>(
    sequence: &'a OpSequence,
    tensors: &'a [Option<(ChunkId, B)>],
) -> impl Iterator<Item = ChunkId> + 'a {
    sequence.tensors().iter().zip(tensors).filter_map(|(tensor, place)| {
        let supplied = matches!(tensor.origin, Origin::Input | Origin::Weight);
        place.as_ref().filter(|_| supplied).map(|&(chunk, _)| chunk)
    })
}

/// Every chunk that a step produces or reads, step by step.
pub(super) fn uses<'a, B>(
    sequence: &'a OpSequence,
    tensors: &'a [Option<(ChunkId, B)>],
    workspaces: &'a [Option<ChunkId>],
) -> impl Iterator<Item = (usize, ChunkId)> + 'a {
    sequence.operators().iter().zip(workspaces).enumerate().flat_map(
        |(step, (operator, workspace))| {
            let places = operator.inputs.iter().chain(&operator.outputs);
            let chunks = places
                .filter_map(|tensor| tensors[tensor.index()].as_ref().map(|&(chunk, _)| chunk));
            chunks.chain(*workspace).map(move |chunk| (step, chunk))
        },
    )
}

impl DraftChunk {
    /// Records that the chunk is produced or read in this step; steps come in order.
    fn touch(&mut self, step: Step) {
        if self.begin == self.end {
            self.begin = step;
        }
        self.end = step + 1;
    }
}
