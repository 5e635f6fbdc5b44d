//! Values that are known before the model runs: the arithmetic that exporters do on shapes.
//!
//! Small tensors of whole numbers, truth values and floats are computed element by element, in
//! checked 64-bit arithmetic. An element that cannot be computed is unknown by itself; so one size
//! of a shape can be known while another is not.

use rten_onnx::onnx::DataType;

use crate::import::onnx::{
    infer::layout,
    infer::slices,
    read::fact::{Fact, Scalar, count},
    read::model,
    read::op::{Op, axis},
};

/// More elements than any shape arithmetic has.
const MAX_ELEMENTS: u64 = 256;

/// Gives the outputs of an operator their elements, where these can be computed.
pub(crate) fn fold(op: &Op, outputs: &mut [Fact]) {
    if !op.node.is_known() || layout::broadcasts_by_attribute(op) {
        return;
    }
    if op.node.kind() == "Split" {
        fold_split(op, outputs);
        return;
    }
    let [first, ..] = outputs else { return };
    let Some(sizes) = first.sizes().filter(|s| count(s).is_some_and(|n| n <= MAX_ELEMENTS)) else {
        return;
    };
    let length = count(&sizes).and_then(|count| usize::try_from(count).ok());
    let elements =
        elements(op, first.element, &sizes).filter(|elements| Some(elements.len()) == length);
    first.elements = first.element.zip(elements).map(|(element, elements)| {
        elements.into_iter().map(|scalar| in_range(scalar, element)).collect()
    });
}

/// An element as its type can hold it. Whole numbers that wrap, and types in which no shapes are
/// computed, are unknown.
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

fn elements(op: &Op, element: Option<DataType>, sizes: &[u64]) -> Option<Vec<Scalar>> {
    match op.node.kind() {
        "Shape" => {
            let dims = op.dims(0).ok()?.get(layout::shape_range(op).ok()?)?;
            Some(dims.iter().map(|&dim| size(dim)).collect())
        }
        "Size" => Some(vec![size(op.input(0)?.sizes().as_deref().and_then(count))]),
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => input(op, 0).cloned(),
        "Cast" | "CastLike" => {
            Some(input(op, 0)?.iter().map(|&scalar| cast(scalar, element)).collect())
        }
        "Concat" if sizes.len() == 1 => {
            let parts: Option<Vec<&Vec<Scalar>>> =
                (0..op.inputs.len()).map(|index| input(op, index)).collect();
            Some(parts?.into_iter().flatten().copied().collect())
        }
        "Gather" => gather(op),
        "Slice" if sizes.len() == 1 => slice(op),
        "Transpose" if sizes.len() <= 1 => input(op, 0).cloned(),
        "Range" => Some(range(op, count(sizes)?)),
        "ConstantOfShape" => {
            let value = match op.node.tensor("value") {
                Some(tensor) => *model::stored(tensor).elements?.first()?,
                None => Scalar::Float(0.0),
            };
            Some(vec![value; usize::try_from(count(sizes)?).ok()?])
        }
        "Expand" => broadcast(op, sizes, &[0], |scalars| scalars[0]),
        "ReduceProd" | "ReduceSum" | "ReduceMin" | "ReduceMax" if count(sizes) == Some(1) => {
            let combine = match op.node.kind() {
                "ReduceProd" => "Mul",
                "ReduceSum" => "Add",
                "ReduceMin" => "Min",
                _ => "Max",
            };
            let combined = input(op, 0)?.iter().copied().reduce(|a, b| nary(combine, &[a, b]));
            Some(vec![combined?])
        }
        kind @ ("Neg" | "Abs" | "Not" | "Floor" | "Ceil" | "Round" | "Sqrt" | "Sign") => {
            Some(input(op, 0)?.iter().map(|&scalar| unary(kind, scalar)).collect())
        }
        kind @ ("Add" | "Sub" | "Mul" | "Div" | "Mod" | "Min" | "Max" | "Pow" | "Equal"
        | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Xor"
        | "Where") => {
            if kind == "Mod" && op.node.int("fmod").unwrap_or(0) != 0 {
                return None;
            }
            let all: Vec<usize> = (0..op.inputs.len()).collect();
            broadcast(op, sizes, &all, |scalars| nary(kind, scalars))
        }
        _ => None,
    }
}

fn input<'f>(op: &Op<'_, 'f>, index: usize) -> Option<&'f Vec<Scalar>> {
    op.input(index)?.elements.as_ref()
}

fn size(size: Option<u64>) -> Scalar {
    size.and_then(|size| i64::try_from(size).ok()).map_or(Scalar::Unknown, Scalar::Int)
}

fn truth(value: bool) -> Scalar {
    Scalar::Int(value.into())
}

/// Elements at whole indices along the only dimension of the data.
fn gather(op: &Op) -> Option<Vec<Scalar>> {
    let data = input(op, 0)?;
    if op.dims(0).ok()?.len() != 1 {
        return None;
    }
    let pick = |&index: &i64| Some(data[axis(index, data.len()).ok()?]);
    op.ints(1).ok()?.iter().map(pick).collect()
}

