//! Recomputation under a capacity.

use memplan::{Limits, order, recompute::Recomputed, report};
use pyo3::{prelude::*, types::PyDict};

use crate::{
    errors::plan_error,
    numbers::Argument,
    options::{Given, Options, Watch},
    plan::Plan,
    sequence::Sequence,
};

/// An answer, as keyword arguments of the class `Recomputed`.
#[derive(IntoPyObject)]
pub(crate) struct Found {
    possible: Option<bool>,
    sequence: Option<Sequence>,
    plan: Option<Plan>,
    runs: Vec<usize>,
    later: Vec<(usize, usize, bool)>,
    extra_cost: Option<u64>,
    cost: Option<u64>,
    cost_bound: Option<u64>,
    peak: Option<u64>,
    peak_bound: u64,
    proven: bool,
    least: u64,
    text: String,
}

/// Lets some operators run twice so that the pool fits a capacity.
#[pyfunction]
#[pyo3(signature = (sequence, *, capacity, reorder = false, progress = None, **options))]
pub(crate) fn recompute(
    py: Python<'_>,
    sequence: &Sequence,
    capacity: Argument,
    reorder: bool,
    progress: Option<Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Found> {
    let capacity = capacity.named("capacity")?;
    let options = Options::read(options)?;
    let given = &sequence.0.sequence;
    let limits = options.limits(Limits::default());
    let orders = reorder.then(order::default_limits);
    // The effort limits the search for operators to run twice; plans keep their default effort.
    let planner = Options { effort: None, ..options.clone() }.planner();
    let (found, interrupted) = Watch::new(progress)?.run(py, planner, |planner| {
        planner.plan_recomputed(given, capacity, limits, orders).map_err(plan_error)
    })?;
    let text = report::recomputation(&found, given, capacity);
    let none = |possible, least, peak_bound| Found {
        possible,
        sequence: None,
        plan: None,
        runs: Vec::new(),
        later: Vec::new(),
        extra_cost: None,
        cost: None,
        cost_bound: None,
        peak: None,
        peak_bound,
        proven: possible.is_some(),
        least,
        text: text.clone(),
    };
    Ok(match found {
        Recomputed::Found(fit) => {
            let of = &fit.change;
            let proven = fit.is_proven();
            let expanded = Sequence::of(fit.sequence);
            Found {
                possible: Some(true),
                runs: of.runs_twice().collect(),
                later: of.later.iter().map(|run| (run.step, run.before, run.is_copy)).collect(),
                extra_cost: Some(of.extra_cost),
                cost: Some(of.cost),
                cost_bound: Some(of.cost_bound),
                peak: Some(of.peak),
                peak_bound: of.peak_bound,
                proven,
                least: fit.plan.pool_size(),
                plan: Some(Plan::new(
                    fit.plan,
                    Given::Sequence(expanded.0.clone()),
                    &options,
                    interrupted,
                )),
                sequence: Some(expanded),
                text,
            }
        }
        Recomputed::Impossible { peak_bound } => none(Some(false), peak_bound, peak_bound),
        Recomputed::NotFound { least, peak_bound } => none(None, least, peak_bound),
        _ => none(None, capacity, 0),
    })
}
