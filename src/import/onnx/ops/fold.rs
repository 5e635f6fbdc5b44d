//! Values that are known before the model runs: the arithmetic of exporters on shapes.
//!
//! Small tensors of whole numbers, truth values and floats are computed element by element, in
//! checked 64-bit arithmetic. An element that cannot be computed is unknown on its own, so one size
//! of a shape can be known while another is not.

use rten_onnx::onnx::DataType;

use crate::import::onnx::{
    ops::{
        arithmetic::{Binary, MOD, Unary},
        layout,
        op::{Op, axis},
        slices,
    },
    read::{
        fact::{Fact, Scalar, count},
        stored::stored,
    },
};

/// The largest number of elements; more than any shape arithmetic has.
const MAX_ELEMENTS: u64 = 256;

/// The way in which the elements of an operator's first output follow from those of its inputs.
#[derive(Clone, Copy)]
pub(crate) enum Fold {
    /// Each follows from the element at the same place.
    Unary(Unary),
    /// Each follows from the elements at the same place in two or more inputs, from left to right.
    Binary(Binary),
    /// The only one follows from all elements of the first input.
    Reduce(Binary),
    /// All follow together from the operator, the output and its sizes.
    Elements(fn(&Op, &Fact, &[u64]) -> Option<Vec<Scalar>>),
    /// They are the parts of a list, one in each output.
    Parts,
}

impl Fold {
    /// Sets the elements of an operator's outputs, where they can be computed.
    pub(crate) fn apply(self, op: &Op, outputs: &mut [Fact]) {
        if layout::broadcasts_by_attribute(op) {
            return;
        }
        if let Self::Parts = self {
            fold_split(op, outputs);
            return;
        }
        let [first, ..] = outputs else { return };
        let Some(sizes) = first.sizes().filter(|s| count(s).is_some_and(|n| n <= MAX_ELEMENTS))
        else {
            return;
        };
        let length = count(&sizes).and_then(|count| usize::try_from(count).ok());
        let elements =
            self.elements(op, first, &sizes).filter(|elements| Some(elements.len()) == length);
        first.elements = first.element.zip(elements).map(|(element, elements)| {
            elements.into_iter().map(|scalar| in_range(scalar, element)).collect()
        });
    }

    fn elements(self, op: &Op, output: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
        match self {
            Self::Unary(function) => {
                Some(input(op, 0)?.iter().map(|&scalar| function.of(scalar)).collect())
            }
            Self::Binary(function) => all_inputs(op, sizes, function),
            Self::Reduce(function) if count(sizes) == Some(1) => {
                Some(vec![input(op, 0)?.iter().copied().reduce(|a, b| function.of(a, b))?])
            }
            Self::Elements(compute) => compute(op, output, sizes),
            Self::Reduce(_) | Self::Parts => None,
        }
    }
}

/// Converts an element to the range of its type. Whole numbers that wrap, and types that no shape
/// arithmetic uses, are unknown.
#[allow(clippy::cast_possible_truncation, reason = "floats are rounded to their type")]
fn in_range(scalar: Scalar, element: DataType) -> Scalar {
    match (scalar, element) {
        (Scalar::Int(_), DataType::INT64) | (Scalar::Int(0 | 1), DataType::BOOL) => scalar,
        (Scalar::Int(value), DataType::INT32) if i32::try_from(value).is_ok() => scalar,
        (Scalar::Float(value), DataType::FLOAT) if (value as f32).is_finite() => {
            Scalar::Float((value as f32).into())
        }
        (Scalar::Float(value), DataType::DOUBLE) if value.is_finite() => scalar,
        _ => Scalar::Unknown,
    }
}

fn input<'f>(op: &Op<'_, 'f>, index: usize) -> Option<&'f Vec<Scalar>> {
    op.input(index)?.elements.as_ref()
}

fn size(size: Option<u64>) -> Scalar {
    size.and_then(|size| i64::try_from(size).ok()).map_or(Scalar::Unknown, Scalar::Int)
}

/// Returns the elements of the first input, in the same order.
pub(crate) fn same(op: &Op, _: &Fact, _: &[u64]) -> Option<Vec<Scalar>> {
    input(op, 0).cloned()
}

pub(crate) fn shape(op: &Op, _: &Fact, _: &[u64]) -> Option<Vec<Scalar>> {
    let dims = op.dims(0).ok()?.get(layout::shape_range(op).ok()?)?;
    Some(dims.iter().map(|&dim| size(dim)).collect())
}

