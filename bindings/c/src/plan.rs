//! The answer: offsets in one pool.

use std::{ops::Range, sync::Arc};

use library::{
    InputRef, OpSequence,
    report::size,
    sequence::{Tensor, TensorId},
};

use crate::{
    array::{check, fill, free_shared, give_shared, reference},
    error::{Failure, Status, guard},
    options::Options,
};

/// Stands for "no chunk" and "no tensor".
pub const NO_CHUNK: u32 = u32::MAX;

/// The memory in which a tensor lies.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// It has no bytes.
    Nowhere = 0,
    /// The pool.
    Pool = 1,
    /// An input or a weight, outside the pool: its own memory, or that of the one that it is a view
    /// of.
    Supplied = 2,
}

/// The place of a tensor or workspace.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// A `memplan_place_kind`.
    pub kind: u32,
    /// The supplied tensor in which it lies; `UINT32_MAX` elsewhere.
    pub tensor: u32,
    /// Bytes from the start of that memory.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl Place {
    const NOWHERE: Self =
        Self { kind: PlaceKind::Nowhere as u32, tensor: NO_CHUNK, offset: 0, size: 0 };
}

/// An operator that waits for an earlier one on another stream.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The operator that waits, by its number.
    pub waiting: u32,
    /// The operator that must be over before it runs.
    pub earlier: u32,
}

/// The plan of a sequence that an operator runs.
struct Body {
    step: u32,
    index: u32,
    /// Bytes from the start of the pool around it to its own.
    offset: u64,
    plan: Arc<Plan>,
}

/// A plan. It does not change, and any thread may use it. Free it as often as functions gave it: a cache gives the
/// same plan several times.
pub struct Plan {
    pub(crate) inner: library::Plan,
    /// The places of the tensors, by number; empty for a problem.
    tensors: Vec<Place>,
    /// The workspace of each operator; empty for a problem.
    workspaces: Vec<Place>,
    /// The waits between streams; empty for a problem.
    waits: Vec<Wait>,
    bodies: Vec<Body>,
    /// The sequence in an order of the plan's own, if it has one.
    pub(crate) reordered: Option<OpSequence>,
}

// Plans are given to several threads, and counted.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Plan>();
};

/// Plans an input; the second result is a failure if the plan exceeds the capacity.
pub(crate) fn planned<'a>(
    input: impl Into<InputRef<'a>>,
    options: &Options,
) -> Result<(library::Plan, Result<(), Failure>), Failure> {
    let (planner, input) = (options.planner()?, input.into());
    options.observed(&planner, |planner| {
        let Some(capacity) = options.capacity() else { return Ok((planner.plan(input)?, Ok(()))) };
        let plan = planner.fit(input, capacity)?;
        let words = match plan.fits(capacity) {
            Some(true) => return Ok((plan, Ok(()))),
            Some(false) => format!("no {} fits", library::report::scoped(&plan)),
            None => "more effort may find one that fits".to_owned(),
        };
        let failure = too_large(&plan, capacity, &words);
        Ok((plan, Err(failure)))
    })
}

/// The failure of a plan that exceeds the capacity.
pub(crate) fn too_large(plan: &library::Plan, capacity: u64, words: &str) -> Failure {
    let (taken, capacity) = (size(plan.pool_size()), size(capacity));
    let message = format!("the plan takes {taken}, and the capacity is {capacity}: {words}");
    Failure { status: Status::DoesNotFit, message }
}

impl Plan {
    /// The plan of a problem.
    pub(crate) fn new(plan: library::Plan) -> Self {
        let (tensors, workspaces, waits) = (Vec::new(), Vec::new(), Vec::new());
        Self { inner: plan, tensors, workspaces, waits, bodies: Vec::new(), reordered: None }
    }

    /// The plan of a sequence.
    pub(crate) fn of_sequence(plan: library::Plan, sequence: &OpSequence) -> Result<Self, Failure> {
        let order: Vec<usize> = (0..sequence.operators().len()).collect();
        Self::of_order(plan, sequence, sequence, &order)
    }

