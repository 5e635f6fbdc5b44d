//! Turns the arguments of the command line into inputs, problems and plans.

use std::path::Path;

use memplan::{
    Bytes, Input, InputRef, OpSequence, Plan, PlanError, Planner, Problem, ProblemError, Strategy,
    import::{Format, recording::Recording},
    lower::LoweringOptions,
    networks, report,
    verify::Verifier,
};

use crate::{
    Failure,
    args::{InputArgs, PlacingArgs, StrategyArgs, VerifyArgs},
    files::{self, wrong},
    note,
    progress::{is_interrupted, searching},
    say,
};

pub(crate) const BUILT_IN: &str = "a small LinkNet, built in";

pub(crate) fn built_in() -> Result<OpSequence, Failure> {
    networks::small_linknet(1).map_err(|error| wrong(None, error))
}

/// Reads the given input, or creates the built-in network.
pub(crate) fn input(
    path: Option<&Path>,
    args: &InputArgs,
) -> Result<(Input, Option<Recording>), Failure> {
    match path {
        Some(path) => files::read_recorded(path, args),
        None if args.sizes.given().is_some() => Err(wrong(
            None,
            format!(
                "{} applies only to ONNX models, and without an input the built-in network is planned; omit it",
                args.sizes.given().unwrap_or_default()
            ),
        )),
        None if args.format.is_some() => Err(wrong(None, "--format needs an input; omit it")),
        None => match args.kernel_switch() {
            Some(switch) => Err(wrong(None, files::declared_already(switch))),
            None => Ok((Input::Sequence(built_in()?), None)),
        },
    }
}

pub(crate) fn sequence_of(input: &Input) -> Option<&OpSequence> {
    InputRef::from(input).sequence()
}

/// The order of a plan as its file states it: the places of the operators in the input, which need not list them
/// in execution order.
pub(crate) fn stated_order(plan: &Plan, input: &Input) -> Vec<usize> {
    let given = match input {
        Input::Sequence(sequence) => sequence.given_order(),
        Input::Problem(_) => &[],
    };
    match (given.is_empty(), plan.order().is_empty()) {
        (true, _) => plan.order().to_vec(),
        (false, true) => given.to_vec(),
        (false, false) => {
            plan.order().iter().filter_map(|&step| given.get(step).copied()).collect()
        }
    }
}

/// The steps of a sequence that a plan names by the places of their operators in the input.
fn steps_of(order: &[usize], sequence: &OpSequence) -> Vec<usize> {
    let given = sequence.given_order();
    if given.is_empty() {
        return order.to_vec();
    }
    let mut steps = vec![usize::MAX; given.len()];
    for (step, &place) in given.iter().enumerate() {
        steps[place] = step;
    }
    order.iter().map(|&place| steps.get(place).copied().unwrap_or(usize::MAX)).collect()
}

/// The operators of an input in the order that a plan is for.
///
/// # Errors
///
/// If they cannot run in that order.
pub(crate) fn in_order(input: Input, plan: &Plan) -> Result<Input, String> {
    match input {
        _ if plan.order().is_empty() => Ok(input),
        Input::Sequence(sequence) => {
            let steps = steps_of(plan.order(), &sequence);
            if steps.iter().copied().eq(0..sequence.operators().len()) {
                return Ok(Input::Sequence(sequence));
            }
            let permuted = sequence.permuted(&steps).map_err(|error| error.to_string())?;
            Ok(Input::Sequence(permuted))
        }
        Input::Problem(_) => Err("the input is a problem, which has no operators".to_owned()),
    }
}

/// Returns whether a plan claims to hold for no other sizes than its input.
pub(crate) fn holds_for(plan: &Plan, input: &Input) -> bool {
    let sequence = InputRef::from(input).sequence();
    plan.dims().is_empty() || sequence.is_some_and(|sequence| sequence.dims() == plan.dims())
}

/// Reads a plan of an input; returns it with the input in the order that it is for. Its bound is
/// counted again; a larger bound that the file states becomes a claim.
pub(crate) fn read_plan(
    plan: &Path,
    input: Input,
    path: &Path,
    reading: &InputArgs,
) -> Result<(Plan, Input), Failure> {
    let apart = reading.lowering().gathers(false);
    let read = files::read_plan(plan, reading, || lowered(&input, path, apart))?;
    if !holds_for(&read, &input) {
        let dims = report::dims(&read);
        let words = format!("it is a plan for {dims}; read the model with --dim and these sizes");
        return Err(wrong(Some(plan), words));
    }
    let input = in_order(input, &read).map_err(|why| {
        wrong(Some(plan), format!("the order of the operators that it is for is wrong: {why}"))
    })?;
    warn_of_violations(plan, &read, &input, path, reading)?;
    let planner = Planner::new().lowering(reading.lowering());
    let counted = planner.count_bound(read, &input).map_err(|error| match error {
        // The plan states the alignment and the padding.
        PlanError::Problem(_) => wrong(Some(plan), error),
        _ => wrong(Some(path), error),
    })?;
    Ok((counted, input))
}

