//! The operators and their memory, as numbers.
//!
//! A *storage* is memory that one operator makes, or that is supplied in the pool. A *value* is a tensor
//! in a storage: the tensor that the storage was made for, a view of it, or a required update of it.
//! Tensors outside the pool need no bytes of it and always exist, so they are not values.

use std::collections::BTreeSet;

use crate::{
    Bytes, OpSequence,
    lists::{Lists, NOBODY, narrow},
    lower::{LoweringOptions, Placing},
    recompute::expand,
    sequence::{Dependency, Origin, Overwrite, TensorId},
};

/// Memory that one operator makes, or that is supplied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    /// The bytes that it counts: with the padding, in multiples of the alignment.
    pub(super) bytes: Bytes,
    /// The fewest bytes that it takes, wherever a planner puts it.
    pub(super) least: Bytes,
    /// The operator that makes it; [`NOBODY`] if it is supplied.
    pub(super) producer: u32,
    /// True if it lives to the end, because an output of the sequence lies in it. Then readers never need a
    /// copy of it.
    pub(super) kept: bool,
}

/// A tensor in a storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) storage: u32,
    /// The value that it is a view or an update of; [`NOBODY`] if it is the storage's own.
    pub(super) of: u32,
}

/// An output that may lie over an input which dies in the same step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlay {
    pub(super) output: u32,
    pub(super) input: u32,
    pub(super) bytes: Bytes,
}

/// A sequence as the search sees it.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) cost: Vec<u64>,
    pub(super) workspace: Vec<Bytes>,
    /// By operator: the last step before which it may run again; 0 if it must not.
    pub(super) latest: Vec<u32>,
    /// By operator: the operator that makes the storage if it only makes views of it, otherwise itself.
    /// Views are made again with their storage.
    pub(super) leader: Vec<u32>,
    pub(super) values: Vec<Value>,
    pub(super) storages: Vec<Storage>,
    /// The values that each operator reads, without repeats.
    pub(super) reads: Lists,
    /// The values that each operator makes.
    pub(super) makes: Lists,
    /// The operators that read values of each operator in storages that are not kept; ascending.
    pub(super) readers: Lists,
    /// The operators that read each storage through any of its values, except those that only make views of
    /// it; ascending. Empty for storages that are kept.
    pub(super) users: Lists,
    /// By operator: true if it makes a storage that is kept. It always runs at its own step.
    pub(super) makes_kept: Vec<bool>,
    /// By operator: the overlays of its outputs, in order of preference.
    pub(super) overlays: Vec<Vec<Overlay>>,
    /// By operator: the most bytes that its outputs and inputs may share in its step.
    pub(super) shared: Vec<Bytes>,
}

impl Model {
    /// Makes a model of `sequence`, which needs a size for everything in the pool. `given` is the same
    /// sequence before its bodies became workspace.
    pub(super) fn new(
        given: &OpSequence,
        sequence: &OpSequence,
        options: LoweringOptions,
        placing: Placing,
    ) -> Self {
        let mut draft = Draft::new(sequence, options, placing);
        for step in 0..sequence.operators().len() {
            draft.add_operator(step);
        }
        draft.finish(given)
    }

    pub(super) fn operators(&self) -> usize {
        self.cost.len()
    }

    /// The storage of a value.
    pub(super) fn storage_of(&self, value: u32) -> &Storage {
        &self.storages[self.values[value as usize].storage as usize]
    }

    /// The operators for which a choice is made, rather than those that run again only together with the storage that
    /// they make views of.
    pub(super) fn candidates(&self) -> Vec<u32> {
        (0..narrow(self.operators()))
            .filter(|&operator| {
                let at = operator as usize;
                self.latest[at] > 0
                    && self.leader[at] == operator
                    && !self.readers.get(at).is_empty()
                    && self
                        .makes
                        .get(at)
                        .iter()
                        .any(|&value| self.values[value as usize].of == NOBODY)
            })
            .collect()
    }
}

