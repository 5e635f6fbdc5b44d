//! Checks a plan for a range of sizes against a sequence with smaller ones.
//!
//! A runtime places the tensors as in the plan, whatever sizes a run has. The plan is right for a run if the
//! operators, with the sizes of that run, find every byte as it was written. So only the places are taken from the
//! plan; sizes and lifetimes follow from the operators of the run. An output that the plan gives bytes of its own is a
//! copy, even where it would be a view for these sizes. Operators whose outputs are known before the run do not run,
//! and are ignored.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::{
    OpSequence, Plan, PlannedChunk, PlannedTensor, Step, TensorPlace,
    sequence::{Dependency, OperatorNode, Origin, Tensor},
    verify::{
        Violation, bodies, dangling, execute,
        places::{self, Place},
        pools, sequence,
        table::{self, Links},
        without_repeats,
    },
};

/// Returns everything that is wrong with a plan for a run whose tensors are as large as in the plan, or
/// smaller; the list is empty if the plan is right. The plan must be one for a [range of sizes](Plan::dims), and the
/// sequence the same model, read with sizes from this range.
///
/// The places are checked twice: against lifetimes counted from the operators, and by running the operators on a shadow
/// of the memory. The figures of the plan and the lifetimes of its chunks belong to the largest sizes, and are not
/// checked here; [`verify`](fn@super::verify) checks them.
///
/// If the plan has an order of its own, put the sequence into the order of the one that was planned:
/// [`OpSequence::in_order_of`].
///
/// ```
/// use memplan::{OpSequence, Operator, Output, Planner, verify::verify_smaller};
///
/// let sequence = |n: u64| {
///     OpSequence::builder()
///         .operator(Operator::new("conv").output(Output::new("x", 64 * n)))
///         .operator(Operator::new("relu").inputs(["x"]).output(Output::new("y", 32 * n)))
///         .output("y")
///         .build()
/// };
/// let plan = Planner::new().plan(&sequence(8)?)?;
/// assert_eq!(verify_smaller(&sequence(3)?, &plan), []);
/// assert!(!verify_smaller(&sequence(9)?, &plan).is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn verify_smaller(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = dangling(plan);
    violations.extend(pools::check_places(plan));
    let plan = pools::in_one(plan);
    violations.extend(table::check(&plan, Links::OfSequence));
    let mut small = shrunk(sequence, &plan);
    if let Some(flat) = bodies::flatten(sequence, &small, verify_smaller, &mut violations) {
        rename_workspaces(&flat, &plan, &mut small);
        violations.extend(sequence::check_bytes(&flat, &small));
        violations.extend(execute::run(&flat, &small, &sequence.waits()));
    }
    without_repeats(violations)
}

/// Returns the names of the outputs that are views in the sequence, but that the plan places elsewhere, because they
/// are not views for other sizes that the plan holds for. The runtime copies them, so they share no bytes with their
/// inputs, and more outputs may be written over them. For [`verify_smaller`], read the model with these
/// [copies](crate::import::ImportOptions::copies).
#[must_use]
pub fn copied_views(sequence: &OpSequence, plan: &Plan) -> BTreeSet<String> {
    let plan = &shrunk(sequence, &pools::in_one(plan));
    let places = places::of_tensors(sequence, plan, &mut Vec::new()).of;
    let is_elsewhere = |(at, tensor): &(usize, &Tensor)| match &tensor.origin {
        Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. } => {
            places[*at] != Place::Nowhere && !places[*at].is_at(places[input.index()], *offset)
        }
        _ => false,
    };
    let views = sequence.tensors().iter().enumerate().filter(is_elsewhere);
    let mut copies: BTreeSet<String> = views.map(|(_, tensor)| tensor.name.to_string()).collect();
    for planned in &plan.bodies {
        let operator = usize::try_from(planned.step).ok();
        let operator = operator.and_then(|step| sequence.operators().get(step));
        if let Some(body) = operator.and_then(|operator| operator.bodies.get(planned.body)) {
            copies.extend(copied_views(body, &planned.plan));
        }
    }
    copies
}

