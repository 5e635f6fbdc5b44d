//! A recording of allocations: live bytes or fragmentation, and the lines of code that make the peak.

use std::{cmp::Reverse, collections::HashMap, fmt::Write};

use crate::{
    Bytes, Plan,
    import::{Format, recording::Recording},
    plan::Scope,
    problem::ChunkId,
    report::{
        Size,
        alive::{Peak, bytes_by_chunk},
        count,
        fit::{line, name, text, wrapped},
        printable,
        summary::{Row, table},
    },
};

/// The largest number of lines of code that are listed.
const SHOWN: usize = 20;

/// Reports what was recorded, whether live bytes or fragmentation determine its size, and which lines of code allocated
/// the bytes of the peak. `plan` is a plan of the recorded chunks.
#[must_use]
pub fn recording(recording: &Recording, plan: &Plan) -> String {
    let mut text = head(recording, plan);
    text.push_str("\nLive bytes or fragmentation?\n");
    text.push_str(&account(recording, plan));
    let what = match recording.format {
        Format::Xla => "values",
        Format::Pte => "operators",
        _ => "lines of code",
    };
    let _ = writeln!(text, "\nWhich {what} make the peak?");
    text.push_str(&lines(recording, plan));
    text
}

fn head(recording: &Recording, plan: &Plan) -> String {
    let events = match recording.format {
        Format::Xla | Format::Pte => count(recording.events, "instruction"),
        _ => count(recording.events, "event"),
    };
    let chunks = count(plan.chunks.len() as u64, "chunk");
    let (tool, device) = (tool(recording.format), printable(&recording.device));
    let mut text = wrapped(&format!("{tool}, {device}: {events}, {chunks}"), 2);
    let mut note = |words: String| text.push_str(&wrapped(&format!("  {words}"), 2));
    let (before, left) = (recording.begun_before, recording.left);
    if before > 0 || left > 0 {
        note(format!(
            "outside the recording: {} begun before it, {left} left after it; they are alive from its beginning, or to its end",
            count(before, "chunk")
        ));
    }
    if recording.lost > 0 {
        note(format!(
            "{} without a recorded release; each ends where its address is allocated again",
            count(recording.lost, "chunk")
        ));
    }
    if recording.streams > 1 {
        note(format!(
            "{} streams: where chunks of different streams share bytes, one must wait for the other",
            recording.streams
        ));
    }
    if recording.delegates > 0 {
        note(format!(
            "{} of delegates, whose memory is their own",
            count(recording.delegates, "call")
        ));
    }
    for (kind, bytes) in &recording.outside {
        note(format!("not in the pool: {kind}, {}", Size(*bytes)));
    }
    if !recording.others.is_empty() {
        note(format!(
            "other devices: {}; --device takes one",
            printable(&recording.others.join(", "))
        ));
    }
    text
}

/// The name of the tool that recorded.
fn tool(format: Format) -> &'static str {
    match format {
        Format::Pickle => "PyTorch memory snapshot",
        Format::Xla => "XLA buffer assignment",
        Format::Pte => "ExecuTorch program",
        _ => "PyTorch profile",
    }
}

