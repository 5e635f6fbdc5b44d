//! What is known of an operator's outputs: what the model declares, else what can be inferred.

use std::collections::HashMap;

use rten_onnx::onnx::{DataType, GraphProto, ValueInfoProto};
use tracing::warn;

use crate::{
    Bytes,
    import::onnx::{
        OnnxError,
        ops::{
            op::{Op, Reason, Shapes},
            row::{Domain, Row, Size},
        },
        read::{
            element,
            fact::{Dims, Fact, MAX_RANK, Scalar, written},
            model::{self, Context, Node, not_a_tensor, stored},
        },
    },
};

/// What the model declares of its tensors.
pub(crate) type Declarations<'a> = HashMap<&'a str, &'a ValueInfoProto>;

/// The declarations of a graph's tensors. Of several for one tensor, one with a shape counts.
pub(crate) fn declarations(graph: &GraphProto) -> Declarations<'_> {
    let mut declarations = Declarations::new();
    for value in graph.value_info.iter().chain(&graph.output).chain(&graph.input) {
        let Some(name) = value.name.as_deref() else { continue };
        if model::has_shape(value) || !declarations.contains_key(name) {
            declarations.insert(name, value);
        }
    }
    declarations
}

/// What is known of an operator's outputs.
pub(crate) struct Inferred {
    /// By position; absent outputs as well.
    pub(crate) outputs: Vec<Fact>,
    /// Bytes that the operator's sub-graphs need while it runs.
    pub(crate) workspace: Bytes,
    /// Why a shape is unknown, if one is.
    pub(crate) reason: Option<Reason>,
}

/// What an operator's sub-graphs say of its outputs, and what they need while they run.
pub(crate) struct Bodies {
    pub(crate) outputs: Vec<Fact>,
    pub(crate) workspace: Bytes,
}

/// Asks the declarations, then the rules, and computes what can be computed. `bodies` is what the
/// sub-graphs say, if there are any.
pub(crate) fn infer(
    op: &Op,
    row: Option<&Row>,
    context: &Context,
    declarations: &Declarations,
    bodies: Option<Bodies>,
) -> Inferred {
    let node = op.node;
    if let Some(Row { shapes: Size::Stored, .. }) = row {
        let mut outputs = vec![constant(node)];
        outputs.resize(node.0.output.len(), Fact::default());
        return Inferred { outputs, workspace: 0, reason: None };
    }
    let declared = |name: &String| declarations.get(name.as_str()).map(|v| context.declared(v));
    let mut outputs: Vec<Fact> =
        node.0.output.iter().map(|name| declared(name).unwrap_or_default()).collect();
    if let Some(Bodies { outputs: inferred, workspace }) = bodies {
        for (output, inferred) in outputs.iter_mut().zip(inferred) {
            complete(output, inferred.dims);
            output.element = output.element.or(inferred.element);
        }
        let reason = Some("it depends on how its sub-graph runs".to_owned());
        return Inferred { outputs, workspace, reason };
    }
    let mut reason = None;
    let open = |(index, _): (usize, &str)| outputs[index].sizes().is_none();
    if context.has_given_dims() || node.outputs().any(open) {
        match shapes(op, row) {
            Ok(shapes) => {
                for ((output, dims), name) in outputs.iter_mut().zip(shapes).zip(&node.0.output) {
                    if context.has_given_dims() {
                        drop_stale(output, dims.as_deref(), name);
                    }
                    complete(output, dims);
                }
                reason = Some("it depends on values that are known only in the run".to_owned());
            }
            Err(why) => reason = Some(why),
        }
    }
    let known_inputs = op.inputs.iter().flatten().all(|fact| fact.constant);
    let random = row.is_some_and(|row| row.is_random(op));
    for (index, output) in outputs.iter_mut().enumerate() {
        let rule = row.and_then(|row| row.types.get(index).or(row.types.last()));
        output.element = output.element.or_else(|| rule?.apply(op));
        output.constant = row.is_some() && known_inputs && !random;
    }
    if let Some(fold) = row.and_then(|row| row.fold) {
        fold.apply(op, &mut outputs);
    }
    for output in &mut outputs {
        output.constant |= output.has_value();
    }
    Inferred { outputs, workspace: 0, reason }
}

/// The shapes of an operator's outputs, by its rule.
fn shapes(op: &Op, row: Option<&Row>) -> Shapes {
    let shapes = match row.map(|row| row.shapes) {
        Some(Size::Rule(rule) | Size::Run(rule)) => rule(op)?,
        Some(_) => return Err("it needs its sub-graphs".to_owned()),
        None if Domain::from_name(op.node.domain()).is_some() => {
            return Err(format!("memplan does not know operators of type {}", op.node.kind()));
        }
        None => {
            return Err(format!("memplan does not know the operators of '{}'", op.node.domain()));
        }
    };
    if shapes.iter().flatten().any(|dims| dims.len() > MAX_RANK) {
        return Err(format!("it has more than {MAX_RANK} dimensions"));
    }
    Ok(shapes)
}

/// Drops a declared shape that the sizes given contradict: it was recorded for others.
fn drop_stale(output: &mut Fact, inferred: Option<&[Option<u64>]>, name: &str) {
    let (Some(declared), Some(inferred)) = (&output.dims, inferred) else { return };
    let differs = |(a, b): (&Option<u64>, &Option<u64>)| a.zip(*b).is_some_and(|(a, b)| a != b);
    if declared.len() != inferred.len() || declared.iter().zip(inferred).any(differs) {
        warn!(
            target: "memplan::import",
            tensor = name,
            declared = written(declared),
            inferred = written(inferred),
            "the model declares another shape than follows from the sizes given",
        );
        output.dims = None;
    }
}

