//! Shape rules of operators that form a whole layer: normalization, recurrence, attention.

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

/// Returns whether a `Dropout` trains, and so changes its input. Very old ones state it in an
/// attribute.
pub(crate) fn drops(op: &Op) -> bool {
    let attribute = op.opset < 7 && op.node.int("is_test").unwrap_or(0) == 0;
    let input = op.input(2).is_some_and(|training| training.int() != Some(0));
    attribute || input
}

/// Before this opset, a `BatchNormalization` trains unless it is marked as a test.
const TRAINS_UNLESS_TEST: i64 = 7;

/// Returns whether a `BatchNormalization` trains: it is marked so, or it outputs statistics.
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

/// ONNX's own attention. The fourth output are the scores, per head, query and key.
pub(crate) fn attention(op: &Op) -> Shapes {
    let heads = |name| count(op, name, 0).map(|heads| Some(heads).filter(|&heads| heads > 0));
    let query_heads = heads("q_num_heads")?;
    let rule = ops::Attention { q_num_heads: query_heads, kv_num_heads: heads("kv_num_heads")? };
    let mut shapes = ask(&rule, op, &shapes(6))?;
    if op.node.0.output.len() > 3 {
        shapes.resize(3, None);
        shapes.push(scores(op, query_heads.map(u64::from)));
    }
    Ok(shapes)
}

fn scores(op: &Op, heads: Option<u64>) -> Option<Dims> {
    let (batch, heads, queries) = match op.dims(0).ok()?[..] {
        [batch, heads, queries, _] => (batch, heads, queries),
        [batch, queries, _] => (batch, heads, queries),
        _ => return None,
    };
    let keys = op.dims(1).ok()?.iter().rev().nth(1).copied()?;
    let past = match op.input(4) {
        Some(past) => *past.dims.as_ref()?.get(2)?,
        None => Some(0),
    };
    let keys = keys.zip(past).and_then(|(keys, past)| keys.checked_add(past));
    Some(vec![batch, heads, queries, keys])
}

/// The outputs of all steps, and the state after the last.
pub(crate) fn linear_attention(op: &Op) -> Shapes {
    let (&[batch, steps, query], &[_, _, value]) = (&op.dims(0)?[..], &op.dims(2)?[..]) else {
        return Err("its inputs do not have 3 dimensions".to_owned());
    };
    let heads = u64::from(count(op, "q_num_heads", 0)?);
    let value_heads = u64::from(count(op, "kv_num_heads", 0)?);
    let key_size = query.and_then(|query| query.checked_div(heads));
    let value_size = value.and_then(|value| value.checked_div(value_heads));
    let hidden = value_size.and_then(|size| size.checked_mul(heads));
    let state = vec![batch, Some(value_heads), key_size, value_size];
    Ok(vec![Some(vec![batch, steps, hidden]), Some(state)])
}

/// The data, and the last elements that the next call needs.
pub(crate) fn convolution_with_state(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let &[batch, channels, _] = &dims[..] else {
        return Err("its input does not have 3 dimensions".to_owned());
    };
    let kernel = op.dims(1)?.last().copied().flatten();
    let state = vec![batch, channels, kernel.and_then(|kernel| kernel.checked_sub(1))];
    Ok(vec![Some(dims.clone()), Some(state)])
}

/// One number, or one for each label; a second output has the shape of the data.
pub(crate) fn loss(op: &Op) -> Shapes {
    let loss = match op.node.string("reduction").unwrap_or("mean") {
        "none" => op.dims(1)?.clone(),
        _ => Dims::new(),
    };
    Ok(vec![Some(loss), op.input(0).and_then(|data| data.dims.clone())])
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

/// The parts, as many as the string with the most has, and how many each string has.
pub(crate) fn split_strings(op: &Op) -> Shapes {
    let dims = op.dims(0)?;
    let parts = dims.iter().copied().chain([None]).collect();
    Ok(vec![Some(parts), Some(dims.clone())])
}

fn shapes(inputs: usize) -> Vec<Hand> {
    (0..inputs).map(Shape).collect()
}
