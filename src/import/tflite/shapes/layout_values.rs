//! Operators that put elements elsewhere, as values of their inputs state: sizes, places, paddings.

use super::node::{Node, Shape, axis_of, broadcast, written};

pub(super) fn broadcast_to(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(shape)) = (node.shape(0), node.sizes(1)?) else { return Ok(None) };
    if broadcast(input, &shape)? == shape {
        Ok(Some(shape))
    } else {
        Err(format!("{} does not broadcast to {}", written(input), written(&shape)))
    }
}

pub(super) fn resize(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(size)) = (node.shape(0), node.sizes(1)?) else { return Ok(None) };
    match (input, &size[..]) {
        (&[batch, _, _, channels], &[height, width]) => {
            Ok(Some(vec![batch, height, width, channels]))
        }
        _ => Err(format!("{} is not resized to {size:?}", written(input))),
    }
}

/// Pairs of numbers, one for each of some dimensions.
fn pairs(values: &[i64]) -> impl Iterator<Item = (i64, i64)> {
    values.chunks_exact(2).map(|pair| (pair[0], pair[1]))
}

/// A size with a number added on either side.
fn grown(size: u64, (before, after): (i64, i64)) -> Result<u64, String> {
    let grown = size.checked_add_signed(before).and_then(|size| size.checked_add_signed(after));
    grown.ok_or_else(|| format!("a dimension of {size} cannot grow by {before} and {after}"))
}

pub(super) fn pad(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(values)) = (node.shape(0), node.values(1)) else { return Ok(None) };
    if values.len() != 2 * input.len() {
        return Err(format!("{} has {} paddings", written(input), values.len()));
    }
    let sizes = input.iter().zip(pairs(values)).map(|(&size, by)| grown(size, by));
    sizes.collect::<Result<_, _>>().map(Some)
}

/// The sides of blocks along the dimensions after the first, and the numbers of elements at their ends.
type Blocks = Vec<(u64, (i64, i64))>;

fn blocks(node: &Node) -> Result<Option<(Vec<u64>, Blocks)>, String> {
    let (Some(input), Some(sides), Some(ends)) = (node.shape(0), node.sizes(1)?, node.values(2))
    else {
        return Ok(None);
    };
    if sides.len() >= input.len() || ends.len() != 2 * sides.len() || sides.contains(&0) {
        return Err(format!("{} has no blocks of {sides:?}", written(input)));
    }
    Ok(Some((input.to_vec(), sides.into_iter().zip(pairs(ends)).collect())))
}

pub(super) fn space_to_batch(node: &Node, _: usize) -> Shape {
    let Some((mut shape, blocks)) = blocks(node)? else { return Ok(None) };
    for (axis, (side, by)) in (1..).zip(blocks) {
        let size = grown(shape[axis], by)?;
        if !size.is_multiple_of(side) {
            return Err(format!("a dimension of {size} is not made of blocks of {side}"));
        }
        shape[axis] = size / side;
        shape[0] = shape[0].saturating_mul(side);
    }
    Ok(Some(shape))
}

pub(super) fn batch_to_space(node: &Node, _: usize) -> Shape {
    let Some((mut shape, blocks)) = blocks(node)? else { return Ok(None) };
    for (axis, (side, (before, after))) in (1..).zip(blocks) {
        let by = (before.saturating_neg(), after.saturating_neg());
        shape[axis] = grown(shape[axis].saturating_mul(side), by)?;
        shape[0] /= side;
    }
    Ok(Some(shape))
}

pub(super) fn tile(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(times)) = (node.shape(0), node.sizes(1)?) else { return Ok(None) };
    if input.len() != times.len() {
        return Err(format!("{} is repeated {times:?} times", written(input)));
    }
    Ok(Some(input.iter().zip(times).map(|(&size, times)| size.saturating_mul(times)).collect()))
}

pub(super) fn transpose(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(axes)) = (node.shape(0), node.values(1)) else { return Ok(None) };
    let found = axes.iter().map(|&axis| axis_of(axis, input.len()));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let is_order = (0..input.len()).all(|axis| found.contains(&axis));
    if found.len() != input.len() || !is_order {
        return Err(format!("{axes:?} is no order of {} dimensions", input.len()));
    }
    Ok(Some(found.into_iter().map(|axis| input[axis]).collect()))
}

pub(super) fn slice(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(begin), Some(size)) = (node.shape(0), node.values(1), node.values(2))
    else {
        return Ok(None);
    };
    let wrong = || format!("{} has no slice of {size:?} at {begin:?}", written(input));
    if begin.len() != input.len() || size.len() != input.len() {
        return Err(wrong());
    }
    let sizes = input.iter().zip(begin.iter().zip(size)).map(|(&of, (&begin, &size))| {
        let rest = of.checked_sub(u64::try_from(begin).map_err(|_| wrong())?).ok_or_else(wrong)?;
        match size {
            -1 => Ok(rest),
            size => u64::try_from(size).ok().filter(|&size| size <= rest).ok_or_else(wrong),
        }
    });
    sizes.collect::<Result<_, _>>().map(Some)
}

