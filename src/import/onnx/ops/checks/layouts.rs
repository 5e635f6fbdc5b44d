//! Sizes of operators that move elements.

use crate::import::onnx::ops::{
    checks::{
        AXIS, Checked, DIVIDES, LENGTH, Place, Size, axis_attribute, axis_of, has_rank,
        has_rank_of, not_zero, require,
    },
    op::Op,
};

const TWICE: &str = "an axis must not be named twice";
const SUM: &str = "the parts must add up to the dimension";
const PARTS: &str = "each part needs one output";

/// Requires the attribute `axis` to be a dimension.
pub(crate) fn axis(op: &Op, default: i64) -> Checked {
    axis_of(op, axis_attribute(op, default), 0, 0).map(drop)
}

/// Requires axes to be dimensions of the first input, or of an output with `extra` more, each named once.
fn axes(op: &Op, axes: &[Size], extra: usize) -> Checked {
    let mut seen: Vec<(usize, Size)> = Vec::new();
    for &axis in axes {
        let Some(at) = axis_of(op, axis, 0, extra)? else { continue };
        if let Some(&(_, first)) = seen.iter().find(|(known, _)| *known == at) {
            require(false, first, axis, TWICE)?;
        }
        seen.push((at, axis));
    }
    Ok(())
}

/// `Flatten`: it may cut behind the last dimension.
pub(crate) fn flatten(op: &Op) -> Checked {
    let (axis, Some(rank)) = (axis_attribute(op, 1), op.rank(0)) else { return Ok(()) };
    require((-rank.number..=rank.number).contains(&axis.number), axis, rank, AXIS)
}

/// `Reshape`: the sizes that it requests must divide the number of elements. [`refuse_other_count`] compares
/// the numbers.
///
/// [`refuse_other_count`]: crate::import::onnx::infer::shapes::refuse_other_count
pub(crate) fn reshape(op: &Op) -> Checked {
    let (Some(asked), Some(count)) = (op.numbers("shape", 1), op.count(0)) else { return Ok(()) };
    let copies_zero = op.node.int("allowzero").unwrap_or(0) == 0;
    let mut others = 1_i128;
    let mut open: Option<Size> = None;
    for (at, size) in asked.iter().enumerate() {
        let number = match (size.number, op.dim(0, at), op.rank(0)) {
            (0, Some(copied), _) if copies_zero => copied.number,
            (0, None, Some(rank)) if copies_zero => {
                return require(false, *size, rank, "it copies a dimension that is not there");
            }
            (-1, ..) => {
                if let Some(open) = open.replace(*size) {
                    return require(false, open, *size, "only one size can be left open");
                }
                1
            }
            (number, ..) => {
                require(number >= 0, *size, count, "a size is not negative, except -1")?;
                number
            }
        };
        let Some(product) = others.checked_mul(number) else { return Ok(()) };
        others = product;
    }
    let others = Size::new(Place::Other("the product of the sizes that it requests"), others);
    if open.is_some() {
        require(
            others.number != 0,
            count,
            others,
            "a size of -1 cannot be combined with a size of 0",
        )?;
    }
    let divides = others.number == 0 || count.number % others.number == 0;
    require(open.is_none() || divides, count, others, DIVIDES)
}

/// `Squeeze`: only dimensions of size 1 can be dropped.
pub(crate) fn squeeze(op: &Op) -> Checked {
    let Some(asked) = op.numbers("axes", 1) else { return Ok(()) };
    for axis in asked {
        let Some(at) = axis_of(op, axis, 0, 0)? else { continue };
        if let Some(size) = op.dim(0, at) {
            require(size.number == 1, size, Size::needed(1), "only a size of 1 can be dropped")?;
        }
    }
    Ok(())
}

pub(crate) fn unsqueeze(op: &Op) -> Checked {
    match op.numbers("axes", 1) {
        Some(asked) => axes(op, &asked, asked.len()),
        None => Ok(()),
    }
}

