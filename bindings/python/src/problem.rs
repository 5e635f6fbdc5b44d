//! Chunks with known lifetimes.

use std::sync::Arc;

use memplan::{
    Input,
    problem::{ChunkId, Part, Request},
};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyTuple},
};

use crate::{
    constraints::{self, Clocks, Constraints},
    errors::{guarded, value_error},
    json,
    lists::List,
    numbers::{Argument, Whole, array, list, shown, whole},
    values::{hash, remade},
};

/// Memory chunks with known lifetimes: the input of every planner.
///
/// Each chunk is `(begin, end, size)`: the step that writes it, the last step that reads it plus 1, and
/// its size in bytes. Pass a list of them, or an array of integers of the shape `(n, 3)`; or pass
/// three arrays to `from_arrays`. Arrays are anything with a buffer, as in numpy.
///
/// Each item of `overwrites` is a request `(chunk, overwritten)`, `(chunk, overwritten, offset)` or
/// `(chunk, overwritten, offset, required)` that a chunk be written over another one, which it reads for the
/// last time. Of several for one chunk, the first that is possible is accepted. With a negative offset, it
/// begins below the other one and overlaps it in part.
///
/// Chunks are numbered from 0. Further arguments are dictionaries by chunk, or lists:
///
/// - `pools`: a list of `Pool`, the fastest first; one without limits by default.
/// - `pins`: fixed places, each an offset, or `(pool, offset)` with the name of a pool.
/// - `only_in`: the name of the pool, or the names of those, that a chunk may lie in.
/// - `alignments`: the alignment of the offset of a chunk, where it is larger than that of the problem.
/// - `traffic`: the bytes that operators move to and from a chunk; its size by default.
/// - `holes`: the steps `(begin, end)` in which a chunk needs no bytes.
/// - `windows`: the steps and bytes `(begin, end, low, high)`: in these steps a chunk needs only
///   the bytes from `low` to `high`.
/// - `parts`: a list of `(chunk, whole, offset)`: a chunk lies inside a larger one, whose bytes are its
///   bytes there.
/// - `optional_parts`: the same for chunks that may also lie elsewhere, and are copied then.
/// - `apart`: lists of chunks that share no bytes of a pool, whenever they live.
///
/// - `on_stream`: the stream that a chunk is written on, where it is not 0.
///
/// On several streams, `begin` and `end` are clocks: the number of steps that are over, for each stream.
#[pyclass(frozen, module = "memplan")]
pub(crate) struct Problem(pub(crate) Arc<memplan::Problem>);

/// Chunks as three lists of the same length.
struct Chunks {
    begin: Vec<u64>,
    end: Vec<u64>,
    size: Vec<u64>,
    /// The lifetimes of those chunks that have clocks, ascending.
    clocks: Vec<(usize, Clocks)>,
}

/// Two chunks that cannot share memory as requested: one, the other, the offset in it and the reason.
type Refused<Offset> = (u32, u32, Offset, String);

