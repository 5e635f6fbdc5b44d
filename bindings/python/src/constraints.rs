//! The constraints of a problem beyond sizes, lifetimes and overwrites: pools, fixed places, parts.

use std::collections::BTreeMap;

use memplan::problem::{self, ChunkId, PoolId, ProblemBuilder};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{
    errors::value_error,
    lists::List,
    numbers::{Argument, Whole, list, shown, whole},
    values::{call, hash},
};

/// A memory that chunks may lie in. The pools of a problem are listed in order of preference, the fastest
/// first.
///
/// `capacity` limits it to this many bytes. The offsets of the chunks in it are multiples of `alignment`, a
/// power of two. `cost` is the cost of a byte of traffic. `base` is the address of its first byte, which is
/// only printed. No chunk touches the ranges `(begin, end)` in `reserved`. If `largest` is given, the pool
/// consists of buffers of this many bytes, and no chunk crosses their boundaries.
#[pyclass(frozen, module = "memplan", from_py_object)]
#[derive(Clone)]
pub(crate) struct Pool(pub(crate) problem::Pool);

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (name, *, capacity = None, alignment = Argument::of(1), cost = Argument::of(0), base = Argument::of(0), reserved = List::default(), largest = None), text_signature = "(name, *, capacity=None, alignment=1, cost=0, base=0, reserved=(), largest=None)")]
    fn new(
        name: &str,
        capacity: Option<Argument>,
        alignment: Argument,
        cost: Argument,
        base: Argument,
        reserved: List<(Whole, Whole)>,
        largest: Option<Argument>,
    ) -> PyResult<Self> {
        let pool = problem::Pool::new(name).alignment(alignment.named("alignment")?);
        let mut pool = pool.cost(cost.named("cost")?).base(base.named("base")?);
        pool.capacity = capacity.map(|bytes| bytes.named("capacity")).transpose()?;
        pool.largest = largest.map(|bytes| bytes.named("largest")).transpose()?;
        Ok(Self(reserved.iter().fold(pool, |pool, (begin, end)| pool.reserved(begin.0..end.0))))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The number of bytes that it has, or None.
    #[getter]
    fn capacity(&self) -> Option<u64> {
        self.0.capacity
    }

    /// The alignment of chunks in it, in bytes.
    #[getter]
    fn alignment(&self) -> u64 {
        self.0.alignment
    }

    /// The cost of a byte of traffic.
    #[getter]
    fn cost(&self) -> u64 {
        self.0.cost
    }

    /// The address of its first byte.
    #[getter]
    fn base(&self) -> u64 {
        self.0.base
    }

    /// The ranges that no chunk touches.
    #[getter]
    fn reserved(&self) -> Vec<(u64, u64)> {
        self.0.reserved.iter().map(|range| (range.start, range.end)).collect()
    }

    /// The size of its buffers in bytes, or None.
    #[getter]
    fn largest(&self) -> Option<u64> {
        self.0.largest
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        call("Pool", &[self.0.name.into_bound_py_any(py)?], &self.options(py)?)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        hash((&*self.0.name, self.0.capacity, self.0.cost))
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((String,), Bound<'py, PyDict>)> {
        Ok(((self.0.name.to_string(),), self.options(py)?))
    }
}

impl Pool {
    /// The keywords that are not as by default.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = PyDict::new(py);
        if let Some(capacity) = self.0.capacity {
            options.set_item("capacity", capacity)?;
        }
        for (name, value, default) in
            [("alignment", self.0.alignment, 1), ("cost", self.0.cost, 0), ("base", self.0.base, 0)]
        {
            if value != default {
                options.set_item(name, value)?;
            }
        }
        if !self.0.reserved.is_empty() {
            options.set_item("reserved", self.reserved())?;
        }
        if let Some(largest) = self.0.largest {
            options.set_item("largest", largest)?;
        }
        Ok(options)
    }
}

/// A fixed place: an offset in bytes in the only pool, or a pair of the name of a pool and the offset there.
#[derive(Clone)]
pub(crate) struct Pin {
    pub(crate) pool: Option<String>,
    pub(crate) offset: u64,
}

