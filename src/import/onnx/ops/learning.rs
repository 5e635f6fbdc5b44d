//! Shape rules of classical machine learning. A list counts as one row.

use crate::import::onnx::{
    ops::op::{Op, Reason, Shapes},
    read::fact::Dims,
};

/// The number of rows of the first input.
fn rows(op: &Op) -> Result<Option<u64>, Reason> {
    match op.dims(0)?[..] {
        [_] => Ok(Some(1)),
        [rows, ..] => Ok(rows),
        [] => Err("its input is one number".to_owned()),
    }
}

fn length(op: &Op, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| op.node.length(name)).map(|length| length as u64)
}

/// A label for each row, and a score for each class.
pub(crate) fn classes(op: &Op) -> Shapes {
    let rows = rows(op)?;
    let lists = ["classlabels_ints", "classlabels_int64s", "classlabels_strings"];
    let classes = length(op, &lists).ok_or("it lists no classes")?;
    Ok(vec![Some(vec![rows]), Some(vec![rows, Some(classes)])])
}

/// A number for each row and target; one target if the attribute is absent.
pub(crate) fn targets(op: &Op, attribute: &str) -> Shapes {
    let targets = op.node.int(attribute).unwrap_or(1);
    let targets = u64::try_from(targets).map_err(|_| format!("it has {targets} targets"))?;
    Ok(vec![Some(vec![rows(op)?, Some(targets)])])
}

/// Some columns: the indices are the second input.
pub(crate) fn columns(op: &Op) -> Shapes {
    let indices = op.dims(1)?.iter().try_fold(1_u64, |all, size| all.checked_mul((*size)?));
    let dims = op.dims(0)?;
    let mut shape: Dims = if dims.len() == 1 { vec![Some(1)] } else { dims.clone() };
    if dims.len() > 1 {
        shape.pop();
    }
    shape.push(indices);
    Ok(vec![Some(shape)])
}

/// The columns of all inputs.
pub(crate) fn side_by_side(op: &Op) -> Shapes {
    let all = op.node.ints("inputdimensions").ok_or("it lists no numbers of columns")?;
    let all = all.iter().try_fold(0_u64, |all, &size| all.checked_add(u64::try_from(size).ok()?));
    Ok(vec![Some(vec![rows(op)?, all])])
}

/// A number for each category, for each element.
pub(crate) fn one_hot(op: &Op) -> Shapes {
    let categories =
        length(op, &["cats_int64s", "cats_strings"]).ok_or("it lists no categories")?;
    Ok(vec![Some(op.dims(0)?.iter().copied().chain([Some(categories)]).collect())])
}
