//! From a graph to an operator sequence: sizes, views and requests to work in place.

mod bodies;
mod precedence;
mod shape_samples;
mod states;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
};

use rten_onnx::onnx::{DataType, GraphProto};

use crate::{
    Bytes, OpSequence, Operator, Output,
    import::NotInPlace,
    import::onnx::{
        OnnxError,
        emit::{
            precedence::Precedence,
            shape_samples::{shape_samples, views_in},
        },
        infer::{self, Bodies, Declarations, Inferred, shapes::refuse_other_count},
        memory::{
            gathers::gathers,
            inplace::{self, Place},
            onnxruntime,
        },
        ops::{
            self,
            op::Op,
            row::{Domain, Row},
        },
        read::{
            context::Context,
            fact::Fact,
            given,
            node::Node,
            scope::{self, Scope},
            stored::stored,
        },
    },
    sequence::{SequenceBuilder, SizeBasis},
};

/// A graph as a sequence.
pub(crate) struct Sequenced<'a> {
    pub(crate) sequence: OpSequence,
    /// Outputs that are neither views nor may be written over an input, with the reason.
    pub(crate) not_in_place: Vec<(&'a str, NotInPlace)>,
    /// Tensors whose size in bytes is unknown.
    pub(crate) unknown: Vec<&'a str>,
    /// The facts about the graph outputs.
    pub(crate) outputs: Vec<Fact>,
    /// By step: the place of its node in the graph.
    pub(crate) places: Vec<usize>,
    /// The places of nodes with a state, which keep their order.
    pub(crate) with_state: Vec<usize>,
    /// The sizes of the outputs of nodes that do not run, because they are known before the run.
    pub(crate) known: Vec<(&'a str, Bytes)>,
}

/// Turns a graph into a sequence. `inputs` are the facts about its inputs, `outer` the tensors of
/// the graphs around it, `returns` the places of its results.
///
/// # Errors
///
/// If the graph is invalid, or a size is unknown.
pub(crate) fn sequence<'a>(
    graph: &'a GraphProto,
    context: &'a Context,
    inputs: Vec<Fact>,
    outer: Option<&'a Scope>,
    returns: Returns<'a>,
) -> Result<Sequenced<'a>, OnnxError> {
    let captured = if outer.is_some() { scope::captured_by_graph(graph) } else { Vec::new() };
    let mut order = scope::execution_order(graph, &captured)?;
    if context.kernels().is_onnxruntime() {
        order = onnxruntime::order(graph);
    }
    let mut emitter = Emitter::new(graph, context, Scope::of(graph, outer), returns);
    emitter.supply(graph, inputs)?;
    for place in order {
        let node = Node(&graph.node[place]);
        let inputs = node.0.input.iter().map(|name| emitter.scope.get(name)).collect();
        let (opset, fixed) = (context.opset(node), context.is_fixed());
        let op = Op { node, inputs, opset, guesses: false, fixed };
        let row = ops::find(node);
        if !context.keeps_unknown() {
            infer::check_outputs(node, row)?;
        }
        // A branch that is not made for these sizes may never run, and what nobody reads need not.
        let runs = context.undecided.get() == 0
            && node.outputs().any(|(_, name)| emitter.read.contains(name));
        if let Some(check) = row.and_then(|row| row.check).filter(|_| runs) {
            check(&op).map_err(|conflict| conflict.error(&op))?;
        }
        let body_has_state = Cell::new(false);
        let bodies = match run_bodies(&op, row, context, &emitter.scope, &body_has_state) {
            Err(OnnxError::Unsupported { .. }) if context.keeps_unknown() => None,
            bodies => bodies?,
        };
        let inferred = infer::infer(&op, row, context, &emitter.declarations, bodies)?;
        if runs {
            refuse_other_count(&op, &inferred.outputs)?;
        }
        let operator = emitter.operator(&op, row, &inferred)?;
        let has_state = body_has_state.get() || has_state(&op, row);
        emitter.add(Placed { node, place, has_state }, inferred, operator);
    }
    emitter.finish(graph)
}

/// Returns whether an operator may do more than compute its outputs from its inputs.
fn has_state(op: &Op, row: Option<&Row>) -> bool {
    match row {
        Some(row) => row.is_random(op),
        None => Domain::from_name(op.node.domain()).is_none(),
    }
}

/// A node of the graph.
#[derive(Clone, Copy)]
struct Placed<'a> {
    node: Node<'a>,
    place: usize,
    has_state: bool,
}

