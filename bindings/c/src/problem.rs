//! Buffers with known lifetimes: the form that most C++ frameworks have.

use std::sync::Arc;

use library::{
    Plan as LibraryPlan,
    problem::{ChunkId, Pool as LibraryPool, PoolId, ProblemBuilder, Request},
    verify::{Verifier, Violation},
};

use crate::{
    array::{free, give, give_shared, reference, slice},
    error::{Failure, Status, guard, right},
    options::Options,
    plan::{Plan, planned},
};

/// A buffer with its lifetime.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// The step that writes it first.
    pub begin: u64,
    /// The last step that reads it, plus 1.
    pub end: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A request that a chunk be written over another one, which it reads for the last time when it
/// begins: `chunk.begin + 1 == overwritten.end`. Of several requests for one chunk, the first that is
/// possible is accepted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Overwrite {
    /// The index of the newer chunk.
    pub chunk: u32,
    /// The index of the older chunk.
    pub overwritten: u32,
    /// Bytes from the start of the older chunk.
    pub offset: u64,
    /// Not 0 if a plan without it is wrong, as for a state that is updated in place.
    pub required: u32,
}

/// A memory that chunks may lie in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Its bytes; `UINT64_MAX` for no limit.
    pub capacity: u64,
    /// Offsets in it are multiples of this power of two.
    pub alignment: u64,
    /// The cost of a byte that an operator moves to or from it.
    pub cost: u64,
}

/// A fixed place of a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Pin {
    /// The chunk, by its place in the list.
    pub chunk: u32,
    /// The pool, by its place in the list; 0 if none is listed.
    pub pool: u32,
    /// Bytes from the start of the pool.
    pub offset: u64,
}

/// A chunk that lies inside a larger one, and shares its bytes there: the input of a concatenation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The index of the chunk inside.
    pub chunk: u32,
    /// The index of the chunk around it.
    pub whole: u32,
    /// Bytes from the start of the larger chunk.
    pub offset: u64,
    /// 0 if it may lie elsewhere, where the operator that writes the larger chunk copies it.
    pub required: u32,
}

/// A checked list of chunks. It does not change, and any thread may use it.
pub struct Problem(library::Problem);

/// Checks chunks and requests, which are copied, and makes a problem of them.
///
/// # Safety
///
/// `chunks` and `overwrites` point to as many elements as follow them, and `out` to a pointer that
/// may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_problem_new(
    chunks: *const Chunk,
    chunk_count: usize,
    overwrites: *const Overwrite,
    overwrite_count: usize,
    out: *mut *mut Problem,
) -> Status {
    let (pools, pins) = (std::ptr::null(), std::ptr::null());
    // SAFETY: promised by the caller; the pools and pins are none.
    unsafe {
        memplan_problem_new_in_pools(
            chunks,
            chunk_count,
            overwrites,
            overwrite_count,
            pools,
            0,
            pins,
            0,
            out,
        )
    }
}

fn builder(chunks: &[Chunk], overwrites: &[Overwrite]) -> Result<ProblemBuilder, Failure> {
    if u32::try_from(chunks.len()).is_err() {
        return Err(library::ProblemError::TooManyChunks.into());
    }
    let mut problem = library::Problem::builder();
    for chunk in chunks {
        problem.chunk(chunk.begin..chunk.end, chunk.size);
    }
    for overwrite in overwrites {
        let (chunk, overwritten) = (ChunkId(overwrite.chunk), ChunkId(overwrite.overwritten));
        let request = Request::new(chunk, overwritten, overwrite.offset);
        problem.request(request.required(overwrite.required != 0));
    }
    Ok(problem)
}

/// The same for a device with several memories, and for chunks whose places are fixed. The pools are
/// listed in order of preference, the fastest first: as few bytes as possible move to and from those
/// that cost more, and then the pools are as small as possible, the last one first. Without pools,
/// there is one without limits.
///
/// # Safety
///
/// `chunks`, `overwrites`, `pools` and `pins` point to as many elements as follow them, and `out` to a
/// pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_problem_new_in_pools(
    chunks: *const Chunk,
    chunk_count: usize,
    overwrites: *const Overwrite,
    overwrite_count: usize,
    pools: *const Pool,
    pool_count: usize,
    pins: *const Pin,
    pin_count: usize,
    out: *mut *mut Problem,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let chunks = unsafe { slice(chunks, chunk_count, "chunks") }?;
        // SAFETY: promised by the caller.
        let overwrites = unsafe { slice(overwrites, overwrite_count, "overwrites") }?;
        // SAFETY: promised by the caller.
        let pools = unsafe { slice(pools, pool_count, "pools") }?;
        // SAFETY: promised by the caller.
        let pins = unsafe { slice(pins, pin_count, "pins") }?;
        let mut problem = builder(chunks, overwrites)?;
        for (at, pool) in pools.iter().enumerate() {
            let own = LibraryPool::new(at.to_string()).alignment(pool.alignment).cost(pool.cost);
            let limited = pool.capacity != u64::MAX;
            problem.pool(if limited { own.capacity(pool.capacity) } else { own });
        }
        for pin in pins {
            if pin.chunk as usize >= chunks.len() {
                let words = format!("a pin names chunk {}, which does not exist", pin.chunk);
                return Err(Failure::invalid(words));
            }
            problem.pin(ChunkId(pin.chunk), pool(pin.pool, pools.len())?, pin.offset);
        }
        let problem = problem.build()?;
        // SAFETY: promised by the caller.
        unsafe { give(out, Problem(problem)) }
    })
}

