//! Sizes of operators that take elements at indices, and of reductions.

use crate::import::onnx::ops::{
    checks::{
        Checked, EQUAL, Place, RANK, Size, WITHIN, axis_attribute, axis_of, elements, equal,
        filled, has_rank, has_rank_of, not_zero, require, signature,
    },
    op::Op,
};

const INDEX: &str = "an index must lie in the dimension";

/// Reductions: each axis is a dimension. It may be named twice.
pub(crate) fn reduce(op: &Op) -> Checked {
    let asked = op.numbers("axes", 1).unwrap_or_default();
    asked.into_iter().try_for_each(|axis| axis_of(op, axis, 0, 0).map(drop))
}

/// `ArgMax` and `ArgMin`: there is an element to choose, unless there is none at all.
pub(crate) fn arg_reduce(op: &Op) -> Checked {
    let Some(at) = axis_of(op, axis_attribute(op, 0), 0, 0)? else { return Ok(()) };
    let others = op.sizes(0).into_iter().enumerate().filter(|&(other, _)| other != at);
    if others.filter_map(|(_, size)| size).any(|size| size.number == 0) {
        return Ok(());
    }
    filled(op, 0, at)
}

/// `CumSum` and `CumProd`: the axis is an input.
pub(crate) fn cumulate(op: &Op) -> Checked {
    for axis in op.numbers("", 1).unwrap_or_default() {
        axis_of(op, axis, 0, 0)?;
    }
    Ok(())
}

/// `TopK`: no more elements than there are.
pub(crate) fn top_k(op: &Op) -> Checked {
    let at = axis_of(op, axis_attribute(op, -1), 0, 0)?;
    let k = op.attribute("k").or_else(|| op.numbers("", 1)?.first().copied());
    let (Some(k), Some(size)) = (k, at.and_then(|at| op.dim(0, at))) else { return Ok(()) };
    require(k.number <= size.number, k, size, WITHIN)
}

/// `Gather`: indices that are known lie in the dimension.
pub(crate) fn gather(op: &Op) -> Checked {
    let at = axis_of(op, axis_attribute(op, 0), 0, 0)?;
    let Some(size) = at.and_then(|at| op.dim(0, at)) else { return Ok(()) };
    let indices = op.numbers("", 1).unwrap_or_default();
    let inside = |index: i128| (-size.number..size.number).contains(&index);
    indices.into_iter().try_for_each(|index| require(inside(index.number), index, size, INDEX))
}

/// `GatherElements`, and the scattering operators: the indices have the dimensions of the data.
fn within_data(op: &Op) -> Checked {
    let at = axis_of(op, axis_attribute(op, 0), 0, 0)?;
    if let (Some(data), Some(indices)) = (op.rank(0), op.rank(1)) {
        require(data.number == indices.number, data, indices, RANK)?;
    }
    let dims = op.sizes(0).into_iter().zip(op.sizes(1)).enumerate();
    for (_, sizes) in dims.filter(|(here, _)| Some(*here) != at) {
        if let (Some(size), Some(indices)) = sizes {
            require(indices.number <= size.number, indices, size, WITHIN)?;
        }
    }
    Ok(())
}

pub(crate) fn gather_elements(op: &Op) -> Checked {
    within_data(op)
}

/// `ScatterElements`: an update for each index.
pub(crate) fn scatter_elements(op: &Op) -> Checked {
    within_data(op)?;
    elements::alike(op, 1, 2)
}

/// The length of an index, which names that many dimensions of the data behind the batch.
fn index_length(op: &Op, batch: usize) -> Result<Option<usize>, super::Conflict> {
    has_rank_of(op, 0, 1)?;
    has_rank_of(op, 1, 1)?;
    let Some(length) = op.sizes(1).last().copied().flatten() else { return Ok(None) };
    if let Some(rank) = op.rank(0) {
        require(length.number + batch as i128 <= rank.number, length, rank, WITHIN)?;
    }
    Ok(usize::try_from(length.number).ok())
}

/// `GatherND`: the batch is that of the data.
pub(crate) fn gather_nd(op: &Op) -> Checked {
    let batch = usize::try_from(op.node.int("batch_dims").unwrap_or(0)).unwrap_or(0);
    index_length(op, batch)?;
    has_rank_of(op, 1, batch + 1)?;
    let in_indices = op.sizes(1).len().saturating_sub(1);
    (0..batch.min(in_indices)).try_for_each(|at| equal(op.dim(0, at), op.dim(1, at)))
}

