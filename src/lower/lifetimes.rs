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
    let mut chunks = std::mem::take(&mut places.chunks);
    for chunk in supplied(sequence, places) {
        // It is supplied before the first step.
        chunks[chunk.index()].touch(0);
    }
    for (step, chunk) in uses(sequence, places) {
        chunks[chunk.index()].touch(step as Step);
    }
    for (run, step) in places.begun_after() {
        chunks[run.index()].begin = step as Step + 1;
    }
    let steps = sequence.operators().len() as Step;
    for chunk in chunks.iter_mut().filter(|chunk| chunk.kept()) {
        chunk.end = chunk.end.max(steps);
    }
    places.chunks = chunks;
}

/// The chunks that exist before the first step.
pub(super) fn supplied<'a>(
    sequence: &'a OpSequence,
    places: &'a Places,
) -> impl Iterator<Item = ChunkId> + 'a {
    let tensors = sequence.tensors().iter().zip(&places.tensors);
    let chunks = tensors.filter_map(|(tensor, place)| {
        let supplied = matches!(tensor.origin, Origin::Input | Origin::Weight);
        place.filter(|_| supplied).map(|(chunk, _)| chunk)
    });
    chunks.flat_map(|chunk| [chunk].into_iter().chain(places.runs_of(chunk)))
}

/// Every chunk that a step produces or reads, step by step.
pub(super) fn uses<'a>(
    sequence: &'a OpSequence,
    places: &'a Places,
) -> impl Iterator<Item = (usize, ChunkId)> + 'a {
    sequence.operators().iter().zip(&places.workspaces).enumerate().flat_map(
        move |(step, (operator, workspace))| {
            let tensors =
                sequence.used_tensors(operator, |view, input| places.is_view(view, input));
            let chunks =
                tensors.flat_map(move |(tensor, is_input)| places.used(sequence, tensor, is_input));
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
