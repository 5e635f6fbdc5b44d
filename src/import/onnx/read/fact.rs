//! The known facts about a tensor before the model runs.

use std::{borrow::Cow, rc::Rc};

use rten_onnx::onnx::DataType;

use crate::{Bytes, import::onnx::read::element, sequence::TensorType};

/// Sizes per dimension in elements, `None` where unknown.
pub(crate) type Dims = Vec<Option<u64>>;

/// The largest number of dimensions, above that of any framework. The shape of a tensor with more
/// counts as unknown.
pub(crate) const MAX_RANK: usize = 64;

/// The largest number of tensors in a sequence, above that of any real model. A longer one counts
/// as unknown.
pub(crate) const MAX_ITEMS: usize = 4_096;

/// Each tensor of a sequence begins at a multiple of a cache line, in bytes.
const ITEM_ALIGNMENT: Bytes = 64;

/// The tensors of a sequence.
pub(crate) type List = Rc<[Fact]>;

/// An element of a tensor that takes part in shape arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar {
    /// A whole number, or a truth value as 0 or 1.
    Int(i64),
    Float(f64),
    Unknown,
}

/// The known facts about a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fact {
    pub(crate) element: Option<DataType>,
    pub(crate) dims: Option<Dims>,
    /// The elements in row-major order, for small tensors that may be part of shape arithmetic.
    pub(crate) elements: Option<Vec<Scalar>>,
    /// True if it is the same in every run, so that it needs no memory in the pool.
    pub(crate) constant: bool,
    /// The file that holds its elements, if the model keeps them outside.
    pub(crate) external: Option<Rc<str>>,
    /// True if the model declares a size that nothing else confirms.
    pub(crate) declared: bool,
    /// The tensor in each of the [`SHAPE_SAMPLES`](crate::import::onnx::infer::open::SHAPE_SAMPLES), the largest
    /// first, if a size or an element is open until the run; otherwise empty.
    pub(crate) samples: Rc<[Sample]>,
    /// The tensors that it holds, if it is a sequence. A sequence has no type and no shape of its
    /// own.
    pub(crate) items: Option<List>,
}

/// A tensor whose open sizes have all been given a size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    pub(crate) sizes: Vec<u64>,
    pub(crate) elements: Option<Vec<Scalar>>,
}

impl Fact {
    /// The shape, if it is fully known.
    pub(crate) fn sizes(&self) -> Option<Vec<u64>> {
        self.dims.as_ref()?.iter().copied().collect()
    }

    /// The sizes per dimension that do not change from run to run: those that are known, and those that are
    /// equal in all shape samples.
    pub(crate) fn settled_dims(&self) -> Option<Cow<'_, [Option<u64>]>> {
        let Some(first) = self.samples.first() else {
            return self.dims.as_deref().map(Cow::Borrowed);
        };
        let settled = |at: usize, size: u64| {
            let known = self.dims.as_ref().and_then(|dims| *dims.get(at)?);
            let same = self.samples.iter().all(|sample| sample.sizes.get(at) == Some(&size));
            known.or(Some(size).filter(|_| same))
        };
        let has_rank = |sample: &Sample| sample.sizes.len() == first.sizes.len();
        let dims = first.sizes.iter().enumerate().map(|(at, &size)| settled(at, size));
        self.samples.iter().all(has_rank).then(|| dims.collect())
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

    /// Returns whether all elements are known.
    pub(crate) fn has_value(&self) -> bool {
        self.elements.as_ref().is_some_and(|elements| !elements.contains(&Scalar::Unknown))
    }

    /// Returns whether some size or element is known only at run time.
    pub(crate) fn is_open(&self) -> bool {
        !self.samples.is_empty() || self.holds(Self::is_open)
    }

    pub(crate) fn is_list(&self) -> bool {
        self.items.is_some()
    }

    /// Returns whether it is a sequence and the test holds for one of its tensors.
    fn holds(&self, test: impl Fn(&Self) -> bool) -> bool {
        self.items.iter().flat_map(|items| items.iter()).any(test)
    }

    /// The same facts without the elements, for a tensor whose elements change.
    pub(crate) fn without_value(&self) -> Self {
        let items = self.items.as_ref();
        let items = items.map(|items| items.iter().map(Self::without_value).collect());
        let samples = self.samples.iter().filter(|_| self.sizes().is_none());
        let samples = samples.map(|sample| Sample { elements: None, ..sample.clone() }).collect();
        Self { elements: None, constant: false, samples, items, ..self.clone() }
    }

    /// The largest possible shape, if it is fully known.
    pub(crate) fn largest(&self) -> Option<Vec<u64>> {
        self.sizes().or_else(|| Some(self.samples.first()?.sizes.clone()))
    }

    /// The element type and the largest shape; `None` for a sequence of tensors, or if the size is unknown.
    pub(crate) fn tensor_type(&self) -> Option<TensorType> {
        self.bytes()?;
        Some(TensorType::new(element::dtype(self.element?), self.largest()?))
    }

    /// Returns whether it may have fewer elements than in its largest shape.
    pub(crate) fn may_be_smaller(&self) -> bool {
        let counts = || self.samples.iter().map(|sample| count(&sample.sizes));
        counts().any(|of| Some(of) != counts().next()) || self.holds(Self::may_be_smaller)
    }

    /// The tensor in one of the shape samples, where nothing is open.
    pub(crate) fn in_sample(&self, nth: usize) -> Self {
        if let Some(items) = self.items.as_ref().filter(|_| self.is_open()) {
            let items = items.iter().map(|item| item.in_sample(nth)).collect();
            return Self { items: Some(items), ..self.clone() };
        }
        let Some(sample) = self.samples.get(nth) else { return self.clone() };
        Self {
            dims: Some(sample.sizes.iter().copied().map(Some).collect()),
            elements: sample.elements.clone(),
            samples: Rc::default(),
            ..self.clone()
        }
    }

    /// Returns whether its size in bytes is known: it is a string, which takes none, or has a type
    /// and a shape.
    pub(crate) fn has_size(&self) -> bool {
        self.element == Some(DataType::STRING) || self.bytes().is_some()
    }

    /// The largest size in bytes; `None` if the shape or the type is unknown or the size does not
    /// fit in 64 bits.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        match &self.items {
            Some(items) => Self::bytes_of_items(items),
            None => element::bytes(self.element?, count(&self.largest()?)?),
        }
    }

    /// The size in bytes of these tensors of a sequence, one after another. Strings take no memory
    /// in the pool.
    pub(crate) fn bytes_of_items(items: &[Self]) -> Option<Bytes> {
        let text = |item: &Self| item.element == Some(DataType::STRING);
        items.iter().filter(|item| !text(item)).try_fold(0, |sum: Bytes, item| {
            sum.checked_add(item.bytes()?.checked_next_multiple_of(ITEM_ALIGNMENT)?)
        })
    }
}

/// The number of elements of a shape; `None` if it does not fit in 64 bits.
pub(crate) fn count(sizes: &[u64]) -> Option<u64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))
}

/// Formats a shape, such as `[batch, 3, ?]`.
pub(crate) fn written(dims: &[Option<u64>]) -> String {
    let dims: Vec<String> =
        dims.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string())).collect();
    format!("[{}]", dims.join(", "))
}
