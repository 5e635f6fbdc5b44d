//! Operators that hold graphs: `If`, `Loop` and `Scan`.
//!
//! A body is a sequence of its own, which the operator holds; see [`Operator::body`]. What the body
//! reads from the graphs around it counts as an input of the operator. The shapes of the body and of
//! the operator's outputs follow from each other.
//!
//! [`Operator::body`]: crate::Operator::body

use std::{ops::Range, rc::Rc};

use rten_onnx::onnx::{DataType, GraphProto, ValueInfoProto};

use crate::import::onnx::{
    OnnxError,
    infer::{
        Bodies,
        open::{self, SHAPE_SAMPLES, UnresolvedShape},
    },
    ops::{
        op::{Op, axis},
        row::{Body, Row, Size},
    },
    read::{
        context::Context,
        fact::{Dims, Fact, Sample, written},
        node::Node,
        scope::{self, Scope},
        stored::stored,
    },
};

/// Before this opset `Scan` had a batch dimension.
const SCAN_WITHOUT_BATCH: i64 = 9;

/// Turns the sub-graphs of an operator into sequences, if it has any.
///
/// # Errors
///
/// If the operator is none of the three, or a body is invalid.
pub(crate) fn bodies(
    op: &Op,
    row: Option<&Row>,
    context: &Context,
    scope: &Scope,
    run: Run,
) -> Result<Option<Bodies>, OnnxError> {
    if op.node.bodies().next().is_none() {
        return Ok(None);
    }
    let host = Host { op, context, scope, run };
    match row.map(|row| row.shapes) {
        Some(Size::Body(Body::If)) => host.branches(),
        Some(Size::Body(Body::Loop)) => host.iterations(),
        Some(Size::Body(Body::Scan)) if op.opset >= SCAN_WITHOUT_BATCH => host.scan(),
        _ => Err(host.unsupported("a sub-graph")),
    }
    .map(Some)
}

/// Turns a sub-graph with these inputs into a sequence.
pub(crate) type Run<'r> = &'r dyn Fn(&GraphProto, Vec<Fact>) -> Result<Bodies, OnnxError>;

struct Host<'r, 'a, 'f> {
    op: &'r Op<'a, 'f>,
    context: &'r Context<'r>,
    scope: &'r Scope<'r>,
    run: Run<'r>,
}

impl<'a> Host<'_, 'a, '_> {
    /// `If`: one of two graphs runs. If the condition is known, only that one is planned.
    fn branches(&self) -> Result<Bodies, OnnxError> {
        let chosen: &[&str] = match self.op.input(0).and_then(Fact::int) {
            Some(0) => &["else_branch"],
            Some(_) => &["then_branch"],
            None => &["then_branch", "else_branch"],
        };
        let mut answer: Option<Bodies> = None;
        let mut shapes: Vec<Vec<Dims>> = Vec::new();
        for name in chosen {
            let branch = self.body(self.graph(name)?, &[])?;
            shapes.resize(branch.outputs.len().max(shapes.len()), Vec::new());
            for (shapes, output) in shapes.iter_mut().zip(&branch.outputs) {
                shapes.extend(output.dims.clone().filter(|dims| !dims.contains(&None)));
            }
            answer = Some(match answer {
                None => branch,
                Some(other) => Bodies {
                    outputs: other.outputs.iter().zip(&branch.outputs).map(either).collect(),
                    sequences: [other.sequences, branch.sequences].concat(),
                    ..branch
                },
            });
        }
        let answer = answer.ok_or_else(|| self.unsupported("no branch"))?;
        let reason =
            "its branches give it different numbers of dimensions or of tensors".to_owned();
        Ok(Bodies { branches: shapes, reason, ..answer })
    }

