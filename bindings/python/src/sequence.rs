//! Operators in execution order.

use std::{collections::BTreeMap, ffi::CString, sync::Arc};

use memplan::{
    Input, OpSequence,
    export::tflite::OfflinePlan,
    import::tflite::{Arena, KernelLibrary},
};
use pyo3::{
    exceptions::{PyUserWarning, PyValueError},
    prelude::*,
    types::PyDict,
};

use crate::{
    errors::{guarded, value_error},
    json,
    lists::List,
    numbers::{Argument, Dims, Whole, pairs, whole},
};

/// An output of an operator: a name and a size in bytes.
///
/// `reads` names the input that it is a view of. `overwrites` names one or several inputs that it may be
/// written over: the first possible one is overwritten. `updates` names the input that it must be
/// written over, such as a state. `gathers` names the inputs that it holds copies of, at offsets from its
/// own start: where an input already lies there, nothing needs to be copied. Each is a name, or a pair of
/// a name and an offset in bytes. `overlaps` lists pairs of an input and the least number of bytes by which the
/// output must begin below it, to overlap it: the operator never writes a byte that it has yet to read.
#[pyclass(frozen, module = "memplan", from_py_object)]
#[derive(Clone)]
pub(crate) struct Output(memplan::Output);

/// Some memory of an input: its name, or a pair of its name and an offset.
struct Place(String, u64);

impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = object.extract() {
            return Ok(Self(name, 0));
        }
        let (name, offset): (String, Bound<'_, PyAny>) = object.extract()?;
        let offset = whole(&offset, || format!("the offset in '{name}'"))?;
        Ok(Self(name, offset))
    }
}

/// One place or several.
struct Places(Vec<Place>);

impl<'py> FromPyObject<'_, 'py> for Places {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<List<Place>>() {
            // A `ValueError` is a wrong offset in one of several places; another error means that
            // this is one place.
            Err(error) if !error.is_instance_of::<PyValueError>(object.py()) => {
                Ok(Self(vec![object.extract()?]))
            }
            several => several.map(|List(places)| Self(places)),
        }
    }
}

#[pymethods]
impl Output {
    #[new]
    #[pyo3(signature = (name, size, *, reads = None, overwrites = None, updates = None, gathers = None, overlaps = None))]
    fn new(
        name: &str,
        size: Argument,
        reads: Option<Place>,
        overwrites: Option<Places>,
        updates: Option<Place>,
        gathers: Option<Places>,
        overlaps: Option<Places>,
    ) -> PyResult<Self> {
        let mut output = memplan::Output::new(name, size.named("size")?);
        if let Some(Place(input, offset)) = reads {
            output = output.reads_at(input, offset);
        }
        if let Some(Place(input, offset)) = updates {
            output = output.updates(input, offset);
        }
        for Place(input, offset) in overwrites.into_iter().flat_map(|places| places.0) {
            output = output.overwrites_at(input, offset);
        }
        for Place(input, offset) in gathers.into_iter().flat_map(|places| places.0) {
            output = output.gathers(input, offset);
        }
        for Place(input, below) in overlaps.into_iter().flat_map(|places| places.0) {
            output = output.overlaps(input, below);
        }
        Ok(Self(output))
    }

    fn __repr__(&self) -> String {
        format!("<memplan.{:?}>", self.0)
    }
}

/// An operator: the names of the tensors that it reads, and its outputs.
///
/// `workspace` is the scratch memory in bytes that it needs while it runs. `after` lists operators, by name
/// or place, that must run before it although it reads none of their outputs. `stream` is the stream that
/// it runs on: operators of different streams may run at the same time.
///
/// `bodies` are sequences that it runs, one at a time: the body of a loop, or the branches of a condition. Each
/// is planned by itself, in workspace of the operator that all of them share. Its weights are tensors of the
/// sequence around it, which belong in `inputs`. A weight may also have the name of an output of the operator: a
/// result that `updates` it is made there, so nothing is left to copy.
#[pyclass(frozen, module = "memplan", from_py_object)]
#[derive(Clone)]
pub(crate) struct Operator(memplan::Operator);

