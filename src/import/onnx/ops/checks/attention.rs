//! Sizes of attention, and of the embedding of positions.

use crate::import::onnx::ops::{
    checks::{
        Checked, DIVIDES, Place, RANK, Size, WITHIN, elements, equal, has_rank, has_rank_of,
        require, signature,
    },
    op::Op,
};

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
pub(super) fn several(first: Option<Size>, second: Option<Size>) -> Checked {
    let (Some(first), Some(second)) = (first, second.filter(|size| size.number > 0)) else {
        return Ok(());
    };
    require(first.number % second.number == 0, first, second, DIVIDES)
}

/// The older operator of the same name from `com.microsoft`.
pub(crate) fn packed_attention(op: &Op) -> Checked {
    signature(op, "B S I, I J, J", &[])?;
    let heads = positive(op, "num_heads");
    let all = op.dim(1, 1);
    // The keys are as wide as the queries.
    let keys = if let Some(sizes) = op.numbers("qkv_hidden_sizes", usize::MAX) {
        sizes.iter().try_for_each(|&size| several(Some(size), heads))?;
        let sum = sizes.iter().map(|size| size.number).sum::<i128>();
        equal(all, Some(Size::new(Place::Other("the sum of its qkv_hidden_sizes"), sum)))?;
        sizes.first().copied()
    } else {
        several(all, Some(Size::new(Place::Other("the number of its projections"), 3)))?;
        all.map(|all| Size { number: all.number / 3, ..all })
    };
    several(keys, heads)?;
    let head = keys.zip(heads).map(|(keys, heads)| keys.number / heads.number);
    let head = head.map(|head| Size::new(Place::Other("the width of a head"), head));
    signature(op, "B _ _, -, -, -, 2 B N _ D", &[('N', heads), ('D', head)])?;
    mask(op)?;
    let (Some(keys), Some(bias)) = (total(op, 4, 3), op.dim(5, 3)) else { return Ok(()) };
    equal(Some(bias), Some(keys))
}

/// The number of keys: the new ones, and those of a cache that is an input, with its dimension of them.
fn total(op: &Op, cache: usize, at: usize) -> Option<Size> {
    let past = match op.input(cache) {
        Some(_) => op.dim(cache, at)?.number,
        None => 0,
    };
    let keys = Place::Other("the number of keys, past and new,");
    Some(Size::new(keys, past + op.dim(0, 1)?.number))
}

/// The mask: lengths per sequence, or a number per key, or one per query and key.
fn mask(op: &Op) -> Checked {
    let (Some(rank), Some(batch)) = (op.rank(3), op.dim(0, 0)) else { return Ok(()) };
    match rank.number {
        1 => {
            let Some(length) = op.dim(3, 0) else { return Ok(()) };
            let lengths = [batch.number, 2 * batch.number, 3 * batch.number + 2];
            let rule = "one, two or three numbers for each sequence are needed";
            require(lengths.contains(&length.number), batch, length, rule)
        }
        2 if op.dim(3, 1).is_some_and(|size| size.number == 1) => Ok(()),
        2 => {
            equal(Some(batch), op.dim(3, 0))?;
            equal(total(op, 4, 3), op.dim(3, 1))
        }
        3 => {
            signature(op, "B S _, -, -, B S _", &[])?;
            equal(total(op, 4, 3), op.dim(3, 2))
        }
        _ => Ok(()),
    }
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
    signature(op, "B S H, B L H, B L V", &[])?;
    if let (Some(query), Some(value)) = (op.dim(0, 2), op.dim(2, 2)) {
        let needed = Place::Other("the sum of the three sizes that it is added to");
        equal(op.dim(3, 0), Some(Size::new(needed, 2 * query.number + value.number)))?;
    }
    let cached = op.input(6).map(|_| op.dim(6, 2).map(|size| size.number));
    let (Some(new), Some(past)) = (op.dim(1, 1), cached.unwrap_or(Some(0))) else { return Ok(()) };
    let keys = Place::Other("the number of keys, past and new,");
    equal(op.dim(5, 3), Some(Size::new(keys, past + new.number)))
}

