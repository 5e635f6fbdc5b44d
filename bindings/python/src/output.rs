//! Outputs of operators, as they are declared.

use memplan::{
    OpSequence,
    sequence::{Dependency, Origin, TensorId},
};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyList, PyString},
};

use crate::{
    lists::List,
    numbers::{Argument, whole},
    values::{call, hash},
};

/// An output of an operator: a name and a size in bytes.
///
/// `reads` names the input that it may be a view of: a planner may copy it instead where that makes the pool
/// smaller, unless `required` says that the operator makes no copy. `overwrites` names one or several inputs that it may be
/// written over: the first possible one is overwritten. `updates` names the input that it must be
/// written over, such as a state. `gathers` names the inputs that it holds copies of, at offsets from its
/// own start: where an input already lies there, nothing needs to be copied. `holds` names the ones that must lie
/// there, because the operator makes no copy. Each is a name, or a pair of
/// a name and an offset in bytes. `overlaps` lists pairs of an input and the least number of bytes by which the
/// output must begin below it, to overlap it: the operator never writes a byte that it has yet to read.
#[pyclass(frozen, module = "memplan", from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Output {
    name: String,
    size: u64,
    reads: Option<Place>,
    required: bool,
    overwrites: Vec<Place>,
    updates: Option<Place>,
    gathers: Vec<Place>,
    holds: Vec<Place>,
    overlaps: Vec<Place>,
}

/// Some memory of an input: its name, or a pair of its name and an offset.
#[derive(Clone, PartialEq)]
struct Place(String, u64);

impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = object.extract() {
            return Ok(Self(name, 0));
        }
        let (name, offset): (String, Bound<'_, PyAny>) = object.extract()?;
        let offset = whole(&offset, || format!("the offset in '{name}'"))?;
        Ok(Self(name, offset))
    }
}

/// One place or several.
struct Places(Vec<Place>);

impl<'py> FromPyObject<'_, 'py> for Places {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<List<Place>>() {
            // Only a name or a tuple may be one place; of a list, the error is that of an item. So is a
            // `ValueError`, which is a wrong offset.
            Err(error)
                if !object.is_instance_of::<PyList>()
                    && !error.is_instance_of::<PyValueError>(object.py()) =>
            {
                Ok(Self(vec![object.extract()?]))
            }
            several => several.map(|List(places)| Self(places)),
        }
    }
}