/// A model under construction.
struct Draft<'a> {
    sequence: &'a OpSequence,
    options: LoweringOptions,
    placing: Placing,
    /// By tensor: its value.
    value_of: Vec<u32>,
    /// By tensor: the tensor whose memory it shares; itself if it has its own.
    root: Vec<TensorId>,
    /// By tensor that has memory of its own: the first step that updates it.
    updated_at: Vec<u32>,
    values: Vec<Value>,
    storages: Vec<Storage>,
    overlays: Vec<Vec<Overlay>>,
    shared: Vec<Bytes>,
    leader: Vec<u32>,
    /// The gathers: the storage of the input, the storage of the output, and the bytes.
    gathers: Vec<(u32, u32, Bytes)>,
}

impl<'a> Draft<'a> {
    fn new(sequence: &'a OpSequence, options: LoweringOptions, placing: Placing) -> Self {
        let count = sequence.tensors().len();
        let operators = sequence.operators().len();
        let mut draft = Self {
            sequence,
            options,
            placing,
            value_of: vec![NOBODY; count],
            root: (0..count).map(TensorId::from_index).collect(),
            updated_at: vec![NOBODY; count],
            values: Vec::new(),
            storages: Vec::new(),
            overlays: vec![Vec::new(); operators],
            shared: vec![0; operators],
            leader: (0..narrow(operators)).collect(),
            gathers: Vec::new(),
        };
        for (index, tensor) in sequence.tensors().iter().enumerate() {
            let (in_pool, kept) = match tensor.origin {
                Origin::Input => (options.inputs_in_pool, false),
                Origin::Weight => (options.weights_in_pool, true),
                Origin::Output { .. } => continue,
            };
            if in_pool {
                draft.add_storage(TensorId::from_index(index), NOBODY, kept);
            }
        }
        draft
    }

    fn add_storage(&mut self, tensor: TensorId, producer: u32, kept: bool) {
        let size = self.sequence.tensor(tensor).size.unwrap_or(0);
        if size == 0 {
            return;
        }
        self.value_of[tensor.index()] = narrow(self.values.len());
        self.values.push(Value { storage: narrow(self.storages.len()), of: NOBODY });
        let bytes = self.placing.count(size);
        self.storages.push(Storage { bytes, least: bytes, producer, kept });
    }

    /// Lets a tensor share the memory of another one.
    fn share(&mut self, tensor: TensorId, with: TensorId) {
        self.root[tensor.index()] = self.root[with.index()];
        let of = self.value_of[with.index()];
        let size = self.sequence.tensor(tensor).size.unwrap_or(Bytes::MAX);
        if of != NOBODY && size > 0 {
            let storage = self.values[of as usize].storage;
            self.value_of[tensor.index()] = narrow(self.values.len());
            self.values.push(Value { storage, of });
            if self.sequence.tensor(with).size.is_some_and(|whole| size < whole) {
                // A reader of a part keeps no more than the part.
                let least = &mut self.storages[storage as usize].least;
                *least = self.placing.floor(size).min(*least);
            }
        }
    }

    fn add_operator(&mut self, step: usize) {
        let operator = &self.sequence.operators()[step];
        let mut viewed = None;
        let mut makes_storage = operator.outputs.is_empty();
        for &output in &operator.outputs {
            let Origin::Output { dependency, .. } = &self.sequence.tensor(output).origin else {
                continue;
            };
            match dependency {
                Dependency::Reads { input, required, .. } if self.options.views || *required => {
                    self.share(output, *input);
                    viewed = viewed.or(Some(self.root[input.index()]));
                    continue;
                }
                Dependency::Overwrites(overwrites) => {
                    if let Some(update) = overwrites.iter().find(|overwrite| overwrite.required) {
                        self.share(output, update.input);
                        let root = self.root[update.input.index()].index();
                        self.updated_at[root] = self.updated_at[root].min(narrow(step));
                        makes_storage = true;
                        continue;
                    }
                    self.add_storage(output, narrow(step), false);
                    self.add_overlays(step, output, overwrites);
                }
                Dependency::Gathers(gathers) => {
                    self.add_storage(output, narrow(step), false);
                    let gathers_all = self.options.gathers;
                    for gather in gathers.iter().filter(|one| gathers_all || one.required) {
                        self.gather(gather.input, output);
                    }
                }
                _ => self.add_storage(output, narrow(step), false),
            }
            makes_storage = true;
        }
        if let (false, Some(root)) = (makes_storage, viewed)
            && let Origin::Output { step: producer, .. } = self.sequence.tensor(root).origin
        {
            self.leader[step] = self.leader[producer];
        }
    }

