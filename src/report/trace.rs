//! A plan as a trace for Perfetto and `chrome://tracing`, in the Trace Event Format: the operators
//! one after another, the lifetimes of each chain's chunks in a row, and the live bytes as a
//! counter. A step takes a millisecond.

use serde_json::{Value, json};

use crate::{
    Plan, Step,
    report::{StepNames, alive::live_bytes, profile::Chains},
};

/// Writes a plan as a trace.
#[must_use]
pub fn trace(plan: &Plan, steps: StepNames<'_>) -> String {
    let chains = Chains::new(plan);
    let mut events = vec![
        json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "memplan"}}),
        json!({"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "operators"}}),
    ];
    let operators = steps.0.map_or(0, |sequence| sequence.operators().len());
    for (step, name) in (0..operators).filter_map(|at| Some((at, steps.0?.operator_name(at)))) {
        events.push(json!({"ph": "X", "pid": 1, "tid": 1, "cat": "operator", "name": name,
            "ts": time(step as Step), "dur": 1000, "args": {"step": step}}));
    }
    let mut lives = Vec::new();
    for (at, chunk) in plan.chunks.iter().enumerate() {
        let name = |at: usize| plan.chunks.get(at).map(|chunk| &chunk.name);
        let row = json!({"local": format!("{:#x}", chains.root[at])});
        let life = |phase: &str, step: Step, args: Value| {
            json!({"ph": phase, "pid": 1, "tid": 2, "cat": "chunk", "id2": row, "name": chunk.name,
                "ts": time(step), "args": args})
        };
        let args = json!({"size": chunk.size, "offset": chunk.offset,
            "overwrites": chunk.overwrites.and_then(|link| name(link.chunk)),
            "chain": name(chains.root[at])});
        for own in plan.boxes(at) {
            lives.push(((own.begin, 1), life("b", own.begin, args.clone())));
            lives.push(((own.end, 0), life("e", own.end, json!({}))));
        }
    }
    // In a row, each lifetime ends before the next begins.
    lives.sort_by_key(|&(order, _)| order);
    events.extend(lives.into_iter().map(|(_, life)| life));
    for (step, bytes) in live_bytes(plan) {
        events.push(json!({"ph": "C", "pid": 1, "name": "bytes alive", "ts": time(step),
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

/// The time of a step in microseconds.
fn time(step: Step) -> Step {
    step.saturating_mul(1000)
}
