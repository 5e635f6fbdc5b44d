//! The functions of the package: plan, fit, verify, compare, reorder.

use std::{borrow::Cow, sync::Arc};

use memplan::{
    InputRef,
    order::default_limits,
    problem::PoolId,
    report,
    verify::{Violation, execute_with_waits},
};
use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyTypeError},
    prelude::*,
    types::PyDict,
};

use crate::{
    errors::{guarded, plan_error, value_error},
    lists::List,
    numbers::{Whole, list, shown, whole},
    options::{Given, Options, Watch},
    plan::Plan,
    problem::Problem,
    sequence::Sequence,
};

/// Plans a sequence or a problem.
///
/// `alignment` is a power of two, by default the problem's own, 1 for a sequence. `effort` is the number of search
/// nodes of "best" and "optimal", and `time_limit` the seconds of these and of "first-fit". `pools` are the memories of
/// the device, the fastest first, and `pins` fix the places of tensors, or of chunks of a problem, by name.
/// `progress(best, lower_bound, nodes)` is called some twenty times a second. Ctrl-C ends the search with the best plan
/// so far, whose `interrupted` is then true.
#[pyfunction]
#[pyo3(signature = (input, *, progress = None, **options), text_signature = "(input, *, strategy=\"best\", alignment=None, padding=None, effort=None, time_limit=None, threads=1, views=True, inplace=True, gathers=True, inputs_in_pool=False, weights_in_pool=False, pools=None, pins=None, progress=None)")]
pub(crate) fn plan(
    py: Python<'_>,
    input: Given,
    progress: Option<Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Plan> {
    let (options, input) = Options::read(options)?.constrained(input)?;
    let (plan, interrupted) = Watch::new(progress)?
        .run(py, options.planner(), |planner| planner.plan(input.input()).map_err(plan_error))?;
    Ok(Plan::new(plan, input, &options, interrupted))
}

/// Lowers a sequence to the chunks that a planner places.
#[pyfunction]
#[pyo3(signature = (sequence, **options), text_signature = "(sequence, *, alignment=None, padding=None, views=True, inplace=True, gathers=True, inputs_in_pool=False, weights_in_pool=False, pools=None, pins=None)")]
pub(crate) fn lower(
    py: Python<'_>,
    sequence: &Sequence,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Problem> {
    let unused = ["strategy", "effort", "threads", "time_limit"];
    let options = Options::read_for("lower", &unused, options)?;
    guarded(py, || {
        let lowered = options.planner().lower(&sequence.0.sequence).map_err(value_error)?;
        Ok(Problem(Arc::new(lowered.problem)))
    })
}

/// Decides whether a plan fits into `capacity` bytes. Returns the answer, "yes", "no" or "unknown", and a plan.
#[pyfunction]
#[pyo3(signature = (input, capacity, *, progress = None, **options))]
pub(crate) fn fit(
    py: Python<'_>,
    input: Given,
    capacity: &Bound<'_, PyAny>,
    progress: Option<Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<(&'static str, Plan)> {
    let (options, input) = Options::read(options)?.constrained(input)?;
    let capacity = whole(capacity, || "capacity".to_owned())?;
    let (plan, interrupted) = Watch::new(progress)?.run(py, options.planner(), |planner| {
        planner.fit(input.input(), capacity).map_err(plan_error)
    })?;
    let answer = match plan.fits(capacity) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    Ok((answer, Plan::new(plan, input, &options, interrupted)))
}

/// Returns all that is wrong with a plan, one sentence each; an empty list if it is right.
#[pyfunction]
#[pyo3(signature = (input, plan, *, execute = false, waits = None, smaller = false, **options), text_signature = "(input, plan, *, execute=False, waits=None, smaller=False, alignment=None, padding=None, views=True, inplace=True, gathers=True, inputs_in_pool=False, weights_in_pool=False)")]
pub(crate) fn verify(
    py: Python<'_>,
    input: Given,
    plan: &Bound<'_, PyAny>,
    execute: bool,
    waits: Option<List<List<Whole>>>,
    smaller: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<String>> {
    let unused = ["strategy", "effort", "threads", "time_limit", "pools", "pins"];
    let options = Options::read_for("verify", &unused, options)?;
    let plan = match plan.cast::<Plan>() {
        Ok(plan) => Cow::Borrowed(&plan.get().inner),
        Err(_) => Cow::Owned(from_offsets(py, &input, plan, &options)?),
    };
    if matches!(input, Given::Problem(_)) {
        if waits.is_some() {
            return Err(PyTypeError::new_err(
                "waits are those of a sequence's operators, not of a problem",
            ));
        }
        if smaller {
            return Err(PyTypeError::new_err("smaller is for the sizes of a sequence"));
        }
    }
    if smaller && waits.is_some() {
        return Err(PyTypeError::new_err(
            "waits are those of the operators of one plan; verify them without smaller",
        ));
    }
    guarded(py, || {
        let verifier = options.verifier().execute(execute && waits.is_none()).smaller(smaller);
        let mut found = verifier.verify(input.input(), &plan).map_err(value_error)?;
        if let (Some(waits), InputRef::Sequence(sequence)) = (waits, input.input()) {
            let by_step = |waits: List<Whole>| waits.into_iter().map(Whole::index).collect();
            let waits: Vec<Vec<usize>> = waits.into_iter().map(by_step).collect();
            let steps = sequence.operators().len();
            let later = waits.iter().enumerate().find_map(|(step, waits)| {
                Some((step, *waits.iter().find(|&&earlier| earlier >= step)?))
            });
            if waits.len() != steps {
                let words =
                    format!("waits has {} lists, but there are {steps} operators", waits.len());
                return Err(value_error(words));
            }
            if let Some((step, other)) = later {
                let words = format!(
                    "operator {step} cannot wait for {other}, which is no earlier operator"
                );
                return Err(value_error(words));
            }
            for violation in execute_with_waits(sequence, &plan, &waits) {
                if !found.contains(&violation) {
                    found.push(violation);
                }
            }
        }
        if found.len() > 1 && plan.strategy().is_none() {
            // A pool below its bound follows from the overlaps.
            found.retain(|violation| !matches!(violation, Violation::BoundAbovePool { .. }));
        }
        Ok(found.iter().map(ToString::to_string).collect())
    })
}

/// Returns the outputs, by name, that the sequence makes views, and a plan for several sizes places elsewhere.
#[pyfunction]
pub(crate) fn copied_views(
    py: Python<'_>,
    sequence: &Sequence,
    plan: &Plan,
) -> PyResult<Vec<String>> {
    let found =
        || memplan::verify::copied_views(&sequence.0.sequence, &plan.inner).into_iter().collect();
    guarded(py, || Ok(found()))
}

/// A plan of offsets from elsewhere.
fn from_offsets(
    py: Python<'_>,
    input: &Given,
    offsets: &Bound<'_, PyAny>,
    options: &Options,
) -> PyResult<memplan::Plan> {
    let Given::Problem(problem) = input else {
        return Err(PyTypeError::new_err(
            "offsets alone are a plan of a problem, not of a sequence",
        ));
    };
    let places = places(problem, offsets)?;
    guarded(py, || {
        let mut problem = (**problem).clone();
        if let Some(alignment) = options.alignment {
            problem = problem.with_alignment(alignment).map_err(value_error)?;
        }
        if let Some(padding) = options.padding {
            problem = problem.with_padding(padding).map_err(value_error)?;
        }
        memplan::Plan::from_places(&problem, &places).map_err(value_error)
    })
}

/// Reads offsets or, if there are several pools, pairs of the name of a pool and an offset.
fn places(problem: &memplan::Problem, places: &Bound<'_, PyAny>) -> PyResult<Vec<(PoolId, u64)>> {
    let pools = problem.pools();
    if pools.len() < 2 {
        let offsets = list(places, "offsets")?.into_iter();
        return Ok(offsets.map(|offset| (PoolId(0), offset)).collect());
    }
    let place = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let Ok((name, offset)) = item.extract::<(String, Bound<'_, PyAny>)>() else {
            let words = "a place must be (pool, offset), because there are several pools";
            return Err(value_error(format!("{words}, not {}", shown(&item))));
        };
        let at = pools.iter().position(|pool| *pool.name == *name);
        let unknown = || value_error(memplan::ProblemError::UnknownPool { pool: name.clone() });
        let at = at.and_then(|at| u16::try_from(at).ok()).ok_or_else(unknown)?;
        Ok((PoolId(at), whole(&offset, || "an offset".to_owned())?))
    };
    places.try_iter()?.map(place).collect()
}

/// Plans with every strategy. Returns a table as text, and a dictionary with the same figures.
#[pyfunction]
#[pyo3(signature = (input, *, name = "input", progress = None, **options))]
pub(crate) fn compare(
    py: Python<'_>,
    input: Given,
    name: &str,
    progress: Option<Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<(String, String)> {
    let options = Options::read_for("compare", &["strategy"], options)?;
    let (compared, interrupted) = Watch::new(progress)?
        .run(py, options.planner(), |planner| planner.compare(input.input()).map_err(plan_error))?;
    if interrupted {
        // The figures of searches that were cut short are not comparable.
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    let text = report::comparison(name, &compared);
    let json = report::comparisons_json(&[(name.to_owned(), compared)]);
    Ok((text, json.to_string()))
}

/// A better order, as keyword arguments of the class `Reordered`.
#[derive(IntoPyObject)]
pub(crate) struct Found {
    order: Vec<usize>,
    sequence: Sequence,
    plan: Plan,
    given: Plan,
    peak: u64,
    given_peak: u64,
    lower_bound: u64,
    proven_optimal: bool,
    moved: usize,
    text: String,
}

/// Looks for the order of the operators that needs the least memory.
#[pyfunction]
#[pyo3(signature = (sequence, *, progress = None, **options))]
pub(crate) fn reorder(
    py: Python<'_>,
    sequence: &Sequence,
    progress: Option<Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Found> {
    let options = Options::read(options)?;
    let given = &sequence.0.sequence;
    // The effort limits the search for an order; plans keep their default effort.
    let planner = Options { effort: None, ..options.clone() }.planner();
    let (found, interrupted) = Watch::new(progress)?.run(py, planner, |planner| {
        let limits = options.limits(default_limits());
        planner.plan_reordered(given, limits).map_err(plan_error)
    })?;
    let text = report::reordering(&found, given);
    let better = Sequence::of(found.sequence);
    let plan = |plan, sequence: &Sequence| {
        Plan::new(plan, Given::Sequence(sequence.0.clone()), &options, interrupted)
    };
    let order = found.change;
    Ok(Found {
        plan: plan(found.plan, &better),
        given: plan(found.given, sequence),
        sequence: better,
        peak: order.peak,
        given_peak: order.given_peak,
        lower_bound: order.lower_bound,
        proven_optimal: order.is_proven(),
        moved: order.moved,
        order: order.order,
        text,
    })
}
