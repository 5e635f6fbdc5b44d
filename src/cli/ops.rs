//! `memplan ops`: the operators by kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use memplan::{Input, Limits, Planner, Strategy, import::onnx::Survey, report};

use crate::{Failure, Verdict, args::OpsArgs, files, planning, rules::rules, tflite};

/// The effort of the plan that decides what is copied.
const NODES: u64 = 1000;

pub(crate) fn ops(args: &OpsArgs) -> Result<Verdict, Failure> {
    let path = args.input.as_deref();
    let (input, not_in_place, unknown) = match path {
        Some(path) if files::is_onnx(path, &args.reading) => {
            let Survey { sequence, not_in_place, unknown, .. } =
                files::survey(path, &args.reading)?;
            (Input::Sequence(sequence), not_in_place, unknown)
        }
        Some(path) if files::is_tflite(path, &args.reading) => {
            let survey = tflite::read(path, &args.reading)?.survey;
            (Input::Sequence(survey.sequence), survey.not_in_place, BTreeSet::default())
        }
        _ => (planning::input(path, &args.reading)?.0, BTreeMap::default(), BTreeSet::default()),
    };
    let name = path.map_or_else(|| planning::BUILT_IN.to_owned(), files::name);
    let Input::Sequence(sequence) = &input else {
        let problem = format!("{name}: this is a problem, which has no operators");
        return Err(Failure::Input(problem));
    };
    let limits = Limits::default().nodes(NODES);
    let planner = &Planner::new().lowering(args.reading.lowering()).limits(limits);
    let rules = rules(&input, path, &args.reading, Strategy::default());
    let why = |output: &str| not_in_place.get(output).map(ToString::to_string);
    let is_unknown = |output: &str| unknown.contains(output);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let failure = |error| Failure::Input(format!("{name}: {error}"));
    if args.json {
        let kinds =
            report::operator_kinds_json([&name, &rules], sequence, planner, why, is_unknown);
        report::write_json(&mut out, &kinds.map_err(failure)?)?;
    } else {
        let table = report::operator_table([&name, &rules], sequence, planner, why, is_unknown);
        write!(out, "{}", table.map_err(failure)?)?;
    }
    out.flush()?;
    Ok(Verdict::Good)
}
