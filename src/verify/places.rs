//! The places of tensors and workspaces in the plan of a sequence: rule 1 for tensors.

use std::collections::{HashMap, HashSet};

use crate::{
    Bytes, OpSequence, Plan, PlannedChunk, Step, TensorPlace,
    sequence::{Dependency, OperatorNode, Origin, Overwrite, TensorId},
    verify::{Figure, Violation},
};

/// Memory with its own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Memory {
    Pool,
    /// The memory of a supplied tensor outside the pool.
    Supplied(TensorId),
}

/// A non-empty range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval {
    pub(super) memory: Memory,
    pub(super) low: Bytes,
    /// The byte after the last.
    pub(super) high: Bytes,
}

impl Interval {
    /// The `size` bytes from an address on, or fewer if the addresses end before; `None` if there are none.
    pub(super) fn new(memory: Memory, low: Bytes, size: Bytes) -> Option<Self> {
        let low = low.min(Bytes::MAX - 1);
        (size > 0).then_some(Self { memory, low, high: low.saturating_add(size) })
    }

    /// Returns the bytes that are in both.
    pub(super) fn common(&self, other: &Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (self.memory == other.memory && low < high).then_some(Self { low, high, ..*self })
    }
}

/// The place of a tensor, as the plan states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In the pool, at this offset.
    Pool(Bytes),
    /// In a supplied tensor, at this offset.
    Supplied(TensorId, Bytes),
    /// A tensor without bytes, wherever the plan puts it.
    Nowhere,
}

impl Place {
    fn address(self) -> Option<(Memory, Bytes)> {
        match self {
            Self::Pool(offset) => Some((Memory::Pool, offset)),
            Self::Supplied(supplied, offset) => Some((Memory::Supplied(supplied), offset)),
            Self::Nowhere => None,
        }
    }

    /// Returns the bytes of a tensor of this size, if it has any.
    pub(super) fn interval(self, size: Bytes) -> Option<Interval> {
        let (memory, low) = self.address()?;
        Interval::new(memory, low, size)
    }

    /// Returns whether this place is where an output lies that is written over an input at the other
    /// one.
    pub(super) fn is_over(self, other: Self, overwrite: &Overwrite<TensorId>) -> bool {
        let beyond = |place: Self, bytes: Bytes| {
            place.address().map(|(memory, low)| (memory, u128::from(low) + u128::from(bytes)))
        };
        let expected = beyond(other, overwrite.offset);
        expected.is_some() && beyond(self, overwrite.below) == expected
    }

    /// Returns whether this place is at least this many bytes below the other one.
    pub(super) fn is_below(self, other: Self, bytes: Bytes) -> bool {
        let places = self.address().zip(other.address());
        places.is_some_and(|((memory, low), (of, high))| {
            memory == of && high.checked_sub(low).is_some_and(|distance| distance >= bytes)
        })
    }

    /// Returns whether this place is the other one plus an offset.
    pub(super) fn is_at(self, other: Self, offset: Bytes) -> bool {
        let other = other.address().map(|(memory, low)| (memory, low.saturating_add(offset)));
        other.is_some() && self.address() == other
    }
}

/// By tensor: the tensor that it is a view of, through other views; itself if it is no view.
pub(super) fn viewed(sequence: &OpSequence) -> Vec<usize> {
    let mut viewed: Vec<usize> = (0..sequence.tensors().len()).collect();
    for output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        if let Origin::Output { dependency: Dependency::Reads { input, .. }, .. } =
            &sequence.tensor(*output).origin
        {
            viewed[output.index()] = viewed[input.index()];
        }
    }
    viewed
}

/// The inputs, sorted, of which an operator uses only the bytes that its outputs show. There are such inputs only if
/// all of its outputs are views in place, it runs no body, and it has no workspace.
pub(super) fn only_shown(
    sequence: &OpSequence,
    places: &[Place],
    operator: &OperatorNode,
) -> Vec<usize> {
    let mut inputs = Vec::new();
    let computes = !operator.bodies.is_empty() || operator.workspace > 0;
    for &output in operator.outputs.iter().filter(|_| !computes) {
        let tensor = sequence.tensor(output);
        match tensor.origin {
            Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. }
                if tensor.size == Some(0)
                    || places[output.index()].is_at(places[input.index()], offset) =>
            {
                inputs.push(input.index());
            }
            _ => return Vec::new(),
        }
    }
    inputs.sort_unstable();
    inputs
}

/// The places of all tensors.
pub(super) struct Places {
    /// The place of each tensor.
    pub(super) of: Vec<Place>,
    /// The chunk of each tensor according to the plan, if it has bytes and lies in the pool.
    pub(super) chunks: Vec<Option<usize>>,
}

