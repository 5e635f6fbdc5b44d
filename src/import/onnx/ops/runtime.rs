//! Shape rules of operators that only ONNX Runtime has.

use crate::import::onnx::{
    ops::{
        layout::one,
        op::{Op, Shapes, axis},
    },
    read::{element::bits, fact::Dims},
};

/// The last dimension holds two halves, one of which scales the other.
pub(crate) fn halves(op: &Op) -> Shapes {
    let mut dims = op.dims(0)?.clone();
    let last = dims.last_mut().ok_or("its input has no dimensions")?;
    *last = last.map(|size| size / 2);
    one(dims)
}

/// The distance of each row of one matrix to each of another.
pub(crate) fn distances(op: &Op) -> Shapes {
    let rows = |input| op.dims(input).map(|dims| dims.first().copied().flatten());
    one(vec![rows(0)?, rows(1)?])
}

/// One more dimension, of size 1.
pub(crate) fn expand_dims(op: &Op) -> Shapes {
    let mut dims = op.dims(0)?.clone();
    let at = *op.ints(1)?.first().ok_or("it has no axis")?;
    dims.insert(axis(at, dims.len() + 1)?, Some(1));
    one(dims)
}

/// Values for the words of all sequences, one after another.
pub(crate) fn packed_tokens(op: &Op) -> Shapes {
    let words = op.dims(0)?.first().copied().flatten();
    let given = op.node.ints("qkv_hidden_sizes").and_then(<[i64]>::last);
    let hidden = match given {
        Some(&size) => u64::try_from(size).ok(),
        None => op.dims(1)?.last().copied().flatten().map(|all| all / 3),
    };
    one(vec![words, hidden])
}

/// Overlapping parts of a dimension, their elements last.
pub(crate) fn unfold(op: &Op) -> Shapes {
    let mut dims = op.dims(0)?.clone();
    let number = |name, default| {
        let number = op.node.int(name).unwrap_or(default);
        u64::try_from(number).map_err(|_| format!("its {name} is {number}"))
    };
    let (size, step) = (number("size", 1)?, number("step", 1)?.max(1));
    let at = axis(op.node.int("dim").unwrap_or(-1), dims.len())?;
    dims[at] = dims[at].and_then(|whole| Some(whole.checked_sub(size)? / step + 1));
    dims.push(Some(size));
    one(dims)
}

/// A product with a matrix whose number of columns is an attribute.
pub(crate) fn matmul_bnb4(op: &Op) -> Shapes {
    let mut dims = op.dims(0)?.clone();
    let columns = op.node.int("N").and_then(|columns| u64::try_from(columns).ok());
    *dims.last_mut().ok_or("its input has no dimensions")? = columns;
    one(dims)
}

/// Rows of a matrix of quantized numbers. In bytes, several numbers lie side by side.
pub(crate) fn gather_quantized(op: &Op) -> Shapes {
    let mut dims = op.dims(0)?.clone();
    let element = op.input(0).and_then(|data| data.element).and_then(bits);
    let width = op.node.int("bits").and_then(|bits| u64::try_from(bits).ok()).unwrap_or(4);
    let each = match element {
        Some(8) => 8_u64.checked_div(width).unwrap_or(1),
        _ => 1,
    };
    if let Some(last) = dims.last_mut() {
        *last = last.and_then(|size| size.checked_mul(each));
    }
    let at = axis(op.node.int("gather_axis").unwrap_or(0), dims.len())?;
    let rest: Dims = dims.split_off(at + 1);
    dims.pop();
    one(dims.into_iter().chain(op.dims(1)?.iter().copied()).chain(rest).collect())
}
