//! Watching a search, and ending it.

use std::{
    ffi::c_void,
    sync::atomic::{AtomicBool, Ordering},
};

use library::Planner;

use crate::{
    array::{free, give},
    error::{Status, guard},
};

/// A request to end planning early, which any thread may make at any time.
#[derive(Default)]
pub struct Cancel {
    flag: AtomicBool,
}

/// The progress of a search.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The lower bound of the pool in bytes; of the peak, while an order is searched for.
    pub lower_bound: u64,
    /// The best pool or peak so far in bytes; `UINT64_MAX` if there is none yet.
    pub best: u64,
    /// The search nodes so far, of all threads.
    pub nodes: u64,
}

/// The caller's function for progress.
type Function = unsafe extern "C" fn(*const Progress, *mut c_void);

/// The caller's function, with what it is called with.
struct Caller {
    function: Function,
    context: *mut c_void,
}

// SAFETY: only the thread that called the library calls the function.
unsafe impl Sync for Caller {}

impl Caller {
    fn call(&self, progress: &library::Progress) {
        let library::Progress { lower_bound, best, nodes, .. } = *progress;
        let progress = Progress { lower_bound, best, nodes };
        // SAFETY: the options promise a function that takes this.
        unsafe { (self.function)(&raw const progress, self.context) };
    }
}

/// Runs a search with the caller's hooks.
pub(crate) fn observed<R>(
    cancel: Option<&Cancel>,
    (function, context): (Option<Function>, *mut c_void),
    planner: &Planner<'_>,
    search: impl FnOnce(&Planner<'_>) -> R,
) -> R {
    let mut planner = planner.clone();
    if let Some(cancel) = cancel {
        planner = planner.cancel(&cancel.flag);
    }
    let Some(function) = function else { return search(&planner) };
    let caller = Caller { function, context };
    let report = |progress: &library::Progress| caller.call(progress);
    search(&planner.progress(&report))
}

/// Creates a request that is not made yet. Options refer to it by their field `cancel`.
///
/// # Safety
///
/// `out` points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_cancel_new(out: *mut *mut Cancel) -> Status {
    // SAFETY: promised by the caller.
    guard(|| unsafe { give(out, Cancel::default()) })
}

/// Makes the request, or takes it back if `is_made` is 0. Any thread may call it, and a signal handler as well. Soon
/// afterwards, planning ends: strategies that search, and first-fit, return their best plan so far, and the others
/// fail with `MEMPLAN_STATUS_INVALID`. Null is ignored.
///
/// # Safety
///
/// `cancel` is null or comes from `memplan_cancel_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_cancel_set(cancel: *const Cancel, is_made: u32) {
    // SAFETY: promised by the caller.
    if let Some(cancel) = unsafe { cancel.as_ref() } {
        cancel.flag.store(is_made != 0, Ordering::Relaxed);
    }
}

/// Frees a request; null is ignored.
///
/// # Safety
///
/// `cancel` is null or comes from `memplan_cancel_new`, and no options in use refer to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_cancel_free(cancel: *mut Cancel) {
    guard(|| {
        // SAFETY: promised by the caller.
        unsafe { free(cancel) };
        Ok(())
    });
}
