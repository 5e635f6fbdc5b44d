//! Advice on a smaller pool: changes that the library plans, and options of the command.

use std::path::Path;

use memplan::{
    Bytes, Input, Plan, PlanError,
    import::{ImportOptions, InPlace},
    report::{self, Change},
};

use crate::{
    Failure,
    args::ExplainArgs,
    files::{self, wrong},
    progress::searching,
};

/// The changes that make the pool of a new plan smaller; none for a plan from a file, or one of a problem.
pub(crate) fn advice(
    args: &ExplainArgs,
    input: &Input,
    plan: &Plan,
) -> Result<Vec<(Change, Bytes)>, Failure> {
    let path = args.input.as_deref();
    let Input::Sequence(sequence) = input else { return Ok(Vec::new()) };
    if args.plan.is_some() {
        return Ok(Vec::new());
    }
    let planner = args.planning.planner(&args.reading, input, path);
    let failed = |error: PlanError| wrong(path, error);
    let found = searching(None, &planner, |planner| report::advice(sequence, plan, planner));
    let mut found = found.map_err(failed)?;
    // A new order is one of the operators as they are read now.
    if let (Some(path), false) = (path.filter(|path| path.is_file()), args.reorder) {
        let planner = planner.lowering(args.reading.lowering().inplace(true));
        for (option, change) in options(path, args) {
            let again = files::read_again(path, &args.reading, change)?;
            let Ok(again) = planner.plan(&again) else { continue };
            if again.pool_size() < plan.pool_size() {
                found.push((Change::Option(option), again.pool_size()));
            }
        }
        found.sort_by_key(|&(_, pool_size)| pool_size);
    }
    Ok(found)
}

/// A change of the options for reading a model.
type Reading = Box<dyn FnOnce(ImportOptions) -> ImportOptions>;

/// Options that allow outputs to share more bytes with inputs, if the kernels can do so.
fn options(path: &Path, args: &ExplainArgs) -> Vec<(String, Reading)> {
    let reading = &args.reading;
    if files::is_onnx(path, reading) && reading.kernels.is_none() {
        let given = reading.profile().unwrap_or_default();
        let more = InPlace::ALL.iter().copied().filter(|&profile| given < profile);
        let change = |profile| -> (String, Reading) {
            let change = move |options: ImportOptions| options.inplace(profile);
            (format!("--inplace {profile}"), Box::new(change))
        };
        return more.map(change).collect();
    }
    let is_micro = files::is_tflite(path, reading) && !reading.is_for_interpreter();
    if is_micro && reading.kernels.is_some() && !reading.overlap {
        let change = |options: ImportOptions| options.overlap(true);
        return vec![("--overlap".to_owned(), Box::new(change))];
    }
    Vec::new()
}
