//! Captured tensors: the tensors around a body that it uses, which have the names of the body's weights.
//!
//! A plan keeps a tensor intact while an operator runs only if it is an input of the operator, and lets an operator
//! change only what an output is declared to overwrite. So an operator must declare what its bodies use.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use crate::{
    Bytes,
    sequence::{
        Dependency, OpSequence, Origin, SequenceError, TensorId,
        uses::{Owner, Use, owners, uses},
    },
};

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

/// Checks that operators declare the tensors that their bodies use, and that an output in which a body makes a
/// result has memory of its own.
pub(super) fn captured(sequence: &OpSequence) -> Result<(), SequenceError> {
    if !sequence.has_bodies() {
        return Ok(());
    }
    let owners = owners(sequence);
    let hosts = sequence.operators().iter().enumerate();
    for (step, operator) in hosts.filter(|(_, operator)| !operator.bodies.is_empty()) {
        let host = Host {
            sequence,
            step,
            owners: &owners,
            inputs: operator.inputs.iter().copied().collect(),
            outputs: operator.outputs.iter().copied().collect(),
            updates: updates(sequence, &operator.outputs, &owners),
        };
        for (place, body) in operator.bodies.iter().enumerate() {
            let uses = uses(body);
            for (name, of) in &uses {
                match sequence.tensor_id(name) {
                    Some(around) if host.outputs.contains(&around) => {
                        host.result(place, around, of)?;
                    }
                    Some(around) => host.declared(place, around, of)?,
                    None => {}
                }
            }
            host.aliases(place, &uses)?;
        }
    }
    Ok(())
}

/// The bytes that the outputs of an operator must overwrite, by the tensor whose memory they share: ranges that
/// neither overlap nor touch.
fn updates(
    sequence: &OpSequence,
    outputs: &[TensorId],
    owners: &[Owner],
) -> HashMap<TensorId, Vec<Range<Bytes>>> {
    let mut ranges: Vec<(TensorId, Range<Bytes>)> = Vec::new();
    for &output in outputs {
        let tensor = sequence.tensor(output);
        if let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
            &tensor.origin
            && overwrites.iter().any(|overwrite| overwrite.required)
        {
            let Owner { tensor: owner, offset: start, .. } = owners[output.index()];
            ranges.push((owner, start..start.saturating_add(tensor.size.unwrap_or(0))));
        }
    }
    ranges.sort_unstable_by_key(|(owner, range)| (*owner, range.start));
    let mut updates: HashMap<TensorId, Vec<Range<Bytes>>> = HashMap::new();
    for (owner, range) in ranges {
        let merged = updates.entry(owner).or_default();
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    updates
}

/// The end of a range, and the name of its tensor.
type Reach<'n> = (Bytes, &'n str);

/// An operator with bodies.
struct Host<'s> {
    sequence: &'s OpSequence,
    step: usize,
    /// By tensor: the tensor whose memory it shares, and the offset there.
    owners: &'s [Owner],
    inputs: HashSet<TensorId>,
    outputs: HashSet<TensorId>,
    /// The bytes that its outputs must overwrite, by the tensor whose memory they share.
    updates: HashMap<TensorId, Vec<Range<Bytes>>>,
}

