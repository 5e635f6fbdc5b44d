//! A sequence in which the operators of some consecutive steps are fused into one: the tensors that they only pass to
//! each other need no memory, or half of it.

use std::{collections::HashSet, ops::Range};

use crate::{
    Bytes, OpSequence, Operator, Output, SequenceError,
    sequence::{Dependency, OperatorNode, Origin, Overwrite, SequenceBuilder, TensorId},
};

/// Operators of consecutive steps that become one.
#[derive(Clone, Debug)]
pub(super) struct Fusion<'a> {
    sequence: &'a OpSequence,
    pub(super) steps: Range<usize>,
    /// By tensor: whether only operators of these steps read it.
    is_inner: Vec<bool>,
}

impl<'a> Fusion<'a> {
    /// Returns `None` if nothing would be saved, or a result would be a view of another one, which no operator can
    /// make.
    pub(super) fn of(sequence: &'a OpSequence, steps: Range<usize>) -> Option<Self> {
        let nodes = sequence.operators().get(steps.clone())?;
        if nodes.iter().any(|node| !node.bodies.is_empty()) {
            return None;
        }
        let mut is_inner = vec![false; sequence.tensors().len()];
        for &read in nodes.iter().flat_map(|node| &node.inputs) {
            is_inner[read.index()] = true;
        }
        let outside = sequence.operators().iter().enumerate();
        let outside = outside.filter(|(step, _)| !steps.contains(step));
        let outside = outside.flat_map(|(_, node)| &node.inputs).chain(sequence.outputs());
        outside.for_each(|read| is_inner[read.index()] = false);
        let fusion = Self { sequence, steps, is_inner: Vec::new() };
        for (at, inner) in is_inner.iter_mut().enumerate() {
            let id = TensorId::from_index(at);
            *inner &= fusion.is_made(id) && !is_update(&sequence.tensor(id).origin);
        }
        let fusion = Self { is_inner, ..fusion };
        let saves = fusion.inner().any(|id| sequence.tensor(id).size > Some(0));
        (saves && fusion.kept().all(|id| fusion.dependency(id).is_some())).then_some(fusion)
    }

    /// Returns whether an operator of these steps makes the tensor.
    fn is_made(&self, id: TensorId) -> bool {
        matches!(self.sequence.tensor(id).origin, Origin::Output { step, .. } if self.steps.contains(&step))
    }