fn chunk_list(chunks: &Bound<'_, PyAny>) -> PyResult<Chunks> {
    let mut lists =
        Chunks { begin: Vec::new(), end: Vec::new(), size: Vec::new(), clocks: Vec::new() };
    if let Some(numbers) = array(chunks, "chunks")? {
        if !matches!(numbers.shape[..], [_, 3]) && !numbers.values.is_empty() {
            let words = format!("chunks: the shape must be (n, 3), not {:?}", numbers.shape);
            return Err(value_error(words));
        }
        for &[begin, end, size] in numbers.values.as_chunks().0 {
            lists.begin.push(begin);
            lists.end.push(end);
            lists.size.push(size);
        }
        return Ok(lists);
    }
    for (at, chunk) in chunks.try_iter()?.enumerate() {
        let chunk = chunk?;
        let number = |name: &'static str| move || format!("chunk {at}: {name}");
        let words = || format!("chunk {at} must be (begin, end, size), not {}", shown(&chunk));
        let List(fields): List<Bound<'_, PyAny>> =
            chunk.extract().map_err(|_| PyTypeError::new_err(words()))?;
        let [begin, end, size]: [Bound<'_, PyAny>; 3] =
            fields.try_into().map_err(|_| value_error(words()))?;
        if let Some(clocks) = Clocks::read(&begin, &end, at)? {
            // The clocks say when it lives.
            lists.begin.push(0);
            lists.end.push(0);
            lists.clocks.push((at, clocks));
        } else {
            lists.begin.push(whole(&begin, number("begin"))?);
            lists.end.push(whole(&end, number("end"))?);
        }
        lists.size.push(whole(&size, number("size"))?);
    }
    Ok(lists)
}

fn requests(overwrites: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Request>> {
    let Some(overwrites) = overwrites else { return Ok(Vec::new()) };
    let mut requests = Vec::new();
    for (at, request) in overwrites.try_iter()?.enumerate() {
        let request = request?;
        let wrong = || {
            value_error(format!(
                "overwrite {at} must be (chunk, overwritten, offset, required), not {}",
                shown(&request)
            ))
        };
        let fields: Vec<Bound<'_, PyAny>> =
            request.try_iter().map_err(|_| wrong())?.collect::<PyResult<_>>()?;
        if !(2..=4).contains(&fields.len()) {
            return Err(wrong());
        }
        let chunk = |at: usize| fields[at].extract().map(ChunkId).map_err(|_| wrong());
        let offset: i128 =
            fields.get(2).map_or(Ok(0), |field| field.extract().map_err(|_| wrong()))?;
        let bytes = u64::try_from(offset.unsigned_abs()).map_err(|_| wrong())?;
        let required = fields.get(3).map_or(Ok(false), Bound::is_truthy)?;
        let of = if offset < 0 { Request::overlap } else { Request::new };
        requests.push(of(chunk(0)?, chunk(1)?, bytes).required(required));
    }
    Ok(requests)
}

fn build(
    py: Python<'_>,
    chunks: Chunks,
    overwrites: Option<&Bound<'_, PyAny>>,
    alignment: Argument,
    padding: Argument,
    names: Option<List<String>>,
    constraints: Option<&Bound<'_, PyDict>>,
) -> PyResult<Problem> {
    let (alignment, padding) = (alignment.named("alignment")?, padding.named("padding")?);
    let requests = requests(overwrites)?;
    let constraints = Constraints::read(constraints)?;
    let Chunks { begin, end, size, clocks } = chunks;
    if begin.len() != end.len() || begin.len() != size.len() {
        let (begin, end, size) = (begin.len(), end.len(), size.len());
        let words = format!("begin, end and size have {begin}, {end} and {size} elements");
        return Err(value_error(words));
    }
    if let Some(names) = &names
        && names.len() != begin.len()
    {
        let (names, chunks) = (names.len(), begin.len());
        return Err(value_error(format!("there are {names} names, but {chunks} chunks")));
    }
    if u32::try_from(begin.len()).is_err() {
        return Err(value_error(memplan::ProblemError::TooManyChunks));
    }
    guarded(py, || {
        let mut problem = memplan::Problem::builder().alignment(alignment).padding(padding);
        let mut names = names.into_iter().flatten();
        for ((&begin, &end), &size) in begin.iter().zip(&end).zip(&size) {
            match names.next() {
                Some(name) => problem.named_chunk(name, begin..end, size),
                None => problem.chunk(begin..end, size),
            };
        }
        for request in requests {
            problem.request(request);
        }
        constraints.constrain(&mut problem, size.len(), clocks)?;
        let problem = problem.build().map_err(value_error)?;
        Ok(Problem(Arc::new(problem)))
    })
}

#[pymethods]
impl Problem {
    #[new]
    #[pyo3(signature = (chunks, overwrites = None, *, alignment = Argument::of(1), padding = Argument::of(0), names = None, **constraints), text_signature = "(chunks, overwrites=None, *, alignment=1, padding=0, names=None, pools=None, pins=None, only_in=None, alignments=None, traffic=None, holes=None, windows=None, parts=None, optional_parts=None, apart=None, on_stream=None)")]
    fn new(
        chunks: &Bound<'_, PyAny>,
        overwrites: Option<&Bound<'_, PyAny>>,
        alignment: Argument,
        padding: Argument,
        names: Option<List<String>>,
        constraints: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        build(chunks.py(), chunk_list(chunks)?, overwrites, alignment, padding, names, constraints)
    }

    /// Creates a problem from three arrays or lists: the begins, the ends and the sizes.
    #[staticmethod]
    #[pyo3(signature = (begin, end, size, overwrites = None, *, alignment = Argument::of(1), padding = Argument::of(0), names = None, **constraints), text_signature = "(begin, end, size, overwrites=None, *, alignment=1, padding=0, names=None, pools=None, pins=None, only_in=None, alignments=None, traffic=None, holes=None, windows=None, parts=None, optional_parts=None, apart=None)")]
    fn from_arrays(
        begin: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        overwrites: Option<&Bound<'_, PyAny>>,
        alignment: Argument,
        padding: Argument,
        names: Option<List<String>>,
        constraints: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let chunks = Chunks {
            begin: list(begin, "begin")?,
            end: list(end, "end")?,
            size: list(size, "size")?,
            clocks: Vec::new(),
        };
        build(begin.py(), chunks, overwrites, alignment, padding, names, constraints)
    }

    /// Puts chunks inside others, as the inputs of a concatenation are put inside its output, where that costs no
    /// memory. Each item of `wholes` lists the parts `(chunk, whole, offset)` of one chunk; they are tried
    /// together and then one by one. Returns the problem with those that are possible, and the others with
    /// the reasons: `(chunk, whole, offset, reason)`.
    fn gather(&self, wholes: &Bound<'_, PyAny>) -> PyResult<(Self, Vec<Refused<u64>>)> {
        let py = wholes.py();
        let list = |item: PyResult<Bound<'_, PyAny>>| constraints::parts(&item?);
        let wholes: Vec<Vec<Part>> = wholes.try_iter()?.map(list).collect::<PyResult<_>>()?;
        guarded(py, || {
            let (problem, refused) = (*self.0).clone().gather(&wholes);
            let refused = refused
                .iter()
                .map(|(part, reason)| (part.part.0, part.whole.0, part.offset, reason.to_string()));
            let refused = refused.collect();
            Ok((Self(Arc::new(problem)), refused))
        })
    }

    /// The chunks that lie inside others and are their bytes there: `(chunk, whole, offset)`.
    #[getter]
    fn parts(&self) -> Vec<(u32, u32, u64)> {
        let parts = self.0.parts().iter();
        parts.map(|part| (part.part.0, part.whole.0, part.offset)).collect()
    }

    /// The chunks that may lie inside others: `(chunk, whole, offset)`.
    #[getter]
    fn optional_parts(&self) -> Vec<(u32, u32, u64)> {
        let parts = self.0.optional_parts().iter();
        parts.map(|part| (part.part.0, part.whole.0, part.offset)).collect()
    }

    /// The requests to overwrite that are not possible, with the reasons: `(chunk, overwritten, offset,
    /// reason)`.
    #[getter]
    fn refused(&self) -> Vec<Refused<i128>> {
        let requests = self.0.requests();
        let refused = self.0.refused().into_iter().map(|(request, reason)| {
            let request = requests[request];
            let offset = i128::from(request.offset) - i128::from(request.below);
            (request.overwriter.0, request.overwritten.0, offset, reason.to_string())
        });
        refused.collect()
    }

    /// Puts the chunks of another problem behind these in time. A plan of the result holds for both, such as two
    /// models or phases that run in turn in one arena. `shared` lists pairs of a chunk of this problem and one of
    /// the other that are the same memory, such as a cache. Its chunks follow these, without the shared ones.
    #[pyo3(signature = (other, *, shared = List::default()), text_signature = "($self, other, *, shared=())")]
    fn concat(&self, py: Python<'_>, other: &Self, shared: List<(Whole, Whole)>) -> PyResult<Self> {
        let pair =
            |(earlier, later)| Ok((constraints::chunk(earlier)?, constraints::chunk(later)?));
        let shared = shared.into_iter().map(pair).collect::<PyResult<Vec<_>>>()?;
        guarded(py, || {
            let problem = (*self.0).clone().concat(&other.0, &shared).map_err(value_error)?;
            Ok(Self(Arc::new(problem)))
        })
    }

    /// Reads a problem in memplan's JSON.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        match json::parse(py, text)? {
            Input::Problem(problem) => Ok(Self(Arc::new(problem))),
            Input::Sequence(_) => Err(value_error("this is a sequence, not a problem")),
        }
    }

    /// Returns the problem in memplan's JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json::text(py, |out| memplan::report::write_problem_json(out, &self.0))
    }

    /// The largest number of live bytes at one step: no pool is smaller.
    #[getter]
    fn lower_bound(&self, py: Python<'_>) -> PyResult<u64> {
        guarded(py, || Ok(self.0.lower_bound()))
    }

    /// The total in bytes with one buffer per chunk.
    #[getter]
    fn naive_size(&self) -> u64 {
        self.0.naive_size()
    }

    /// The number of steps.
    #[getter]
    fn steps(&self) -> u64 {
        self.0.steps()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        hash((self.0.len(), self.0.steps(), self.0.naive_size()))
    }

    fn __copy__(&self) -> Self {
        Self(self.0.clone())
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        Self(self.0.clone())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let text = self.to_json(py)?;
        remade(py, "problem", (text,))
    }

    fn __repr__(&self) -> String {
        let (chunks, steps) = (self.0.len(), self.0.steps());
        format!("<memplan.Problem: {chunks} chunks, {steps} steps>")
    }
}