pub(crate) fn number_of_elements(op: &Op, _: &Fact, _: &[u64]) -> Option<Vec<Scalar>> {
    Some(vec![size(op.input(0)?.sizes().as_deref().and_then(count))])
}

pub(crate) fn cast_all(op: &Op, output: &Fact, _: &[u64]) -> Option<Vec<Scalar>> {
    Some(input(op, 0)?.iter().map(|&scalar| cast(scalar, output.element)).collect())
}

pub(crate) fn concat(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    if sizes.len() != 1 {
        return None;
    }
    let parts: Option<Vec<&Vec<Scalar>>> =
        (0..op.inputs.len()).map(|index| input(op, index)).collect();
    Some(parts?.into_iter().flatten().copied().collect())
}

pub(crate) fn constant_of_shape(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    let value = match op.node.tensor("value") {
        Some(tensor) => *stored(tensor).elements?.first()?,
        None => Scalar::Float(0.0),
    };
    Some(vec![value; usize::try_from(count(sizes)?).ok()?])
}

pub(crate) fn expand(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    broadcast(op, sizes, &[0], |scalars| scalars[0])
}

/// With `fmod` the result has the sign of the dividend, which no shape arithmetic needs.
pub(crate) fn modulo(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    let fmod = op.node.int("fmod").unwrap_or(0) != 0;
    if fmod { None } else { all_inputs(op, sizes, MOD) }
}

pub(crate) fn choose(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    broadcast(op, sizes, &[0, 1, 2], |scalars| match scalars {
        [Scalar::Int(0), _, otherwise] => *otherwise,
        [Scalar::Int(_), chosen, _] => *chosen,
        _ => Scalar::Unknown,
    })
}

fn all_inputs(op: &Op, sizes: &[u64], function: Binary) -> Option<Vec<Scalar>> {
    let all: Vec<usize> = (0..op.inputs.len()).collect();
    broadcast(op, sizes, &all, |scalars| {
        scalars.iter().copied().reduce(|a, b| function.of(a, b)).unwrap_or(Scalar::Unknown)
    })
}

/// Returns elements at whole indices along the only dimension of the data.
pub(crate) fn gather(op: &Op, _: &Fact, _: &[u64]) -> Option<Vec<Scalar>> {
    let data = input(op, 0)?;
    if op.dims(0).ok()?.len() != 1 {
        return None;
    }
    let pick = |&index: &i64| Some(data[axis(index, data.len()).ok()?]);
    op.ints(1).ok()?.iter().map(pick).collect()
}

pub(crate) fn slice(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    let cuts = slices::slice_cuts(op, op.dims(0).ok()?).ok()?;
    let cuts: Vec<slices::Cut> = cuts.into_iter().collect::<Option<_>>()?;
    pick(op, sizes, |index| {
        let at = |(cut, &index): (&slices::Cut, &u64)| {
            let ahead = cut.step.checked_mul(i64::try_from(index).ok()?)?;
            cut.start.checked_add_signed(ahead)
        };
        cuts.iter().zip(index).map(at).collect()
    })
}

pub(crate) fn transpose(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    let permutation = layout::permutation(op, sizes.len()).ok()?;
    pick(op, sizes, |index| {
        let mut source = vec![0; index.len()];
        for (&from, &at) in permutation.iter().zip(index) {
            source[from] = at;
        }
        Some(source)
    })
}

/// Takes each element of the output from an index in the first input.
fn pick(
    op: &Op,
    sizes: &[u64],
    source: impl Fn(&[u64]) -> Option<Vec<u64>>,
) -> Option<Vec<Scalar>> {
    let (data, own) = (input(op, 0)?, op.input(0)?.sizes()?);
    let element = |place: u64| {
        let mut rest = place;
        let mut index = vec![0; sizes.len()];
        for (at, &size) in index.iter_mut().zip(sizes).rev() {
            *at = rest.checked_rem(size)?;
            rest /= size;
        }
        let row_major = source(&index)?.iter().zip(&own).try_fold(0_u64, |place, (&at, &size)| {
            place.checked_mul(size)?.checked_add(at).filter(|_| at < size)
        });
        data.get(usize::try_from(row_major?).ok()?).copied()
    };
    (0..count(sizes)?).map(element).collect()
}

