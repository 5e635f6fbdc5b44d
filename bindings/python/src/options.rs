//! The options of planning, as keyword arguments.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use memplan::{
    Limits, Planner, Problem, Progress, Strategy, lower::LoweringOptions, verify::Verifier,
};
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyKeyboardInterrupt, PyTypeError},
    prelude::*,
    types::PyDict,
};

use crate::{
    constraints::{Pin, Pool},
    errors::{caught, panicked, plan_error, value_error},
    lists::List,
    numbers::shown,
    problem, sequence,
};

/// An input of planning, shared with its plans.
#[derive(Clone)]
pub(crate) enum Given {
    Sequence(Arc<sequence::Graph>),
    Problem(Arc<Problem>),
}

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(sequence) = object.cast::<sequence::Sequence>() {
            return Ok(Self::Sequence(sequence.get().0.clone()));
        }
        if let Ok(problem) = object.cast::<problem::Problem>() {
            return Ok(Self::Problem(problem.get().0.clone()));
        }
        let words = format!("a Sequence or a Problem is needed, not {}", shown(&object));
        Err(PyTypeError::new_err(words))
    }
}

impl Given {
    /// The input as Python's object.
    pub(crate) fn object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Sequence(graph) => sequence::Sequence(graph.clone()).into_py_any(py),
            Self::Problem(problem) => problem::Problem(problem.clone()).into_py_any(py),
        }
    }

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
                "views" => read.lowering = lowering.views(yes_or_no(&value, &name)?),
                "gathers" => read.lowering = lowering.gathers(yes_or_no(&value, &name)?),
                "inplace" => read.lowering = lowering.inplace(yes_or_no(&value, &name)?),
                "inputs_in_pool" => {
                    read.lowering = lowering.inputs_in_pool(yes_or_no(&value, &name)?);
                }
                "weights_in_pool" => {
                    read.lowering = lowering.weights_in_pool(yes_or_no(&value, &name)?);
                }
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
    pub(crate) fn constrained(mut self, input: Given) -> PyResult<(Self, Given)> {
        if !matches!(input, Given::Problem(_)) || self.pools.is_empty() {
            return Ok((self, input));
        }
        let problem = self.planner().lower(input.input()).map_err(plan_error)?.problem;
        self.pools.clear();
        self.pins.clear();
        Ok((self, Given::Problem(Arc::new(problem))))
    }
}

/// Reads a switch. A word such as "no" would be true.
fn yes_or_no(value: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("{name} must be True or False, not {}", shown(value)))
    })
}

fn whole(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    crate::numbers::whole(value, || name.to_owned())
}

/// The pause between two checks for signals and calls of the progress function.
const PAUSE: Duration = Duration::from_millis(50);

/// The stack of the thread that works, in bytes: as large as the stack of most main threads.
const STACK: usize = 8 << 20;

/// Watches a piece of work from Python. Ctrl-C cancels it, and so does any other exception of the progress
/// function or of a signal handler, which is then raised.
pub(crate) struct Watch {
    progress: Option<Py<PyAny>>,
    cancel: AtomicBool,
    /// The progress since the last call of the function.
    latest: Mutex<Option<Progress>>,
}

/// The end of a watch.
#[derive(Default)]
struct Seen {
    interrupted: bool,
    raised: Option<PyErr>,
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
            latest: Mutex::new(None),
        })
    }

    /// Runs a piece of work with a watched planner, in a thread of its own: Python handles signals in the thread that
    /// calls, even while the work reports nothing. Returns its result, and whether Ctrl-C ended it early.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        planner: Planner<'_>,
        work: impl Send + FnOnce(&Planner<'_>) -> PyResult<T>,
    ) -> PyResult<(T, bool)> {
        let keep = |progress: &Progress| *self.latest() = Some(*progress);
        let mut planner = planner.cancel(&self.cancel);
        if self.progress.is_some() {
            planner = planner.progress(&keep);
        }
        let (result, seen) = py.detach(|| {
            thread::scope(|scope| {
                let (ending, ended) = mpsc::channel::<()>();
                let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                    let _ending = ending;
                    caught(|| work(&planner))
                });
                let seen = self.look_until(&ended);
                let result = match worker.map(thread::ScopedJoinHandle::join) {
                    Ok(result) => result.unwrap_or_else(|panic| Err(panicked(&*panic))),
                    Err(error) => Err(error.into()),
                };
                (result, seen)
            })
        });
        match seen.raised {
            Some(error) => Err(error),
            None => Ok((result?, seen.interrupted)),
        }
    }

    fn latest(&self) -> MutexGuard<'_, Option<Progress>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks again and again until the other end of the channel is gone.
    fn look_until(&self, ended: &mpsc::Receiver<()>) -> Seen {
        let mut seen = Seen::default();
        while ended.recv_timeout(PAUSE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let latest = self.latest().take();
            let looked = Python::attach(|py| {
                let looked = py.check_signals().and_then(|()| self.report(py, latest));
                looked.map_err(|error| (error.is_instance_of::<PyKeyboardInterrupt>(py), error))
            });
            let Err((is_interrupt, error)) = looked else { continue };
            self.cancel.store(true, Ordering::Relaxed);
            seen.interrupted |= is_interrupt;
            if !is_interrupt {
                seen.raised = Some(error);
            }
        }
        seen
    }

    fn report(&self, py: Python<'_>, latest: Option<Progress>) -> PyResult<()> {
        let is_cancelled = self.cancel.load(Ordering::Relaxed);
        if let (Some(call), Some(progress), false) = (&self.progress, latest, is_cancelled) {
            call.call1(py, (progress.best, progress.lower_bound, progress.nodes))?;
        }
        Ok(())
    }
}
