//! The options of planning, as keyword arguments.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use memplan::{
    Limits, Observer, Planner, Problem, Progress, Strategy, lower::LoweringOptions,
    verify::Verifier,
};
use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyTypeError},
    prelude::*,
    types::PyDict,
};

use crate::{
    demands::{Pin, Pool},
    errors::value_error,
    lists::List,
    numbers::shown,
    problem, sequence,
};

/// An input of planning, shared with its plans.
#[derive(Clone, FromPyObject)]
pub(crate) enum Given {
    Sequence(#[pyo3(from_py_with = sequence_of)] Arc<sequence::Graph>),
    Problem(#[pyo3(from_py_with = problem_of)] Arc<Problem>),
}

fn sequence_of(object: &Bound<'_, PyAny>) -> PyResult<Arc<sequence::Graph>> {
    Ok(object.cast::<sequence::Sequence>()?.get().0.clone())
}

fn problem_of(object: &Bound<'_, PyAny>) -> PyResult<Arc<Problem>> {
    Ok(object.cast::<problem::Problem>()?.get().0.clone())
}

impl Given {
    pub(crate) fn input(&self) -> memplan::InputRef<'_> {
        match self {
            Self::Sequence(graph) => (&graph.sequence).into(),
            Self::Problem(problem) => (&**problem).into(),
        }
    }
}

/// The names of the options in Python.
const NAMES: [&str; 13] = [
    "strategy",
    "alignment",
    "padding",
    "effort",
    "threads",
    "time_limit",
    "views",
    "inplace",
    "gathers",
    "inputs_in_pool",
    "weights_in_pool",
    "pools",
    "pins",
];

/// The options of planning, by their names in Python.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) strategy: Strategy,
    pub(crate) alignment: Option<u64>,
    pub(crate) padding: Option<u64>,
    pub(crate) lowering: LoweringOptions,
    pub(crate) effort: Option<u64>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) threads: Option<usize>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) pins: BTreeMap<String, Pin>,
}

impl Options {
    pub(crate) fn read(options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::read_for("", &[], options)
    }

    /// Reads the options of a function that does not take those in `unused`.
    pub(crate) fn read_for(
        function: &str,
        unused: &[&str],
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut read = Self::default();
        for (name, value) in options.into_iter().flatten() {
            let name: String = name.extract()?;
            if unused.contains(&&*name) {
                let words = format!("memplan.{function} has no use for the option '{name}'");
                return Err(PyTypeError::new_err(words));
            }
            if value.is_none() && NAMES.contains(&&*name) {
                continue;
            }
            let lowering = read.lowering;
            match name.as_str() {
                "strategy" => {
                    let strategy: String = value.extract()?;
                    read.strategy = strategy.parse().map_err(value_error)?;
                }
                "alignment" => read.alignment = Some(whole(&value, &name)?),
                "padding" => read.padding = Some(whole(&value, &name)?),
                "effort" => read.effort = Some(whole(&value, &name)?),
                "threads" => read.threads = usize::try_from(whole(&value, &name)?).ok(),
                "time_limit" => {
                    let seconds: f64 = value.extract()?;
                    let limit = Duration::try_from_secs_f64(seconds);
                    let words = format!("time_limit is {seconds}, but must be a number of seconds");
                    read.time_limit = Some(limit.map_err(|_| value_error(words))?);
                }
                "views" => read.lowering = lowering.views(value.is_truthy()?),
                "gathers" => read.lowering = lowering.gathers(value.is_truthy()?),
                "inplace" => read.lowering = lowering.inplace(value.is_truthy()?),
                "inputs_in_pool" => read.lowering = lowering.inputs_in_pool(value.is_truthy()?),
                "weights_in_pool" => read.lowering = lowering.weights_in_pool(value.is_truthy()?),
                "pools" => read.pools = value.extract::<List<_>>()?.0,
                "pins" => read.pins = value.extract()?,
                _ => {
                    let words = format!("memplan has no option '{name}'");
                    return Err(PyTypeError::new_err(words));
                }
            }
        }
        Ok(read)
    }