fn slice(op: &Op) -> Option<Vec<Scalar>> {
    let data = input(op, 0)?;
    let [Some(cut)] = slices::slice_cuts(op, op.dims(0).ok()?).ok()?[..] else { return None };
    let index =
        |n: u64| i64::try_from(cut.start).ok()?.checked_add(cut.step * i64::try_from(n).ok()?);
    let pick = |n| data.get(usize::try_from(index(n)?).ok()?).copied();
    (0..cut.count).map(pick).collect()
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

fn range(op: &Op, count: u64) -> Vec<Scalar> {
    let first = |index| input(op, index).and_then(|elements| elements.first().copied());
    let number = |n: u64| match (first(0), first(2), i64::try_from(n)) {
        (Some(Scalar::Int(start)), Some(Scalar::Int(delta)), Ok(n)) => {
            delta.checked_mul(n).and_then(|ahead| start.checked_add(ahead))
        }
        _ => None,
    };
    (0..count).map(|n| number(n).map_or(Scalar::Unknown, Scalar::Int)).collect()
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

/// The place in a tensor of shape `own` that is broadcast to `place` in one of shape `sizes`.
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
        (Scalar::Int(value), Some(DataType::BOOL)) => truth(value != 0),
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

/// A float without fraction as a whole number, if floats are exact there and it fits 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "checked to be in range")]
fn whole(value: f64) -> Scalar {
    let exact = -2_147_483_648.0..=2_147_483_647.0;
    if exact.contains(&value) { Scalar::Int(value as i64) } else { Scalar::Unknown }
}

fn unary(kind: &str, scalar: Scalar) -> Scalar {
    let int = match (kind, scalar) {
        ("Neg", Scalar::Int(a)) => a.checked_neg(),
        ("Abs", Scalar::Int(a)) => a.checked_abs(),
        ("Sign", Scalar::Int(a)) => Some(a.signum()),
        ("Not", Scalar::Int(a)) => Some((a == 0).into()),
        _ => None,
    };
    match (kind, scalar) {
        ("Neg", Scalar::Float(a)) => Scalar::Float(-a),
        ("Abs", Scalar::Float(a)) => Scalar::Float(a.abs()),
        ("Floor", Scalar::Float(a)) => Scalar::Float(a.floor()),
        ("Ceil", Scalar::Float(a)) => Scalar::Float(a.ceil()),
        ("Round", Scalar::Float(a)) => Scalar::Float(a.round_ties_even()),
        ("Sqrt", Scalar::Float(a)) => Scalar::Float(a.sqrt()),
        _ => int.map_or(Scalar::Unknown, Scalar::Int),
    }
}

fn nary(kind: &str, scalars: &[Scalar]) -> Scalar {
    match (kind, scalars) {
        ("Where", [Scalar::Int(condition), a, b]) => {
            if *condition == 0 {
                *b
            } else {
                *a
            }
        }
        ("Min" | "Max" | "Add" | "Mul", [first, rest @ ..]) if rest.len() != 1 => {
            rest.iter().fold(*first, |a, &b| nary(kind, &[a, b]))
        }
        (_, [Scalar::Int(a), Scalar::Int(b)]) => ints(kind, *a, *b),
        (_, [Scalar::Float(a), Scalar::Float(b)]) => floats(kind, *a, *b),
        _ => Scalar::Unknown,
    }
}

fn ints(kind: &str, a: i64, b: i64) -> Scalar {
    let value = match kind {
        "Add" => a.checked_add(b),
        "Sub" => a.checked_sub(b),
        "Mul" => a.checked_mul(b),
        "Div" => a.checked_div(b),
        // The sign of the divisor.
        "Mod" => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        "Pow" => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        "Min" => Some(a.min(b)),
        "Max" => Some(a.max(b)),
        "And" => Some((a != 0 && b != 0).into()),
        "Or" => Some((a != 0 || b != 0).into()),
        "Xor" => Some(((a != 0) != (b != 0)).into()),
        "Equal" => Some((a == b).into()),
        "Greater" => Some((a > b).into()),
        "GreaterOrEqual" => Some((a >= b).into()),
        "Less" => Some((a < b).into()),
        "LessOrEqual" => Some((a <= b).into()),
        _ => None,
    };
    value.map_or(Scalar::Unknown, Scalar::Int)
}

fn floats(kind: &str, a: f64, b: f64) -> Scalar {
    match kind {
        "Add" => Scalar::Float(a + b),
        "Sub" => Scalar::Float(a - b),
        "Mul" => Scalar::Float(a * b),
        "Div" => Scalar::Float(a / b),
        "Min" => Scalar::Float(a.min(b)),
        "Max" => Scalar::Float(a.max(b)),
        "Greater" => truth(a > b),
        "GreaterOrEqual" => truth(a >= b),
        "Less" => truth(a < b),
        "LessOrEqual" => truth(a <= b),
        _ => Scalar::Unknown,
    }
}