impl<'py> FromPyObject<'_, 'py> for Pin {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let what = || "the offset of a pin".to_owned();
        if let Ok((pool, offset)) = object.extract::<(String, Bound<'_, PyAny>)>() {
            return Ok(Self { pool: Some(pool), offset: whole(&offset, what)? });
        }
        Ok(Self { pool: None, offset: whole(&object, what)? })
    }
}

/// A lifetime on several streams: for each, the steps that are over at its begin and at its end.
pub(crate) struct Clocks {
    begin: Vec<u64>,
    end: Vec<u64>,
}

impl Clocks {
    /// Reads the two clocks of a chunk, or returns `None` if they are steps.
    pub(crate) fn read(
        begin: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
        chunk: usize,
    ) -> PyResult<Option<Self>> {
        match (begin.try_iter().is_ok(), end.try_iter().is_ok()) {
            (false, false) => return Ok(None),
            (true, true) => {}
            _ => {
                let words =
                    format!("chunk {chunk}: begin and end must both be clocks or both steps");
                return Err(value_error(words));
            }
        }
        let clock = |clock, name| list(clock, &format!("chunk {chunk}: {name}"));
        Ok(Some(Self { begin: clock(begin, "begin")?, end: clock(end, "end")? }))
    }
}

/// The names of some pools: one, or a list.
struct Names(Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Names {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(name) => Ok(Self(vec![name.to_string()])),
            Err(_) => object.extract().map(|List(names)| Self(names)),
        }
    }
}

/// The names of the arguments of `Problem` that are read here.
const NAMES: [&str; 11] = [
    "pools",
    "pins",
    "only_in",
    "alignments",
    "traffic",
    "holes",
    "windows",
    "parts",
    "optional_parts",
    "apart",
    "on_stream",
];

/// The constraints on a problem, as Python passes them: dictionaries by chunk, and lists.
#[derive(Default)]
pub(crate) struct Constraints {
    pools: Option<Vec<Pool>>,
    pins: Vec<(usize, Pin)>,
    only_in: Vec<(usize, Names)>,
    alignments: Vec<(usize, Whole)>,
    traffic: Vec<(usize, Whole)>,
    holes: Vec<(usize, List<[Whole; 2]>)>,
    windows: Vec<(usize, List<[Whole; 4]>)>,
    parts: Vec<problem::Part>,
    optional_parts: Vec<problem::Part>,
    apart: Vec<Vec<ChunkId>>,
    /// The streams that chunks are written on, where they are not 0.
    on_stream: BTreeMap<usize, Whole>,
}

impl Constraints {
    /// Reads the keyword arguments.
    pub(crate) fn read(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut read = Self::default();
        for (name, value) in arguments.into_iter().flatten() {
            let name: String = name.extract()?;
            if value.is_none() && NAMES.contains(&&*name) {
                continue;
            }
            match name.as_str() {
                "pools" => read.pools = Some(value.extract::<List<_>>()?.0),
                "pins" => read.pins = by_chunk(&value, &name)?,
                "only_in" => read.only_in = by_chunk(&value, &name)?,
                "alignments" => read.alignments = by_chunk(&value, &name)?,
                "traffic" => read.traffic = by_chunk(&value, &name)?,
                "holes" => read.holes = by_chunk(&value, &name)?,
                "windows" => read.windows = by_chunk(&value, &name)?,
                "parts" => read.parts = parts(&value)?,
                "optional_parts" => read.optional_parts = parts(&value)?,
                "apart" => {
                    let groups: List<List<Whole>> = value.extract()?;
                    let ids = |group: List<Whole>| group.into_iter().map(chunk).collect();
                    read.apart = groups.into_iter().map(ids).collect::<PyResult<_>>()?;
                }
                "on_stream" => {
                    read.on_stream = by_chunk(&value, &name)?.into_iter().collect();
                }
                _ => {
                    let words = format!("memplan.Problem has no argument '{name}'");
                    return Err(PyTypeError::new_err(words));
                }
            }
        }
        Ok(read)
    }

