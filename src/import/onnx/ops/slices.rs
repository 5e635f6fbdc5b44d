//! The cuts of `Slice` and `Split`.

use crate::import::onnx::{
    ops::op::{Op, Reason, axis},
    read::fact::{Dims, Scalar},
};

/// A part of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first index, in `[0, size)` unless the part is empty.
    pub(crate) start: u64,
    pub(crate) step: i64,
    /// The number of indices.
    pub(crate) count: u64,
}

/// Returns the part of each dimension that a `Slice` takes; `None` where it is unknown.
pub(crate) fn slice_cuts(op: &Op, dims: &Dims) -> Result<Vec<Option<Cut>>, Reason> {
    cuts(op, dims, |size, start, end, step| {
        let (start, end) = start.zip(end)?;
        let disputed = is_disputed(start, end, size, step);
        (!disputed).then(|| cut(size, start, end, step))
    })
}

/// Returns the largest part that a `Slice` can take of each dimension, for any unknown bounds.
pub(crate) fn largest_cuts(op: &Op, dims: &Dims) -> Result<Vec<Option<Cut>>, Reason> {
    cuts(op, dims, |size, start, end, step| {
        let (first, last) = if step > 0 { (0, i64::MAX) } else { (i64::MAX, i64::MIN) };
        let (start, end) = (start.unwrap_or(first), end.unwrap_or(last));
        let end = if is_disputed(start, end, size, step) { i64::MIN } else { end };
        Some(cut(size, start, end, step))
    })
}

fn cuts(
    op: &Op,
    dims: &Dims,
    cut: impl Fn(u64, Option<i64>, Option<i64>, i64) -> Option<Cut>,
) -> Result<Vec<Option<Cut>>, Reason> {
    let whole = |dim: &Option<u64>| dim.map(|count| Cut { start: 0, step: 1, count });
    let mut cuts: Vec<Option<Cut>> = dims.iter().map(whole).collect();
    let (starts, ends) = (bounds(op, "starts", 1), bounds(op, "ends", 2));
    let axes = match op.ints_of("axes", 3)? {
        Some(axes) => axes,
        None => (0..).take(starts.as_ref().map_or(dims.len(), Vec::len)).collect(),
    };
    let steps = if op.input(4).is_some() { op.ints(4)? } else { vec![1; axes.len()] };
    for (index, &at) in axes.iter().enumerate() {
        let at = axis(at, dims.len())?;
        let step = steps.get(index).copied().filter(|&step| step != 0);
        let step = step.ok_or("it has a step of 0, or none, for an axis")?;
        let bound = |bounds: &Option<Vec<Option<i64>>>| *bounds.as_ref()?.get(index)?;
        cuts[at] = match dims[at] {
            Some(0) => Some(Cut { start: 0, step: 1, count: 0 }),
            size => size.and_then(|size| cut(size, bound(&starts), bound(&ends), step)),
        };
    }
    Ok(cuts)
}

/// Returns the bounds in an attribute or an input, with `None` for unknown ones.
fn bounds(op: &Op, attribute: &str, input: usize) -> Option<Vec<Option<i64>>> {
    if let Some(ints) = op.node.ints(attribute) {
        return Some(ints.iter().copied().map(Some).collect());
    }
    let int = |scalar: &Scalar| match scalar {
        Scalar::Int(value) => Some(*value),
        Scalar::Float(_) | Scalar::Unknown => None,
    };
    Some(op.input(input)?.elements.as_ref()?.iter().map(int).collect())
}

/// Returns whether runtimes disagree about a slice, namely one that runs backwards to the largest
/// number of 32 or 64 bits: the standard cuts the end to the last index, so that nothing is left;
/// some runtimes treat it as the very beginning.
fn is_disputed(start: i64, end: i64, size: u64, step: i64) -> bool {
    let furthest = step < 0 && end >= i32::MAX.into();
    furthest && cut(size, start, i64::MIN, step).count != cut(size, start, end, step).count
}

/// Counts from the end if negative, then cuts to the dimension, as the standard says.
fn cut(size: u64, start: i64, end: i64, step: i64) -> Cut {
    let size = i128::from(size);
    let resolve = |bound: i64| if bound < 0 { i128::from(bound) + size } else { bound.into() };
    let (start, end) = (resolve(start), resolve(end));
    let wide_step = i128::from(step);
    let (start, span) = if step > 0 {
        let start = start.clamp(0, size);
        (start, end.clamp(0, size) - start)
    } else {
        let start = start.clamp(0, (size - 1).max(0));
        (start, start - end.clamp(-1, size - 1))
    };
    let count = if span > 0 { (span - 1) / wide_step.abs() + 1 } else { 0 };
    let narrow = |value: i128| u64::try_from(value).unwrap_or(0);
    Cut { start: narrow(start), step, count: narrow(count) }
}

/// Returns the sizes into which a `Split` cuts its axis.
pub(crate) fn split_sizes(op: &Op, size: Option<u64>) -> Result<Vec<Option<u64>>, Reason> {
    if let Some(sizes) = op.ints_of("split", 1)? {
        let size = |&size: &i64| u64::try_from(size).map(Some);
        return sizes
            .iter()
            .map(size)
            .collect::<Result<_, _>>()
            .map_err(|_| "a part is smaller than 0".to_owned());
    }
    let parts = op.node.int("num_outputs").map_or(Ok(op.node.0.output.len()), usize::try_from);
    let parts = parts.ok().filter(|&parts| parts > 0 && parts <= op.node.0.output.len());
    let parts = parts.ok_or("the number of its parts is not that of its outputs")?;
    let Some(size) = size else { return Ok(vec![None; parts]) };
    // All parts are equal except the last, which may be smaller.
    let part = size.div_ceil(parts as u64);
    if op.guesses {
        // The last part of a smaller size may be larger than that of a larger one.
        return Ok(vec![Some(part); parts]);
    }
    let mut rest = size;
    let mut sizes = Vec::with_capacity(parts);
    for _ in 0..parts {
        let part = part.min(rest);
        rest -= part;
        sizes.push(Some(part));
    }
    Ok(sizes)
}
