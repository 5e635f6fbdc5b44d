//! `memplan ops`: the operators by kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use memplan::{Input, Limits, PlanError, Planner, Strategy, import::onnx::Survey, report};

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
    let planner = Planner::new().lowering(args.reading.lowering());
    let failure = |error: PlanError| Failure::Input(format!("{name}: {error}"));
    let lowered = planner.lower(sequence).map_err(failure)?;
    let plan = planner.limits(Limits::default().nodes(NODES)).plan(sequence).map_err(failure)?;
    let name_of = |output| &sequence.tensor(output).name;
    let kinds = report::operator_kinds(
        sequence,
        &lowered,
        |output| not_in_place.get(name_of(output)).map(ToString::to_string),
        |output| unknown.contains(name_of(output)),
        plan.copies(),
    );
    let rules = rules(&input, path, &args.reading, Strategy::default());
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        report::write_json(&mut out, &report::operator_kinds_json(&name, &kinds, &rules))?;
    } else {
        write!(out, "{}", report::operator_table(&name, &kinds, &rules))?;
    }
    out.flush()?;
    Ok(Verdict::Good)
}