    fn add_overlays(&mut self, step: usize, output: TensorId, overwrites: &[Overwrite<TensorId>]) {
        let value = self.value_of[output.index()];
        if value == NOBODY || !self.options.inplace {
            return;
        }
        let storage = self.values[value as usize].storage;
        let size = self.sequence.tensor(output).size.unwrap_or(0);
        let mut is_shared = false;
        for overwrite in overwrites {
            let input = self.value_of[overwrite.input.index()];
            if input == NOBODY {
                // An output may lie outside the pool, over memory that is supplied.
                continue;
            }
            is_shared = true;
            let bytes = match overwrite.below {
                0 => self.placing.count(size),
                below => self.placing.floor(size.saturating_sub(below)),
            };
            let place = overwrite.offset + overwrite.below;
            if !place.is_multiple_of(self.placing.alignment) {
                self.storages[storage as usize].least = self.placing.floor(size);
            }
            self.overlays[step].push(Overlay { output: storage, input, bytes });
        }
        if is_shared {
            // Whatever an overwriter lies over may lie off the alignment itself.
            let floor = self.placing.floor(size);
            let least = &mut self.storages[storage as usize].least;
            *least = floor.min(*least);
            self.shared[step] += self.placing.count(size);
        }
    }

    /// Records that an input may lie inside an output that gathers it while both are live.
    fn gather(&mut self, input: TensorId, output: TensorId) {
        let [part, whole] = [input, output].map(|one| self.value_of[one.index()]);
        if whole == NOBODY {
            return;
        }
        let whole = self.values[whole as usize].storage;
        let size = self.sequence.tensor(input).size.unwrap_or(Bytes::MAX);
        if part != NOBODY {
            self.gathers.push((self.values[part as usize].storage, whole, size));
        } else if self.root[input.index()] != input {
            // A copy of this view of supplied memory may lie in several outputs.
            let least = self.fewer(self.storages[whole as usize].least, size);
            self.storages[whole as usize].least = least;
        }
    }

    /// Takes off bytes that another storage may have as well. At an unaligned offset, bytes may take one cell more or
    /// less.
    fn fewer(&self, least: Bytes, bytes: Bytes) -> Bytes {
        let mask = self.placing.alignment - 1;
        let around = mask.saturating_mul(2).saturating_add(self.placing.padding);
        least.saturating_sub(bytes.saturating_add(around)) & !mask
    }

    /// Counts bytes that several storages may share only once. If each part lies in one whole, they count with the
    /// whole; otherwise with the part, and a whole has only its own bytes.
    fn count_gathers(&mut self) {
        let mut parts: Vec<u32> = self.gathers.iter().map(|&(part, ..)| part).collect();
        parts.sort_unstable();
        let is_shared = parts.windows(2).any(|pair| pair[0] == pair[1]);
        for (part, whole, size) in std::mem::take(&mut self.gathers) {
            let [part, whole] = [part, whole].map(|storage| storage as usize);
            if is_shared {
                self.storages[whole].least = self.fewer(self.storages[whole].least, size);
                // Its own padding may lie on another part.
                let Storage { bytes, least, .. } = self.storages[part];
                self.storages[part].least = self.fewer(bytes, 0).min(least);
            } else {
                self.storages[part].least = 0;
            }
        }
    }