/// `ScatterND`: an update of the rest of the data for each index.
pub(crate) fn scatter_nd(op: &Op) -> Checked {
    let Some(length) = index_length(op, 0)? else { return Ok(()) };
    let (mut shape, data) = (op.sizes(1), op.sizes(0));
    shape.pop();
    shape.extend(data.get(length..).unwrap_or_default());
    let (Some(rank), true) = (op.rank(2), op.shape(0).is_some()) else { return Ok(()) };
    let needed = Size::needed(shape.len() as u64);
    require(rank.number == needed.number, rank, needed, RANK)?;
    shape.into_iter().zip(op.sizes(2)).try_for_each(|(a, b)| equal(a, b))
}

/// `TensorScatter`: an update of part of a cache.
pub(crate) fn tensor_scatter(op: &Op) -> Checked {
    let at = axis_of(op, axis_attribute(op, -2), 0, 0)?;
    if let (Some(cache), Some(update)) = (op.rank(0), op.rank(1)) {
        require(cache.number == update.number, cache, update, RANK)?;
    }
    for (here, sizes) in op.sizes(0).into_iter().zip(op.sizes(1)).enumerate() {
        let (Some(cache), Some(update)) = sizes else { continue };
        let fits =
            cache.number == update.number || Some(here) == at && update.number < cache.number;
        require(
            fits,
            cache,
            update,
            if Some(here) == at { "the second must not be more than the first" } else { EQUAL },
        )?;
    }
    equal(op.dim(0, 0), op.dim(2, 0))
}

/// `OneHot`: two values, and an axis of the output.
pub(crate) fn one_hot(op: &Op) -> Checked {
    axis_of(op, axis_attribute(op, -1), 0, 1)?;
    signature(op, "-, -, 2", &[])
}

/// `Compress` and `Unique`: the axis, if there is one, is a dimension.
pub(crate) fn optional_axis(op: &Op) -> Checked {
    match op.attribute("axis") {
        Some(axis) => axis_of(op, axis, 0, 0).map(drop),
        None => Ok(()),
    }
}

/// `NonMaxSuppression`: scores for each box.
pub(crate) fn non_max_suppression(op: &Op) -> Checked {
    signature(op, "N B 4, N C B", &[])
}

/// The losses: the labels have the dimensions of the data, without that of the classes. Runtimes accept fewer
/// labels.
pub(crate) fn loss(op: &Op) -> Checked {
    has_rank_of(op, 0, 2)?;
    let (Some(scores), Some(labels)) = (op.rank(0), op.rank(1)) else { return Ok(()) };
    require(scores.number == labels.number + 1, scores, labels, "the first must be one more")?;
    let mut data = op.sizes(0);
    data.remove(1);
    data.into_iter().zip(op.sizes(1)).try_for_each(|sizes| match sizes {
        (Some(data), Some(labels)) => require(labels.number <= data.number, labels, data, WITHIN),
        _ => Ok(()),
    })
}

/// `Trilu`: matrices.
pub(crate) fn trilu(op: &Op) -> Checked {
    has_rank_of(op, 0, 2)
}

/// `EyeLike` and `Multinomial`: one matrix.
pub(crate) fn matrix(op: &Op) -> Checked {
    has_rank(op, 0, 2)
}

/// `Range`: three numbers, and a step that is not 0.
pub(crate) fn range(op: &Op) -> Checked {
    (0..3).try_for_each(|input| elements::scalar(op, input))?;
    let Some(&step) = op.numbers("", 2).as_deref().and_then(<[Size]>::first) else { return Ok(()) };
    not_zero(step, "a step moves on")
}

/// `AffineGrid`: a matrix for each picture.
pub(crate) fn affine_grid(op: &Op) -> Checked {
    has_rank(op, 0, 3)?;
    let size = op.numbers("", 1).unwrap_or_default();
    if size.len() < 4 {
        return Ok(());
    }
    let spatial = size.len() as u64 - 2;
    let spatial = Size::new(Place::Other("the number of spatial dimensions"), spatial);
    equal(op.dim(0, 1), Some(spatial))?;
    equal(op.dim(0, 0), size.first().copied())
}
