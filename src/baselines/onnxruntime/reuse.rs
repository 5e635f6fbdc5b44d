//! The buffer of each tensor: that of an input, a free one of the same shape, or its own.

use crate::{
    Bytes, OpSequence,
    sequence::{Dependency, Origin, TensorId},
};

/// The place of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    /// The tensor that the buffer was allocated for: the tensor itself, if the buffer is its own.
    pub(super) owner: TensorId,
    /// Bytes from the start of the buffer.
    pub(super) start: Bytes,
}

/// Returns the buffer of each tensor, by id.
pub(super) fn buffers(sequence: &OpSequence) -> Vec<Buffer> {
    let mut walk = Walk::new(sequence);
    for step in 0..sequence.operators().len() {
        walk.step(step);
    }
    walk.buffers
}

struct Walk<'a> {
    sequence: &'a OpSequence,
    buffers: Vec<Buffer>,
    /// By tensor: the remaining uses of its buffer if it owns one, its own uses before it has been made. The operator
    /// that makes a tensor counts as a use, and so does the caller of a graph input or output.
    uses: Vec<usize>,
    is_returned: Vec<bool>,
    /// Owners of buffers that are free, the last freed at the end.
    free: Vec<TensorId>,
}

impl<'a> Walk<'a> {
    fn new(sequence: &'a OpSequence) -> Self {
        let tensors = sequence.tensors();
        let mut uses = vec![1; tensors.len()];
        let read = sequence.operators().iter().flat_map(|operator| &operator.inputs);
        read.for_each(|input| uses[input.index()] += 1);
        let mut is_returned = vec![false; tensors.len()];
        for output in sequence.outputs() {
            uses[output.index()] += 1;
            is_returned[output.index()] = true;
        }
        let own = |index| Buffer { owner: TensorId::from_index(index), start: 0 };
        let buffers = (0..tensors.len()).map(own).collect();
        Self { sequence, buffers, uses, is_returned, free: Vec::new() }
    }

    fn step(&mut self, step: usize) {
        let operator = &self.sequence.operators()[step];
        for &output in &operator.outputs {
            if let Some(buffer) = self.reused(output) {
                self.uses[buffer.owner.index()] += self.uses[output.index()];
                self.buffers[output.index()] = buffer;
            }
        }
        for &tensor in operator.inputs.iter().chain(&operator.outputs) {
            let owner = self.buffers[tensor.index()].owner;
            self.uses[owner.index()] -= 1;
            if self.uses[owner.index()] == 0 {
                self.free.push(owner);
            }
        }
    }

    /// The buffer that an output takes over.
    fn reused(&mut self, output: TensorId) -> Option<Buffer> {
        if self.is_returned[output.index()] {
            return None;
        }
        if let Some(buffer) = self.of_input(output) {
            return Some(buffer);
        }
        let wanted = self.layout(output);
        // The original passes over tensors without dimensions.
        let found = self.free.iter().rposition(|&owner| self.layout(owner) == wanted);
        let found = found.filter(|_| wanted.0.is_none_or(|shape| !shape.is_empty()));
        found.map(|at| Buffer { owner: self.free.remove(at), start: 0 })
    }

    /// The buffer of an input that an output is a view of, or is written over.
    fn of_input(&self, output: TensorId) -> Option<Buffer> {
        let Origin::Output { dependency, .. } = &self.sequence.tensor(output).origin else {
            return None;
        };
        let at = |input: TensorId, offset: Bytes| {
            let Buffer { owner, start } = self.buffers[input.index()];
            Buffer { owner, start: start.saturating_add(offset) }
        };
        match dependency {
            Dependency::Reads { input, offset, .. } => Some(at(*input, *offset)),
            Dependency::Overwrites(requests) => {
                if let Some(update) = requests.iter().find(|request| request.required) {
                    return Some(at(update.input, update.offset));
                }
                let size = |tensor: TensorId| self.sequence.tensor(tensor).size;
                let inputs = requests.iter().filter(|request| request.offset + request.below == 0);
                let inputs = inputs.filter(|request| size(request.input) == size(output));
                let is_last = |buffer: &Buffer| {
                    self.uses[buffer.owner.index()] == 1 && size(buffer.owner) == size(output)
                };
                inputs.map(|request| at(request.input, 0)).find(is_last)
            }
            Dependency::Fresh | Dependency::Gathers(_) => None,
        }
    }

    /// The shape, if it is known, and the size in bytes. Of tensors of one shape, those of the same element width
    /// have the same size.
    fn layout(&self, tensor: TensorId) -> (Option<&'a [u64]>, Option<Bytes>) {
        let tensor = self.sequence.tensor(tensor);
        (tensor.shape(), tensor.size)
    }
}
