//! Shape rules of operators that crop, pad or assemble images.

use crate::import::onnx::{
    ops::{
        layout::{one, product, sizes},
        op::{Op, Shapes, axis},
        windows,
    },
    read::fact::Dims,
};

/// The place of each pixel of an image, with one number per spatial dimension.
pub(crate) fn affine_grid(op: &Op) -> Shapes {
    let size = sizes(&op.ints(1)?)?;
    let [batch, _channels, spatial @ ..] = &size[..] else {
        return Err("its size names no batch and channels".to_owned());
    };
    one([&[*batch], spatial, &[Some(spatial.len() as u64)]].concat())
}

/// The first input, cropped or padded to the requested sizes.
pub(crate) fn center_crop_pad(op: &Op) -> Shapes {
    let mut dims = op.dims(0)?.clone();
    let asked = sizes(&op.ints(1)?)?;
    let axes: Vec<usize> = match op.node.ints("axes") {
        Some(axes) => axes.iter().map(|&at| axis(at, dims.len())).collect::<Result<_, _>>()?,
        None => (0..dims.len()).collect(),
    };
    if axes.len() != asked.len() {
        return Err(format!("it requests {} sizes for {} axes", asked.len(), axes.len()));
    }
    for (at, size) in axes.into_iter().zip(asked) {
        dims[at] = size;
    }
    one(dims)
}

/// The image whose parts are the columns of blocks.
pub(crate) fn column_to_image(op: &Op) -> Shapes {
    let &[batch, columns, _] = &op.dims(0)?[..] else {
        return Err("its input does not have 3 dimensions".to_owned());
    };
    let image = sizes(&op.ints(1)?)?;
    let block = product(&sizes(&op.ints(2)?)?)?;
    let channels = columns.zip(block).and_then(|(columns, block)| columns.checked_div(block));
    one([&[batch, channels], &image[..]].concat())
}

/// The tensor from which a `MaxPool` took its maxima.
pub(crate) fn max_unpool(op: &Op) -> Shapes {
    if op.input(2).is_some() {
        return one(sizes(&op.ints(2)?)?);
    }
    windows::unpool(op)
}

/// A picture whose size is encoded in its bytes.
pub(crate) fn decoded(op: &Op) -> Shapes {
    let channels = match op.node.string("pixel_format").unwrap_or("RGB") {
        "Grayscale" => 1,
        _ => 3,
    };
    one(vec![None, None, Some(channels)])
}

/// A weight for each band of frequencies and each bin of a spectrum.
pub(crate) fn mel_weights(op: &Op) -> Shapes {
    let number = |index| match op.ints(index)?[..] {
        [value] => u64::try_from(value).map_err(|_| format!("its input {index} is {value}")),
        _ => Err(format!("its input {index} is not one number")),
    };
    let (bands, length) = (number(0)?, number(1)?);
    one(vec![Some(length / 2 + 1), Some(bands)])
}

/// The shape of the input without the two dimensions of each matrix.
pub(crate) fn determinant(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let kept = dims.len().checked_sub(2).ok_or("its input is not a matrix")?;
    one(dims[..kept].to_vec())
}

/// A number for each n-gram, per row of words.
pub(crate) fn n_grams(op: &Op) -> Shapes {
    let mut dims: Dims = op.dims(0)?.clone();
    let last = op.node.ints("ngram_indexes").and_then(|indices| indices.iter().max());
    let last = last.ok_or("it has no ngram_indexes")?;
    let count = u64::try_from(*last).map_err(|_| format!("an n-gram has the index {last}"))?;
    dims.pop().ok_or("its input has no dimensions")?;
    dims.push(count.checked_add(1));
    one(dims)
}
