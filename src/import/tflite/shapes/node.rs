//! An operator with what is known about its inputs: shapes, and the values of small integers.

use std::rc::Rc;

use crate::import::tflite::ops::Op;

/// The knowledge about a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fact {
    /// The sizes, if all of them are known.
    pub(super) shape: Option<Rc<[u64]>>,
    /// True if a run may find smaller sizes.
    pub(super) is_bound: bool,
    /// The elements of a small tensor of integers, such as a shape.
    pub(super) values: Option<Rc<[i64]>>,
}

impl Fact {
    pub(super) fn of_shape(shape: &[u64]) -> Self {
        Self { shape: Some(shape.into()), ..Self::default() }
    }
}

/// The sizes of an output; `None` if they depend on values that are not known. A reason why the
/// operator cannot run is an error.
pub(super) type Shape = Result<Option<Vec<u64>>, String>;

/// The most elements of a tensor whose values are followed.
pub(super) const MAX_VALUES: usize = 64;

/// An operator and the facts about all tensors of its subgraph.
#[derive(Clone, Copy)]
pub(super) struct Node<'n, 'm, 'a> {
    pub(super) op: &'n Op<'m, 'a>,
    pub(super) facts: &'n [Fact],
}

impl<'n> Node<'n, '_, '_> {
    pub(super) fn fact(&self, input: usize) -> Option<&'n Fact> {
        let tensor = self.op.operator.inputs.get(input).copied().flatten()?;
        self.facts.get(tensor)
    }

    /// The shape of an input, if the input is there and its shape is known.
    pub(super) fn shape(&self, input: usize) -> Option<&'n [u64]> {
        self.fact(input)?.shape.as_deref()
    }

    /// The values of an input, if they are known.
    pub(super) fn values(&self, input: usize) -> Option<&'n [i64]> {
        self.fact(input)?.values.as_deref()
    }

    /// The values of an input, all of which are sizes.
    pub(super) fn sizes(&self, input: usize) -> Result<Option<Vec<u64>>, String> {
        let Some(values) = self.values(input) else { return Ok(None) };
        let sizes = values.iter().map(|&value| u64::try_from(value)).collect::<Result<_, _>>();
        sizes.map(Some).map_err(|_| format!("it reads the sizes {values:?}, one of them negative"))
    }

    /// The number of outputs.
    pub(super) fn outputs(&self) -> usize {
        self.op.operator.outputs.len()
    }

    /// An integer of the options.
    pub(super) fn option(&self, slot: usize, default: i32) -> Result<i64, String> {
        self.op.operator.option(slot, default).map(i64::from).map_err(|error| error.to_string())
    }

    /// A truth value of the options.
    pub(super) fn is_set(&self, slot: usize) -> Result<bool, String> {
        self.byte(slot).map(|byte| byte != 0)
    }

    pub(super) fn byte(&self, slot: usize) -> Result<u8, String> {
        self.op.operator.option_byte(slot).map_err(|error| error.to_string())
    }

    /// A list of integers of the options.
    pub(super) fn list(&self, slot: usize) -> Result<Vec<i64>, String> {
        let list = self.op.operator.option_list(slot).map_err(|error| error.to_string())?;
        Ok(list.into_iter().map(i64::from).collect())
    }
}

/// The dimension that an axis names, counted from the end if it is negative.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, String> {
    let size = i64::try_from(rank).map_err(|_| "it has too many dimensions".to_owned())?;
    let found = if axis < 0 { axis.saturating_add(size) } else { axis };
    let found = usize::try_from(found).ok().filter(|&found| found < rank);
    found.ok_or_else(|| format!("the axis {axis} is not one of {rank} dimensions"))
}

/// The number of elements of a shape.
pub(super) fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |product, &size| product.saturating_mul(size))
}

/// A shape in messages: `1x8x4`, or `scalar`.
pub(super) fn written(shape: &[u64]) -> String {
    if shape.is_empty() {
        return "scalar".to_owned();
    }
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

/// The shape of operands that are combined element by element: sizes are equal, or one of them is 1.
pub(super) fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>, String> {
    let rank = a.len().max(b.len());
    let size =
        |of: &[u64], axis: usize| (axis + of.len()).checked_sub(rank).map_or(1, |axis| of[axis]);
    let sizes = (0..rank).map(|axis| match (size(a, axis), size(b, axis)) {
        (a, b) if a == b || b == 1 => Ok(a),
        (1, b) => Ok(b),
        _ => Err(format!("the shapes {} and {} do not broadcast", written(a), written(b))),
    });
    sizes.collect()
}
