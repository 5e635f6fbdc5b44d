//! `memplan reorder`: the same operators in the order that needs the least memory.

use std::{
    io::{self, Write},
    path::Path,
    time::Instant,
};

use memplan::{
    Bytes, Input, Limits, OpSequence, Planner, export,
    import::{Format, onnx::Survey},
    order::Reordered,
    planner::Replanned,
    report,
    sequence::{OperatorNode, TensorId},
};

use crate::{
    Failure, Verdict,
    args::ReorderArgs,
    files::{self, wrong},
    is_quiet, note,
    progress::{is_interrupted, searching},
    tflite::{self, TfliteModel},
};

/// The input to reorder.
struct Source {
    sequence: OpSequence,
    model: Option<Model>,
}

/// A model, as it is in its file.
enum Model {
    Onnx { bytes: Vec<u8>, survey: Box<Survey> },
    Tflite(Box<TfliteModel>),
}

impl Model {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Onnx { bytes, .. } => bytes,
            Self::Tflite(model) => &model.bytes,
        }
    }

    /// The order of the nodes or operators in the file that comes next to an order of the steps, and the
    /// order of the steps that it gives.
    fn order(&self, steps: &[usize]) -> (Vec<usize>, Vec<usize>) {
        match self {
            Self::Onnx { survey, .. } => {
                let order = survey.node_order(steps);
                let steps = survey.step_order(&order);
                (order, steps)
            }
            Self::Tflite(model) => {
                let operators = &model.survey.operators;
                // Steps before all operators are no operators: unused tensors, and the inputs.
                let first = operators.iter().take_while(|operator| operator.is_none()).count();
                let moved = || steps.iter().copied().filter(|&step| step >= first);
                let order = moved().filter_map(|step| operators[step]).collect();
                (order, (0..first).chain(moved()).collect())
            }
        }
    }

    /// The model with its nodes or operators in another order. The bytes to be written are read back: they must
    /// be what was planned.
    fn permuted(
        &self,
        args: &ReorderArgs,
        order: &[usize],
        found: &Replanned<Reordered>,
    ) -> Result<Vec<u8>, Failure> {
        let path = &*args.input;
        let (bytes, is_right) = match self {
            Self::Onnx { bytes, .. } => {
                let bytes = export::onnx::permuted(bytes, order)
                    .map_err(|error| wrong(Some(path), error))?;
                let written = files::read_with_nodes(&bytes, path, &args.reading)?;
                let is_right = written.sequence.has_same_operators(&found.sequence);
                (bytes, is_right)
            }
            Self::Tflite(model) => {
                let bytes = export::tflite::permuted(&model.bytes, order)
                    .map_err(|error| wrong(Some(path), error))?;
                let written = model.survey(&bytes, path)?.sequence;
                let is_right = runs_alike(&written, &found.sequence);
                (bytes, is_right)
            }
        };
        if is_right {
            return Ok(bytes);
        }
        let words = "in the new order, the model would be read as another one; nothing is written, and this is a bug in memplan";
        Err(wrong(Some(path), words))
    }
}

/// Returns whether two sequences run operators of the same kinds on the same tensors. The names of operators
/// and of their scratch memory tell the place in the file.
fn runs_alike(a: &OpSequence, b: &OpSequence) -> bool {
    let tensors = |sequence: &OpSequence, ids: &[TensorId]| -> Vec<(String, Bytes)> {
        let tensors = ids.iter().map(|&id| sequence.tensor(id));
        let tensors = tensors.filter(|tensor| tensor.dtype().is_some());
        tensors.map(|tensor| (tensor.name.to_string(), tensor.size.unwrap_or(0))).collect()
    };
    let is_alike = |(one, other): (&OperatorNode, &OperatorNode)| {
        one.kind == other.kind
            && tensors(a, &one.inputs) == tensors(b, &other.inputs)
            && tensors(a, &one.outputs) == tensors(b, &other.outputs)
    };
    a.operators().len() == b.operators().len()
        && a.operators().iter().zip(b.operators()).all(is_alike)
}

pub(crate) fn reorder(args: &ReorderArgs) -> Result<Verdict, Failure> {
    let path = &*args.input;
    if args.reading.is_for_onnxruntime() && files::is_onnx(path, &args.reading) {
        let words = "ONNX Runtime chooses the order of the nodes itself; omit --runtime onnxruntime to reorder the nodes of the file";
        return Err(wrong(Some(path), words));
    }
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
        let (order, steps) = model.order(&found.change.order);
        found = found
            .with_order(steps, sequence, &planner)
            .map_err(|error| wrong(Some(path), error))?;
        // Metadata may bind a .tflite file to its order; that matters only if it is written. A file whose nodes are not
        // in execution order is sorted.
        let is_written = matches!(output, Some((_, Format::Tflite)));
        let is_moved = match model {
            Model::Onnx { .. } => found.change.is_better() || !order.is_sorted(),
            Model::Tflite(_) => found.change.is_better() && is_written,
        };
        if is_moved {
            moved = Some(model.permuted(args, &order, &found)?);
        }
    }
    let took = start.elapsed();
    match (output, &model) {
        (Some((output, Format::Onnx | Format::Tflite)), Some(model)) => {
            let bytes = moved.as_deref().unwrap_or(model.bytes());
            files::write(output, |out| out.write_all(bytes))?;
            if let Model::Onnx { survey, .. } = model {
                files::note_external_data(survey, path, output);
            }
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
        let survey = Box::new(survey);
        return Ok(Source { sequence, model: Some(Model::Onnx { bytes, survey }) });
    }
    if files::is_tflite(path, &args.reading) {
        let mut model = tflite::read(path, &args.reading)?;
        let sequence = std::mem::take(&mut model.survey.sequence);
        return Ok(Source { sequence, model: Some(Model::Tflite(Box::new(model))) });
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
) -> Result<Replanned<Reordered>, Failure> {
    let Input::Sequence(sequence) = input else { return Err(no_operators(path)) };
    let found = searching(None, planner, |planner| planner.plan_reordered(sequence, limits));
    let found = found.map_err(|error| wrong(path, error))?;
    if is_interrupted() && !found.change.is_proven() {
        note("interrupted: this is the best order so far; it is not proven the best");
    }
    Ok(found)
}
