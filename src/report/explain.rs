//! The reasons for a pool's size.

use std::{cmp::Reverse, fmt::Write};

use crate::{
    Bytes, OpSequence, Plan, PlannedChunk, Step,
    boxes::{Boxes, PlacedBox},
    report::{
        Size,
        alive::{Peak, Piece, bytes_by_chunk},
        by_pool, count,
        fit::{line, name, text, wrapped},
        in_buffers,
        kept::kept,
        pool_title, printable,
        reasons::{Reasons, sentences},
        scoped, short,
        times::Times,
    },
};

/// The largest number of chunks that a list shows.
const SHOWN: usize = 40;
/// The largest number of reasons in sentences.
const REASONS: usize = 6;
/// The first lines of an explanation with several streams.
const CLOCK_SUMS: &str = "There are several streams, so times are given as clock sums: the number of \
steps that are over, on all streams together.";

/// Lists the chunks alive at the peak, the stacks of chunks that reach the top of the pool, and the
/// bytes that are free at the peak.
#[must_use]
pub fn explain(plan: &Plan, steps: Option<&OpSequence>) -> String {
    let plan = &*in_buffers(plan);
    let times = Times::of(plan, steps);
    let pools = by_pool(plan);
    let mut text = String::new();
    if times.is_sum() {
        text.push_str(&wrapped(CLOCK_SUMS, 0));
        text.push('\n');
    }
    for (at, pool) in pools.iter().enumerate() {
        if pools.len() > 1 {
            let _ = writeln!(text, "In {}:\n", pool_title(plan, at));
        }
        explain_peak(&mut text, pool, times);
        text.push('\n');
        explain_top(&mut text, pool, times);
        text.push('\n');
        explain_free(&mut text, pool, times);
        text.push_str(if at + 1 < pools.len() { "\n" } else { "" });
    }
    text
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn explain_peak(out: &mut String, plan: &Plan, times: Times<'_>) {
    let peak = Peak::of(plan);
    let alive = largest_at_peak(plan, peak);
    if alive.is_empty() {
        out.push_str("Nothing is ever alive.\n");
        return;
    }
    let most = peak.bytes;
    out.push_str(&wrapped(
        &match count(alive.len() as u64, "chunk") {
            chunks if plan.peak.is_empty() => {
                let peak = times.short_name(peak.step);
                format!("Peak, at {peak}: {}, in {chunks}:", Size(most))
            }
            chunks => format!("Up to {} may be alive together, in {chunks}:", Size(most)),
        },
        0,
    ));
    let row = |bytes: Bytes| {
        let share = 100.0 * bytes as f64 / most.max(1) as f64;
        text(format!("  {share:5.1} %  {:>10}  ", format!("{:#}", Size(bytes))))
    };
    for &(at, bytes) in alive.iter().take(SHOWN) {
        let chunk = &plan.chunks[at];
        out.push_str(&line(vec![
            row(bytes),
            name(printable(&chunk.name)),
            text(format!(", {}", times.lifetime(chunk.begin, chunk.end))),
        ]));
    }
    let sum = |alive: &[(usize, Bytes)]| {
        alive.iter().map(|(_, bytes)| *bytes).fold(0, Bytes::saturating_add)
    };
    if let Some(more) = alive.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        let rest = Size(sum(&alive[SHOWN..]));
        let more = count(more as u64, "smaller one");
        let _ = writeln!(out, "  and {more}, together {rest}");
    }
    if let Some(added) = most.checked_sub(sum(&alive)).filter(|&added| added > 0) {
        let words = format!("added by the alignment of {} B", plan.alignment);
        out.push_str(&line(vec![row(added), text(words)]));
    }
    let kept = kept(plan, times);
    for (at, kept) in alive.iter().take(SHOWN).filter_map(|&(at, _)| Some((at, kept(at)?))) {
        out.push_str(&wrapped(&kept.sentence(plan, at, times), 0));
    }
    if times.has_peak {
        let reasons = Reasons::of(plan, times);
        let is_idle =
            |&(at, _): &&(usize, Bytes)| !reasons.is_used(*at, peak.step) && kept(*at).is_none();
        let idle = alive.iter().take(SHOWN).filter(is_idle);
        let found = idle.filter_map(|&(at, _)| Some((at, reasons.last(at)?)));
        let sentences = sentences(plan, found, times).into_iter().take(REASONS);
        sentences.for_each(|sentence| out.push_str(&wrapped(&sentence, 0)));
    }
}

/// The chunks alive at the peak with their bytes, padding included, the largest first. Bytes that chunks share
/// count for one of them.
fn largest_at_peak(plan: &Plan, peak: Peak) -> Vec<(usize, Bytes)> {
    let mut alive = bytes_by_chunk(&peak.pieces(plan));
    alive.sort_by_key(|&(_, bytes)| Reverse(bytes));
    alive
}

