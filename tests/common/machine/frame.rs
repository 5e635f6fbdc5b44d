//! The memories of a machine, and a sequence that runs with the values of its tensors.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memplan::{
    OpSequence, Plan, TensorPlace,
    sequence::{Dependency, OperatorNode, Origin, Overwrite, TensorId},
};

use super::Outcome;

/// A byte that was written once. Bytes that nobody wrote are 0.
pub type Value = u64;

/// A memory and an address in it.
pub type Place = (usize, u64);

/// The memories: the pools, and one for each tensor that is supplied from outside.
pub struct Memory {
    pub bytes: Vec<BTreeMap<u64, Value>>,
    /// The size of each memory, if it has one.
    pub sizes: Vec<Option<u64>>,
    pub last: Value,
}

impl Memory {
    pub fn add(&mut self, size: Option<u64>) -> usize {
        self.bytes.push(BTreeMap::new());
        self.sizes.push(size);
        self.bytes.len() - 1
    }

    pub fn fresh(&mut self, size: u64) -> Vec<Value> {
        let first = self.last + 1;
        self.last += size;
        (first..first + size).collect()
    }

    pub fn load(&self, (memory, low): Place, size: u64) -> Vec<Value> {
        let bytes = &self.bytes[memory];
        (low..low + size).map(|at| bytes.get(&at).copied().unwrap_or(0)).collect()
    }

    pub fn store(&mut self, (memory, low): Place, values: &[Value]) -> Outcome {
        if self.sizes[memory].is_some_and(|size| low + values.len() as u64 > size) {
            return Err(format!("memory {memory} has no bytes at {low} + {}", values.len()));
        }
        self.bytes[memory].extend((low..).zip(values.iter().copied()));
        Ok(())
    }
}

/// A sequence that runs, with the values of its tensors.
pub struct Frame<'s> {
    pub sequence: &'s OpSequence,
    pub plan: &'s Plan,
    /// By tensor.
    pub places: Vec<Option<Place>>,
    pub values: Vec<Vec<Value>>,
    /// By tensor that is supplied: the bytes that its memory must hold in the end.
    pub states: HashMap<usize, Vec<Value>>,
    /// By step: the place and the values of the workspace of an operator that runs.
    pub workspaces: HashMap<usize, (Place, Vec<Value>)>,
    /// The supplied tensors that were updated, and the bytes.
    pub updated: BTreeSet<(usize, Place)>,
}

impl Frame<'_> {
    pub fn name(&self, tensor: usize) -> &str {
        &self.sequence.tensors()[tensor].name
    }

    pub fn size(&self, tensor: usize) -> u64 {
        self.sequence.tensors()[tensor].size.unwrap()
    }

    /// The tensor in whose memory another lies by its declaration, and where: the one that it is a view of, or
    /// must update.
    pub fn home(&self, mut tensor: usize) -> (usize, u64) {
        let mut offset = 0;
        while let Origin::Output { dependency, .. } = &self.sequence.tensors()[tensor].origin {
            let (input, at) = match dependency {
                Dependency::Reads { input, offset, .. } => (*input, *offset),
                Dependency::Overwrites(overwrites) => {
                    match overwrites.iter().find(|one| one.required) {
                        Some(one) => (one.input, one.offset),
                        None => break,
                    }
                }
                _ => break,
            };
            (tensor, offset) = (input.index(), offset + at);
        }
        (tensor, offset)
    }
}

