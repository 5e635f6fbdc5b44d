//! The operators that must run before others in every order, and the sequence in another order.

use std::collections::HashMap;

use crate::{
    Bytes,
    sequence::{
        Dependency, OpSequence, OperatorNode, Origin, SequenceError, Tensor, TensorId, given::Given,
    },
};

impl OpSequence {
    /// By step, the operators that must run before an operator in every order of the sequence, ascending and without
    /// repeats: the producers of its inputs; the operators that it is declared to run after; and, for a required
    /// update, every earlier operator that reads or makes some of the updated bytes, through any view of them. For the
    /// last kind, "earlier" refers to the order given, because only this order determines which value of a variable an
    /// operator reads.
    #[must_use]
    pub fn predecessors(&self) -> Vec<Vec<usize>> {
        let storages = self.storages();
        let bytes = |tensor: TensorId, offset: Bytes| {
            let (storage, base) = storages[tensor.index()];
            (storage.index(), base.saturating_add(offset))
        };
        // A weight of unknown size may have any number of bytes.
        let size = |tensor: TensorId| self.tensor(tensor).size.unwrap_or(Bytes::MAX);
        // By storage: the operators so far that use it, each with the first byte and the byte after the last.
        let mut users: Vec<Vec<(usize, Bytes, Bytes)>> = vec![Vec::new(); self.tensors.len()];
        let mut all = Vec::with_capacity(self.operators.len());
        for (step, operator) in self.operators.iter().enumerate() {
            let mut before: Vec<usize> = operator.after.clone();
            before.extend(operator.inputs.iter().filter_map(|&input| self.producer(input)));
            for &output in &operator.outputs {
                let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } =
                    &self.tensor(output).origin
                else {
                    continue;
                };
                for overwrite in overwrites.iter().filter(|overwrite| overwrite.required) {
                    let (storage, low) = bytes(overwrite.input, overwrite.offset);
                    let high = low.saturating_add(size(output));
                    let meets = |&&(_, from, to): &&(usize, Bytes, Bytes)| from < high && low < to;
                    before.extend(users[storage].iter().filter(meets).map(|&(step, ..)| step));
                }
            }
            before.sort_unstable();
            before.dedup();
            all.push(before);
            for tensor in operator.inputs.iter().chain(&operator.outputs) {
                let (storage, low) = bytes(*tensor, 0);
                let one = (step, low, low.saturating_add(size(*tensor)));
                if users[storage].last() != Some(&one) {
                    users[storage].push(one);
                }
            }
        }
        all
    }

    /// The tensor whose memory each tensor is a view of, and the offset there: itself if it is not a view.
    fn storages(&self) -> Vec<(TensorId, Bytes)> {
        let mut storages: Vec<(TensorId, Bytes)> =
            (0..self.tensors.len()).map(|index| (TensorId::from_index(index), 0)).collect();
        for &output in self.operators.iter().flat_map(|operator| &operator.outputs) {
            if let Some((input, offset)) = self.tensor(output).viewed() {
                let (storage, base) = storages[input.index()];
                storages[output.index()] = (storage, base.saturating_add(offset));
            }
        }
        storages
    }

    fn producer(&self, tensor: TensorId) -> Option<usize> {
        self.tensor(tensor).producer()
    }

    /// The same operators in another order; `order` lists the steps of this sequence in the order
    /// in which they are to run.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output};
    ///
    /// let sequence = OpSequence::builder()
    ///     .operator(Operator::new("a").output(Output::new("x", 8)))
    ///     .operator(Operator::new("b").output(Output::new("y", 8)))
    ///     .operator(Operator::new("c").inputs(["x"]).output(Output::new("z", 8)))
    ///     .build()?;
    /// let permuted = sequence.permuted(&[0, 2, 1])?;
    /// assert_eq!(permuted.operator_name(1), "c");
    /// assert!(sequence.permuted(&[2, 0, 1]).is_err());
    /// # Ok::<(), memplan::SequenceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a step is missing or repeated, or an operator would run before one of its
    /// [`predecessors`](Self::predecessors).
    pub fn permuted(&self, order: &[usize]) -> Result<Self, SequenceError> {
        let places = self.places(order)?;
        // Ids as a sequence built in this order would have them.
        let mut new_ids: Vec<Option<TensorId>> = vec![None; self.tensors.len()];
        let mut tensors: Vec<Tensor> = Vec::with_capacity(self.tensors.len());
        let mut move_tensor = |id: TensorId| {
            if new_ids[id.index()].is_none() {
                new_ids[id.index()] = Some(TensorId::from_index(tensors.len()));
                tensors.push(self.tensor(id).clone());
            }
        };
        let ids = || (0..self.tensors.len()).map(TensorId::from_index);
        let supplied = |&id: &TensorId| !matches!(self.tensor(id).origin, Origin::Output { .. });
        ids()
            .filter(supplied)
            .filter(|&id| self.tensor(id).size.is_some())
            .for_each(&mut move_tensor);
        let ordered = || order.iter().map(|&step| &self.operators[step]);
        ordered().flat_map(|operator| &operator.outputs).copied().for_each(&mut move_tensor);
        ordered().flat_map(|operator| &operator.inputs).copied().for_each(&mut move_tensor);
        ids().for_each(&mut move_tensor);
        let new_id = |id: &TensorId| new_ids[id.index()].unwrap_or(*id);
        for tensor in &mut tensors {
            if let Origin::Output { step, dependency } = &mut tensor.origin {
                *step = places[*step];
                *dependency = dependency.map(new_id);
            }
        }
        let operators = ordered()
            .map(|operator| {
                let mut after: Vec<usize> =
                    operator.after.iter().map(|&step| places[step]).collect();
                after.sort_unstable();
                OperatorNode {
                    inputs: operator.inputs.iter().map(new_id).collect(),
                    outputs: operator.outputs.iter().map(new_id).collect(),
                    after,
                    ..operator.clone()
                }
            })
            .collect();
        let outputs = self.outputs.iter().map(new_id).collect();
        let ids = self.ids.iter().map(|(name, id)| (name.clone(), new_id(id))).collect();
        let mut updated_in_bodies: Vec<TensorId> =
            self.updated_in_bodies.iter().map(new_id).collect();
        updated_in_bodies.sort_unstable();
        let (depth, dims) = (self.depth, self.dims.clone());
        // The order is the caller's own now.
        let given = Given { undeclared: self.given.undeclared.clone(), ..Given::default() };
        Ok(Self { operators, tensors, outputs, ids, depth, updated_in_bodies, dims, given })
    }

    /// The same operators in the order that they have in another sequence, such as the same model read with other
    /// sizes, which may have more operators or fewer. Operators are matched by their outputs; operators without
    /// outputs are matched by name, and by position among equal names. An operator that the other sequence lacks runs
    /// as soon as it can.
    ///
    /// # Errors
    ///
    /// If an operator would run before one of its [`predecessors`](Self::predecessors).
    pub fn in_order_of(&self, other: &Self) -> Result<Self, SequenceError> {
        let predecessors = self.predecessors();
        let (own, others) = (self.without_outputs(), other.without_outputs());
        let places: HashMap<_, _> = others.into_iter().map(|(step, known)| (known, step)).collect();
        let named: HashMap<usize, usize> =
            own.iter().filter_map(|(step, known)| Some((*step, *places.get(known)?))).collect();
        let mut order: Vec<(usize, usize)> = Vec::with_capacity(self.operators.len());
        for (step, operator) in self.operators.iter().enumerate() {
            let made = |&id: &TensorId| other.producer(other.tensor_id(&self.tensor(id).name)?);
            let last = || predecessors[step].iter().map(|&earlier| order[earlier].0).max();
            let known =
                operator.outputs.iter().find_map(made).or_else(|| named.get(&step).copied());
            let place = known.or_else(last);
            order.push((place.unwrap_or(0), step));
        }
        order.sort_unstable();
        let order: Vec<usize> = order.into_iter().map(|(_, step)| step).collect();
        self.permuted(&order)
    }

    /// The steps of the operators without outputs, each with its name and its position among equal names, from 1.
    fn without_outputs(&self) -> Vec<(usize, (&str, usize))> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let steps = self.operators.iter().enumerate().filter(|(_, op)| op.outputs.is_empty());
        steps
            .map(|(step, operator)| {
                let count = counts.entry(&operator.name).or_default();
                *count += 1;
                (step, (&*operator.name, *count))
            })
            .collect()
    }

    /// Returns whether another sequence has the same operators in the same order, with the same tensors. Tensors
    /// are compared by name and may have other ids.
    #[must_use]
    pub fn has_same_operators(&self, other: &Self) -> bool {
        fn names<'a>(sequence: &'a OpSequence, ids: &[TensorId]) -> Vec<&'a str> {
            ids.iter().map(|&id| &*sequence.tensor(id).name).collect()
        }
        fn dependency<'a>(
            sequence: &'a OpSequence,
            tensor: &Tensor,
        ) -> Option<(usize, Dependency<&'a str>)> {
            let Origin::Output { step, dependency } = &tensor.origin else { return None };
            Some((*step, dependency.map(|&id| &*sequence.tensor(id).name)))
        }
        let is_same_tensor = |tensor: &Tensor| {
            let found = other.tensor_id(&tensor.name).map(|id| other.tensor(id));
            found.is_some_and(|found| {
                (found.size, found.basis) == (tensor.size, tensor.basis)
                    && dependency(self, tensor) == dependency(other, found)
                    && (found.origin == Origin::Input) == (tensor.origin == Origin::Input)
            })
        };
        let is_same_operator = |(a, b): (&OperatorNode, &OperatorNode)| {
            (&a.name, &a.kind, &a.after) == (&b.name, &b.kind, &b.after)
                && (a.stream, a.workspace) == (b.stream, b.workspace)
                && names(self, &a.inputs) == names(other, &b.inputs)
                && names(self, &a.outputs) == names(other, &b.outputs)
        };
        self.operators.len() == other.operators.len()
            && self.tensors.len() == other.tensors.len()
            && names(self, &self.outputs) == names(other, &other.outputs)
            && self.tensors.iter().all(is_same_tensor)
            && self.operators.iter().zip(&other.operators).all(is_same_operator)
    }

    /// Returns the place of each step in an order, if the order is valid.
    fn places(&self, order: &[usize]) -> Result<Vec<usize>, SequenceError> {
        let operators = self.operators.len();
        let mut places = vec![usize::MAX; operators];
        for (place, &step) in order.iter().enumerate() {
            match places.get_mut(step) {
                Some(free) if *free == usize::MAX => *free = place,
                _ => return Err(SequenceError::NotAPermutation { operators }),
            }
        }
        if order.len() != operators {
            return Err(SequenceError::NotAPermutation { operators });
        }
        for (step, predecessors) in self.predecessors().into_iter().enumerate() {
            if let Some(&first) = predecessors.iter().find(|&&p| places[p] > places[step]) {
                return Err(SequenceError::RunsBefore {
                    operator: self.operator_name(step),
                    predecessor: self.operator_name(first),
                });
            }
        }
        Ok(places)
    }
}
