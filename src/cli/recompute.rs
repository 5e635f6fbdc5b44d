//! `memplan recompute`: some operators run twice, so that the pool fits.

use std::{
    io::{self, Write},
    path::Path,
};

use memplan::{
    Input, OpSequence, Planner,
    planner::{RecomputedFit, RecomputedPlan, Recomputing},
    recompute::with_costs_from_shapes,
    report,
    verify::verify,
};

use crate::{
    Failure, Verdict,
    args::RecomputeArgs,
    files::{self, wrong},
    is_quiet, note,
    progress::{is_interrupted, searching},
};

pub(crate) fn recompute(args: &RecomputeArgs) -> Result<Verdict, Failure> {
    let path = &*args.input;
    check_output(args)?;
    let input = files::read_input(path, &args.reading)?;
    let planner = args.placing.planner(&args.reading, &input, Some(path));
    let planner = planner.lowering(args.reading.lowering());
    let Input::Sequence(sequence) = input else {
        let words =
            "this is a problem, whose chunks have no operators; only operators can run twice";
        return Err(wrong(Some(path), words));
    };
    let is_model = files::is_model(path, &args.reading);
    let sequence = if is_model { with_costs_from_shapes(&sequence) } else { sequence };
    match (args.capacity, args.curve) {
        (Some(capacity), _) => fit(args, &planner, &sequence, capacity),
        (None, points) => curve(args, &planner, &sequence, points.unwrap_or(2)),
    }
}

/// Checks what can be checked before the search.
fn check_output(args: &RecomputeArgs) -> Result<(), Failure> {
    let Some(output) = &args.output else { return Ok(()) };
    files::output("-o", output, [&*args.input], "omit -o, and print the answer with --json")?;
    let expected = if args.curve.is_some() { "svg" } else { "json" };
    let extension = output.extension().and_then(|extension| extension.to_str());
    if extension != Some(expected) {
        let what = if args.curve.is_some() { "a curve" } else { "a sequence with copies" };
        let words = format!("{what} is written as .{expected}; change the name");
        return Err(wrong(Some(output), words));
    }
    files::check_writable(output)
}

/// Looks for a plan that fits.
fn fit(
    args: &RecomputeArgs,
    planner: &Planner<'_>,
    sequence: &OpSequence,
    capacity: u64,
) -> Result<Verdict, Failure> {
    let path = &*args.input;
    let asked = Recomputing::new(capacity).limits(args.limits()).reorder(args.reorder);
    let found = searching(Some(capacity), |observer| {
        planner.clone().observer(observer).plan_recomputed(sequence, asked)
    });
    let found = found.map_err(|error| wrong(Some(path), error))?;
    if let RecomputedPlan::Found(fit) = &found {
        check(path, fit)?;
        if is_interrupted() && !fit.is_proven() {
            note("interrupted: this is the cheapest so far; it is not proven the cheapest");
        }
        if let Some(output) = &args.output {
            files::write(output, |out| report::write_sequence_json(out, &fit.sequence))?;
        }
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        report::write_json(&mut out, &report::recomputation_json(&found, sequence, capacity))?;
    } else if args.output.is_none() || !is_quiet() {
        writeln!(out, "{}", report::printable(&files::name(path)))?;
        write!(out, "{}", report::recomputation(&found, sequence, capacity))?;
    }
    out.flush()?;
    Ok(if matches!(found, RecomputedPlan::Found(_)) { Verdict::Good } else { Verdict::Bad })
}

/// The plan must be right for the expanded sequence.
fn check(path: &Path, fit: &RecomputedFit) -> Result<(), Failure> {
    match verify(&fit.sequence, &fit.plan).first() {
        None => Ok(()),
        Some(violation) => {
            let words = format!(
                "the plan of the expanded sequence is wrong, which is a bug in memplan: {violation}"
            );
            Err(wrong(Some(path), words))
        }
    }
}

/// Prints or draws a curve.
fn curve(
    args: &RecomputeArgs,
    planner: &Planner<'_>,
    sequence: &OpSequence,
    points: u16,
) -> Result<Verdict, Failure> {
    let path = &*args.input;
    let curve = searching(None, |observer| {
        let planner = planner.clone().observer(observer);
        planner.recompute_curve(sequence, usize::from(points), args.limits())
    });
    let curve = curve.map_err(|error| wrong(Some(path), error))?;
    if let Some(output) = &args.output {
        let svg = report::recompute_curve_svg(&curve);
        files::write(output, |out| out.write_all(svg.as_bytes()))?;
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        report::write_json(&mut out, &report::recompute_curve_json(&curve))?;
    } else if args.output.is_none() || !is_quiet() {
        writeln!(out, "{}", report::printable(&files::name(path)))?;
        write!(out, "{}", report::recompute_curve(&curve))?;
    }
    out.flush()?;
    Ok(Verdict::Good)
}
