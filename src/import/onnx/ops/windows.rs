//! Shape rules of operators that slide a window: convolutions and pools.
//!
//! A window moves along each spatial dimension separately. So the rules are applied to one spatial
//! dimension after another, for any number of them.

use rten_shape_inference::ops::{self, Padding};

use crate::import::onnx::{
    ops::{
        op::{Op, Reason, Shapes},
        symbolic::{ask_dims, count},
    },
    read::fact::Dims,
};

/// The movement of a window along one dimension. All numbers fit in 31 bits.
struct Window {
    kernel: Option<usize>,
    stride: usize,
    dilation: usize,
    /// The padding before and after; `None` for as much as keeps `ceil(size / stride)` places.
    pads: Option<[usize; 2]>,
}

/// The attributes of an operator, per spatial dimension.
fn windows(op: &Op, spatial: usize) -> Result<Vec<Window>, Reason> {
    let kernels = numbers(op, "kernel_shape", spatial)?;
    let strides = numbers(op, "strides", spatial)?;
    let dilations = numbers(op, "dilations", spatial)?;
    let pads = numbers(op, "pads", 2 * spatial)?;
    let same = match op.node.string("auto_pad").unwrap_or("NOTSET") {
        "SAME_UPPER" | "SAME_LOWER" => true,
        "NOTSET" | "VALID" | "" => false,
        other => return Err(format!("it has the unknown auto_pad '{other}'")),
    };
    let valid = op.node.string("auto_pad") == Some("VALID");
    let at = |numbers: &Option<Vec<usize>>, index: usize, default| {
        numbers.as_ref().map_or(default, |numbers| numbers[index])
    };
    let window = |index| Window {
        kernel: kernels.as_ref().map(|kernels| kernels[index]),
        stride: at(&strides, index, 1),
        dilation: at(&dilations, index, 1),
        pads: match (same, valid) {
            (true, _) => None,
            (_, true) => Some([0, 0]),
            _ => Some([at(&pads, index, 0), at(&pads, spatial + index, 0)]),
        },
    };
    Ok((0..spatial).map(window).collect())
}

/// Returns an attribute with `length` numbers, none negative; `None` if it is absent.
fn numbers(op: &Op, name: &str, length: usize) -> Result<Option<Vec<usize>>, Reason> {
    let Some(ints) = op.node.ints(name).filter(|ints| !ints.is_empty()) else {
        return Ok(None);
    };
    let number = |&int: &i64| i32::try_from(int).ok().and_then(|int| usize::try_from(int).ok());
    let numbers: Option<Vec<usize>> = ints.iter().map(number).collect();
    numbers
        .filter(|numbers| numbers.len() == length)
        .map(Some)
        .ok_or_else(|| format!("its attribute '{name}' is {ints:?}, not {length} sizes"))
}

impl Window {
    fn padding(&self) -> Padding<'_> {
        self.pads.as_ref().map_or(Padding::Same, |pads| Padding::Fixed(pads))
    }
}

/// Batch and channels, and the spatial dimensions.
type Split<'a> = ([Option<u64>; 2], &'a [Option<u64>]);

/// Splits a shape into batch, channels and the spatial dimensions.
fn spatial(dims: &Dims) -> Result<Split<'_>, Reason> {
    match dims[..] {
        [batch, channels, _, ..] => Ok(([batch, channels], &dims[2..])),
        _ => Err("its input has no spatial dimensions".to_owned()),
    }
}

fn last(shapes: Shapes) -> Result<Option<u64>, Reason> {
    Ok(shapes?.into_iter().next().flatten().and_then(|dims| dims.last().copied().flatten()))
}

/// A convolution with any input as its weights.
pub(crate) fn conv(op: &Op, weights: usize) -> Shapes {
    let ([batch, channels], sizes) = spatial(op.dims(0)?)?;
    let ([features, _], kernels) = spatial(op.dims(weights)?)?;
    if kernels.len() != sizes.len() {
        return Err("its weights have another number of dimensions than its input".to_owned());
    }
    let mut dims = vec![batch, features];
    for ((window, &size), &kernel) in windows(op, sizes.len())?.iter().zip(sizes).zip(kernels) {
        let rule = ops::Conv {
            dilations: &[window.dilation],
            strides: &[window.stride],
            padding: window.padding(),
        };
        let input = vec![batch, channels, size];
        let weights = vec![features, channels, kernel];
        dims.push(last(ask_dims(&rule, &[&input, &weights]))?);
    }
    Ok(vec![Some(dims)])
}