/// Warns if a plan that is read to be shown is wrong.
fn warn_of_violations(
    file: &Path,
    plan: &Plan,
    input: &Input,
    path: &Path,
    reading: &InputArgs,
) -> Result<(), Failure> {
    // A CSV file has only chunks.
    let problem = match input {
        Input::Sequence(_) if files::plan_format(file)? == Format::Csv => {
            Some(lowered(input, path, reading.lowering().gathers(false))?)
        }
        _ => None,
    };
    let input = problem.as_ref().map_or(InputRef::from(input), InputRef::from);
    let found = Verifier::new().lowering(reading.lowering()).verify(input, plan);
    if found.is_ok_and(|violations| !violations.is_empty()) {
        say(&format!("{}: the plan is wrong; memplan verify lists the violations", file.display()));
    }
    Ok(())
}

/// Lowers an input to its chunks, without an alignment. Bodies are planned as for a model.
pub(crate) fn lowered(
    input: &Input,
    path: &Path,
    options: LoweringOptions,
) -> Result<Problem, Failure> {
    let failed = |error: PlanError| wrong(Some(path), error);
    if InputRef::from(input).sequence().is_some_and(OpSequence::has_bodies) {
        let planner = Planner::new().alignment(PlacingArgs::MODEL_ALIGNMENT).lowering(options);
        let problem = planner.lower(input).map_err(failed)?.problem;
        return problem.with_alignment(1).map_err(|error| failed(error.into()));
    }
    let lowered = InputRef::from(input).lower(options);
    lowered.map(|lowered| lowered.problem).map_err(|error| failed(error.into()))
}

/// Returns the problem of an input with the alignment and padding to plan with. Gathered inputs are copied.
pub(crate) fn placed(
    input: &Input,
    path: &Path,
    reading: &InputArgs,
    placing: &PlacingArgs,
) -> Result<Problem, Failure> {
    let lowering = reading.lowering().gathers(false);
    let planner = placing.planner(reading, input, Some(path)).lowering(lowering);
    let lowered = planner.lower(input).map_err(|error| wrong(Some(path), error))?;
    Ok(lowered.problem)
}

/// Returns the problem of an input with the alignment and padding that `verify` requires. A plan
/// for a model may have any, unless they are given.
pub(crate) fn asked(input: &Input, args: &VerifyArgs) -> Result<Problem, Failure> {
    let problem = lowered(input, &args.input, args.reading.lowering().gathers(false))?;
    let alignment = args.alignment.unwrap_or(problem.alignment());
    let padding = args.padding.unwrap_or(problem.padding());
    let placed = problem.with_alignment(alignment);
    let placed = placed.and_then(|placed| placed.with_padding(padding));
    placed.map_err(|error| wrong(Some(&args.input), error))
}

/// The error that nothing fits is an answer; every other error is about the input.
fn unplanned(path: Option<&Path>, error: &PlanError) -> Failure {
    match (error, wrong(path, error)) {
        (
            PlanError::NoPlace { .. }
            | PlanError::NoPlanFound
            | PlanError::Infeasible
            | PlanError::Problem(ProblemError::TooLarge { .. }),
            Failure::Input(words),
        ) => Failure::NoPlan(words),
        (_, failure) => failure,
    }
}

/// Makes a plan; after Ctrl-C, it is the best that was found.
pub(crate) fn make_plan(
    input: &Input,
    path: Option<&Path>,
    strategy: Strategy,
    planner: &Planner<'_>,
) -> Result<Plan, Failure> {
    let plan = |planner: &Planner<'_>| planner.plan(input);
    let plan = if strategy.is_anytime() { searching(None, planner, plan) } else { plan(planner) };
    let plan = plan.map_err(|error| unplanned(path, &error))?;
    if is_interrupted() && !plan.proven_optimal() {
        note("interrupted: this is the best plan so far; it is not proven minimal");
    }
    Ok(plan)
}

/// Searches for a plan that fits.
pub(crate) fn fit(
    input: &Input,
    path: Option<&Path>,
    reading: &InputArgs,
    planning: &StrategyArgs,
    capacity: Bytes,
) -> Result<Plan, Failure> {
    let planner = planning.planner(reading, input, path);
    let fit = |planner: &Planner<'_>| planner.fit(input, capacity);
    let is_anytime = planning.strategy.is_anytime();
    let fit = if is_anytime { searching(Some(capacity), &planner, fit) } else { fit(&planner) };
    fit.map_err(|error| unplanned(path, &error))
}
