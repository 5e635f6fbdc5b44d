//! The reasons for a pool's size.

use std::{cmp::Reverse, fmt::Write};

use crate::{
    Bytes, Plan, PlannedChunk, Step,
    report::{
        Size, StepNames, by_pool, count,
        fit::{line, name, text, wrapped},
        pool_title, printable,
        profile::{alive_at_peak, most_alive},
        short,
    },
};

/// The largest number of chunks that a list shows.
const SHOWN: usize = 40;

/// Lists the chunks alive at the peak, the stacks of chunks that reach the top of the pool, and the
/// bytes that are free at the peak.
#[must_use]
pub fn explain(plan: &Plan, steps: StepNames<'_>) -> String {
    let mut text = String::new();
    if plan.pools.len() > 1 {
        for (at, pool) in by_pool(plan).iter().enumerate() {
            let _ = writeln!(text, "In {}:\n", pool_title(plan, at));
            text.push_str(&explain(pool, steps));
            text.push_str(if at + 1 < plan.pools.len() { "\n" } else { "" });
        }
        return text;
    }
    explain_peak(&mut text, plan, steps);
    text.push('\n');
    explain_top(&mut text, plan, steps);
    text.push('\n');
    explain_free(&mut text, plan, steps);
    text
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn explain_peak(out: &mut String, plan: &Plan, steps: StepNames<'_>) {
    let alive = largest_at_peak(plan);
    if alive.is_empty() {
        out.push_str("Nothing is ever alive.\n");
        return;
    }
    let most = most_alive(plan);
    out.push_str(&wrapped(
        &match count(alive.len() as u64, "chunk") {
            chunks if plan.peak.is_empty() => {
                let peak = steps.short_name(plan.peak_step);
                format!("The most bytes are alive in {peak}: {}, in {chunks}.", Size(most))
            }
            chunks => format!("The most bytes may be alive together in {chunks}: {}.", Size(most)),
        },
        0,
    ));
    for (chunk, bytes) in alive.iter().take(SHOWN) {
        let share = 100.0 * *bytes as f64 / most.max(1) as f64;
        out.push_str(&line(vec![
            text(format!("  {share:5.1} %  {:>10}  ", format!("{:#}", Size(*bytes)))),
            name(printable(&chunk.name)),
            text(format!(", {}", lifetime(chunk.begin, chunk.end))),
        ]));
    }
    if let Some(more) = alive.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        let rest: u128 = alive[SHOWN..].iter().map(|(_, bytes)| u128::from(*bytes)).sum();
        let rest = Size(Bytes::try_from(rest).unwrap_or(Bytes::MAX));
        let more = count(more as u64, "smaller one");
        let _ = writeln!(out, "  and {more}, together {rest}");
    }
}

/// The chunks alive at the peak with their bytes, padding included, the largest first.
fn largest_at_peak(plan: &Plan) -> Vec<(&PlannedChunk, Bytes)> {
    let mut alive: Vec<(&PlannedChunk, Bytes)> = alive_at_peak(plan)
        .map(|(_, chunk)| (chunk, chunk.size.saturating_add(plan.padding)))
        .collect();
    alive.sort_by_key(|&(_, bytes)| Reverse(bytes));
    alive
}

/// Formats a lifetime as `step 4` or `steps 4 to 7`.
pub(super) fn lifetime(begin: Step, end: Step) -> String {
    match end.saturating_sub(1) {
        last if last <= begin => format!("step {begin}"),
        last => format!("steps {begin} to {last}"),
    }
}

/// Chunks that are alive together, from the highest down, and the free bytes between them.
#[derive(Debug)]
struct Stack<'a> {
    /// The steps in which all of them are alive, half-open.
    begin: Step,
    end: Step,
    places: Vec<Place<'a>>,
}

/// A range of addresses with its chunk, if any.
#[derive(Debug)]
struct Place<'a> {
    low: Bytes,
    high: Bytes,
    chunk: Option<&'a PlannedChunk>,
}

impl<'a> Place<'a> {
    fn of(plan: &Plan, chunk: &'a PlannedChunk) -> Self {
        Self { low: chunk.offset, high: plan.end_of(chunk), chunk: Some(chunk) }
    }
}