    /// The plan of a sequence in an order: the numbers of its operators as they are to run. Everything is
    /// listed by the numbers in the order given.
    pub(crate) fn of_order(
        plan: library::Plan,
        ordered: &OpSequence,
        given: &OpSequence,
        order: &[usize],
    ) -> Result<Self, Failure> {
        let placement =
            plan.placement(ordered).map_err(|error| Failure::invalid(error.to_string()))?;
        let in_pool = |bytes: Range<u64>| Place {
            kind: PlaceKind::Pool as u32,
            tensor: NO_CHUNK,
            offset: bytes.start,
            size: bytes.end - bytes.start,
        };
        let supplied = |tensor: &Tensor, (of, offset): (TensorId, u64)| Place {
            kind: PlaceKind::Supplied as u32,
            tensor: given.tensor_id(&ordered.tensor(of).name).map_or(NO_CHUNK, |of| of.0),
            offset,
            size: tensor.size.unwrap_or(0),
        };
        let place = |tensor: &Tensor| {
            let Some(id) = ordered.tensor_id(&tensor.name) else { return Place::NOWHERE };
            let outside = || placement.supplied(id).map(|outside| supplied(tensor, outside));
            placement.bytes(id).map(in_pool).or_else(outside).unwrap_or(Place::NOWHERE)
        };
        let tensors = given.tensors().iter().map(place).collect();
        let mut workspaces = vec![Place::NOWHERE; order.len()];
        for (step, &operator) in order.iter().enumerate() {
            workspaces[operator] = placement.workspace(step).map_or(Place::NOWHERE, in_pool);
        }
        let number = |step: usize| u32::try_from(order[step]).unwrap_or(NO_CHUNK);
        let of_step = |(step, waits): (usize, Vec<usize>)| {
            let wait = move |earlier| Wait { waiting: number(step), earlier: number(earlier) };
            waits.into_iter().map(wait)
        };
        let waits = ordered.waits().into_iter().enumerate().flat_map(of_step).collect();
        let bodies = plan.bodies().iter().filter_map(|planned| {
            let step = usize::try_from(planned.step).ok()?;
            let body = ordered.operators().get(step)?.bodies.get(planned.body)?;
            let workspace = placement.workspace(step).map_or(0, |bytes| bytes.start);
            Some(Self::of_sequence(planned.plan.clone(), body).map(|plan| Body {
                step: number(step),
                index: u32::try_from(planned.body).unwrap_or(NO_CHUNK),
                offset: workspace + planned.inputs,
                plan: Arc::new(plan),
            }))
        });
        let bodies = bodies.collect::<Result<_, _>>()?;
        Ok(Self { inner: plan, tensors, workspaces, waits, bodies, reordered: None })
    }
}

/// Returns the bytes to reserve for the pool; 0 for null.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_pool_size(plan: *const Plan) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { reference(plan, "plan") }.map_or(0, |plan| plan.inner.pool_size())
}

/// Returns a number of bytes that every plan with the same views, overwrites and copies needs; 0 for null. If it
/// equals the pool size, no such plan is smaller.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_lower_bound(plan: *const Plan) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { reference(plan, "plan") }.map_or(0, |plan| plan.inner.lower_bound())
}

/// Returns 1 if the lower bound holds for all plans, because there was nothing to choose but places; otherwise, and
/// for null, 0.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_bound_is_of_all_choices(plan: *const Plan) -> u32 {
    // SAFETY: promised by the caller.
    let plan = unsafe { reference(plan, "plan") };
    plan.map_or(0, |plan| u32::from(plan.inner.scope() == library::plan::Scope::AllChoices))
}

/// Returns the number of chunks; 0 for null. For a sequence, these are what its tensors and workspaces lie in.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_chunk_count(plan: *const Plan) -> usize {
    // SAFETY: promised by the caller.
    unsafe { reference(plan, "plan") }.map_or(0, |plan| plan.inner.chunks().len())
}

/// Returns the number of tensors of the sequence; 0 for null and for a problem.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_tensor_count(plan: *const Plan) -> usize {
    // SAFETY: promised by the caller.
    unsafe { reference(plan, "plan") }.map_or(0, |plan| plan.tensors.len())
}

/// Returns the number of operators of the sequence; 0 for null and for a problem.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_operator_count(plan: *const Plan) -> usize {
    // SAFETY: promised by the caller.
    unsafe { reference(plan, "plan") }.map_or(0, |plan| plan.workspaces.len())
}

/// Returns the number of pools, which is 1 if none was listed; 0 for null.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_pool_count(plan: *const Plan) -> usize {
    // SAFETY: promised by the caller.
    unsafe { reference(plan, "plan") }.map_or(0, |plan| plan.inner.pools().len().max(1))
}

/// Writes the offset of every chunk in bytes. `n` is the number of chunks.
///
/// # Safety
///
/// `plan` is a plan, and `out` points to `n` numbers that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_offsets(
    plan: *const Plan,
    out: *mut u64,
    n: usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Plan { inner: plan, .. } = unsafe { reference(plan, "plan") }?;
        let offsets = plan.chunks().iter().map(|chunk| chunk.offset);
        // SAFETY: promised by the caller.
        unsafe { fill(out, n, offsets, "chunks") }
    })
}

