//! Shape rules from `rten-shape-inference`.
//!
//! That crate returns expressions over 32-bit sizes. Sizes are passed as numbers where they fit and
//! as unknowns where they do not, data is passed as its shape, and the returned expressions are
//! evaluated here in checked 64-bit arithmetic: an answer is right, unknown, or an error.

use rten_shape_inference::{
    InferShapes, InferShapesContext, InferShapesError, ReductionOp, SymExpr, SymTensor, SymbolGen,
    ops,
};

use crate::import::onnx::{
    ops::op::{Op, Reason, Shapes},
    read::fact::{Dims, Fact, MAX_RANK, Scalar},
};

/// The form in which an input is passed.
#[derive(Clone, Copy)]
pub(crate) enum Hand {
    /// Its shape.
    Shape(usize),
    /// Its elements, if they are known and few, otherwise its shape.
    Value(usize),
}
use Hand::{Shape, Value};

/// Applies a rule to these inputs.
pub(crate) fn ask(rule: &dyn InferShapes, op: &Op, hands: &[Hand]) -> Shapes {
    let mut unknowns = SymbolGen::new();
    let inputs = tensors(op, hands, &mut unknowns);
    ask_tensors(rule, &inputs, &mut unknowns)
}

fn tensors(op: &Op, hands: &[Hand], unknowns: &mut SymbolGen) -> Vec<Option<SymTensor>> {
    let tensor = |hand: &Hand| match *hand {
        Shape(index) => Some(shape(op.input(index)?.dims.as_ref(), unknowns)),
        Value(index) => Some(value(op.input(index)?, unknowns)),
    };
    hands.iter().map(tensor).collect()
}

/// Applies a rule to shapes that are not an operator's inputs.
pub(crate) fn ask_dims(rule: &dyn InferShapes, inputs: &[&Dims]) -> Shapes {
    let mut unknowns = SymbolGen::new();
    let inputs: Vec<Option<SymTensor>> =
        inputs.iter().map(|dims| Some(shape(Some(dims), &mut unknowns))).collect();
    ask_tensors(rule, &inputs, &mut unknowns)
}

fn ask_tensors(
    rule: &dyn InferShapes,
    inputs: &[Option<SymTensor>],
    unknowns: &mut SymbolGen,
) -> Shapes {
    let answers = rule
        .infer_shapes(InferShapesContext::new(inputs), unknowns)
        .map_err(|error: InferShapesError| error.to_string())?;
    answers.iter().map(dims).collect()
}

fn shape(dims: Option<&Dims>, unknowns: &mut SymbolGen) -> SymTensor {
    let Some(dims) = dims else {
        return SymTensor::unknown("unknown shape");
    };
    let size = |dim: &Option<u64>| dim.and_then(|dim| i32::try_from(dim).ok());
    let size = |dim| size(dim).map_or_else(|| unknowns.gen_positive(), SymExpr::Value);
    SymTensor::from_shape(dims.iter().map(size).collect())
}

fn value(fact: &Fact, unknowns: &mut SymbolGen) -> SymTensor {
    let element = |scalar: &Scalar| match scalar {
        Scalar::Int(value) => i32::try_from(*value).ok().map(SymExpr::Value),
        Scalar::Float(_) | Scalar::Unknown => None,
    };
    let elements: Option<Vec<SymExpr>> =
        fact.elements.as_ref().and_then(|elements| elements.iter().map(element).collect());
    match (elements, fact.dims.as_ref().map(Vec::len)) {
        (Some(elements), Some(1)) => SymTensor::from_vec(elements),
        (Some(elements), Some(0)) => match elements.into_iter().next() {
            Some(element) => SymTensor::from_scalar(element),
            None => shape(fact.dims.as_ref(), unknowns),
        },
        _ => shape(fact.dims.as_ref(), unknowns),
    }
}

fn dims(answer: &SymTensor) -> Result<Option<Dims>, Reason> {
    let Some(shape) = answer.shape() else { return Ok(None) };
    if shape.len() > MAX_RANK {
        return Err(format!("it has more than {MAX_RANK} dimensions"));
    }
    let size = |expression: SymExpr| match evaluate(&expression) {
        Some(size) => u64::try_from(size)
            .map(Some)
            .map_err(|_| format!("a dimension would have {size} elements")),
        None => Ok(None),
    };
    shape.map(size).collect::<Result<Dims, Reason>>().map(Some)
}