/// The indices that a strided slice takes of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) begin: i64,
    pub(super) stride: i64,
    pub(super) count: u64,
    /// True if the output lacks the dimension.
    pub(super) is_dropped: bool,
}

/// A dimension of the output of a strided slice.
pub(super) enum Dimension {
    Taken(Taken),
    /// A new one, of one element.
    New,
}

/// The slots of the masks of a strided slice.
mod mask {
    pub(super) const BEGIN: usize = 0;
    pub(super) const END: usize = 1;
    pub(super) const ELLIPSIS: usize = 2;
    pub(super) const NEW: usize = 3;
    pub(super) const SHRINK: usize = 4;
    /// True if ends are counted from their begins.
    pub(super) const OFFSET: usize = 5;
}

/// The dimensions that a strided slice takes; `None` if a value is unknown.
pub(super) fn strided(node: &Node) -> Result<Option<Vec<Dimension>>, String> {
    let (Some(input), Some(begin), Some(end), Some(strides)) =
        (node.shape(0), node.values(1), node.values(2), node.values(3))
    else {
        return Ok(None);
    };
    let mut masks = [0; 5];
    for (slot, mask) in masks.iter_mut().enumerate() {
        *mask = node.option(slot, 0)?;
    }
    let counts_from_begin = node.is_set(mask::OFFSET)?;
    let is_set = |mask: usize, at: usize| at < 32 && masks[mask] >> at & 1 == 1;
    if end.len() != begin.len() || strides.len() != begin.len() {
        return Err("its begins, ends and strides differ in number".to_owned());
    }
    let is_new = |at: usize| is_set(mask::NEW, at);
    let named = (0..begin.len()).filter(|&at| !is_new(at) && !is_set(mask::ELLIPSIS, at)).count();
    let mut sizes = input.iter().copied();
    let mut found = Vec::new();
    let whole = |size| Taken { begin: 0, stride: 1, count: size, is_dropped: false };
    for at in 0..begin.len() {
        if is_set(mask::ELLIPSIS, at) {
            let all = input.len().saturating_sub(named);
            found.extend(sizes.by_ref().take(all).map(|size| Dimension::Taken(whole(size))));
        } else if is_new(at) {
            found.push(Dimension::New);
        } else {
            let too_many = || format!("{} has fewer dimensions than its slice", written(input));
            let size = sizes.next().ok_or_else(too_many)?;
            let end = if counts_from_begin { begin[at].saturating_add(end[at]) } else { end[at] };
            let range = Range {
                begin: (!is_set(mask::BEGIN, at)).then_some(begin[at]),
                end: (!is_set(mask::END, at)).then_some(end),
                stride: strides[at],
            };
            let is_dropped = is_set(mask::SHRINK, at);
            let taken = if is_dropped { range.first(size) } else { range.all(size) };
            found.push(Dimension::Taken(taken?));
        }
    }
    found.extend(sizes.map(|size| Dimension::Taken(whole(size))));
    Ok(Some(found))
}

/// What a slice states about one dimension; `None` for an end of the dimension.
struct Range {
    begin: Option<i64>,
    end: Option<i64>,
    stride: i64,
}

impl Range {
    /// The first index alone.
    fn first(&self, size: u64) -> Result<Taken, String> {
        let length = i64::try_from(size).map_err(|_| "it has too many elements".to_owned())?;
        let begin = self.begin.unwrap_or(0);
        let begin = if begin < 0 { begin.saturating_add(length) } else { begin };
        if (0..length).contains(&begin) {
            Ok(Taken { begin, stride: 1, count: 1, is_dropped: true })
        } else {
            Err(format!("the index {begin} is not one of {size}"))
        }
    }

    fn all(&self, size: u64) -> Result<Taken, String> {
        let length = i64::try_from(size).map_err(|_| "it has too many elements".to_owned())?;
        let stride = self.stride;
        let (least, most) = if stride < 0 { (-1, length - 1) } else { (0, length) };
        let index = |index: i64| {
            (if index < 0 { index.saturating_add(length) } else { index }).clamp(least, most)
        };
        let (first, last) = if stride < 0 { (most, least) } else { (least, most) };
        let begin = self.begin.map_or(first, index);
        let end = self.end.map_or(last, index);
        let way = if stride < 0 { begin.saturating_sub(end) } else { end.saturating_sub(begin) };
        match stride.unsigned_abs() {
            0 => Err("a stride is 0".to_owned()),
            step => {
                let count = u64::try_from(way).unwrap_or(0).div_ceil(step);
                Ok(Taken { begin, stride, count, is_dropped: false })
            }
        }
    }
}

pub(super) fn strided_slice(node: &Node, _: usize) -> Shape {
    let Some(dimensions) = strided(node)? else { return Ok(None) };
    let sizes = dimensions.iter().filter_map(|dimension| match dimension {
        Dimension::New => Some(1),
        Dimension::Taken(taken) => (!taken.is_dropped).then_some(taken.count),
    });
    Ok(Some(sizes.collect()))
}
