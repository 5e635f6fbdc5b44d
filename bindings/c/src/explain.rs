//! Verifying and explaining the plan of a sequence.

use std::ffi::c_char;

use library::{OpSequence, report, verify::verify};

use crate::{
    array::{check, fill, reference},
    error::{Failure, Status, copy_text, guard, right},
    plan::Plan,
    sequence::Sequence,
};

/// The sequence in the order that a plan is for.
fn in_order(sequence: &Sequence, plan: &Plan) -> Result<OpSequence, Failure> {
    let given = sequence.build()?;
    Ok(match &plan.reordered {
        Some(planned) => given.in_order_of(planned)?,
        None => given,
    })
}

/// Checks that the plan of a sequence is right: that nothing overwrites what is still needed, that everything lies in
/// the pool, and that the figures of the plan are right. It shares no code with the planners. The sequence may have
/// been built again; a plan with an order of its own is checked in that order.
///
/// # Safety
///
/// `sequence` comes from `memplan_sequence_new`, and `plan` is a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_verify_sequence(
    sequence: *const Sequence,
    plan: *const Plan,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let sequence = unsafe { reference(sequence, "sequence") }?;
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        right(&verify(&in_order(sequence, plan)?, &plan.inner))
    })
}

/// Explains the size of a plan, in UTF-8 with lines of at most 80 columns and a NUL at the end: its bounds, the chunks
/// at the peak, the stack of chunks that reaches the top, and what is free. `out` holds `n` bytes; what does not fit is
/// cut off, and `out` may be null if `n` is 0. `length` gets the bytes of the whole text without the NUL. `sequence`
/// names the steps by their operators; it may be null.
///
/// # Safety
///
/// `plan` is a plan, `sequence` is null or comes from `memplan_sequence_new`, `out` points to `n` bytes that may be
/// written, and `length` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memplan_plan_explain(
    plan: *const Plan,
    sequence: *const Sequence,
    out: *mut c_char,
    n: usize,
    length: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: promised by the caller.
        let plan = unsafe { reference(plan, "plan") }?;
        // SAFETY: promised by the caller.
        let sequence = unsafe { sequence.as_ref() };
        let sequence = sequence.map(|sequence| in_order(sequence, plan)).transpose()?;
        check(length, 1, "length")?;
        if n > 0 {
            check(out, n, "out")?;
        }
        let steps = sequence.as_ref();
        let summary = report::summary(&plan.inner, steps, "in-place as declared");
        let text = format!("{summary}\n{}", report::explain(&plan.inner, steps));
        // SAFETY: promised by the caller.
        unsafe {
            copy_text(&text, out, n);
            fill(length, 1, std::iter::once(text.len()), "lengths")
        }
    })
}
