//! Shape rules that copy, multiply or list sizes, in 64 bits.

use crate::import::onnx::{
    ops::{
        op::{Op, Reason, Shapes, axis},
        slices,
    },
    read::fact::{Dims, Fact, MAX_RANK, Scalar, count},
};

#[allow(clippy::unnecessary_wraps, reason = "every rule ends in it")]
pub(super) fn one(dims: Dims) -> Shapes {
    Ok(vec![Some(dims)])
}

/// Combines shapes by the standard's multidirectional broadcasting.
fn broadcast(op: &Op, a: &Dims, b: &Dims) -> Result<Dims, Reason> {
    let rank = a.len().max(b.len());
    let at = |dims: &Dims, index: usize| {
        (index + dims.len()).checked_sub(rank).map_or(Some(1), |index| dims[index])
    };
    let dim = |index| match (at(a, index), at(b, index)) {
        (Some(1), dim) | (dim, Some(1)) => Ok(dim),
        (Some(a), Some(b)) if a != b && op.guesses => Ok(Some(a.max(b))),
        (Some(a), Some(b)) if a != b => Err(format!("sizes {a} and {b} do not broadcast")),
        // A size other than 1 is the result's, whatever the other size is.
        (known, other) => Ok(known.or(other)),
    };
    (0..rank).map(dim).collect()
}

/// Before opset 7, operators with two inputs stated in attributes how the second is broadcast.
pub(crate) fn broadcasts_by_attribute(op: &Op) -> bool {
    op.opset < 7 && op.node.int("broadcast").unwrap_or(0) != 0
}

pub(crate) fn broadcast_all(op: &Op) -> Shapes {
    // These take the shape of the first input, whatever the other shapes are.
    if broadcasts_by_attribute(op) || op.node.kind() == "PRelu" {
        return one(op.dims(0)?.clone());
    }
    let mut result = op.dims(0)?.clone();
    for index in 1..op.inputs.len() {
        result = broadcast(op, &result, op.dims(index)?)?;
    }
    one(result)
}

/// Broadcasts some of the inputs; a scale and a zero point may follow each.
pub(crate) fn broadcast_of(op: &Op, inputs: &[usize]) -> Shapes {
    let mut result = Dims::new();
    for &input in inputs {
        result = broadcast(op, &result, op.dims(input)?)?;
    }
    one(result)
}

pub(crate) fn expand(op: &Op) -> Shapes {
    let sizes = sizes(&op.ints(1)?)?;
    one(broadcast(op, op.dims(0)?, &sizes)?)
}

/// Converts requested sizes to a shape.
pub(super) fn sizes(ints: &[i64]) -> Result<Dims, Reason> {
    if ints.len() > MAX_RANK {
        return Err(format!("it has more than {MAX_RANK} dimensions"));
    }
    let size = |&int: &i64| {
        u64::try_from(int).map(Some).map_err(|_| format!("it is asked for {int} elements"))
    };
    ints.iter().map(size).collect()
}

/// The product of all sizes, if all are known.
pub(super) fn product(dims: &[Option<u64>]) -> Result<Option<u64>, Reason> {
    let Some(sizes) = dims.iter().copied().collect::<Option<Vec<u64>>>() else {
        return Ok(None);
    };
    count(&sizes).map(Some).ok_or_else(|| "it has 2^64 elements or more".to_owned())
}

pub(crate) fn reshape(op: &Op) -> Shapes {
    let asked = op.ints_of("shape", 1)?.ok_or("it has no shape to take")?;
    let copies_zero = op.node.int("allowzero").unwrap_or(0) == 0;
    let data = op.dims(0);
    // A guess of 0 does not request a copy.
    let empty = op.guesses && data.as_ref().is_ok_and(|dims| dims.contains(&Some(0)));
    let mut free = None;
    let mut dims: Dims = Vec::with_capacity(asked.len());
    for (index, &size) in asked.iter().enumerate() {
        dims.push(match u64::try_from(size) {
            Ok(0) if copies_zero && !empty => {
                *data.clone()?.get(index).ok_or("it copies a size that is not there")?
            }
            Ok(size) => Some(size),
            Err(_) if size == -1 && free.is_none() => {
                free = Some(index);
                Some(1)
            }
            Err(_) => return Err(format!("its shape has {size} elements")),
        });
    }
    if let Some(free) = free {
        let data = data?;
        dims[free] = match (product(data)?, product(&dims)?) {
            (Some(_), Some(0)) if op.guesses => {
                let rest = |dims: &Dims| {
                    let sizes = dims.iter().copied().filter(|&size| size != Some(0));
                    product(&sizes.collect::<Vec<_>>())
                };
                rest(data)?.zip(rest(&dims)?).map(|(all, others)| all / others)
            }
            (Some(_), Some(0)) => {
                return Err("its shape has an open size and a size of 0".to_owned());
            }
            (Some(all), Some(others)) if all % others == 0 || op.guesses => Some(all / others),
            (Some(all), Some(others)) => {
                return Err(format!("{all} elements do not divide into rows of {others}"));
            }
            _ => None,
        };
    }
    one(dims)
}