/// The nearest frame with a tensor of this name.
pub fn around(frames: &[Frame<'_>], name: &str) -> Option<(usize, usize)> {
    let mut levels = frames.iter().enumerate().rev();
    levels.find_map(|(level, frame)| Some((level, frame.sequence.tensor_id(name)?.index())))
}

/// The inputs of which an operator reads only what its outputs show: all of these are views in place, and it has no
/// workspace.
pub fn only_shown(frame: &Frame<'_>, operator: &OperatorNode) -> BTreeSet<usize> {
    let viewed = |output: &TensorId| match &frame.sequence.tensor(*output).origin {
        Origin::Output { dependency: Dependency::Reads { input, .. }, .. } => Some(input.index()),
        _ => None,
    };
    let is_in_place = |output: &TensorId| {
        let size = frame.size(output.index());
        viewed(output).is_some() && unwritten(frame, output.index()).len() as u64 == size
    };
    let computes = !operator.bodies.is_empty() || operator.workspace > 0;
    let is_only_shown = !computes && operator.outputs.iter().all(is_in_place);
    operator.outputs.iter().filter(|_| is_only_shown).filter_map(viewed).collect()
}

/// The bytes of an output that its operator does not write: a view in its place writes none, and inputs
/// that the plan lists as parts are not copied.
pub fn unwritten(frame: &Frame<'_>, output: usize) -> BTreeSet<u64> {
    let Origin::Output { dependency, .. } = &frame.sequence.tensors()[output].origin else {
        return BTreeSet::new();
    };
    // The chunk of a tensor, and its first byte there.
    let place = |tensor: &str| {
        let planned = frame.plan.tensors().iter().find(|planned| &*planned.name == tensor)?;
        match planned.place {
            TensorPlace::Pool { chunk, offset } => {
                Some((chunk, offset.checked_sub(frame.plan.chunks()[chunk].offset)?))
            }
            _ => None,
        }
    };
    match dependency {
        Dependency::Reads { input, offset, .. } => {
            let input = frame.places[input.index()].map(|(memory, low)| (memory, low + offset));
            if frame.places[output] == input {
                (0..frame.size(output)).collect()
            } else {
                BTreeSet::new()
            }
        }
        Dependency::Gathers(gathers) => {
            let mut unwritten = BTreeSet::new();
            for gather in gathers {
                let input = gather.input.index();
                let places = place(frame.name(input)).zip(place(frame.name(output)));
                // A part may be several inputs beside each other.
                let is_part = places.is_some_and(|((chunk, low), (whole, _))| {
                    frame.plan.parts().iter().any(|part| {
                        (part.chunk, part.whole) == (chunk, whole)
                            && part.offset <= gather.offset
                            && gather.offset + frame.size(input) <= part.offset + part.size
                            && part.low + (gather.offset - part.offset) == low
                    })
                });
                if is_part {
                    unwritten.extend(gather.offset..gather.offset + frame.size(input));
                }
            }
            unwritten
        }
        _ => BTreeSet::new(),
    }
}

/// Returns whether an output may be written over bytes of an input: over the one that it is declared to
/// overwrite, where it is declared to, and over others only if they have exactly its bytes.
pub fn may_destroy(
    frame: &Frame<'_>,
    output: usize,
    input: usize,
    destroyed: &mut HashMap<usize, usize>,
) -> bool {
    let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
        &frame.sequence.tensors()[output].origin
    else {
        return false;
    };
    let place = |tensor: usize| frame.places[tensor];
    let is_there = |one: &Overwrite<TensorId>| {
        let (Some((memory, low)), Some((of, base))) = (place(output), place(one.input.index()))
        else {
            return false;
        };
        memory == of
            && if one.below > 0 { low + one.below <= base } else { low == base + one.offset }
    };
    let is_same = place(input) == place(output) && frame.size(input) == frame.size(output);
    if is_same {
        return overwrites.iter().any(|one| one.below == 0 && is_there(one));
    }
    let is_declared = overwrites.iter().any(|one| one.input.index() == input && is_there(one));
    is_declared && *destroyed.entry(output).or_insert(input) == input
}

/// Moves the states of supplied tensors on. An update must lie in the memory that it updates.
pub fn update_states(frame: &mut Frame<'_>, operator: &OperatorNode) -> Outcome {
    for output in operator.outputs.iter().map(|output| output.index()) {
        let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
            &frame.sequence.tensors()[output].origin
        else {
            continue;
        };
        let Some(place) = frame.places[output] else { continue };
        if !overwrites.iter().any(|one| one.required) {
            continue;
        }
        let (home, offset) = frame.home(output);
        if frame.places[home].map(|(memory, low)| (memory, low + offset)) != Some(place) {
            let (output, home) = (frame.name(output), frame.name(home));
            return Err(format!("'{output}' does not lie in '{home}', which it updates"));
        }
        let values = frame.values[output].clone();
        if let Some(state) = frame.states.get_mut(&home) {
            let from = usize::try_from(offset).unwrap();
            state[from..from + values.len()].copy_from_slice(&values);
            let bytes = 0..values.len() as u64;
            frame.updated.extend(bytes.map(|at| (home, (place.0, place.1 + at))));
        }
    }
    Ok(())
}

/// Checks that required views and gathered inputs lie at their places.
pub fn check_required(frame: &Frame<'_>, operator: &OperatorNode) -> Outcome {
    for &output in &operator.outputs {
        let Origin::Output { dependency, .. } = &frame.sequence.tensor(output).origin else {
            continue;
        };
        let output = output.index();
        // What must lie in what, and where.
        let required: Vec<(usize, usize, u64)> = match dependency {
            Dependency::Reads { input, offset, required: true } => {
                vec![(output, input.index(), *offset)]
            }
            Dependency::Gathers(gathers) => {
                let required = gathers.iter().filter(|one| one.required);
                required.map(|one| (one.input.index(), output, one.offset)).collect()
            }
            _ => Vec::new(),
        };
        for (inner, outer, offset) in required.into_iter().filter(|one| frame.size(one.0) > 0) {
            let expected = frame.places[outer].map(|(memory, low)| (memory, low + offset));
            if frame.places[inner] != expected {
                let (inner, outer) = (frame.name(inner), frame.name(outer));
                return Err(format!("'{inner}' must lie inside '{outer}', but is copied"));
            }
        }
    }
    Ok(())
}
