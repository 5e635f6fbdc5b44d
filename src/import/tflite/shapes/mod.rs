//! The shapes of all tensors, from those of the inputs. A shape in the file may be a placeholder: where
//! a converter does not know a size, it writes -1 into the signature of the shape and 1 into the shape.
//!
//! The interpreter finds every shape in this way when it loads a model, so the inferred shapes are its
//! shapes. TensorFlow Lite Micro takes the shapes in the file; where an operator makes another number
//! of bytes, the model is refused.

mod layout;
mod layout_values;
mod lists;
mod node;
mod open;
mod reduce;
mod table;
mod values;
mod windows;

use std::collections::BTreeSet;

use crate::{
    import::{
        ImportOptions, OpenSize,
        tflite::{
            Runtime, TfliteError,
            arena::Names,
            model::{Model, OperatorAt, Tensor, tensor_place, wrong},
            ops::Op,
            walk,
        },
    },
    sequence::SizeBasis,
};
use node::{Fact, Node, written};
use open::Inferred;
pub(super) use open::message;

/// The most dimensions of a tensor whose shape is inferred.
const MAX_RANK: usize = 16;

/// Sets the shapes of a model's tensors. Returns the inputs whose shapes the file leaves open, with the
/// sizes that are taken instead.
///
/// # Errors
///
/// If an operator cannot run with its inputs, a shape is open, or the runtime would run the model with other
/// shapes.
pub(super) fn infer(
    model: &mut Model,
    names: &Names,
    options: &ImportOptions,
) -> Result<Vec<String>, TfliteError> {
    open::check_options(model, names, options)?;
    let facts = model.subgraphs.iter().map(|of| vec![Fact::default(); of.tensors.len()]).collect();
    let mut inference = Inference {
        model,
        names,
        options,
        facts,
        bases: vec![SizeBasis::Exact; model.tensor_count()],
        seen: BTreeSet::new(),
        open: Vec::new(),
        taken: Vec::new(),
    };
    inference.main()?;
    let Inference { facts, bases, open, taken, .. } = inference;
    if !open.is_empty() {
        return Err(TfliteError::OpenSizes { open });
    }
    apply(model, facts, &bases, options.runtime)?;
    Ok(taken)
}

/// A walk over the operators, as they run.
struct Inference<'i, 'a> {
    model: &'i Model<'a>,
    names: &'i Names,
    options: &'i ImportOptions,
    /// The facts about each tensor, by subgraph.
    facts: Vec<Vec<Fact>>,
    /// The basis of each size, by place among the tensors of all subgraphs.
    bases: Vec<SizeBasis>,
    /// The subgraphs that have run.
    seen: BTreeSet<usize>,
    /// The sizes that nothing gives.
    open: Vec<OpenSize>,
    /// The inputs whose open sizes are taken as the file states them.
    taken: Vec<String>,
}

impl Inference<'_, '_> {
    fn main(&mut self) -> Result<(), TfliteError> {
        let inputs = &self.model.subgraphs[0].inputs;
        let mut facts = Vec::with_capacity(inputs.len());
        for &input in inputs {
            let shape = self.input(input)?;
            facts.push(shape.map_or_else(Fact::default, |shape| Fact::of_shape(&shape)));
        }
        self.subgraph(0, &facts)
    }

    /// Runs a subgraph with these inputs. A subgraph that is called again has its shapes already.
    fn subgraph(&mut self, at: usize, inputs: &[Fact]) -> Result<(), TfliteError> {
        if !self.seen.insert(at) {
            return Ok(());
        }
        let subgraph = &self.model.subgraphs[at];
        for (place, tensor) in subgraph.tensors.iter().enumerate() {
            if tensor.is_constant || tensor.is_variable {
                let values = self.model.integers(tensor).map(Into::into);
                self.facts[at][place] = Fact { values, ..stated(tensor) };
            } else if tensor.bytes == Some(0) && tensor.open.is_empty() {
                // A constant without elements, such as the shape of a scalar, has no data.
                self.facts[at][place] = Fact { values: Some([].into()), ..stated(tensor) };
            }
        }
        for (&input, fact) in subgraph.inputs.iter().zip(inputs) {
            self.facts[at][input] = fact.clone();
        }
        for operator in 0..subgraph.operators.len() {
            self.operator(OperatorAt { subgraph: at, operator })?;
        }
        Ok(())
    }

    fn operator(&mut self, at: OperatorAt) -> Result<(), TfliteError> {
        let op = Op::new(self.model, at);
        let kind = self.model.kind(op.operator);
        let is_custom = self.model.is_custom(op.operator);
        let rule = table::find(kind).filter(|_| !is_custom);
        let called = self.called(&op)?;
        for (index, &output) in op.operator.outputs.iter().enumerate() {
            let tensor = op.tensor(output);
            if tensor.is_constant || tensor.is_variable {
                continue;
            }
            let node = Node { op: &op, facts: &self.facts[at.subgraph] };
            let fact = match (rule, called.get(index)) {
                (_, Some(fact)) => fact.clone(),
                (Some(rule), None) if index == 0 || table::has_several_outputs(kind) => {
                    let is_bound = table::is_bound(kind, index) || node.reads_bounds();
                    let shape =
                        rule(&node, index).map_err(|reason| self.cannot_run(at, &reason))?;
                    let exact = shape.as_deref().filter(|_| !is_bound);
                    let values = exact.and_then(|shape| values::values(&node, index, shape));
                    Fact { shape: shape.map(Into::into), is_bound, values: values.map(Into::into) }
                }
                _ => Fact::default(),
            };
            let is_known = rule.is_some() || !called.is_empty();
            let waits = node.waits();
            let fact = self.settled(at, output, Inferred { fact, is_known, waits })?;
            self.facts[at.subgraph][output] = fact;
        }
        Ok(())
    }

