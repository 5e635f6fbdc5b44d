//! The reason why a problem does not fit: chunks that cannot lie together in a pool.

use std::{cmp::Reverse, fmt::Write};

use crate::{
    Bytes, OpSequence, Problem,
    report::{
        Size,
        fit::{self, line, wrapped},
        printable, short_step,
        times::lifetime,
    },
    search::Conflict,
};

/// Lists the chunks of a conflict with sizes and lifetimes, and explains why they do not fit into
/// `capacity` bytes.
#[must_use]
pub fn conflict(
    problem: &Problem,
    capacity: Bytes,
    conflict: &Conflict,
    steps: Option<&OpSequence>,
) -> String {
    let mut text = String::new();
    let count = match &conflict.roots[..] {
        [_] => "this chunk alone does not".to_owned(),
        roots => format!("these {} chunks alone do not", roots.len()),
    };
    text.push_str(&wrapped(&format!("It does not fit into {}: {count}.", Size(capacity)), 0));
    let mut roots = conflict.roots.clone();
    roots.sort_by_key(|&root| Reverse(problem.padded_size(root)));
    for &root in &roots {
        let outline = problem.bounding_box(root);
        let overwritten = problem.overwriter(root).is_some();
        let over = if overwritten { ", with what is written over it" } else { "" };
        text.push_str(&line(vec![
            fit::text(format!("  {:>10}  ", format!("{:#}", Size(problem.padded_size(root))))),
            fit::name(printable(&problem.name(root)).into_owned()),
            fit::text(format!(", {}{over}", lifetime(outline.begin, outline.end))),
        ]));
    }
    let sum: u128 = roots.iter().map(|&root| u128::from(problem.padded_size(root))).sum();
    if roots.len() > 1 {
        let sum = Size(Bytes::try_from(sum).unwrap_or(Bytes::MAX));
        let _ = writeln!(text, "  {:>10}  together", format!("{sum:#}"));
    }
    let peak_set = problem.peak_of_chains(&roots);
    let (step, live) = (short_step(steps, peak_set.step), Size(peak_set.bytes));
    let reason = if live.0 > capacity {
        let excess = Size(live.0 - capacity);
        format!("At {step}, {live} of them are alive: {excess} more than the capacity.")
    } else {
        format!(
            "Their peak is {live}, at {step}; but in every layout within the capacity, two of them that are alive together overlap (proven by the search)."
        )
    };
    text.push_str(&wrapped(&reason, 0));
    text.push_str(&wrapped(
        if roots.len() == 1 {
            "It must shrink or lie outside the pool."
        } else if conflict.irreducible {
            "One of these must shrink. Without any one of them, the others listed here fit; other chunks may still not fit."
        } else {
            "At least one of these must shrink. Fewer of them may already not fit; --effort extends the search."
        },
        0,
    ));
    text
}
