//! Arrays of integers from Python, copied as a whole instead of number by number.
//!
//! The buffer protocol is not in the stable interface of Python 3.10, so arrays come and go through
//! `memoryview`: one call of `tobytes` for a whole array.

use std::collections::BTreeMap;

use memplan::sequence::DimRange;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBytes, PyMapping, PyMemoryView, PyTuple},
};

use crate::errors::value_error;

/// An array of any number of dimensions, in C order.
pub(crate) struct Numbers {
    pub(crate) values: Vec<u64>,
    pub(crate) shape: Vec<usize>,
}

/// Reads an array of integers, or returns `None` if the object is not an array.
pub(crate) fn array(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Numbers>> {
    let Ok(view) = PyMemoryView::from(object) else { return Ok(None) };
    let format: String = view.getattr("format")?.extract()?;
    let width: usize = view.getattr("itemsize")?.extract()?;
    let shape: Vec<usize> = view.getattr("shape")?.extract()?;
    let bytes = view.call_method0("tobytes")?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    let letter = format.trim_start_matches(['@', '=', '<', '>', '!']);
    let little = cfg!(target_endian = "little");
    let mut turned = Vec::new();
    let bytes =
        if width > 1 && format.starts_with(if little { &['>', '!'][..] } else { &['<'][..] }) {
            turned.extend(bytes.chunks_exact(width).flat_map(|word| word.iter().rev()));
            &turned[..]
        } else {
            bytes
        };
    let values: Vec<u64> = match (letter, width) {
        ("Q" | "L" | "N", 8) => words(bytes, u64::from_ne_bytes),
        ("I" | "L", 4) => words(bytes, |word| u32::from_ne_bytes(word).into()),
        ("H", 2) => words(bytes, |word| u16::from_ne_bytes(word).into()),
        ("B", 1) => words(bytes, |word| u8::from_ne_bytes(word).into()),
        ("q" | "l" | "n", 8) => positive(bytes, i64::from_ne_bytes, name)?,
        ("i" | "l", 4) => positive(bytes, |word| i32::from_ne_bytes(word).into(), name)?,
        ("h", 2) => positive(bytes, |word| i16::from_ne_bytes(word).into(), name)?,
        ("b", 1) => positive(bytes, |word| i8::from_ne_bytes(word).into(), name)?,
        _ => {
            let found = element_type(object, letter);
            let words = format!("{name}: integers are needed, not elements of the type {found}");
            return Err(PyTypeError::new_err(words));
        }
    };
    Ok(Some(Numbers { values, shape }))
}

/// The type of an array's elements, by its name in `NumPy` if it has one there.
fn element_type(object: &Bound<'_, PyAny>, letter: &str) -> String {
    if let Ok(dtype) = object.getattr("dtype") {
        return dtype.to_string();
    }
    match letter {
        "d" => "float64",
        "f" => "float32",
        "e" => "float16",
        "?" => "bool",
        other => other,
    }
    .to_owned()
}

fn words<const WIDTH: usize>(bytes: &[u8], number: impl Fn([u8; WIDTH]) -> u64) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|&word| number(word)).collect()
}

fn positive<const WIDTH: usize>(
    bytes: &[u8],
    number: impl Fn([u8; WIDTH]) -> i64,
    name: &str,
) -> PyResult<Vec<u64>> {
    let mut values = Vec::with_capacity(bytes.len() / WIDTH);
    for (at, &word) in bytes.as_chunks().0.iter().enumerate() {
        let value = number(word);
        let value = u64::try_from(value).map_err(|_| {
            value_error(format!("{name}: element {at} is {value}, but must not be negative"))
        })?;
        values.push(value);
    }
    Ok(values)
}

