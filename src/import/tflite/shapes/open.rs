//! Shapes that the file leaves open: the caller states them, or they are listed in an error.

use std::fmt::Write;

use super::{
    Inference, MAX_RANK,
    node::{Fact, written},
    stated,
};
use crate::{
    import::{
        ImportOptions, OpenSize,
        tflite::{
            Runtime, TfliteError,
            arena::Names,
            model::{Model, OperatorAt, Tensor, tensor_place, wrong},
        },
    },
    printable::printable,
    sequence::SizeBasis,
};

/// The origin of an input of the model.
const INPUT: &str = "an input";

/// The shape of an output as it follows from the operator.
pub(super) struct Inferred {
    pub(super) fact: Fact,
    /// True if memplan knows the rule of the operator.
    pub(super) is_known: bool,
    /// True if the operator reads a tensor whose shape is open.
    pub(super) waits: bool,
}

/// The message that lists open shapes.
pub(in crate::import::tflite) fn message(open: &[OpenSize]) -> String {
    let mut text = "the file leaves these shapes open:".to_owned();
    for sizes in open.chunk_by(|a, b| a.tensor == b.tensor) {
        let OpenSize { tensor, maker, shape, reason, .. } = &sizes[0];
        let _ = write!(text, "\n  '{}', {maker}: {}", printable(tensor), known(shape.as_deref()));
        if maker != INPUT {
            let _ = write!(text, ", as {reason}");
        }
    }
    text.push_str(
        "\nTensorFlow Lite's interpreter can run it: plan for that with --runtime tflite, and state the shape of an input, or the largest shape of another tensor, with --shape NAME=SHAPE, such as --shape x=1x224x224x3. For TensorFlow Lite Micro, convert the model with fixed shapes",
    );
    text
}

/// Checks that the caller's shapes are of tensors that exist.
pub(super) fn check_options(
    model: &Model,
    names: &Names,
    options: &ImportOptions,
) -> Result<(), TfliteError> {
    if let Some(name) = options.dims.keys().next() {
        let reason =
            "its dimensions have no names in this format; state the shape of a tensor with --shape";
        return Err(wrong(format!("--dim {name}"), reason));
    }
    let exists = |name: &str| (0..model.tensor_count()).any(|at| names.tensor(at) == name);
    match options.shapes.keys().find(|name| !exists(name)) {
        Some(name) => Err(wrong(format!("--shape {name}"), "the model has no tensor of this name")),
        None => Ok(()),
    }
}

/// The sizes that the file states, without those that it leaves open; `None` if it leaves open how many there are.
fn stated_sizes(tensor: &Tensor) -> Option<Vec<Option<u64>>> {
    let size = |(at, &size): (usize, &u64)| (!tensor.open.contains(&at)).then_some(size);
    (!tensor.shape.is_empty()).then(|| tensor.shape.iter().enumerate().map(size).collect())
}

/// Writes a shape with `?` in place of open sizes.
fn known(shape: Option<&[Option<u64>]>) -> String {
    let Some(shape) = shape else { return "of any rank".to_owned() };
    let size = |size: &Option<u64>| size.map_or("?".to_owned(), |size| size.to_string());
    shape.iter().map(size).collect::<Vec<_>>().join("x")
}

