//! The largest sizes that the outputs of an operator can have at run time. The sizes of all its
//! inputs are known.

use crate::import::onnx::{
    ops::{
        op::{Op, Shapes, axis},
        slices,
    },
    read::fact::{Dims, count},
};

type Limits = Option<Vec<Dims>>;

fn known(limits: Limits) -> Shapes {
    let limits = limits.ok_or_else(|| "a size of its inputs is unknown".to_owned())?;
    Ok(limits.into_iter().map(Some).collect())
}

/// No part is longer than the whole.
pub(crate) fn split(op: &Op) -> Shapes {
    known(input(op).map(|dims| vec![dims; op.node.0.output.len()]))
}

/// No more elements are chosen than exist.
pub(crate) fn top_k(op: &Op) -> Shapes {
    known(input(op).map(|dims| vec![dims.clone(), dims]))
}

fn input(op: &Op) -> Option<Dims> {
    op.dims(0).ok().cloned()
}

/// The longest parts that the known bounds allow.
pub(crate) fn slice(op: &Op) -> Shapes {
    known(slice_limits(op))
}

fn slice_limits(op: &Op) -> Limits {
    let cuts = slices::largest_cuts(op, op.dims(0).ok()?).ok()?;
    Some(vec![cuts.into_iter().map(|cut| cut.map(|cut| cut.count)).collect()])
}

fn elements(op: &Op, index: usize) -> Option<u64> {
    count(&op.input(index)?.sizes()?)
}

/// A column of indices for each element that is not 0.
pub(crate) fn non_zero(op: &Op) -> Shapes {
    known(non_zero_limits(op))
}

fn non_zero_limits(op: &Op) -> Limits {
    let rank = op.dims(0).ok()?.len().max(1) as u64;
    Some(vec![vec![Some(rank), elements(op, 0)]])
}

/// A row for each box that is kept: per batch and class, at most as many as requested and as exist.
pub(crate) fn non_max_suppression(op: &Op) -> Shapes {
    known(non_max_suppression_limits(op))
}

fn non_max_suppression_limits(op: &Op) -> Limits {
    let scores = op.input(1)?.sizes()?;
    let &[batches, classes, boxes] = &scores[..] else { return None };
    let kept = match op.input(2) {
        // If the number is omitted, no box is kept.
        None => 0,
        // A number that is known only at run time may be any number.
        Some(number) => {
            number.int().map_or(boxes, |number| u64::try_from(number).unwrap_or(0).min(boxes))
        }
    };
    let rows = batches.checked_mul(classes)?.checked_mul(kept)?;
    Some(vec![vec![Some(rows), Some(3)]])
}

/// The elements that a list of truth values selects, along an axis or of all elements.
pub(crate) fn compress(op: &Op) -> Shapes {
    known(compress_limits(op))
}

fn compress_limits(op: &Op) -> Limits {
    let choices = elements(op, 1)?;
    let Some(at) = op.node.int("axis") else {
        return Some(vec![vec![Some(elements(op, 0)?.min(choices))]]);
    };
    let mut dims = input(op)?;
    let at = axis(at, dims.len()).ok()?;
    dims[at] = dims[at].map(|size| size.min(choices));
    Some(vec![dims])
}

/// The distinct elements, or slices along an axis; the place where each was first seen; the index
/// of each; the number of times that each occurs.
pub(crate) fn unique(op: &Op) -> Shapes {
    known(unique_limits(op))
}

fn unique_limits(op: &Op) -> Limits {
    let (dims, number) = match op.node.int("axis") {
        None => (vec![elements(op, 0)], elements(op, 0)),
        Some(at) => {
            let dims = input(op)?;
            let number = dims[axis(at, dims.len()).ok()?];
            (dims, number)
        }
    };
    let list = vec![number];
    Some(vec![dims, list.clone(), list.clone(), list])
}
