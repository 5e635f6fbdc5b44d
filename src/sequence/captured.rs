//! The tensors around a body that it uses: those with the names of its weights.
//!
//! A plan keeps a tensor whole for an operator only if it is among the operator's inputs, and lets an operator
//! change only what an output is declared to overwrite. So an operator must declare what its bodies use.

use std::collections::HashSet;

use crate::sequence::{Dependency, OpSequence, Origin, SequenceError, Tensor, TensorId, check};

#[cfg(feature = "onnx")]
impl OpSequence {
    /// Returns whether a tensor has this name, here or in a body.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let mut bodies = self.operators.iter().flat_map(|operator| &operator.bodies);
        self.ids.contains_key(name) || bodies.any(|body| body.has_name(name))
    }

    /// Gives a weight another name, which nothing has yet, here and in the bodies that use it.
    pub(crate) fn rename_weight(&mut self, name: &str, new: &str) {
        if let Some(&id) = self.ids.get(name) {
            let tensor = &mut self.tensors[id.index()];
            if tensor.origin != Origin::Weight {
                return;
            }
            tensor.name = new.into();
            self.ids.remove(name);
            self.ids.insert(new.into(), id);
        }
        for body in self.operators.iter_mut().flat_map(|operator| &mut operator.bodies) {
            body.rename_weight(name, new);
        }
    }
}

/// Checks that operators declare the tensors that their bodies use. What a body makes in an output of its
/// operator is a result, which is checked elsewhere.
pub(super) fn captured(sequence: &OpSequence) -> Result<(), SequenceError> {
    for (step, operator) in sequence.operators().iter().enumerate() {
        for (place, body) in operator.bodies.iter().enumerate() {
            for weight in used_weights(body) {
                match sequence.tensor_id(&weight.name) {
                    Some(around) if !operator.outputs.contains(&around) => {
                        declared(sequence, step, place, weight, around)?;
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Checks that an operator declares how one of its bodies uses the tensor `around` it.
fn declared(
    sequence: &OpSequence,
    step: usize,
    place: usize,
    weight: &Tensor,
    around: TensorId,
) -> Result<(), SequenceError> {
    let (operator, body) = (sequence.operator_name(step), place);
    let (host, tensor) = (&sequence.operators()[step], weight.name.to_string());
    if !host.inputs.contains(&around) {
        return Err(SequenceError::NotCaptured { operator, body, tensor });
    }
    if let (Some(size), Some(room)) = (weight.size, sequence.tensor(around).size)
        && size > room
    {
        return Err(SequenceError::CapturedTooLarge { operator, body, tensor, size, room });
    }
    let updates = |output: &TensorId| match &sequence.tensor(*output).origin {
        Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } => {
            overwrites.iter().any(|overwrite| overwrite.required && overwrite.input == around)
        }
        _ => false,
    };
    match check::updater(&host.bodies[place], &weight.name) {
        Some(result) if !host.outputs.iter().any(updates) => {
            let result = result.name.to_string();
            Err(SequenceError::CapturedUpdated { operator, body, result, tensor })
        }
        _ => Ok(()),
    }
}

/// The weights that a body and the bodies in it use and do not define.
fn used_weights(body: &OpSequence) -> Vec<&Tensor> {
    let inputs = body.operators().iter().flat_map(|operator| &operator.inputs);
    let used: HashSet<TensorId> = inputs.chain(body.outputs()).copied().collect();
    let tensors = body.tensors().iter().enumerate();
    let own = tensors.filter(|(at, tensor)| {
        tensor.origin == Origin::Weight && used.contains(&TensorId::from_index(*at))
    });
    let bodies = body.operators().iter().flat_map(|operator| &operator.bodies);
    let inner = bodies.flat_map(used_weights);
    let free = inner.filter(|weight| body.tensor_id(&weight.name).is_none());
    own.map(|(_, tensor)| tensor).chain(free).collect()
}
