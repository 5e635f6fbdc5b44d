//! Plans, with their reports and pictures.

use std::{collections::BTreeMap, path::PathBuf};

use memplan::{
    OpSequence, PlannedBody, PlannedChunk, TensorPlace,
    import::read_json_plan,
    plan::{ArenaEntry, Scope},
    report::{self, MapOptions, MapSheet},
};
use pyo3::{
    exceptions::PyKeyError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList, PyTuple},
};

use crate::{
    errors::{file_error, guarded, value_error},
    json,
    numbers::{Argument, pairs, view},
    options::{Given, Options},
    sequence::Sequence,
    values::{hash, remade},
};

/// The size of the pool, and a fixed offset in it for every chunk and tensor.
#[pyclass(frozen, module = "memplan")]
pub(crate) struct Plan {
    pub(crate) inner: memplan::Plan,
    given: Given,
    options: Options,
    interrupted: bool,
    /// The Python objects of the tensors and the bodies, made once.
    tensors: PyOnceLock<Py<PyDict>>,
    bodies: PyOnceLock<Py<PyList>>,
}

impl Plan {
    pub(crate) fn new(
        plan: memplan::Plan,
        given: Given,
        options: &Options,
        interrupted: bool,
    ) -> Self {
        Self {
            inner: plan,
            given,
            options: options.clone(),
            interrupted,
            tensors: PyOnceLock::new(),
            bodies: PyOnceLock::new(),
        }
    }

    fn steps(&self) -> Option<&OpSequence> {
        match &self.given {
            Given::Sequence(graph) => Some(&graph.sequence),
            Given::Problem(_) => None,
        }
    }

    /// The rules under which no plan is smaller, for the summary.
    fn rules(&self) -> String {
        report::rules(self.given.input(), None, self.options.lowering)
    }

    /// The memory pattern of the runtime, for a plan of a model that was read for it.
    fn arena_entry(&self) -> PyResult<Option<ArenaEntry>> {
        let Given::Sequence(graph) = &self.given else { return Ok(None) };
        if let Some(pattern) = graph.pattern.as_ref().filter(|_| self.inner.order().is_empty()) {
            return Ok(Some(report::memory_pattern_entry(pattern, &self.inner)));
        }
        let Some(model) = graph.model.as_ref().filter(|_| self.inner.order().is_empty()) else {
            return Ok(None);
        };
        let (present, faults) = match &model.present {
            Ok(present) => (present.as_ref(), &[][..]),
            Err(faults) => (None, &faults[..]),
        };
        let entry = report::arena_entry(&model.arena, &self.inner, present, model.kernels, faults);
        entry.map(Some).map_err(value_error)
    }

    fn made_tensors<'py>(&self, make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let tensors = PyDict::new(make.py());
        for tensor in self.inner.tensors() {
            let (kind, of, offset) = match &tensor.place {
                TensorPlace::Pool { chunk, offset } => {
                    let pool = self.inner.chunks().get(*chunk).map(|chunk| chunk.pool);
                    let pool = pool.and_then(|pool| self.inner.pools().get(pool));
                    ("pool", pool.map(|pool| &*pool.name), *offset)
                }
                TensorPlace::Supplied { tensor, offset } => ("supplied", Some(&**tensor), *offset),
                _ => ("nowhere", None, 0),
            };
            let object = make.call1((&*tensor.name, tensor.size, kind, offset, of))?;
            tensors.set_item(&*tensor.name, object)?;
        }
        Ok(tensors)
    }

    fn made_bodies<'py>(&self, make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let bodies = PyList::empty(make.py());
        let Given::Sequence(graph) = &self.given else { return Ok(bodies) };
        let mut options = self.options.clone();
        // The operator hands these to its body.
        options.lowering = options.lowering.inputs_in_pool(false).weights_in_pool(false);
        for planned in self.inner.bodies() {
            let PlannedBody { step, body, .. } = planned;
            let operator = usize::try_from(*step).ok().and_then(|step| graph.operators().get(step));
            let sequence = operator.and_then(|operator| operator.bodies.get(*body));
            let sequence = sequence
                .ok_or_else(|| value_error(format!("operator {step} has no body {body}")))?;
            let given = Given::Sequence(Sequence::of(sequence.clone()).0);
            let plan = Self::new(planned.plan.clone(), given, &options, self.interrupted);
            bodies.append(make.call1((*step, *body, planned.inputs, plan))?)?;
        }
        Ok(bodies)
    }

    /// The options that say how the input was lowered, as `plan` takes them.
    fn lowering<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (options, lowering) = (PyDict::new(py), self.options.lowering);
        options.set_item("views", lowering.views)?;
        options.set_item("inplace", lowering.inplace)?;
        options.set_item("gathers", lowering.gathers)?;
        options.set_item("inputs_in_pool", lowering.inputs_in_pool)?;
        options.set_item("weights_in_pool", lowering.weights_in_pool)?;
        options.set_item("pools", self.options.pools.clone())?;
        let pins = PyDict::new(py);
        for (name, pin) in &self.options.pins {
            match &pin.pool {
                Some(pool) => pins.set_item(name, (pool, pin.offset))?,
                None => pins.set_item(name, pin.offset)?,
            }
        }
        options.set_item("pins", pins)?;
        Ok(options)
    }

    fn copied(&self) -> Self {
        Self::new(self.inner.clone(), self.given.clone(), &self.options, self.interrupted)
    }

    fn page(&self, title: &str) -> String {
        let lowered =
            self.options.planner().alignment(self.inner.alignment()).padding(self.inner.padding());
        let lowered = lowered.lower(self.given.input()).ok();
        let sheet = MapSheet::new(std::slice::from_ref(&self.inner), self.steps());
        let sheet = sheet.problem(lowered.as_ref().map(|lowered| &lowered.problem));
        report::memory_map_html(title, &[sheet])
    }
}

