//! Operators that choose elements, count them, or describe shapes.

use super::node::{Node, Shape, axis_of, elements, written};

/// The lists that hold a shape, or the number of dimensions.
#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn of_shapes(node: &Node, _: usize) -> Shape {
    let rank = |input| node.shape(input).map(|shape| shape.len() as u64);
    Ok(match node.op.model.kind(node.op.operator) {
        "RANK" => Some(Vec::new()),
        "SHAPE" => rank(0).map(|rank| vec![rank]),
        // Both inputs are shapes, and the longer one counts.
        _ => {
            let length = |input| node.shape(input).map(elements);
            length(0).zip(length(1)).map(|(a, b)| vec![a.max(b)])
        }
    })
}

#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn embedding_lookup(node: &Node, _: usize) -> Shape {
    let (Some(lookup), Some(rows)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    Ok(rows.get(1..).map(|row| [lookup, row].concat()))
}

pub(super) fn gather(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(indices)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let axis = axis_of(node.option(0, 0)?, input.len())?;
    let batches = match node.option(1, 0)? {
        0 => 0,
        batches => axis_of(batches, indices.len() + 1)?,
    };
    let chosen = indices.get(batches..);
    let chosen = chosen.ok_or_else(|| format!("{} has no rows to choose", written(input)))?;
    Ok(Some([&input[..axis], chosen, &input[axis + 1..]].concat()))
}

pub(super) fn gather_nd(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(indices)) = (node.shape(0), node.shape(1)) else { return Ok(None) };
    let wrong = || format!("{} has no places of {}", written(input), written(indices));
    let (&depth, places) = indices.split_last().ok_or_else(wrong)?;
    let rest = usize::try_from(depth).ok().and_then(|depth| input.get(depth..));
    Ok(Some([places, rest.ok_or_else(wrong)?].concat()))
}

/// The value of an input that is a number, such as how many elements to take.
fn number(node: &Node, input: usize) -> Result<Option<u64>, String> {
    Ok(node.sizes(input)?.and_then(|values| values.first().copied()))
}

pub(super) fn multinomial(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(samples)) = (node.shape(0), number(node, 1)?) else { return Ok(None) };
    Ok(input.first().map(|&batch| vec![batch, samples]))
}

/// The outputs: indices, in version 5 their scores, and how many of them are valid.
pub(super) fn non_max_suppression(node: &Node, output: usize) -> Shape {
    let has_scores = node.outputs() == 3;
    match number(node, 2)? {
        _ if output == 1 + usize::from(has_scores) => Ok(Some(Vec::new())),
        most => Ok(most.map(|most| vec![most])),
    }
}

pub(super) fn one_hot(node: &Node, _: usize) -> Shape {
    let (Some(indices), Some(depth)) = (node.shape(0), number(node, 1)?) else { return Ok(None) };
    let axis = axis_of(node.option(0, 0)?, indices.len() + 1)?;
    let mut shape = indices.to_vec();
    shape.insert(axis, depth);
    Ok(Some(shape))
}

pub(super) fn range(node: &Node, _: usize) -> Shape {
    let (Some(&[start]), Some(&[limit]), Some(&[step])) =
        (node.values(0), node.values(1), node.values(2))
    else {
        return Ok(None);
    };
    let way = if step < 0 { start.saturating_sub(limit) } else { limit.saturating_sub(start) };
    match (u64::try_from(way), step.unsigned_abs()) {
        (_, 0) => Err("its step is 0".to_owned()),
        (Err(_), _) => Ok(Some(vec![0])),
        (Ok(way), step) => Ok(Some(vec![way.div_ceil(step)])),
    }
}

pub(super) fn top_k(node: &Node, _: usize) -> Shape {
    let (Some(input), Some(count)) = (node.shape(0), number(node, 1)?) else { return Ok(None) };
    match input {
        [rest @ .., last] if count <= *last => Ok(Some([rest, &[count]].concat())),
        _ => Err(format!("{} has no {count} largest elements in a row", written(input))),
    }
}

/// The different elements, as many as there are at most, and the place of each element among them.
#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn unique(node: &Node, _: usize) -> Shape {
    Ok(node.shape(0).map(<[u64]>::to_vec))
}

/// The places of all elements, which is the most that a condition can hold for.
#[allow(clippy::unnecessary_wraps, reason = "the type of all rules")]
pub(super) fn coordinates(node: &Node, _: usize) -> Shape {
    Ok(node.shape(0).map(|input| vec![elements(input), input.len() as u64]))
}