/// Several queries share a key. Without keys, all three are packed into the first input.
pub(crate) fn group_query_attention(op: &Op) -> Checked {
    let (heads, keys) = (positive(op, "num_heads"), positive(op, "kv_num_heads"));
    several(heads, keys)?;
    signature(op, "B S _, B S K, B S K, B M P _, B M P _, -, -", &[('M', keys)])?;
    let (Some(heads), Some(keys)) = (heads, keys) else { return Ok(()) };
    let in_first = if op.input(1).is_some() {
        heads
    } else {
        let all = heads.number + 2 * keys.number;
        Size::new(Place::Other("the number of heads of queries, keys and values"), all)
    };
    several(op.dim(0, 2), Some(in_first))?;
    several(op.dim(1, 2), Some(keys))?;
    let width = |size: Option<Size>, of: Size| {
        let place = Place::Other("the width of a head");
        Some(Size::new(place, size?.number / of.number))
    };
    let head = width(op.dim(0, 2), in_first);
    if let Some(hidden) = op.dim(1, 2) {
        let rule = "each head of the queries must be as wide as one of the keys";
        let (own, Some(head)) = (hidden.number / keys.number, head) else { return Ok(()) };
        require(own == head.number, head, hidden, rule)?;
    }
    // A quantized cache may pack its elements.
    let element = |input| op.input(input).and_then(|fact| fact.element);
    if element(0) == element(3) {
        equal(head, op.dim(3, 3))?;
    }
    let total = op.numbers("", 6).and_then(|total| total.first().copied());
    if let (Some(total), Some(past), Some(new)) = (total, op.dim(3, 2), op.dim(0, 1)) {
        // The cache grows by the new keys, or has room for them already.
        let fits = total.number == past.number + new.number || total.number <= past.number;
        let rule = "it must be the cached and the new keys together, or not more than the second";
        require(fits, total, past, rule)?;
    }
    equal(op.dim(0, 0), op.count(5))?;
    if op.node.int("do_rotary").unwrap_or(0) == 0 {
        return Ok(());
    }
    elements::alike(op, 7, 8)?;
    if let (Some(total), Some(cached)) = (total, op.dim(7, 0)) {
        require(total.number <= cached.number, total, cached, WITHIN)?;
    }
    let (Some(half), Some(head)) = (op.dim(7, 1), head) else { return Ok(()) };
    let rule = "the first must not be more than half of the second";
    require(2 * half.number <= head.number, half, head, rule)
}

pub(crate) fn linear_attention(op: &Op) -> Checked {
    signature(op, "B T _, B T _, B T _", &[])
}

/// An attribute that is a positive number.
fn positive(op: &Op, name: &'static str) -> Option<Size> {
    op.attribute(name).filter(|number| number.number > 0)
}

/// The sine and cosine of each position, for half of the elements of a head. `com.microsoft` has the positions
/// as the second input, ONNX as the fourth.
pub(crate) fn rotary_embedding(op: &Op) -> Checked {
    let is_standard = op.node.domain() != "com.microsoft";
    let [positions, cosine, sine] = if is_standard { [3, 1, 2] } else { [1, 2, 3] };
    has_rank_of(op, 0, 3)?;
    elements::alike(op, cosine, sine)?;
    let Some(rank) = op.rank(0) else { return Ok(()) };
    let steps = op.dim(0, if rank.number == 4 { 2 } else { 1 });
    let is_given = op.input(positions).is_some();
    if let Some(cached) = op.rank(cosine) {
        let needed = Size::needed(if is_given { 2 } else { 3 });
        require(cached.number == needed.number, cached, needed, RANK)?;
    }
    let is_start = !is_standard && op.count(positions).is_some_and(|count| count.number == 1);
    if is_given && !is_start {
        has_rank(op, positions, 2)?;
        equal(op.dim(0, 0), op.dim(positions, 0))?;
        equal(steps, op.dim(positions, 1))?;
    }
    if is_given {
        if let (Some(steps), Some(cached)) = (steps.filter(|_| !is_standard), op.dim(cosine, 0)) {
            require(steps.number <= cached.number, steps, cached, WITHIN)?;
        }
    } else {
        equal(op.dim(0, 0), op.dim(cosine, 0))?;
        equal(steps, op.dim(cosine, 1))?;
    }
    rotated(op, rank, op.sizes(cosine).last().copied().flatten())
}

/// Compares the rotated part of a head with the cached angles, one for two elements.
fn rotated(op: &Op, rank: Size, half: Option<Size>) -> Checked {
    let heads = positive(op, "num_heads");
    let head = match (op.sizes(0).last().copied().flatten(), heads) {
        (Some(head), _) if rank.number == 4 => Some(head),
        (Some(hidden), Some(heads)) => {
            several(Some(hidden), Some(heads))?;
            Some(Size { number: hidden.number / heads.number, ..hidden })
        }
        _ => None,
    };
    let part = positive(op, "rotary_embedding_dim");
    if let (Some(part), Some(head)) = (part, head) {
        require(part.number <= head.number, part, head, WITHIN)?;
    }
    if let (Some(whole), Some(half)) = (part.or(head), half) {
        let rule = "a head, or the rotated part of it, must be twice the second";
        return require(whole.number == 2 * half.number, whole, half, rule);
    }
    if let (Some(hidden), Some(half)) = (op.dim(0, 2).filter(|_| part.is_none()), half) {
        let rule = "the first must be a multiple of twice the second";
        return require(
            half.number > 0 && hidden.number % (2 * half.number) == 0,
            hidden,
            half,
            rule,
        );
    }
    Ok(())
}
