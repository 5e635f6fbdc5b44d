//! Outputs that may lie where an input does: their kernels copy nothing, or each byte onto itself.

#![allow(clippy::unnecessary_wraps, reason = "all rules have one type")]

use crate::{
    Bytes,
    import::tflite::{ALIGNMENT, TfliteError, model::Tensor, ops::Op},
};

/// A place in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The input, by its place in the list.
    pub(crate) input: usize,
    /// Bytes from its start.
    pub(crate) offset: Bytes,
}

/// The rule of an operator: where an output, by its place in the list, may lie.
pub(crate) type Rule = fn(&Op, usize) -> Result<Option<Place>, TfliteError>;

pub(super) fn whole(_: &Op, output: usize) -> Result<Option<Place>, TfliteError> {
    Ok((output == 0).then_some(Place { input: 0, offset: 0 }))
}

pub(super) fn split(op: &Op, output: usize) -> Result<Option<Place>, TfliteError> {
    let axis = op.input(0).and_then(|axis| op.model.integers(axis));
    Ok(part(op, 1, axis.as_deref(), output))
}

pub(super) fn split_v(op: &Op, output: usize) -> Result<Option<Place>, TfliteError> {
    let axis = op.input(2).and_then(|axis| op.model.integers(axis));
    Ok(part(op, 0, axis.as_deref(), output))
}

pub(super) fn unpack(op: &Op, output: usize) -> Result<Option<Place>, TfliteError> {
    let axis = op.operator.option(1, 0)?;
    Ok(part(op, 0, Some(&[axis.into()]), output))
}

/// The outputs lie one after another in the input if nothing lies before the axis.
fn part(op: &Op, input: usize, axis: Option<&[i64]>, output: usize) -> Option<Place> {
    let whole = op.input(input)?;
    let &[axis] = axis? else { return None };
    let rank = i64::try_from(whole.shape.len()).ok()?;
    let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
    let before = whole.shape.get(..axis)?;
    if before.iter().any(|&size| size != 1) {
        return None;
    }
    let offset =
        (0..output).try_fold(0, |sum: Bytes, index| sum.checked_add(op.output(index)?.bytes?))?;
    aligned(Place { input, offset })
}

pub(super) fn slice(op: &Op, _: usize) -> Result<Option<Place>, TfliteError> {
    let begin = op.input(1).and_then(|begin| op.model.integers(begin));
    Ok(contiguous(op, begin.as_deref()))
}

pub(super) fn strided_slice(op: &Op, _: usize) -> Result<Option<Place>, TfliteError> {
    let integers = |input| op.input(input).and_then(|tensor| op.model.integers(tensor));
    let (Some(input), Some(begin), Some(strides)) = (op.input(0), integers(1), integers(3)) else {
        return Ok(None);
    };
    let (begin_mask, ellipsis, new_axes) =
        (op.operator.option(0, 0)?, op.operator.option(2, 0)?, op.operator.option(3, 0)?);
    // Axes that the output lacks must be the first ones, which have one index each.
    let shrunk = op.output(0).and_then(|output| input.shape.len().checked_sub(output.shape.len()));
    let is_shrunk_in_front = shrunk.is_some_and(|axes| {
        axes < 31 && op.operator.option(4, 0).is_ok_and(|mask| mask == (1 << axes) - 1)
    });
    let is_plain = is_shrunk_in_front
        && ellipsis == 0
        && new_axes == 0
        && strides.iter().all(|&stride| stride == 1)
        && begin.len() <= input.shape.len();
    if !is_plain {
        return Ok(None);
    }
    let begin = input.shape.iter().enumerate().map(|(axis, &size)| {
        let size = i64::try_from(size).ok()?;
        match begin.get(axis) {
            None => Some(0),
            Some(_) if begin_mask >> axis.min(31) & 1 == 1 => Some(0),
            Some(&begin) => Some(if begin < 0 { begin + size } else { begin }.clamp(0, size)),
        }
    });
    Ok(contiguous(op, begin.collect::<Option<Vec<i64>>>().as_deref()))
}

/// The place of a slice that begins at an index in each dimension, if its bytes lie together: it is
/// whole in all dimensions after the first of more than one index.
fn contiguous(op: &Op, begin: Option<&[i64]>) -> Option<Place> {
    let (input, output) = (op.input(0)?, op.output(0)?);
    let begin = begin.filter(|begin| begin.len() == input.shape.len())?;
    let taken = sizes_taken(input, output)?;
    let mut stride = input.element.bits()?.checked_div(8).filter(|&bytes| bytes > 0)?;
    let (mut offset, mut is_whole): (Bytes, bool) = (0, true);
    for ((&size, &taken), &begin) in input.shape.iter().zip(&taken).zip(begin).rev() {
        let begin = u64::try_from(begin).ok()?;
        if begin.checked_add(taken)? > size || (!is_whole && taken != 1) {
            return None;
        }
        is_whole &= taken == size;
        offset = offset.checked_add(begin.checked_mul(stride)?)?;
        stride = stride.checked_mul(size)?;
    }
    aligned(Place { input: 0, offset })
}

/// The sizes of a slice in the dimensions of its input. The first ones, of one index, may not be in
/// its own shape.
fn sizes_taken(input: &Tensor, output: &Tensor) -> Option<Vec<u64>> {
    let shrunk = input.shape.len().checked_sub(output.shape.len())?;
    Some([vec![1; shrunk], output.shape.clone()].concat())
}

fn aligned(place: Place) -> Option<Place> {
    place.offset.is_multiple_of(ALIGNMENT).then_some(place)
}
