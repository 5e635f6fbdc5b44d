//! Operators that put elements elsewhere, as their options state.

use super::node::{Node, Shape, axis_of, elements, written};

fn inputs<'n>(node: &Node<'n, '_, '_>) -> Option<Vec<&'n [u64]>> {
    (0..node.op.operator.inputs.len()).map(|input| node.shape(input)).collect()
}

pub(super) fn concatenation(node: &Node, _: usize) -> Shape {
    let Some(inputs) = inputs(node) else { return Ok(None) };
    let Some((first, others)) = inputs.split_first() else { return Ok(None) };
    let axis = axis_of(node.option(0, 0)?, first.len())?;
    let mut shape = first.to_vec();
    for other in others {
        let fits = other.len() == shape.len()
            && (0..shape.len()).all(|at| at == axis || other[at] == shape[at]);
        if !fits {
            let (a, b) = (written(first), written(other));
            return Err(format!("{a} and {b} do not fit together along axis {axis}"));
        }
        shape[axis] = shape[axis].saturating_add(other[axis]);
    }
    Ok(Some(shape))
}

pub(super) fn pack(node: &Node, _: usize) -> Shape {
    let Some(inputs) = inputs(node) else { return Ok(None) };
    let Some((first, others)) = inputs.split_first() else { return Ok(None) };
    if let Some(other) = others.iter().find(|other| *other != first) {
        return Err(format!("{} and {} differ", written(first), written(other)));
    }
    let axis = axis_of(node.option(1, 0)?, first.len() + 1)?;
    let mut shape = first.to_vec();
    shape.insert(axis, inputs.len() as u64);
    Ok(Some(shape))
}

pub(super) fn unpack(node: &Node, _: usize) -> Shape {
    let Some(input) = node.shape(0) else { return Ok(None) };
    let axis = axis_of(node.option(1, 0)?, input.len())?;
    let mut shape = input.to_vec();
    let parts = shape.remove(axis);
    same_count(node, parts)?;
    Ok(Some(shape))
}

fn same_count(node: &Node, parts: u64) -> Result<(), String> {
    match node.outputs() as u64 {
        outputs if outputs == parts => Ok(()),
        outputs => Err(format!("it has {outputs} outputs for {parts} parts")),
    }
}

pub(super) fn split(node: &Node, _: usize) -> Shape {
    let (Some(&[axis]), Some(input)) = (node.values(0), node.shape(1)) else { return Ok(None) };
    let axis = axis_of(axis, input.len())?;
    let parts = node.outputs() as u64;
    if parts == 0 || !input[axis].is_multiple_of(parts) {
        return Err(format!("{} is not split into {parts} equal parts", written(input)));
    }
    let mut shape = input.to_vec();
    shape[axis] /= parts;
    Ok(Some(shape))
}

pub(super) fn split_v(node: &Node, output: usize) -> Shape {
    let (Some(input), Some(parts), Some(&[axis])) = (node.shape(0), node.values(1), node.values(2))
    else {
        return Ok(None);
    };
    let axis = axis_of(axis, input.len())?;
    same_count(node, parts.len() as u64)?;
    let stated: u64 = parts.iter().filter_map(|&part| u64::try_from(part).ok()).sum();
    let rest = input[axis].checked_sub(stated);
    let rest = rest.ok_or_else(|| format!("{} has no parts of {parts:?}", written(input)))?;
    let mut shape = input.to_vec();
    shape[axis] = u64::try_from(parts[output]).unwrap_or(rest);
    Ok(Some(shape))
}

/// The shape is an input, or else an option; one size may be -1, for all that is left.
pub(super) fn reshape(node: &Node, _: usize) -> Shape {
    let Some(input) = node.shape(0) else { return Ok(None) };
    let options;
    let sizes = match node.op.input(1) {
        // Shapes that are no list of integers are ignored, as by the kernel.
        Some(shape) if shape.shape.len() == 1 && shape.element.integer_width() == Some(4) => {
            match node.values(1) {
                Some(values) => values,
                None => return Ok(None),
            }
        }
        _ => {
            options = node.list(0)?;
            if options.is_empty() && elements(input) != 1 {
                // Nothing states a shape.
                return Ok(None);
            }
            // Old converters write a scalar so.
            if options == [0] { &[] } else { &options[..] }
        }
    };
    let total = elements(input);
    let wrong = || format!("{} cannot have the shape {sizes:?}", written(input));
    let known = sizes.iter().filter(|&&size| size != -1);
    let known = known.map(|&size| u64::try_from(size)).collect::<Result<Vec<_>, _>>();
    let known = elements(&known.map_err(|_| wrong())?);
    let rest = match sizes.iter().filter(|&&size| size == -1).count() {
        0 if known == total => 1,
        1 if known > 0 && total.is_multiple_of(known) => total / known,
        1 if total == 0 => 0,
        _ => return Err(wrong()),
    };
    Ok(Some(sizes.iter().map(|&size| u64::try_from(size).unwrap_or(rest)).collect()))
}

pub(super) fn squeeze(node: &Node, _: usize) -> Shape {
    let Some(input) = node.shape(0) else { return Ok(None) };
    let axes = node.list(0)?;
    let axes = axes.into_iter().map(|axis| axis_of(axis, input.len()));
    let axes = axes.collect::<Result<Vec<_>, _>>()?;
    if let Some(&axis) = axes.iter().find(|&&axis| input[axis] != 1) {
        return Err(format!("dimension {axis} of {} is not 1", written(input)));
    }
    let goes = |axis: usize, size: u64| {
        if axes.is_empty() { size == 1 } else { axes.contains(&axis) }
    };
    let sizes = input.iter().enumerate().filter(|&(axis, &size)| !goes(axis, size));
    Ok(Some(sizes.map(|(_, &size)| size).collect()))
}

pub(super) fn expand_dims(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(&[axis])) = (node.shape(0), node.values(1)) else { return Ok(None) };
    let axis = axis_of(axis, input.len() + 1)?;
    let mut shape = input.to_vec();
    shape.insert(axis, 1);
    Ok(Some(shape))
}

#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn matrix_diag(node: &Node, _: usize) -> Shape {
    let Some((input, last)) = node.shape(0).and_then(|input| Some((input, *input.last()?))) else {
        return Ok(None);
    };
    Ok(Some([input, &[last]].concat()))
}

/// The image of an input, and the side of its blocks.
fn blocks(node: &Node) -> Result<Option<([u64; 4], u64)>, String> {
    let Some(input) = node.shape(0) else { return Ok(None) };
    let side = node.option(0, 0)?;
    let image = input.try_into().ok().zip(u64::try_from(side).ok().filter(|&side| side > 0));
    image.map(Some).ok_or_else(|| format!("{} has no blocks of side {side}", written(input)))
}

pub(super) fn depth_to_space(node: &Node, _: usize) -> Shape {
    let Some(([batch, height, width, channels], side)) = blocks(node)? else { return Ok(None) };
    let (high, wide) = (height.saturating_mul(side), width.saturating_mul(side));
    Ok(Some(vec![batch, high, wide, channels / side.saturating_mul(side)]))
}

pub(super) fn space_to_depth(node: &Node, _: usize) -> Shape {
    let Some(([batch, height, width, channels], side)) = blocks(node)? else { return Ok(None) };
    let deep = channels.saturating_mul(side).saturating_mul(side);
    Ok(Some(vec![batch, height / side, width / side, deep]))
}
