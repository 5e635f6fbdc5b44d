//! Sizes of operators that form a whole layer: normalization, recurrence, sub-graphs.

use crate::import::onnx::ops::{
    checks::{
        AT_LEAST, Checked, DIVIDES, EQUAL, Place, Size, WITHIN, axis_attribute, axis_of, elements,
        equal, filled, has_rank, has_rank_of, require, signature,
    },
    op::Op,
};

/// `BatchNormalization`: four numbers per channel, or per element of an image in old models. A list has one
/// channel.
pub(crate) fn batch_normalization(op: &Op) -> Checked {
    match op.rank(0) {
        _ if op.node.int("spatial") == Some(0) => Ok(()),
        Some(rank) if rank.number == 1 => signature(op, "N, 1, 1, 1, 1", &[]),
        _ => signature(op, "N C *, C, C, C, C", &[]),
    }
}

/// `InstanceNormalization`: two numbers per channel.
pub(crate) fn instance_normalization(op: &Op) -> Checked {
    signature(op, "N C *, C, C", &[])
}

/// From this opset on, `GroupNormalization` scales channels, not groups.
const SCALES_CHANNELS: i64 = 21;

pub(crate) fn group_normalization(op: &Op) -> Checked {
    let groups = op.attribute("num_groups").filter(|groups| groups.number > 0);
    if let (Some(channels), Some(groups)) = (op.dim(0, 1), groups) {
        require(channels.number % groups.number == 0, channels, groups, DIVIDES)?;
    }
    // The standard defines it by a `Reshape` that infers a size, which needs elements.
    (0..op.sizes(0).len()).try_for_each(|at| filled(op, 0, at))?;
    let each = if op.opset >= SCALES_CHANNELS { op.dim(0, 1) } else { groups };
    // One number serves for all.
    let several = |&input: &usize| op.count(input).is_some_and(|count| count.number != 1);
    [1, 2].into_iter().filter(several).try_for_each(|input| {
        has_rank(op, input, 1)?;
        equal(op.dim(input, 0), each)
    })
}

/// The scale, and the bias if there is one, are broadcast to the data, and there is something to normalize.
pub(crate) fn layer_normalization(op: &Op) -> Checked {
    let from = axis_of(op, axis_attribute(op, -1), 0, 0)?.unwrap_or(usize::MAX);
    (from..op.sizes(0).len()).try_for_each(|at| filled(op, 0, at))?;
    elements::to_first(op, 1)?;
    elements::to_first(op, 2)
}

/// The second input has the shape of the first, but may have a batch of 1 or none; all others have the last
/// size.
pub(crate) fn skip_layer_normalization(op: &Op) -> Checked {
    elements::to_first(op, 1)?;
    let last = |input| op.sizes(input).into_iter().rev().take(2);
    last(0).zip(last(1)).try_for_each(|(data, skip)| equal(data, skip))?;
    signature(op, "* H, -, H, H, H", &[])
}

/// Words, positions and segments are embedded in the same number of dimensions. The positions of one sequence
/// serve for all.
pub(crate) fn embed_layer_normalization(op: &Op) -> Checked {
    signature(op, "B S, B S, _ H, _ H, _ H, H, H, B S, _ S", &[])?;
    if let (Some(batch), Some(given)) = (op.dim(0, 0), op.dim(8, 0)) {
        require([1, batch.number].contains(&given.number), batch, given, EQUAL)?;
    }
    let (Some(length), Some(positions)) = (op.dim(0, 1), op.dim(3, 0)) else { return Ok(()) };
    let counts = op.input(8).is_none();
    require(!counts || length.number <= positions.number, length, positions, WITHIN)
}

/// `LRN`: channels, and a window over them.
pub(crate) fn local_response_normalization(op: &Op) -> Checked {
    has_rank_of(op, 0, 2)?;
    let Some(size) = op.attribute("size") else { return Ok(()) };
    require(size.number > 0, size, Size::needed(1), AT_LEAST)
}

/// A recurrent layer with a number of gates.
pub(crate) fn recurrent(op: &Op, pattern: [&str; 2]) -> Checked {
    let directions = match op.node.string("direction") {
        Some("bidirectional") => 2,
        _ => 1,
    };
    let directions = Size::new(Place::Other("the number of its directions"), directions);
    let given = [('D', Some(directions)), ('H', op.attribute("hidden_size"))];
    signature(op, pattern[usize::from(op.node.int("layout").unwrap_or(0) != 0)], &given)
}

pub(crate) fn rnn(op: &Op) -> Checked {
    recurrent(op, ["T B I, D H I, D H H, D 2H, B, D B H", "B T I, D H I, D H H, D 2H, B, B D H"])
}

pub(crate) fn gru(op: &Op) -> Checked {
    recurrent(
        op,
        ["T B I, D 3H I, D 3H H, D 6H, B, D B H", "B T I, D 3H I, D 3H H, D 6H, B, B D H"],
    )
}

pub(crate) fn lstm(op: &Op) -> Checked {
    recurrent(
        op,
        [
            "T B I, D 4H I, D 4H H, D 8H, B, D B H, D B H, D 3H",
            "B T I, D 4H I, D 4H H, D 8H, B, B D H, B D H, D 3H",
        ],
    )
}

pub(crate) fn convolution_with_state(op: &Op) -> Checked {
    signature(op, "B C _, C 1 _, C", &[])
}

/// `DynamicQuantizeLSTM`: the weights of an `LSTM`, transposed.
pub(crate) fn dynamic_quantize_lstm(op: &Op) -> Checked {
    let pattern = "T B I, D I 4H, D H 4H, D 8H, B, D B H, D B H, D 3H";
    recurrent(op, [pattern, pattern])
}

/// `If`: the condition is one truth value.
pub(crate) fn condition(op: &Op) -> Checked {
    elements::scalar(op, 0)
}

/// `Loop`: the number of iterations and the condition are one value each.
pub(crate) fn iterations(op: &Op) -> Checked {
    elements::scalar(op, 0)?;
    elements::scalar(op, 1)
}

/// Before this opset `Scan` had a batch dimension.
const SCAN_WITHOUT_BATCH: i64 = 9;

/// `Scan`: all scanned inputs have the same length.
pub(crate) fn scan(op: &Op) -> Checked {
    let scanned = op.node.int("num_scan_inputs").and_then(|n| usize::try_from(n).ok());
    let first = scanned.and_then(|scanned| op.inputs.len().checked_sub(scanned));
    let Some(first) = first.filter(|_| op.opset >= SCAN_WITHOUT_BATCH) else { return Ok(()) };
    let axes = op.node.ints("scan_input_axes").unwrap_or(&[]);
    let mut known = None;
    for input in first..op.inputs.len() {
        let axis = axes.get(input - first).copied().unwrap_or(0);
        let axis = Size::new(Place::Item("scan_input_axes", input - first), axis);
        let length = axis_of(op, axis, input, 0)?.and_then(|at| op.dim(input, at));
        equal(known, length)?;
        known = known.or(length);
    }
    Ok(())
}