    /// `Loop`: the iteration number and the condition go in, then the state; the condition comes
    /// out, then the state, then one slice of each collected output.
    fn iterations(&self) -> Result<Bodies, OnnxError> {
        let body = self.graph("body")?;
        let states = self.op.inputs.len().saturating_sub(2);
        let counts = (body.input.len(), self.op.node.0.output.len() + 1);
        if counts.0 != states + 2 || counts.1 != body.output.len() || counts.1 <= states {
            return Err(self.unsupported("a body that does not match its inputs and outputs"));
        }
        let scalar =
            |element| Fact { element: Some(element), dims: Some(Vec::new()), ..Fact::default() };
        let mut supplied = vec![scalar(DataType::INT64), scalar(DataType::BOOL)];
        supplied.extend((2..self.op.inputs.len()).map(|index| self.handed(index)));
        let mut answer = self.steady(body, &mut supplied, 2..2 + states, 1)?;
        answer.outputs.remove(0);
        for (output, state) in answer.outputs.iter_mut().zip(&supplied[2..]) {
            *output = state.clone();
        }
        let trips = |fact: Fact| fact.int().map(|trips| u64::try_from(trips).unwrap_or(0));
        let limit = self.op.input(0);
        let exact = limit.cloned().and_then(trips).filter(|_| self.runs_to_the_end(body));
        let at_most = |nth| limit.and_then(|limit| trips(limit.in_sample(nth)));
        let at_most: Option<Vec<u64>> = (0..SHAPE_SAMPLES).map(at_most).collect();
        let count = Length { exact, samples: at_most.map(|most| guesses(self.op, most, exact)) };
        for collected in answer.outputs.iter_mut().skip(states) {
            insert(collected, 0, &count);
        }
        "it is not known how often the loop runs".clone_into(&mut answer.reason);
        Ok(answer)
    }

    /// `Scan`: the state goes in, then a slice of each scanned input; the state comes out, then a
    /// slice of each collected output.
    fn scan(&self) -> Result<Bodies, OnnxError> {
        let body = self.graph("body")?;
        let scanned = self.op.node.int("num_scan_inputs").and_then(|n| usize::try_from(n).ok());
        let states = scanned.and_then(|scanned| self.op.inputs.len().checked_sub(scanned));
        let outputs = self.op.node.0.output.len();
        let states = states.filter(|&states| {
            body.input.len() == self.op.inputs.len()
                && body.output.len() == outputs
                && outputs >= states
        });
        let states = states
            .ok_or_else(|| self.unsupported("a body that does not match its inputs and outputs"))?;
        let at = |name: &str, index: usize, rank: usize| {
            let given = self.op.node.ints(name).and_then(|axes| axes.get(index).copied());
            axis(given.unwrap_or(0), rank).ok()
        };
        let mut supplied: Vec<Fact> = (0..states).map(|index| self.handed(index)).collect();
        let mut length = Length::default();
        for index in states..self.op.inputs.len() {
            let mut slice = self.handed(index);
            let rank = slice.largest().map(|sizes| sizes.len());
            let rank = rank.or(slice.dims.as_ref().map(Vec::len));
            match rank.and_then(|rank| at("scan_input_axes", index - states, rank)) {
                Some(at) => length.note(remove(&mut slice, at)),
                None => slice.dims = None,
            }
            supplied.push(slice);
        }
        let mut answer = self.steady(body, &mut supplied, 0..states, 0)?;
        for (output, state) in answer.outputs.iter_mut().zip(&supplied[..states]) {
            *output = state.clone();
        }
        for (index, collected) in answer.outputs.iter_mut().skip(states).enumerate() {
            let rank = collected.dims.as_ref().map_or(0, Vec::len) + 1;
            match at("scan_output_axes", index, rank) {
                Some(at) => insert(collected, at, &length),
                None => collected.dims = None,
            }
        }
        Ok(answer)
    }

