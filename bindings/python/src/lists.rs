//! Lists from Python.

use std::{ops::Deref, vec};

use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyString},
};

use crate::numbers::shown;

/// The items of a list, a tuple or another sequence. Room is made as they come: `Vec` makes it for as many as the
/// object says that it has, and `range(2**60)` has more than any memory.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for List<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // The items of a set have no order, and a name is not a list of letters.
        if object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyDict>()
            || !object.hasattr("__getitem__")?
        {
            let found = shown(&object);
            return Err(PyTypeError::new_err(format!("a list is needed, not {found}")));
        }
        let item = |item: PyResult<Bound<'py, PyAny>>| item?.extract().map_err(Into::into);
        object.try_iter()?.map(item).collect::<PyResult<_>>().map(Self)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
