//! Sizes of operators that form a whole layer: normalization, recurrence, attention.

use crate::import::onnx::ops::{
    checks::{
        Checked, Place, RANK, Size, axis_of, elements, equal, has_rank, layouts, require, signature,
    },
    op::Op,
};

const DIVIDES: &str = "the first must be a multiple of the second";

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
    let each = if op.opset >= SCALES_CHANNELS { op.dim(0, 1) } else { groups };
    // One number serves for all.
    let several = |&input: &usize| op.count(input).is_some_and(|count| count.number != 1);
    [1, 2].into_iter().filter(several).try_for_each(|input| {
        has_rank(op, input, 1)?;
        equal(op.dim(input, 0), each)
    })
}

/// The scale, and the bias if there is one, are broadcast to the data.
pub(crate) fn layer_normalization(op: &Op) -> Checked {
    layouts::axis(op, -1)?;
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

pub(crate) fn embed_layer_normalization(op: &Op) -> Checked {
    signature(op, "B S, B S, _ H, _ H, _ H, H, H", &[])
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

/// ONNX's own attention, with heads as a dimension or side by side.
pub(crate) fn attention(op: &Op) -> Checked {
    let heads = |name| op.attribute(name).filter(|heads: &Size| heads.number > 0);
    let (queries, keys) = (heads("q_num_heads"), heads("kv_num_heads"));
    if op.rank(0).is_some_and(|rank| rank.number == 4) {
        let given = [('N', queries), ('M', keys)];
        signature(op, "B N S D, B M L D, B M L E, -, B M P D, B M P E", &given)?;
        return several(op.dim(0, 1), op.dim(1, 1));
    }
    signature(op, "B S _, B L _, B L _, -, B M P D, B M P E", &[('M', keys)])?;
    several(queries, keys)?;
    several(op.dim(0, 2), queries)?;
    several(op.dim(1, 2), keys)?;
    several(op.dim(2, 2), keys)?;
    let hidden = op.dim(0, 2).zip(op.dim(1, 2));
    let (Some((query, key)), Some(queries), Some(keys)) = (hidden, queries, keys) else {
        return Ok(());
    };
    let rule = "each head of the queries must be as wide as one of the keys";
    require(query.number * keys.number == key.number * queries.number, query, key, rule)
}

/// Requires a size to be a multiple of another, if both are known.
fn several(first: Option<Size>, second: Option<Size>) -> Checked {
    let (Some(first), Some(second)) = (first, second.filter(|size| size.number > 0)) else {
        return Ok(());
    };
    require(first.number % second.number == 0, first, second, DIVIDES)
}

/// The older operator of the same name from `com.microsoft`.
pub(crate) fn packed_attention(op: &Op) -> Checked {
    signature(op, "B S I, I J, J", &[])
}

/// Queries, keys and values side by side; keys and values may also come in heads, or all three packed.
pub(crate) fn multi_head_attention(op: &Op) -> Checked {
    if let (Some(keys), Some(values)) = (op.rank(1), op.rank(2)) {
        require(keys.number == values.number, keys, values, RANK)?;
    }
    let packed = Some(Size::new(Place::Rank(0), 5));
    if op.rank(0) == packed
        || (1..3).any(|input| op.rank(input).is_none_or(|rank| rank.number == 4))
    {
        return Ok(());
    }
    several(op.dim(0, 2), op.attribute("num_heads"))?;
    signature(op, "B S H, B L H, B L V", &[])
}

pub(crate) fn group_query_attention(op: &Op) -> Checked {
    let keys = op.attribute("kv_num_heads");
    several(op.attribute("num_heads"), keys)?;
    signature(op, "B S _, B S K, B S K, B M P D, B M P D", &[('M', keys)])
}

pub(crate) fn linear_attention(op: &Op) -> Checked {
    signature(op, "B T _, B T _, B T _", &[])
}

pub(crate) fn convolution_with_state(op: &Op) -> Checked {
    signature(op, "B C _, C 1 _, C", &[])
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