    fn graph(&self, name: &str) -> Result<&'a GraphProto, OnnxError> {
        self.op.node.graph(name).ok_or_else(|| self.unsupported(&format!("no graph '{name}'")))
    }

    /// An input as the body sees it in its first iteration.
    fn handed(&self, index: usize) -> Fact {
        let fact = self.op.input(index).cloned().unwrap_or_default();
        fact.without_value()
    }

    /// Plans a body whose inputs are the given ones.
    fn body(&self, graph: &GraphProto, supplied: &[Fact]) -> Result<Bodies, OnnxError> {
        let named = scope::output_names(graph).count() == graph.output.len();
        if graph.input.len() != supplied.len() || !named {
            return Err(self.unsupported("a body that does not match its inputs"));
        }
        let inputs = graph.input.iter().zip(supplied);
        (self.run)(graph, inputs.map(|(value, fact)| self.body_input(value, fact)).collect())
    }

    /// Returns the facts about a body's input: those passed in, otherwise those declared.
    fn body_input(&self, value: &ValueInfoProto, supplied: &Fact) -> Fact {
        let declared = self.context.declared(value);
        let unsettled = UnresolvedShape {
            name: value.name.as_deref().unwrap_or(""),
            maker: format!("passed to the body of operator {}", self.op.node.label()),
            declared: Some(value),
            reason: String::new(),
        };
        let mut fact = Fact {
            element: supplied.element.or(declared.element),
            dims: supplied.dims.clone(),
            samples: Rc::clone(&supplied.samples),
            items: supplied.items.clone(),
            ..Fact::default()
        };
        if !fact.is_open() && !fact.is_list() {
            unsettled.reconcile(&mut fact, &[], None, self.context);
        }
        fact
    }

    /// Plans a body whose state may change its size from iteration to iteration, at the largest of
    /// these sizes. `states` are the states among its inputs; among its outputs, they begin at
    /// `first`.
    fn steady(
        &self,
        body: &GraphProto,
        supplied: &mut [Fact],
        states: Range<usize>,
        first: usize,
    ) -> Result<Bodies, OnnxError> {
        let name = |index: usize| self.op.node.0.output.get(index).map_or("", String::as_str);
        let given: Vec<bool> = (0..states.len())
            .map(|index| match self.context.shape(name(index)) {
                Some(shape) => at_most(&mut supplied[states.start + index], shape, name(index)),
                None => false,
            })
            .collect();
        for attempt in 0.. {
            let answer = self.body(body, supplied)?;
            let mut steady = true;
            let last = attempt + 1 == ATTEMPTS || !attempt_allowed(attempt, self.context);
            for (index, given) in given.iter().enumerate() {
                let state = &mut supplied[states.start + index];
                let Some(next) = answer.outputs.get(first + index) else { continue };
                if *given || holds(state, next) {
                    continue;
                }
                if let Some(hull) = either_shape(state, next).filter(|_| !last) {
                    *state = hull;
                    steady = false;
                } else {
                    self.ask_for_state(name(index), state, next)?;
                }
            }
            if steady {
                return Ok(answer);
            }
        }
        Err(self.unsupported("a state that never settles"))
    }

    /// Asks for the shape of a state that changes: its memory is allocated once, so the user must
    /// state how large it becomes.
    fn ask_for_state(&self, name: &str, first: &Fact, next: &Fact) -> Result<(), OnnxError> {
        if first.is_list() || next.is_list() {
            return Err(self.unsupported("a sequence that grows from iteration to iteration"));
        }
        if name.is_empty() {
            return Err(
                self.unsupported("a state that changes its shape from iteration to iteration")
            );
        }
        let shape = |fact: &Fact| {
            let sizes = fact.largest().unwrap_or_default();
            written(&sizes.into_iter().map(Some).collect::<Vec<_>>())
        };
        let reason = format!(
            "its shape changes from iteration to iteration, from {} to {}",
            shape(first),
            shape(next)
        );
        let maker = format!("made by operator {}", self.op.node.label());
        let open = Fact { dims: differing(first, next), ..Fact::default() };
        open::ask_for_shape(name, &maker, &open, &reason, self.context);
        Ok(())
    }

    /// Returns whether a loop never stops before its last iteration: its condition is true at
    /// first, and the body passes it on unchanged.
    fn runs_to_the_end(&self, body: &GraphProto) -> bool {
        let starts = self.op.input(1).is_none_or(|condition| condition.int() == Some(1));
        let name = |values: &[rten_onnx::onnx::ValueInfoProto], index: usize| {
            values.get(index).and_then(|value| value.name.clone())
        };
        let (Some(given), Some(mut next)) = (name(&body.input, 1), name(&body.output, 0)) else {
            return false;
        };
        // Follows copies backwards, each at most once.
        for _ in 0..body.node.len() {
            let made = |node: &Node| node.0.output.contains(&next);
            match body.node.iter().map(Node).find(made) {
                Some(node) if matches!(node.kind(), "Identity" | "Cast") => {
                    next = node.input(0).unwrap_or("").to_owned();
                }
                Some(node) if node.kind() == "Constant" => {
                    let value = node.tensor("value").map(stored);
                    return starts && value.is_some_and(|value| value.int() == Some(1));
                }
                _ => break,
            }
        }
        let weight = body.initializer.iter().find(|tensor| tensor.name.as_deref() == Some(&next));
        let outer = self.scope.get(&next).and_then(Fact::int);
        let value = weight.map(stored).as_ref().and_then(Fact::int).or(outer);
        starts && (next == given || value == Some(1))
    }

    fn unsupported(&self, what: &str) -> OnnxError {
        OnnxError::Unsupported {
            what: format!("operator {} with {what}", self.op.node.label()),
            remedy: "simplify the model, for example by unrolling or constant folding".to_owned(),
        }
    }
}