/// Chunks that are alive together, from the highest down, and the free bytes between them.
#[derive(Debug)]
struct Stack<'a> {
    /// The steps in which all of them are alive, half-open.
    begin: Step,
    end: Step,
    places: Vec<Place<'a>>,
}

/// A range of addresses and what lies there.
#[derive(Debug)]
struct Place<'a> {
    low: Bytes,
    high: Bytes,
    content: Content<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Content<'a> {
    Chunk(&'a PlannedChunk),
    Free,
    Reserved,
}

impl<'a> Place<'a> {
    fn chunk(&self) -> Option<&'a PlannedChunk> {
        match self.content {
            Content::Chunk(chunk) => Some(chunk),
            Content::Free | Content::Reserved => None,
        }
    }
}

/// Cuts a run of addresses without chunks at the reserved ranges of the pool, from the highest down.
fn unused<'a>(plan: &Plan, low: Bytes, high: Bytes) -> impl Iterator<Item = Place<'a>> {
    let mut places = Vec::new();
    let mut floor = low;
    for (_, reserved) in &plan.reserved {
        let (from, to) = (reserved.start.max(floor), reserved.end.min(high));
        if from < to {
            places.push((floor, from, Content::Free));
            places.push((from, to, Content::Reserved));
            floor = to;
        }
    }
    places.push((floor, high, Content::Free));
    let places = places.into_iter().rev().filter(|(low, high, _)| low < high);
    places.map(|(low, high, content)| Place { low, high, content })
}

/// Bytes of a chunk in some steps.
#[derive(Clone, Copy, Debug)]
struct Rest<'a> {
    chunk: &'a PlannedChunk,
    own: PlacedBox,
}

impl Rest<'_> {
    fn meets(&self, begin: Step, end: Step) -> bool {
        self.own.begin < end && begin < self.own.end
    }
}

impl<'a> From<Rest<'a>> for Place<'a> {
    fn from(Rest { chunk, own }: Rest<'a>) -> Self {
        Self { low: own.low, high: own.high, content: Content::Chunk(chunk) }
    }
}

/// The pieces of the chunks, each from the step in which its operator runs.
fn rests(plan: &Plan) -> Vec<Rest<'_>> {
    let boxes = Boxes::of(plan);
    let rest = |Piece { chunk: at, own }: Piece| {
        let chunk = &plan.chunks[at];
        let is_first = boxes.is_simple(at) && own.begin == plan.own_begin(chunk);
        let begin = if is_first { chunk.begin } else { own.begin };
        Rest { chunk, own: PlacedBox { begin, ..own } }
    };
    plan.pieces().into_iter().map(rest).collect()
}

/// Returns whether the pool is no larger than the peak, which then explains its size.
fn is_full_at_peak(plan: &Plan) -> bool {
    let peak = Peak::of(plan);
    plan.peak.is_empty() && peak.bytes > 0 && plan.pool_size == peak.bytes
}

/// The chunks alive at the peak, from the top of the pool down.
fn stack_at_peak(plan: &Plan) -> Stack<'_> {
    let mut pieces = Peak::of(plan).pieces(plan);
    pieces.sort_by_key(|piece| Reverse(piece.own.low));
    let mut stack = Stack { begin: 0, end: Step::MAX, places: Vec::new() };
    let mut floor = plan.pool_size;
    for Piece { chunk, own } in pieces {
        stack.places.extend(unused(plan, own.high, floor));
        let content = Content::Chunk(&plan.chunks[chunk]);
        stack.places.push(Place { low: own.low, high: own.high, content });
        (stack.begin, stack.end) = (stack.begin.max(own.begin), stack.end.min(own.end));
        floor = own.low;
    }
    stack.places.extend(unused(plan, 0, floor));
    stack
}