/// Makes the same problem with chunks that lie, or may lie, inside others.
///
/// # Safety
///
/// `problem` comes from `memplan_problem_new`, `parts` points to `part_count` elements, and `out` to a pointer that
/// may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_problem_with_parts(
    problem: *const Problem,
    parts: *const Part,
    part_count: usize,
    out: *mut *mut Problem,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Problem(problem) = unsafe { reference(problem, "problem") }?;
        // SAFETY: promised by the caller.
        let parts = unsafe { slice(parts, part_count, "parts") }?;
        let mut problem = problem.clone().into_builder();
        for &Part { chunk, whole, offset, required } in parts {
            let (chunk, whole) = (ChunkId(chunk), ChunkId(whole));
            if required != 0 {
                problem.part(chunk, whole, offset);
            } else {
                problem.optional_part(chunk, whole, offset);
            }
        }
        // SAFETY: promised by the caller.
        unsafe { give(out, Problem(problem.build()?)) }
    })
}

/// The pool of this number, of so many; without any, there is one.
fn pool(number: u32, pools: usize) -> Result<PoolId, Failure> {
    let id = u16::try_from(number).ok().filter(|&id| usize::from(id) < pools.max(1));
    id.map(PoolId).ok_or_else(|| Failure::invalid(format!("there is no pool {number}")))
}

/// Plans a problem. Null options stand for the defaults. If the options have a capacity and the plan
/// found is larger, the status is `MEMPLAN_STATUS_DOES_NOT_FIT`, and `out` gets that plan all the
/// same. If its lower bound is larger than the capacity, no plan fits.
///
/// # Safety
///
/// `problem` comes from `memplan_problem_new`, `options` is null or points to options, and `out`
/// points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_problem(
    problem: *const Problem,
    options: *const Options,
    out: *mut *mut Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Problem(problem) = unsafe { reference(problem, "problem") }?;
        // SAFETY: promised by the caller.
        let options = unsafe { Options::read(options) }?;
        let (plan, fits) = planned(problem, &options)?;
        // SAFETY: promised by the caller.
        unsafe { give_shared(out, Arc::new(Plan::new(plan))) }?;
        fits
    })
}

/// Checks offsets in bytes, one per chunk, from this library or another: chunks that are alive at the
/// same time share no byte, except where one is written over another as requested. Offsets of other
/// chunks must be multiples of `alignment`, a power of two.
///
/// # Safety
///
/// `problem` comes from `memplan_problem_new`, and `offsets` points to `n` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_verify(
    problem: *const Problem,
    alignment: u64,
    offsets: *const u64,
    n: usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Problem(problem) = unsafe { reference(problem, "problem") }?;
        // SAFETY: promised by the caller.
        let offsets = unsafe { slice(offsets, n, "offsets") }?;
        let places = offsets.iter().map(|&offset| (PoolId(0), offset));
        verified(problem, alignment, &places.collect::<Vec<_>>())
    })
}

/// The same for a problem with several pools: the pool of each chunk, by its place in the list, and
/// its offset there.
///
/// # Safety
///
/// `problem` comes from `memplan_problem_new_in_pools`, and `pools` and `offsets` point to `n` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_verify_in_pools(
    problem: *const Problem,
    alignment: u64,
    pools: *const u32,
    offsets: *const u64,
    n: usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let Problem(problem) = unsafe { reference(problem, "problem") }?;
        // SAFETY: promised by the caller.
        let pools = unsafe { slice(pools, n, "pools") }?;
        // SAFETY: promised by the caller.
        let offsets = unsafe { slice(offsets, n, "offsets") }?;
        let known = problem.pools().len();
        let places = pools.iter().zip(offsets);
        let places = places.map(|(&at, &offset)| Ok((pool(at, known)?, offset)));
        verified(problem, alignment, &places.collect::<Result<Vec<_>, Failure>>()?)
    })
}

fn verified(
    problem: &library::Problem,
    alignment: u64,
    places: &[(PoolId, u64)],
) -> Result<(), Failure> {
    let problem = problem.clone().with_alignment(alignment)?;
    let plan = LibraryPlan::from_places(&problem, places)?;
    let found = Verifier::new().verify(&problem, &plan);
    let mut violations = found.map_err(|error| Failure::invalid(error.to_string()))?;
    // A pool below its bound is not stated by the caller; it follows from the overlaps.
    violations.sort_by_key(|violation| matches!(violation, Violation::BoundAbovePool { .. }));
    right(&violations)
}

/// Frees a problem; null is ignored.
///
/// # Safety
///
/// `problem` is null or comes from `memplan_problem_new`, and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_problem_free(problem: *mut Problem) {
    guard(|| {
        // SAFETY: promised by the caller.
        unsafe { free(problem) };
        Ok(())
    });
}
