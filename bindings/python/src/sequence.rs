//! Operators in execution order.

use std::{collections::BTreeMap, ffi::CString, sync::Arc};

use memplan::{
    Input, OpSequence,
    baselines::onnxruntime::MemoryPattern,
    export::tflite::OfflinePlan,
    import::tflite::{Arena, KernelLibrary},
    sequence::Origin,
};
use pyo3::{
    exceptions::{PyIndexError, PyTypeError, PyUserWarning},
    prelude::*,
    types::{PyDict, PyTuple},
};

use crate::{
    errors::{guarded, value_error},
    json,
    lists::List,
    numbers::{Dims, Whole, pairs, whole},
    operator::Operator,
    values::{hash, remade},
};

/// Operators in execution order, with the tensors between them.
///
/// `inputs` maps the names of tensors that are supplied for each run to their sizes in bytes. `outputs` names
/// the tensors that live to the end. `weights` gives the sizes of the tensors that are the same in every run, None for
/// an unknown size; without it, all other tensors that no operator produces are weights, which a warning lists. `dims` states sizes of dimensions, each a size or a pair of the
/// smallest and the largest, for all of which the sequence is right; all tensors have their largest sizes.
#[pyclass(frozen, module = "memplan")]
pub(crate) struct Sequence(pub(crate) Arc<Graph>);

/// A sequence, and what the runtime of the model that it was read from takes, if that is known.
pub(crate) struct Graph {
    pub(crate) sequence: OpSequence,
    pub(crate) model: Option<Model>,
    pub(crate) pattern: Option<MemoryPattern>,
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
    /// The tensors of one origin, with their sizes.
    fn supplied<'py>(&self, py: Python<'py>, origin: &Origin) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for tensor in self.0.tensors().iter().filter(|tensor| tensor.origin == *origin) {
            found.set_item(&*tensor.name, tensor.size)?;
        }
        Ok(found)
    }

    pub(crate) fn of(sequence: OpSequence) -> Self {
        Self(Arc::new(Graph { sequence, model: None, pattern: None }))
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
                    "neither made by an operator nor declared: '{names}'{more}; taken as weights, outside the pool; declare inputs and weights"
                ),
            )?;
        }
        // A runtime has an order of its own.
        if self.0.is_sorted() && self.0.pattern.is_none() {
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
                builder.operator(operator.declared());
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

    /// The names that operators read, but that are neither made by an operator nor declared.
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

    /// The tensors that are supplied for each run, with their sizes in bytes.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.supplied(py, &Origin::Input)
    }

    /// The tensors that are the same in every run, with their sizes in bytes.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.supplied(py, &Origin::Weight)
    }

    /// The names of the tensors that live to the end.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        let outputs = self.0.outputs().iter();
        outputs.map(|&tensor| self.0.tensor(tensor).name.to_string()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.operators().len()
    }

    /// An operator by its step.
    fn __getitem__(&self, step: isize) -> PyResult<Operator> {
        let length = self.0.operators().len();
        let step = if step < 0 { step.checked_add_unsigned(length) } else { Some(step) };
        let step = step.and_then(|step| usize::try_from(step).ok()).filter(|&step| step < length);
        let step = step
            .ok_or_else(|| PyIndexError::new_err(format!("the sequence has {length} operators")))?;
        Ok(Operator::of(&self.0.sequence, step))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0.sequence == other.0.sequence
    }

    fn __hash__(&self) -> u64 {
        hash((self.0.operators().len(), self.0.tensors().len()))
    }

    fn __copy__(&self) -> Self {
        Self(self.0.clone())
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        Self(self.0.clone())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.0.model.is_some() || self.0.pattern.is_some() {
            return Err(PyTypeError::new_err(
                "a sequence that was read for a runtime knows more than pickle would keep; read the file again",
            ));
        }
        let text = self.to_json(py)?;
        remade(py, "sequence", (text,))
    }

    fn __repr__(&self) -> String {
        let (operators, tensors) = (self.0.operators().len(), self.0.tensors().len());
        format!("<memplan.Sequence: {operators} operators, {tensors} tensors>")
    }
}