/// The number of times that a loop is tried with a larger state before the user is asked.
const ATTEMPTS: u32 = 4;

/// Returns whether a body may be planned again. The first attempt does not count towards the limit.
fn attempt_allowed(attempt: u32, context: &Context) -> bool {
    attempt == 0 || context.findings.retry()
}

/// Returns the facts about a tensor that is one of two.
fn either((a, b): (&Fact, &Fact)) -> Fact {
    let element = a.element.or(b.element);
    match either_shape(a, b) {
        Some(fact) => Fact { element, ..fact },
        None => Fact { element, ..Fact::default() },
    }
}

/// The shape of a tensor that is one of two: in the first shape sample the largest, in each other shape sample
/// one of them. `None` if they have different numbers of dimensions, or unknown ones.
fn either_shape(a: &Fact, b: &Fact) -> Option<Fact> {
    let plain = Fact::without_value;
    if let (Some(a), Some(b)) = (&a.items, &b.items) {
        let items = a.iter().zip(b.iter()).map(|(a, b)| either_shape(a, b));
        let items = items.collect::<Option<_>>().filter(|_| a.len() == b.len());
        return items.map(|items| Fact { items: Some(items), ..Fact::default() });
    }
    if a.is_list() || b.is_list() {
        return None;
    }
    if a.dims == b.dims && a.samples == b.samples {
        return a.largest().map(|_| plain(a));
    }
    let largest = |a: Vec<u64>, b: Vec<u64>| -> Option<Vec<u64>> {
        (a.len() == b.len()).then(|| a.iter().zip(&b).map(|(a, b)| *a.max(b)).collect())
    };
    let sizes = |fact: &Fact, nth| fact.in_sample(nth).sizes();
    let most = largest(sizes(a, 0)?, sizes(b, 0)?)?;
    let sample = |nth: usize| {
        let one = sizes(if nth.is_multiple_of(2) { b } else { a }, nth)?;
        let sizes = if nth == 0 { most.clone() } else { one };
        (sizes.len() == most.len()).then_some(Sample { sizes, elements: None })
    };
    let samples: Option<Rc<[Sample]>> = (0..SHAPE_SAMPLES).map(sample).collect();
    let element = a.element.or(b.element);
    Some(Fact { element, dims: differing(a, b), samples: samples?, ..Fact::default() })
}

