//! memplan's JSON.

use memplan::{
    Input,
    import::{Format, ImportOptions, read_input},
};
use pyo3::prelude::*;

use crate::errors::{guarded, value_error};

/// Reads an input.
pub(crate) fn parse(py: Python<'_>, text: &str) -> PyResult<Input> {
    guarded(py, || {
        read_input(text.as_bytes(), Format::Json, &ImportOptions::default()).map_err(value_error)
    })
}

/// Returns what a function of the library writes.
pub(crate) fn text(
    py: Python<'_>,
    write: impl Send + FnOnce(&mut Vec<u8>) -> std::io::Result<()>,
) -> PyResult<String> {
    guarded(py, || {
        let mut out = Vec::new();
        write(&mut out)?;
        String::from_utf8(out).map_err(value_error)
    })
}
