//! Infers the facts about an operator's outputs that the model does not declare.

mod lists;
pub(super) mod open;
pub(super) mod shape_samples;
pub(crate) mod shapes;

pub(super) use open::INPUT;
pub(super) use shapes::UNKNOWN_OPERATOR;
use std::collections::{HashMap, HashSet};

use rten_onnx::onnx::{DataType, GraphProto, ValueInfoProto};

use crate::{
    Bytes, OpSequence,
    import::onnx::{
        OnnxError,
        infer::{open::UnresolvedShape, shape_samples::ShapeSamples, shapes::shapes},
        ops::{
            op::{Op, Reason},
            row::{Row, Size},
        },
        read::{
            context::Context,
            declared::{has_shape, not_a_tensor},
            element,
            fact::{Dims, Fact, Scalar, written},
            given,
            node::{Node, is_standard},
            stored::stored,
        },
    },
};

/// The model's declarations of its tensors.
pub(crate) type Declarations<'a> = HashMap<&'a str, &'a ValueInfoProto>;

/// The declarations of a graph's tensors. If a tensor has several, one with a shape is used.
pub(crate) fn declarations(graph: &GraphProto) -> Declarations<'_> {
    let mut declarations = Declarations::new();
    for value in graph.value_info.iter().chain(&graph.output).chain(&graph.input) {
        let Some(name) = value.name.as_deref() else { continue };
        if has_shape(value) || !declarations.contains_key(name) {
            declarations.insert(name, value);
        }
    }
    declarations
}

/// The facts about an operator's outputs.
pub(crate) struct Inferred {
    /// By position, absent outputs included.
    pub(crate) outputs: Vec<Fact>,
    /// The operator's sub-graphs.
    pub(crate) bodies: Vec<OpSequence>,
}

/// An operator's sub-graphs, and the facts about its outputs that follow from them.
pub(crate) struct Bodies {
    pub(crate) outputs: Vec<Fact>,
    pub(crate) sequences: Vec<OpSequence>,
    /// By output: the shapes that it has in one branch or another.
    pub(crate) branches: Vec<Vec<Dims>>,
    /// The reason why a shape is unknown, if one is.
    pub(crate) reason: Reason,
}

impl Bodies {
    pub(crate) fn new(sequences: Vec<OpSequence>, outputs: Vec<Fact>) -> Self {
        let reason = "it depends on how its sub-graph runs".to_owned();
        Self { outputs, sequences, branches: Vec::new(), reason }
    }
}

