//! Operators that hold graphs: `If`, `Loop` and `Scan`.
//!
//! A body is planned as a sequence of its own, whose outputs live to its end. Its pool is workspace
//! of the operator that holds it, beside a copy of what the operator hands in: the state of the
//! next iteration is written while that of this one may still be read. What the body reads from the
//! graphs around it counts as an input of the operator.

use rten_onnx::onnx::{DataType, GraphProto};

use crate::{
    Bytes, OpSequence, PlanError, SequenceError, Strategy,
    import::onnx::{
        OnnxError,
        infer::Bodies,
        ops::{
            op::{Op, axis},
            row::{Body, Row, Size},
        },
        read::{
            fact::{Dims, Fact},
            model::{Context, Node, stored},
            scope::{self, Scope},
        },
    },
    lower::{LoweringOptions, lower},
    planner::search::{Limits, Observer},
};

/// The alignment for which room is made in the workspace, in bytes: a cache line.
const ALIGNMENT: Bytes = 64;

/// Before this opset `Scan` had a batch dimension.
const SCAN_WITHOUT_BATCH: i64 = 9;

/// A sub-graph that an operator runs, and what is known of what the operator hands in.
pub(crate) struct Handed<'a> {
    pub(crate) graph: &'a GraphProto,
    pub(crate) inputs: Vec<Fact>,
}

/// The sub-graphs that may run, none if the operator has none.
///
/// # Errors
///
/// If the operator is none of the three, or its sub-graphs do not match its inputs and outputs.
pub(crate) fn handed<'a>(
    op: &Op<'a, '_>,
    row: Option<&Row>,
    context: &Context,
) -> Result<Vec<Handed<'a>>, OnnxError> {
    if op.node.bodies().next().is_none() {
        return Ok(Vec::new());
    }
    let host = Host { op };
    let bodies = match row.map(|row| row.shapes) {
        Some(Size::Body(Body::If)) => host.branches(),
        Some(Size::Body(Body::Loop)) => host.iteration(),
        Some(Size::Body(Body::Scan)) if op.opset >= SCAN_WITHOUT_BATCH => host.scanned(),
        _ => Err(host.unsupported("a sub-graph")),
    }?;
    bodies.into_iter().map(|body| host.declared(body, context)).collect()
}

/// The room that a body needs beside a copy of what it is handed, `inputs` bytes each.
///
/// # Errors
///
/// If the body cannot be planned.
pub(crate) fn workspace(op: &Op, body: &OpSequence, inputs: &[Bytes]) -> Result<Bytes, OnnxError> {
    // Enough for every caller: also for those who plan without views or in-place operators.
    let apart = LoweringOptions { views: false, inplace: false, ..LoweringOptions::default() };
    let pool = pool_size(body, apart).map_err(|source| OnnxError::Body {
        operator: op.node.label(),
        source: Box::new(source),
    })?;
    // No sum of a sequence's sizes overflows, but this one may.
    let workspace = inputs
        .iter()
        .try_fold(pool, |sum, bytes| sum.checked_add(bytes.checked_next_multiple_of(ALIGNMENT)?));
    workspace.ok_or_else(|| {
        let tensor = format!("the workspace of {}", op.node.label());
        SequenceError::SizeOverflow { tensor, size: pool }.into()
    })
}

/// What the sub-graphs together say of the operator. `answers` is what each says.
///
/// # Errors
///
/// If a state changes its shape.
pub(crate) fn join(
    op: &Op,
    row: Option<&Row>,
    scope: &Scope,
    handed: &[Handed],
    answers: Vec<Bodies>,
) -> Result<Option<Bodies>, OnnxError> {
    let host = Host { op };
    let joined = answers.into_iter().reduce(|other, branch| Bodies {
        outputs: other.outputs.iter().zip(&branch.outputs).map(agree).collect(),
        workspace: other.workspace.max(branch.workspace),
    });
    let (Some(answer), Some(body)) = (joined, handed.first()) else { return Ok(None) };
    match row.map(|row| row.shapes) {
        Some(Size::Body(Body::Loop)) => host.iterations(body, answer, scope).map(Some),
        Some(Size::Body(Body::Scan)) => host.scan(answer).map(Some),
        _ => Ok(Some(answer)),
    }
}

