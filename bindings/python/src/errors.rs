//! Errors of the library as Python exceptions, with the same messages.

use std::{
    fmt::Display,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use pyo3::{
    PyErr, PyResult,
    exceptions::{PyOSError, PyRuntimeError, PyValueError},
};

/// Makes a `ValueError` of an error.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Makes an `OSError` of an error about a file, such as a `FileNotFoundError`.
pub(crate) fn file_error(error: &io::Error, path: PathBuf) -> PyErr {
    let (number, words) = (error.raw_os_error(), error.to_string());
    // Python states the number itself.
    let suffix = number.map(|number| format!(" (os error {number})")).unwrap_or_default();
    let words = words.strip_suffix(&suffix).unwrap_or(&words).to_owned();
    PyOSError::new_err((number, words, path.into_os_string()))
}

/// Runs a piece of work without the interpreter lock. A panic becomes a `RuntimeError`: a
/// `PanicException` would pass every `except Exception`.
pub(crate) fn guarded<T: Send>(
    py: pyo3::Python<'_>,
    work: impl Send + FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    // The work changes nothing that outlives it, so no broken state can be observed.
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().copied();
        let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let words = words.unwrap_or("no reason given");
        Err(PyRuntimeError::new_err(format!("memplan failed: {words}; please report it")))
    })
}
