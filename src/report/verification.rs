//! The result of verifying a plan, as text.

use crate::{
    Plan,
    report::{
        Size, bound_name, count, printable,
        summary::{CLAIMED, PEAK, Row, UNCHECKED, table},
    },
    verify::Verification,
};

/// Reports that a plan is right, with its figures, or lists its violations, one a line. The peak is the
/// one that was counted; a larger bound in the plan is reported as a claim.
#[must_use]
pub fn verification(plan: &Plan, verification: &Verification) -> String {
    let violations = &verification.violations;
    if !violations.is_empty() {
        let mut text = String::new();
        for violation in violations {
            text.push_str(&printable(&violation.to_string()));
            text.push('\n');
        }
        text.push_str("wrong: ");
        text.push_str(&count(violations.len() as u64, "violation"));
        text.push('\n');
        return text;
    }
    let alive = verification.bytes_alive;
    // Only a search can prove a bound above the bytes alive.
    let mut checked = plan.clone();
    checked.lower_bound = plan.lower_bound.min(alive);
    let mut rows = match checked.ratio() {
        1.0 => vec![Row::new("pool", plan.pool_size, "= peak of live tensors".to_owned())],
        ratio => vec![
            Row::new("pool", plan.pool_size, format!("= {ratio:.3} x {PEAK}")),
            Row::new(PEAK, alive, "the most bytes live at one step".to_owned()),
        ],
    };
    if plan.lower_bound > alive {
        rows.push(Row::new(CLAIMED, plan.lower_bound, UNCHECKED.to_owned()));
    }
    let chunks = count(plan.chunks.len() as u64, "chunk");
    let tensors = count(plan.tensors.len() as u64, "tensor");
    format!("correct: {chunks}, {tensors}\n{}", table(&rows))
}

/// The pool as a multiple of the larger bound: `1.071 x the peak, 14.0 KiB (14 336 B)`.
#[must_use]
pub fn bound_ratio(plan: &Plan) -> String {
    format!("{:.3} x the {}, {}", plan.ratio(), bound_name(plan), Size(plan.lower_bound))
}
