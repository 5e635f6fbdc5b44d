//! A better order of the operators.

use std::sync::Arc;

use library::order::default_limits;

use crate::{
    array::{check, check_count, fill, give_shared, reference},
    error::{Status, guard},
    options::Options,
    plan::{Plan, too_large},
    sequence::Sequence,
};

/// Looks for the order of the operators that needs the least memory, and plans it. `order` gets the numbers of
/// the operators as they are to run; `n` is the number of operators. The order given is kept unless the pool of
/// another one is smaller. The plan lists tensors, workspaces and waits by the numbers of the order given.
///
/// Effort and time limit are those of the search for an order. If the options have a capacity and the plan
/// exceeds it, the order and the plan are still written, and the status is `MEMPLAN_STATUS_DOES_NOT_FIT`.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, `options` is null or points to options, `order` points to `n`
/// numbers that may be written, and `out` points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_reordered(
    sequence: *const Sequence,
    options: *const Options,
    order: *mut u32,
    n: usize,
    out: *mut *mut Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let given = unsafe { reference(sequence, "sequence") }?.build()?;
        // SAFETY: promised by the caller.
        let options = unsafe { Options::read(options) }?;
        // The search may take long.
        check(out, 1, "out")?;
        check_count(order, n, given.operators().len(), "operators")?;
        // The plans have an effort of their own.
        let planner = Options { effort: 0, ..options }.planner()?;
        let limits = options.limits(default_limits());
        let found = options.observed(&planner, |planner| planner.plan_reordered(&given, limits))?;
        let fits = match options.capacity() {
            Some(capacity) if found.plan.pool_size() > capacity => {
                let words = "no order that fits was found";
                Err(too_large(&found.plan, capacity, words))
            }
            _ => Ok(()),
        };
        let steps = &found.change.order;
        let mut plan = Plan::of_order(found.plan, &found.sequence, &given, steps)?;
        plan.reordered = Some(found.sequence);
        let numbers = steps.iter().map(|&step| u32::try_from(step).unwrap_or(u32::MAX));
        // SAFETY: promised by the caller.
        unsafe { fill(order, n, numbers, "operators") }?;
        // SAFETY: promised by the caller.
        unsafe { give_shared(out, Arc::new(plan)) }?;
        fits
    })
}