/// `Transpose`: a permutation of the dimensions.
pub(crate) fn transpose(op: &Op) -> Checked {
    let Some(perm) = op.numbers("perm", usize::MAX) else { return Ok(()) };
    per_dimension(op, perm.len(), "the length of its perm")?;
    axes(op, &perm, 0)
}

/// Requires one number for each dimension of the first input.
fn per_dimension(op: &Op, length: usize, words: &'static str) -> Checked {
    let Some(rank) = op.rank(0) else { return Ok(()) };
    let length = Size::new(Place::Other(words), length as u64);
    require(length.number == rank.number, length, rank, LENGTH)
}

/// `Tile`: a count for each dimension.
pub(crate) fn tile(op: &Op) -> Checked {
    let (Some(count), Some(rank)) = (op.count(1), op.rank(0)) else { return Ok(()) };
    require(count.number == rank.number, count, rank, LENGTH)
}

/// `Pad`: two amounts for each dimension, or for each axis; negative ones must leave something.
pub(crate) fn pad(op: &Op) -> Checked {
    let axes_given = op.numbers("", 3);
    let axes_open = op.input(3).is_some() && axes_given.is_none();
    let (Some(rank), false) = (op.rank(0), axes_open) else { return Ok(()) };
    axes(op, axes_given.as_deref().unwrap_or(&[]), 0)?;
    let padded = match &axes_given {
        Some(axes) => Size::new(Place::Other("the number of its axes"), axes.len() as u64),
        None => rank,
    };
    let Some(length) = op.length("pads", "the number of its pads", 1) else { return Ok(()) };
    let rule = "each padded dimension needs two numbers";
    require(length.number == 2 * padded.number, length, padded, rule)?;
    let Some(pads) = op.numbers("pads", 1) else { return Ok(()) };
    let (before, after) = pads.split_at(pads.len() / 2);
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        let at = match &axes_given {
            Some(axes) => axis_of(op, axes[at], 0, 0)?,
            None => Some(at),
        };
        let Some(size) = at.and_then(|at| op.dim(0, at)) else { continue };
        let cut = if before.number < after.number { before } else { after };
        let left = size.number + before.number + after.number;
        require(left >= 0, size, *cut, "no more can be cut off than there is")?;
    }
    Ok(())
}

/// `Slice`: the lists name the same number of axes.
pub(crate) fn slice(op: &Op) -> Checked {
    let starts = op.length("starts", "the number of its starts", 1);
    let lists =
        [("ends", "the number of its ends", 2), ("axes", "the number of its axes", 3), ("", "", 4)];
    for (attribute, words, input) in lists {
        if let (Some(starts), Some(length)) = (starts, op.length(attribute, words, input)) {
            require(starts.number == length.number, starts, length, LENGTH)?;
        }
    }
    let steps = op.numbers("", 4).unwrap_or_default();
    steps.into_iter().try_for_each(|step| not_zero(step, "a step moves on"))?;
    if let Some(asked) = op.numbers("axes", 3) {
        return axes(op, &asked, 0);
    }
    let (Some(starts), Some(rank)) = (starts, op.rank(0)) else { return Ok(()) };
    require(starts.number <= rank.number, starts, rank, LENGTH)
}