struct Host<'a, 'o, 'f> {
    op: &'o Op<'a, 'f>,
}

impl<'a> Host<'a, '_, '_> {
    /// One of two graphs runs; only one if the condition is known.
    fn branches(&self) -> Result<Vec<Handed<'a>>, OnnxError> {
        let chosen: &[&str] = match self.op.input(0).and_then(Fact::int) {
            Some(0) => &["else_branch"],
            Some(_) => &["then_branch"],
            None => &["then_branch", "else_branch"],
        };
        let handed = |name: &&str| Ok(Handed { graph: self.graph(name)?, inputs: Vec::new() });
        chosen.iter().map(handed).collect()
    }

    /// Iteration number and condition go in, then the state.
    fn iteration(&self) -> Result<Vec<Handed<'a>>, OnnxError> {
        let body = self.graph("body")?;
        let states = self.op.inputs.len().saturating_sub(2);
        let counts = (body.input.len(), self.op.node.0.output.len() + 1);
        if counts.0 != states + 2 || counts.1 != body.output.len() || counts.1 <= states {
            return Err(self.unsupported("a body that does not match its inputs and outputs"));
        }
        let scalar =
            |element| Fact { element: Some(element), dims: Some(Vec::new()), ..Fact::default() };
        let mut inputs = vec![scalar(DataType::INT64), scalar(DataType::BOOL)];
        inputs.extend((2..self.op.inputs.len()).map(|index| self.supplied(index)));
        Ok(vec![Handed { graph: body, inputs }])
    }

    /// The condition comes out, then the state, then one slice of each collected output.
    fn iterations(
        &self,
        body: &Handed,
        mut answer: Bodies,
        scope: &Scope,
    ) -> Result<Bodies, OnnxError> {
        answer.outputs.remove(0);
        let first: Vec<Fact> =
            (2..self.op.inputs.len()).map(|index| self.supplied(index)).collect();
        self.check_states(&first, &answer.outputs)?;
        let trips =
            self.op.input(0).and_then(Fact::int).and_then(|trips| u64::try_from(trips).ok());
        let trips = trips.filter(|_| self.runs_to_the_end(body.graph, scope));
        for collected in answer.outputs.iter_mut().skip(first.len()) {
            insert(collected, 0, trips);
        }
        Ok(answer)
    }

    /// How many inputs of a `Scan` are its state.
    fn states(&self) -> Option<usize> {
        let scanned = self.op.node.int("num_scan_inputs").and_then(|n| usize::try_from(n).ok())?;
        self.op.inputs.len().checked_sub(scanned)
    }

    /// An axis of a scanned input or output.
    fn scan_axis(&self, name: &str, index: usize, rank: usize) -> Option<usize> {
        let given = self.op.node.ints(name).and_then(|axes| axes.get(index).copied());
        axis(given.unwrap_or(0), rank).ok()
    }

    /// The state goes in, then a slice of each scanned input.
    fn scanned(&self) -> Result<Vec<Handed<'a>>, OnnxError> {
        let body = self.graph("body")?;
        let outputs = self.op.node.0.output.len();
        let states = self.states().filter(|&states| {
            body.input.len() == self.op.inputs.len()
                && body.output.len() == outputs
                && outputs >= states
        });
        let states = states
            .ok_or_else(|| self.unsupported("a body that does not match its inputs and outputs"))?;
        let mut inputs: Vec<Fact> = (0..states).map(|index| self.supplied(index)).collect();
        for index in states..self.op.inputs.len() {
            let mut slice = self.supplied(index);
            slice.dims = slice.dims.and_then(|mut dims| {
                dims.remove(self.scan_axis("scan_input_axes", index - states, dims.len())?);
                Some(dims)
            });
            inputs.push(slice);
        }
        Ok(vec![Handed { graph: body, inputs }])
    }

    /// The number of slices, which all scanned inputs have.
    fn scan_length(&self, states: usize) -> Option<u64> {
        (states..self.op.inputs.len()).find_map(|index| {
            let dims = self.op.input(index)?.dims.as_ref()?;
            dims[self.scan_axis("scan_input_axes", index - states, dims.len())?]
        })
    }

    /// The state comes out, and a slice of each collected output.
    fn scan(&self, mut answer: Bodies) -> Result<Bodies, OnnxError> {
        let states = self.states().unwrap_or(0);
        let first: Vec<Fact> = (0..states).map(|index| self.supplied(index)).collect();
        self.check_states(&first, &answer.outputs)?;
        let length = self.scan_length(states);
        for (index, collected) in answer.outputs.iter_mut().skip(states).enumerate() {
            let rank = collected.dims.as_ref().map_or(0, Vec::len) + 1;
            match self.scan_axis("scan_output_axes", index, rank) {
                Some(at) => insert(collected, at, length),
                None => collected.dims = None,
            }
        }
        Ok(answer)
    }

    fn graph(&self, name: &str) -> Result<&'a GraphProto, OnnxError> {
        self.op.node.graph(name).ok_or_else(|| self.unsupported(&format!("no graph '{name}'")))
    }

    /// An input as the body sees it in its first iteration.
    fn supplied(&self, index: usize) -> Fact {
        let fact = self.op.input(index).cloned().unwrap_or_default();
        Fact { elements: None, constant: false, ..fact }
    }

    /// The body's inputs as the operator hands them in, else as the body declares them.
    fn declared(&self, body: Handed<'a>, context: &Context) -> Result<Handed<'a>, OnnxError> {
        let Handed { graph, inputs } = body;
        let named = scope::output_names(graph).count() == graph.output.len();
        if graph.input.len() != inputs.len() || !named {
            return Err(self.unsupported("a body that does not match its inputs"));
        }
        let facts = graph.input.iter().zip(&inputs).map(|(value, supplied)| {
            let declared = context.declared(value);
            let dims = supplied.sizes().map(|sizes| sizes.into_iter().map(Some).collect());
            Fact {
                element: supplied.element.or(declared.element),
                dims: dims.or(declared.dims),
                ..Fact::default()
            }
        });
        Ok(Handed { graph, inputs: facts.collect() })
    }

    /// The memory for a state is made once, so its size must not change.
    fn check_states(&self, first: &[Fact], next: &[Fact]) -> Result<(), OnnxError> {
        let changes = |(first, next): (&Fact, &Fact)| {
            next.sizes().is_some() && first.sizes().is_some() && next.sizes() != first.sizes()
        };
        if first.iter().zip(next).any(changes) {
            return Err(
                self.unsupported("a state that changes its shape from iteration to iteration")
            );
        }
        Ok(())
    }

    /// Whether a loop never stops before its last iteration: its condition is true at first, and
    /// the body hands it on.
    fn runs_to_the_end(&self, body: &GraphProto, scope: &Scope) -> bool {
        let starts = self.op.input(1).is_none_or(|condition| condition.int() == Some(1));
        let name = |values: &[rten_onnx::onnx::ValueInfoProto], index: usize| {
            values.get(index).and_then(|value| value.name.clone())
        };
        let (Some(given), Some(mut next)) = (name(&body.input, 1), name(&body.output, 0)) else {
            return false;
        };
        // Back over copies; each is taken at most once.
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
        let outer = scope.get(&next).and_then(Fact::int);
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

/// What a body needs, by the default strategy. No plan is made of it: that of the whole model is the
/// only one there is.
fn pool_size(body: &OpSequence, options: LoweringOptions) -> Result<Bytes, PlanError> {
    let problem = lower(body, options)?.problem.with_alignment(ALIGNMENT, 0)?;
    let layout = Strategy::default().layout(&problem, &Limits::default(), Observer::default())?;
    Ok(layout.pool_size(&problem))
}

/// What holds whichever branch runs.
fn agree((a, b): (&Fact, &Fact)) -> Fact {
    let dims = match (&a.dims, &b.dims) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            Some(a.iter().zip(b).map(|(a, b)| a.filter(|_| a == b)).collect::<Dims>())
        }
        _ => None,
    };
    Fact { element: a.element.or(b.element), dims, ..Fact::default() }
}

fn insert(fact: &mut Fact, at: usize, size: Option<u64>) {
    if let Some(dims) = &mut fact.dims {
        dims.insert(at, size);
    }
}