/// The value of an expression; `None` if it contains an unknown or does not fit in 64 bits.
fn evaluate(expression: &SymExpr) -> Option<i64> {
    let both = |a: &SymExpr, b: &SymExpr| evaluate(a).zip(evaluate(b));
    match expression {
        SymExpr::Value(value) => Some((*value).into()),
        SymExpr::Var(_) => None,
        SymExpr::Add(a, b) => both(a, b).and_then(|(a, b)| a.checked_add(b)),
        SymExpr::Sub(a, b) => both(a, b).and_then(|(a, b)| a.checked_sub(b)),
        SymExpr::Mul(a, b) => both(a, b).and_then(|(a, b)| a.checked_mul(b)),
        // As in runtimes, a window that is larger than its input by less than a stride fits once.
        SymExpr::Div(a, b) => both(a, b).and_then(|(a, b)| a.checked_div(b)),
        SymExpr::DivCeil(a, b) => {
            both(a, b).and_then(|(a, b)| a.checked_neg()?.checked_div_euclid(b)?.checked_neg())
        }
        SymExpr::Max(a, b) | SymExpr::Broadcast(a, b) => both(a, b).map(|(a, b)| a.max(b)),
        SymExpr::Min(a, b) => both(a, b).map(|(a, b)| a.min(b)),
        SymExpr::Neg(a) => evaluate(a).and_then(i64::checked_neg),
    }
}

/// Returns an attribute that a rule needs in 32 bits.
pub(crate) fn int(op: &Op, name: &str, default: i32) -> Result<i32, Reason> {
    let Some(value) = op.node.int(name) else { return Ok(default) };
    i32::try_from(value).map_err(|_| format!("its attribute '{name}' is {value}"))
}

/// Returns an attribute that must not be negative.
pub(crate) fn count(op: &Op, name: &str, default: u32) -> Result<u32, Reason> {
    let value = int(op, name, i32::try_from(default).unwrap_or(0))?;
    u32::try_from(value).map_err(|_| format!("its attribute '{name}' is {value}"))
}

fn flag(op: &Op, name: &str) -> bool {
    op.node.int(name).unwrap_or(0) != 0
}

pub(crate) fn global_pool(op: &Op) -> Shapes {
    ask(&ops::GlobalPool, op, &[Shape(0)])
}

/// A matrix product with any input as its second factor.
pub(crate) fn gemm(op: &Op, second: usize) -> Shapes {
    let rule = ops::Gemm { transpose_a: flag(op, "transA"), transpose_b: flag(op, "transB") };
    ask(&rule, op, &[Shape(0), Shape(second)])
}

/// Transposes the two factors of a matrix product as the attributes state: the batch with the rows first.
pub(crate) fn turn<T>(op: &Op, a: &mut [T], b: &mut [T]) {
    for (dims, batch, matrix) in [(a, "transBatchA", "transA"), (b, "transBatchB", "transB")] {
        let Some(rows) = dims.len().checked_sub(2) else { continue };
        if flag(op, batch) {
            dims[..=rows].rotate_left(1);
        }
        if flag(op, matrix) {
            dims.swap(rows, rows + 1);
        }
    }
}

/// A matrix product with any input as its second factor. A vector counts as a matrix of one row or
/// one column, and that dimension is dropped again.
pub(crate) fn matmul(op: &Op, second: usize) -> Shapes {
    let (mut a, mut b) = (op.dims(0)?.clone(), op.dims(second)?.clone());
    let (row, column) = (a.len() == 1, b.len() == 1);
    if row {
        a.insert(0, Some(1));
    }
    if column {
        b.push(Some(1));
    }
    turn(op, &mut a, &mut b);
    let mut shapes = ask_dims(&ops::MatMul, &[&a, &b])?;
    if let Some(Some(dims)) = shapes.first_mut() {
        if column {
            dims.pop();
        }
        if row && let Some(at) = dims.len().checked_sub(if column { 1 } else { 2 }) {
            dims.remove(at);
        }
    }
    Ok(shapes)
}

pub(crate) fn matmul_n_bits(op: &Op) -> Shapes {
    ask(&ops::MatMulNBits, op, &[Shape(0), Shape(1)])
}

pub(crate) fn einsum(op: &Op) -> Shapes {
    let equation = op.node.string("equation").ok_or("it has no equation")?;
    let hands: Vec<Hand> = (0..op.inputs.len()).map(Shape).collect();
    ask(&ops::Einsum { equation }, op, &hands)
}

pub(crate) fn reduce(op: &Op) -> Shapes {
    let axes = op.ints_of("axes", 1)?.filter(|axes| !axes.is_empty());
    if axes.is_none() && flag(op, "noop_with_empty_axes") {
        return Ok(vec![Some(op.dims(0)?.clone())]);
    }
    reduce_over(op, axes.as_deref())
}

pub(crate) fn arg_reduce(op: &Op) -> Shapes {
    reduce_over(op, Some(&[op.node.int("axis").unwrap_or(0)]))
}

fn reduce_over(op: &Op, axes: Option<&[i64]>) -> Shapes {
    let narrow = |axes: &[i64]| axes.iter().map(|&axis| i32::try_from(axis)).collect();
    let axes: Option<Vec<i32>> =
        axes.map(narrow).transpose().map_err(|_| "it reduces over an axis that is not there")?;
    let keep_dims = op.node.int("keepdims").unwrap_or(1) != 0;
    ask(&ReductionOp { axes: axes.as_deref(), keep_dims }, op, &[Shape(0)])
}