/// The plan with the sizes and the steps of a sequence. Tensors that are larger in the sequence than planned keep
/// their planned size.
fn shrunk(sequence: &OpSequence, plan: &Plan) -> Plan {
    let updated = updated(sequence);
    let steps = steps(sequence, plan, &updated);
    // After the last step, there is no operator.
    let of_step = |step: Step| steps.get(&step).copied().unwrap_or(Step::MAX);
    let mut small = plan.clone();
    small.tensors.retain_mut(|planned| {
        let Some(id) = sequence.tensor_id(&planned.name) else { return false };
        let tensor = sequence.tensor(id);
        if let Some(size) = tensor.size {
            planned.size = size.min(planned.size);
        }
        match planned.place {
            TensorPlace::Pool { chunk, .. } if tensor.origin == Origin::Weight => {
                updated[id.index()]
                    || plan.chunks.get(chunk).is_some_and(|chunk| lives_on(plan, chunk))
            }
            _ => true,
        }
    });
    let in_use: HashSet<usize> = plan.tensors.iter().filter_map(chunk_of).collect();
    for (at, chunk) in small.chunks.iter_mut().enumerate() {
        if !in_use.contains(&at) {
            chunk.begin = of_step(chunk.begin);
        }
    }
    small.bodies.retain_mut(|body| {
        body.step = of_step(body.step);
        body.step != Step::MAX
    });
    for body in &mut small.bodies {
        let operator =
            usize::try_from(body.step).ok().and_then(|step| sequence.operators().get(step));
        if let Some(inner) = operator.and_then(|operator| operator.bodies.get(body.body)) {
            body.inputs = bodies::copies(inner, plan).min(body.inputs);
        }
    }
    small
}

/// Returns whether a chunk is alive from the beginning to the end, as that of a weight. A weight in any other chunk,
/// unless it is updated, is computed by an operator for other sizes; for these, its value is known before the run.
fn lives_on(plan: &Plan, chunk: &PlannedChunk) -> bool {
    chunk.begin == 0 && chunk.end == plan.steps
}

/// Marks the tensors in whose memory an operator must make an output, directly or through views. The memory of a
/// weight belongs to that output from then on.
fn updated(sequence: &OpSequence) -> Vec<bool> {
    let mut updated = vec![false; sequence.tensors().len()];
    let outputs = sequence.operators().iter().flat_map(|operator| &operator.outputs);
    for &output in outputs.rev() {
        let Origin::Output { dependency, .. } = &sequence.tensor(output).origin else { continue };
        match dependency {
            Dependency::Overwrites(overwrites) => {
                for overwrite in overwrites.iter().filter(|overwrite| overwrite.required) {
                    updated[overwrite.input.index()] = true;
                }
            }
            Dependency::Reads { input, .. } if updated[output.index()] => {
                updated[input.index()] = true;
            }
            _ => {}
        }
    }
    updated
}

/// Gives the workspaces the names that they have in the sequence, which depend on the steps and on the operators
/// before.
fn rename_workspaces(sequence: &OpSequence, plan: &Plan, small: &mut Plan) {
    let of_tensors: HashSet<usize> = plan.tensors.iter().filter_map(chunk_of).collect();
    let mut names = sequence.workspace_names();
    for (_, chunk) in small.chunks.iter_mut().enumerate().filter(|(at, _)| !of_tensors.contains(at))
    {
        let step = usize::try_from(chunk.begin).ok();
        if let Some(name) = step.and_then(|step| names.get_mut(step)?.take()) {
            chunk.name = name;
        }
    }
}

/// The chunk in which a tensor lies.
fn chunk_of(tensor: &PlannedTensor) -> Option<usize> {
    match tensor.place {
        TensorPlace::Pool { chunk, .. } => Some(chunk),
        TensorPlace::Supplied { .. } | TensorPlace::Nowhere => None,
    }
}