    fn finish(mut self, given: &OpSequence) -> Model {
        self.count_gathers();
        for &output in self.sequence.outputs() {
            let value = self.value_of[output.index()];
            if value != NOBODY {
                self.storages[self.values[value as usize].storage as usize].kept = true;
            }
        }
        let operators = self.sequence.operators();
        let value_of = &self.value_of;
        let reads = Lists::new(operators.iter().map(|operator| {
            let values = operator.inputs.iter().map(|input| value_of[input.index()]);
            values.filter(|&value| value != NOBODY).collect::<BTreeSet<u32>>()
        }));
        let makes = Lists::new(operators.iter().map(|operator| {
            let values = operator.outputs.iter().map(|output| value_of[output.index()]);
            values.filter(|&value| value != NOBODY).collect::<Vec<u32>>()
        }));
        let mut producers = vec![NOBODY; self.values.len()];
        for step in 0..operators.len() {
            for &value in makes.get(step) {
                producers[value as usize] = narrow(step);
            }
        }
        let mut readers = vec![Vec::new(); operators.len()];
        let mut users = vec![Vec::new(); self.storages.len()];
        for step in 0..operators.len() {
            for &value in reads.get(step) {
                let storage = self.values[value as usize].storage as usize;
                let producer = producers[value as usize];
                let is_view = self.leader[step] != narrow(step);
                let list: &mut Vec<u32> = &mut users[storage];
                if !is_view && !self.storages[storage].kept && list.last() != Some(&narrow(step)) {
                    list.push(narrow(step));
                }
                if producer != NOBODY && !self.storages[storage].kept {
                    let list: &mut Vec<u32> = &mut readers[producer as usize];
                    if list.last() != Some(&narrow(step)) {
                        list.push(narrow(step));
                    }
                }
            }
        }
        let is_kept =
            |value: &u32| self.storages[self.values[*value as usize].storage as usize].kept;
        let mut makes_kept = expand::makes_kept(given);
        for (step, makes_kept) in makes_kept.iter_mut().enumerate() {
            *makes_kept |= makes.get(step).iter().any(is_kept);
        }
        Model {
            makes_kept,
            cost: operators.iter().map(|operator| operator.cost).collect(),
            workspace: operators.iter().map(|one| self.placing.count(one.workspace)).collect(),
            latest: self.latest(given),
            leader: self.leader,
            values: self.values,
            storages: self.storages,
            reads,
            makes,
            readers: Lists::new(readers),
            users: Lists::new(users),
            overlays: self.overlays,
            shared: self.shared,
        }
    }

    /// By operator: the last step before which it may run again; 0 if it must not.
    fn latest(&self, given: &OpSequence) -> Vec<u32> {
        let operators = given.operators();
        let mut latest = vec![narrow(operators.len()); operators.len()];
        let producer = |tensor: TensorId| given.tensor(tensor).producer();
        for (step, operator) in operators.iter().enumerate() {
            // Operators that are ordered by something other than tensors have side effects.
            let has_effect = operator.once || !operator.after.is_empty();
            if has_effect || !operator.bodies.is_empty() || operator.outputs.is_empty() {
                latest[step] = 0;
            }
            for &first in &operator.after {
                latest[first] = 0;
            }
            if !operator.bodies.is_empty() {
                // Bodies refer to the tensors around them by name.
                for producer in operator.inputs.iter().filter_map(|&input| producer(input)) {
                    latest[producer] = 0;
                }
            }
            for &input in &operator.inputs {
                latest[step] = latest[step].min(self.updated_at[self.root[input.index()].index()]);
            }
            for &output in &operator.outputs {
                if self.updated_at[self.root[output.index()].index()] != NOBODY {
                    // The value that it made is gone after the update.
                    latest[step] = 0;
                }
            }
        }
        latest
    }
}
