//! The uses that a body makes of the tensors around it: the bytes of each that it reads, and those that it overwrites.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    Bytes,
    sequence::{Dependency, OpSequence, Origin, Tensor, TensorId},
};

/// The use that a body makes of a tensor around it. Bytes count from the start of that tensor.
#[derive(Default)]
pub(super) struct Use<'s> {
    /// The end of the bytes that it reads, as far as sizes are known.
    pub(super) reads: Bytes,
    /// The bytes from the first to the last that it must overwrite, and a tensor that it writes there.
    pub(super) writes: Option<(Range<Bytes>, &'s Tensor)>,
    /// True if the body, or a body inside it, uses the tensor through a view, or if a body inside it writes the tensor.
    /// Uses of a result that was written over the tensor do not count.
    pub(super) is_indirect: bool,
    /// True if the first operator that uses the tensor overwrites it.
    pub(super) is_written_first: bool,
    /// The step of that operator.
    first: usize,
}

impl<'s> Use<'s> {
    fn write(&mut self, bytes: Range<Bytes>, result: &'s Tensor) {
        self.writes = Some(match self.writes.take() {
            Some((old, first)) => (old.start.min(bytes.start)..old.end.max(bytes.end), first),
            None => (bytes, result),
        });
    }

    /// Adds the use that an inner body makes of a tensor. That tensor begins `offset` bytes into this one; `is_result`
    /// says whether an update lies between the two. `step` is the operator that runs the inner body.
    fn add(&mut self, inner: &Self, (offset, is_result): (Bytes, bool), step: usize) {
        self.reads = self.reads.max(inner.reads.saturating_add(offset));
        if let Some((bytes, result)) = &inner.writes {
            let shift = |byte: Bytes| byte.saturating_add(offset);
            self.write(shift(bytes.start)..shift(bytes.end), result);
        }
        self.is_indirect |= !is_result && (inner.is_indirect || inner.writes.is_some());
        self.is_written_first &= self.first != step;
    }
}

/// The uses that a body and the bodies in it make of the tensors around it, by name.
pub(super) fn uses(body: &OpSequence) -> BTreeMap<&str, Use<'_>> {
    let mut uses: BTreeMap<&str, Use> = BTreeMap::new();
    let at = weights_of(body);
    let name = |id: TensorId| &*body.tensor(id).name;
    for (step, operator) in body.operators().iter().enumerate() {
        let new = || Use { first: step, ..Use::default() };
        for &input in &operator.inputs {
            let Some(Owner { tensor: weight, offset, .. }) = at[input.index()] else { continue };
            let end = offset.saturating_add(body.tensor(input).size.unwrap_or(0));
            let of = uses.entry(name(weight)).or_insert_with(new);
            of.reads = of.reads.max(end);
        }
        for &output in &operator.outputs {
            let Some(Owner { tensor: weight, offset, is_result }) = at[output.index()] else {
                continue;
            };
            let tensor = body.tensor(output);
            let end = offset.saturating_add(tensor.size.unwrap_or(0));
            let of = uses.entry(name(weight)).or_insert_with(new);
            if is_view(tensor) {
                of.reads = of.reads.max(end);
                of.is_indirect |= !is_result;
            } else {
                of.write(offset..end, tensor);
                of.is_written_first |= of.first == step;
            }
        }
        for inner in &operator.bodies {
            for (used, inner) in self::uses(inner) {
                let (weight, place) = match body.tensor_id(used).map(|id| at[id.index()]) {
                    Some(Some(owner)) => (name(owner.tensor), (owner.offset, owner.is_result)),
                    Some(None) => continue,
                    None => (used, (0, false)),
                };
                uses.entry(weight).or_insert_with(new).add(&inner, place, step);
            }
        }
    }
    let last = body.operators().len();
    for &output in body.outputs() {
        if let Some(Owner { tensor: weight, offset, .. }) = at[output.index()] {
            let end = offset.saturating_add(body.tensor(output).size.unwrap_or(0));
            let new = || Use { first: last, ..Use::default() };
            let of = uses.entry(name(weight)).or_insert_with(new);
            of.reads = of.reads.max(end);
        }
    }
    uses
}

fn is_view(tensor: &Tensor) -> bool {
    matches!(&tensor.origin, Origin::Output { dependency: Dependency::Reads { .. }, .. })
}

/// By tensor: its owner, if the owner is a weight and the tensor has bytes.
fn weights_of(body: &OpSequence) -> Vec<Option<Owner>> {
    let is_weight = |owner: &Owner| body.tensor(owner.tensor).origin == Origin::Weight;
    let owners = owners(body).into_iter().zip(body.tensors());
    owners
        .map(|(owner, tensor)| {
            Some(owner).filter(|owner| tensor.size != Some(0) && is_weight(owner))
        })
        .collect()
}

/// The tensor whose memory another shares as a view or as an update, and the offset there. A tensor that shares
/// none is its own owner.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    pub(super) tensor: TensorId,
    pub(super) offset: Bytes,
    /// True if an update lies on the way to it.
    is_result: bool,
}

/// By tensor: its owner.
pub(super) fn owners(sequence: &OpSequence) -> Vec<Owner> {
    let own = |index| Owner { tensor: TensorId::from_index(index), offset: 0, is_result: false };
    let mut owners: Vec<Owner> = (0..sequence.tensors().len()).map(own).collect();
    for &output in sequence.operators().iter().flat_map(|operator| &operator.outputs) {
        let Origin::Output { dependency, .. } = &sequence.tensor(output).origin else { continue };
        let shared = match dependency {
            Dependency::Reads { input, offset, .. } => Some((*input, *offset, false)),
            Dependency::Overwrites(overwrites) => {
                let update = overwrites.iter().find(|overwrite| overwrite.required);
                update.map(|overwrite| (overwrite.input, overwrite.offset, true))
            }
            Dependency::Fresh | Dependency::Gathers(_) => None,
        };
        if let Some((input, offset, is_update)) = shared {
            let owner = owners[input.index()];
            owners[output.index()] = Owner {
                tensor: owner.tensor,
                offset: owner.offset.saturating_add(offset),
                is_result: owner.is_result || is_update,
            };
        }
    }
    owners
}
