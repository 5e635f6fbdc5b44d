//! Why a problem does not fit: the chunks that cannot lie together in a pool.

use std::{cmp::Reverse, fmt::Write};

use crate::{
    Bytes, Problem,
    planner::search::Conflict,
    report::{Size, StepNames, printable},
};

/// The chunks of a conflict with sizes and lives, and in words what keeps them from fitting into
/// `capacity` bytes.
#[must_use]
pub fn conflict(
    problem: &Problem,
    capacity: Bytes,
    conflict: &Conflict,
    steps: StepNames<'_>,
) -> String {
    let mut text = String::new();
    let count = match &conflict.roots[..] {
        [_] => "this chunk alone does not".to_owned(),
        roots => format!("these {} chunks alone do not", roots.len()),
    };
    let _ = writeln!(text, "It does not fit into {}: {count}.", Size(capacity));
    let mut roots = conflict.roots.clone();
    roots.sort_by_key(|&root| Reverse(problem.padded_size(root)));
    let labels = problem.labels();
    for &root in &roots {
        let outline = problem.bounding_box(root);
        let overwritten = problem.overwriter(root).is_some();
        let _ = writeln!(
            text,
            "  {:>10}  {}, alive in steps {} to {}{}",
            format!("{:#}", Size(problem.padded_size(root))),
            printable(&labels.name(root)),
            outline.begin,
            outline.end.saturating_sub(1),
            if overwritten { ", with what is written over it" } else { "" },
        );
    }
    let sum: u128 = roots.iter().map(|&root| u128::from(problem.padded_size(root))).sum();
    let _ = writeln!(
        text,
        "  {:>10}  together",
        format!("{:#}", Size(Bytes::try_from(sum).unwrap_or(Bytes::MAX)))
    );
    let crowd = problem.lower_bound_of(&roots);
    let (step, live) = (steps.name(crowd.peak_step), Size(crowd.bytes));
    if live.0 > capacity {
        let _ = writeln!(
            text,
            "In {step} {live} of them are alive, {} more than there are.",
            Size(live.0 - capacity)
        );
    } else {
        let _ = writeln!(
            text,
            "Never more than {live} of them are alive at once, in {step}; yet wherever they lie, two that are alive\nat once share bytes, or one ends above the capacity. The search has proven this."
        );
    }
    text.push_str(if conflict.irreducible {
        "As long as they stay as they are, nothing else that changes helps; without any one of them, the\nothers fit.\n"
    } else {
        "As long as they stay as they are, nothing else that changes helps. The search ended before it could\ntell whether fewer do not fit, either: more effort may name fewer.\n"
    });
    text
}