pub(crate) fn flatten(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let at = op.node.int("axis").unwrap_or(1);
    let at = if at == dims.len().try_into().unwrap_or(-1) {
        dims.len()
    } else if dims.is_empty() {
        0
    } else {
        axis(at, dims.len())?
    };
    one(vec![product(&dims[..at])?, product(&dims[at..])?])
}

pub(crate) fn squeeze(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let Some(axes) = op.ints_of("axes", 1)? else {
        if dims.contains(&None) {
            return Err("it drops all dimensions of size 1, and some sizes are unknown".to_owned());
        }
        return one(dims.iter().copied().filter(|&dim| dim != Some(1)).collect());
    };
    let mut kept = vec![true; dims.len()];
    for at in axes {
        kept[axis(at, dims.len())?] = false;
    }
    one(dims.iter().zip(kept).filter(|(_, kept)| *kept).map(|(&dim, _)| dim).collect())
}

pub(crate) fn unsqueeze(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let axes = op.ints_of("axes", 1)?.ok_or("it has no axes")?;
    let rank = dims.len() + axes.len();
    if rank > MAX_RANK {
        return Err(format!("it has more than {MAX_RANK} dimensions"));
    }
    let mut new = vec![false; rank];
    for at in &axes {
        let at = axis(*at, rank)?;
        if std::mem::replace(&mut new[at], true) {
            return Err(format!("its axes name {at} twice"));
        }
    }
    let mut old = dims.iter();
    one(new.iter().map(|&new| if new { Some(1) } else { old.next().copied().flatten() }).collect())
}

pub(crate) fn transpose(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    one(permutation(op, dims.len())?.into_iter().map(|from| dims[from]).collect())
}

/// Returns the dimension of the input for each dimension of a `Transpose`.
pub(crate) fn permutation(op: &Op, rank: usize) -> Result<Vec<usize>, Reason> {
    let Some(perm) = op.node.ints("perm") else {
        return Ok((0..rank).rev().collect());
    };
    let perm = perm.iter().map(|&at| axis(at, rank)).collect::<Result<Vec<usize>, _>>()?;
    let mut seen = vec![false; rank];
    for &from in &perm {
        seen[from] = true;
    }
    if perm.len() != rank || seen.contains(&false) {
        return Err("its permutation does not name every dimension once".to_owned());
    }
    Ok(perm)
}

/// Joins each `every`th input from `first` on.
pub(crate) fn concat_of(op: &Op, first: usize, every: usize) -> Shapes {
    let inputs = (first..op.inputs.len()).step_by(every);
    let shapes = inputs.map(|index| op.dims(index)).collect::<Result<Vec<_>, _>>()?;
    let at = op.axis(1, op.dims(first)?.len())?;
    joined(&shapes, at)
}

/// The shape of tensors joined along an axis. The other dimensions come from those that have elements, if one
/// has.
pub(super) fn joined(shapes: &[&Dims], at: usize) -> Shapes {
    let filled = |dims: &&&Dims| !dims.contains(&Some(0));
    let first = shapes.iter().find(filled).or(shapes.first()).ok_or("it joins nothing")?;
    let mut result = (*first).clone();
    for dims in shapes {
        if dims.len() != result.len() {
            return Err("its inputs have different numbers of dimensions".to_owned());
        }
        if filled(&dims) {
            result.iter_mut().zip(*dims).for_each(|(known, &dim)| *known = known.or(dim));
        }
    }
    let sum = |sum: Option<u64>, dims: &&Dims| match sum.zip(dims[at]) {
        Some((a, b)) => a.checked_add(b).map(Some).ok_or("it has 2^64 elements or more"),
        None => Ok(None),
    };
    result[at] = shapes.iter().try_fold(Some(0), sum)?;
    one(result)
}

pub(crate) fn slice(op: &Op) -> Shapes {
    let cuts = slices::slice_cuts(op, op.dims(0)?)?;
    one(cuts.iter().map(|cut| cut.map(|cut| cut.count)).collect())
}

pub(crate) fn split(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let at = op.axis(0, dims.len())?;
    let part = |size: Option<u64>| {
        let mut dims = dims.clone();
        dims[at] = size;
        Some(dims)
    };
    Ok(slices::split_sizes(op, dims[at])?.into_iter().map(part).collect())
}

pub(crate) fn space_to_depth(op: &Op) -> Shapes {
    let block = op.node.int("blocksize").and_then(|block| u64::try_from(block).ok());
    let block = block.filter(|&block| block > 0).ok_or("its block size is not positive")?;
    let [batch, channels, height, width] = op.dims(0)?[..] else {
        return Err("its input does not have 4 dimensions".to_owned());
    };
    let channels = match channels.zip(block.checked_mul(block)) {
        Some((channels, area)) => channels.checked_mul(area),
        None => None,
    };
    one(vec![batch, channels, height.map(|h| h / block), width.map(|w| w / block)])
}