/// Returns the stack that ends at the top of the pool, then those that its chunks rest on in other
/// steps, and whether there are more. A chunk rests on the highest chunk below it that is alive
/// with it.
fn stacks(plan: &Plan) -> (Vec<Stack<'_>>, bool) {
    let with_bytes = || plan.chunks.iter().filter(|chunk| chunk.size > 0);
    let top = with_bytes().max_by_key(|chunk| (plan.end_of(chunk), Reverse(chunk.begin)));
    let Some(mut at) = top else { return (Vec::new(), false) };
    let mut stacks =
        vec![Stack { begin: at.begin, end: at.end, places: vec![Place::of(plan, at)] }];
    for _ in 1..SHOWN {
        if at.offset == 0 {
            return (stacks, false);
        }
        let Some(stack) = stacks.last_mut() else { break };
        let (begin, end) = (stack.begin, stack.end);
        let meets = |chunk: &PlannedChunk| chunk.begin < end && begin < chunk.end;
        let below = with_bytes()
            .filter(|chunk| chunk.begin < at.end && at.begin < chunk.end)
            .filter(|chunk| plan.end_of(chunk) <= at.offset)
            .max_by_key(|chunk| (plan.end_of(chunk), meets(chunk), Reverse(chunk.begin)));
        let floor = below.map_or(0, |chunk| plan.end_of(chunk));
        if floor < at.offset {
            stack.places.push(Place { low: floor, high: at.offset, chunk: None });
        }
        let Some(below) = below else { return (stacks, false) };
        if meets(below) {
            (stack.begin, stack.end) = (begin.max(below.begin), end.min(below.end));
            stack.places.push(Place::of(plan, below));
        } else {
            let (begin, end) = (at.begin.max(below.begin), at.end.min(below.end));
            stacks.push(Stack { begin, end, places: vec![Place::of(plan, below)] });
        }
        at = below;
    }
    (stacks, at.offset > 0)
}

fn explain_top(out: &mut String, plan: &Plan, steps: StepNames<'_>) {
    let (stacks, more) = stacks(plan);
    if stacks.is_empty() {
        out.push_str("The pool is empty.\n");
        return;
    }
    let width = plan.pool_size.to_string().len();
    let mut above: Option<&PlannedChunk> = None;
    for stack in &stacks {
        let when = match stack.end.saturating_sub(1) {
            last if last <= stack.begin => steps.short_name(stack.begin),
            _ => lifetime(stack.begin, stack.end),
        };
        match above {
            None => out.push_str(&wrapped(
                &format!(
                    "The pool, {}, ends with this stack of chunks, alive together in {when}:",
                    Size(plan.pool_size)
                ),
                0,
            )),
            Some(above) => {
                let above = short(&above.name);
                let words = format!("In {when}, {above} rests on:");
                out.push_str(&wrapped(&words, 0));
            }
        }
        for place in &stack.places {
            let range = format!(
                "  {:>width$} .. {:<width$}  {:>10}  ",
                place.low,
                place.high,
                format!("{:#}", Size(place.high - place.low)),
            );
            out.push_str(&match place.chunk {
                Some(chunk) => line(vec![
                    text(range),
                    name(printable(&chunk.name)),
                    text(format!(", {}", lifetime(chunk.begin, chunk.end))),
                ]),
                None => line(vec![text(range), text("free")]),
            });
        }
        above = stack.places.iter().rev().find_map(|place| place.chunk);
    }
    if more {
        out.push_str("  and more below\n");
    }
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn explain_free(out: &mut String, plan: &Plan, steps: StepNames<'_>) {
    let (most, peak) = (most_alive(plan), steps.short_name(plan.peak_step));
    if plan.pool_size == most {
        // With several streams, there is no step at which they are alive.
        let is_step = most > 0 && plan.peak.is_empty();
        let when = if is_step { format!(" in {peak}") } else { String::new() };
        out.push_str(&wrapped(&format!("The pool is no larger than the bytes alive{when}."), 0));
        return;
    }
    let free = plan.pool_size.saturating_sub(most);
    let share = 100.0 * free as f64 / plan.pool_size.max(1) as f64;
    let words = format!("{} of the pool ({share:.1} %) are free even in {peak}.", Size(free));
    out.push_str(&wrapped(&words, 0));
    explain_gaps(out, plan);
    if plan.proven_optimal {
        out.push_str("No plan is smaller under these rules (proven).\n");
    }
}

/// A range of bytes that is free at the peak.
#[derive(Debug)]
struct Gap<'a> {
    from: Bytes,
    bytes: Bytes,
    /// The chunk below; `None` at the bottom of the pool.
    below: Option<&'a PlannedChunk>,
    /// The chunk above; `None` at the top of the pool.
    above: Option<&'a PlannedChunk>,
}

