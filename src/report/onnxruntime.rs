//! The memory pattern of ONNX Runtime beside a plan, as text and in files.

use std::fmt::Write;

#[cfg(feature = "serde")]
use crate::plan::ArenaEntry;
use crate::{
    Bytes, Plan,
    baselines::onnxruntime::MemoryPattern,
    planner::Comparison,
    report::{Size, fit::hanging},
};

/// The memory that the runtime needs besides, in any run.
const NOT_INCLUDED: [&str; 4] = [
    "scratch memory of kernels",
    "weights and their repacked copies",
    "tensors known before the run",
    "the growth of the arena by powers of two",
];

/// Left out of the figures if operators have bodies.
const BODIES: &str = "tensors of If, Loop and Scan bodies";

fn not_included(pattern: &MemoryPattern) -> Vec<&'static str> {
    NOT_INCLUDED.into_iter().chain(pattern.has_bodies.then_some(BODIES)).collect()
}

/// Reports the memory that ONNX Runtime takes for a model by its own planner, and the pool of a plan.
#[must_use]
pub fn memory_pattern(pattern: &MemoryPattern, plan: &Plan) -> String {
    let mut text = "ONNX Runtime on the CPU\n".to_owned();
    let mut row = |label: &str, words: String| {
        text.push_str(&hanging(&format!("  {label:<27}"), &words, 29));
    };
    row("memory pattern", Size(pattern.size).to_string());
    row("outputs, allocated apart", Size(pattern.outputs).to_string());
    row(
        "pool of this plan",
        format!("{}, {}", Size(plan.pool_size), gain(pattern, plan.pool_size)),
    );
    let words = format!(
        "The pattern is the block that every run after the first with the same shapes takes for all tensors except inputs, weights and outputs. The pool holds the outputs as well. Not in these figures: {}. The runtime takes no plan from outside, and changes the graph before it runs it: for the figures of that graph, save it with optimized_model_filepath and plan that file.",
        not_included(pattern).join("; ")
    );
    text.push_str(&hanging("  ", &words, 2));
    text
}

/// The difference between the pool and the memory of the runtime's own planner, in percent of the latter.
#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn gain(pattern: &MemoryPattern, pool: Bytes) -> String {
    let own = pattern.total();
    match own.checked_sub(pool) {
        None => format!("{} more", Size(pool - own)),
        Some(0) => "as much".to_owned(),
        Some(less) => format!("{:.1} % less than both", less as f64 * 100.0 / own as f64),
    }
}

/// Returns the figures of [`memory_pattern`] for a plan's file: of the runtime, the pattern and the outputs together.
#[must_use]
#[cfg(feature = "serde")]
pub fn memory_pattern_entry(pattern: &MemoryPattern, plan: &Plan) -> ArenaEntry {
    ArenaEntry {
        runtime: "onnxruntime".into(),
        models: None,
        kernels: None,
        own: pattern.total(),
        planned_already: false,
        wrong_plan: Vec::new(),
        planned: plan.pool_size,
        scratch_buffers: 0,
        unknown_scratch: Vec::new(),
        not_included: not_included(pattern).into_iter().map(str::to_owned).collect(),
        persistent: 0,
        heap: 0,
        tail: None,
        tail_release: None,
        variables: 0,
        called: 0,
    }
}

/// Lists the patterns of the inputs of a comparison that have one, with their ratios to the peak.
#[must_use]
pub fn compared_patterns(
    inputs: &[(String, Comparison)],
    patterns: &[Option<MemoryPattern>],
) -> String {
    let mut text = String::new();
    let compared = inputs.iter().zip(patterns).enumerate();
    for (at, ((_, comparison), pattern)) in compared {
        let Some(pattern) = pattern else { continue };
        let number = if inputs.len() > 1 { format!("({}) ", at + 1) } else { String::new() };
        if text.is_empty() {
            text.push_str("\nONNX Runtime's memory pattern, with the outputs\n");
        }
        let (total, ratio) = (Size(pattern.total()), ratio(pattern, comparison));
        let _ = writeln!(text, "  {number}{total}, {ratio:.3} of the peak");
    }
    text
}

#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(pattern: &MemoryPattern, comparison: &Comparison) -> f64 {
    pattern.total() as f64 / comparison.lower_bound.max(1) as f64
}

/// Returns the figures of a pattern in bytes.
#[must_use]
#[cfg(feature = "files")]
pub fn memory_pattern_json(pattern: &MemoryPattern) -> serde_json::Value {
    serde_json::json!({"memory_pattern": pattern.size, "outputs": pattern.outputs})
}