/// Checks rule 1 for tensors: each is in the plan once, with its size, inside its chunk.
pub(super) fn of_tensors(
    sequence: &OpSequence,
    plan: &Plan,
    violations: &mut Vec<Violation>,
) -> Places {
    let ids: HashMap<&str, usize> =
        sequence.tensors().iter().enumerate().map(|(at, tensor)| (&*tensor.name, at)).collect();
    let mut places = vec![None; sequence.tensors().len()];
    let mut chunks = vec![None; sequence.tensors().len()];
    for planned in &plan.tensors {
        let name = || planned.name.to_string();
        let Some(&at) = ids.get(&*planned.name) else {
            violations.push(Violation::Unknown { name: name() });
            continue;
        };
        let place = match &planned.place {
            _ if sequence.tensors()[at].size == Some(0) => Place::Nowhere,
            TensorPlace::Pool { chunk, offset } => {
                let end = |offset: Bytes, size: Bytes| offset.saturating_add(size);
                let outside = |chunk: &&PlannedChunk| {
                    *offset < chunk.offset
                        || end(*offset, planned.size) > end(chunk.offset, chunk.size)
                };
                if let Some(chunk) = plan.chunks.get(*chunk).filter(outside) {
                    violations.push(Violation::TensorOutsideChunk {
                        tensor: name(),
                        chunk: chunk.name.to_string(),
                    });
                }
                chunks[at] = Some(*chunk);
                Place::Pool(*offset)
            }
            TensorPlace::Supplied { tensor, offset } => {
                let supplied = ids.get(&**tensor);
                if supplied.is_none() {
                    violations.push(Violation::Unknown { name: tensor.to_string() });
                }
                supplied.map_or(Place::Nowhere, |&supplied| Place::Supplied(id(supplied), *offset))
            }
            TensorPlace::Nowhere => Place::Nowhere,
        };
        if places[at].replace(place).is_some() {
            violations.push(Violation::Repeated { name: name() });
        }
        if let Some(expected) = sequence.tensors()[at].size
            && expected != planned.size
        {
            let found = planned.size;
            violations.push(Violation::Changed {
                name: name(),
                field: Figure::Size,
                expected,
                found,
            });
        }
    }
    let mut result = Vec::with_capacity(places.len());
    for ((at, place), tensor) in places.into_iter().enumerate().zip(sequence.tensors()) {
        let produced = matches!(tensor.origin, Origin::Output { .. });
        let has_bytes = tensor.size != Some(0);
        result.push(match place {
            Some(Place::Nowhere) if has_bytes => {
                violations.push(Violation::Missing { name: tensor.name.to_string() });
                Place::Nowhere
            }
            None if produced && has_bytes => {
                violations.push(Violation::Missing { name: tensor.name.to_string() });
                Place::Nowhere
            }
            None if produced => Place::Nowhere,
            None => Place::Supplied(id(at), 0),
            // A supplied tensor outside the pool has memory of its own.
            Some(Place::Supplied(supplied, offset))
                if !produced && (supplied, offset) != (id(at), 0) =>
            {
                violations.push(Violation::NotSupplied {
                    tensor: tensor.name.to_string(),
                    supplied: sequence.tensor(supplied).name.to_string(),
                    offset,
                });
                Place::Supplied(id(at), 0)
            }
            Some(place) => place,
        });
    }
    Places { of: result, chunks }
}

fn id(at: usize) -> TensorId {
    TensorId(u32::try_from(at).unwrap_or(u32::MAX))
}

/// The scratch memory of an operator.
pub(super) struct Workspace {
    pub(super) name: String,
    /// The operator.
    pub(super) step: usize,
    /// The chunk in the plan.
    pub(super) chunk: usize,
    pub(super) interval: Interval,
}

/// Finds the workspaces of the operators, in step order. A workspace is the chunk of the plan that
/// begins in its step, has the name that lowering gives it, and holds no tensor.
pub(super) fn workspaces(
    sequence: &OpSequence,
    plan: &Plan,
    of_tensors: &Places,
    violations: &mut Vec<Violation>,
) -> Vec<Workspace> {
    let of_tensors: HashSet<usize> = of_tensors.chunks.iter().copied().flatten().collect();
    let chunks: HashMap<(&str, Step), usize> = plan
        .chunks
        .iter()
        .enumerate()
        .filter(|(at, _)| !of_tensors.contains(at))
        .map(|(at, chunk)| ((&*chunk.name, chunk.begin), at))
        .collect();
    let mut workspaces = Vec::new();
    let mut names = sequence.workspace_names();
    for (step, operator) in sequence.operators().iter().enumerate() {
        if operator.workspace == 0 {
            continue;
        }
        let name = names[step].take().unwrap_or_default().to_string();
        let planned = chunks.get(&(&*name, step as Step)).copied();
        let planned = planned.filter(|&chunk| plan.chunks[chunk].size >= operator.workspace);
        let planned = planned.and_then(|chunk| {
            let offset = plan.chunks[chunk].offset;
            Some((chunk, Interval::new(Memory::Pool, offset, operator.workspace)?))
        });
        match planned {
            None => violations.push(Violation::Missing { name }),
            Some((chunk, interval)) => {
                workspaces.push(Workspace { name, step, chunk, interval });
            }
        }
    }
    workspaces
}
