//! Sizes of Fourier transforms. The last dimension of a signal holds one real number, or the two parts of a
//! complex one.

use crate::import::onnx::ops::{
    checks::{
        AT_LEAST, Checked, Size, WITHIN, axis_attribute, axis_of, equal, filled, has_rank,
        has_rank_of, require,
    },
    op::Op,
    symbolic::AXIS_IS_INPUT,
};

const PARTS: &str = "the last dimension is 1 for real numbers, 2 for complex ones";

/// Requires a last dimension of 1 or 2, or of exactly one of these.
fn parts(op: &Op, only: Option<i128>) -> Checked {
    let Some(parts) = op.sizes(0).last().copied().flatten() else { return Ok(()) };
    let fits = only.map_or([1, 2].contains(&parts.number), |only| parts.number == only);
    require(fits, parts, Size::needed(only.unwrap_or(1)), PARTS)
}

/// `DFT`: the axis is an attribute in old opsets, an input in new ones, and not the last dimension.
pub(crate) fn dft(op: &Op) -> Checked {
    has_rank_of(op, 0, 2)?;
    let axis = match op.numbers("", 2) {
        Some(axis) if op.opset >= AXIS_IS_INPUT => axis.first().copied(),
        _ if op.opset >= AXIS_IS_INPUT => None,
        _ => Some(axis_attribute(op, 1)),
    };
    if let Some(axis) = axis
        && let Some(at) = axis_of(op, axis, 0, 0)?
        && let Some(rank) = op.rank(0)
    {
        let rule = "the last dimension, which holds the parts of a number, is not transformed";
        require(at as i128 + 1 != rank.number, axis, rank, rule)?;
        filled(op, 0, at)?;
    }
    if let Some(&length) = op.numbers("", 1).as_deref().and_then(<[Size]>::first) {
        require(length.number > 0, length, Size::needed(1), AT_LEAST)?;
    }
    let flag = |name| op.node.int(name).unwrap_or(0) != 0;
    match (flag("onesided"), flag("inverse")) {
        (true, true) => parts(op, Some(2)),
        // Before the run, runtimes compare fixed sizes; in the run, they drop the second part.
        (true, false) if op.fixed => parts(op, Some(1)),
        _ => parts(op, None),
    }
}

/// `STFT`: frames of a signal, each multiplied by a window of its length.
pub(crate) fn stft(op: &Op) -> Checked {
    has_rank_of(op, 0, 2)?;
    if op.rank(0).is_some_and(|rank| rank.number > 2) {
        parts(op, None)?;
    }
    if op.fixed {
        has_rank(op, 2, 1)?;
    }
    let number = |input| op.numbers("", input).and_then(|numbers| numbers.first().copied());
    for number in [number(1), number(3)].into_iter().flatten() {
        require(number.number > 0, number, Size::needed(1), AT_LEAST)?;
    }
    let window = op.count(2);
    equal(window, number(3))?;
    let (Some(frame), Some(signal)) = (number(3).or(window), op.dim(0, 1)) else { return Ok(()) };
    require(frame.number <= signal.number, frame, signal, WITHIN)
}
