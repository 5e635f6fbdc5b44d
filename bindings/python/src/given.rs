//! Facts about a model that the caller states and its file does not: values, and the scratch memory of operators.

use std::fmt::Write;

use pyo3::{
    prelude::*,
    types::{PyMapping, PyString, PyTuple},
};

use crate::{lists::List, numbers::Whole};

/// The values of tensors by name, as text: numbers and lists of numbers, arrays included.
pub(crate) struct Values(pub(crate) Vec<(String, String)>);

impl<'py> FromPyObject<'_, 'py> for Values {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let items = object.cast::<PyMapping>()?.items()?;
        let item = |item: Bound<'py, PyAny>| {
            let (name, value): (String, Bound<'py, PyAny>) = item.extract()?;
            Ok((name, text(&value)?))
        };
        items.iter().map(item).collect::<PyResult<_>>().map(Self)
    }
}

/// A value as text, such as `16000` or `[480, 640]`.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string());
    }
    let value = match value.cast::<PyTuple>() {
        Ok(tuple) => tuple.to_list().into_any(),
        Err(_) if value.hasattr("tolist")? => value.call_method0("tolist")?,
        Err(_) => value.clone(),
    };
    let text = value.str()?.to_string();
    Ok(text.replace("True", "true").replace("False", "false"))
}

/// The scratch memory of operators: their names or types, each with a number of bytes or a list of them.
pub(crate) struct Scratch(Vec<(String, Vec<u64>)>);

impl<'py> FromPyObject<'_, 'py> for Scratch {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let items = object.cast::<PyMapping>()?.items()?;
        let item = |item: Bound<'py, PyAny>| {
            let (operator, sizes): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
            let sizes = match sizes.extract::<List<Whole>>() {
                Ok(sizes) => sizes.into_iter().map(|size| size.0).collect(),
                Err(_) => vec![sizes.extract::<Whole>()?.0],
            };
            Ok((operator.str()?.to_string(), sizes))
        };
        items.iter().map(item).collect::<PyResult<_>>().map(Self)
    }
}

impl Scratch {
    /// For an ONNX model, where the buffers of an operator are one.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = (Box<str>, u64)> {
        self.0.iter().map(|(operator, sizes)| {
            (operator.as_str().into(), sizes.iter().copied().fold(0, u64::saturating_add))
        })
    }

    /// For a TensorFlow Lite model: a line for each operator.
    pub(crate) fn lines(&self) -> String {
        let mut lines = String::new();
        for (operator, sizes) in &self.0 {
            lines.push_str(operator);
            for size in sizes {
                let _ = write!(lines, " {size}");
            }
            lines.push('\n');
        }
        lines
    }
}
