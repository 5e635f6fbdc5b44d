//! Sequences and optionals. A sequence is planned as one run of memory that holds its tensors one
//! after another, which is possible where their number and all their sizes are known. An optional
//! is planned as the value that it may hold.

use crate::{
    Bytes,
    import::onnx::{
        ops::{
            layout,
            op::{Op, Reason, Shapes, axis},
        },
        read::fact::{Dims, Fact, List, MAX_ITEMS, Scalar},
    },
};

fn items<'f>(op: &Op<'_, 'f>) -> Result<&'f [Fact], Reason> {
    let fact = op.input(0).ok_or("it has no sequence")?;
    fact.items.as_deref().ok_or_else(|| "which tensors its sequence holds is unknown".to_owned())
}

/// The tensors of a `SequenceConstruct`: all of its inputs.
pub(crate) fn construct(op: &Op) -> Result<List, Reason> {
    let unknown = "the shape of one of its inputs is unknown";
    let item = |fact: Option<&Fact>| fact.filter(|fact| !fact.is_list()).cloned();
    op.inputs.iter().copied().map(item).collect::<Option<_>>().ok_or_else(|| unknown.to_owned())
}

/// No tensors, as in an optional that holds nothing.
#[allow(clippy::unnecessary_wraps, reason = "every rule returns a result")]
pub(crate) fn empty(_: &Op) -> Result<List, Reason> {
    Ok(List::default())
}

/// The position in an input, if it is known before the run; the last one if there is no input.
/// Negative positions count from the end of `length` tensors.
fn position(op: &Op, input: usize, length: usize) -> Result<Option<usize>, Reason> {
    match op.input(input) {
        None => Ok(length.checked_sub(1)),
        // A guess is not a position.
        Some(_) if op.guesses => Ok(None),
        Some(fact) => fact.int().map(|at| axis(at, length)).transpose(),
    }
}

/// Returns whether tensors are alike in all that is known of them.
fn alike<'a>(mut facts: impl Iterator<Item = &'a Fact>) -> bool {
    let Some(first) = facts.next() else { return true };
    let same = |fact: &Fact| {
        (fact.element, &fact.dims, &fact.samples) == (first.element, &first.dims, &first.samples)
    };
    !first.is_open() && facts.all(same)
}

/// Tensors whose order is known only at run time, so they must be alike.
fn mixed<'a>(facts: impl Iterator<Item = &'a Fact> + Clone) -> Result<List, Reason> {
    if !alike(facts.clone()) {
        return Err("its tensors differ, and the position is known only at run time".to_owned());
    }
    Ok(facts.map(Fact::without_value).collect())
}

pub(crate) fn insert(op: &Op) -> Result<List, Reason> {
    let items = items(op)?;
    let new = op.input(1).ok_or("it has no tensor")?;
    if items.len() >= MAX_ITEMS {
        return Err(format!("it holds more than {MAX_ITEMS} tensors"));
    }
    let from_end = op.input(2).and_then(Fact::int).is_some_and(|at| at < 0);
    // A new tensor may be inserted after the last one.
    let at = position(op, 2, items.len() + usize::from(!from_end))?;
    match at {
        Some(at) => Ok(items[..at].iter().chain([new]).chain(&items[at..]).cloned().collect()),
        None => mixed(items.iter().chain([new])),
    }
}

pub(crate) fn erase(op: &Op) -> Result<List, Reason> {
    let items = items(op)?;
    match position(op, 1, items.len())? {
        Some(at) => Ok(items[..at].iter().chain(&items[at + 1..]).cloned().collect()),
        None => Ok(mixed(items.iter())?.iter().skip(1).cloned().collect()),
    }
}

/// The tensor at the position of a `SequenceAt`, if it is known which.
pub(crate) fn chosen<'f>(op: &Op<'_, 'f>) -> Result<Option<&'f Fact>, Reason> {
    let items = items(op)?;
    let at = position(op, 1, items.len())?;
    Ok(at.and_then(|at| items.get(at)))
}

/// The shape that any of the tensors has.
pub(crate) fn at(op: &Op) -> Shapes {
    let mut dims: Option<Dims> = None;
    for item in items(op)? {
        let next = item.dims.as_ref().ok_or("the shape of one of its tensors is unknown")?;
        dims = Some(match dims {
            None => next.clone(),
            Some(dims) if dims.len() == next.len() => {
                dims.iter().zip(next).map(|(a, b)| a.filter(|_| a == b)).collect()
            }
            Some(_) => return Err("its tensors have different numbers of dimensions".to_owned()),
        });
    }
    Ok(vec![dims])
}

