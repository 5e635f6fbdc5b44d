//! What each command does.

use std::{
    collections::HashSet,
    io::{self, Write},
    path::Path,
    time::Instant,
};

use memplan::{
    OpSequence, Plan, Planner, Problem, Strategy,
    import::{Format, Input},
    lower::{LoweringOptions, lower},
    networks,
    planner::{self, search::Limits},
    report::{self, Size, StepNames},
    verify,
};

use crate::cli::{
    Failure, Verdict,
    args::{
        CompareArgs, ConvertArgs, ExplainArgs, InputArgs, PlacingArgs, PlanArgs, StrategyArgs,
        VerifyArgs,
    },
    files, say,
    show::map_options,
};

/// The built-in network at two batch sizes, with the map of the first.
pub(crate) fn demo() -> Result<Verdict, Failure> {
    let mut out = io::stdout().lock();
    for batch in [1, 128] {
        let sequence = built_in(batch)?;
        let plan = Planner::new().plan(&sequence).map_err(|error| wrong(None, error))?;
        let steps = StepNames(Some(&sequence));
        writeln!(out, "MobileNetV2, batch {batch}, built in\n{}", report::summary(&plan, steps))?;
        if batch == 1 {
            writeln!(out, "{}", report::memory_map(&plan, steps, map_options(None, 16)))?;
        }
    }
    writeln!(out, "Plan a model of yours: memplan plan MODEL.onnx")?;
    Ok(Verdict::Good)
}