/// The free ranges at the peak, the largest first.
fn gaps(plan: &Plan) -> Vec<Gap<'_>> {
    let mut alive: Vec<&PlannedChunk> = alive_at_peak(plan).map(|(_, chunk)| chunk).collect();
    alive.sort_by_key(|chunk| chunk.offset);
    let mut gaps = Vec::new();
    let (mut floor, mut below) = (0, None);
    for chunk in alive {
        if chunk.offset > floor {
            gaps.push(Gap { from: floor, bytes: chunk.offset - floor, below, above: Some(chunk) });
        }
        if plan.end_of(chunk) >= floor {
            (floor, below) = (plan.end_of(chunk), Some(chunk));
        }
    }
    if plan.pool_size > floor {
        gaps.push(Gap { from: floor, bytes: plan.pool_size - floor, below, above: None });
    }
    gaps.sort_by_key(|gap| Reverse(gap.bytes));
    gaps
}

fn explain_gaps(out: &mut String, plan: &Plan) {
    let gaps = gaps(plan);
    let width = plan.pool_size.to_string().len();
    let label = |chunk: Option<&'_ PlannedChunk>, edge: &'static str| match chunk {
        Some(chunk) => name(printable(&chunk.name).into_owned()),
        None => text(edge),
    };
    for gap in gaps.iter().take(SHOWN) {
        let range = format!(
            "  {:>width$} .. {:<width$}  {:>10}  free, between ",
            gap.from,
            gap.from + gap.bytes,
            format!("{:#}", Size(gap.bytes)),
        );
        out.push_str(&line(vec![
            text(range),
            label(gap.below, "the floor"),
            text(" and "),
            label(gap.above, "the top"),
        ]));
    }
    if let Some(more) = gaps.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        let _ = writeln!(out, "  and {}", count(more as u64, "smaller one"));
    }
}

/// Returns the whole explanation as numbers, for machines. Lifetimes and address ranges are
/// half-open.
#[cfg(feature = "files")]
#[must_use]
pub fn explain_json(plan: &Plan, steps: StepNames<'_>) -> serde_json::Value {
    use serde_json::json;
    let chunk = |chunk: &PlannedChunk| {
        json!({
            "id": chunk.id, "name": chunk.name, "size": chunk.size,
            "begin": chunk.begin, "end": chunk.end, "offset": chunk.offset,
        })
    };
    let (stacks, more) = stacks(plan);
    let bytes_alive = most_alive(plan);
    json!({
        "format": "memplan-explanation/1",
        "strategy": plan.strategy.map(crate::Strategy::name),
        "pool_size": plan.pool_size,
        "bytes_alive": bytes_alive,
        "proven_bound": plan.lower_bound.max(bytes_alive),
        "claimed_bound": plan.claimed_bound,
        "proven_optimal": plan.proven_optimal,
        "naive_size": plan.naive_size,
        "peak": {
            "step": plan.peak_step,
            "operator": steps.operator(plan.peak_step),
            "chunks": largest_at_peak(plan).iter().map(|(at, _)| chunk(at)).collect::<Vec<_>>(),
            "free": gaps(plan).iter().map(|gap| json!({
                "low": gap.from, "high": gap.from + gap.bytes,
                "below": gap.below.map(|chunk| chunk.id), "above": gap.above.map(|chunk| chunk.id),
            })).collect::<Vec<_>>(),
        },
        "stacks": stacks.iter().map(|stack| json!({
            "begin": stack.begin, "end": stack.end,
            "places": stack.places.iter().map(|place| json!({
                "low": place.low, "high": place.high, "chunk": place.chunk.map(chunk),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "more_stacks": more,
    })
}
