//! Shape rules of operators that are a layer by themselves: normalization, recurrence, attention.

use rten_shape_inference::ops;

use crate::import::onnx::{
    ops::{
        op::{Op, Shapes, axis},
        symbolic::{
            Hand::{self, Shape},
            ask, count,
        },
    },
    read::fact::Dims,
};

/// Whether a `Dropout` trains, and so changes its input. Very old ones say so in an attribute.
pub(crate) fn drops(op: &Op) -> bool {
    let attribute = op.opset < 7 && op.node.int("is_test").unwrap_or(0) == 0;
    let input = op.input(2).is_some_and(|training| training.int() != Some(0));
    attribute || input
}

/// Before this opset a `BatchNormalization` trains unless it says that it is a test.
const TRAINS_UNLESS_TEST: i64 = 7;

/// Whether a `BatchNormalization` trains: it says so, or it gives statistics.
pub(crate) fn trains(op: &Op) -> bool {
    let flag = |name: &str| op.node.int(name).unwrap_or(0) != 0;
    flag("training_mode")
        || op.node.outputs().count() > 1
        || (op.opset < TRAINS_UNLESS_TEST && !flag("is_test"))
}

/// The data, and in training the statistics per channel.
pub(crate) fn batch_normalization(op: &Op) -> Shapes {
    let mut shapes = vec![Some(op.dims(0)?.clone())];
    shapes.resize(op.node.0.output.len().max(1), op.input(1).and_then(|scale| scale.dims.clone()));
    Ok(shapes)
}

/// The data, and the statistics over the dimensions from the axis on.
pub(crate) fn layer_normalization(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let statistics = statistics(dims, op.node.int("axis").unwrap_or(-1));
    Ok(vec![Some(dims.clone()), statistics.clone(), statistics])
}

pub(crate) fn skip_layer_normalization(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let statistics = statistics(dims, -1);
    Ok(vec![Some(dims.clone()), statistics.clone(), statistics, Some(dims.clone())])
}

fn statistics(dims: &Dims, from: i64) -> Option<Dims> {
    let at = axis(from, dims.len()).ok()?;
    Some(dims.iter().enumerate().map(|(i, &dim)| if i < at { dim } else { Some(1) }).collect())
}

/// Embeddings of words, positions and segments, a mask per sequence, and their sum.
pub(crate) fn embed_layer_normalization(op: &Op) -> Shapes {
    let ids = op.dims(0)?;
    let hidden = op.dims(2)?.last().copied().flatten();
    let embedded: Dims = ids.iter().copied().chain([hidden]).collect();
    let batch = ids.first().map(|&batch| vec![batch]);
    Ok(vec![Some(embedded.clone()), batch, Some(embedded)])
}

/// All hidden states, the last hidden state, and for `LSTM` the last cell state. With `layout` 1
/// the batch comes first.
pub(crate) fn recurrent(op: &Op) -> Shapes {
    let &[first, second, _] = &op.dims(0)?[..] else {
        return Err("its input does not have 3 dimensions".to_owned());
    };
    let &[directions, _, hidden] = &op.dims(2)?[..] else {
        return Err("its recurrence weights do not have 3 dimensions".to_owned());
    };
    let (all, last) = if op.node.int("layout").unwrap_or(0) == 0 {
        (vec![first, directions, second, hidden], vec![directions, second, hidden])
    } else {
        (vec![first, second, directions, hidden], vec![first, directions, hidden])
    };
    Ok(vec![Some(all), Some(last.clone()), Some(last)])
}

/// ONNX's own attention.
pub(crate) fn attention(op: &Op) -> Shapes {
    let heads = |name| count(op, name, 0).map(|heads| Some(heads).filter(|&heads| heads > 0));
    let rule =
        ops::Attention { q_num_heads: heads("q_num_heads")?, kv_num_heads: heads("kv_num_heads")? };
    ask(&rule, op, &shapes(6))
}

/// The older operator of the same name from `com.microsoft`, whose weights hold all three
/// projections.
pub(crate) fn packed_attention(op: &Op) -> Shapes {
    let &[batch, sequence, _] = &op.dims(0)?[..] else {
        return Err("its input does not have 3 dimensions".to_owned());
    };
    let hidden = match op.node.ints("qkv_hidden_sizes") {
        Some(sizes) => sizes.last().and_then(|&size| u64::try_from(size).ok()),
        None => op.dims(1)?.last().copied().flatten().map(|all| all / 3),
    };
    Ok(vec![Some(vec![batch, sequence, hidden])])
}

pub(crate) fn multi_head_attention(op: &Op) -> Shapes {
    ask(&ops::MultiHeadAttention { num_heads: count(op, "num_heads", 0)? }, op, &shapes(8))
}

pub(crate) fn group_query_attention(op: &Op) -> Shapes {
    let rule = ops::GroupQueryAttention {
        num_heads: count(op, "num_heads", 0)?,
        kv_num_heads: count(op, "kv_num_heads", 0)?,
    };
    ask(&rule, op, &shapes(5))
}

fn shapes(inputs: usize) -> Vec<Hand> {
    (0..inputs).map(Shape).collect()
}
