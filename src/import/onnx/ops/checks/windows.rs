//! Sizes of convolutions and pools.

use crate::import::onnx::ops::{
    checks::{
        AT_LEAST, Checked, DIVIDES, EQUAL, LENGTH, Place, RANK, Size, elements, equal, has_rank,
        has_rank_of, require, signature,
    },
    op::Op,
    windows,
};

const PER_GROUP: &str = "the first must be the second times the number of groups";
const FITS: &str =
    "with its padding, the first must not be smaller than the second, its dilation included";

/// A convolution with any input as its weights, and any as its bias, which follows them.
pub(crate) fn conv(op: &Op, weights: usize, bias: usize) -> Checked {
    spatial(op, weights)?;
    let groups = groups(op);
    if let (Some(channels), Some(per_group)) = (op.dim(0, 1), op.dim(weights, 1)) {
        require(
            channels.number == per_group.number * groups.number,
            channels,
            per_group,
            PER_GROUP,
        )?;
    }
    if let Some(features) = op.dim(weights, 0) {
        require(features.number % groups.number == 0, features, groups, DIVIDES)?;
    }
    has_rank(op, bias, 1)?;
    equal(op.dim(weights, 0), op.dim(bias, 0))?;
    (2..op.sizes(0).len()).try_for_each(|at| {
        let kernel = op.dim(weights, at);
        equal(item(op, "kernel_shape", at - 2), kernel)?;
        window_fits(op, at, kernel, 1)
    })
}

/// `ConvTranspose`: the weights have the input's channels first.
pub(crate) fn conv_transpose(op: &Op) -> Checked {
    spatial(op, 1)?;
    equal(op.dim(0, 1), op.dim(1, 0))?;
    let groups = groups(op);
    if let Some(channels) = op.dim(0, 1) {
        require(channels.number % groups.number == 0, channels, groups, DIVIDES)?;
    }
    has_rank(op, 2, 1)?;
    if let (Some(bias), Some(per_group)) = (op.dim(2, 0), op.dim(1, 1)) {
        require(bias.number == per_group.number * groups.number, bias, per_group, PER_GROUP)?;
    }
    (2..op.sizes(0).len()).try_for_each(|at| equal(item(op, "kernel_shape", at - 2), op.dim(1, at)))
}

/// Only the batch of a pool may be empty.
fn filled(op: &Op) -> Checked {
    has_rank_of(op, 0, 3)?;
    if op.dim(0, 0).is_some_and(|batch| batch.number == 0) {
        return Ok(());
    }
    (1..op.sizes(0).len()).try_for_each(|at| super::filled(op, 0, at))
}

/// A pool: the window must not be larger than what it slides over.
pub(crate) fn pool(op: &Op) -> Checked {
    filled(op)?;
    lists(op)?;
    (2..op.sizes(0).len()).try_for_each(|at| {
        let kernel = item(op, "kernel_shape", at - 2);
        let stride = item(op, "strides", at - 2).map_or(1, |stride| stride.number);
        // One that is larger by less than two strides makes an output, of one element or none.
        window_fits(op, at, kernel, 2 - 2 * stride.max(1))
    })
}

/// A pool over all places.
pub(crate) fn global_pool(op: &Op) -> Checked {
    filled(op)
}

/// `DeformConv`: two offsets, and one number of the mask, for each place of the window in each place of the
/// output.
pub(crate) fn deform_conv(op: &Op) -> Checked {
    has_rank(op, 0, 4)?;
    conv(op, 1, 3)?;
    let groups = op.attribute("offset_group").filter(|groups| groups.number > 0);
    let groups = groups.unwrap_or(Size::new(Place::Other("the number of its offset groups"), 1));
    if let Some(channels) = op.dim(0, 1) {
        require(channels.number % groups.number == 0, channels, groups, DIVIDES)?;
    }
    let output = windows::conv(op, 1).ok().and_then(|shapes| shapes.into_iter().next().flatten());
    for (input, each) in [(2, 2), (4, 1)] {
        has_rank(op, input, 4)?;
        equal(op.dim(0, 0), op.dim(input, 0))?;
        if let (Some(height), Some(width), Some(given)) =
            (op.dim(1, 2), op.dim(1, 3), op.dim(input, 1))
        {
            let needed = each * groups.number * height.number * width.number;
            require(given.number == needed, given, Size::needed(needed), EQUAL)?;
        }
        for at in 2..4 {
            let made = output.as_ref().and_then(|dims| *dims.get(at)?);
            let made = made.map(|size| Size::new(Place::Other("that of the output"), size));
            equal(op.dim(input, at), made)?;
        }
    }
    Ok(())
}