/// Makes a plan again that was pickled.
#[pyfunction]
#[pyo3(name = "_restored")]
pub(crate) fn restored(
    py: Python<'_>,
    text: &str,
    input: Given,
    options: &Bound<'_, PyDict>,
    interrupted: bool,
) -> PyResult<Plan> {
    let plan = guarded(py, || read_json_plan(text.as_bytes()).map_err(value_error))?;
    Ok(Plan::new(plan, input, &Options::read(Some(options))?, interrupted))
}

/// The most columns and rows of a map as text.
const WIDEST: usize = 10_000;

/// The chunks above which a notebook shows a summary without the map.
const MAX_DRAWN: usize = 10_000;

#[pymethods]
impl Plan {
    /// Reads a plan in memplan's JSON, for the input that it is a plan of. It may be wrong: verify it.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str, input: Given) -> PyResult<Self> {
        let plan = guarded(py, || read_json_plan(text.as_bytes()).map_err(value_error))?;
        if let Given::Problem(problem) = &input
            && problem.len() != plan.chunks().len()
        {
            let (found, wanted) = (plan.chunks().len(), problem.len());
            let found = memplan::report::count(found as u64, "chunk");
            let words = format!("the plan has {found}, but the problem has {wanted}");
            return Err(value_error(words));
        }
        Ok(Self::new(plan, input, &Options::default(), false))
    }

    /// Returns the plan in memplan's JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        // An invalid plan in the model does not affect this one.
        let arena = self.arena_entry().ok().flatten();
        json::text(py, |out| report::write_plan_file(out, self.inner.clone(), None, arena))
    }

    /// The memory of the runtime for a model, as JSON, or None.
    #[getter]
    fn _arena(&self) -> PyResult<Option<String>> {
        let entry = self.arena_entry()?;
        entry.map(|entry| serde_json::to_string(&entry).map_err(value_error)).transpose()
    }

    /// The bytes to reserve.
    #[getter]
    fn pool_size(&self) -> u64 {
        self.inner.pool_size()
    }

    /// Bytes that every plan within the scope needs.
    #[getter]
    fn lower_bound(&self) -> u64 {
        self.inner.lower_bound()
    }

    /// True if no smaller pool exists within the scope.
    #[getter]
    fn proven_optimal(&self) -> bool {
        self.inner.proven_optimal()
    }

    /// The plans that the lower bound and the proof speak of: `all_choices`, or `these_choices`, the plans
    /// with the same views, overwrites and copies.
    #[getter]
    fn scope(&self) -> &'static str {
        self.inner.scope().name()
    }

    /// The total in bytes with one buffer per chunk.
    #[getter]
    fn naive_size(&self) -> u64 {
        self.inner.naive_size()
    }

    /// The alignment of the offsets in bytes.
    #[getter]
    fn alignment(&self) -> u64 {
        self.inner.alignment()
    }

    /// Bytes added to every chunk.
    #[getter]
    fn padding(&self) -> u64 {
        self.inner.padding()
    }

    /// The number of steps.
    #[getter]
    #[pyo3(name = "steps")]
    fn step_count(&self) -> u64 {
        self.inner.steps()
    }

    /// The first step at which the most bytes are alive.
    #[getter]
    fn peak_step(&self) -> u64 {
        self.inner.peak_step()
    }

    /// The sizes of dimensions for all of which the plan holds, each a pair of the smallest and the largest.
    #[getter]
    fn dims(&self) -> BTreeMap<String, (u64, u64)> {
        pairs(self.inner.dims())
    }

    /// The strategy, or None if it is not known.
    #[getter]
    fn strategy(&self) -> Option<&'static str> {
        self.inner.strategy().map(memplan::Strategy::name)
    }

    /// The strategy that won, if several were tried.
    #[getter]
    fn winner(&self) -> Option<&'static str> {
        self.inner.winner().map(memplan::Strategy::name)
    }

    /// True if Ctrl-C ended the search: this is the best plan that was found until then.
    #[getter]
    fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// The steps of the input in the order that this is a plan for; empty if that is the order given.
    #[getter]
    fn order(&self) -> Vec<usize> {
        self.inner.order().to_vec()
    }

    /// The offset of every chunk in bytes: a `memoryview` of unsigned 64-bit integers.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, self.inner.chunks().iter().map(|chunk| chunk.offset))
    }

    /// The size of every chunk in bytes: a `memoryview` of unsigned 64-bit integers.
    #[getter]
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, self.inner.chunks().iter().map(|chunk| chunk.size))
    }

    /// The chunk that each one is written over, by its place, or None.
    #[getter]
    fn overwritten(&self) -> Vec<Option<usize>> {
        self.inner.chunks().iter().map(|chunk| chunk.overwrites.map(|link| link.chunk)).collect()
    }

    /// The chunks that lie inside others and are their bytes there: `(chunk, whole, offset, low, size)`, with the bytes
    /// `[low, low + size)` of the chunk that do. All of them do, unless an operator gathers a view.
    #[getter]
    fn parts(&self) -> Vec<(usize, usize, u64, u64, u64)> {
        let parts = self.inner.parts().iter();
        parts.map(|part| (part.chunk, part.whole, part.offset, part.low, part.size)).collect()
    }

    /// The size of every pool in bytes, by name; empty if there is one without a name.
    #[getter]
    fn pool_sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sizes = PyDict::new(py);
        for pool in self.inner.pools() {
            sizes.set_item(&*pool.name, pool.size)?;
        }
        Ok(sizes)
    }

    /// The name of the pool that each chunk lies in; empty if there is one without a name.
    #[getter]
    fn chunk_pools(&self) -> Vec<&str> {
        let pools = self.inner.pools();
        let of = |chunk: &PlannedChunk| pools.get(chunk.pool).map(|pool| &*pool.name);
        self.inner.chunks().iter().filter_map(of).collect()
    }

    /// The bytes that operators move to and from the chunks, each times its cost in the pool of the chunk.
    #[getter]
    fn traffic(&self) -> u128 {
        self.inner.traffic()
    }

    /// The names of the chunks.
    #[getter]
    fn chunk_names(&self) -> Vec<&str> {
        self.inner.chunks().iter().map(|chunk| &*chunk.name).collect()
    }

    /// Returns the result of `make(tensor, size, kind, offset, name)` returns for every tensor, by name. `kind` is
    /// "pool", "supplied" or "nowhere", and `name` is the name of the pool, if it has one, or of the supplied tensor.
    fn _tensors<'py>(
        &self,
        py: Python<'py>,
        make: &Bound<'py, PyAny>,
    ) -> PyResult<&Bound<'py, PyDict>> {
        let tensors =
            self.tensors.get_or_try_init(py, || self.made_tensors(make).map(Bound::unbind));
        tensors.map(|tensors| tensors.bind(py))
    }

    /// The workspace of every operator, by its place among the chunks, or None.
    #[getter]
    fn workspaces(&self) -> Vec<Option<usize>> {
        match &self.given {
            Given::Sequence(graph) => self.inner.workspaces(graph),
            Given::Problem(_) => Vec::new(),
        }
    }

    /// Returns the result of `make(operator, place in its list, bytes of the copies of the inputs, plan)` returns for
    /// every body.
    fn _bodies<'py>(
        &self,
        py: Python<'py>,
        make: &Bound<'py, PyAny>,
    ) -> PyResult<&Bound<'py, PyList>> {
        let bodies = self.bodies.get_or_try_init(py, || self.made_bodies(make).map(Bound::unbind));
        bodies.map(|bodies| bodies.bind(py))
    }

    /// Returns the offset of a tensor in the pool, in bytes.
    fn offset(&self, name: &str) -> PyResult<u64> {
        self.inner.offset(name).ok_or_else(|| match self.inner.tensor(name) {
            Some(_) => PyKeyError::new_err(format!("tensor '{name}' does not lie in the pool")),
            None => PyKeyError::new_err(format!("the plan has no tensor '{name}'")),
        })
    }

    /// Returns all that is wrong with this plan, one sentence each; an empty list if it is right.
    #[pyo3(signature = (*, execute = false))]
    fn verify(&self, py: Python<'_>, execute: bool) -> PyResult<Vec<String>> {
        guarded(py, || {
            let verifier = self.options.verifier().execute(execute);
            let found = verifier.verify(self.given.input(), &self.inner).map_err(value_error)?;
            Ok(found.iter().map(ToString::to_string).collect())
        })
    }

    /// Explains the size of the pool: the peak, the chunks alive there, and what prevents a smaller
    /// pool.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        guarded(py, || Ok(report::explain(&self.inner, self.steps())))
    }

    /// Draws the memory map as text, of at most 10 000 columns and rows.
    #[pyo3(signature = (*, width = Argument::of(100), height = Argument::of(24)), text_signature = "($self, *, width=100, height=24)")]
    fn map(&self, py: Python<'_>, width: Argument, height: Argument) -> PyResult<String> {
        guarded(py, || {
            let size = |size: u64| usize::try_from(size).map_or(WIDEST, |size| size.min(WIDEST));
            let (width, height) = (size(width.named("width")?), size(height.named("height")?));
            let options = MapOptions::default().width(width).height(height);
            Ok(report::pool_maps(&self.inner, self.steps(), options))
        })
    }

    /// Draws the memory map as SVG.
    fn svg(&self, py: Python<'_>) -> PyResult<String> {
        guarded(py, || Ok(report::pool_maps_svg(&self.inner, self.steps(), MapOptions::default())))
    }

    /// Writes the interactive memory map: one HTML file that needs no network.
    #[pyo3(signature = (path, *, title = "memplan"))]
    fn save_html(&self, py: Python<'_>, path: PathBuf, title: &str) -> PyResult<()> {
        guarded(py, || {
            let page = self.page(title);
            std::fs::write(&path, page).map_err(|error| file_error(&error, path))
        })
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        guarded(py, || {
            let summary = report::summary(&self.inner, self.steps(), &self.rules());
            let escaped = summary.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let map = if self.inner.chunks().len() > MAX_DRAWN {
                "<p>The map is too large for a notebook: save_html(path) writes it.</p>".to_owned()
            } else {
                report::pool_maps_svg(&self.inner, self.steps(), MapOptions::default())
            };
            Ok(format!("<pre>{escaped}</pre>{map}"))
        })
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        guarded(py, || Ok(report::summary(&self.inner, self.steps(), &self.rules())))
    }

    fn __len__(&self) -> usize {
        self.inner.chunks().len()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __hash__(&self) -> u64 {
        let offsets: Vec<u64> = self.inner.chunks().iter().map(|chunk| chunk.offset).collect();
        hash((self.inner.pool_size(), offsets))
    }

    fn __copy__(&self) -> Self {
        self.copied()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.copied()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let text = self.to_json(py)?;
        let options = self.lowering(py)?;
        remade(py, "plan", (text, self.given.object(py)?, options, self.interrupted))
    }

    fn __repr__(&self) -> String {
        let (pool, bound) = (self.inner.pool_size(), self.inner.lower_bound());
        let proven = match (self.inner.proven_optimal(), self.inner.scope()) {
            (false, _) => "",
            (true, Scope::AllChoices) => ", proven optimal",
            (true, _) => ", proven optimal with these choices",
        };
        let chunks = self.inner.chunks().len();
        format!("<memplan.Plan: {chunks} chunks in {pool} bytes, lower bound {bound}{proven}>")
    }
}