/// The sizes of a tensor that are open: of these axes, or all if the file leaves open how many there are.
fn open_sizes(tensor: &Tensor, axes: &[usize], [name, maker, reason]: [&str; 3]) -> Vec<OpenSize> {
    let shape = stated_sizes(tensor);
    let axes: Vec<Option<usize>> = match shape {
        Some(_) => axes.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let size = |axis| OpenSize {
        tensor: name.to_owned(),
        maker: maker.to_owned(),
        axis,
        dim: None,
        shape: shape.clone(),
        reason: reason.to_owned(),
        deciding: Vec::new(),
    };
    axes.into_iter().map(size).collect()
}

impl Inference<'_, '_> {
    fn name(&self, subgraph: usize, tensor: usize) -> &str {
        self.names.tensor(self.model.subgraphs[subgraph].first_tensor + tensor)
    }

    fn is_micro(&self) -> bool {
        self.options.runtime == Runtime::Micro
    }

    /// The shape of an input of the model, as the caller or the file states it. A first size of 1 is taken for
    /// one that is open: the batch, of which a run processes one unless the application resizes it.
    pub(super) fn input(&mut self, at: usize) -> Result<Option<Vec<u64>>, TfliteError> {
        let tensor = &self.model.subgraphs[0].tensors[at];
        if tensor.shape.len() > MAX_RANK {
            return Ok(None);
        }
        let name = self.name(0, at).to_owned();
        let mut shape = tensor.shape.clone();
        let mut left = tensor.open.clone();
        if let Some(size) = self.options.default_dim {
            left.drain(..).for_each(|axis| shape[axis] = size);
        }
        if let Some(given) = self.options.shapes.get(&name) {
            let fits = given.len() == shape.len()
                && (0..shape.len()).all(|axis| {
                    given[axis].is_none_or(|size| {
                        size == tensor.shape[axis] || tensor.open.contains(&axis)
                    })
                });
            if !fits {
                let reason = format!(
                    "the shape given does not fit the file, which has {}",
                    known(stated_sizes(tensor).as_deref())
                );
                return Err(wrong(tensor_place(0, at, &tensor.name), reason));
            }
            for (axis, size) in given.iter().enumerate() {
                if let &Some(size) = size {
                    shape[axis] = size;
                    left.retain(|&open| open != axis);
                }
            }
        }
        if shape != tensor.shape && self.is_micro() {
            return Err(TfliteError::Unsupported {
                place: tensor_place(0, at, &tensor.name),
                what: format!(
                    "TensorFlow Lite Micro runs it with the shape in the file, {}",
                    written(&tensor.shape)
                ),
                remedy: "omit the other shape, convert the model with it, or plan for TensorFlow Lite's interpreter with --runtime tflite",
            });
        }
        let is_batch = |&axis: &usize| axis == 0 && shape.len() > 1;
        let is_placeholder = |axis: &usize| !is_batch(axis) && shape[*axis] <= 1;
        if left.iter().any(is_placeholder) {
            self.open.extend(open_sizes(tensor, &left, [&name, INPUT, "the file leaves it open"]));
            return Ok(None);
        }
        if !left.is_empty() {
            self.taken.push(format!("'{}' as {}", printable(&name), written(&shape)));
        }
        Ok(Some(shape))
    }

    /// The fact about an output, with what the caller or the file states where nothing is inferred.
    pub(super) fn settled(
        &mut self,
        at: OperatorAt,
        output: usize,
        Inferred { fact, is_known, waits }: Inferred,
    ) -> Result<Fact, TfliteError> {
        let subgraph = &self.model.subgraphs[at.subgraph];
        let tensor = &subgraph.tensors[output];
        let place = subgraph.first_tensor + output;
        let name = self.name(at.subgraph, output);
        let given = self.options.shapes.get(name);
        let fact = match given {
            Some(given) => self.given(at, output, given, fact)?,
            None => fact,
        };
        if fact.shape.is_some() {
            self.bases[place] = if fact.is_bound { SizeBasis::AtMost } else { SizeBasis::Exact };
            return Ok(fact);
        }
        // Of an operator that memplan does not know, a batch of 1 is no placeholder.
        let is_plain = tensor.open.is_empty() || (!is_known && tensor.open == [0]);
        if is_plain && !tensor.shape.is_empty() || tensor.shape.is_empty() && !is_known {
            let runs_as_stated = self.is_micro();
            self.bases[place] = if runs_as_stated { SizeBasis::Exact } else { SizeBasis::Declared };
            return Ok(stated(tensor));
        }
        if !waits {
            let maker = format!("of {}", self.model.operator_place(at));
            let reason = "values decide that are known only at run time";
            self.open.extend(open_sizes(tensor, &tensor.open, [name, &maker, reason]));
        }
        Ok(Fact::default())
    }

    /// The fact about an output whose largest shape the caller states.
    fn given(
        &self,
        at: OperatorAt,
        output: usize,
        given: &[Option<u64>],
        fact: Fact,
    ) -> Result<Fact, TfliteError> {
        let tensor = &self.model.subgraphs[at.subgraph].tensors[output];
        let differs = |shape: &str| {
            let reason = format!("the shape given does not fit: it has {shape}");
            wrong(tensor_place(at.subgraph, output, &tensor.name), reason)
        };
        let Some(shape) = &fact.shape else {
            let stated = |axis: usize| {
                tensor.shape.get(axis).copied().filter(|_| !tensor.open.contains(&axis))
            };
            let sizes = given.iter().enumerate().map(|(axis, size)| size.or(stated(axis)));
            let shape = sizes.collect::<Option<Vec<u64>>>();
            let shape = shape.filter(|shape| shape.len() <= MAX_RANK);
            let shape = shape.ok_or_else(|| differs(&known(stated_sizes(tensor).as_deref())))?;
            return Ok(Fact { shape: Some(shape.into()), is_bound: true, values: None });
        };
        let fits = shape.len() == given.len()
            && shape.iter().zip(given).all(|(&size, given)| {
                given.is_none_or(|given| given == size || (fact.is_bound && given <= size))
            });
        if !fits {
            return Err(differs(&written(shape)));
        }
        let shape = shape.iter().zip(given).map(|(&size, given)| given.unwrap_or(size));
        Ok(Fact { shape: Some(shape.collect()), ..fact })
    }
}