/// `Col2Im`: a column for each place of a block in the picture.
pub(crate) fn column_to_image(op: &Op) -> Checked {
    has_rank(op, 0, 3)?;
    equal(op.count(1), op.count(2))?;
    let (Some(image), Some(block)) = (op.numbers("", 1), op.numbers("", 2)) else { return Ok(()) };
    let spatial = Size::new(Place::Count(1), image.len() as u64);
    let spatial_count = image.len();
    for (name, each) in [("strides", 1), ("dilations", 1), ("pads", 2)] {
        let Some(length) = op.node.ints(name).map(<[i64]>::len).filter(|&length| length > 0) else {
            continue;
        };
        let length = Size::new(Place::Other("the length of an attribute"), length as u64);
        let needed = Size { number: each * spatial.number, ..spatial };
        require(length.number == needed.number, length, needed, LENGTH)?;
    }
    let area = block.iter().try_fold(1_i128, |area, size| area.checked_mul(size.number));
    let area = area.map(|area| Size::new(Place::Other("the product of the block's sizes"), area));
    if let (Some(columns), Some(area)) = (op.dim(0, 1), area) {
        let divides = area.number > 0 && columns.number % area.number == 0;
        require(divides, columns, area, DIVIDES)?;
    }
    let mut places = Some(1_i128);
    for (at, (size, block)) in image.into_iter().zip(block).enumerate() {
        let number = |name, at, default| item(op, name, at).map_or(default, |size| size.number);
        let spread = number("dilations", at, 1) * (block.number - 1) + 1;
        let pads = number("pads", at, 0) + number("pads", at + spatial_count, 0);
        let room = size.number + pads - spread;
        require(room >= 0, size, block, FITS)?;
        let along = room / number("strides", at, 1).max(1) + 1;
        places = places.and_then(|places| places.checked_mul(along));
    }
    let places =
        places.map(|all| Size::new(Place::Other("the number of places of the block"), all));
    equal(op.dim(0, 2), places)
}

/// `MaxUnpool`: a place for each element.
pub(crate) fn unpool(op: &Op) -> Checked {
    elements::alike(op, 0, 1)
}

/// `MaxRoiPool`: five numbers for each region.
pub(crate) fn roi_pool(op: &Op) -> Checked {
    signature(op, "N C H W, R 5", &[])
}

/// `RoiAlign`: four numbers for each region, and the picture that it lies in.
pub(crate) fn roi_align(op: &Op) -> Checked {
    signature(op, "N C H W, R 4, R", &[])
}

/// `GridSample`: a place with a number for each spatial dimension.
pub(crate) fn grid_sample(op: &Op) -> Checked {
    equal(op.dim(0, 0), op.dim(1, 0))?;
    let (Some(rank), Some(grid)) = (op.rank(0), op.rank(1)) else { return Ok(()) };
    require(rank.number == grid.number, rank, grid, RANK)?;
    let spatial = Size::new(Place::Other("the number of its spatial dimensions"), rank.number - 2);
    equal(op.sizes(1).last().copied().flatten(), Some(spatial))
}

/// The number of groups.
fn groups(op: &Op) -> Size {
    let groups = op.attribute("group").filter(|groups| groups.number > 0);
    groups.unwrap_or(Size::new(Place::Other("the number of its groups"), 1))
}

/// Requires as many spatial dimensions in the weights as in the data, and in each attribute.
fn spatial(op: &Op, weights: usize) -> Checked {
    has_rank_of(op, 0, 3)?;
    if let (Some(data), Some(weights)) = (op.rank(0), op.rank(weights)) {
        require(data.number == weights.number, data, weights, RANK)?;
    }
    lists(op)
}

/// Requires the attributes to have a number for each spatial dimension.
fn lists(op: &Op) -> Checked {
    let Some(rank) = op.rank(0) else { return Ok(()) };
    let lists = [
        ("kernel_shape", "the length of its kernel_shape", 1),
        ("strides", "the length of its strides", 1),
        ("dilations", "the length of its dilations", 1),
        ("pads", "the length of its pads", 2),
    ];
    for (name, words, each) in lists {
        let Some(ints) = op.node.ints(name).filter(|ints| !ints.is_empty()) else { continue };
        let length = Size::new(Place::Other(words), ints.len() as u64);
        let needed = Size::needed(each * (rank.number - 2));
        require(length.number == needed.number, length, needed, LENGTH)?;
        for at in (0..ints.len()).filter(|_| name != "pads") {
            let Some(number) = item(op, name, at) else { continue };
            require(number.number > 0, number, Size::needed(1), AT_LEAST)?;
        }
    }
    Ok(())
}

/// A number in an attribute.
fn item(op: &Op, name: &'static str, at: usize) -> Option<Size> {
    Some(Size::new(Place::Item(name, at), *op.node.ints(name)?.get(at)?))
}

/// Requires a window to have at least `least` places in its padded dimension, if it moves by one.
fn window_fits(op: &Op, at: usize, kernel: Option<Size>, least: i128) -> Checked {
    let (Some(size), Some(kernel)) = (op.dim(0, at), kernel) else { return Ok(()) };
    if op.node.string("auto_pad").is_some_and(|pad| pad.starts_with("SAME")) {
        return Ok(());
    }
    let spatial = op.sizes(0).len() - 2;
    let number = |name, at, default| item(op, name, at).map_or(default, |size| size.number);
    let is_padded = op.node.string("auto_pad") != Some("VALID");
    let pads = number("pads", at - 2, 0) + number("pads", at - 2 + spatial, 0);
    let pads = if is_padded { pads } else { 0 };
    let spread = number("dilations", at - 2, 1) * (kernel.number - 1) + 1;
    require(size.number + pads - spread + 1 >= least, size, kernel, FITS)
}
