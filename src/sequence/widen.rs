//! One sequence for a model whose shapes differ from run to run: every tensor at its largest size, and only
//! the views, overwrites and gathers that are valid for all shapes.
//!
//! A plan of such a sequence holds for each of the shapes, because only sizes differ between them, and in a smaller
//! shape chunks only shrink.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    Bytes,
    sequence::{
        Dependency, DimRange, Gather, OpSequence, OperatorNode, Origin, Overwrite, SequenceError,
        SizeBasis, TensorId, check,
    },
};

/// Two readings of a model that have no sequence in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unlike {
    /// This operator runs only in the second one, or in another place.
    Operator(String),
    /// This operator has other inputs, outputs or bodies.
    Tensors(String),
    /// The outputs of the model differ.
    Outputs,
}

/// The outputs that depend on their inputs in other ways for other shapes, by name.
#[derive(Debug, Default)]
pub(crate) struct Rejected {
    /// The outputs that are views for some of the shapes only.
    pub(crate) views: HashSet<Box<str>>,
    /// The outputs that no longer overwrite or view an input.
    pub(crate) links: HashSet<Box<str>>,
}

impl OpSequence {
    /// Makes the sequence valid for another reading of the same model with other shapes, too. If the other reading does
    /// not run an operator, because its outputs are known before the run, the outputs lose their dependencies; `known`
    /// has the sizes of such outputs.
    ///
    /// # Errors
    ///
    /// If the other reading runs an operator that this one does not run. The sequence is then useless.
    pub(crate) fn widen(
        &mut self,
        other: &Self,
        known: &HashMap<Box<str>, Bytes>,
        dropped: &mut Rejected,
    ) -> Result<(), Unlike> {
        let mut theirs = (0..other.operators.len()).peekable();
        for step in 0..self.operators.len() {
            let found = theirs.next_if(|&their| self.is_operator(step, other, their));
            match found {
                Some(their) => self.widen_operator(step, other, their, dropped)?,
                None => self.widen_absent(step, known, dropped),
            }
        }
        if let Some(their) = theirs.next() {
            return Err(Unlike::Operator(other.operator_name(their)));
        }
        let names = |sequence: &Self| -> Vec<Box<str>> {
            sequence.outputs.iter().map(|&id| sequence.tensor(id).name.clone()).collect()
        };
        if names(self) != names(other) {
            return Err(Unlike::Outputs);
        }
        for at in 0..self.tensors.len() {
            let is_supplied = !matches!(self.tensors[at].origin, Origin::Output { .. });
            if let (true, Some(their)) = (is_supplied, other.tensor_id(&self.tensors[at].name)) {
                self.widen_tensor(TensorId::from_index(at), other, their);
            }
        }
        Ok(())
    }

    /// States the sizes for which the sequence is right.
    pub(crate) fn set_dims(&mut self, dims: BTreeMap<Box<str>, DimRange>) {
        self.dims = dims;
    }

    /// Checks the rules that the merged sizes of several readings may break.
    ///
    /// # Errors
    ///
    /// If something does not fit.
    pub(crate) fn check_sizes(&self) -> Result<(), SequenceError> {
        check::views(self)?;
        check::overwriters(self)?;
        check::gathers(self)?;
        check::sizes(self)
    }

