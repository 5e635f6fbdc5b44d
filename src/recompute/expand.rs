//! The expanded sequence: the given operators in their order, with copies where some run again.

use std::collections::HashSet;

use crate::{
    OpSequence, Operator, Output, SequenceError,
    sequence::{Dependency, Origin, TensorId},
};

/// A run of an operator that is not at its own step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct LaterRun {
    /// The step of the given sequence right before which it runs, after the later runs with the same
    /// `before` of operators with smaller steps.
    pub before: usize,
    /// The step of the operator in the given sequence.
    pub step: usize,
    /// True if the operator also runs at its own step, so that this run is a copy; false if it runs only here,
    /// because no operator reads its results before.
    pub is_copy: bool,
}

impl LaterRun {
    /// The operator at `step` runs again right before the one at `before`.
    #[must_use]
    pub const fn again(step: usize, before: usize) -> Self {
        Self { before, step, is_copy: true }
    }

    /// The operator at `step` runs right before the one at `before`, and not at its own step. One that makes a graph
    /// output cannot be deferred.
    #[must_use]
    pub const fn deferred(step: usize, before: usize) -> Self {
        Self { before, step, is_copy: false }
    }
}

/// Returns the sequence in which some operators run a second time, or later. Operators and tensors of the given
/// sequence keep their names. The names of copies end in `~1`, or in a higher number if that name is taken. A reader of
/// a tensor that has been made again reads the copy, unless the tensor lies in the memory of a graph output.
///
/// ```
/// use memplan::{OpSequence, Operator, Output, recompute::{LaterRun, expand}};
///
/// let sequence = OpSequence::builder()
///     .input("x", 8)
///     .operator(Operator::new("exp").inputs(["x"]).output(Output::new("a", 8)))
///     .operator(Operator::new("sum").inputs(["a"]).output(Output::new("s", 1)))
///     .operator(Operator::new("mul").inputs(["a", "s"]).output(Output::new("y", 8)))
///     .output("y")
///     .build()?;
/// let expanded = expand(&sequence, &[LaterRun::again(0, 2)])?;
/// let names: Vec<String> = (0..4).map(|step| expanded.operator_name(step)).collect();
/// assert_eq!(names, ["exp", "sum", "exp~1", "mul"]);
/// assert_eq!(expanded.operators()[3].inputs[0], expanded.tensor_id("a~1").unwrap());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If an operator would not run later than at its own step, one that makes a graph output is deferred, a step is out of
/// range or repeated, or the result is not a valid sequence, for example because the sum of its sizes exceeds 64 bits.
pub fn expand(sequence: &OpSequence, later: &[LaterRun]) -> Result<OpSequence, SequenceError> {
    let runs = runs(sequence.operators().len(), later)?;
    let mut expansion = Expansion::new(sequence);
    let makes_kept = makes_kept(sequence);
    if let Some(wrong) = later.iter().find(|run| !run.is_copy && makes_kept[run.step]) {
        return Err(SequenceError::WrongRerun { step: wrong.step, before: wrong.before });
    }
    for run in runs {
        expansion.run(run);
    }
    expansion.builder.build()
}

/// A run of an operator in an expanded sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The step of the operator in the given sequence.
    pub(crate) step: usize,
    /// True if the operator has run before.
    pub(crate) is_copy: bool,
}

/// The runs of the expanded sequence of `count` operators, in order.
///
/// # Errors
///
/// If an operator would not run later than at its own step, or a step is out of range or repeated.
pub(crate) fn runs(count: usize, later: &[LaterRun]) -> Result<Vec<Run>, SequenceError> {
    let mut sorted = later.to_vec();
    sorted.sort_unstable();
    let mut runs_later = vec![false; count];
    let mut is_deferred = vec![false; count];
    for &LaterRun { step, before, is_copy } in &sorted {
        if step >= before || before >= count || std::mem::replace(&mut runs_later[step], true) {
            return Err(SequenceError::WrongRerun { step, before });
        }
        is_deferred[step] = !is_copy;
    }
    let mut runs = Vec::with_capacity(count + later.len());
    let mut later = sorted.into_iter().peekable();
    for (step, is_deferred) in is_deferred.into_iter().enumerate() {
        while let Some(LaterRun { step, is_copy, .. }) = later.next_if(|run| run.before == step) {
            runs.push(Run { step, is_copy });
        }
        if !is_deferred {
            runs.push(Run { step, is_copy: false });
        }
    }
    Ok(runs)
}

/// An expanded sequence under construction.
struct Expansion<'a> {
    sequence: &'a OpSequence,
    builder: crate::sequence::SequenceBuilder,
    /// By tensor: the name that readers use from here on.
    names: Vec<Box<str>>,
    /// By tensor: true if it shares memory with a graph output, which is never made again.
    kept: Vec<bool>,
    /// By step: the place of the operator in the expanded sequence.
    places: Vec<usize>,
    added: usize,
    /// The names of all tensors and operators.
    tensors: HashSet<Box<str>>,
    operators: HashSet<Box<str>>,
}