#[pymethods]
impl Output {
    #[new]
    #[pyo3(signature = (name, size, *, reads = None, overwrites = None, updates = None, gathers = None, holds = None, overlaps = None, required = false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        name: &str,
        size: Argument,
        reads: Option<Place>,
        overwrites: Option<Places>,
        updates: Option<Place>,
        gathers: Option<Places>,
        holds: Option<Places>,
        overlaps: Option<Places>,
        required: bool,
    ) -> PyResult<Self> {
        if required && reads.is_none() {
            let message = "'required' is for views: give 'reads', or use 'updates' instead of 'overwrites' and 'holds' instead of 'gathers'";
            return Err(PyValueError::new_err(message));
        }
        let places = |places: Option<Places>| places.map(|places| places.0).unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            size: size.named("size")?,
            reads,
            required,
            overwrites: places(overwrites),
            updates,
            gathers: places(gathers),
            holds: places(holds),
            overlaps: places(overlaps),
        })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its size in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// The input that it is a view of, with the offset there, or None.
    #[getter]
    fn reads(&self) -> Option<(String, u64)> {
        self.reads.as_ref().map(Place::pair)
    }

    /// True if the view must not be a copy.
    #[getter]
    fn required(&self) -> bool {
        self.required
    }

    /// The inputs that it may be written over, with the offsets there.
    #[getter]
    fn overwrites(&self) -> Vec<(String, u64)> {
        self.overwrites.iter().map(Place::pair).collect()
    }

    /// The input that it must be written over, with the offset there, or None.
    #[getter]
    fn updates(&self) -> Option<(String, u64)> {
        self.updates.as_ref().map(Place::pair)
    }

    /// The inputs that it holds copies of, with the offsets in it.
    #[getter]
    fn gathers(&self) -> Vec<(String, u64)> {
        self.gathers.iter().map(Place::pair).collect()
    }

    /// The inputs that must lie inside it, with the offsets in it.
    #[getter]
    fn holds(&self) -> Vec<(String, u64)> {
        self.holds.iter().map(Place::pair).collect()
    }

    /// The inputs that it may overlap, with the bytes by which it must begin below them.
    #[getter]
    fn overlaps(&self) -> Vec<(String, u64)> {
        self.overlaps.iter().map(Place::pair).collect()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }

    fn __hash__(&self) -> u64 {
        hash((&self.name, self.size))
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<((String, u64), Bound<'py, PyDict>)> {
        Ok(((self.name.clone(), self.size), self.options(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let arguments = [self.name().into_bound_py_any(py)?, self.size.into_bound_py_any(py)?];
        call("Output", &arguments, &self.options(py)?)
    }
}

impl Place {
    fn pair(&self) -> (String, u64) {
        (self.0.clone(), self.1)
    }

    /// A name, or a pair of a name and an offset.
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.1 == 0 {
            self.0.clone().into_bound_py_any(py)
        } else {
            self.pair().into_bound_py_any(py)
        }
    }
}

impl Output {
    /// The keywords that are not as by default.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = PyDict::new(py);
        for (name, place) in [("reads", &self.reads), ("updates", &self.updates)] {
            if let Some(place) = place {
                options.set_item(name, place.object(py)?)?;
            }
        }
        if self.required {
            options.set_item("required", true)?;
        }
        let several = [
            ("overwrites", &self.overwrites),
            ("gathers", &self.gathers),
            ("holds", &self.holds),
            ("overlaps", &self.overlaps),
        ];
        for (name, places) in several {
            let objects =
                places.iter().map(|place| place.object(py)).collect::<PyResult<Vec<_>>>()?;
            match &objects[..] {
                [] => {}
                [one] if one.is_instance_of::<PyString>() => options.set_item(name, one)?,
                _ => options.set_item(name, objects)?,
            }
        }
        Ok(options)
    }

    pub(crate) fn declared(&self) -> memplan::Output {
        let mut output = memplan::Output::new(self.name.as_str(), self.size);
        if let Some(Place(input, offset)) = &self.reads {
            output = output.reads_at(input.as_str(), *offset);
            if self.required {
                output = output.required();
            }
        }
        if let Some(Place(input, offset)) = &self.updates {
            output = output.updates(input.as_str(), *offset);
        }
        for Place(input, offset) in &self.overwrites {
            output = output.overwrites_at(input.as_str(), *offset);
        }
        for Place(input, offset) in &self.gathers {
            output = output.gathers(input.as_str(), *offset);
        }
        for Place(input, offset) in &self.holds {
            output = output.holds(input.as_str(), *offset);
        }
        for Place(input, below) in &self.overlaps {
            output = output.overlaps(input.as_str(), *below);
        }
        output
    }

    /// The output as it is in a checked sequence.
    pub(crate) fn of(sequence: &OpSequence, tensor: TensorId) -> Self {
        let name = |tensor: TensorId| sequence.tensor(tensor).name.to_string();
        let mut output = Self {
            name: name(tensor),
            size: sequence.tensor(tensor).size.unwrap_or_default(),
            reads: None,
            required: false,
            overwrites: Vec::new(),
            updates: None,
            gathers: Vec::new(),
            holds: Vec::new(),
            overlaps: Vec::new(),
        };
        let Origin::Output { dependency, .. } = &sequence.tensor(tensor).origin else {
            return output;
        };
        match dependency {
            Dependency::Reads { input, offset, required } => {
                output.reads = Some(Place(name(*input), *offset));
                output.required = *required;
            }
            Dependency::Overwrites(several) => {
                for one in several {
                    let (input, offset) = (name(one.input), one.offset);
                    if one.required {
                        output.updates = Some(Place(input, offset));
                    } else if one.below > 0 {
                        output.overlaps.push(Place(input, one.below));
                    } else {
                        output.overwrites.push(Place(input, offset));
                    }
                }
            }
            Dependency::Gathers(several) => {
                for one in several {
                    let list = if one.required { &mut output.holds } else { &mut output.gathers };
                    list.push(Place(name(one.input), one.offset));
                }
            }
            _ => {}
        }
        output
    }
}