    fn nodes(&self) -> &'a [OperatorNode] {
        &self.sequence.operators()[self.steps.clone()]
    }

    /// The tensors that need no memory any more.
    pub(super) fn inner(&self) -> impl Iterator<Item = TensorId> {
        self.made().filter(|id| self.is_inner[id.index()])
    }

    /// The tensors that the one operator makes.
    fn kept(&self) -> impl Iterator<Item = TensorId> {
        self.made().filter(|id| !self.is_inner[id.index()])
    }

    fn made(&self) -> impl Iterator<Item = TensorId> {
        self.nodes().iter().flat_map(|node| &node.outputs).copied()
    }

    /// The number of operators of these steps that read a tensor.
    fn readers(&self, id: TensorId) -> usize {
        self.nodes().iter().filter(|node| node.inputs.contains(&id)).count()
    }

    /// The memory that a result of the fused operator may share with the operator's inputs. `None` if the result would
    /// be a view of another result, or would have to be written over one.
    fn dependency(&self, id: TensorId) -> Option<Dependency<TensorId>> {
        let Origin::Output { dependency, .. } = &self.sequence.tensor(id).origin else {
            return None;
        };
        Some(match dependency {
            Dependency::Reads { input, .. } if !self.is_made(*input) => dependency.clone(),
            Dependency::Reads { input, .. } if !self.is_inner[input.index()] => return None,
            // The output takes the place of the tensor that it would show.
            Dependency::Reads { input, offset: 0, .. } if self.is_as_large(id, *input) => {
                self.dependency(*input)?
            }
            Dependency::Fresh | Dependency::Reads { .. } => Dependency::Fresh,
            Dependency::Overwrites(overwrites) => {
                let is_lost = |one: &Overwrite<TensorId>| one.required && self.is_made(one.input);
                if overwrites.iter().any(is_lost) {
                    return None;
                }
                let kept = overwrites.iter().flat_map(|one| self.overwrites(id, one)).collect();
                overwrites_or_fresh(kept)
            }
            Dependency::Gathers(gathers) => {
                if gathers.iter().any(|one| one.required && self.is_made(one.input)) {
                    return None;
                }
                let kept = gathers.iter().filter(|one| !self.is_made(one.input));
                let kept: Vec<_> = kept.cloned().collect();
                if kept.is_empty() { Dependency::Fresh } else { Dependency::Gathers(kept) }
            }
        })
    }

    fn is_as_large(&self, a: TensorId, b: TensorId) -> bool {
        self.sequence.tensor(a).size == self.sequence.tensor(b).size
    }

    /// The tensors that a tensor may be written over in the fused operator, if its own operator may write it over
    /// `over`. No other operator may read the bytes in between.
    fn overwrites(&self, id: TensorId, over: &Overwrite<TensorId>) -> Vec<Overwrite<TensorId>> {
        if !self.is_made(over.input) {
            let is_free = over.required || self.readers(over.input) == 1;
            return if is_free { vec![over.clone()] } else { Vec::new() };
        }
        let is_whole = over.offset == 0 && over.below == 0 && self.is_as_large(id, over.input);
        let is_inner = self.is_inner[over.input.index()] && self.readers(over.input) == 1;
        match &self.sequence.tensor(over.input).origin {
            Origin::Output { dependency: Dependency::Overwrites(further), .. }
                if is_whole && is_inner =>
            {
                further.iter().flat_map(|one| self.overwrites(over.input, one)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The sequence with the fused operator, whose workspace is `workspace` bytes, or the largest workspace of the
    /// fused operators if that is more.
    pub(super) fn sequence(&self, workspace: Bytes) -> Result<OpSequence, SequenceError> {
        let mut builder = self.supplied();
        for &output in self.sequence.outputs() {
            builder.output(self.name(output));
        }
        let place = |step: usize| match step {
            step if step < self.steps.start => step,
            step if step < self.steps.end => self.steps.start,
            step => step + 1 - self.steps.len(),
        };
        for (step, node) in self.sequence.operators().iter().enumerate() {
            if step == self.steps.start {
                builder.operator(self.one_operator(workspace));
            }
            if !self.steps.contains(&step) {
                let operator = self.declared(node, |id| self.output(id, None));
                let mut after: Vec<usize> = node.after.iter().map(|&first| place(first)).collect();
                after.dedup();
                builder.operator(after.into_iter().fold(operator, Operator::after_place));
            }
        }
        builder.build()
    }

    fn one_operator(&self, workspace: Bytes) -> Operator {
        let nodes = self.nodes();
        let mut seen = HashSet::new();
        let read = nodes.iter().flat_map(|node| &node.inputs).copied();
        let read = read.filter(|&id| !self.is_made(id) && seen.insert(id));
        let names: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
        let own = nodes.iter().map(|node| node.workspace).max().unwrap_or(0);
        let mut operator = Operator::new(names.join("+"))
            .inputs(read.map(|id| self.name(id)))
            .workspace(own.max(workspace));
        for id in self.kept() {
            operator = operator.output(self.output(id, self.dependency(id)));
        }
        let mut after: Vec<usize> = nodes.iter().flat_map(|node| &node.after).copied().collect();
        after.retain(|&first| first < self.steps.start);
        after.sort_unstable();
        after.dedup();
        after.into_iter().fold(operator, Operator::after_place)
    }

    /// The operators of these steps alone, for one half of the work: every tensor that they pass to each other has
    /// half its size, and the tensors that they read from outside and their results lie elsewhere.
    pub(super) fn half(&self) -> Result<OpSequence, SequenceError> {
        let mut builder = self.supplied();
        let sequence = self.sequence;
        let read = self.nodes().iter().flat_map(|node| &node.inputs).copied();
        let mut seen = HashSet::new();
        for id in read.filter(|&id| !self.is_made(id) && seen.insert(id)) {
            if matches!(sequence.tensor(id).origin, Origin::Output { .. }) {
                builder.input(self.name(id), sequence.tensor(id).size.unwrap_or(0));
            }
        }
        let half = |id: TensorId| {
            let size = sequence.tensor(id).size.unwrap_or(0);
            let output = |bytes| Output::new(self.name(id), bytes);
            if self.is_inner[id.index()] {
                Output { dependency: self.half_dependency(id), ..output(size.div_ceil(2)) }
            } else {
                // A result has its memory outside.
                output(0)
            }
        };
        for node in self.nodes() {
            builder.operator(self.declared(node, half));
        }
        builder.build()
    }

    /// How half of an inner tensor lies in half of another one. What comes from outside stays whole.
    fn half_dependency(&self, id: TensorId) -> Dependency<Box<str>> {
        let is_inner = |id: TensorId| self.is_inner[id.index()];
        let Origin::Output { dependency, .. } = &self.sequence.tensor(id).origin else {
            return Dependency::Fresh;
        };
        let mut dependency = dependency.clone();
        match &mut dependency {
            Dependency::Reads { input, offset, .. } if is_inner(*input) => *offset /= 2,
            Dependency::Reads { input, .. } if self.is_made(*input) => return Dependency::Fresh,
            Dependency::Reads { .. } | Dependency::Fresh => {}
            Dependency::Overwrites(overwrites) => {
                overwrites.retain(|one| is_inner(one.input) && one.below == 0);
                for one in overwrites.iter_mut() {
                    one.offset /= 2;
                }
                if overwrites.is_empty() {
                    return Dependency::Fresh;
                }
            }
            Dependency::Gathers(gathers) => {
                // Halves of odd offsets would overlap.
                gathers.retain(|one| is_inner(one.input) && one.offset % 2 == 0);
                for one in gathers.iter_mut() {
                    one.offset /= 2;
                }
                if gathers.is_empty() {
                    return Dependency::Fresh;
                }
            }
        }
        dependency.map(|&input| self.name(input))
    }

    fn name(&self, id: TensorId) -> Box<str> {
        self.sequence.tensor(id).name.clone()
    }

    /// A builder with what is supplied from outside.
    fn supplied(&self) -> SequenceBuilder {
        let mut builder = OpSequence::builder();
        for tensor in self.sequence.tensors() {
            match tensor.origin {
                Origin::Input => builder.input(tensor.name.clone(), tensor.size.unwrap_or(0)),
                Origin::Weight => builder.weight(tensor.name.clone(), tensor.size),
                Origin::Output { .. } => continue,
            };
        }
        builder
    }

    /// An operator as it was declared, without those that it runs after.
    fn declared(&self, node: &OperatorNode, output: impl Fn(TensorId) -> Output) -> Operator {
        let mut operator = Operator::new(node.name.clone())
            .kind(node.kind.clone())
            .inputs(node.inputs.iter().map(|&id| self.name(id)))
            .on_stream(node.stream)
            .workspace(node.workspace);
        operator.bodies.clone_from(&node.bodies);
        node.outputs.iter().fold(operator, |operator, &id| operator.output(output(id)))
    }

    /// A tensor as it was declared or with another dependency.
    fn output(&self, id: TensorId, dependency: Option<Dependency<TensorId>>) -> Output {
        let tensor = self.sequence.tensor(id);
        let declared = match &tensor.origin {
            Origin::Output { dependency, .. } => dependency.clone(),
            Origin::Input | Origin::Weight => Dependency::Fresh,
        };
        let dependency = dependency.unwrap_or(declared).map(|&input| self.name(input));
        let output = Output::new(tensor.name.clone(), tensor.size.unwrap_or(0));
        Output { dependency, ..output.basis(tensor.basis) }
    }
}

/// Returns whether a tensor must be written over another one.
fn is_update(origin: &Origin) -> bool {
    match origin {
        Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } => {
            overwrites.iter().any(|one| one.required)
        }
        _ => false,
    }
}

fn overwrites_or_fresh(overwrites: Vec<Overwrite<TensorId>>) -> Dependency<TensorId> {
    if overwrites.is_empty() { Dependency::Fresh } else { Dependency::Overwrites(overwrites) }
}