impl<'a> Expansion<'a> {
    fn new(sequence: &'a OpSequence) -> Self {
        let mut builder = OpSequence::builder();
        for tensor in sequence.tensors() {
            match tensor.origin {
                Origin::Input => {
                    builder.input(tensor.name.clone(), tensor.size.unwrap_or(0));
                }
                Origin::Weight => {
                    builder.weight(tensor.name.clone(), tensor.size);
                }
                Origin::Output { .. } => {}
            }
            if let Some(tensor_type) = &tensor.elements {
                builder.typed(tensor.name.clone(), tensor_type.clone());
            }
        }
        for &output in sequence.outputs() {
            builder.output(sequence.tensor(output).name.clone());
        }
        for (name, &range) in sequence.dims() {
            builder.dim(name.clone(), range);
        }
        let count = sequence.operators().len();
        Self {
            sequence,
            builder,
            names: sequence.tensors().iter().map(|tensor| tensor.name.clone()).collect(),
            kept: kept(sequence),
            places: vec![0; count],
            added: 0,
            tensors: tensor_names(sequence),
            operators: sequence.operators().iter().map(|one| one.name.clone()).collect(),
        }
    }

    /// Adds an operator, or its copy.
    fn run(&mut self, Run { step, is_copy }: Run) {
        let sequence = self.sequence;
        let node = &sequence.operators()[step];
        let name = match &*node.name {
            "" => Box::default(),
            name if is_copy => unused(name, &mut self.operators),
            name => name.into(),
        };
        let mut operator = Operator::new(name)
            .kind(node.kind.clone())
            .inputs(node.inputs.iter().map(|input| self.names[input.index()].clone()))
            .on_stream(node.stream)
            .workspace(node.workspace)
            .cost(node.cost);
        operator.once = node.once;
        operator.bodies.clone_from(&node.bodies);
        if !is_copy {
            operator =
                node.after.iter().fold(operator, |one, &first| one.after_place(self.places[first]));
            self.places[step] = self.added;
        }
        let outputs: Vec<(TensorId, Box<str>)> = node
            .outputs
            .iter()
            .map(|&output| (output, self.output_name(output, is_copy)))
            .collect();
        for (output, name) in &outputs {
            let tensor = sequence.tensor(*output);
            let dependency = match &tensor.origin {
                Origin::Output { dependency, .. } => {
                    dependency.map(|input: &TensorId| self.names[input.index()].clone())
                }
                Origin::Input | Origin::Weight => Dependency::Fresh,
            };
            if let (true, Some(tensor_type)) = (is_copy, &tensor.elements) {
                self.builder.typed(name.clone(), tensor_type.clone());
            }
            let size = tensor.size.unwrap_or(0);
            let declared = Output::new(name.clone(), size).basis(tensor.basis);
            operator = operator.output(Output { dependency, ..declared });
        }
        for (output, name) in outputs {
            if is_copy && !self.kept[output.index()] {
                self.names[output.index()] = name;
            }
        }
        self.builder.operator(operator);
        self.added += 1;
    }

    fn output_name(&mut self, output: TensorId, is_copy: bool) -> Box<str> {
        let name = &self.sequence.tensor(output).name;
        if is_copy { unused(name, &mut self.tensors) } else { name.clone() }
    }
}

/// The names of all tensors of a sequence and of its bodies, which must not have those of tensors around them.
fn tensor_names(sequence: &OpSequence) -> HashSet<Box<str>> {
    let mut names = HashSet::new();
    let mut open = vec![sequence];
    while let Some(sequence) = open.pop() {
        names.extend(sequence.tensors().iter().map(|tensor| tensor.name.clone()));
        open.extend(sequence.operators().iter().flat_map(|operator| &operator.bodies));
    }
    names
}

/// Returns an unused name for a copy, and marks it as taken.
fn unused(name: &str, taken: &mut HashSet<Box<str>>) -> Box<str> {
    let mut copy: Box<str> = format!("{name}~1").into();
    while !taken.insert(copy.clone()) {
        copy = format!("{copy}~1").into();
    }
    copy
}

/// By operator: true if it makes a tensor that shares memory with a graph output. It always runs at its own step.
pub(super) fn makes_kept(sequence: &OpSequence) -> Vec<bool> {
    let kept = kept(sequence);
    let is_kept = |output: &TensorId| kept[output.index()];
    sequence.operators().iter().map(|operator| operator.outputs.iter().any(is_kept)).collect()
}

/// By tensor: true if it shares memory with a graph output.
fn kept(sequence: &OpSequence) -> Vec<bool> {
    let roots = sequence.memory_roots();
    let mut is_kept = vec![false; roots.len()];
    for &output in sequence.outputs() {
        is_kept[roots[output.index()].index()] = true;
    }
    roots.iter().map(|root| is_kept[root.index()]).collect()
}