fn fold_split(op: &Op, outputs: &mut [Fact]) {
    let Some(data) = input(op, 0).filter(|_| op.dims(0).is_ok_and(|dims| dims.len() == 1)) else {
        return;
    };
    let mut rest = &data[..];
    for output in outputs {
        let length =
            output.sizes().as_deref().and_then(count).and_then(|n| usize::try_from(n).ok());
        let Some((part, others)) = length.and_then(|length| rest.split_at_checked(length)) else {
            return;
        };
        output.elements = Some(part.to_vec());
        rest = others;
    }
}

pub(crate) fn range(op: &Op, _: &Fact, sizes: &[u64]) -> Option<Vec<Scalar>> {
    let first = |index| input(op, index).and_then(|elements| elements.first().copied());
    let number = |n: u64| match (first(0), first(2), i64::try_from(n)) {
        (Some(Scalar::Int(start)), Some(Scalar::Int(delta)), Ok(n)) => {
            delta.checked_mul(n).and_then(|ahead| start.checked_add(ahead))
        }
        _ => None,
    };
    Some((0..count(sizes)?).map(|n| number(n).map_or(Scalar::Unknown, Scalar::Int)).collect())
}

/// Computes each element of the output from those at the same place in some inputs.
fn broadcast(
    op: &Op,
    sizes: &[u64],
    inputs: &[usize],
    compute: impl Fn(&[Scalar]) -> Scalar,
) -> Option<Vec<Scalar>> {
    let unknown = &vec![Scalar::Unknown];
    let operands: Option<Vec<(&Vec<Scalar>, Vec<u64>)>> = inputs
        .iter()
        .map(|&index| match input(op, index) {
            Some(elements) => Some((elements, op.input(index)?.sizes()?)),
            None => Some((unknown, Vec::new())),
        })
        .collect();
    let operands = operands?;
    if operands.iter().all(|(elements, _)| std::ptr::eq(*elements, unknown)) {
        return None;
    }
    let element = |place: u64| {
        let scalars: Option<Vec<Scalar>> = operands
            .iter()
            .map(|(elements, own)| {
                elements.get(usize::try_from(source(place, sizes, own)?).ok()?).copied()
            })
            .collect();
        scalars.map(|scalars| compute(&scalars))
    };
    (0..count(sizes)?).map(element).collect()
}

/// Returns the place in a tensor of shape `own` that is broadcast to `place` in one of shape
/// `sizes`.
fn source(mut place: u64, sizes: &[u64], own: &[u64]) -> Option<u64> {
    let mut result = 0;
    let mut stride = 1_u64;
    for (dim, &size) in sizes.iter().rev().enumerate() {
        let index = place.checked_rem(size)?;
        place /= size;
        if let Some(&own_size) = own.iter().rev().nth(dim) {
            result += if own_size == 1 { 0 } else { index * stride };
            stride = stride.checked_mul(own_size)?;
        }
    }
    Some(result)
}

#[allow(clippy::cast_precision_loss, reason = "as the frameworks do")]
fn cast(scalar: Scalar, to: Option<DataType>) -> Scalar {
    match (scalar, to) {
        (Scalar::Int(value), Some(DataType::BOOL)) => Scalar::Int((value != 0).into()),
        (Scalar::Int(value), Some(DataType::INT64)) => Scalar::Int(value),
        (Scalar::Int(value), Some(DataType::INT32)) if i32::try_from(value).is_ok() => {
            Scalar::Int(value)
        }
        (Scalar::Int(value), Some(DataType::FLOAT)) => Scalar::Float((value as f32).into()),
        (Scalar::Int(value), Some(DataType::DOUBLE)) => Scalar::Float(value as f64),
        (Scalar::Float(value), Some(DataType::FLOAT | DataType::DOUBLE)) => Scalar::Float(value),
        (Scalar::Float(value), Some(DataType::INT32 | DataType::INT64)) => whole(value.trunc()),
        _ => Scalar::Unknown,
    }
}

/// Returns a float without a fraction as a whole number, if floats are exact there and it fits in
/// 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "checked to be in range")]
fn whole(value: f64) -> Scalar {
    let exact = -2_147_483_648.0..=2_147_483_647.0;
    if exact.contains(&value) { Scalar::Int(value as i64) } else { Scalar::Unknown }
}
