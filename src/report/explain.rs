//! Why a pool is as large as it is.

use std::{cmp::Reverse, fmt::Write};

use crate::{
    Bytes, Plan, PlannedChunk,
    report::{
        Size, StepNames, count, printable,
        profile::{alive_at_peak, most_alive},
    },
};

/// How many chunks a list shows.
const SHOWN: usize = 40;

/// The peak and who is alive there; the stack of chunks that reaches the top of the pool; what the
/// plan wastes.
#[must_use]
pub fn explain(plan: &Plan, steps: StepNames<'_>) -> String {
    let mut text = String::new();
    explain_peak(&mut text, plan, steps);
    text.push('\n');
    explain_top(&mut text, plan);
    text.push('\n');
    explain_waste(&mut text, plan, steps);
    text
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn explain_peak(text: &mut String, plan: &Plan, steps: StepNames<'_>) {
    let mut alive: Vec<(&PlannedChunk, Bytes)> = alive_at_peak(plan)
        .map(|(_, chunk)| (chunk, chunk.size.saturating_add(plan.padding)))
        .collect();
    if alive.is_empty() {
        text.push_str("Nothing is ever alive.\n");
        return;
    }
    alive.sort_by_key(|&(_, bytes)| Reverse(bytes));
    let most = most_alive(plan);
    let is_bound = if most == plan.lower_bound { "the lower bound, " } else { "" };
    let _ = writeln!(
        text,
        "Most bytes are alive in {}: {is_bound}{}, in {}.",
        steps.name(plan.peak_step),
        Size(most),
        count(alive.len() as u64, "chunk"),
    );
    for (chunk, bytes) in alive.iter().take(SHOWN) {
        let share = 100.0 * *bytes as f64 / most.max(1) as f64;
        let _ = writeln!(
            text,
            "  {share:5.1} %  {:>10}  {}, alive in steps {} to {}",
            format!("{:#}", Size(*bytes)),
            printable(&chunk.name),
            chunk.begin,
            chunk.end.saturating_sub(1),
        );
    }
    if let Some(more) = alive.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        let rest: u128 = alive[SHOWN..].iter().map(|(_, bytes)| u128::from(*bytes)).sum();
        let rest = Size(Bytes::try_from(rest).unwrap_or(Bytes::MAX));
        let more = count(more as u64, "smaller one");
        let _ = writeln!(text, "  and {more}, together {rest}");
    }
}

/// From the highest chunk down: each rests on the highest chunk below it that is alive with it.
fn explain_top(text: &mut String, plan: &Plan) {
    let with_bytes = || plan.chunks.iter().filter(|chunk| chunk.size > 0);
    let Some(top) = with_bytes().max_by_key(|chunk| (plan.end_of(chunk), Reverse(chunk.begin)))
    else {
        text.push_str("The pool is empty.\n");
        return;
    };
    let _ =
        writeln!(text, "The pool, {}, ends where this stack of chunks does:", Size(plan.pool_size));
    let mut at = top;
    for _ in 0..SHOWN {
        let _ = writeln!(
            text,
            "  {:>12} .. {:<12}  {:>10}  {}, steps {} to {}",
            at.offset,
            plan.end_of(at),
            format!("{:#}", Size(at.size)),
            printable(&at.name),
            at.begin,
            at.end.saturating_sub(1),
        );
        if at.offset == 0 {
            return;
        }
        let below = with_bytes()
            .filter(|chunk| chunk.begin < at.end && at.begin < chunk.end)
            .filter(|chunk| plan.end_of(chunk) <= at.offset)
            .max_by_key(|chunk| (plan.end_of(chunk), Reverse(chunk.begin)));
        let floor = below.map_or(0, |chunk| plan.end_of(chunk));
        if floor < at.offset {
            let _ = writeln!(
                text,
                "  {floor:>12} .. {:<12}  {:>10}  nothing",
                at.offset,
                format!("{:#}", Size(at.offset - floor)),
            );
        }
        let Some(below) = below else { return };
        at = below;
    }
    text.push_str("  and more below\n");
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn explain_waste(text: &mut String, plan: &Plan, steps: StepNames<'_>) {
    let most = most_alive(plan);
    if plan.pool_size == most {
        text.push_str("Nothing is wasted: the pool is as large as the lower bound.\n");
        return;
    }
    let waste = plan.pool_size.saturating_sub(most);
    let _ = writeln!(
        text,
        "{} of the pool ({:.1} %) are free even in {}.",
        Size(waste),
        100.0 * waste as f64 / plan.pool_size.max(1) as f64,
        steps.name(plan.peak_step),
    );
    explain_gaps(text, plan);
    if plan.proven_optimal {
        text.push_str("No plan is smaller under these rules: this is proven.\n");
    }
}

/// What lies free at the peak, the largest first.
fn explain_gaps(text: &mut String, plan: &Plan) {
    let mut alive: Vec<&PlannedChunk> = alive_at_peak(plan).map(|(_, chunk)| chunk).collect();
    alive.sort_by_key(|chunk| chunk.offset);
    // Where a gap begins, its size, and who lies below and above it.
    let mut gaps: Vec<(Bytes, Bytes, &str, &str)> = Vec::new();
    let (mut floor, mut below) = (0, "the floor");
    for chunk in alive {
        if chunk.offset > floor {
            gaps.push((floor, chunk.offset - floor, below, &chunk.name));
        }
        if plan.end_of(chunk) >= floor {
            (floor, below) = (plan.end_of(chunk), &chunk.name);
        }
    }
    if plan.pool_size > floor {
        gaps.push((floor, plan.pool_size - floor, below, "the end of the pool"));
    }
    gaps.sort_by_key(|&(_, bytes, ..)| Reverse(bytes));
    for (from, bytes, below, above) in gaps.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "  {from:>12} .. {:<12}  {:>10}  free, between {} and {}",
            from + bytes,
            format!("{:#}", Size(*bytes)),
            printable(below),
            printable(above),
        );
    }
    if let Some(more) = gaps.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        let _ = writeln!(text, "  and {}", count(more as u64, "smaller one"));
    }
}