/// Infers the facts about the outputs by the rules, reconciles them with the declarations, and
/// computes the values that are known. `bodies` are the sub-graphs, if there are any.
///
/// # Errors
///
/// If the operator is invalid, or the user gives an output a shape that it cannot have.
pub(crate) fn infer(
    op: &Op,
    row: Option<&Row>,
    context: &Context,
    declarations: &Declarations,
    bodies: Option<Bodies>,
) -> Result<Inferred, OnnxError> {
    let node = op.node;
    if let Some(Row { shapes: Size::Stored, .. }) = row {
        let mut outputs = vec![constant(node)];
        outputs.resize(node.0.output.len(), Fact::default());
        return Ok(Inferred { outputs, bodies: Vec::new() });
    }
    let held = bodies.is_some();
    let mut reason = "it depends on values that are known only at run time".to_owned();
    let Bodies { outputs: inferred, sequences, branches, .. } = match bodies {
        Some(bodies) => {
            reason.clone_from(&bodies.reason);
            bodies
        }
        None => Bodies::new(Vec::new(), Vec::new()),
    };
    let mut outputs = inferred;
    outputs.resize(node.0.output.len(), Fact::default());
    if !held {
        match lists::output(op, row) {
            Some(Ok(items)) => {
                outputs.iter_mut().take(1).for_each(|output| output.items = Some(items.clone()));
            }
            Some(Err(why)) => reason = why,
            None => match shapes(op, row) {
                Ok(shapes) => {
                    for (output, dims) in outputs.iter_mut().zip(shapes) {
                        output.dims = dims;
                    }
                }
                Err(why) => reason = why,
            },
        }
        if let (Some(item), [first, ..]) = (lists::chosen(op, row), &mut outputs[..]) {
            *first = item;
        }
        let known_inputs = op.inputs.iter().flatten().all(|fact| fact.constant);
        let random = row.is_some_and(|row| row.is_random(op));
        let fixed = row.is_some() && known_inputs && !random;
        for output in &mut outputs {
            output.constant = fixed;
        }
    }
    reason = kept_outside(op, &outputs).unwrap_or(reason);
    let open = |fact: &Fact| fact.is_open() || fact.sizes().is_none();
    let is_open = op.inputs.iter().flatten().any(|fact| fact.is_open())
        || node.outputs().any(|(index, _)| open(&outputs[index]));
    let samples =
        if is_open && !held { ShapeSamples::of(op, row) } else { ShapeSamples::default() };
    // If an input is unknown, the user is asked for that input rather than for facts that depend on
    // it.
    let lost = |fact: &&Fact| fact.largest().is_none() && !fact.constant && !fact.is_list();
    let asked = context.findings.asks() && op.inputs.iter().flatten().any(lost);
    for (index, name) in node.outputs() {
        let output = &mut outputs[index];
        if output.is_list() {
            continue;
        }
        let value = declarations.get(name).copied();
        let declared = value.map(|value| context.declared(value));
        let rule = row.and_then(|row| row.types.get(index).or(row.types.last()));
        let by_rule = || rule.filter(|_| !held).and_then(|rule| rule.apply(op));
        let inferred = output.element.or_else(by_rule);
        let unsettled = UnresolvedShape {
            name,
            maker: format!("made by operator {}", node.label()),
            declared: value,
            reason: reason.clone(),
        };
        let declared = declared.and_then(|declared| declared.element);
        output.element = match inferred.filter(|_| is_standard(node.domain())) {
            Some(_) => unsettled.reconcile_types(declared, inferred, context),
            None => declared.or(inferred),
        };
        output.element = given::known_or_given(output.element, name, context)?;
        let answers = if output.is_open() { open::answers(output) } else { samples.answers(index) };
        unsettled.reconcile(output, &answers, branches.get(index), context);
        if output.largest().is_none() && !asked && !context.keeps_unknown() {
            refuse_unknown_list(node, name, row, value, &reason)?;
        }
        // Strings stay outside the pool.
        let text = output.element == Some(DataType::STRING);
        let left_out = text || asked || output.constant && !samples.say(index);
        if output.sizes().is_none() && !left_out {
            unsettled.settle(output, &answers, context)?;
        }
    }
    if !held {
        if let Some(fold) = row.and_then(|row| row.fold) {
            fold.apply(op, &mut outputs);
            samples.fold(op, fold, &mut outputs);
        }
        for (index, name) in node.outputs() {
            given::state(&mut outputs[index], name, context)?;
        }
        for output in outputs.iter_mut().filter(|output| !output.is_list()) {
            output.constant |= output.has_value();
        }
    }
    Ok(Inferred { outputs, bodies: sequences })
}

/// The reason why a shape is unknown, if a list that may state it lies in another file.
fn kept_outside(op: &Op, outputs: &[Fact]) -> Option<Reason> {
    let is_open = |output: &Fact| output.sizes().is_none();
    let is_list = |input: &usize| {
        let dims = op.input(*input).and_then(|fact| fact.dims.as_ref());
        dims.is_some_and(|dims| dims.len() < 2)
    };
    let mut lists = (0..op.inputs.len()).filter(is_list);
    outputs.iter().any(is_open).then(|| lists.find_map(|input| op.kept_outside(input)))?
}

/// Checks that an operator's outputs are tensors or sequences.
///
/// # Errors
///
/// If one has no size.
pub(crate) fn check_outputs(node: Node, row: Option<&Row>) -> Result<(), OnnxError> {
    let Some(Row { shapes: Size::Refused(what), .. }) = row else { return Ok(()) };
    let Some((_, name)) = node.outputs().next() else { return Ok(()) };
    Err(OnnxError::NotPlannable {
        tensor: name.to_owned(),
        maker: format!("made by operator {}", node.label()),
        what: (*what).to_owned(),
    })
}

