//! Broadcasting, and sizes of what works element by element.

use crate::import::onnx::{
    ops::{
        checks::{
            Checked, Place, RANK, Size, WITHIN, axis_attribute, axis_of, equal, has_rank, require,
        },
        layout::broadcasts_by_attribute,
        op::{self, Op},
    },
    read::fact::Dims,
};

const BROADCAST: &str = "sizes that are broadcast must be equal, or one of them 1";
const ONE_WAY: &str = "the first must be broadcast to the second: it must be equal or 1";
const ONE: &str = "it must be one number";

/// Requires sizes to broadcast, matched from the last dimension on.
pub(super) fn broadcast(shapes: &[Vec<Option<Size>>]) -> Checked {
    // By dimension from the last one: a size other than 1.
    let mut known: Vec<Option<Size>> = Vec::new();
    for shape in shapes {
        known.resize(known.len().max(shape.len()), None);
        for (known, &size) in known.iter_mut().zip(shape.iter().rev()) {
            let Some(size) = size.filter(|size| size.number != 1) else { continue };
            match *known {
                Some(known) => require(known.number == size.number, known, size, BROADCAST)?,
                None => *known = Some(size),
            }
        }
    }
    Ok(())
}

/// Requires all inputs to broadcast.
pub(crate) fn all(op: &Op) -> Checked {
    if broadcasts_by_attribute(op) {
        return Ok(());
    }
    let shapes: Vec<_> = (0..op.inputs.len()).map(|input| op.sizes(input)).collect();
    broadcast(&shapes)
}

/// Requires some of the inputs to broadcast.
pub(crate) fn several(op: &Op, inputs: &[usize]) -> Checked {
    broadcast(&inputs.iter().map(|&input| op.sizes(input)).collect::<Vec<_>>())
}

/// Requires an input to be broadcast to a shape, which does not grow.
pub(super) fn one_way(op: &Op, input: usize, to: &[Option<Size>], of: Size) -> Checked {
    let shape = op.sizes(input);
    if let Some(rank) = op.rank(input) {
        require(shape.len() <= to.len(), rank, of, WITHIN)?;
    }
    for (size, to) in shape.iter().rev().zip(to.iter().rev()) {
        if let (Some(size), Some(to)) = (size, to) {
            require(size.number == 1 || size.number == to.number, *size, *to, ONE_WAY)?;
        }
    }
    Ok(())
}

/// Requires an input to be broadcast to the first one.
pub(super) fn to_first(op: &Op, input: usize) -> Checked {
    match op.rank(0) {
        Some(rank) => one_way(op, input, &op.sizes(0), rank),
        None => Ok(()),
    }
}

/// From this opset on, the shapes of inputs are matched from the last dimension on.
const NUMPY_BROADCASTING: i64 = 7;

/// `PRelu`: some runtimes make the output larger if the slope is.
pub(crate) fn slope(op: &Op) -> Checked {
    if op.opset < NUMPY_BROADCASTING { Ok(()) } else { to_first(op, 1) }
}

/// `Expand`: the shape to broadcast to is an input.
pub(crate) fn expand(op: &Op) -> Checked {
    let Some(asked) = op.numbers("", 1) else { return Ok(()) };
    broadcast(&[op.sizes(0), asked.into_iter().map(Some).collect()])
}

/// Requires an input to be one number.
pub(super) fn scalar(op: &Op, input: usize) -> Checked {
    let Some(count) = op.count(input) else { return Ok(()) };
    require(count.number == 1, count, Size::needed(1), ONE)
}

/// `Clip`: the limits are numbers, or lists of one.
pub(crate) fn limits(op: &Op) -> Checked {
    [1, 2].into_iter().try_for_each(|input| {
        scalar(op, input)?;
        let rank = op.rank(input).filter(|rank| rank.number > 1);
        rank.map_or(Ok(()), |rank| require(false, rank, Size::needed(1), RANK))
    })
}