/// Gives numbers to Python as a `memoryview` of unsigned 64-bit integers.
pub(crate) fn view(
    py: Python<'_>,
    values: impl Iterator<Item = u64>,
) -> PyResult<Bound<'_, PyAny>> {
    let bytes: Vec<u8> = values.flat_map(u64::to_ne_bytes).collect();
    let view = PyMemoryView::from(&PyBytes::new(py, &bytes))?;
    view.call_method1("cast", ("Q",))
}

/// Reads a list of non-negative integers, from an array or any sequence.
pub(crate) fn list(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<u64>> {
    match array(object, name)? {
        Some(numbers) if numbers.shape.len() == 1 => Ok(numbers.values),
        Some(numbers) => {
            let found = numbers.shape.len();
            Err(value_error(format!("{name}: one dimension is needed, not {found}")))
        }
        None => object
            .try_iter()?
            .enumerate()
            .map(|(at, item)| whole(&item?, || format!("{name}: element {at}")))
            .collect(),
    }
}

/// Reads a non-negative integer.
pub(crate) fn whole(object: &Bound<'_, PyAny>, what: impl Fn() -> String) -> PyResult<u64> {
    object.extract().map_err(|_| NotWhole::of(object).named(&what()))
}

/// An object that is no integer from 0 to 2^64 - 1.
struct NotWhole {
    shown: String,
    /// True for an integer, which is too large or too small.
    is_integer: bool,
}

impl NotWhole {
    fn of(object: &Bound<'_, PyAny>) -> Self {
        let is_integer = object.hasattr("__index__").unwrap_or(false);
        Self { shown: shown(object), is_integer }
    }

    fn named(&self, what: &str) -> PyErr {
        let words = format!("{what} must be an integer from 0 to 2^64 - 1, not {}", self.shown);
        if self.is_integer { value_error(words) } else { PyTypeError::new_err(words) }
    }
}

/// An object as Python would print it.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "something else".to_owned(), |repr| repr.to_string())
}

/// A non-negative integer as an argument with a name, or what was given instead. The error that it is none
/// is raised where the name is known.
pub(crate) struct Argument(Result<u64, NotWhole>);

impl<'py> FromPyObject<'_, 'py> for Argument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.extract().map_err(|_| NotWhole::of(&object))))
    }
}

impl Argument {
    pub(crate) const fn of(number: u64) -> Self {
        Self(Ok(number))
    }

    pub(crate) fn named(self, name: &str) -> PyResult<u64> {
        self.0.map_err(|found| found.named(name))
    }
}

/// A non-negative integer in a list. Any other integer is a `ValueError`, where Python's own conversion
/// raises an `OverflowError`.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        whole(&object, || "the number".to_owned()).map(Self)
    }
}

/// The sizes of a dimension: an integer, or a pair of the smallest and the largest.
struct Sizes(DimRange);

impl<'py> FromPyObject<'_, 'py> for Sizes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyTuple>() {
            let (Whole(least), Whole(most)) = object.extract()?;
            return Ok(Self((least..=most).into()));
        }
        object.extract().map(|Whole(size)| Self(size.into()))
    }
}

/// The sizes of dimensions by name, from any mapping.
pub(crate) struct Dims(pub(crate) BTreeMap<String, DimRange>);

impl<'py> FromPyObject<'_, 'py> for Dims {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let items = object.cast::<PyMapping>()?.items()?;
        let item = |item: Bound<'py, PyAny>| {
            let (name, Sizes(sizes)) = item.extract()?;
            Ok((name, sizes))
        };
        items.iter().map(item).collect::<PyResult<_>>().map(Self)
    }
}

/// The sizes of dimensions, each a pair of the smallest and the largest.
pub(crate) fn pairs(dims: &BTreeMap<Box<str>, DimRange>) -> BTreeMap<String, (u64, u64)> {
    dims.iter().map(|(name, sizes)| (name.to_string(), (sizes.least, sizes.most))).collect()
}

impl Whole {
    /// As a place or a length in memory, where a larger one means the same as the largest.
    pub(crate) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}