/// Refuses an output that is not a tensor and whose contents are unknown.
fn refuse_unknown_list(
    node: Node,
    name: &str,
    row: Option<&Row>,
    declared: Option<&ValueInfoProto>,
    reason: &str,
) -> Result<(), OnnxError> {
    let declared = declared.and_then(not_a_tensor);
    let makes_list = matches!(row.map(|row| row.shapes), Some(Size::List(_)));
    let maker = format!("made by operator {}", node.label());
    let tensor = name.to_owned();
    match declared {
        Some(what) if !what.is_sequence() => {
            Err(OnnxError::NotPlannable { tensor, maker, what: what.to_string() })
        }
        None if !makes_list => Ok(()),
        _ => Err(OnnxError::UnknownSequence { tensor, maker, reason: reason.to_owned() }),
    }
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
    Fact {
        element: Some(element),
        dims: Some(dims),
        elements: Some(elements),
        constant: true,
        ..Fact::default()
    }
}

/// The size of a tensor in bytes, at its largest; 0 if the user must be asked for it.
///
/// # Errors
///
/// If its type is unknown, or it has no size.
pub(crate) fn bytes(
    fact: &Fact,
    name: &str,
    maker: &str,
    context: &Context,
) -> Result<Bytes, OnnxError> {
    if fact.is_list() {
        return match fact.bytes() {
            None if !context.findings.asks() && !context.keeps_unknown() => {
                Err(OnnxError::UnknownSequence {
                    tensor: name.to_owned(),
                    maker: maker.to_owned(),
                    reason: "the size of one of its tensors is unknown".to_owned(),
                })
            }
            bytes => Ok(bytes.unwrap_or(0)),
        };
    }
    // Strings have no fixed size; they stay outside the pool, where the runtime keeps them.
    if fact.element == Some(DataType::STRING) {
        return Ok(0);
    }
    let tensor = name.to_owned();
    let Some(element) = fact.element else {
        if context.findings.asks() || context.keeps_unknown() {
            return Ok(0);
        }
        return Err(OnnxError::UnknownType { tensor, maker: maker.to_owned() });
    };
    if element::bits(element).is_none() {
        if context.keeps_unknown() {
            return Ok(0);
        }
        let what = format!("a tensor of type number {}", element.0);
        return Err(OnnxError::NotPlannable { tensor, maker: maker.to_owned(), what });
    }
    let Some(sizes) = fact.largest() else {
        if !context.findings.asks() {
            open::ask_for_shape(name, maker, fact, "nothing says it", context);
        }
        return Ok(0);
    };
    fact.bytes().ok_or_else(|| {
        let dims: Dims = sizes.into_iter().map(Some).collect();
        OnnxError::TooLarge { tensor, shape: written(&dims) }
    })
}

/// Returns the facts about the inputs of the main graph. Those that are declared weights are
/// left open.
///
/// # Errors
///
/// If the user gives an input a shape that it cannot have.
pub(crate) fn graph_inputs(graph: &GraphProto, context: &Context) -> Result<Vec<Fact>, OnnxError> {
    let weights: HashSet<&str> =
        graph.initializer.iter().filter_map(|tensor| tensor.name.as_deref()).collect();
    let fact = |value: &ValueInfoProto| match value.name.as_deref() {
        Some(name) if weights.contains(name) => Ok(Fact::default()),
        _ => open::input(value, context),
    };
    graph.input.iter().map(fact).collect()
}

/// The size of a graph input in bytes.
///
/// # Errors
///
/// If its type is unknown, or it has no size.
pub(crate) fn input_bytes(
    fact: &Fact,
    value: &ValueInfoProto,
    context: &Context,
) -> Result<Bytes, OnnxError> {
    let name = value.name.as_deref().unwrap_or("");
    if let Some(what) = not_a_tensor(value).filter(|_| !fact.is_list()) {
        if context.keeps_unknown() {
            return Ok(0);
        }
        let (tensor, maker) = (name.to_owned(), open::INPUT.to_owned());
        if what.is_sequence() {
            let words = "how many tensors it holds is known only at run time; give it with --shape";
            let reason = format!("{words} {tensor}=NxAxB, for N tensors of A x B elements");
            return Err(OnnxError::UnknownSequence { tensor, maker, reason });
        }
        return Err(OnnxError::NotPlannable { tensor, maker, what: what.to_string() });
    }
    bytes(fact, name, open::INPUT, context)
}
