//! Operators that multiply: convolutions, pooling, matrices, recurrent cells.

use super::node::{Node, Shape, broadcast, elements, written};

/// How a window moves along one dimension.
struct Stride {
    step: i64,
    dilation: i64,
}

/// The number of windows along an image of `image` elements.
fn windows(image: u64, window: u64, by: &Stride, is_same: bool) -> Result<u64, String> {
    let positive = |number: i64, what: &str| {
        let found = u64::try_from(number).ok().filter(|&number| number > 0);
        found.ok_or_else(|| format!("a {what} is {number}"))
    };
    let step = positive(by.step, "stride")?;
    if is_same {
        return Ok(image.div_ceil(step));
    }
    let dilation = positive(by.dilation, "dilation")?;
    let reach = window.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
    match image.checked_sub(reach) {
        Some(rest) => Ok(rest / step + 1),
        None => Err(format!(
            "a window of {reach} elements is longer than the {image} elements that it moves over"
        )),
    }
}

/// The sizes of an image of this rank.
fn image<const RANK: usize>(shape: &[u64]) -> Result<[u64; RANK], String> {
    shape.try_into().map_err(|_| format!("{} does not have {RANK} dimensions", written(shape)))
}

fn stride(node: &Node, step: usize, dilation: usize) -> Result<Stride, String> {
    Ok(Stride { step: node.option(step, 0)?, dilation: node.option(dilation, 1)? })
}

pub(super) fn convolution(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(weights)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let ([batch, height, width, _], [channels, down, right, _]) = (image(input)?, image(weights)?);
    let is_same = node.byte(0)? == 0;
    let height = windows(height, down, &stride(node, 2, 5)?, is_same)?;
    let width = windows(width, right, &stride(node, 1, 4)?, is_same)?;
    Ok(Some(vec![batch, height, width, channels]))
}

pub(super) fn depthwise(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(weights)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let ([batch, height, width, _], [_, down, right, channels]) = (image(input)?, image(weights)?);
    let is_same = node.byte(0)? == 0;
    let height = windows(height, down, &stride(node, 2, 6)?, is_same)?;
    let width = windows(width, right, &stride(node, 1, 5)?, is_same)?;
    Ok(Some(vec![batch, height, width, channels]))
}

pub(super) fn convolution_3d(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(weights)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let [batch, depth, height, width, _] = image(input)?;
    let [inward, down, right, _, channels] = image(weights)?;
    let is_same = node.byte(0)? == 0;
    let depth = windows(depth, inward, &stride(node, 1, 5)?, is_same)?;
    let height = windows(height, down, &stride(node, 3, 7)?, is_same)?;
    let width = windows(width, right, &stride(node, 2, 6)?, is_same)?;
    Ok(Some(vec![batch, depth, height, width, channels]))
}

pub(super) fn pool(node: &Node, _: usize) -> Shape {
    let Some(input) = node.shape(0) else { return Ok(None) };
    let [batch, height, width, channels] = image(input)?;
    let window = |slot| {
        let size = node.option(slot, 0)?;
        u64::try_from(size).map_err(|_| format!("a window has {size} elements"))
    };
    if window(4)? == 0 || window(3)? == 0 {
        return Ok(None);
    }
    let is_same = node.byte(0)? == 0;
    let step = |slot| Ok::<_, String>(Stride { step: node.option(slot, 0)?, dilation: 1 });
    let height = windows(height, window(4)?, &step(2)?, is_same)?;
    let width = windows(width, window(3)?, &step(1)?, is_same)?;
    Ok(Some(vec![batch, height, width, channels]))
}

/// Rows of the input are as long as those of the weights, however it is shaped.
pub(super) fn fully_connected(node: &Node, output: usize) -> Shape {
    let (Some(input), Some(weights)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let ([units, depth], 0) = (image::<2>(weights)?, output) else { return Ok(None) };
    let total = elements(input);
    if depth == 0 || !total.is_multiple_of(depth) {
        return Err(format!("{} is not made of rows of {depth} elements", written(input)));
    }
    match input.split_last() {
        Some((&last, rest)) if node.is_set(2)? => {
            if last != depth {
                return Err(format!("the rows of {} do not have {depth} elements", written(input)));
            }
            Ok(Some([rest, &[units]].concat()))
        }
        _ => Ok(Some(vec![total / depth, units])),
    }
}

pub(super) fn batch_matmul(node: &Node, _: usize) -> Shape {
    let (Some(a), Some(b)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let matrix = |shape: &[u64], is_turned: bool| match *shape {
        [.., rows, columns] if is_turned => Ok((columns, rows)),
        [.., rows, columns] => Ok((rows, columns)),
        _ => Err(format!("{} is no matrix", written(shape))),
    };
    let ((rows, shared), (other, columns)) =
        (matrix(a, node.is_set(0)?)?, matrix(b, node.is_set(1)?)?);
    if shared != other {
        return Err(format!("rows of {shared} elements meet columns of {other}"));
    }
    let mut shape = broadcast(&a[..a.len() - 2], &b[..b.len() - 2])?;
    shape.extend([rows, columns]);
    Ok(Some(shape))
}

pub(super) fn rfft(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(lengths)) = (node.shape(0), node.sizes(1)?) else { return Ok(None) };
    match (input, &lengths[..]) {
        ([batch @ .., _, _], &[height, width]) => {
            Ok(Some([batch, &[height, width / 2 + 1]].concat()))
        }
        _ => Err(format!("{} is no image", written(input))),
    }
}

pub(super) fn svdf(node: &Node, output: usize) -> Shape {
    let (Some(input), Some(weights)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let rank = u64::try_from(node.option(0, 0)?).ok().filter(|&rank| rank > 0);
    match (input.first(), weights.first(), rank) {
        (Some(&batch), Some(&filters), Some(rank)) if output == 0 => {
            Ok(Some(vec![batch, filters / rank]))
        }
        _ => Ok(None),
    }
}

/// The place of the weights from the cell's output back to itself, which are as wide as the output.
const RECURRENT_WEIGHTS: usize = 8;

#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn lstm(node: &Node, output: usize) -> Shape {
    let (Some(input), Some(weights)) = (node.shape(0), node.shape(RECURRENT_WEIGHTS)) else {
        return Ok(None);
    };
    match (input, weights) {
        (&[first, second, _], &[_, units]) if output == 0 => Ok(Some(vec![first, second, units])),
        _ => Ok(None),
    }
}