/// `Resize` and its older form `Upsample`, whose scales are an attribute in old opsets, an input
/// later.
pub(crate) fn resize(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let present = |index: usize| {
        let sizes = op.input(index).and_then(Fact::sizes);
        op.input(index).is_some() && sizes.as_deref() != Some(&[0])
    };
    let axes = match op.node.ints("axes") {
        Some(axes) => axes.iter().map(|&at| axis(at, dims.len())).collect::<Result<_, _>>()?,
        None => (0..dims.len()).collect::<Vec<_>>(),
    };
    let mut result = dims.clone();
    if present(3) {
        if op.node.string("keep_aspect_ratio_policy").unwrap_or("stretch") != "stretch" {
            return Err("it keeps the aspect ratio".to_owned());
        }
        for (&at, size) in axes.iter().zip(sizes(&op.ints(3)?)?) {
            result[at] = size;
        }
        return one(result);
    }
    for (&at, scale) in axes.iter().zip(scales(op)?) {
        result[at] = dims[at].and_then(|size| scaled(size, scale));
    }
    one(result)
}

fn scales(op: &Op) -> Result<Vec<f64>, Reason> {
    if let Some(scales) = op.node.floats("scales") {
        return Ok(scales.iter().map(|&scale| scale.into()).collect());
    }
    // Opset 11 added the region of interest between the two.
    let index = if op.inputs.len() > 2 { 2 } else { 1 };
    let elements = op.input(index).and_then(|fact| fact.elements.as_ref());
    let float = |scalar: &Scalar| match scalar {
        Scalar::Float(scale) => Some(*scale),
        Scalar::Int(_) | Scalar::Unknown => None,
    };
    elements
        .and_then(|elements| elements.iter().map(float).collect())
        .ok_or_else(|| "the value of its scales is unknown".to_owned())
}

/// Frameworks multiply in 32-bit floats and round down.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as the frameworks do, and checked to be in range"
)]
fn scaled(size: u64, scale: f64) -> Option<u64> {
    let scaled = (size as f32 * scale as f32).floor();
    // Above this, 32-bit floats skip whole numbers.
    let exact = 0.0..=16_777_216.0;
    exact.contains(&scaled).then_some(scaled as u64)
}

pub(crate) fn constant_of_shape(op: &Op) -> Shapes {
    one(sizes(&op.ints(0)?)?)
}

pub(crate) fn shape_attribute(op: &Op) -> Shapes {
    one(sizes(op.node.ints("shape").ok_or("it has no shape")?)?)
}

pub(crate) fn window(op: &Op) -> Shapes {
    one(sizes(&op.ints(0)?)?)
}

pub(crate) fn shape(op: &Op) -> Shapes {
    one(vec![Some(shape_range(op)?.len() as u64)])
}

/// The dimensions that a `Shape` lists.
pub(crate) fn shape_range(op: &Op) -> Result<std::ops::Range<usize>, Reason> {
    let rank = op.dims(0)?.len();
    let bound = |name: &str, default: usize| match op.node.int(name) {
        None => default,
        Some(at) if at < 0 => {
            rank.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX))
        }
        Some(at) => usize::try_from(at).unwrap_or(usize::MAX).min(rank),
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    Ok(start..end.max(start))
}

/// One number or truth value.
pub(crate) fn scalar(_: &Op) -> Shapes {
    one(Vec::new())
}

pub(crate) fn range(op: &Op) -> Shapes {
    let number = |index: usize| match op.input(index).and_then(|fact| fact.elements.as_deref()) {
        Some([Scalar::Int(value)]) => Some(Scalar::Int(*value)),
        Some([Scalar::Float(value)]) => Some(Scalar::Float(*value)),
        _ => None,
    };
    let count = match (number(0), number(1), number(2)) {
        (Some(Scalar::Int(start)), Some(Scalar::Int(limit)), Some(Scalar::Int(delta))) => {
            let (span, delta) = (i128::from(limit) - i128::from(start), i128::from(delta));
            match delta.signum() * span.signum() {
                _ if delta == 0 => return Err("its step is 0".to_owned()),
                1 => u64::try_from((span.abs() - 1) / delta.abs() + 1).ok(),
                _ => Some(0),
            }
        }
        (Some(Scalar::Float(start)), Some(Scalar::Float(limit)), Some(Scalar::Float(delta))) => {
            float_count(start, limit, delta)
        }
        _ => None,
    };
    one(vec![count])
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range"
)]
fn float_count(start: f64, limit: f64, delta: f64) -> Option<u64> {
    let count = ((limit - start) / delta).ceil().max(0.0);
    (count <= 1e15).then_some(count as u64)
}
