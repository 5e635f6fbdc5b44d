//! Operators, as they are declared.

use std::sync::Arc;

use memplan::{OpSequence, sequence::TensorId};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{
    lists::List,
    numbers::{Argument, Whole},
    output::Output,
    sequence::{Graph, Sequence},
    values::{call, hash},
};

/// An operator: the names of the tensors that it reads, and its outputs.
///
/// `workspace` is the scratch memory in bytes that it needs while it runs. `after` lists operators, by name
/// or place, that must run before it although it reads none of their outputs. `stream` is the stream that
/// it runs on: operators of different streams may run at the same time. `cost` is what running it costs, in any
/// unit, and `once` states that it must not run twice; both are for `recompute`.
///
/// `bodies` are sequences that it runs, one at a time: the body of a loop, or the branches of a condition. Each
/// is planned by itself, in workspace of the operator that all of them share. Its weights are tensors of the
/// sequence around it, which belong in `inputs`. A weight may also have the name of an output of the operator: a
/// result that `updates` it is made there, so nothing is left to copy.
#[pyclass(frozen, module = "memplan", from_py_object)]
#[derive(Clone)]
pub(crate) struct Operator {
    name: String,
    kind: String,
    inputs: Vec<String>,
    outputs: Vec<Output>,
    workspace: u64,
    after: Vec<Earlier>,
    stream: usize,
    bodies: Vec<Arc<Graph>>,
    cost: u64,
    once: bool,
}

/// An earlier operator.
#[derive(Clone, PartialEq)]
enum Earlier {
    Name(String),
    Place(usize),
}

impl<'py> FromPyObject<'_, 'py> for Earlier {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            return object.extract().map(Self::Name);
        }
        object.extract().map(|place: Whole| Self::Place(place.index()))
    }
}

#[pymethods]
impl Operator {
    #[new]
    #[pyo3(signature = (name, inputs = List::default(), outputs = List::default(), *, kind = "", workspace = Argument::of(0), after = List::default(), stream = Argument::of(0), bodies = List::default(), cost = Argument::of(1), once = false), text_signature = "(name, inputs=(), outputs=(), *, kind=\"\", workspace=0, after=(), stream=0, bodies=(), cost=1, once=False)")]
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
        cost: Argument,
        once: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            inputs: inputs.0,
            outputs: outputs.0,
            workspace: workspace.named("workspace")?,
            after: after.0,
            // More streams than memory can number are as wrong as the most.
            stream: usize::try_from(stream.named("stream")?).unwrap_or(usize::MAX),
            bodies: bodies.iter().map(|body| body.get().0.clone()).collect(),
            cost: cost.named("cost")?,
            once,
        })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its kind, such as `Conv`.
    #[getter]
    fn kind(&self) -> &str {
        &self.kind
    }

    /// The names of the tensors that it reads.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        self.inputs.clone()
    }

    /// Its outputs.
    #[getter]
    fn outputs(&self) -> Vec<Output> {
        self.outputs.clone()
    }

    /// The scratch memory in bytes that it needs while it runs.
    #[getter]
    fn workspace(&self) -> u64 {
        self.workspace
    }

    /// The operators that must run before it, by name or place.
    #[getter]
    fn after(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let object = |other: &Earlier| match other {
            Earlier::Name(name) => name.into_py_any(py),
            Earlier::Place(place) => place.into_py_any(py),
        };
        self.after.iter().map(object).collect()
    }

    /// The stream that it runs on.
    #[getter]
    fn stream(&self) -> usize {
        self.stream
    }

    /// The sequences that it runs.
    #[getter]
    fn bodies(&self) -> Vec<Sequence> {
        self.bodies.iter().map(|body| Sequence(body.clone())).collect()
    }

    /// The cost of running it once, in any unit.
    #[getter]
    fn cost(&self) -> u64 {
        self.cost
    }

    /// True if it must not run twice.
    #[getter]
    fn once(&self) -> bool {
        self.once
    }

    fn __eq__(&self, other: &Self) -> bool {
        let same_bodies = self.bodies.len() == other.bodies.len()
            && self.bodies.iter().zip(&other.bodies).all(|(a, b)| a.sequence == b.sequence);
        (&self.name, &self.kind, &self.inputs, &self.outputs)
            == (&other.name, &other.kind, &other.inputs, &other.outputs)
            && (self.workspace, self.stream, &self.after)
                == (other.workspace, other.stream, &other.after)
            && (self.cost, self.once) == (other.cost, other.once)
            && same_bodies
    }

    fn __hash__(&self) -> u64 {
        hash((&self.name, &self.inputs, self.workspace))
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    #[allow(clippy::type_complexity, reason = "the arguments of `new`")]
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<((String, Vec<String>, Vec<Output>), Bound<'py, PyDict>)> {
        let arguments = (self.name.clone(), self.inputs.clone(), self.outputs.clone());
        Ok((arguments, self.options(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut arguments = vec![self.name().into_bound_py_any(py)?];
        if !self.inputs.is_empty() || !self.outputs.is_empty() {
            arguments.push(self.inputs().into_bound_py_any(py)?);
        }
        if !self.outputs.is_empty() {
            arguments.push(self.outputs().into_bound_py_any(py)?);
        }
        call("Operator", &arguments, &self.options(py)?)
    }
}

impl Operator {
    /// The keywords that are not as by default.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = PyDict::new(py);
        if !self.kind.is_empty() {
            options.set_item("kind", &self.kind)?;
        }
        if self.workspace > 0 {
            options.set_item("workspace", self.workspace)?;
        }
        if !self.after.is_empty() {
            options.set_item("after", self.after(py)?)?;
        }
        if self.stream > 0 {
            options.set_item("stream", self.stream)?;
        }
        if !self.bodies.is_empty() {
            options.set_item("bodies", self.bodies())?;
        }
        if self.cost != 1 {
            options.set_item("cost", self.cost)?;
        }
        if self.once {
            options.set_item("once", true)?;
        }
        Ok(options)
    }

    pub(crate) fn declared(&self) -> memplan::Operator {
        let operator = memplan::Operator::new(self.name.as_str())
            .kind(self.kind.as_str())
            .inputs(self.inputs.iter().map(String::as_str))
            .workspace(self.workspace)
            .on_stream(self.stream)
            .cost(self.cost);
        let operator = if self.once { operator.once() } else { operator };
        let operator = self
            .outputs
            .iter()
            .fold(operator, |operator, output| operator.output(output.declared()));
        let operator = self
            .bodies
            .iter()
            .fold(operator, |operator, body| operator.body(body.sequence.clone()));
        self.after.iter().fold(operator, |operator, other| match other {
            Earlier::Name(name) => operator.after(name.as_str()),
            Earlier::Place(place) => operator.after_place(*place),
        })
    }

    /// An operator as it is in a checked sequence.
    pub(crate) fn of(sequence: &OpSequence, step: usize) -> Self {
        let node = &sequence.operators()[step];
        let name = |tensor: &TensorId| sequence.tensor(*tensor).name.to_string();
        let bodies = node.bodies.iter().map(|body| Sequence::of(body.clone()).0);
        Self {
            name: node.name.to_string(),
            kind: node.kind.to_string(),
            inputs: node.inputs.iter().map(name).collect(),
            outputs: node.outputs.iter().map(|&tensor| Output::of(sequence, tensor)).collect(),
            workspace: node.workspace,
            after: node.after.iter().map(|&place| Earlier::Place(place)).collect(),
            stream: node.stream,
            bodies: bodies.collect(),
            cost: node.cost,
            once: node.once,
        }
    }
}