/// An earlier operator.
#[derive(FromPyObject)]
enum Earlier {
    Name(String),
    Place(Whole),
}

#[pymethods]
impl Operator {
    #[new]
    #[pyo3(signature = (name, inputs = List::default(), outputs = List::default(), *, kind = "", workspace = Argument::of(0), after = List::default(), stream = Argument::of(0), bodies = List::default()), text_signature = "(name, inputs=(), outputs=(), *, kind=\"\", workspace=0, after=(), stream=0, bodies=())")]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        name: &str,
        inputs: List<String>,
        outputs: List<Output>,
        kind: &str,
        workspace: Argument,
        after: List<Earlier>,
        stream: Argument,
        bodies: List<Bound<'_, Sequence>>,
    ) -> PyResult<Self> {
        let operator = memplan::Operator::new(name).kind(kind).inputs(inputs);
        // More streams than memory can number are as wrong as the most.
        let stream = usize::try_from(stream.named("stream")?).unwrap_or(usize::MAX);
        let operator = operator.workspace(workspace.named("workspace")?).on_stream(stream);
        let operator =
            outputs.into_iter().fold(operator, |operator, output| operator.output(output.0));
        let operator = bodies
            .iter()
            .fold(operator, |operator, body| operator.body(body.get().0.sequence.clone()));
        Ok(Self(after.into_iter().fold(operator, |operator, other| match other {
            Earlier::Name(name) => operator.after(name.as_str()),
            Earlier::Place(place) => operator.after(place.index()),
        })))
    }
}

/// Operators in execution order, with the tensors between them.
///
/// `inputs` maps the names of tensors that are supplied for each run to their sizes in bytes. `outputs` names
/// the tensors that live to the end. `weights` gives the sizes of the tensors that are the same in every run, None for
/// an unknown size; without it, all other tensors that no operator produces are weights, which a warning lists. `dims` states sizes of dimensions, each a size or a pair of the
/// smallest and the largest, for all of which the sequence is right; all tensors have their largest sizes.
#[pyclass(frozen, module = "memplan")]
pub(crate) struct Sequence(pub(crate) Arc<Graph>);

/// A sequence, and the arena of the runtime if it was read from a TensorFlow Lite model.
pub(crate) struct Graph {
    pub(crate) sequence: OpSequence,
    pub(crate) model: Option<Model>,
}

/// Facts about a TensorFlow Lite model that its sequence does not hold.
pub(crate) struct Model {
    pub(crate) arena: Arena,
    pub(crate) kernels: KernelLibrary,
    /// The plan that its metadata already holds.
    /// The plan in the model, or all that is wrong with it.
    pub(crate) present: Result<Option<OfflinePlan>, Vec<String>>,
}

impl std::ops::Deref for Graph {
    type Target = OpSequence;

    fn deref(&self) -> &OpSequence {
        &self.sequence
    }
}

impl Sequence {
    pub(crate) fn of(sequence: OpSequence) -> Self {
        Self(Arc::new(Graph { sequence, model: None }))
    }

    /// Warns of what was assumed about a sequence, which may be an error in writing.
    pub(crate) fn warned(self, py: Python<'_>) -> PyResult<Self> {
        let names = self.0.undeclared();
        if !names.is_empty() {
            let more = if names.len() > 5 {
                format!(" and {} more", names.len() - 5)
            } else {
                String::new()
            };
            let names = names[..names.len().min(5)].join("', '");
            warn(
                py,
                &format!(
                    "no operator makes and nobody declares '{names}'{more}: taken as weights, outside the pool; declare inputs and weights"
                ),
            )?;
        }
        if self.0.is_sorted() {
            warn(
                py,
                "the operators were not in execution order; steps count in the sorted order, that of Sequence.operators",
            )?;
        }
        Ok(self)
    }
}

fn warn(py: Python<'_>, words: &str) -> PyResult<()> {
    let words = CString::new(words.replace('\0', "\u{fffd}"))?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &words, 1)
}