pub(crate) fn gather(op: &Op) -> Shapes {
    ask(&ops::Gather { axis: int(op, "axis", 0)? }, op, &[Shape(0), Shape(1)])
}

pub(crate) fn gather_elements(op: &Op) -> Shapes {
    ask(&ops::GatherElements, op, &[Shape(0), Shape(1)])
}

pub(crate) fn gather_nd(op: &Op) -> Shapes {
    let batch_dims = usize::try_from(count(op, "batch_dims", 0)?);
    let batch_dims = batch_dims.map_err(|_| "it has too many batch dimensions")?;
    ask(&ops::GatherND { batch_dims }, op, &[Shape(0), Shape(1)])
}

pub(crate) fn one_hot(op: &Op) -> Shapes {
    ask(&ops::OneHot { axis: int(op, "axis", -1)? }, op, &[Shape(0), Value(1), Shape(2)])
}

/// The amounts are an attribute in old opsets, an input in new ones.
pub(crate) fn pad(op: &Op) -> Shapes {
    if op.node.ints("pads").is_none() && op.node.ints("paddings").is_none() {
        return ask(&ops::Pad, op, &[Shape(0), Value(1), Shape(2), Value(3)]);
    }
    let pads = op.node.ints("pads").or(op.node.ints("paddings")).unwrap_or(&[]);
    let dims = op.dims(0)?;
    if pads.len() != 2 * dims.len() {
        return Err("it does not pad every dimension at both ends".to_owned());
    }
    let (starts, ends) = pads.split_at(dims.len());
    let padded = dims.iter().zip(starts.iter().zip(ends)).map(|(dim, (&start, &end))| {
        dim.and_then(|dim| dim.checked_add_signed(start)?.checked_add_signed(end))
    });
    Ok(vec![Some(padded.collect())])
}

pub(crate) fn tile(op: &Op) -> Shapes {
    ask(&ops::Tile, op, &[Shape(0), Value(1)])
}

/// The number to keep is an attribute in old opsets, an input in new ones.
pub(crate) fn top_k(op: &Op) -> Shapes {
    let axis = int(op, "axis", -1)?;
    let Some(k) = op.node.int("k") else {
        return ask(&ops::TopK { axis: Some(axis) }, op, &[Shape(0), Value(1)]);
    };
    let mut dims = op.dims(0)?.clone();
    let at = op.axis(-1, dims.len())?;
    dims[at] = u64::try_from(k).ok();
    Ok(vec![Some(dims); 2])
}

pub(crate) fn depth_to_space(op: &Op) -> Shapes {
    ask(&ops::DepthToSpace { block_size: count(op, "blocksize", 0)? }, op, &[Shape(0)])
}

/// For a scalar, some runtimes return a row, as for a list, others none, as in the standard.
pub(crate) fn non_zero(op: &Op) -> Shapes {
    if op.dims(0)?.is_empty() {
        return Ok(vec![Some(vec![None, None])]);
    }
    ask(&ops::NonZero, op, &[Shape(0)])
}

pub(crate) fn non_max_suppression(op: &Op) -> Shapes {
    ask(&ops::NonMaxSuppression, op, &[])
}

pub(crate) fn multinomial(op: &Op) -> Shapes {
    let sample_size = usize::try_from(count(op, "sample_size", 1)?);
    let sample_size = sample_size.map_err(|_| "it takes too many samples")?;
    ask(&ops::Multinomial { sample_size }, op, &[Shape(0)])
}

pub(crate) fn grid_sample(op: &Op) -> Shapes {
    ask(&ops::GridSample, op, &[Shape(0), Shape(1)])
}

/// From this opset on, the axis of `DFT` is an input, not an attribute.
pub(super) const AXIS_IS_INPUT: i64 = 20;

pub(crate) fn dft(op: &Op) -> Shapes {
    let rule = ops::DFT { inverse: flag(op, "inverse"), onesided: flag(op, "onesided") };
    if op.opset >= AXIS_IS_INPUT {
        return ask(&rule, op, &[Shape(0), Value(1), Value(2)]);
    }
    let mut unknowns = SymbolGen::new();
    let mut inputs = tensors(op, &[Shape(0), Value(1)], &mut unknowns);
    inputs.push(Some(SymTensor::from_scalar(SymExpr::Value(int(op, "axis", 1)?))));
    ask_tensors(&rule, &inputs, &mut unknowns)
}

pub(crate) fn stft(op: &Op) -> Shapes {
    let onesided = op.node.int("onesided").unwrap_or(1) != 0;
    ask(&ops::STFT { onesided }, op, &[Shape(0), Value(1), Shape(2), Value(3)])
}

pub(crate) fn dynamic_quantize(op: &Op) -> Shapes {
    ask(&ops::DynamicQuantizeLinear, op, &[Shape(0)])
}