/// `Split`: the parts add up to the dimension, one for each output.
pub(crate) fn split(op: &Op) -> Checked {
    let Some(at) = axis_of(op, axis_attribute(op, 0), 0, 0)? else { return Ok(()) };
    let outputs = op.node.0.output.len() as u64;
    let outputs = Size::new(Place::Other("the number of its outputs"), outputs);
    if let Some(length) = op.length("split", "the number of its parts", 1) {
        require(length.number == outputs.number, length, outputs, PARTS)?;
    }
    let dim = op.dim(0, at);
    if let (Some(parts), Some(dim)) = (op.numbers("split", 1), dim) {
        let sum = parts.iter().map(|part| part.number).sum::<i128>();
        let sum = Size::new(Place::Other("the sum of its parts"), sum);
        return require(sum.number == dim.number, dim, sum, SUM);
    }
    if op.input(1).is_some() || op.node.ints("split").is_some() {
        return Ok(());
    }
    if let Some(parts) = op.attribute("num_outputs") {
        require(parts.number == outputs.number, parts, outputs, PARTS)?;
        let Some(dim) = dim.filter(|_| outputs.number > 0) else { return Ok(()) };
        let part = (dim.number + outputs.number - 1) / outputs.number;
        let rule = "the parts but the last have equal sizes, so the last would be smaller than 0";
        return require(part * (outputs.number - 1) <= dim.number, dim, outputs, rule);
    }
    let Some(dim) = dim else { return Ok(()) };
    require(outputs.number > 0 && dim.number % outputs.number == 0, dim, outputs, DIVIDES)
}

/// `Resize` and `Upsample`: a scale or a size for each dimension, or for each axis.
pub(crate) fn resize(op: &Op) -> Checked {
    let axes_given = op.numbers("axes", usize::MAX);
    axes(op, axes_given.as_deref().unwrap_or(&[]), 0)?;
    let resized = match &axes_given {
        Some(axes) => Size::new(Place::Other("the number of its axes"), axes.len() as u64),
        None => match op.rank(0) {
            Some(rank) => rank,
            None => return Ok(()),
        },
    };
    let scales = if op.inputs.len() > 2 { 2 } else { 1 };
    let in_attribute = op
        .node
        .floats("scales")
        .map(|scales| Size::new(Place::Other("the number of its scales"), scales.len() as u64));
    for length in [in_attribute, op.count(scales), op.count(3)].into_iter().flatten() {
        // An empty list is absent.
        require([0, resized.number].contains(&length.number), length, resized, LENGTH)?;
    }
    Ok(())
}

/// `DepthToSpace`: each block of channels becomes a square.
pub(crate) fn depth_to_space(op: &Op) -> Checked {
    has_rank(op, 0, 4)?;
    let Some(block) = op.attribute("blocksize").filter(|block| block.number > 0) else {
        return Ok(());
    };
    let Some(channels) = op.dim(0, 1) else { return Ok(()) };
    let rule = "the first must be a multiple of the square of the second";
    require(channels.number % (block.number * block.number) == 0, channels, block, rule)
}

/// `SpaceToDepth`: the picture consists of squares.
pub(crate) fn space_to_depth(op: &Op) -> Checked {
    has_rank(op, 0, 4)?;
    let Some(block) = op.attribute("blocksize").filter(|block| block.number > 0) else {
        return Ok(());
    };
    [2, 3]
        .into_iter()
        .filter_map(|at| op.dim(0, at))
        .try_for_each(|size| require(size.number % block.number == 0, size, block, DIVIDES))
}

/// `CenterCropPad`: a size for each dimension, or for each axis.
pub(crate) fn center_crop_pad(op: &Op) -> Checked {
    let Some(length) = op.count(1) else { return Ok(()) };
    let Some(given) = op.numbers("axes", usize::MAX) else {
        let Some(rank) = op.rank(0) else { return Ok(()) };
        return require(length.number == rank.number, length, rank, LENGTH);
    };
    axes(op, &given, 0)?;
    let given = Size::new(Place::Other("the number of its axes"), given.len() as u64);
    require(length.number == given.number, length, given, LENGTH)
}

/// `ReverseSequence`: a length for each sequence of the batch.
pub(crate) fn reverse_sequence(op: &Op) -> Checked {
    has_rank_of(op, 0, 2)?;
    has_rank(op, 1, 1)?;
    let batch = op.node.int("batch_axis").unwrap_or(1);
    let at = axis_of(op, Size::new(Place::Attribute("batch_axis"), batch), 0, 0)?;
    super::equal(at.and_then(|at| op.dim(0, at)), op.dim(1, 0))
}
