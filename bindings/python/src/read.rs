//! Files and texts as inputs.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use memplan::{
    Input,
    import::{Format, ImportOptions, Kernels, Trust, read_input, tflite::TfliteOptions},
};
use pyo3::{IntoPyObjectExt, exceptions::PyOSError, prelude::*};

use crate::{
    errors::{guarded, value_error},
    problem::Problem,
    sequence::Sequence,
};

/// Reads memplan's own text.
pub(crate) fn parse(py: Python<'_>, bytes: &[u8]) -> PyResult<Input> {
    guarded(py, || read_input(bytes, Format::Json, &ImportOptions::default()).map_err(value_error))
}

/// Returns the input as the Python class that it is.
pub(crate) fn object(py: Python<'_>, input: Input) -> PyResult<Py<PyAny>> {
    match input {
        Input::Sequence(sequence) => Sequence::of(sequence).into_py_any(py),
        Input::Problem(problem) => Problem(Arc::new(problem)).into_py_any(py),
    }
}

/// Reads a model or a file: ONNX (`.onnx`), TensorFlow Lite (`.tflite`, to be planned with an alignment of
/// 16), memplan's JSON (`.json`) or MiniMalloc's CSV (`.csv`). Weights are not opened. Returns a `Sequence`
/// or a `Problem`.
///
/// `dims` are the sizes of symbolic dimensions by name, `default_dim` of all others, and `shapes` the shapes
/// of tensors by name, with `None` for open sizes. `inplace` says how the kernels work that will run an
/// model: "none", "elementwise" or "rows". `kernels` names those of a TensorFlow Lite model, which decide its
/// scratch memory: "reference", "cmsis-nn", "cmsis-nn-dsp" or "cmsis-nn-mve". `trust`, "inference" or "declared", chooses where the two differ.
#[pyfunction]
#[pyo3(signature = (path, *, format = None, dims = None, default_dim = None, shapes = None, inplace = None, trust = None, kernels = None))]
pub(crate) fn read(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    dims: Option<BTreeMap<String, u64>>,
    default_dim: Option<u64>,
    shapes: Option<BTreeMap<String, Vec<Option<u64>>>>,
    inplace: Option<&str>,
    trust: Option<&str>,
    kernels: Option<&str>,
) -> PyResult<Py<PyAny>> {
    let name = path.display().to_string();
    let about = |words: String| value_error(format!("{name}: {words}"));
    let extension = match format {
        Some(format) => format!(".{format}"),
        None => name.clone(),
    };
    let format = Format::of_name(&extension).ok_or_else(|| {
        about(
            "the name does not end in .onnx, .tflite, .json or .csv; pass format=\"onnx\""
                .to_owned(),
        )
    })?;
    let mut options = ImportOptions::default().dims(dims.unwrap_or_default());
    if let Some(size) = default_dim {
        options = options.default_dim(size);
    }
    for (tensor, shape) in shapes.unwrap_or_default() {
        options = options.shape(tensor, shape);
    }
    if let Some(profile) = inplace {
        options = options.kernels(Kernels::new(profile.parse().map_err(about)?));
    }
    if let Some(kernels) = kernels {
        options = options.tflite(TfliteOptions::default().kernels(kernels.parse().map_err(about)?));
    }
    match trust {
        None => {}
        Some("inference") => options = options.trust(Trust::Inference),
        Some("declared") => options = options.trust(Trust::Declared),
        Some(other) => {
            return Err(about(format!("trust is 'inference' or 'declared', not '{other}'")));
        }
    }
    let input = guarded(py, || {
        let bytes = std::fs::read(&path)
            .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string(), path)))?;
        read_input(&bytes, format, &options).map_err(|error| about(error.to_string()))
    })?;
    object(py, input)
}
