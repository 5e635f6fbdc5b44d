//! A plan as a trace for Perfetto and `chrome://tracing`, in the Trace Event Format: the operators
//! one after another, the lifetimes of each chain's chunks in a row, and the live bytes as a
//! counter. A step takes a millisecond.

use serde_json::{Value, json};

use crate::{
    OpSequence, Plan, Step,
    boxes::{Boxes, PlacedBox},
    report::{alive::live_bytes, profile::Chains},
};

/// Writes a plan as a trace.
#[must_use]
pub fn trace(plan: &Plan, steps: Option<&OpSequence>) -> String {
    let chains = Chains::new(plan);
    let boxes = Boxes::of(plan);
    let times: Vec<Vec<(Step, Step)>> =
        (0..plan.chunks.len()).map(|at| runs(boxes.of_chunk(at))).collect();
    let rows = rows(plan, &chains, &times);
    let mut events = vec![
        json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "memplan"}}),
        json!({"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "operators"}}),
    ];
    let operators = steps.map_or(0, |sequence| sequence.operators().len());
    for (step, name) in (0..operators).filter_map(|at| Some((at, steps?.operator_name(at)))) {
        events.push(json!({"ph": "X", "pid": 1, "tid": 1, "cat": "operator", "name": name,
            "ts": time(step as Step), "dur": 1000, "args": {"step": step}}));
    }
    let mut lives = Vec::new();
    for (at, chunk) in plan.chunks.iter().enumerate() {
        let name = |at: usize| plan.chunks.get(at).map(|chunk| &chunk.name);
        let row = json!({"local": format!("{:#x}", rows[at])});
        let life = |phase: &str, step: Step, args: Value| {
            json!({"ph": phase, "pid": 1, "tid": 2, "cat": "chunk", "id2": row, "name": chunk.name,
                "ts": time(step), "args": args})
        };
        let args = json!({"size": chunk.size, "offset": chunk.offset,
            "overwrites": chunk.overwrites.and_then(|link| name(link.chunk)),
            "chain": name(chains.root[at])});
        for &(begin, end) in &times[at] {
            lives.push(((begin, 1), life("b", begin, args.clone())));
            lives.push(((end, 0), life("e", end, json!({}))));
        }
    }
    // In a row, each lifetime ends before the next begins.
    lives.sort_by_key(|&(order, _)| order);
    events.extend(lives.into_iter().map(|(_, life)| life));
    for (step, bytes) in live_bytes(plan) {
        events.push(json!({"ph": "C", "pid": 1, "name": "live bytes", "ts": time(step),
            "args": {"bytes": bytes}}));
    }
    let trace = json!({
        "displayTimeUnit": "ms",
        "otherData": {"strategy": plan.strategy_name(), "pool_size": plan.pool_size,
            "lower_bound": plan.lower_bound, "peak_step": plan.peak_step},
        "traceEvents": events,
    });
    format!("{trace}\n")
}

/// The row of each chunk: the row of its chain, unless members of the chain are alive at the same time. An overwriter
/// that begins below the overwritten chunk has bytes while that chunk has all of its own.
fn rows(plan: &Plan, chains: &Chains, times: &[Vec<(Step, Step)>]) -> Vec<usize> {
    let mut is_shared = vec![false; plan.chunks.len()];
    for (at, chunk) in plan.chunks.iter().enumerate() {
        let lives_on = |&next: &usize| {
            let first = times[next].iter().map(|&(begin, _)| begin).min();
            first.unwrap_or(Step::MAX).min(plan.own_begin(&plan.chunks[next])) < chunk.end
        };
        is_shared[chains.root[at]] |= chains.overwriters(at).nth(1).is_some()
            || chains.overwriters(at).any(|one| lives_on(&one));
    }
    let row = |(at, &root): (usize, &usize)| if is_shared[root] { at } else { root };
    chains.root.iter().enumerate().map(row).collect()
}

/// The times in which boxes are alive, by step. Times that share a step are merged.
fn runs(boxes: impl Iterator<Item = PlacedBox>) -> Vec<(Step, Step)> {
    let mut runs: Vec<(Step, Step)> = Vec::new();
    for PlacedBox { begin, end, .. } in boxes {
        match runs.last_mut() {
            Some(last) if begin < last.1 => last.1 = last.1.max(end),
            _ => runs.push((begin, end)),
        }
    }
    runs
}

/// The time of a step in microseconds.
fn time(step: Step) -> Step {
    step.saturating_mul(1000)
}