    /// Returns whether two operators make the same first tensor.
    fn is_operator(&self, step: usize, other: &Self, their: usize) -> bool {
        let first = |sequence: &'_ Self, step: usize| -> Option<Box<str>> {
            let output = sequence.operators[step].outputs.first()?;
            Some(sequence.tensor(*output).name.clone())
        };
        first(self, step) == first(other, their)
    }

    fn widen_operator(
        &mut self,
        step: usize,
        other: &Self,
        their: usize,
        dropped: &mut Rejected,
    ) -> Result<(), Unlike> {
        let theirs = &other.operators[their];
        let is_same = |mine: &[TensorId], theirs: &[TensorId]| {
            let name = |(mine, theirs): (&TensorId, &TensorId)| {
                self.tensor(*mine).name == other.tensor(*theirs).name
            };
            mine.len() == theirs.len() && mine.iter().zip(theirs).all(name)
        };
        let mine = &self.operators[step];
        if !is_same(&mine.inputs, &theirs.inputs)
            || !is_same(&mine.outputs, &theirs.outputs)
            || mine.bodies.len() != theirs.bodies.len()
        {
            return Err(Unlike::Tensors(self.operator_name(step)));
        }
        let outputs = mine.outputs.clone();
        for (&mine, &theirs) in outputs.iter().zip(&theirs.outputs) {
            self.widen_tensor(mine, other, theirs);
            self.keep_common(mine, other, theirs, dropped);
        }
        let OperatorNode { workspace, bodies, .. } = &mut self.operators[step];
        *workspace = theirs.workspace.max(*workspace);
        for (mine, theirs) in bodies.iter_mut().zip(&theirs.bodies) {
            // Tensors that a body knows before the run have no recorded size.
            if mine.operators.len() != theirs.operators.len() {
                return Err(Unlike::Tensors(self.operator_name(step)));
            }
            mine.widen(theirs, &HashMap::new(), dropped)?;
        }
        Ok(())
    }

    /// Takes the larger of two sizes, with the type that it comes from.
    fn widen_tensor(&mut self, mine: TensorId, other: &Self, theirs: TensorId) {
        let theirs = other.tensor(theirs);
        let mine = &mut self.tensors[mine.index()];
        if mine.size == theirs.size {
            return;
        }
        if mine.size.is_some() && (theirs.size.is_none() || mine.size < theirs.size) {
            (mine.size, mine.elements) = (theirs.size, theirs.elements.clone());
        }
        mine.basis = SizeBasis::AtMost;
    }

    /// Keeps only the dependencies of an output that both sequences have.
    fn keep_common(
        &mut self,
        mine: TensorId,
        other: &Self,
        theirs: TensorId,
        dropped: &mut Rejected,
    ) {
        let Origin::Output { dependency: theirs, .. } = &other.tensor(theirs).origin else {
            return;
        };
        let is_same =
            |mine: TensorId, theirs: TensorId| self.tensor(mine).name == other.tensor(theirs).name;
        let Origin::Output { dependency, .. } = &self.tensor(mine).origin else { return };
        let common = match (dependency, theirs) {
            (
                &Dependency::Reads { input, offset, required },
                &Dependency::Reads { input: their_input, offset: their_offset, required: theirs },
            ) if offset == their_offset && is_same(input, their_input) => {
                Dependency::Reads { input, offset, required: required || theirs }
            }
            (Dependency::Overwrites(mine), Dependency::Overwrites(theirs)) => {
                let is_one = |a: &Overwrite<TensorId>, b: &Overwrite<TensorId>| {
                    (a.offset, a.below, a.required) == (b.offset, b.below, b.required)
                        && is_same(a.input, b.input)
                };
                let kept =
                    mine.iter().filter(|mine| theirs.iter().any(|theirs| is_one(mine, theirs)));
                Dependency::Overwrites(kept.cloned().collect())
            }
            (Dependency::Gathers(mine), Dependency::Gathers(theirs)) => {
                let is_one = |a: &Gather<TensorId>, b: &Gather<TensorId>| {
                    a.offset == b.offset && is_same(a.input, b.input)
                };
                let kept = mine.iter().filter_map(|mine| {
                    let theirs = theirs.iter().find(|theirs| is_one(mine, theirs))?;
                    Some(Gather { required: mine.required || theirs.required, ..*mine })
                });
                Dependency::Gathers(kept.collect())
            }
            _ => Dependency::Fresh,
        };
        let is_view = |one: &Dependency<TensorId>| matches!(one, Dependency::Reads { .. });
        if (is_view(dependency) || is_view(theirs)) && !is_view(&common) {
            dropped.views.insert(self.tensor(mine).name.clone());
        }
        self.depend(mine, common, dropped);
    }

    /// Widens an operator that the other reading does not run.
    fn widen_absent(
        &mut self,
        step: usize,
        known: &HashMap<Box<str>, Bytes>,
        dropped: &mut Rejected,
    ) {
        for output in self.operators[step].outputs.clone() {
            let tensor = &mut self.tensors[output.index()];
            if let (Some(size), Some(&theirs)) = (tensor.size, known.get(&tensor.name))
                && size != theirs
            {
                tensor.size = Some(size.max(theirs));
                tensor.basis = SizeBasis::AtMost;
            }
            self.depend(output, Dependency::Fresh, dropped);
        }
    }

    fn depend(&mut self, output: TensorId, on: Dependency<TensorId>, dropped: &mut Rejected) {
        let on = match on {
            Dependency::Overwrites(inputs) if inputs.is_empty() => Dependency::Fresh,
            Dependency::Gathers(inputs) if inputs.is_empty() => Dependency::Fresh,
            on => on,
        };
        let tensor = &mut self.tensors[output.index()];
        if let Origin::Output { dependency, .. } = &mut tensor.origin
            && *dependency != on
        {
            if on == Dependency::Fresh && !matches!(dependency, Dependency::Gathers(_)) {
                dropped.links.insert(tensor.name.clone());
            }
            *dependency = on;
        }
    }
}
