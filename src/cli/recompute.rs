//! `memplan recompute`: some operators run twice, so that the pool fits.

use std::{
    io::{self, Write},
    path::Path,
};

use memplan::{
    Input, OpSequence, Planner, export,
    import::{Format, onnx::Survey},
    order,
    planner::Replanned,
    recompute::{Recomputation, Recomputed, with_costs_from_shapes},
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

/// An ONNX model in its file.
struct Model {
    bytes: Vec<u8>,
    survey: Box<Survey>,
}

pub(crate) fn recompute(args: &RecomputeArgs) -> Result<Verdict, Failure> {
    let path = &*args.input;
    check_output(args)?;
    let (input, model) = if files::is_onnx(path, &args.reading) {
        files::check_switches(path, Format::Onnx, &args.reading)?;
        let (bytes, survey) = files::read_model(path, &args.reading)?;
        let input = Input::Sequence(with_costs_from_shapes(&survey.sequence));
        (input, Some(Model { bytes, survey: Box::new(survey) }))
    } else {
        (files::read_input(path, &args.reading)?, None)
    };
    let planner = args.placing.planner(&args.reading, &input, Some(path));
    let planner = planner.lowering(args.reading.lowering());
    let Input::Sequence(sequence) = input else {
        let words =
            "this is a problem, whose chunks have no operators; only operators can run twice";
        return Err(wrong(Some(path), words));
    };
    let is_tflite = files::is_tflite(path, &args.reading);
    let sequence = if is_tflite { with_costs_from_shapes(&sequence) } else { sequence };
    match (args.capacity, args.curve) {
        (Some(capacity), _) => fit(args, &planner, &Step { sequence, model }, capacity),
        (None, points) => curve(args, &planner, &sequence, points.unwrap_or(2)),
    }
}

/// Checks what can be checked before the search.
fn check_output(args: &RecomputeArgs) -> Result<(), Failure> {
    let Some(output) = &args.output else { return Ok(()) };
    files::output("-o", output, [&*args.input], "omit -o, and print the answer with --json")?;
    let extension = output.extension().and_then(|extension| extension.to_str());
    let (what, expected): (_, &[&str]) = if args.curve.is_some() {
        ("a curve", &["svg"])
    } else if files::is_onnx(&args.input, &args.reading) {
        ("a model with copies", &["onnx", "json"])
    } else {
        ("a sequence with copies", &["json"])
    };
    if !extension.is_some_and(|extension| expected.contains(&extension)) {
        let words = format!("{what} is written as .{}; change the name", expected.join(" or ."));
        return Err(wrong(Some(output), words));
    }
    files::check_writable(output)
}

/// The operators, and the model that they were read from, if copies can be written into it.
struct Step {
    sequence: OpSequence,
    model: Option<Model>,
}

impl Step {
    /// Writes what fits.
    fn write(
        &self,
        args: &RecomputeArgs,
        output: &Path,
        fit: &Replanned<Recomputation>,
    ) -> Result<(), Failure> {
        match &self.model {
            Some(model) if output.extension().is_some_and(|extension| extension == "onnx") => {
                let bytes = model.expanded(args, fit)?;
                files::write(output, |out| out.write_all(&bytes))?;
                files::note_external_data(&model.survey, &args.input, output);
                Ok(())
            }
            _ => files::write(output, |out| report::write_sequence_json(out, &fit.sequence)),
        }
    }
}

impl Model {
    /// The model with copies of its nodes. The bytes to be written are read back: they must be what was planned.
    fn expanded(
        &self,
        args: &RecomputeArgs,
        fit: &Replanned<Recomputation>,
    ) -> Result<Vec<u8>, Failure> {
        let path = &*args.input;
        let bytes = export::onnx::expanded(&self.bytes, &self.survey, fit)
            .map_err(|error| wrong(Some(path), error))?;
        let written = files::read_with_nodes(&bytes, path, &args.reading)?;
        if written.sequence.has_same_operators(&fit.sequence) {
            return Ok(bytes);
        }
        let words = "with the copies, the model would be read as another one than was planned; nothing is written: write the operators as .json";
        Err(wrong(Some(path), words))
    }
}

/// Looks for a plan that fits.
fn fit(
    args: &RecomputeArgs,
    planner: &Planner<'_>,
    step: &Step,
    capacity: u64,
) -> Result<Verdict, Failure> {
    let path = &*args.input;
    let sequence = &step.sequence;
    let orders = args.reorder.then(order::default_limits);
    let found = searching(Some(capacity), planner, |planner| {
        planner.plan_recomputed(sequence, capacity, args.limits(), orders)
    });
    let found = found.map_err(|error| wrong(Some(path), error))?;
    if let Recomputed::Found(fit) = &found {
        check(path, fit)?;
        if is_interrupted() && !fit.is_proven() {
            note("interrupted: this is the cheapest so far; it is not proven the cheapest");
        }
        if let Some(output) = &args.output {
            step.write(args, output, fit)?;
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
    Ok(if matches!(found, Recomputed::Found(_)) { Verdict::Good } else { Verdict::Bad })
}

/// The plan must be right for the expanded sequence.
fn check(path: &Path, fit: &Replanned<Recomputation>) -> Result<(), Failure> {
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
    let curve = searching(None, planner, |planner| {
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
