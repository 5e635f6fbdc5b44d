//! Errors of the library as Python exceptions, with the same messages.

use std::{
    any::Any,
    fmt::Display,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use memplan::PlanError;
use pyo3::{
    PyErr, PyResult,
    exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError},
};

/// Makes a `ValueError` of an error.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Makes an exception of the error that nothing was planned. Only Ctrl-C and what is raised anyway cancel.
#[allow(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
pub(crate) fn plan_error(error: PlanError) -> PyErr {
    match error {
        PlanError::Cancelled { .. } => PyKeyboardInterrupt::new_err(()),
        PlanError::OutOfTime { .. } => PyTimeoutError::new_err(error.to_string()),
        error => value_error(error),
    }
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
    py.detach(|| caught(work))
}

/// Runs a piece of work that holds no interpreter lock, as [`guarded`] does.
pub(crate) fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// The error that a piece of work panicked.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let words = words.unwrap_or("no reason given");
    PyRuntimeError::new_err(format!("memplan failed: {words}; please report it"))
}
