//! Operators that make one element of many.

use super::node::{Node, Shape, axis_of};

pub(super) fn arg(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(&[axis])) = (node.shape(0), node.values(1)) else { return Ok(None) };
    let mut shape = input.to_vec();
    shape.remove(axis_of(axis, input.len())?);
    Ok(Some(shape))
}

pub(super) fn reduce(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(axes)) = (node.shape(0), node.values(1)) else { return Ok(None) };
    let axes = axes.iter().map(|&axis| axis_of(axis, input.len()));
    let axes = axes.collect::<Result<Vec<_>, _>>()?;
    let is_kept = node.is_set(0)?;
    let sizes = input.iter().enumerate().filter_map(|(axis, &size)| {
        if axes.contains(&axis) { is_kept.then_some(1) } else { Some(size) }
    });
    Ok(Some(sizes.collect()))
}
