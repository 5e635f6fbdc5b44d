//! `memplan compare`: all strategies side by side.

use std::{
    io::{self, Write},
    path::Path,
    time::Instant,
};

use memplan::{Input, baselines::onnxruntime::MemoryPattern, planner::Comparison, report};

use crate::{
    Failure, Verdict,
    args::CompareArgs,
    files::{self, wrong},
    note, onnxruntime,
    progress::{is_interrupted, searching},
    reorder, say,
};

/// Compares all inputs that can be read and planned, and reports the others.
pub(crate) fn compare(args: &CompareArgs) -> Result<Verdict, Failure> {
    let mut comparisons = Vec::with_capacity(args.paths.len());
    let mut patterns = Vec::new();
    let mut failures = Vec::new();
    for (at, path) in args.paths.iter().enumerate() {
        match compare_one(args, path) {
            Ok((comparison, pattern)) => {
                comparisons.push((files::name(path), comparison));
                patterns.push(pattern);
            }
            Err(Failure::Input(message)) => {
                say(&message);
                failures.push((at, files::name(path), message));
            }
            Err(closed) => return Err(closed),
        }
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    match &comparisons[..] {
        [] => {}
        _ if args.json => {
            let mut compared = report::comparisons_json(&comparisons);
            if let serde_json::Value::Array(inputs) = &mut compared {
                for (input, pattern) in inputs.iter_mut().zip(&patterns) {
                    if let Some(pattern) = pattern {
                        input["onnxruntime"] = report::memory_pattern_json(pattern);
                    }
                }
                for (at, name, error) in &failures {
                    inputs.insert(*at, serde_json::json!({"input": name, "error": error}));
                }
            }
            report::write_json(&mut out, &compared)?;
        }
        [(name, comparison)] => write!(out, "{}", report::comparison(name, comparison))?,
        _ => write!(out, "{}", report::comparisons(&comparisons))?,
    }
    if !args.json {
        write!(out, "{}", report::compared_patterns(&comparisons, &patterns))?;
    }
    out.flush()?;
    Ok(if failures.is_empty() { Verdict::Good } else { Verdict::Incomplete })
}

fn compare_one(
    args: &CompareArgs,
    path: &Path,
) -> Result<(Comparison, Option<MemoryPattern>), Failure> {
    let input = files::read_input(path, &args.reading)?;
    let pattern = onnxruntime::pattern(&input, Some(path), &args.reading);
    let limits = args.searching.limits();
    let planner = args.placing.planner(&args.reading, &input, Some(path));
    let planner = planner.lowering(args.reading.lowering()).limits(limits);
    let comparison = searching(None, &planner, |planner| planner.compare(&input));
    if is_interrupted() {
        note("interrupted: the strategies that had not ended stop, or show their best plan so far");
    }
    let comparison = comparison.map_err(|error| wrong(Some(path), error))?;
    if !args.reorder || matches!(input, Input::Problem(_)) {
        return Ok((comparison, pattern));
    }
    let start = Instant::now();
    let found = reorder::look(&input, Some(path), &planner, args.searching.order_limits())?;
    Ok((comparison.with_reordered(&found, start.elapsed()), pattern))
}