/// Returns the stack that ends at the top of the pool, then those that its chunks rest on in other
/// steps, and whether there are more. A chunk rests on the highest chunk below it that is alive
/// with it. If the peak alone fills the pool, its chunks are the only stack.
fn stacks(plan: &Plan) -> (Vec<Stack<'_>>, bool) {
    if is_full_at_peak(plan) {
        return (vec![stack_at_peak(plan)], false);
    }
    let pieces = rests(plan);
    let top = pieces.iter().max_by_key(|piece| (piece.own.high, Reverse(piece.own.begin)));
    let Some(&(mut at)) = top else { return (Vec::new(), false) };
    let mut stacks = vec![Stack { begin: at.own.begin, end: at.own.end, places: vec![at.into()] }];
    for _ in 1..SHOWN {
        if at.own.low == 0 {
            return (stacks, false);
        }
        let Some(stack) = stacks.last_mut() else { break };
        let (begin, end) = (stack.begin, stack.end);
        let below = pieces
            .iter()
            .filter(|piece| piece.meets(at.own.begin, at.own.end) && piece.own.high <= at.own.low)
            .max_by_key(|p| (p.own.high, p.meets(begin, end), Reverse(p.own.begin)));
        let floor = below.map_or(0, |piece| piece.own.high);
        if floor < at.own.low {
            stack.places.extend(unused(plan, floor, at.own.low));
        }
        let Some(&below) = below else { return (stacks, false) };
        if below.meets(begin, end) {
            (stack.begin, stack.end) = (begin.max(below.own.begin), end.min(below.own.end));
            stack.places.push(below.into());
        } else {
            let begin = at.own.begin.max(below.own.begin);
            let end = at.own.end.min(below.own.end);
            stacks.push(Stack { begin, end, places: vec![below.into()] });
        }
        at = below;
    }
    (stacks, at.own.low > 0)
}

fn explain_top(out: &mut String, plan: &Plan, times: Times<'_>) {
    let (stacks, more) = stacks(plan);
    if stacks.is_empty() {
        out.push_str("The pool is empty.\n");
        return;
    }
    let width = plan.pool_size.to_string().len();
    let mut above: Option<&PlannedChunk> = None;
    for stack in &stacks {
        let when = match stack.end.saturating_sub(1) {
            last if last <= stack.begin => times.short_name(stack.begin),
            _ => times.lifetime(stack.begin, stack.end),
        };
        match above {
            None if is_full_at_peak(plan) => {
                out.push_str("They fill the pool, from the top:\n");
            }
            None => out.push_str(&wrapped(
                &format!(
                    "The pool, {}, ends with this stack, alive together at {when}:",
                    Size(plan.pool_size)
                ),
                0,
            )),
            Some(above) => {
                let above = short(&above.name);
                let words = format!("At {when}, {above} rests on:");
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
            out.push_str(&match place.content {
                Content::Chunk(chunk) => line(vec![
                    text(range),
                    name(printable(&chunk.name)),
                    text(format!(", {}", times.lifetime(chunk.begin, chunk.end))),
                ]),
                Content::Free => line(vec![text(range), text("free")]),
                Content::Reserved => line(vec![text(range), text("reserved")]),
            });
        }
        above = stack.places.iter().rev().find_map(Place::chunk);
    }
    if more {
        out.push_str("  and more below\n");
    }
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn explain_free(out: &mut String, plan: &Plan, times: Times<'_>) {
    let alive = Peak::of(plan);
    let most = alive.bytes;
    let peak = times.short_name(alive.step);
    if plan.pool_size == most {
        out.push_str("The pool is no larger than the peak.\n");
        return;
    }
    let free = plan.pool_size.saturating_sub(most);
    let share = 100.0 * free as f64 / plan.pool_size.max(1) as f64;
    let when = if times.has_peak {
        format!("in {peak}")
    } else {
        "while these chunks are alive".to_owned()
    };
    let what = if plan.reserved.is_empty() { "free" } else { "free or reserved" };
    let words = format!("{} of the pool ({share:.1} %) is {what} even {when}.", Size(free));
    out.push_str(&wrapped(&words, 0));
    explain_gaps(out, plan, alive);
    if plan.proven_optimal {
        out.push_str(&wrapped(&format!("No {} is smaller (proven).", scoped(plan)), 0));
    }
}

/// A range of bytes that is free at the peak, or reserved.
#[derive(Debug)]
struct Gap<'a> {
    from: Bytes,
    bytes: Bytes,
    is_reserved: bool,
    /// The chunk below; `None` at the bottom of the pool.
    below: Option<&'a PlannedChunk>,
    /// The chunk above; `None` at the top of the pool.
    above: Option<&'a PlannedChunk>,
}

/// The free ranges at the peak, the largest first.
fn gaps(plan: &Plan, peak: Peak) -> Vec<Gap<'_>> {
    let mut alive = peak.pieces(plan);
    alive.sort_by_key(|piece| piece.own.low);
    let mut gaps = Vec::new();
    let mut push = |low: Bytes, high: Bytes, below, above| {
        gaps.extend(unused(plan, low, high).map(|Place { low, high, content }| Gap {
            from: low,
            bytes: high - low,
            is_reserved: matches!(content, Content::Reserved),
            below,
            above,
        }));
    };
    let (mut floor, mut below) = (0, None);
    for Piece { chunk, own } in alive {
        let chunk = &plan.chunks[chunk];
        if own.low > floor {
            push(floor, own.low, below, Some(chunk));
        }
        if own.high >= floor {
            (floor, below) = (own.high, Some(chunk));
        }
    }
    if plan.pool_size > floor {
        push(floor, plan.pool_size, below, None);
    }
    gaps.sort_by_key(|gap| Reverse(gap.bytes));
    gaps
}

