//! `memplan verify`: a plan against its input.

use std::{
    io::{self, Write},
    path::Path,
};

use memplan::{
    Input, InputRef, OpSequence, Plan, ProblemError,
    import::Format,
    report,
    verify::{Verifier, copied_views},
};

use crate::{
    Failure, Verdict,
    args::VerifyArgs,
    files::{self, wrong},
    is_verbose, later, micro,
    planning::{asked, holds_for, in_order},
};

/// The most violations that are listed: without `-v`, the first ten.
pub(crate) fn shown() -> usize {
    if is_verbose() { usize::MAX } else { 10 }
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<Verdict, Failure> {
    if let Some(addresses) = &args.addresses {
        return audit(args, addresses);
    }
    if !args.has_plan() {
        let words = "no plan is given; add it, as in: memplan verify MODEL PLAN.json";
        return Err(wrong(Some(&args.input), words));
    }
    let is_alone = args.later.after.is_empty();
    if is_alone
        && files::is_tflite(&args.input, &args.reading)
        && files::is_named_tflite(args.plan())
    {
        return micro::verify(args);
    }
    let input = later::input(Some(&args.input), &args.reading, &args.later)?;
    let plan = files::read_plan(args.plan(), &args.reading, || asked(&input, args))?;
    let (mut input, is_smaller) = match run(args, input, &plan)? {
        Run::AsPlanned(input) => (input, false),
        Run::Smaller(input) => (input, true),
        Run::Outside(words) => {
            writeln!(io::stdout(), "{}\nwrong: 1 violation", report::printable(&words))?;
            return Ok(Verdict::Bad);
        }
    };
    if !plan.order().is_empty() {
        let ordered = match input {
            Input::Sequence(run) if is_smaller => smaller_in_order(args, &run, &plan)?,
            input => in_order(input, &plan),
        };
        match ordered {
            Ok(ordered) => input = ordered,
            Err(why) => {
                let words = format!("the plan's order of the operators is wrong: {why}");
                writeln!(io::stdout(), "{}\nwrong: 1 violation", report::printable(&words))?;
                return Ok(Verdict::Bad);
            }
        }
    }
    let mut verifier = Verifier::new().lowering(args.reading.lowering()).smaller(is_smaller);
    verifier = verifier.execute(args.execute);
    if let Some(alignment) = args.alignment {
        verifier = verifier.alignment(alignment);
    }
    if let Some(padding) = args.padding {
        verifier = verifier.padding(padding);
    }
    let lowered = match &input {
        // A CSV file has only chunks.
        Input::Sequence(_) if files::plan_format(args.plan())? == Format::Csv => {
            Some(asked(&input, args)?)
        }
        _ => None,
    };
    let checked = lowered.as_ref().map_or(InputRef::from(&input), InputRef::from);
    let verified = verifier.verify(checked, &plan);
    let verified = verified.and_then(|found| Ok((found, verifier.bytes_alive(checked, &plan)?)));
    let (violations, alive) = verified.map_err(|error| match error {
        ProblemError::NothingToRun => {
            let needs = "--execute needs operators, and a plan that lists the offsets of tensors";
            wrong(Some(args.plan()), needs)
        }
        error => wrong(Some(&args.input), error),
    })?;
    write!(io::stdout(), "{}", report::verification(&plan, &violations, alive, shown()))?;
    if let (true, true, Input::Sequence(sequence)) = (args.execute, violations.is_empty(), &input) {
        let steps = report::count(sequence.operators().len() as u64, "operator");
        writeln!(io::stdout(), "executed {steps}: each read what it should")?;
    }
    Ok(if violations.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// Audits the addresses that another runtime gave to the tensors of a model.
fn audit(args: &VerifyArgs, path: &Path) -> Result<Verdict, Failure> {
    let Input::Sequence(sequence) = files::read_input(&args.input, &args.reading)? else {
        let words = "--addresses needs operators, but this is a problem; verify a plan of it";
        return Err(wrong(Some(&args.input), words));
    };
    let format = files::plan_format(path)?;
    let bytes = files::read(path, args.reading.max_input)?;
    let audited = report::audit(&bytes, format, &sequence);
    let (faults, report) = audited.map_err(|error| wrong(Some(path), error))?;
    write!(io::stdout(), "{report}")?;
    Ok(if faults.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// The run that a plan is verified for.
enum Run {
    /// With the sizes that were planned.
    AsPlanned(Input),
    /// With other sizes in the ranges that the plan holds for.
    Smaller(Input),
    /// With sizes outside these ranges; the words say which.
    Outside(String),
}

/// Finds the run that is meant by the sizes of the command line.
fn run(args: &VerifyArgs, input: Input, plan: &Plan) -> Result<Run, Failure> {
    if holds_for(plan, &input) {
        return Ok(Run::AsPlanned(input));
    }
    let planned = report::dims(plan);
    let sequence = match &input {
        Input::Sequence(sequence) if files::is_onnx(&args.input, &args.reading) => sequence,
        _ => {
            let words = format!(
                "the plan states that it holds for {planned}, but the input does not list these sizes"
            );
            return Ok(Run::Outside(words));
        }
    };
    let given = files::dims(&args.input, &args.reading)?;
    let mut is_smaller = false;
    for (name, &range) in plan.dims() {
        let Some(&sizes) = given.get(&**name) else {
            let words = format!(
                "the plan holds for {planned}, but the size of this run is not given; add --dim {name}={range}, or one size"
            );
            return Err(wrong(Some(&args.input), words));
        };
        if !range.contains(sizes) {
            let words = format!("the plan holds for {planned}, but not for {name}={sizes}");
            return Ok(Run::Outside(words));
        }
        is_smaller |= sizes != range;
    }
    if !is_smaller {
        return Ok(Run::AsPlanned(input));
    }
    let copies = copied_views(sequence, plan);
    if copies.is_empty() {
        return Ok(Run::Smaller(input));
    }
    let input = files::read_again(&args.input, &args.reading, |options| options.copies(copies))?;
    Ok(Run::Smaller(input))
}

/// Puts the operators of a run with smaller sizes into the order of a plan, which lists the steps of the model
/// with the largest sizes. Some of those operators may not run with smaller ones.
fn smaller_in_order(
    args: &VerifyArgs,
    run: &OpSequence,
    plan: &Plan,
) -> Result<Result<Input, String>, Failure> {
    let dims = plan.dims().iter().map(|(name, &sizes)| (name.to_string(), sizes));
    let planned = files::read_again(&args.input, &args.reading, |options| options.dims(dims))?;
    Ok(in_order(planned, plan).and_then(|planned| match &planned {
        Input::Sequence(planned) => {
            let ordered = run.in_order_of(planned).map_err(|error| error.to_string())?;
            Ok(Input::Sequence(ordered))
        }
        Input::Problem(_) => Ok(planned),
    }))
}