/// Turns the sub-graphs of an operator into sequences, and sets `has_state` if one of them has a
/// state.
fn run_bodies(
    op: &Op,
    row: Option<&Row>,
    context: &Context,
    scope: &Scope,
    has_state: &Cell<bool>,
) -> Result<Option<Bodies>, OnnxError> {
    let is_branch = row.is_some_and(Row::is_condition);
    let is_undecided = is_branch && op.input(0).and_then(Fact::int).is_none();
    let run = |graph: &GraphProto, inputs: Vec<Fact>| {
        let returns = if is_branch { returns(op.node, graph) } else { Returns::new() };
        context.undecided.update(|branches| branches + u32::from(is_undecided));
        let body = sequence(graph, context, inputs, Some(scope), returns);
        context.undecided.update(|branches| branches - u32::from(is_undecided));
        let mut body = body?;
        scope.keep_apart(&mut body.sequence, graph, &op.node.label());
        has_state.set(has_state.get() || !body.with_state.is_empty());
        Ok(Bodies::new(vec![body.sequence], body.outputs))
    };
    bodies::bodies(op, row, context, scope, &run)
}

/// The results of a branch that are made in outputs of its operator, and these outputs.
pub(crate) type Returns<'a> = HashMap<&'a str, &'a str>;

/// Names the output that each result of a branch is made in. A result that is returned twice is copied, and
/// so is one for an output whose name the branch uses for something else.
fn returns<'a>(node: Node<'a>, branch: &'a GraphProto) -> Returns<'a> {
    let mut used = scope::read_names(branch);
    used.extend(scope::output_names(branch));
    used.extend(branch.node.iter().flat_map(|node| &node.output).map(String::as_str));
    used.extend(branch.initializer.iter().filter_map(|tensor| tensor.name.as_deref()));
    let mut returns = Returns::new();
    let outputs = node.0.output.iter().map(String::as_str);
    for (result, output) in scope::output_names(branch).zip(outputs) {
        if !output.is_empty() && !used.contains(output) {
            returns.entry(result).or_insert(output);
        }
    }
    returns
}