/// Takes inferred sizes where declared ones are missing.
fn complete(output: &mut Fact, inferred: Option<Dims>) {
    let Some(inferred) = inferred else { return };
    output.dims = Some(match output.dims.take() {
        Some(declared) if declared.len() == inferred.len() => declared
            .iter()
            .zip(inferred)
            .map(|(declared, inferred)| declared.or(inferred))
            .collect(),
        Some(declared) if !declared.contains(&None) => declared,
        _ => inferred,
    });
}

/// Checks that an operator's outputs are tensors.
///
/// # Errors
///
/// If one has no size.
pub(crate) fn check_outputs(
    node: Node,
    row: Option<&Row>,
    declarations: &Declarations,
) -> Result<(), OnnxError> {
    let refused = match row.map(|row| row.shapes) {
        Some(Size::Refused(what)) => Some(what),
        _ => None,
    };
    for (_, name) in node.outputs() {
        let declared = declarations.get(name).and_then(|value| not_a_tensor(value));
        if let Some(what) = declared.or(refused) {
            return Err(OnnxError::NotPlannable {
                tensor: name.to_owned(),
                maker: format!("made by operator {}", node.label()),
                what: what.to_owned(),
            });
        }
    }
    Ok(())
}

/// The value of a `Constant`, which has it in one of several attributes.
fn constant(node: Node) -> Fact {
    if let Some(tensor) = node.tensor("value") {
        return stored(tensor);
    }
    let floats = node.floats("value_floats").filter(|floats| !floats.is_empty());
    let (element, dims, elements) = if let Some(int) = node.int("value_int") {
        (DataType::INT64, vec![], vec![Scalar::Int(int)])
    } else if let Some(float) = node.float("value_float") {
        (DataType::FLOAT, vec![], vec![Scalar::Float(float.into())])
    } else if let Some(floats) = floats {
        let elements: Vec<Scalar> = floats.iter().map(|&f| Scalar::Float(f.into())).collect();
        (DataType::FLOAT, vec![Some(elements.len() as u64)], elements)
    } else if node.has_strings() {
        return Fact { element: Some(DataType::STRING), constant: true, ..Fact::default() };
    } else {
        let ints = node.ints("value_ints").unwrap_or(&[]);
        let elements: Vec<Scalar> = ints.iter().map(|&int| Scalar::Int(int)).collect();
        (DataType::INT64, vec![Some(elements.len() as u64)], elements)
    };
    Fact { element: Some(element), dims: Some(dims), elements: Some(elements), constant: true }
}

/// What to do about a tensor of unknown shape.
pub(crate) fn remedy(name: &str, context: &Context, declarations: &Declarations) -> String {
    let others = "declare it in the model's value_info, as shape inference does where it can; if it varies, at its largest";
    match declarations.get(name).and_then(|value| context.open_dims(value)) {
        Some(dims) => format!("give it with {dims} or {others}"),
        None => others.to_owned(),
    }
}

/// The size of a tensor in bytes. `remedy` says what to do if its shape is unknown.
///
/// # Errors
///
/// If its shape or type is unknown, or it has no size.
pub(crate) fn bytes(
    fact: &Fact,
    name: &str,
    node: Node,
    reason: Option<&Reason>,
    remedy: impl Fn() -> String,
) -> Result<Bytes, OnnxError> {
    let maker = || format!("made by operator {}", node.label());
    if is_text(fact) {
        return Ok(0);
    }
    let Some(sizes) = fact.sizes() else {
        return Err(OnnxError::UnknownShape {
            tensor: name.to_owned(),
            operator: node.label(),
            reason: reason.cloned().unwrap_or_else(|| "nothing says it".to_owned()),
            remedy: remedy(),
        });
    };
    sized(fact, &sizes, name, maker)
}

/// The size of a graph input in bytes.
///
/// # Errors
///
/// If its shape or type is unknown, or it has no size.
pub(crate) fn input_bytes(
    fact: &Fact,
    value: &ValueInfoProto,
    context: &Context,
) -> Result<Bytes, OnnxError> {
    let name = value.name.as_deref().unwrap_or("");
    let maker = || "an input of the graph".to_owned();
    if let Some(what) = not_a_tensor(value) {
        let (tensor, what) = (name.to_owned(), what.to_owned());
        return Err(OnnxError::NotPlannable { tensor, maker: maker(), what });
    }
    if is_text(fact) {
        return Ok(0);
    }
    let Some(sizes) = fact.sizes() else {
        let remedy = match context.open_dims(value) {
            Some(dims) => format!("give the size with {dims}"),
            None => "write fixed sizes into the model".to_owned(),
        };
        let shape = model::display_declared(value);
        return Err(OnnxError::UnknownInputShape { tensor: name.to_owned(), shape, remedy });
    };
    sized(fact, &sizes, name, maker)
}

/// Strings have no fixed size; they stay outside the pool, where the runtime keeps them.
fn is_text(fact: &Fact) -> bool {
    fact.element == Some(DataType::STRING)
}

fn sized(
    fact: &Fact,
    sizes: &[u64],
    name: &str,
    maker: impl Fn() -> String,
) -> Result<Bytes, OnnxError> {
    let tensor = name.to_owned();
    let Some(element) = fact.element else {
        return Err(OnnxError::UnknownType { tensor, maker: maker() });
    };
    if element::bits(element).is_none() {
        let what = format!("a tensor of type number {}", element.0);
        return Err(OnnxError::NotPlannable { tensor, maker: maker(), what });
    }
    fact.bytes().ok_or_else(|| {
        let dims: Dims = sizes.iter().copied().map(Some).collect();
        OnnxError::TooLarge { tensor: name.to_owned(), shape: written(&dims) }
    })
}
