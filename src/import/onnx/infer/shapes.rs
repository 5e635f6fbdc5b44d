//! The shapes of an operator's outputs, by the rule in its row.

use crate::import::onnx::{
    OnnxError,
    ops::{
        op::{Op, Shapes},
        row::{Domain, Row, Size},
    },
    read::fact::{Dims, Fact, MAX_RANK, written},
};

/// From this opset on, the shapes of inputs are matched from the last dimension on.
const NUMPY_BROADCASTING: i64 = 7;

/// The shapes of an operator's outputs, by its rule.
pub(crate) fn shapes(op: &Op, row: Option<&Row>) -> Shapes {
    let shapes = match row.map(|row| row.shapes) {
        Some(Size::Rule(rule) | Size::Run(rule)) => rule(op)?,
        Some(Size::List(_)) => return Err("it makes a sequence".to_owned()),
        Some(_) => return Err("it needs its sub-graphs".to_owned()),
        None if Domain::from_name(op.node.domain()).is_some() => {
            return Err(format!("memplan does not know operators of type {}", op.node.kind()));
        }
        None => {
            return Err(format!("memplan does not know the operators of '{}'", op.node.domain()));
        }
    };
    if shapes.iter().flatten().any(|dims| dims.len() > MAX_RANK) {
        return Err(format!("it has more than {MAX_RANK} dimensions"));
    }
    Ok(shapes)
}

/// Refuses to reshape a tensor to another number of elements. A model whose shapes are fixed for one batch size
/// does so when it is read with another one.
///
/// # Errors
///
/// If the operator is a `Reshape` to such a shape.
pub(crate) fn refuse_other_count(op: &Op, outputs: &[Fact]) -> Result<(), OnnxError> {
    let dims = |fact: Option<&'_ Fact>| fact.and_then(|fact| fact.dims.clone());
    let (Some(input), Some(output)) = (dims(op.input(0)), dims(outputs.first())) else {
        return Ok(());
    };
    let count = |dims: &Dims| dims.iter().try_fold(1, |count: u64, &size| count.checked_mul(size?));
    let (Some(elements), Some(places)) = (count(&input), count(&output)) else { return Ok(()) };
    if op.node.kind() != "Reshape" || elements == places {
        return Ok(());
    }
    Err(OnnxError::Unsupported {
        what: format!(
            "operator {} from shape {} to shape {}, which has another number of elements,",
            op.node.label(),
            written(&input),
            written(&output)
        ),
        remedy: "the model states this shape itself: read it with the sizes that it was made for"
            .to_owned(),
    })
}

/// Refuses a slope that is larger than the input to which it is broadcast. Runtimes that accept one
/// make the output larger than the input.
///
/// # Errors
///
/// If the operator is a `PRelu` with such a slope.
pub(crate) fn refuse_wide_slope(op: &Op) -> Result<(), OnnxError> {
    let (Some(input), Some(slope)) = (op.input(0), op.input(1)) else { return Ok(()) };
    let (Some(input), Some(slope)) = (&input.dims, &slope.dims) else { return Ok(()) };
    let wide = |(input, slope): (&Option<u64>, &Option<u64>)| {
        slope.is_some_and(|slope| slope != 1) && input.is_some_and(|input| Some(input) != *slope)
    };
    let is_wide = slope.len() > input.len() || input.iter().rev().zip(slope.iter().rev()).any(wide);
    if op.node.kind() != "PRelu" || op.opset < NUMPY_BROADCASTING || !is_wide {
        return Ok(());
    }
    Err(OnnxError::Unsupported {
        what: format!(
            "operator {} with a slope of shape {} for an input of shape {}",
            op.node.label(),
            written(slope),
            written(input)
        ),
        remedy: "the slope must be broadcast to the input: give it a shape that is".to_owned(),
    })
}
