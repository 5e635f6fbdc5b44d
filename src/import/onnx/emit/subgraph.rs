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
        OnnxError, emit,
        read::fact::{Dims, Fact},
        read::model::{Context, Node},
        read::op::{Op, axis},
        read::scope::{self, Scope},
    },
    lower::{LoweringOptions, lower},
    planner::search::{Limits, Observer},
};

/// The alignment for which room is made in the workspace, in bytes: a cache line.
const ALIGNMENT: Bytes = 64;

/// Before this opset `Scan` had a batch dimension.
const SCAN_WITHOUT_BATCH: i64 = 9;

/// What is known of an operator's outputs, and what it needs while it runs.
pub(crate) struct Answer {
    pub(crate) outputs: Vec<Fact>,
    pub(crate) workspace: Bytes,
}

/// Plans the bodies of an operator.
///
/// # Errors
///
/// If the operator is none of the three, or a body cannot be planned.
pub(crate) fn plan(op: &Op, context: &Context, scope: &Scope) -> Result<Answer, OnnxError> {
    let host = Host { op, context, scope };
    match op.node.kind() {
        "If" if op.node.is_standard() => host.branches(),
        "Loop" if op.node.is_standard() => host.iterations(),
        "Scan" if op.node.is_standard() && op.opset >= SCAN_WITHOUT_BATCH => host.scan(),
        _ => Err(host.unsupported("a sub-graph")),
    }
}

struct Host<'a> {
    op: &'a Op<'a, 'a>,
    context: &'a Context<'a>,
    scope: &'a Scope<'a>,
}

impl Host<'_> {
    /// One of two graphs runs; only one if the condition is known.
    fn branches(&self) -> Result<Answer, OnnxError> {
        let chosen: &[&str] = match self.op.input(0).and_then(Fact::int) {
            Some(0) => &["else_branch"],
            Some(_) => &["then_branch"],
            None => &["then_branch", "else_branch"],
        };
        let mut answer: Option<Answer> = None;
        for name in chosen {
            let branch = self.body(self.graph(name)?, &[])?;
            answer = Some(match answer {
                None => branch,
                Some(other) => Answer {
                    outputs: other.outputs.iter().zip(&branch.outputs).map(agree).collect(),
                    workspace: other.workspace.max(branch.workspace),
                },
            });
        }
        answer.ok_or_else(|| self.unsupported("no branch"))
    }

    /// Iteration number and condition go in, then the state; the condition comes out, then the
    /// state, then one slice of each collected output.
    fn iterations(&self) -> Result<Answer, OnnxError> {
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
        let mut answer = self.body(body, &supplied)?;
        answer.outputs.remove(0);
        self.check_states(&supplied[2..], &answer.outputs)?;
        let trips =
            self.op.input(0).and_then(Fact::int).and_then(|trips| u64::try_from(trips).ok());
        let trips = trips.filter(|_| self.runs_to_the_end(body));
        for collected in answer.outputs.iter_mut().skip(states) {
            insert(collected, 0, trips);
        }
        Ok(answer)
    }

    /// The state goes in, then a slice of each scanned input; out come the state and a slice of
    /// each collected output.
    fn scan(&self) -> Result<Answer, OnnxError> {
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
        let mut length = None;
        for index in states..self.op.inputs.len() {
            let mut slice = self.handed(index);
            slice.dims = slice.dims.and_then(|mut dims| {
                length = length.or(dims.remove(at("scan_input_axes", index - states, dims.len())?));
                Some(dims)
            });
            supplied.push(slice);
        }
        let mut answer = self.body(body, &supplied)?;
        self.check_states(&supplied[..states], &answer.outputs)?;
        for (index, collected) in answer.outputs.iter_mut().skip(states).enumerate() {
            let rank = collected.dims.as_ref().map_or(0, Vec::len) + 1;
            match at("scan_output_axes", index, rank) {
                Some(at) => insert(collected, at, length),
                None => collected.dims = None,
            }
        }
        Ok(answer)
    }

    fn graph(&self, name: &str) -> Result<&GraphProto, OnnxError> {
        self.op.node.graph(name).ok_or_else(|| self.unsupported(&format!("no graph '{name}'")))
    }

    /// An input as the body sees it in its first iteration.
    fn handed(&self, index: usize) -> Fact {
        let fact = self.op.input(index).cloned().unwrap_or_default();
        Fact { elements: None, constant: false, ..fact }
    }

    /// Plans a body whose inputs are the given ones.
    fn body(&self, graph: &GraphProto, supplied: &[Fact]) -> Result<Answer, OnnxError> {
        let named = scope::output_names(graph).count() == graph.output.len();
        if graph.input.len() != supplied.len() || !named {
            return Err(self.unsupported("a body that does not match its inputs"));
        }
        let facts = graph.input.iter().zip(supplied).map(|(value, supplied)| {
            let declared = self.context.declared(value);
            let dims = supplied.sizes().map(|sizes| sizes.into_iter().map(Some).collect());
            Fact {
                element: supplied.element.or(declared.element),
                dims: dims.or(declared.dims),
                ..Fact::default()
            }
        });
        let body = emit::sequence(graph, self.context, facts.collect(), Some(self.scope))?;
        // Enough for every caller: also for those who plan without views or in-place operators.
        let apart = LoweringOptions { views: false, inplace: false, ..LoweringOptions::default() };
        let pool = pool_size(&body.sequence, apart).map_err(|source| OnnxError::Body {
            operator: self.op.node.label(),
            source: Box::new(source),
        })?;
        // No sum of a sequence's sizes overflows, but this one may.
        let workspace = body.inputs.iter().try_fold(pool, |sum, bytes| {
            sum.checked_add(bytes.checked_next_multiple_of(ALIGNMENT)?)
        });
        let workspace = workspace.ok_or_else(|| SequenceError::SizeOverflow {
            tensor: format!("the workspace of {}", self.op.node.label()),
            size: pool,
        })?;
        Ok(Answer { outputs: body.outputs, workspace })
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
    fn runs_to_the_end(&self, body: &GraphProto) -> bool {
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
                    let value = node.tensor("value").map(crate::import::onnx::read::model::stored);
                    return starts && value.is_some_and(|value| value.int() == Some(1));
                }
                _ => break,
            }
        }
        let stored = body.initializer.iter().find(|tensor| tensor.name.as_deref() == Some(&next));
        let stored = stored.map(crate::import::onnx::read::model::stored);
        let outer = self.scope.get(&next).and_then(Fact::int);
        let value = stored.as_ref().and_then(Fact::int).or(outer);
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
