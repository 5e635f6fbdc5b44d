//! Files and texts as inputs.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use memplan::{
    Input,
    baselines::onnxruntime::MemoryPattern,
    export::tflite::OfflinePlan,
    import::{Format, ImportOptions, read_input, tflite::survey},
};
use pyo3::{IntoPyObjectExt, prelude::*};

use crate::{
    errors::{file_error, guarded, value_error},
    given::{Scratch, Values},
    lists::List,
    numbers::{Dims, Whole},
    problem::Problem,
    sequence::{Graph, Model, Sequence},
};

/// Reads a model or a file: ONNX (`.onnx`), TensorFlow Lite (`.tflite`, to be planned with an alignment of
/// 16, or of 64 for the interpreter), memplan's JSON (`.json`), MiniMalloc's CSV (`.csv`), or a recording of allocations (a snapshot or
/// a profile of PyTorch, `.pickle` or `.json`, or a program of ExecuTorch, `.pte`). Weights are not opened. Returns a
/// `Sequence` or a `Problem`.
///
/// `dims` are the sizes of symbolic dimensions by name, `default_dim` of all others, and `shapes` the shapes
/// of tensors by name, with `None` for open sizes. With a pair of sizes in `dims`, such as (1, 128), a plan holds
/// for all sizes from the first to the second. `inplace` is how the kernels that will run the model work
/// in place: "none", "elementwise" or "rows". `kernels` names those of a TensorFlow Lite model, which decide
/// its scratch memory: "reference", "cmsis-nn", "cmsis-nn-dsp" or "cmsis-nn-mve". `runtime` is the one that
/// will run it: "tflite-micro", the default, or "tflite", the interpreter; for an ONNX model, "onnxruntime", with its order,
/// views and in-place kernels. `trust`, "inference" or "declared",
/// chooses between inferred and declared shapes where they differ. `copies` names outputs that the runtime
/// copies although they could be views: those of `copied_views`.
///
/// For ONNX models, `types` are the element types of tensors, such as "float", where the model does not state them,
/// `values` the values of tensors that are the same in every run, `states` the next state of each cache that is
/// updated in its own memory, by the input of the model, and `keep` names tensors to keep to the end. `scratch` is the
/// scratch memory of operators in bytes, by name or type; for a TensorFlow Lite model by type or place, where an
/// operator may have a list of buffers.
#[pyfunction]
#[pyo3(signature = (path, *, format = None, dims = None, default_dim = None, shapes = None, inplace = None, trust = None, kernels = None, runtime = None, copies = None, types = None, values = None, states = None, keep = None, scratch = None))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn read(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    dims: Option<Dims>,
    default_dim: Option<Whole>,
    shapes: Option<BTreeMap<String, List<Option<Whole>>>>,
    inplace: Option<&str>,
    trust: Option<&str>,
    kernels: Option<&str>,
    runtime: Option<&str>,
    copies: Option<List<String>>,
    types: Option<BTreeMap<String, String>>,
    values: Option<Values>,
    states: Option<BTreeMap<String, String>>,
    keep: Option<List<String>>,
    scratch: Option<Scratch>,
) -> PyResult<Py<PyAny>> {
    let name = path.display().to_string();
    let about = |words: String| value_error(format!("{name}: {words}"));
    let format = match format {
        Some(format) => Format::of_name(&format!(".{format}")).ok_or_else(|| {
            about(format!(
                "format is 'onnx', 'tflite', 'json', 'csv', 'pickle' or 'pte', not '{format}'"
            ))
        })?,
        None => Format::of_name(&name).ok_or_else(|| {
            about(
                "the name does not end in .onnx, .tflite, .json, .csv, .pickle or .pte; pass format=\"onnx\""
                    .to_owned(),
            )
        })?,
    };
    let mut options = ImportOptions::default().dims(dims.into_iter().flat_map(|dims| dims.0));
    options = options.copies(copies.unwrap_or_default());
    if let Some(size) = default_dim {
        options = options.default_dim(size.0);
    }
    for (tensor, shape) in shapes.into_iter().flatten() {
        let shape: Vec<Option<u64>> = shape.into_iter().map(|size| Some(size?.0)).collect();
        options = options.shape(tensor, shape);
    }
    if let Some(profile) = inplace {
        options = options.inplace(profile.parse().map_err(about)?);
    }
    let for_onnx = [
        (types.is_some(), "types"),
        (values.is_some(), "values"),
        (states.is_some(), "states"),
        (keep.is_some(), "keep"),
        (scratch.is_some() && format != Format::Tflite, "scratch"),
    ];
    if let Some((_, option)) = for_onnx.iter().find(|(is_given, _)| *is_given)
        && format != Format::Onnx
    {
        return Err(about(format!("{option} is for ONNX models, but this is not one; omit it")));
    }
    options.types.extend(types.unwrap_or_default());
    options.values.extend(values.map(|values| values.0).unwrap_or_default());
    options.states.extend(states.unwrap_or_default());
    options = options.keep(keep.unwrap_or_default());
    if let Some(scratch) = scratch {
        options.workspaces.extend(scratch.workspaces());
        if format == Format::Tflite {
            options =
                options.read_scratch(&scratch.lines()).map_err(|error| about(error.to_string()))?;
        }
    }
    if let Some(kernels) = kernels {
        options = options.library(kernels.parse().map_err(about)?);
    }
    match runtime {
        Some("onnxruntime") if format != Format::Onnx => {
            return Err(about("runtime='onnxruntime' is for ONNX models; omit it".to_owned()));
        }
        Some("onnxruntime") if inplace.is_some() => {
            return Err(about(
                "ONNX Runtime itself decides what is written over an input; omit inplace"
                    .to_owned(),
            ));
        }
        Some("onnxruntime") => options = options.onnxruntime(),
        Some(runtime) => options = options.runtime(runtime.parse().map_err(about)?),
        None => {}
    }
    match trust {
        None => {}
        Some("inference") => options = options.trust_inference(),
        Some("declared") => options = options.trust_declared(),
        Some(other) => {
            return Err(about(format!("trust is 'inference' or 'declared', not '{other}'")));
        }
    }
    let (input, model) = guarded(py, || {
        let bytes = std::fs::read(&path).map_err(|error| file_error(&error, path))?;
        if format == Format::Tflite {
            let survey = survey(&bytes, &options).map_err(|error| about(error.to_string()))?;
            let present = OfflinePlan::right(&bytes, &survey);
            let arena = survey.arena;
            let model = Model { arena, kernels: options.library, present };
            return Ok((Input::Sequence(survey.sequence), Some(model)));
        }
        let input = read_input(&bytes, format, &options);
        Ok((input.map_err(|error| about(error.to_string()))?, None))
    })?;
    match input {
        Input::Sequence(sequence) => {
            let pattern = options.is_for_onnxruntime().then(|| MemoryPattern::of(&sequence));
            Sequence(Arc::new(Graph { sequence, model, pattern })).warned(py)?.into_py_any(py)
        }
        Input::Problem(problem) => Problem(Arc::new(problem)).into_py_any(py),
    }
}
