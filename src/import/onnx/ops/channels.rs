//! The place of the channels: behind the other dimensions, or in blocks, each as wide as a vector of the machine.

use std::rc::Rc;

use crate::import::onnx::{
    ops::{
        checks::{Check, Checked, Conflict, Place, Size},
        layout::one,
        op::{Op, Shapes},
        row::ShapeRule,
    },
    read::fact::{Dims, Fact},
};

/// Moves the channels from behind the other dimensions to the second place.
fn to_second(dims: &[Option<u64>]) -> Dims {
    let mut dims = dims.to_vec();
    if dims.len() > 2 {
        dims[1..].rotate_right(1);
    }
    dims
}

/// The operator with this shape of its first input.
fn with_shape<T>(op: &Op, dims: Option<Dims>, then: impl FnOnce(&Op) -> T) -> T {
    let first = op.input(0).cloned().unwrap_or_default();
    let first = Fact { dims, samples: Rc::default(), elements: None, ..first };
    let mut inputs = op.inputs.clone();
    if let Some(input) = inputs.first_mut() {
        *input = Some(&first);
    }
    let &Op { node, opset, guesses, fixed, .. } = op;
    then(&Op { node, inputs, opset, guesses, fixed })
}

/// Applies a rule for data whose channels come last.
pub(crate) fn last(op: &Op, rule: ShapeRule) -> Shapes {
    let dims = to_second(op.dims(0)?);
    let mut shapes = with_shape(op, Some(dims), rule)?;
    for dims in shapes.iter_mut().flatten().filter(|dims| dims.len() > 2) {
        dims[1..].rotate_left(1);
    }
    Ok(shapes)
}

/// Applies a check to data whose channels come last. The error names the dimensions as they are.
pub(crate) fn check_last(op: &Op, check: Check) -> Checked {
    let Some(dims) = op.input(0).and_then(Fact::settled_dims) else { return Ok(()) };
    let rank = dims.len();
    let named = |size: Size| match size.place {
        Place::Dim(0, at) if at > 0 => {
            let at = if at == 1 { rank - 1 } else { at - 1 };
            Size { place: Place::Dim(0, at), ..size }
        }
        _ => size,
    };
    let renamed = |Conflict { first, second, rule }| Conflict {
        first: named(first),
        second: named(second),
        rule,
    };
    with_shape(op, Some(to_second(&dims)), check).map_err(renamed)
}

fn come_last(op: &Op) -> bool {
    op.node.int("channels_last").unwrap_or(0) != 0
}

/// Applies a rule for data whose channels come last if an attribute says so.
pub(crate) fn by_attribute(op: &Op, rule: ShapeRule) -> Shapes {
    if come_last(op) { last(op, rule) } else { rule(op) }
}

/// Applies a check to data whose channels come last if an attribute says so.
pub(crate) fn check_by_attribute(op: &Op, check: Check) -> Checked {
    if come_last(op) { check_last(op, check) } else { check(op) }
}

/// The largest block of channels: ONNX Runtime has blocks of 8 or 16, by the machine.
const LARGEST_BLOCK: u64 = 16;

/// `ReorderInput`: the channels are filled up to whole blocks, whose size depends on the machine.
pub(crate) fn to_blocks(op: &Op) -> Shapes {
    let mut shapes = to_blocks_at_most(op)?;
    let channels = if come_last(op) { op.dims(0)?.last() } else { op.dims(0)?.get(1) };
    let channels = channels.copied().flatten();
    if channels.is_none_or(|channels| !channels.is_multiple_of(LARGEST_BLOCK)) {
        shapes.iter_mut().flatten().for_each(|dims| dims[1] = None);
    }
    Ok(shapes)
}

/// `ReorderInput` with the largest blocks.
pub(crate) fn to_blocks_at_most(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let mut dims = if come_last(op) { to_second(dims) } else { dims.clone() };
    let channels = dims.get_mut(1).ok_or("its input has no channels")?;
    *channels = channels.and_then(|channels| channels.checked_next_multiple_of(LARGEST_BLOCK));
    one(dims)
}

/// `ReorderOutput`: an attribute states how many of the channels are real.
pub(crate) fn from_blocks(op: &Op) -> Shapes {
    let mut dims = op.dims(0)?.clone();
    let channels = op.node.int("channels").and_then(|channels| u64::try_from(channels).ok());
    *dims.get_mut(1).ok_or("its input has no channels")? = channels;
    if come_last(op) {
        dims[1..].rotate_left(1);
    }
    one(dims)
}

/// `Upsample`: each dimension is a number of times as large.
pub(crate) fn upsample(op: &Op) -> Shapes {
    let scales = op.node.ints("scales").ok_or("it has no scales")?;
    let dims = op.dims(0)?;
    if scales.len() != dims.len() {
        return Err(format!("it has {} scales for {} dimensions", scales.len(), dims.len()));
    }
    let scaled = |(size, &scale): (&Option<u64>, &i64)| {
        size.and_then(|size| size.checked_mul(u64::try_from(scale).ok()?))
    };
    one(dims.iter().zip(scales).map(scaled).collect())
}
