//! A run in one pool: an operator at a time, at the offsets of a plan.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use memplan::{
    Plan, TensorPlace,
    sequence::{Dependency, OperatorNode, Origin, TensorId},
};
use rten::{NodeId, Value, ValueOrView};

use super::{Inputs, Network, index};

/// A pattern that no tensor holds by chance: read as floats it is NaN.
const POISON: u64 = u64::MAX;

/// One allocation, of words so that every element is aligned.
pub struct Pool {
    words: Vec<u64>,
    size: usize,
}

impl Pool {
    /// Poisoned memory of this many bytes.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { words: vec![POISON; size.div_ceil(size_of::<u64>())], size }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.size]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.size]
    }
}

/// The place of a tensor in a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Pool(usize),
    /// In a graph input outside the pool.
    Input(TensorId, usize),
    Nowhere,
}

impl Network {
    /// Runs operator by operator, with all intermediate tensors and outputs in the pool.
    pub fn run_in_pool(&self, plan: &Plan, inputs: &Inputs, pool: &mut Pool) {
        self.run_observed(plan, inputs, pool, |operator| operator());
    }

    /// As [`Network::run_in_pool`], but passes every operator to an observer, which computes it.
    pub(crate) fn run_observed(
        &self,
        plan: &Plan,
        inputs: &Inputs,
        pool: &mut Pool,
        mut observe: impl FnMut(&dyn Fn() -> Vec<Value>) -> Vec<Value>,
    ) {
        let places = self.places(plan);
        for (id, input) in &inputs.0 {
            if let Place::Pool(_) = places[id.index()] {
                self.memory_mut(*id, &places, pool).copy_from_slice(input.bytes());
            }
        }
        for operator in self.sequence.operators() {
            let is_written = |id: &&TensorId| {
                let is_empty = self.size(**id) == 0;
                !self.is_view(**id, &places) && (is_empty || !self.copied(**id, &places).is_empty())
            };
            let written: Vec<TensorId> =
                operator.outputs.iter().filter(is_written).copied().collect();
            let values =
                observe(&|| self.compute(self.operands(operator, &places, inputs, pool), &written));
            for (id, value) in written.into_iter().zip(values) {
                let mut bytes = vec![0; self.size(id)];
                self.form_of(id).store(&value, &mut bytes);
                for range in self.copied(id, &places) {
                    let memory = self.memory_mut(id, &places, pool);
                    memory[range.clone()].copy_from_slice(&bytes[range]);
                }
            }
        }
    }

    /// The bytes of the graph outputs after [`Network::run_in_pool`].
    #[must_use]
    pub fn outputs_in_pool(&self, plan: &Plan, inputs: &Inputs, pool: &Pool) -> Vec<Vec<u8>> {
        let places = self.places(plan);
        let outputs = self.sequence.outputs().iter();
        outputs.map(|&id| self.memory(id, &places, inputs, pool).to_vec()).collect()
    }

    /// The inputs of an operator except the weights, each once.
    fn operands<'m>(
        &'m self,
        operator: &OperatorNode,
        places: &[Place],
        inputs: &'m Inputs,
        pool: &'m Pool,
    ) -> Vec<(NodeId, ValueOrView<'m>)> {
        let mut seen = HashSet::new();
        let inputs = operator.inputs.iter().filter(|id| seen.insert(**id)).filter_map(|&id| {
            let value = match (self.constants.get(&id), &self.forms[id.index()]) {
                (Some(constant), _) => constant.into(),
                (None, Some(form)) => form.view(self.memory(id, places, inputs, pool)),
                (None, None) => return None,
            };
            Some((self.node(id), value))
        });
        inputs.collect()
    }

    /// The bytes of an output that must be written: all but those of gathered inputs that lie inside it.
    fn copied(&self, id: TensorId, places: &[Place]) -> Vec<Range<usize>> {
        let size = self.size(id);
        let all = || std::iter::once(0..size).filter(|range| !range.is_empty()).collect();
        let Origin::Output { dependency: Dependency::Gathers(gathers), .. } =
            &self.tensor(id).origin
        else {
            return all();
        };
        let Place::Pool(base) = places[id.index()] else { return all() };
        let is_inside =
            |input: TensorId, at: usize| places[input.index()] == Place::Pool(base + at);
        let mut inside: Vec<Range<usize>> = gathers
            .iter()
            .map(|gather| (gather.input, index(gather.offset)))
            .filter(|&(input, at)| is_inside(input, at))
            .map(|(input, at)| at..at + self.size(input))
            .collect();
        inside.sort_by_key(|range| range.start);
        let ends = inside.iter().map(|range| range.end);
        let starts = inside.iter().map(|range| range.start).chain([size]);
        let gaps = [0].into_iter().chain(ends).zip(starts).map(|(from, to)| from..to);
        gaps.filter(|gap| !gap.is_empty()).collect()
    }

    /// Returns whether an output is a view that lies where its input does, so that no bytes move.
    fn is_view(&self, id: TensorId, places: &[Place]) -> bool {
        let Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. } =
            self.tensor(id).origin
        else {
            return false;
        };
        let offset = index(offset);
        places[id.index()]
            == match places[input.index()] {
                Place::Pool(base) => Place::Pool(base + offset),
                Place::Input(input, base) => Place::Input(input, base + offset),
                Place::Nowhere => Place::Nowhere,
            }
    }

    /// The places of all tensors by [`TensorId`]; inputs that the plan does not mention lie
    /// outside.
    fn places(&self, plan: &Plan) -> Vec<Place> {
        let by_name: HashMap<&str, TensorId> =
            self.ids().map(|id| (&*self.tensor(id).name, id)).collect();
        let mut places: Vec<Place> = self.ids().map(|id| Place::Input(id, 0)).collect();
        for tensor in plan.tensors() {
            places[by_name[&*tensor.name].index()] = match &tensor.place {
                TensorPlace::Pool { offset, .. } => Place::Pool(index(*offset)),
                TensorPlace::Supplied { tensor, offset } => {
                    Place::Input(by_name[&**tensor], index(*offset))
                }
                _ => Place::Nowhere,
            };
        }
        places
    }

    fn memory<'m>(
        &self,
        id: TensorId,
        places: &[Place],
        inputs: &'m Inputs,
        pool: &'m Pool,
    ) -> &'m [u8] {
        let (memory, offset) = match places[id.index()] {
            Place::Pool(offset) => (pool.bytes(), offset),
            Place::Input(input, offset) => (inputs.0[&input].bytes(), offset),
            Place::Nowhere => return &[],
        };
        &memory[offset..][..self.size(id)]
    }

    fn memory_mut<'m>(&self, id: TensorId, places: &[Place], pool: &'m mut Pool) -> &'m mut [u8] {
        match places[id.index()] {
            Place::Pool(offset) => &mut pool.bytes_mut()[offset..][..self.size(id)],
            Place::Nowhere => &mut [],
            Place::Input(..) => panic!("'{}' would be written outside", self.tensor(id).name),
        }
    }
}