    /// Adds the constraints to a problem of this many chunks, of which these live by clocks.
    pub(crate) fn constrain(
        self,
        problem: &mut ProblemBuilder,
        chunks: usize,
        clocks: Vec<(usize, Clocks)>,
    ) -> PyResult<()> {
        let known = |at: usize, name: &str| {
            if at < chunks {
                return Ok(ChunkId::from_index(at));
            }
            Err(value_error(format!("{name} names chunk {at}, but there are {chunks} chunks")))
        };
        let names: Vec<Box<str>> = match &self.pools {
            Some(pools) => pools.iter().map(|pool| pool.0.name.clone()).collect(),
            None => vec!["pool".into()],
        };
        let pool = |name: &str| {
            let at = names.iter().position(|other| **other == *name);
            let at = at.and_then(|at| u16::try_from(at).ok()).map(PoolId);
            let pool = || memplan::ProblemError::UnknownPool { pool: name.to_owned() };
            at.ok_or_else(|| value_error(pool()))
        };
        for own in self.pools.into_iter().flatten() {
            problem.pool(own.0);
        }
        for (at, pin) in self.pins {
            let chunk = known(at, "pins")?;
            let pool = match pin.pool {
                Some(name) => pool(&name)?,
                None if names.len() == 1 => PoolId(0),
                None => {
                    let chunk = at.to_string();
                    return Err(value_error(memplan::ProblemError::PinWithoutPool { chunk }));
                }
            };
            problem.pin(chunk, pool, pin.offset);
        }
        for (at, Names(allowed)) in self.only_in {
            let pools = allowed.iter().map(|name| pool(name)).collect::<PyResult<Vec<_>>>()?;
            problem.only_in(known(at, "only_in")?, pools);
        }
        for &at in self.on_stream.keys() {
            known(at, "on_stream")?;
            if clocks.is_empty() {
                let words = "on_stream is for chunks whose begin and end are clocks";
                return Err(value_error(words));
            }
        }
        if let Some((_, first)) = clocks.first() {
            problem.streams(first.begin.len());
        }
        for (at, Clocks { begin, end }) in clocks {
            let stream = self.on_stream.get(&at).map_or(0, |stream| stream.index());
            problem.clocks(ChunkId::from_index(at), begin, end, stream);
        }
        for (at, bytes) in self.alignments {
            problem.align(known(at, "alignments")?, bytes.0);
        }
        for (at, bytes) in self.traffic {
            problem.traffic(known(at, "traffic")?, bytes.0);
        }
        for (at, holes) in self.holes {
            let chunk = known(at, "holes")?;
            for [begin, end] in holes {
                problem.hole(chunk, begin.0..end.0);
            }
        }
        for (at, windows) in self.windows {
            let chunk = known(at, "windows")?;
            for [begin, end, low, high] in windows {
                problem.window(chunk, begin.0..end.0, low.0..high.0);
            }
        }
        for problem::Part { part, whole, offset, .. } in self.parts {
            problem.part(part, whole, offset);
        }
        for problem::Part { part, whole, offset, .. } in self.optional_parts {
            problem.optional_part(part, whole, offset);
        }
        for group in self.apart {
            problem.apart(group);
        }
        Ok(())
    }
}

/// Reads a dictionary with chunks as its keys.
fn by_chunk<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
    value: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Vec<(usize, T)>> {
    let entries = value.cast::<PyDict>().map_err(|_| {
        value_error(format!("{name} must be a dictionary by chunk, not {}", shown(value)))
    })?;
    let entry = |(chunk, value): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
        let at = whole(&chunk, || format!("{name}: a chunk"))?;
        Ok((usize::try_from(at).unwrap_or(usize::MAX), value.extract()?))
    };
    entries.iter().map(entry).collect()
}

/// Reads a list of chunks that lie inside others: `(chunk, whole, offset)`.
pub(crate) fn parts(value: &Bound<'_, PyAny>) -> PyResult<Vec<problem::Part>> {
    let part = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let [part, whole, offset]: [Whole; 3] = item.extract().map_err(|_| {
            value_error(format!("a part must be (chunk, whole, offset), not {}", shown(&item)))
        })?;
        Ok(problem::Part::new(chunk(part)?, chunk(whole)?, offset.0))
    };
    value.try_iter()?.map(part).collect()
}

pub(crate) fn chunk(number: Whole) -> PyResult<ChunkId> {
    let id = u32::try_from(number.0).map(ChunkId);
    id.map_err(|_| value_error(format!("there is no chunk {}", number.0)))
}
