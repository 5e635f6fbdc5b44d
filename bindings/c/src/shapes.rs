//! Sizes of dimensions that differ from run to run.

use std::ffi::c_char;

use library::verify::verify_smaller;

use crate::{
    array::{check, exclusive, fill, reference, text},
    error::{Failure, Status, guard, right},
    plan::Plan,
    sequence::Sequence,
};

/// Reads a name that must not be null.
///
/// # Safety
///
/// `name` is null or ends with a NUL.
unsafe fn named(name: *const c_char) -> Result<String, Failure> {
    // SAFETY: promised by the caller.
    unsafe { text(name, "name") }?.ok_or_else(|| Failure::null("name"))
}

/// States that the sequence is right for all sizes of this dimension from `least` to `most`, which may be equal. All
/// tensors and workspaces must have their sizes in bytes for the largest of them, and views, overwrites and gathers
/// must be possible for all. A plan of the sequence then holds for each of these sizes. The name is in UTF-8; stating
/// a dimension again replaces its sizes. An empty range is an error when the sequence is planned.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, and `name` ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_sequence_dim(
    sequence: *mut Sequence,
    name: *const c_char,
    least: u64,
    most: u64,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let sequence = unsafe { exclusive(sequence, "sequence") }?;
        // SAFETY: promised by the caller.
        let name = unsafe { named(name) }?;
        sequence.builder.dim(name, least..=most);
        Ok(())
    })
}

/// Writes the smallest and the largest size of a dimension for which the plan holds, as its sequence stated them. A
/// dimension that was not stated is an error.
///
/// # Safety
///
/// `plan` is a plan, `name` ends with a NUL, and `least` and `most` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_dim(
    plan: *const Plan,
    name: *const c_char,
    least: *mut u64,
    most: *mut u64,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        // SAFETY: promised by the caller.
        let name = unsafe { named(name) }?;
        let unknown = || Failure::invalid(format!("the plan states no dimension '{name}'"));
        let range = plan.inner.dims().get(&*name).ok_or_else(unknown)?;
        check(least, 1, "least")?;
        check(most, 1, "most")?;
        // SAFETY: promised by the caller, and checked.
        unsafe {
            fill(least, 1, std::iter::once(range.least), "sizes")?;
            fill(most, 1, std::iter::once(range.most), "sizes")
        }
    })
}

/// Checks that the plan of a sequence holds for a run with the sizes of this other sequence: the same operators and
/// tensors, by number or name, none of them larger than planned. Every tensor lies at its planned offset, and the
/// operators run on a shadow of the memory. A plan with an order of its own is followed in that order.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, and `plan` is a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_verify_smaller(
    sequence: *const Sequence,
    plan: *const Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let given = unsafe { reference(sequence, "sequence") }?.build()?;
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        let sequence = match &plan.reordered {
            Some(planned) => given.in_order_of(planned)?,
            None => given,
        };
        right(&verify_smaller(&sequence, &plan.inner))
    })
}
