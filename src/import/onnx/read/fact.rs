//! What is known of a tensor before the model runs.

use rten_onnx::onnx::DataType;

use crate::{Bytes, import::onnx::read::element};

/// Sizes per dimension in elements, `None` where unknown.
pub(crate) type Dims = Vec<Option<u64>>;

/// More dimensions than any framework runs; a tensor with more counts as unknown.
pub(crate) const MAX_RANK: usize = 64;

/// An element of a tensor that takes part in shape arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar {
    /// A whole number, or a truth value as 0 or 1.
    Int(i64),
    Float(f64),
    Unknown,
}

/// What is known of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fact {
    pub(crate) element: Option<DataType>,
    pub(crate) dims: Option<Dims>,
    /// The elements in row-major order, for small tensors that may be part of shape arithmetic.
    pub(crate) elements: Option<Vec<Scalar>>,
    /// The same in every run, so it needs no memory in the pool.
    pub(crate) constant: bool,
}

impl Fact {
    /// The shape, if it is known in full.
    pub(crate) fn sizes(&self) -> Option<Vec<u64>> {
        self.dims.as_ref()?.iter().copied().collect()
    }

    /// The elements as whole numbers, if all are known.
    pub(crate) fn ints(&self) -> Option<Vec<i64>> {
        let int = |scalar: &Scalar| match scalar {
            Scalar::Int(value) => Some(*value),
            Scalar::Float(_) | Scalar::Unknown => None,
        };
        self.elements.as_ref()?.iter().map(int).collect()
    }

    /// The only element, as a whole number.
    pub(crate) fn int(&self) -> Option<i64> {
        match self.elements.as_deref()? {
            [Scalar::Int(value)] => Some(*value),
            _ => None,
        }
    }

    /// All elements are known.
    pub(crate) fn has_value(&self) -> bool {
        self.elements.as_ref().is_some_and(|elements| !elements.contains(&Scalar::Unknown))
    }

    /// The size in bytes; `None` if the shape or the type is unknown or it does not fit 64 bits.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        element::bytes(self.element?, count(&self.sizes()?)?)
    }
}

/// The number of elements of a shape; `None` if it does not fit 64 bits.
pub(crate) fn count(sizes: &[u64]) -> Option<u64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))
}

/// A shape as people write it: `[batch, 3, ?]`.
pub(crate) fn written(dims: &[Option<u64>]) -> String {
    let dims: Vec<String> =
        dims.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string())).collect();
    format!("[{}]", dims.join(", "))
}