    /// The limits of a search, from its own default.
    pub(crate) fn limits(&self, mut limits: Limits) -> Limits {
        if let Some(effort) = self.effort {
            limits = limits.nodes(effort);
        }
        if let Some(time) = self.time_limit {
            limits = limits.time(time);
        }
        limits.threads(self.threads.unwrap_or(1))
    }

    /// A verifier with the requirements of the options.
    pub(crate) fn verifier(&self) -> Verifier {
        let mut verifier = Verifier::new().lowering(self.lowering);
        if let Some(alignment) = self.alignment {
            verifier = verifier.alignment(alignment);
        }
        if let Some(padding) = self.padding {
            verifier = verifier.padding(padding);
        }
        verifier
    }

    pub(crate) fn planner(&self) -> Planner<'static> {
        let mut planner = Planner::new()
            .strategy(self.strategy)
            .lowering(self.lowering)
            .limits(self.limits(Limits::default()));
        if let Some(alignment) = self.alignment {
            planner = planner.alignment(alignment);
        }
        if let Some(padding) = self.padding {
            planner = planner.padding(padding);
        }
        if !self.pools.is_empty() {
            planner =
                planner.pools(self.pools.iter().map(|pool| pool.0.clone()).collect::<Vec<_>>());
        }
        for (name, Pin { pool, offset }) in &self.pins {
            planner = planner.pin(name.as_str(), pool.as_deref().unwrap_or_default(), *offset);
        }
        planner
    }

    /// Moves pools and pins into a problem, with which its plans are then verified.
    pub(crate) fn demanded(mut self, input: Given) -> PyResult<(Self, Given)> {
        if !matches!(input, Given::Problem(_)) || self.pools.is_empty() {
            return Ok((self, input));
        }
        let problem = self.planner().lower(input.input()).map_err(value_error)?.problem;
        self.pools.clear();
        self.pins.clear();
        Ok((self, Given::Problem(Arc::new(problem))))
    }
}

fn whole(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    crate::numbers::whole(value, || name.to_owned())
}

/// The pause between two checks for signals and calls of the progress function.
const PAUSE: Duration = Duration::from_millis(50);

/// Watches a search from Python. Ctrl-C ends it with its best result. Any other exception of the progress
/// function or of a signal handler ends it as well, and is then raised.
pub(crate) struct Watch {
    progress: Option<Py<PyAny>>,
    cancel: AtomicBool,
    last: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
    interrupted: AtomicBool,
}

impl Watch {
    pub(crate) fn new(progress: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        if let Some(progress) = progress.as_ref().filter(|progress| !progress.is_callable()) {
            let words = format!("progress must be a function, not {}", shown(progress));
            return Err(PyTypeError::new_err(words));
        }
        Ok(Self {
            progress: progress.map(Bound::unbind),
            cancel: AtomicBool::new(false),
            last: Mutex::new(Instant::now()),
            raised: Mutex::new(None),
            interrupted: AtomicBool::new(false),
        })
    }

    /// Called by the search, without the interpreter lock.
    fn look(&self, progress: &Progress) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < PAUSE || self.cancel.load(Ordering::Relaxed) {
            return;
        }
        *last = Instant::now();
        Python::attach(|py| {
            let Err(error) = py.check_signals().and_then(|()| self.report(py, progress)) else {
                return;
            };
            if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                self.interrupted.store(true, Ordering::Relaxed);
            } else {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            self.cancel.store(true, Ordering::Relaxed);
        });
    }

    fn report(&self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        if let Some(call) = &self.progress {
            call.call1(py, (progress.best, progress.lower_bound, progress.nodes))?;
        }
        Ok(())
    }

    /// Runs a piece of work with an observer. Returns its result, and whether Ctrl-C ended it early.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(Observer<'_>) -> PyResult<T>,
    ) -> PyResult<(T, bool)> {
        let look = |progress: &Progress| self.look(progress);
        let result = crate::errors::guarded(py, || {
            work(Observer::default().cancel(&self.cancel).progress(&look))
        });
        match self.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok((result?, self.interrupted.load(Ordering::Relaxed))),
        }
    }
}
