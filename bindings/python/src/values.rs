//! Hashes and pickles of objects.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::{
    prelude::*,
    types::{PyDict, PyTuple},
};

/// A hash of a few facts that equal objects have in common.
pub(crate) fn hash(facts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    facts.hash(&mut hasher);
    hasher.finish()
}

/// The answer of `__reduce__`: a function of `memplan._pickle`, and its arguments.
pub(crate) fn remade<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let function = py.import("memplan._pickle")?.getattr(function)?;
    let arguments = arguments.into_pyobject(py).map_err(Into::into)?;
    (function, arguments).into_pyobject(py)
}

/// The call that makes an object, with its arguments and keywords.
pub(crate) fn call(
    class: &str,
    arguments: &[Bound<'_, PyAny>],
    options: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let mut texts = Vec::new();
    for argument in arguments {
        texts.push(argument.repr()?.to_string());
    }
    for (name, value) in options {
        texts.push(format!("{name}={}", value.repr()?));
    }
    Ok(format!("memplan.{class}({})", texts.join(", ")))
}