struct Emitter<'a> {
    context: &'a Context<'a>,
    declarations: Declarations<'a>,
    scope: Scope<'a>,
    builder: SequenceBuilder,
    /// The names of the graph inputs.
    inputs: HashSet<&'a str>,
    /// Names that are read.
    read: HashSet<&'a str>,
    /// Names that are inputs, or outputs of operators in the sequence.
    defined: HashSet<&'a str>,
    /// Names that are declared as weights.
    weights: HashSet<&'a str>,
    /// By view: the tensor in whose memory it lies, and its offset there in bytes.
    places: HashMap<&'a str, Place<'a>>,
    not_in_place: Vec<(&'a str, NotInPlace)>,
    unknown: Vec<&'a str>,
    precedence: Precedence<'a>,
    /// By step: the place of its node in the graph.
    node_places: Vec<usize>,
    /// The places of nodes with a state.
    with_state: Vec<usize>,
    /// The sizes of what is known before the run.
    known: Vec<(&'a str, Bytes)>,
    /// True if the graph is a body of another.
    is_body: bool,
    /// The outputs of a body. They are passed on by copying, one state after another, so none may be a view
    /// of a supplied tensor. For ONNX Runtime, those of any graph: it allocates them apart.
    results: HashSet<&'a str>,
    returns: Returns<'a>,
}

/// An operator of the sequence, and the places of its views.
struct Emitted<'a> {
    operator: Operator,
    places: Vec<(&'a str, Place<'a>)>,
    not_in_place: Vec<(&'a str, NotInPlace)>,
    unknown: Vec<&'a str>,
    /// The outputs of the operator around a branch in which results are made, and their bytes.
    returned: Vec<(&'a str, Bytes)>,
}

impl<'a> Emitter<'a> {
    fn new(
        graph: &'a GraphProto,
        context: &'a Context<'a>,
        scope: Scope<'a>,
        returns: Returns<'a>,
    ) -> Self {
        Self {
            returns,
            is_body: scope.outer.is_some(),
            results: match scope.outer {
                None if !context.kernels().is_onnxruntime() => HashSet::new(),
                _ => scope::output_names(graph).collect(),
            },
            context,
            declarations: infer::declarations(graph),
            scope,
            builder: OpSequence::builder(),
            inputs: HashSet::new(),
            read: scope::read_names(graph),
            defined: HashSet::new(),
            weights: HashSet::new(),
            places: HashMap::new(),
            not_in_place: Vec::new(),
            unknown: Vec::new(),
            precedence: Precedence::default(),
            node_places: Vec::new(),
            with_state: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Declares the supplied tensors: weights, and inputs that are not only a weight's declaration.
    fn supply(&mut self, graph: &'a GraphProto, inputs: Vec<Fact>) -> Result<(), OnnxError> {
        for tensor in &graph.initializer {
            if let Some(name) = tensor.name.as_deref() {
                let mut fact = stored(tensor);
                given::state(&mut fact, name, self.context)?;
                self.scope.facts.insert(name, fact);
            }
        }
        for (value, fact) in graph.input.iter().zip(inputs) {
            let name = value.name.as_deref().unwrap_or("");
            if self.scope.facts.contains_key(name) {
                continue;
            }
            let bytes = infer::input_bytes(&fact, value, self.context)?;
            self.builder.input(name, bytes);
            self.state_type(name, &fact);
            self.inputs.insert(name);
            self.defined.insert(name);
            self.scope.facts.insert(name, fact);
        }
        Ok(())
    }

    /// The operator for the sequence; `None` if all of its outputs are known before the run.
    fn operator(
        &self,
        op: &Op<'a, '_>,
        row: Option<&Row>,
        inferred: &Inferred,
    ) -> Result<Option<Emitted<'a>>, OnnxError> {
        let node = op.node;
        if node.outputs().all(|(index, _)| inferred.outputs.get(index).is_some_and(|f| f.constant))
        {
            return Ok(None);
        }
        let mut operator = Operator::new(node.name())
            .kind(node.kind())
            .inputs(node.inputs())
            .inputs(scope::captured(node))
            .workspace(self.context.workspace(node));
        operator = inferred.bodies.iter().cloned().fold(operator, Operator::body);
        let place = |name: &'a str| self.places.get(name).copied().unwrap_or((name, 0));
        let skips_unread = row.and_then(|row| row.skips_unread).is_some_and(|when| when(op));
        let samples = shape_samples(op, &inferred.outputs);
        let kernels = self.context.kernels();
        let views = views_in(op, row, &inferred.outputs, &samples, kernels);
        let (mut places, mut not_in_place, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        let mut returned = Vec::new();
        for (index, name) in node.outputs() {
            if index > 0 && skips_unread && !self.read.contains(name) {
                continue;
            }
            let fact = &inferred.outputs[index];
            let maker = format!("made by operator {}", node.label());
            let mut size = infer::bytes(fact, name, &maker, self.context)?;
            if !fact.has_size() {
                unknown.push(name);
                // Branches may make results of known sizes in it.
                let weight = |body: &OpSequence| body.tensor(body.tensor_id(name)?).size;
                let made = inferred.bodies.iter().filter_map(weight);
                size = made.fold(size, Bytes::max);
            }
            let mut output = Output::new(name, size).basis(basis(fact));
            let view = views[index].and_then(|(input, offset)| {
                let (input, offset) = (node.input(input)?, offset);
                Some((input, offset, place(input))).filter(|&(.., (memory, _))| {
                    !self.context.is_copy(name)
                        && (!self.results.contains(name) || self.is_produced(memory))
                })
            });
            if let Some(input) = self.updated(name, fact, node)? {
                operator = operator.inputs([input]);
                output = output.updates(input, 0);
            } else if kernels.is_onnxruntime() && self.results.contains(name) {
                not_in_place.push((name, NotInPlace::Kernel(onnxruntime::APART)));
            } else if let Some(&outer) = self.returns.get(name)
                && inferred.bodies.is_empty()
            {
                // A view would be copied there anyway.
                operator = operator.inputs([outer]);
                output = output.updates(outer, 0);
                returned.push((outer, size));
            } else if let Some((input, offset, (memory, start))) = view {
                places.push((name, (memory, start.saturating_add(offset))));
                output = output.reads_at(input, offset);
            } else {
                let mut in_samples = samples.iter().map(|sample| {
                    let guessed = infer::shape_samples::guessed(op, &sample.inputs);
                    inplace::requests(
                        &guessed,
                        row,
                        (index, &sample.outputs[index]),
                        kernels,
                        place,
                    )
                });
                let mut requests = in_samples
                    .next()
                    .unwrap_or_else(|| inplace::requests(op, row, (index, fact), kernels, place));
                for safe in in_samples {
                    requests = match (requests, safe) {
                        (Ok(mut inputs), Ok(safe)) => {
                            inputs.retain(|input| safe.contains(input));
                            Ok(inputs)
                        }
                        (Err(reason), _) | (_, Err(reason)) => Err(reason),
                    };
                }
                match requests {
                    Ok(inputs) => output = inputs.into_iter().fold(output, Output::overwrites),
                    Err(reason) => {
                        not_in_place.push((name, reason));
                        let copies = index > 0 || kernels.is_onnxruntime();
                        let places = if copies { Vec::new() } else { gathers(op, row, fact) };
                        for (input, offset) in places {
                            if let Some(input) = node.input(input) {
                                output = output.gathers(input, offset);
                            }
                        }
                    }
                }
            }
            operator = operator.output(output);
        }
        Ok(Some(Emitted { operator, places, not_in_place, unknown, returned }))
    }

    /// Returns true if an operator of the sequence produces a tensor.
    fn is_produced(&self, name: &str) -> bool {
        self.defined.contains(name) && !self.inputs.contains(name)
    }

    fn add(&mut self, placed: Placed<'a>, inferred: Inferred, emitted: Option<Emitted<'a>>) {
        let Placed { node, place, has_state } = placed;
        if let Some(Emitted { mut operator, places, not_in_place, unknown, returned }) = emitted {
            let after = self.precedence.operator(node, self.node_places.len(), has_state);
            operator = after.into_iter().fold(operator, Operator::after_place);
            self.node_places.push(place);
            self.with_state.extend(has_state.then_some(place));
            node.inputs().chain(scope::captured(node)).for_each(|name| self.supply_weight(name));
            self.builder.operator(operator);
            for (outer, size) in returned {
                self.builder.weight(outer, Some(size));
            }
            self.places.extend(places);
            self.not_in_place.extend(not_in_place);
            self.unknown.extend(unknown);
            self.defined.extend(node.outputs().map(|(_, name)| name));
        } else {
            self.precedence.fold(node);
            let made = node
                .outputs()
                .filter_map(|(index, name)| Some((name, inferred.outputs.get(index)?.bytes()?)));
            self.known.extend(made);
        }
        for (name, fact) in node.0.output.iter().zip(inferred.outputs) {
            if !name.is_empty() {
                self.state_type(name, &fact);
                self.scope.facts.insert(name, fact);
            }
        }
    }

    /// Declares a tensor as a weight if it is neither an input nor made by an operator of the sequence.
    fn supply_weight(&mut self, name: &'a str) {
        if !self.defined.contains(name) && self.weights.insert(name) {
            self.builder.weight(name, self.scope.get(name).and_then(Fact::bytes));
            if let Some(of) = self.scope.get(name).and_then(Fact::tensor_type) {
                self.builder.typed(name, of);
            }
        }
    }

    fn state_type(&mut self, name: &str, fact: &Fact) {
        if let Some(of) = fact.tensor_type() {
            self.builder.typed(name, of);
        }
    }

    fn finish(mut self, graph: &'a GraphProto) -> Result<Sequenced<'a>, OnnxError> {
        let mut outputs = Vec::with_capacity(graph.output.len());
        for name in scope::output_names(graph) {
            let fact = self.scope.get(name).cloned().unwrap_or_default();
            // Constant strings are not part of the plan.
            if self.defined.contains(name) || fact.element != Some(DataType::STRING) {
                if !self.defined.contains(name) && !self.is_body {
                    infer::bytes(&fact, name, "an output of the graph", self.context)?;
                }
                self.supply_weight(name);
                self.builder.output(name);
            }
            outputs.push(fact);
        }
        if !self.is_body {
            self.check_states()?;
            for name in self.context.kept().filter(|name| self.defined.contains(name)) {
                self.builder.output(name);
            }
            if !self.context.keeps_unknown() {
                self.context.findings.check_open()?;
            }
            self.context.findings.check_differing()?;
        }
        let mut sequence = self.builder.build()?;
        sequence.set_given_order(precedence::ranks(&self.node_places));
        Ok(Sequenced {
            sequence,
            not_in_place: self.not_in_place,
            unknown: self.unknown,
            outputs,
            places: self.node_places,
            with_state: self.with_state,
            known: self.known,
        })
    }
}

/// The basis of a tensor's size.
fn basis(fact: &Fact) -> SizeBasis {
    if fact.may_be_smaller() {
        SizeBasis::AtMost
    } else if fact.declared {
        SizeBasis::Declared
    } else {
        SizeBasis::Exact
    }
}
