//! Plans by shape.

use std::{
    borrow::Borrow,
    convert::Infallible,
    sync::{Arc, PoisonError, RwLock},
};

use library::planner::PlanCache as LibraryCache;

use crate::{
    array::{check, fill, free, give, give_shared, reference, share, slice},
    error::{Status, guard},
    plan::Plan,
};

/// A plan that callers have as well.
struct Kept(Arc<Plan>);

impl Borrow<library::Plan> for Kept {
    fn borrow(&self) -> &library::Plan {
        &self.0.inner
    }
}

/// Plans of one model for several shapes, by the sizes of its open dimensions. All of them use one pool, one at a
/// time. Any thread may use the cache.
#[derive(Default)]
pub struct PlanCache(RwLock<LibraryCache<Kept>>);

impl PlanCache {
    fn read<T>(&self, read: impl FnOnce(&LibraryCache<Kept>) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Creates an empty cache.
///
/// # Safety
///
/// `out` points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_cache_new(out: *mut *mut PlanCache) -> Status {
    // SAFETY: promised by the caller.
    guard(|| unsafe { give(out, PlanCache::default()) })
}

/// Keeps the plan of a shape: the `n` sizes of its open dimensions, always in the same order. They are copied, and are
/// compared one by one. If the shape has a plan already, such as one of another thread, that one stays. `out` gets
/// the plan that is kept, and may be null. The caller frees `plan` and what `out` gets; the cache keeps the plan
/// until it is freed itself.
///
/// # Safety
///
/// `cache` comes from `memplan_plan_cache_new`, `shape` points to `n` sizes, `plan` is a plan, and `out` is null or
/// points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_cache_keep(
    cache: *mut PlanCache,
    shape: *const u64,
    n: usize,
    plan: *const Plan,
    out: *mut *mut Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let cache = unsafe { reference(cache.cast_const(), "cache") }?;
        // SAFETY: promised by the caller.
        let shape = unsafe { slice(shape, n, "shape") }?;
        // SAFETY: promised by the caller.
        let plan = unsafe { share(plan, "plan") }?;
        if !out.is_null() {
            check(out, 1, "out")?;
        }
        let mut plans = cache.0.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(Kept(kept)) = plans.get_or_plan(shape, || Ok::<_, Infallible>(Kept(plan)));
        if out.is_null() {
            return Ok(());
        }
        // SAFETY: promised by the caller.
        unsafe { give_shared(out, Arc::clone(kept)) }
    })
}

/// Gives the plan of a shape, which the caller frees. `out` gets null if none is kept: then plan the shape, and call
/// `memplan_plan_cache_keep`.
///
/// # Safety
///
/// `cache` comes from `memplan_plan_cache_new`, `shape` points to `n` sizes, and `out` points to a pointer that may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_cache_get(
    cache: *const PlanCache,
    shape: *const u64,
    n: usize,
    out: *mut *mut Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let cache = unsafe { reference(cache, "cache") }?;
        // SAFETY: promised by the caller.
        let shape = unsafe { slice(shape, n, "shape") }?;
        let plan = cache.read(|plans| plans.get(shape).map(|kept| Arc::clone(&kept.0)));
        // SAFETY: promised by the caller.
        unsafe { give_shared(out, plan) }
    })
}

/// Gives the plan with the smallest pool of all shapes that have `n` sizes, none smaller than in this one; null if
/// there is none. The caller frees it. `larger` gets the shape of the plan, `n` sizes, and may be null. The plan often
/// holds for the smaller shape as well: `memplan_verify_smaller` decides for a sequence, and `memplan_verify` of the
/// plan's offsets for a problem.
///
/// # Safety
///
/// `cache` comes from `memplan_plan_cache_new`, `shape` points to `n` sizes, `larger` is null or points to `n` numbers
/// that may be written, and `out` points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_cache_dominating(
    cache: *const PlanCache,
    shape: *const u64,
    n: usize,
    larger: *mut u64,
    out: *mut *mut Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let cache = unsafe { reference(cache, "cache") }?;
        // SAFETY: promised by the caller.
        let shape = unsafe { slice(shape, n, "shape") }?;
        check(out, 1, "out")?;
        let found = cache.read(|plans| {
            let (of, kept) = plans.dominating(shape)?;
            Some((of.to_vec(), Arc::clone(&kept.0)))
        });
        let (of, plan) = found.unzip();
        if let Some(of) = of.filter(|_| !larger.is_null()) {
            // SAFETY: promised by the caller.
            unsafe { fill(larger, n, of.into_iter(), "sizes") }?;
        }
        // SAFETY: promised by the caller.
        unsafe { give_shared(out, plan) }
    })
}

/// Returns the bytes of a pool for all plans of the cache, one at a time; 0 for null.
///
/// # Safety
///
/// `cache` is null or comes from `memplan_plan_cache_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_cache_pool_size(cache: *const PlanCache) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { reference(cache, "cache") }.map_or(0, |cache| cache.read(LibraryCache::pool_size))
}

/// Returns the number of shapes whose plans are kept; 0 for null.
///
/// # Safety
///
/// `cache` is null or comes from `memplan_plan_cache_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_cache_count(cache: *const PlanCache) -> usize {
    // SAFETY: promised by the caller.
    unsafe { reference(cache, "cache") }.map_or(0, |cache| cache.read(LibraryCache::len))
}

/// Frees a cache; null is ignored. Plans that it gave stay as they are.
///
/// # Safety
///
/// `cache` is null or comes from `memplan_plan_cache_new`, and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_cache_free(cache: *mut PlanCache) {
    guard(|| {
        // SAFETY: promised by the caller.
        unsafe { free(cache) };
        Ok(())
    });
}