fn explain_gaps(out: &mut String, plan: &Plan, peak: Peak) {
    let gaps = gaps(plan, peak);
    let width = plan.pool_size.to_string().len();
    let label = |chunk: Option<&'_ PlannedChunk>, edge: &'static str| match chunk {
        Some(chunk) => name(printable(&chunk.name).into_owned()),
        None => text(edge),
    };
    for gap in gaps.iter().take(SHOWN) {
        let range = format!(
            "  {:>width$} .. {:<width$}  {:>10}  {}, between ",
            gap.from,
            gap.from + gap.bytes,
            format!("{:#}", Size(gap.bytes)),
            if gap.is_reserved { "reserved" } else { "free" },
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

/// Returns the whole explanation as JSON. Lifetimes and address ranges are half-open. If there are
/// several pools, each has an explanation of its own under `pools`.
#[cfg(feature = "files")]
#[must_use]
pub fn explain_json(plan: &Plan, steps: Option<&OpSequence>) -> serde_json::Value {
    use serde_json::json;
    let plan = &*in_buffers(plan);
    let times = Times::of(plan, steps);
    let pools = by_pool(plan);
    let explained = pools.iter().map(|pool| pool_json(pool, times));
    let mut value = match plan.pools.len() {
        0 | 1 => explained.fold(json!({}), |_, pool| pool),
        _ => {
            let pools = explained.zip(&plan.pools).map(|(mut own, pool)| {
                own["name"] = json!(pool.name);
                own
            });
            json!({
                "pool_size": plan.pool_size,
                "proven_bound": plan.lower_bound,
                "claimed_bound": plan.claimed_bound,
                "proven_optimal": plan.proven_optimal,
                "scope": plan.scope.name(),
                "unshared_size": plan.unshared_size(),
                "pools": pools.collect::<Vec<_>>(),
            })
        }
    };
    value["format"] = json!("memplan-explanation/1");
    value["strategy"] = json!(plan.strategy.map(crate::Strategy::name));
    value
}

#[cfg(feature = "files")]
fn pool_json(plan: &Plan, times: Times<'_>) -> serde_json::Value {
    use crate::report::reasons::Reason;

    use serde_json::json;
    let chunk = |chunk: &PlannedChunk| {
        json!({
            "id": chunk.id, "name": chunk.name, "size": chunk.size,
            "begin": chunk.begin, "end": chunk.end, "offset": chunk.offset,
        })
    };
    let (stacks, more) = stacks(plan);
    let peak = Peak::of(plan);
    let alive = largest_at_peak(plan, peak).into_iter();
    let reason = kept(plan, times);
    let reasons = Reasons::of(plan, times);
    let alive = alive.map(|(at, bytes)| {
        let mut value = chunk(&plan.chunks[at]);
        value["bytes"] = json!(bytes);
        if let Some(kept) = reason(at) {
            value["kept_by"] =
                json!({"views": kept.views, "bytes": kept.bytes, "until": kept.until});
        }
        if times.has_peak && times.steps().is_some() {
            value["is_used"] = json!(reasons.is_used(at, peak.step));
        }
        match reasons.last(at).filter(|_| times.has_peak) {
            Some(Reason::Read { step, tensor, .. }) => {
                value["last_read"] = json!({"step": step, "tensor": tensor});
            }
            Some(Reason::Result { tensor }) => value["result"] = json!(tensor),
            None => {}
        }
        value
    });
    json!({
        "pool_size": plan.pool_size,
        "bytes_alive": peak.bytes,
        "proven_bound": plan.lower_bound,
        "claimed_bound": plan.claimed_bound,
        "proven_optimal": plan.proven_optimal,
        "scope": plan.scope.name(),
        "unshared_size": plan.unshared_size(),
        "peak": {
            "step": times.has_peak.then_some(peak.step),
            "operator": times.has_peak.then(|| super::operator_at(times.steps(), peak.step)).flatten(),
            "chunks": alive.collect::<Vec<_>>(),
            "free": gaps(plan, peak).iter().filter(|gap| !gap.is_reserved).map(|gap| json!({
                "low": gap.from, "high": gap.from + gap.bytes,
                "below": gap.below.map(|chunk| chunk.id), "above": gap.above.map(|chunk| chunk.id),
            })).collect::<Vec<_>>(),
        },
        "stacks": stacks.iter().map(|stack| json!({
            "begin": stack.begin, "end": stack.end,
            "places": stack.places.iter().map(|place| json!({
                "low": place.low, "high": place.high, "chunk": place.chunk().map(chunk),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "more_stacks": more,
    })
}