/// The shape with the sizes in which two agree.
fn differing(a: &Fact, b: &Fact) -> Option<Dims> {
    let (a, b) = (a.dims.as_ref()?, b.dims.as_ref()?);
    let same = |(a, b): (&Option<u64>, &Option<u64>)| a.filter(|_| a == b);
    (a.len() == b.len()).then(|| a.iter().zip(b).map(same).collect())
}

/// Returns whether the memory planned for a state also holds its next value.
fn holds(state: &Fact, next: &Fact) -> bool {
    if state.is_list() || next.is_list() {
        return state.without_value() == next.without_value();
    }
    let (Some(most), Some(sizes)) = (state.largest(), next.largest()) else {
        // Unknown sizes have been reported elsewhere.
        return true;
    };
    let fits =
        most.len() == sizes.len() && sizes.iter().zip(&most).all(|(size, most)| size <= most);
    fits && (state.is_open() || !next.is_open() && most == sizes)
}

/// Makes the sizes of a state open, up to the shape that the user gives.
fn at_most(state: &mut Fact, shape: &Dims, name: &str) -> bool {
    let Some(sizes) = state.largest().filter(|sizes| sizes.len() == shape.len()) else {
        return false;
    };
    let most: Vec<u64> =
        sizes.iter().zip(shape).map(|(size, most)| most.unwrap_or(*size).max(*size)).collect();
    let sample = |nth| {
        let guess = |(axis, most): (usize, &u64)| open::guess(open::symbol(name, axis), nth, *most);
        let sizes = most.iter().enumerate().map(guess).collect();
        Sample { sizes, elements: None }
    };
    state.samples = (0..SHAPE_SAMPLES).map(sample).collect();
    state.dims = None;
    true
}

/// The number of slices that a loop takes or returns.
#[derive(Default)]
struct Length {
    exact: Option<u64>,
    samples: Option<Vec<u64>>,
}

impl Length {
    fn note(&mut self, other: Self) {
        self.exact = self.exact.or(other.exact);
        self.samples = self.samples.take().or(other.samples);
    }

    fn in_sample(&self, nth: usize) -> Option<u64> {
        self.exact.or_else(|| self.samples.as_ref()?.get(nth).copied())
    }
}

/// Guesses the number of iterations in each shape sample. It is at most `most`, because a loop may stop
/// early.
fn guesses(op: &Op, most: Vec<u64>, exact: Option<u64>) -> Vec<u64> {
    let symbol = open::symbol(op.node.0.output.first().map_or("", String::as_str), usize::MAX - 1);
    let guess = |(nth, most)| if exact.is_some() { most } else { open::guess(symbol, nth, most) };
    most.into_iter().enumerate().map(guess).collect()
}

/// Adds a dimension of this length.
fn insert(fact: &mut Fact, at: usize, length: &Length) {
    let samples: Option<Rc<[Sample]>> = (0..SHAPE_SAMPLES)
        .map(|nth| {
            let mut sizes = fact.in_sample(nth).sizes().filter(|sizes| at <= sizes.len())?;
            sizes.insert(at, length.in_sample(nth)?);
            Some(Sample { sizes, elements: None })
        })
        .collect();
    (fact.elements, fact.items) = (None, None);
    if let Some(dims) = fact.dims.as_mut().filter(|dims| at <= dims.len()) {
        dims.insert(at, length.exact);
    }
    let known = fact.sizes().is_some();
    fact.samples = if known { Rc::default() } else { samples.unwrap_or_default() };
}

/// Removes a dimension and returns its length.
fn remove(fact: &mut Fact, at: usize) -> Length {
    let exact = fact.dims.as_mut().and_then(|dims| dims.remove(at));
    if !fact.is_open() {
        return Length { exact, samples: None };
    }
    let mut removed = Vec::with_capacity(SHAPE_SAMPLES);
    let samples = fact.samples.iter().map(|sample| {
        let mut sizes = sample.sizes.clone();
        removed.push(sizes.remove(at));
        Sample { sizes, elements: None }
    });
    fact.samples = samples.collect();
    Length { exact, samples: Some(removed) }
}