/// From this opset on, blocks of elements may share a scale.
const BLOCKS: i64 = 21;

/// The scale and the zero point: one number, one for each index of an axis, or in blocks.
pub(crate) fn quantization(op: &Op) -> Checked {
    equal(op.count(1), op.count(2))?;
    if op.count(1).is_none_or(|count| count.number == 1) {
        return Ok(());
    }
    if op.opset >= BLOCKS && op.rank(1).is_some_and(|rank| rank.number != 1) {
        let (Some(data), Some(scale)) = (op.rank(0), op.rank(1)) else { return Ok(()) };
        return require(data.number == scale.number, data, scale, RANK);
    }
    has_rank(op, 1, 1)?;
    let at = axis_of(op, axis_attribute(op, 1), 0, 0)?;
    equal(at.and_then(|at| op.dim(0, at)), op.dim(1, 0))
}

/// `BiasGelu` and `FastGelu`: the bias has the size of the last dimension.
pub(crate) fn bias(op: &Op) -> Checked {
    super::signature(op, "* H, H", &[])
}

/// Inputs of the same shape.
pub(super) fn alike(op: &Op, first: usize, second: usize) -> Checked {
    if let (Some(a), Some(b)) = (op.rank(first), op.rank(second)) {
        require(a.number == b.number, a, b, RANK)?;
    }
    op.sizes(first).into_iter().zip(op.sizes(second)).try_for_each(|(a, b)| equal(a, b))
}

/// `Concat`: all dimensions but the axis agree. Runtimes skip inputs without elements, unless they compare
/// fixed sizes before the run. Each `every`th input from `first` on is joined.
pub(crate) fn concat(op: &Op, first: usize, every: usize) -> Checked {
    let at = axis_of(op, axis_attribute(op, 1), first, 0)?;
    let is_empty = |input| op.sizes(input).iter().flatten().any(|size| size.number == 0);
    let mut reference: Option<usize> = None;
    for input in (first..op.inputs.len()).step_by(every) {
        let (Some(rank), Some(here)) = (op.rank(first), op.rank(input)) else { continue };
        require(here.number == rank.number, rank, here, RANK)?;
        if !op.fixed && is_empty(input) {
            continue;
        }
        let Some(known) = reference else {
            reference = Some(input);
            continue;
        };
        for other in (0..op.sizes(input).len()).filter(|&other| Some(other) != at) {
            equal(op.dim(known, other), op.dim(input, other))?;
        }
    }
    Ok(())
}

/// `ConcatFromSequence`: all dimensions of the tensors but the axis agree. Runtimes skip those without elements.
pub(crate) fn items(op: &Op) -> Checked {
    let Some(items) = op.input(0).and_then(|fact| fact.items.as_ref()) else { return Ok(()) };
    let joins_new = op.node.int("new_axis").unwrap_or(0) != 0;
    let axis = op.node.int("axis").unwrap_or(0);
    let mut reference: Option<&Dims> = None;
    for dims in items.iter().filter_map(|item| item.dims.as_ref()) {
        if !joins_new && dims.contains(&Some(0)) {
            continue;
        }
        let known = *reference.get_or_insert(dims);
        let rank = |dims: &Dims, what| Size::new(Place::Other(what), dims.len() as u64);
        let ranks =
            (rank(known, "the rank of one of its tensors"), rank(dims, "the rank of another"));
        require(known.len() == dims.len(), ranks.0, ranks.1, RANK)?;
        let at = if joins_new { None } else { op::axis(axis, dims.len()).ok() };
        let others = known.iter().zip(dims).enumerate().filter(|&(here, _)| Some(here) != at);
        for (_, (a, b)) in others {
            let size =
                |size: &Option<u64>, what| size.map(|size| Size::new(Place::Other(what), size));
            equal(
                size(a, "a dimension of one of its tensors"),
                size(b, "that dimension of another"),
            )?;
        }
    }
    Ok(())
}