/// The memory that the program held.
fn held(recording: &Recording) -> Option<Bytes> {
    recording.reserved.or(recording.touched)
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn account(recording: &Recording, plan: &Plan) -> String {
    let peak = Peak::of(plan);
    let mut rows = Vec::new();
    if let Some(reserved) = recording.reserved {
        let what = match recording.format {
            Format::Xla | Format::Pte => "by the compiler's plan",
            _ => "the most that the allocator held",
        };
        rows.push(Row::new("  reserved", reserved, what.to_owned()));
    }
    if let (None, Some(span), Some(touched)) =
        (recording.reserved, recording.span, recording.touched)
    {
        let span = format!("the bytes that held a chunk at some time, in a span of {}", Size(span));
        rows.push(Row::new("  addresses", touched, span));
    }
    let is_planned = matches!(recording.format, Format::Xla | Format::Pte);
    let event = if is_planned { "in instruction" } else { "after event" };
    rows.push(Row::new("  live", peak.bytes, format!("peak, {event} {}", peak.step)));
    let is_proven = plan.proven_optimal || plan.pool_size == plan.lower_bound;
    let judgement = if is_proven && plan.scope == Scope::AllChoices {
        "one static pool: proven minimal".to_owned()
    } else {
        format!("one static pool: {:.3} x the lower bound", plan.ratio())
    };
    rows.push(Row::new("  planned", plan.pool_size, judgement));
    let mut text = table(&rows);
    let Some(held) = held(recording).filter(|&held| held > 0) else { return text };
    let share = 100.0 * peak.bytes as f64 / held as f64;
    let (holder, rest) = if is_planned {
        ("of what the compiler reserves", "fragmentation")
    } else {
        ("of what the program held", "fragmentation and cache")
    };
    let words = match held.checked_sub(plan.pool_size).filter(|&saved| saved > 0) {
        Some(saved) if share < 90.0 => format!(
            "Live bytes are {share:.0} % {holder}; the rest is {rest}. This pool would return {}.",
            Size(saved)
        ),
        Some(saved) => format!(
            "Live bytes, {share:.0} % {holder}, make the size. This pool would return {}; more needs fewer or smaller tensors at the peak.",
            Size(saved)
        ),
        None => format!(
            "Live bytes, {share:.0} % {holder}, make the size: this pool returns nothing; only fewer or smaller tensors at the peak do."
        ),
    };
    text.push_str(&wrapped(&words, 0));
    text
}

/// Bytes alive at the peak that one line of code made.
struct Share<'a> {
    line: &'a str,
    chunks: u64,
    bytes: Bytes,
}

/// The lines of code by their bytes at the peak, the largest first.
fn shares<'a>(recording: &'a Recording, plan: &Plan) -> Vec<Share<'a>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut shares: Vec<Share<'_>> = Vec::new();
    for (chunk, bytes) in bytes_by_chunk(&Peak::of(plan).pieces(plan)) {
        let line = recording.line(ChunkId::from_index(chunk));
        let at = *places.entry(line).or_insert_with(|| {
            shares.push(Share { line, chunks: 0, bytes: 0 });
            shares.len() - 1
        });
        shares[at].chunks += 1;
        shares[at].bytes = shares[at].bytes.saturating_add(bytes);
    }
    shares.sort_by_key(|share| Reverse(share.bytes));
    shares
}

#[allow(clippy::cast_precision_loss, reason = "percentages for people")]
fn lines(recording: &Recording, plan: &Plan) -> String {
    let shares = shares(recording, plan);
    let all: Bytes = shares.iter().map(|share| share.bytes).fold(0, Bytes::saturating_add);
    let mut out = String::new();
    for Share { line: own, chunks, bytes } in shares.iter().take(SHOWN) {
        let share = 100.0 * *bytes as f64 / all.max(1) as f64;
        let size = format!("{:#}", Size(*bytes));
        out.push_str(&line(vec![
            text(format!("  {share:5.1} %  {size:>10}  {:>10}  ", count(*chunks, "chunk"))),
            name(printable(own)),
        ]));
    }
    if let Some(rest) = shares.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|share| share.bytes).fold(0, Bytes::saturating_add);
        let lines = count(rest.len() as u64, "line");
        let _ = writeln!(out, "  and {lines}, together {}", Size(bytes));
    }
    out
}

/// Returns the same report as JSON: sizes in bytes, and the lines of code by their bytes at the peak.
#[must_use]
pub fn recording_json(recording: &Recording, plan: &Plan) -> serde_json::Value {
    use serde_json::json;
    let peak = Peak::of(plan);
    json!({
        "source": tool(recording.format),
        "device": recording.device,
        "other_devices": recording.others,
        "events": recording.events,
        "chunks": plan.chunks.len(),
        "begun_before": recording.begun_before,
        "left": recording.left,
        "without_release": recording.lost,
        "streams": recording.streams,
        "delegates": recording.delegates,
        "reserved": recording.reserved,
        "span": recording.span,
        "touched": recording.touched,
        "live": peak.bytes,
        "planned": plan.pool_size,
        "outside": recording.outside.iter().map(|(kind, bytes)| json!({"kind": kind, "bytes": bytes})).collect::<Vec<_>>(),
        "lines": shares(recording, plan).iter().map(|share| json!({
            "line": share.line, "chunks": share.chunks, "bytes": share.bytes,
        })).collect::<Vec<_>>(),
    })
}
