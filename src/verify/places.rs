//! Where a plan of a sequence puts tensors and workspaces: rule 1 for tensors.

use std::collections::{HashMap, HashSet};

use crate::{
    Bytes, OpSequence, Plan, PlannedChunk, Step, TensorPlace,
    sequence::{Origin, TensorId},
    verify::{Field, Violation},
};

/// Where a tensor lies, as the plan says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In the pool, at this offset.
    Pool(Bytes),
    /// In a supplied tensor, at this offset.
    Supplied(TensorId, Bytes),
    Nowhere,
}

impl Place {
    /// The place some bytes further on.
    pub(super) fn moved(self, by: Bytes) -> Self {
        match self {
            Self::Pool(offset) => Self::Pool(offset.saturating_add(by)),
            Self::Supplied(supplied, offset) => Self::Supplied(supplied, offset.saturating_add(by)),
            Self::Nowhere => Self::Nowhere,
        }
    }
}

/// Rule 1 for tensors: each is in the plan once, with its size, inside its chunk.
pub(super) fn of_tensors(
    sequence: &OpSequence,
    plan: &Plan,
    violations: &mut Vec<Violation>,
) -> Vec<Place> {
    let ids: HashMap<&str, usize> =
        sequence.tensors().iter().enumerate().map(|(at, tensor)| (&*tensor.name, at)).collect();
    let mut places = vec![None; sequence.tensors().len()];
    for planned in &plan.tensors {
        let name = || planned.name.to_string();
        let Some(&at) = ids.get(&*planned.name) else {
            violations.push(Violation::Unknown { name: name() });
            continue;
        };
        let place = match &planned.place {
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
                field: Field::Size,
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
            // Supplied, and outside the pool: in its own memory, wherever that is.
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
    result
}

fn id(at: usize) -> TensorId {
    TensorId(u32::try_from(at).unwrap_or(u32::MAX))
}

/// The first of so many bytes, if any, and the byte after the last: less if there is none after it.
pub(super) fn bytes(low: Bytes, size: Bytes) -> Option<(Bytes, Bytes)> {
    let low = low.min(Bytes::MAX - 1);
    (size > 0).then_some((low, low.saturating_add(size)))
}

/// The scratch memory of an operator.
pub(super) struct Workspace {
    pub(super) name: String,
    /// The operator.
    pub(super) step: usize,
    pub(super) low: Bytes,
    pub(super) high: Bytes,
}

/// The workspaces that operators ask for, in order of steps. No tensor's place tells where they
/// lie: they are those chunks of the plan that begin in their step, are called as lowering calls
/// them, and hold no tensor.
pub(super) fn workspaces(
    sequence: &OpSequence,
    plan: &Plan,
    violations: &mut Vec<Violation>,
) -> Vec<Workspace> {
    let of_tensors: HashSet<usize> = plan
        .tensors
        .iter()
        .filter_map(|tensor| match tensor.place {
            TensorPlace::Pool { chunk, .. } => Some(chunk),
            TensorPlace::Supplied { .. } | TensorPlace::Nowhere => None,
        })
        .collect();
    let chunks: HashMap<(&str, Step), usize> = plan
        .chunks
        .iter()
        .enumerate()
        .filter(|(at, _)| !of_tensors.contains(at))
        .map(|(at, chunk)| ((&*chunk.name, chunk.begin), at))
        .collect();
    let mut workspaces = Vec::new();
    for (step, operator) in sequence.operators().iter().enumerate() {
        if operator.workspace == 0 {
            continue;
        }
        let name = format!("{}.workspace", sequence.operator_name(step));
        let planned = chunks.get(&(&*name, step as Step)).map(|&at| &plan.chunks[at]);
        let planned = planned.filter(|chunk| chunk.size >= operator.workspace);
        match planned.and_then(|chunk| bytes(chunk.offset, operator.workspace)) {
            None => violations.push(Violation::Missing { name }),
            Some((low, high)) => workspaces.push(Workspace { name, step, low, high }),
        }
    }
    workspaces
}