#[pymethods]
impl Sequence {
    #[new]
    #[pyo3(signature = (operators, *, inputs = None, outputs = List::default(), weights = None, dims = None), text_signature = "(operators, *, inputs=None, outputs=(), weights=None, dims=None)")]
    fn new(
        py: Python<'_>,
        operators: List<Operator>,
        inputs: Option<Bound<'_, PyDict>>,
        outputs: List<String>,
        weights: Option<BTreeMap<String, Option<Whole>>>,
        dims: Option<Dims>,
    ) -> PyResult<Self> {
        let inputs = inputs.map_or_else(
            || Ok(Vec::new()),
            |inputs| {
                inputs
                    .iter()
                    .map(|(name, size)| {
                        let name: String = name.extract()?;
                        let size = whole(&size, || format!("the size of input '{name}'"))?;
                        Ok((name, size))
                    })
                    .collect::<PyResult<Vec<(String, u64)>>>()
            },
        )?;
        guarded(py, || {
            let mut builder = OpSequence::builder();
            if weights.is_none() {
                builder.undeclared_are_weights();
            }
            for (name, size) in inputs {
                builder.input(name, size);
            }
            for (name, size) in weights.into_iter().flatten() {
                builder.weight(name, size.map(|size| size.0));
            }
            for (name, sizes) in dims.into_iter().flat_map(|dims| dims.0) {
                builder.dim(name, sizes);
            }
            for operator in operators {
                builder.operator(operator.0);
            }
            for output in outputs {
                builder.output(output);
            }
            builder.build().map(Self::of).map_err(value_error)
        })?
        .warned(py)
    }

    /// Reads a sequence in memplan's JSON.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        match json::parse(py, text)? {
            Input::Sequence(sequence) => Self::of(sequence).warned(py),
            Input::Problem(_) => Err(value_error("this is a problem, not a sequence")),
        }
    }

    /// Returns the sequence in memplan's JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json::text(py, |out| memplan::report::write_sequence_json(out, &self.0))
    }

    /// Returns the operators in another order: a list of their places in this one.
    fn permuted(&self, py: Python<'_>, order: List<Whole>) -> PyResult<Self> {
        let order: Vec<usize> = order.into_iter().map(Whole::index).collect();
        guarded(py, || self.0.permuted(&order).map(Self::of).map_err(value_error))
    }

    /// The names of the operators, in execution order.
    #[getter]
    fn operators(&self) -> Vec<String> {
        let sequence = &self.0;
        (0..sequence.operators().len()).map(|step| sequence.operator_name(step)).collect()
    }

    /// Returns the operators in the order that they have in another sequence, such as the one that was planned for
    /// larger sizes.
    fn in_order_of(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        guarded(py, || self.0.in_order_of(&other.0.sequence).map(Self::of).map_err(value_error))
    }

    /// The sizes of dimensions for which the sequence is right, each a pair of the smallest and the largest.
    #[getter]
    fn dims(&self) -> BTreeMap<String, (u64, u64)> {
        pairs(self.0.dims())
    }

    /// The names that operators read, but that no operator makes and nobody declares.
    #[getter]
    fn undeclared(&self) -> Vec<String> {
        self.0.undeclared().into_iter().map(ToOwned::to_owned).collect()
    }

    /// True if the operators were not given in execution order.
    #[getter]
    fn is_sorted(&self) -> bool {
        self.0.is_sorted()
    }

    /// The number of streams that the operators run on.
    #[getter]
    fn streams(&self) -> usize {
        self.0.streams()
    }

    /// By operator: the operators of other streams that a runtime must wait for before it runs.
    #[getter]
    fn waits(&self) -> Vec<Vec<usize>> {
        self.0.waits()
    }

    fn __len__(&self) -> usize {
        self.0.operators().len()
    }

    fn __repr__(&self) -> String {
        let (operators, tensors) = (self.0.operators().len(), self.0.tensors().len());
        format!("<memplan.Sequence: {operators} operators, {tensors} tensors>")
    }
}