pub(crate) fn conv_transpose(op: &Op) -> Shapes {
    let ([batch, channels], sizes) = spatial(op.dims(0)?)?;
    let ([_, features], kernels) = spatial(op.dims(1)?)?;
    if kernels.len() != sizes.len() {
        return Err("its weights have another number of dimensions than its input".to_owned());
    }
    let groups = u64::from(count(op, "group", 1)?);
    let mut dims = vec![batch, features.and_then(|features| features.checked_mul(groups))];
    if let Some(asked) = numbers(op, "output_shape", sizes.len())? {
        dims.extend(asked.into_iter().map(|size| Some(size as u64)));
        return Ok(vec![Some(dims)]);
    }
    let extra = numbers(op, "output_padding", sizes.len())?;
    for (index, window) in windows(op, sizes.len())?.iter().enumerate() {
        let extra = [extra.as_ref().map_or(0, |extra| extra[index])];
        let rule = ops::ConvTranspose {
            groups: 1,
            padding: window.padding(),
            strides: &[window.stride],
            dilations: &[window.dilation],
            output_padding: Some(&extra),
        };
        let input = vec![batch, channels, sizes[index]];
        let weights = vec![channels, features, kernels[index]];
        let size = last(ask_dims(&rule, &[&input, &weights]))?;
        // Padding never adds to the output, so this is the largest size.
        let unpadded = ops::ConvTranspose { padding: Padding::Fixed(&[0, 0]), ..rule };
        let unpadded = last(ask_dims(&unpadded, &[&input, &weights]))?;
        let padded = window.pads.is_some();
        dims.push(if padded { size } else { size.zip(unpadded).map(|(a, b)| a.min(b)) });
    }
    Ok(vec![Some(dims)])
}

/// The outputs of a pool; `MaxPool` may also return the places of the maxima. Runtimes disagree
/// about the padding of a dilated window that keeps the size: some omit the dilation, and their
/// output is smaller. So that size is unknown, and [`pool_at_most`] returns the standard's.
pub(crate) fn pool(op: &Op) -> Shapes {
    let mut shapes = pool_at_most(op)?;
    let spatial = shapes.iter().flatten().next().map_or(0, Vec::len).saturating_sub(2);
    for (axis, window) in windows(op, spatial)?.iter().enumerate() {
        let spread = window.dilation > 1 && window.kernel.is_some_and(|kernel| kernel > 1);
        if window.pads.is_none() && spread {
            shapes.iter_mut().flatten().for_each(|dims| dims[axis + 2] = None);
        }
    }
    Ok(shapes)
}

/// The sizes of a pool by the standard, which no runtime exceeds.
pub(crate) fn pool_at_most(op: &Op) -> Shapes {
    let ([batch, channels], sizes) = spatial(op.dims(0)?)?;
    let ceil_mode = op.node.int("ceil_mode").unwrap_or(0) != 0;
    let mut dims = vec![batch, channels];
    for (window, &size) in windows(op, sizes.len())?.iter().zip(sizes) {
        let kernel = window.kernel.ok_or("it has no kernel_shape")?;
        let rule = ops::Pool {
            dilations: &[window.dilation],
            kernel_size: &[kernel],
            padding: window.padding(),
            strides: &[window.stride],
            ceil_mode,
        };
        let input = vec![batch, channels, size];
        dims.push(last(ask_dims(&rule, &[&input]))?);
    }
    Ok(vec![Some(dims); 2])
}

/// The shape of the tensor that a pool has read: one window per element.
pub(crate) fn unpool(op: &Op) -> Shapes {
    let ([batch, channels], sizes) = spatial(op.dims(0)?)?;
    let mut dims = vec![batch, channels];
    for (window, &size) in windows(op, sizes.len())?.iter().zip(sizes) {
        let kernel = window.kernel.ok_or("it has no kernel_shape")? as u64;
        let pads: usize = window.pads.unwrap_or([0, 0]).iter().sum();
        dims.push(size.and_then(|size| {
            let starts = size.checked_sub(1)?.checked_mul(window.stride as u64)?;
            starts.checked_add(kernel)?.checked_sub(pads as u64)
        }));
    }
    Ok(vec![Some(dims)])
}

/// A pool of fixed size over each region of a list.
pub(crate) fn roi(op: &Op) -> Shapes {
    let channels = op.dims(0)?.get(1).copied().flatten();
    let regions = op.dims(1)?.first().copied().flatten();
    let (height, width) = match numbers(op, "pooled_shape", 2)? {
        Some(pooled) => (pooled[0] as u64, pooled[1] as u64),
        None => (count(op, "output_height", 1)?.into(), count(op, "output_width", 1)?.into()),
    };
    Ok(vec![Some(vec![regions, channels, Some(height), Some(width)])])
}

/// A part of a picture for each region of a list, in the size that the fourth input states.
pub(crate) fn crop(op: &Op) -> Shapes {
    let channels = op.dims(0)?.get(1).copied().flatten();
    let regions = op.dims(1)?.first().copied().flatten();
    let [height, width] = op.ints(3)?[..] else {
        return Err("its size is not two numbers".to_owned());
    };
    let size = |size: i64| u64::try_from(size).ok();
    Ok(vec![Some(vec![regions, channels, size(height), size(width)])])
}
