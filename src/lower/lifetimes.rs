//! The second pass: one walk over the steps gives every chunk its lifetime (spec 3).

use crate::{
    Step,
    lower::place::{DraftChunk, Places},
    sequence::{OpSequence, Origin},
};

/// Producing begins a lifetime, reading prolongs it, for the chunk that holds the tensor.
pub(super) fn walk(sequence: &OpSequence, places: &mut Places) {
    let steps = sequence.operators().len() as Step;
    for (tensor, place) in sequence.tensors().iter().zip(&places.tensors) {
        if let (Origin::Input | Origin::Weight, Some((chunk, _))) = (&tensor.origin, place) {
            // Supplied before the first step.
            places.chunks[chunk.index()].touch(0);
        }
    }
    for ((step, operator), workspace) in (0..).zip(sequence.operators()).zip(&places.workspaces) {
        let tensors = operator.inputs.iter().chain(&operator.outputs);
        let chunks = tensors.filter_map(|tensor| places.tensors[tensor.index()]);
        let workspace = workspace.map(|chunk| (chunk, 0));
        for (chunk, _) in chunks.chain(workspace) {
            places.chunks[chunk.index()].touch(step);
        }
    }
    for chunk in places.chunks.iter_mut().filter(|chunk| chunk.kept()) {
        chunk.end = chunk.end.max(steps);
    }
}

impl DraftChunk {
    /// The chunk is produced or read in this step; steps come in order.
    fn touch(&mut self, step: Step) {
        if self.begin == self.end {
            self.begin = step;
        }
        self.end = step + 1;
    }
}