/// The largest shape of all tensors.
pub(crate) fn at_most(op: &Op) -> Shapes {
    let mut most: Option<Dims> = None;
    for item in items(op)? {
        let sizes = item.largest().ok_or("the shape of one of its tensors is unknown")?;
        most = Some(match most {
            None => sizes.into_iter().map(Some).collect(),
            Some(most) if most.len() == sizes.len() => {
                most.iter().zip(sizes).map(|(&a, b)| a.max(Some(b))).collect()
            }
            Some(_) => return Err("its tensors have different numbers of dimensions".to_owned()),
        });
    }
    Ok(vec![most])
}

/// The offset of the tensor of a `SequenceAt` in the sequence, in bytes.
pub(crate) fn offset(op: &Op) -> Option<Bytes> {
    let items = items(op).ok()?;
    let at = position(op, 1, items.len()).ok()??;
    Fact::bytes_of_items(&items[..at])
}

/// The number of tensors.
pub(crate) fn length(op: &Op, _: &Fact, _: &[u64]) -> Option<Vec<Scalar>> {
    Some(vec![Scalar::Int(i64::try_from(items(op).ok()?.len()).ok()?)])
}

/// The parts of a tensor along an axis.
pub(crate) fn split(op: &Op) -> Result<List, Reason> {
    let dims = op.dims(0)?;
    let element = op.input(0).and_then(|fact| fact.element);
    let at = op.axis(0, dims.len())?;
    let whole = dims[at].ok_or("the size that it splits is known only at run time")?;
    let part = |size: Option<u64>| {
        let mut dims = dims.clone();
        match size {
            Some(size) => dims[at] = Some(size),
            None => drop(dims.remove(at)),
        }
        Fact { element, dims: Some(dims), ..Fact::default() }
    };
    let limited = |count: u64| {
        let count = usize::try_from(count).ok().filter(|&count| count <= MAX_ITEMS);
        count.ok_or_else(|| format!("it holds more than {MAX_ITEMS} tensors"))
    };
    let Some(given) = op.input(1) else {
        let keeps = op.node.int("keepdims").unwrap_or(1) != 0;
        return Ok(vec![part(keeps.then_some(1)); limited(whole)?].into());
    };
    let sizes = op.ints(1)?;
    if given.dims.as_ref().is_some_and(|dims| !dims.is_empty()) {
        let sizes = sizes.iter().map(|&size| u64::try_from(size).ok()).collect::<Option<Vec<_>>>();
        let sizes = sizes.ok_or("a part has a negative size")?;
        let sum = sizes.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size));
        if sum != Some(whole) && !op.guesses {
            return Err(format!("its parts do not add up to {whole}"));
        }
        return Ok(sizes.into_iter().map(|size| part(Some(size))).collect());
    }
    let size = sizes.first().and_then(|&size| u64::try_from(size).ok()).filter(|&size| size > 0);
    let size = size.ok_or("the size of a part is not positive")?;
    let full = limited(whole / size)?;
    let rest = Some(whole % size).filter(|&rest| rest > 0);
    let sizes = std::iter::repeat_n(size, full).chain(rest);
    Ok(sizes.map(|size| part(Some(size))).collect())
}

/// All tensors of a sequence, joined along an axis, old or new.
pub(crate) fn concat(op: &Op) -> Shapes {
    let items = items(op)?;
    let joins_new = op.node.int("new_axis").unwrap_or(0) != 0;
    let unknown = || "the shape of one of its tensors is unknown".to_owned();
    let shapes = items.iter().map(|item| item.dims.as_ref().ok_or_else(unknown));
    let shapes = shapes.collect::<Result<Vec<&Dims>, _>>()?;
    let rank = shapes.first().ok_or("its sequence is empty")?.len();
    let at = op.axis(0, rank + usize::from(joins_new))?;
    if !joins_new {
        return layout::joined(&shapes, at);
    }
    let stacked = |dims: &&Dims| {
        let mut dims = (*dims).clone();
        dims.insert(at, Some(1));
        dims
    };
    let stacked: Vec<Dims> = shapes.iter().map(stacked).collect();
    layout::joined(&stacked.iter().collect::<Vec<_>>(), at)
}