    /// The outputs of the subgraphs that an operator calls.
    fn called(&mut self, op: &Op) -> Result<Vec<Fact>, TfliteError> {
        let called = walk::called(self.model, op.at)?;
        let facts = &self.facts[op.at.subgraph];
        let inputs = op.operator.inputs.iter();
        let inputs: Vec<Fact> =
            inputs.map(|input| input.map_or_else(Fact::default, |at| facts[at].clone())).collect();
        // Values change from run to run.
        let unknown = |facts: &[Fact]| -> Vec<Fact> {
            facts.iter().map(|fact| Fact { values: None, ..fact.clone() }).collect()
        };
        let outputs = |inference: &Self, subgraph: usize| -> Vec<Fact> {
            let outputs = &inference.model.subgraphs[subgraph].outputs;
            unknown(
                &outputs
                    .iter()
                    .map(|&at| inference.facts[subgraph][at].clone())
                    .collect::<Vec<_>>(),
            )
        };
        match (self.model.kind(op.operator), &called[..]) {
            ("IF", &[then, otherwise]) => {
                let inputs = unknown(inputs.get(1..).unwrap_or_default());
                self.subgraph(then, &inputs)?;
                self.subgraph(otherwise, &inputs)?;
                let pairs = outputs(self, then).into_iter().zip(outputs(self, otherwise));
                Ok(pairs.map(|(a, b)| either(&a, &b)).collect())
            }
            ("WHILE", &[condition, body]) => {
                let inputs = unknown(&inputs);
                self.subgraph(condition, &inputs)?;
                self.subgraph(body, &inputs)?;
                let pairs = inputs.into_iter().zip(outputs(self, body));
                // A shape that the body changes has no end that is known here.
                Ok(pairs
                    .map(|(a, b)| if a.shape == b.shape { a } else { Fact::default() })
                    .collect())
            }
            _ => {
                for &subgraph in &called {
                    self.subgraph(subgraph, &[])?;
                }
                Ok(Vec::new())
            }
        }
    }

    fn cannot_run(&self, at: OperatorAt, reason: &str) -> TfliteError {
        let reason = match &self.taken[..] {
            [] => reason.to_owned(),
            taken => format!(
                "{reason}; the file leaves sizes open, and they are taken as it states them: {}",
                taken.join(", ")
            ),
        };
        wrong(self.model.operator_place(at), reason)
    }
}

impl Node<'_, '_, '_> {
    /// The facts about all inputs that are there.
    fn inputs(&self) -> impl Iterator<Item = &Fact> {
        self.op.operator.inputs.iter().flatten().map(|&at| &self.facts[at])
    }

    fn reads_bounds(&self) -> bool {
        self.inputs().any(|fact| fact.is_bound)
    }

    /// Returns whether the shape of an input is open.
    fn waits(&self) -> bool {
        self.inputs().any(|fact| fact.shape.is_none())
    }
}

/// The shape that the file states.
fn stated(tensor: &Tensor) -> Fact {
    if tensor.shape.len() > MAX_RANK { Fact::default() } else { Fact::of_shape(&tensor.shape) }
}

/// The result of one of two branches.
fn either(a: &Fact, b: &Fact) -> Fact {
    match (&a.shape, &b.shape) {
        (Some(first), Some(second)) if first == second => {
            Fact { is_bound: a.is_bound || b.is_bound, ..a.clone() }
        }
        (Some(first), Some(second)) if first.len() == second.len() => {
            let most = first.iter().zip(&**second).map(|(&a, &b)| a.max(b));
            Fact { shape: Some(most.collect()), is_bound: true, values: None }
        }
        _ => Fact::default(),
    }
}

/// Takes the inferred shapes over into the model; for TensorFlow Lite Micro, checks that the file states
/// tensors of as many bytes.
fn apply(
    model: &mut Model,
    facts: Vec<Vec<Fact>>,
    bases: &[SizeBasis],
    runtime: Runtime,
) -> Result<(), TfliteError> {
    let mut bases = bases.iter();
    for (at, (subgraph, facts)) in model.subgraphs.iter_mut().zip(facts).enumerate() {
        for (place, (tensor, fact)) in subgraph.tensors.iter_mut().zip(facts).enumerate() {
            tensor.basis = bases.next().copied().unwrap_or_default();
            let Some(shape) = fact.shape.filter(|_| !tensor.is_constant && !tensor.is_variable)
            else {
                continue;
            };
            let name = || tensor_place(at, place, &tensor.name);
            let mut inferred = tensor.clone();
            inferred.set_shape(shape.to_vec()).map_err(|reason| wrong(name(), reason))?;
            if runtime == Runtime::Interpreter {
                *tensor = inferred;
            } else if inferred.bytes != tensor.bytes && !fact.is_bound {
                return Err(TfliteError::Unsupported {
                    place: name(),
                    what: format!(
                        "the file states the shape {}, but its operator makes {}; TensorFlow Lite Micro would refuse the model or write beyond the tensor",
                        written(&tensor.shape),
                        written(&shape)
                    ),
                    remedy: "convert the model with fixed shapes, or plan it for TensorFlow Lite's interpreter with --runtime tflite",
                });
            }
        }
    }
    Ok(())
}