impl Host<'_> {
    fn name(&self) -> String {
        self.sequence.operator_name(self.step)
    }

    /// Checks that an output in which a body makes a result has memory of its own and room for it, and that the
    /// body does not read it before: an output that shares bytes with an input would be written while the body
    /// may still read the input.
    fn result(&self, place: usize, output: TensorId, of: &Use) -> Result<(), SequenceError> {
        let tensor = self.sequence.tensor(output);
        let (operator, output) = (self.name(), tensor.name.to_string());
        let Some((_, result)) = &of.writes else {
            return Err(SequenceError::UnwrittenOutput { operator, body: place, output });
        };
        let (result, room) = (result.name.to_string(), tensor.size.unwrap_or(0));
        if !matches!(&tensor.origin, Origin::Output { dependency: Dependency::Fresh, .. }) {
            return Err(SequenceError::ResultInShared { operator, output, result });
        }
        let body = &self.sequence.operators()[self.step].bodies[place];
        let Some(weight) = body.tensor_id(&output).filter(|_| !of.is_indirect) else {
            return Err(SequenceError::ResultNotDirect { operator, output, result });
        };
        // The body checks that its results fit in its weight.
        if body.tensor(weight).size.is_none_or(|size| size > room) {
            return Err(SequenceError::ResultTooLarge { operator, output, result, room });
        }
        if !of.is_written_first {
            return Err(SequenceError::UnwrittenOutput { operator, body: place, output });
        }
        Ok(())
    }

    /// Checks that the operator declares how one of its bodies uses the tensor `around` it.
    fn declared(&self, place: usize, around: TensorId, of: &Use) -> Result<(), SequenceError> {
        let tensor = self.sequence.tensor(around);
        let (operator, body, name) = (|| self.name(), place, || tensor.name.to_string());
        if !self.inputs.contains(&around) {
            let (operator, tensor) = (operator(), name());
            return Err(SequenceError::NotCaptured { operator, body, tensor });
        }
        if let Some((Range { start: low, end: high }, result)) = of.writes.clone()
            && !self.is_updated(around, low..high)
        {
            let (operator, tensor, result) = (operator(), name(), result.name.to_string());
            return Err(SequenceError::CapturedUpdated {
                operator,
                body,
                result,
                tensor,
                low,
                high,
            });
        }
        // An update may reach beyond a view, in the memory that it shares.
        let written = of.writes.as_ref().map_or(0, |(bytes, _)| bytes.end);
        match tensor.size.filter(|&room| of.reads > room.max(written)) {
            Some(room) => {
                let (operator, tensor, size) = (operator(), name(), of.reads);
                Err(SequenceError::CapturedTooLarge { operator, body, tensor, size, room })
            }
            None => Ok(()),
        }
    }

    /// Returns whether the outputs of the operator must overwrite these bytes of a tensor.
    fn is_updated(&self, tensor: TensorId, bytes: Range<Bytes>) -> bool {
        let Owner { tensor: owner, offset: start, .. } = self.owners[tensor.index()];
        let (low, high) = (start.saturating_add(bytes.start), start.saturating_add(bytes.end));
        let mut updates = self.updates.get(&owner).into_iter().flatten();
        updates.any(|update| update.start <= low && high <= update.end)
    }

    /// Checks that no tensor that a body overwrites shares bytes with another tensor that it uses: the body could read
    /// the other one after its bytes are overwritten.
    fn aliases(&self, body: usize, uses: &BTreeMap<&str, Use>) -> Result<(), SequenceError> {
        let mut ranges = Vec::new();
        for (&name, of) in uses {
            let Some(around) = self.sequence.tensor_id(name) else { continue };
            let Owner { tensor: owner, offset: low, .. } = self.owners[around.index()];
            let written = of.writes.as_ref().map_or(0, |(bytes, _)| bytes.end);
            // A weight of unknown size may extend anywhere.
            let size = self.sequence.tensor(around).size.unwrap_or(Bytes::MAX);
            let high = low.saturating_add(size.max(of.reads).max(written));
            ranges.push((owner, low, high, name, of.writes.is_some()));
        }
        ranges.sort_unstable();
        // Within the memory of one owner: the range that ends last so far, and the written range that ends last.
        let mut before = None;
        let (mut any, mut written): (Option<Reach>, Option<Reach>) = (None, None);
        for (owner, low, high, name, is_written) in ranges {
            if before.replace(owner) != Some(owner) {
                (any, written) = (None, None);
            }
            let other = if is_written { any } else { written };
            if let Some((_, other)) = other.filter(|(end, _)| low < *end && low < high) {
                let (tensor, other) = if is_written { (name, other) } else { (other, name) };
                return Err(SequenceError::CapturedAlias {
                    operator: self.name(),
                    body,
                    tensor: tensor.to_owned(),
                    other: other.to_owned(),
                });
            }
            any = any.max(Some((high, name)));
            if is_written {
                written = written.max(Some((high, name)));
            }
        }
        Ok(())
    }
}