/// Writes for every chunk the index of the chunk that it is written over, or `UINT32_MAX`. `n` is
/// the number of chunks of the problem.
///
/// # Safety
///
/// `plan` is a plan, and `out` points to `n` numbers that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_overwritten(
    plan: *const Plan,
    out: *mut u32,
    n: usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Plan { inner: plan, .. } = unsafe { reference(plan, "plan") }?;
        let overwritten = plan.chunks().iter().map(|chunk| {
            let link = chunk.overwrites.and_then(|link| u32::try_from(link.chunk).ok());
            link.unwrap_or(NO_CHUNK)
        });
        // SAFETY: promised by the caller.
        unsafe { fill(out, n, overwritten, "chunks") }
    })
}

/// Writes the pool of every chunk, by its place in the list of pools; 0 if none was listed. `n` is the
/// number of chunks of the problem.
///
/// # Safety
///
/// `plan` is a plan, and `out` points to `n` numbers that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_pools(plan: *const Plan, out: *mut u32, n: usize) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Plan { inner: plan, .. } = unsafe { reference(plan, "plan") }?;
        let pools = plan.chunks().iter().map(|chunk| u32::try_from(chunk.pool).unwrap_or(NO_CHUNK));
        // SAFETY: promised by the caller.
        unsafe { fill(out, n, pools, "chunks") }
    })
}

/// Writes the bytes to reserve in every pool. `n` is the number of pools that were listed; without
/// any, it is 1.
///
/// # Safety
///
/// `plan` is a plan, and `out` points to `n` numbers that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_pool_sizes(
    plan: *const Plan,
    out: *mut u64,
    n: usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Plan { inner: plan, .. } = unsafe { reference(plan, "plan") }?;
        let mut sizes: Vec<u64> = plan.pools().iter().map(|pool| pool.size).collect();
        if sizes.is_empty() {
            sizes.push(plan.pool_size());
        }
        // SAFETY: promised by the caller.
        unsafe { fill(out, n, sizes.into_iter(), "pools") }
    })
}

/// Writes the place of every tensor of the sequence, indexed by its number. `n` is the number of
/// tensors; a plan of a problem has none.
///
/// # Safety
///
/// `plan` is a plan, and `out` points to `n` places that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_tensors(
    plan: *const Plan,
    out: *mut Place,
    n: usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        // SAFETY: promised by the caller.
        unsafe { fill(out, n, plan.tensors.iter().copied(), "tensors") }
    })
}

/// Writes the place in the pool of every operator's workspace: first the largest of its bodies with the copies of
/// its inputs, and after it the bytes that the operator requests for itself. `n` is the number of operators; a
/// plan of a problem has none.
///
/// # Safety
///
/// `plan` is a plan, and `out` points to `n` places that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_workspaces(
    plan: *const Plan,
    out: *mut Place,
    n: usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        // SAFETY: promised by the caller.
        unsafe { fill(out, n, plan.workspaces.iter().copied(), "operators") }
    })
}

/// Returns the number of waits between streams that a runtime needs; 0 for null, for a problem, and on one
/// stream.
///
/// # Safety
///
/// `plan` is null or a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_wait_count(plan: *const Plan) -> usize {
    // SAFETY: promised by the caller.
    unsafe { reference(plan, "plan") }.map_or(0, |plan| plan.waits.len())
}

/// Writes the waits between streams, in the order of the operators that wait. A runtime that keeps to these
/// runs the plan safely. `n` is their number.
///
/// # Safety
///
/// `plan` is a plan, and `out` points to `n` waits that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_waits(plan: *const Plan, out: *mut Wait, n: usize) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        // SAFETY: promised by the caller.
        unsafe { fill(out, n, plan.waits.iter().copied(), "waits") }
    })
}

/// Creates the plan of a body, whose offsets count from the start of its own pool. `step` is the number of the
/// operator, and `body` counts its bodies from 0. `offset` gets the bytes from the start of the pool of `plan` to
/// that of the body; the copies of the body's inputs lie before it, from the start of the operator's workspace,
/// each padded and rounded up to the alignment. `offset` may be null.
///
/// # Safety
///
/// `plan` is a plan, `offset` is null or may be written, and `out` points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_body(
    plan: *const Plan,
    step: u32,
    body: u32,
    offset: *mut u64,
    out: *mut *mut Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        let found =
            plan.bodies.iter().find(|planned| (planned.step, planned.index) == (step, body));
        let unknown = || Failure::invalid(format!("operator {step} has no body {body}"));
        let found = found.ok_or_else(unknown)?;
        check(out, 1, "out")?;
        if !offset.is_null() {
            // SAFETY: promised by the caller.
            unsafe { fill(offset, 1, std::iter::once(found.offset), "offsets") }?;
        }
        // SAFETY: promised by the caller.
        unsafe { give_shared(out, Arc::clone(&found.plan)) }
    })
}

/// Frees a plan; null is ignored.
///
/// # Safety
///
/// `plan` is null or a plan that nothing uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_free(plan: *mut Plan) {
    guard(|| {
        // SAFETY: promised by the caller.
        unsafe { free_shared(plan) };
        Ok(())
    });
}
