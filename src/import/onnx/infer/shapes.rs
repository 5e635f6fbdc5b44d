//! The shapes of an operator's outputs, by the rule in its row.

use crate::import::onnx::{
    OnnxError,
    ops::{
        checks::{Conflict, EQUAL, Place, Size as Number},
        op::{Op, Shapes},
        row::{Domain, Row, Size},
    },
    read::fact::{Fact, MAX_RANK, count},
};

/// The beginning of the reason why the outputs of an unknown operator have no known shape.
pub(crate) const UNKNOWN_OPERATOR: &str = "memplan does not know";

/// The shapes of an operator's outputs, by its rule.
pub(crate) fn shapes(op: &Op, row: Option<&Row>) -> Shapes {
    let shapes = match row.map(|row| row.shapes) {
        Some(Size::Rule(rule) | Size::Run(rule)) => rule(op)?,
        Some(Size::List(_)) => return Err("it makes a sequence".to_owned()),
        Some(_) => return Err("it needs its sub-graphs".to_owned()),
        None if Domain::from_name(op.node.domain()).is_some() => {
            return Err(format!("{UNKNOWN_OPERATOR} operators of type {}", op.node.kind()));
        }
        None => {
            return Err(format!("{UNKNOWN_OPERATOR} the operators of '{}'", op.node.domain()));
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
    let sizes = |fact: Option<&Fact>| fact.and_then(Fact::sizes);
    let (Some(input), Some(output)) = (sizes(op.input(0)), sizes(outputs.first())) else {
        return Ok(());
    };
    let (Some(elements), Some(places)) = (count(&input), count(&output)) else { return Ok(()) };
    if op.node.kind() != "Reshape" || elements == places {
        return Ok(());
    }
    let asked = "the number of elements of the shape that it requests";
    let first = Number::new(Place::Count(0), elements);
    let second = Number::new(Place::Other(asked), places);
    Err(Conflict { first, second, rule: EQUAL }.error(op))
}
