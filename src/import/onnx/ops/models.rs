//! Shape rules of operators that form a whole layer: normalization, recurrence, attention.

use rten_shape_inference::ops;

use crate::import::onnx::{
    ops::{
        op::{Op, Reason, Shapes, axis},
        symbolic::{
            Hand::{self, Shape},
            ask, count,
        },
    },
    read::fact::{Dims, Fact},
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
/// the batch comes first. The hidden size is a dimension of the recurrence weights.
pub(crate) fn recurrent(op: &Op, at: usize) -> Shapes {
    let &[first, second, _] = &op.dims(0)?[..] else {
        return Err("its input does not have 3 dimensions".to_owned());
    };
    let recurrence = op.dims(2)?;
    let (&[directions, ..], 3) = (&recurrence[..], recurrence.len()) else {
        return Err("its recurrence weights do not have 3 dimensions".to_owned());
    };
    let hidden = recurrence[at];
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
/// projections; and the keys and values, past and new.
pub(crate) fn packed_attention(op: &Op, past: usize) -> Shapes {
    let &[batch, sequence, _] = &op.dims(0)?[..] else {
        return Err("its input does not have 3 dimensions".to_owned());
    };
    let projected = op.dims(1)?.last().copied().flatten().map(|all| all / 3);
    let sizes = op.node.ints("qkv_hidden_sizes").unwrap_or(&[]);
    let given = |size: Option<&i64>| size.and_then(|&size| u64::try_from(size).ok());
    let hidden = given(sizes.last()).or(projected);
    let shares = op.node.int("past_present_share_buffer").unwrap_or(0) != 0;
    let cached = op.input(past).map(|past| past.dims.as_ref().and_then(|dims| *dims.get(3)?));
    let keys = match (cached, shares) {
        (Some(cached), true) => cached,
        (Some(cached), false) => cached.zip(sequence).and_then(|(past, new)| past.checked_add(new)),
        (None, _) => sequence,
    };
    let heads = u64::from(count(op, "num_heads", 0)?);
    let head = given(sizes.first()).or(projected).and_then(|all| all.checked_div(heads));
    let present = vec![Some(2), batch, Some(heads), keys, head];
    Ok(vec![Some(vec![batch, sequence, hidden]), Some(present)])
}

/// Queries, keys and values side by side, in heads, or packed; and the keys and values, past and new.
pub(crate) fn multi_head_attention(op: &Op, past: usize) -> Shapes {
    let heads = Some(u64::from(count(op, "num_heads", 0)?));
    let times = |a: Option<u64>, b: Option<u64>| a.zip(b).and_then(|(a, b)| a.checked_mul(b));
    let query = op.dims(0)?;
    let ([batch, steps, _] | [batch, steps, _, _, _]) = query[..] else {
        return Err("its input does not have 3 dimensions, or 5".to_owned());
    };
    // The hidden size of the values, and the number of new keys.
    let (hidden, keys) = match op.input(2).or(op.input(1)).map(|fact| &fact.dims) {
        Some(Some(dims)) => match dims[..] {
            [_, keys, hidden] => (hidden, keys),
            [_, heads, keys, head] | [_, keys, heads, _, head] => (times(heads, head), keys),
            _ => return Err("its values do not have 3 dimensions, 4 or 5".to_owned()),
        },
        Some(None) => return op.dims(2).map(|_| Vec::new()),
        None => match query[..] {
            [_, steps, heads, _, head] => (times(heads, head), steps),
            _ => (query.last().copied().flatten(), steps),
        },
    };
    let shares = op.node.int("past_present_share_buffer").unwrap_or(0) != 0;
    let past = op.input(past).map(|past| past.dims.as_ref().and_then(|dims| *dims.get(2)?));
    let keys = match past {
        Some(past) if shares => past,
        Some(past) => keys.zip(past).and_then(|(keys, past)| keys.checked_add(past)),
        None => keys,
    };
    let query_hidden = if query.len() == 3 { query[2] } else { hidden };
    let per_head = |hidden: Option<u64>| hidden.zip(heads).and_then(|(all, n)| all.checked_div(n));
    let present = |hidden| Some(vec![batch, heads, keys, per_head(hidden)]);
    let output = Some(vec![batch, steps, hidden]);
    Ok(vec![output, present(query_hidden), present(hidden)])
}

/// Queries, and the keys and values, past and new. A cache grows by the new keys, or it has room for all keys,
/// whose number is an input, and keeps its size.
pub(crate) fn group_query_attention(op: &Op) -> Shapes {
    let (past, new) = keys_of_cache(op)?;
    let total = op.input(6).and_then(Fact::int).and_then(|total| u64::try_from(total).ok());
    let keys = match (past, total) {
        (Some(0), _) => new,
        (past, Some(total)) => past.map(|past| past.max(total)),
        _ => None,
    };
    with_cache(op, keys)
}

/// The largest sizes of a [`group_query_attention`], with a cache that grows.
pub(crate) fn group_query_attention_at_most(op: &Op) -> Shapes {
    let (past, new) = keys_of_cache(op)?;
    with_cache(op, past.zip(new).and_then(|(past, new)| past.checked_add(new)))
}

/// The number of cached keys, and of new ones.
fn keys_of_cache(op: &Op) -> Result<(Option<u64>, Option<u64>), Reason> {
    let past = match op.input(3) {
        Some(past) => past.dims.as_ref().and_then(|dims| *dims.get(2)?),
        None => Some(0),
    };
    Ok((past, op.dims(0)?.get(1).copied().flatten()))
}

fn with_cache(op: &Op, keys: Option<u64>) -> Shapes {
    let &[batch, steps, width] = &op.dims(0)?[..] else {
        return Err("its input does not have 3 dimensions".to_owned());
    };
    let number = |name| count(op, name, 0).map(u64::from);
    let (heads, key_heads) = (number("num_heads")?, number("kv_num_heads")?);
    let packed = op.input(1).is_none();
    let in_first = if packed { heads.saturating_add(2 * key_heads) } else { heads };
    let head = width.and_then(|width| width.checked_div(in_first));
    let hidden = head.and_then(|head| head.checked_mul(heads));
    // A quantized cache may pack its elements.
    let cached = op.input(3).and_then(|past| past.dims.as_ref()).and_then(|dims| *dims.get(3)?);
    let present = Some(vec![batch, Some(key_heads), keys, cached.or(head)]);
    Ok(vec![Some(vec![batch, steps, hidden]), present.clone(), present])
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