/// Maps steps of the plan to those of the sequence, which may have fewer. An operator is identified by the chunks of
/// its outputs or, if these have none, by its workspace.
fn steps(sequence: &OpSequence, plan: &Plan, updated: &[bool]) -> HashMap<Step, Step> {
    let written: HashMap<&str, Step> =
        plan.chunks.iter().map(|chunk| (&*chunk.name, chunk.begin)).collect();
    let by_output = |operator: &OperatorNode| {
        let mut outputs = operator.outputs.iter();
        outputs.find_map(|&output| written.get(&*sequence.tensor(output).name).copied())
    };
    let known: Vec<Option<Step>> = sequence.operators().iter().map(by_output).collect();
    let steps = known.iter().enumerate();
    let mut steps: HashMap<Step, Step> =
        steps.filter_map(|(step, planned)| Some(((*planned)?, step as Step))).collect();
    let alone = alone(sequence, plan, updated);
    let mut hosts: Vec<Step> = plan.bodies.iter().map(|body| body.step).collect();
    hosts.sort_unstable();
    hosts.dedup();
    // Operators of the same name keep their order between two operators that have been identified.
    let mut from = 0;
    for gap in known.chunk_by(|a, b| a.is_none() && b.is_none()) {
        let first = from;
        from += gap.len();
        if gap[0].is_some() {
            continue;
        }
        let after = first.checked_sub(1).and_then(|step| known[step]);
        let before = known.get(from).copied().flatten().unwrap_or(Step::MAX);
        let between = |planned: &[Step]| {
            let begin = planned.partition_point(|&step| Some(step) <= after);
            begin..planned.partition_point(|&step| step < before).max(begin)
        };
        let mut named: HashMap<Name, Vec<usize>> = HashMap::new();
        let mut with_bodies: Vec<usize> = Vec::new();
        let mut with_chunk: HashSet<usize> = HashSet::new();
        for step in first..from {
            let operator = &sequence.operators()[step];
            if operator.workspace > 0 || !operator.bodies.is_empty() {
                named.entry(Name::of(operator)).or_default().push(step);
            }
            if !operator.bodies.is_empty() {
                with_bodies.push(step);
            }
        }
        for (name, operators) in named {
            let planned = alone.get(&name).map_or(&[][..], Vec::as_slice);
            let planned = &planned[between(planned)];
            // With fewer of them than planned, nothing says which are missing.
            if planned.len() == operators.len() {
                let pairs = planned.iter().zip(&operators);
                steps.extend(pairs.map(|(&planned, &step)| (planned, step as Step)));
                with_chunk.extend(operators);
            }
        }
        // If neither its outputs nor its bodies need bytes, an operator has no chunk, but its bodies have plans.
        let planned = hosts[between(&hosts)].iter().filter(|step| !steps.contains_key(step));
        let planned: Vec<Step> = planned.copied().collect();
        with_bodies.retain(|step| !with_chunk.contains(step));
        if planned.len() == with_bodies.len() {
            let pairs = planned.into_iter().zip(with_bodies);
            steps.extend(pairs.map(|(planned, step)| (planned, step as Step)));
        }
    }
    steps
}

/// The name of an operator or, if it has none, its kind.
#[derive(PartialEq, Eq, Hash)]
enum Name<'a> {
    Own(&'a str),
    Kind(&'a str),
}

impl<'a> Name<'a> {
    fn of(operator: &'a OperatorNode) -> Self {
        if operator.name.is_empty() {
            Self::Kind(&operator.kind)
        } else {
            Self::Own(&operator.name)
        }
    }

    /// The operator of this step that has a workspace of this name; see [`OpSequence::workspace_names`].
    fn of_workspace(workspace: &'a str, step: Step) -> Option<Self> {
        let mut name = workspace;
        while let Some(first) = name.strip_suffix(&format!(".{step}")) {
            name = first;
        }
        let name = name.strip_suffix(".workspace")?;
        let Some(unnamed) = name.strip_suffix(')') else {
            let is_place = name.strip_prefix("operator ") == Some(&*step.to_string());
            return Some(if is_place { Self::Kind("") } else { Self::Own(name) });
        };
        let kind = unnamed.strip_suffix(&format!(" (operator {step}"));
        Some(kind.map_or(Self::Own(name), Self::Kind))
    }
}

/// By operator: the steps of the plan at which a workspace begins, but no output.
fn alone<'p>(
    sequence: &OpSequence,
    plan: &'p Plan,
    updated: &[bool],
) -> HashMap<Name<'p>, Vec<Step>> {
    let mut of_tensors: HashSet<usize> = HashSet::new();
    let mut with_output: HashSet<Step> = HashSet::new();
    for tensor in &plan.tensors {
        let Some(chunk) = chunk_of(tensor) else { continue };
        of_tensors.insert(chunk);
        let Some(chunk) = plan.chunks.get(chunk) else { continue };
        let is_supplied =
            sequence.tensor_id(&tensor.name).is_some_and(|id| match sequence.tensor(id).origin {
                Origin::Input => true,
                Origin::Weight => updated[id.index()] || lives_on(plan, chunk),
                Origin::Output { .. } => false,
            });
        if !is_supplied && chunk.name == tensor.name {
            with_output.insert(chunk.begin);
        }
    }
    let mut alone: HashMap<Name, Vec<Step>> = HashMap::new();
    for (_, chunk) in plan.chunks.iter().enumerate().filter(|(at, _)| !of_tensors.contains(at)) {
        if let Some(name) = Name::of_workspace(&chunk.name, chunk.begin)
            && !with_output.contains(&chunk.begin)
        {
            alone.entry(name).or_default().push(chunk.begin);
        }
    }
    for steps in alone.values_mut() {
        steps.sort_unstable();
    }
    alone
}