pub(crate) fn plan(args: &PlanArgs) -> Result<Verdict, Failure> {
    let input = input(args.input.as_deref(), &args.reading)?;
    let start = Instant::now();
    let plan = make_plan(
        &input,
        args.input.as_deref(),
        &args.reading,
        args.planning.strategy,
        &args.planning.placing,
        args.planning.limits(),
    )?;
    let took = start.elapsed();
    let labels = match &input {
        Input::Problem(problem) => Some(problem.labels()),
        Input::Sequence(_) => None,
    };
    if let Some(path) = &args.output {
        match files::format(path, None)? {
            Format::Json => {
                files::write(path, |out| report::write_plan_json(out, &plan, Some(took)))?;
            }
            Format::Csv => files::write(path, |out| report::write_plan_csv(out, &plan, labels))?,
            _ => {
                return Err(Failure::Input(format!("{}: a plan is .json or .csv", path.display())));
            }
        }
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        report::write_plan_json(&mut out, &plan, Some(took))?;
    } else if args.csv {
        report::write_plan_csv(&mut out, &plan, labels)?;
    } else {
        let name = args.input.as_deref().map_or_else(|| BUILT_IN.to_owned(), files::name);
        writeln!(out, "{}, planned in {}", report::printable(&name), report::seconds(took))?;
        write!(out, "{}", report::summary(&plan, step_names(&input)))?;
    }
    out.flush()?;
    match args.capacity {
        Some(capacity) if plan.pool_size > capacity => {
            say(&format!(
                "the pool, {}, does not fit the capacity, {}",
                Size(plan.pool_size),
                Size(capacity)
            ));
            Ok(Verdict::Bad)
        }
        _ => Ok(Verdict::Good),
    }
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<Verdict, Failure> {
    let input = files::read_input(&args.input, &args.reading)?;
    let problem = lowered(&input, &args.input, args.reading.lowering())?;
    let plan = files::read_plan(&args.plan, &problem)?;
    let violations = match &input {
        // A plan without tensors, such as a CSV file, is one of the chunks.
        Input::Sequence(sequence) if !plan.tensors.is_empty() => {
            let mut violations = verify::verify_sequence(sequence, &plan);
            if args.execute {
                violations.extend(verify::execute_sequence(sequence, &plan));
                let mut seen = HashSet::new();
                violations.retain(|violation| seen.insert(violation.clone()));
            }
            violations
        }
        _ if args.execute => {
            let needs = "--execute needs operators, and a plan that tells the offsets of tensors";
            return Err(wrong(Some(&args.plan), needs));
        }
        _ => verify::verify_problem(&problem, &plan),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    if violations.is_empty() {
        let (chunks, tensors) = (plan.chunks.len(), plan.tensors.len());
        writeln!(
            out,
            "right: {chunks} chunks and {tensors} tensors in a pool of {}, {:.3} x the lower bound",
            Size(plan.pool_size),
            plan.ratio(),
        )?;
    } else {
        for violation in &violations {
            writeln!(out, "{}", report::printable(&violation.to_string()))?;
        }
        let count = violations.len();
        writeln!(out, "wrong: {count} violation{}", if count == 1 { "" } else { "s" })?;
    }
    out.flush()?;
    Ok(if violations.is_empty() { Verdict::Good } else { Verdict::Bad })
}

pub(crate) fn compare(args: &CompareArgs) -> Result<Verdict, Failure> {
    let mut comparisons = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        let input = files::read_input(path, &args.reading)?;
        let problem = lowered(&input, path, args.reading.lowering())?;
        let alignment = args.placing.alignment.unwrap_or(problem.alignment());
        let padding = args.placing.padding.unwrap_or(problem.padding());
        let problem =
            problem.with_alignment(alignment, padding).map_err(|error| wrong(Some(path), error))?;
        comparisons.push((files::name(path), planner::compare(&problem)));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    match &comparisons[..] {
        _ if args.json => writeln!(out, "{:#}", report::comparisons_json(&comparisons))?,
        [(name, comparison)] => write!(out, "{}", report::comparison(name, comparison))?,
        _ => write!(out, "{}", report::comparisons(&comparisons))?,
    }
    out.flush()?;
    Ok(Verdict::Good)
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<Verdict, Failure> {
    let input = input(args.input.as_deref(), &args.reading)?;
    let plan = given_or_made(
        &input,
        args.input.as_deref(),
        args.plan.as_deref(),
        &args.reading,
        &args.planning,
    )?;
    let steps = step_names(&input);
    let mut out = io::stdout().lock();
    write!(out, "{}\n{}", report::summary(&plan, steps), report::explain(&plan, steps))?;
    Ok(Verdict::Good)
}

pub(crate) fn convert(args: &ConvertArgs) -> Result<Verdict, Failure> {
    let input = files::read_input(&args.input, &args.reading)?;
    let format = files::format(&args.output, None)?;
    match (&input, format) {
        (_, Format::Onnx) => {
            return Err(Failure::Input(format!(
                "{}: memplan writes .json and .csv, not ONNX",
                args.output.display()
            )));
        }
        (Input::Sequence(sequence), Format::Json) if !args.lower => {
            files::write(&args.output, |out| report::write_sequence_json(out, sequence))?;
        }
        (_, Format::Csv) => {
            let problem = lowered(&input, &args.input, args.reading.lowering())?;
            if problem.has_links() {
                say(&format!(
                    "CSV knows no overwrite links; {} chunks that would be written over another get memory of their own",
                    problem.links_taken()
                ));
            }
            files::write(&args.output, |out| report::write_problem_csv(out, &problem))?;
        }
        _ => {
            let problem = lowered(&input, &args.input, args.reading.lowering())?;
            files::write(&args.output, |out| report::write_problem_json(out, &problem))?;
        }
    }
    Ok(Verdict::Good)
}

pub(crate) const BUILT_IN: &str = "MobileNetV2, batch 1, built in";

fn wrong(path: Option<&Path>, error: impl std::fmt::Display) -> Failure {
    Failure::Input(match path {
        Some(path) => format!("{}: {error}", files::name(path)),
        None => error.to_string(),
    })
}

fn built_in(batch: u64) -> Result<OpSequence, Failure> {
    networks::mobilenet_v2(batch).map_err(|error| wrong(None, error))
}

/// The input named, or the built-in network.
pub(crate) fn input(path: Option<&Path>, args: &InputArgs) -> Result<Input, Failure> {
    match path {
        Some(path) => files::read_input(path, args),
        None => Ok(Input::Sequence(built_in(1)?)),
    }
}

pub(crate) fn step_names(input: &Input) -> StepNames<'_> {
    match input {
        Input::Sequence(sequence) => StepNames(Some(sequence)),
        Input::Problem(_) => StepNames(None),
    }
}

/// The chunks of an input.
pub(crate) fn lowered(
    input: &Input,
    path: &Path,
    options: LoweringOptions,
) -> Result<Problem, Failure> {
    match input {
        Input::Problem(problem) => Ok(problem.clone()),
        Input::Sequence(sequence) => lower(sequence, options)
            .map(|lowered| lowered.problem)
            .map_err(|error| wrong(Some(path), error)),
    }
}

pub(crate) fn make_plan(
    input: &Input,
    path: Option<&Path>,
    reading: &InputArgs,
    strategy: Strategy,
    placing: &PlacingArgs,
    limits: Limits,
) -> Result<Plan, Failure> {
    let mut planner = Planner::new().strategy(strategy).lowering(reading.lowering()).limits(limits);
    if let Some(alignment) = placing.alignment {
        planner = planner.alignment(alignment);
    }
    if let Some(padding) = placing.padding {
        planner = planner.padding(padding);
    }
    let plan = match input {
        Input::Sequence(sequence) => planner.plan(sequence),
        Input::Problem(problem) => planner.plan_problem(problem),
    };
    plan.map_err(|error| wrong(path, error))
}

/// The plan in the file named, else one made now.
fn given_or_made(
    input: &Input,
    path: Option<&Path>,
    plan: Option<&Path>,
    reading: &InputArgs,
    planning: &StrategyArgs,
) -> Result<Plan, Failure> {
    match (plan, path) {
        (Some(plan), Some(path)) => {
            files::read_plan(plan, &lowered(input, path, reading.lowering())?)
        }
        _ => {
            make_plan(input, path, reading, planning.strategy, &planning.placing, planning.limits())
        }
    }
}
