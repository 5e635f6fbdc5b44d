//! `memplan reorder`: the same operators in the order that needs the least memory.

use std::{
    io::{self, Write},
    path::Path,
    time::Instant,
};

use memplan::{
    Input, Limits, OpSequence, Planner, export,
    import::{Format, onnx::Survey},
    planner::ReorderedPlan,
    report,
};

use crate::{
    Failure, Verdict,
    args::ReorderArgs,
    files::{self, wrong},
    is_quiet, note,
    progress::{is_interrupted, searching},
};

/// The input to reorder.
struct Source {
    sequence: OpSequence,
    model: Option<Model>,
}

/// An ONNX model, as it is in its file.
struct Model {
    bytes: Vec<u8>,
    survey: Survey,
}

pub(crate) fn reorder(args: &ReorderArgs) -> Result<Verdict, Failure> {
    let path = &*args.input;
    let output = match args.output.as_deref() {
        Some(output) => Some((output, files::order_to_write(output, path, &args.reading)?)),
        None => None,
    };
    let Source { sequence, model } = read(args)?;
    let start = Instant::now();
    let input = Input::Sequence(sequence);
    let planner = args.placing.planner(&args.reading, &input, Some(path));
    let planner = planner.lowering(args.reading.lowering());
    let mut found = look(&input, Some(path), &planner, args.limits())?;
    let Input::Sequence(sequence) = &input else { return Err(no_operators(Some(path))) };
    // The nodes of a file may not allow the order; then one that they allow is planned, in the time
    // that is left.
    let planner = match args.limits().time {
        Some(time) => planner.limits(Limits::default().time(time.saturating_sub(start.elapsed()))),
        None => planner,
    };
    let mut moved = None;
    if let Some(model) = &model {
        let order = model.survey.nodes.order(&found.reordered.order);
        let steps = model.survey.nodes.steps(&order);
        found = found
            .with_order(steps, sequence, &planner)
            .map_err(|error| wrong(Some(path), error))?;
        if found.reordered.is_better() {
            moved = Some(reordered_model(args, model, &order, &found)?);
        }
    }
    let took = start.elapsed();
    match (output, &model) {
        (Some((output, Format::Onnx)), Some(model)) => {
            let bytes = moved.as_ref().unwrap_or(&model.bytes);
            files::write(output, |out| out.write_all(bytes))?;
            note_external_data(model, path, output);
        }
        (Some((output, _)), _) => {
            files::write(output, |out| report::write_sequence_json(out, &found.sequence))?;
        }
        (None, _) => {}
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        let mut json = report::reordering_json(&found, sequence);
        if let serde_json::Value::Object(keys) = &mut json {
            keys.insert("seconds".to_owned(), took.as_secs_f64().into());
        }
        report::write_json(&mut out, &json)?;
    } else if output.is_none() || !is_quiet() {
        let name = report::printable(&files::name(path)).into_owned();
        writeln!(out, "{name}, reordered in {}", report::seconds(took))?;
        write!(out, "{}", report::reordering(&found, sequence))?;
    }
    out.flush()?;
    Ok(Verdict::Good)
}

fn read(args: &ReorderArgs) -> Result<Source, Failure> {
    let path = &*args.input;
    if files::is_onnx(path, &args.reading) {
        let (bytes, mut survey) = files::read_model(path, &args.reading)?;
        let sequence = std::mem::take(&mut survey.sequence);
        return Ok(Source { sequence, model: Some(Model { bytes, survey }) });
    }
    match files::read_input(path, &args.reading)? {
        Input::Sequence(sequence) => Ok(Source { sequence, model: None }),
        Input::Problem(_) => Err(no_operators(Some(path))),
    }
}

fn no_operators(path: Option<&Path>) -> Failure {
    wrong(path, "this is a problem, whose steps are given; only operators can be reordered")
}

/// Looks for a better order of an input's operators, and plans it; after Ctrl-C, the best so far.
pub(crate) fn look(
    input: &Input,
    path: Option<&Path>,
    planner: &Planner<'_>,
    limits: Limits,
) -> Result<ReorderedPlan, Failure> {
    let Input::Sequence(sequence) = input else { return Err(no_operators(path)) };
    let found = searching(None, |observer| {
        planner.clone().observer(observer).plan_reordered(sequence, limits)
    });
    let found = found.map_err(|error| wrong(path, error))?;
    if is_interrupted() && !found.reordered.is_proven() {
        note("interrupted: this is the best order so far; it is not proven the best");
    }
    Ok(found)
}

/// The model with its nodes in another order. The bytes to be written are read back: they must be what was
/// planned.
fn reordered_model(
    args: &ReorderArgs,
    model: &Model,
    nodes: &[usize],
    found: &ReorderedPlan,
) -> Result<Vec<u8>, Failure> {
    let bytes = export::onnx::permuted(&model.bytes, nodes)
        .map_err(|error| wrong(Some(&args.input), error))?;
    let written = files::read_with_nodes(&bytes, &args.input, &args.reading)?;
    if written.sequence.has_same_operators(&found.sequence) {
        Ok(bytes)
    } else {
        let words = "with its nodes in the new order, the model would be read as another one; nothing is written, and this is a bug in memplan";
        Err(wrong(Some(&args.input), words))
    }
}

/// A model names the files of its weights from its own folder.
fn note_external_data(model: &Model, read: &Path, written: &Path) {
    let folder = |path: &Path| path.canonicalize().ok()?.parent().map(Path::to_owned);
    if model.survey.has_external_data && folder(read) != folder(written) {
        note(&format!(
            "{}: the weights lie in files that the model names from its own folder; copy them beside it",
            written.display()
        ));
    }
}
