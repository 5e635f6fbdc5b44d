//! Tables of strategies: one input with all that is known of each, or several side by side.

use std::{fmt::Write, time::Duration};

use crate::{
    planner::{Comparison, Entry, Outcome},
    report::{Size, printable},
};

/// One input: a row per strategy, the smallest pool first.
#[must_use]
pub fn comparison(name: &str, comparison: &Comparison) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", printable(name));
    for (what, bytes) in [
        ("lower bound", comparison.lower_bound),
        ("shared-object bound", comparison.shared_objects_bound),
        ("one buffer each", comparison.naive_size),
    ] {
        let _ = writeln!(text, "  {what:<26}{:>32}{:>9}", Size(bytes), ratio(bytes, comparison));
    }
    let mut entries: Vec<&Entry> = comparison.entries.iter().collect();
    entries.sort_by_key(|entry| entry.outcome.map_or(u64::MAX, |outcome| outcome.pool_size));
    let _ = writeln!(
        text,
        "\n  {:<26}{:>32}{:>9}{:>11}{:>9}",
        "strategy", "pool", "ratio", "time", "objects"
    );
    for entry in entries {
        let strategy = entry.strategy;
        let Some(outcome) = entry.outcome else {
            let _ = writeln!(text, "  {strategy:<26}{:>32}", "too large");
            continue;
        };
        let Outcome { pool_size, took, objects, winner } = outcome;
        let objects = objects.map_or_else(String::new, |count| count.to_string());
        let winner = winner.map_or_else(String::new, |winner| format!("   {winner}"));
        let row = format!(
            "  {strategy:<26}{:>32}{:>9}{:>11}{objects:>9}{winner}",
            Size(pool_size),
            ratio(pool_size, comparison),
            seconds(took),
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}

/// Several inputs, a column each: ratios to the lower bounds, sizes of pools and times, a row per
/// strategy, the best ratio on average first.
#[must_use]
pub fn comparisons(inputs: &[(String, Comparison)]) -> String {
    let mut text = String::new();
    for (at, (name, comparison)) in inputs.iter().enumerate() {
        let (name, bound) = (printable(name), Size(comparison.lower_bound));
        let _ = writeln!(text, "({}) {name}: lower bound {bound}", at + 1);
    }
    let strategies = inputs.first().map_or(0, |(_, comparison)| comparison.entries.len());
    let mut rows: Vec<usize> = (0..strategies).collect();
    rows.sort_by(|&a, &b| mean_log(inputs, a).total_cmp(&mean_log(inputs, b)));
    let mut table = |what: &str, cell: &dyn Fn(&Outcome, &Comparison) -> String| {
        let _ = write!(text, "\n{what:<26}");
        for at in 1..=inputs.len() {
            let _ = write!(text, "{:>10}", format!("({at})"));
        }
        for &row in &rows {
            let name = inputs.first().map(|(_, comparison)| comparison.entries[row].strategy);
            let _ = write!(text, "\n{:<26}", name.map_or("", crate::Strategy::name));
            for (_, comparison) in inputs {
                let cell = match &comparison.entries[row].outcome {
                    Some(outcome) => cell(outcome, comparison),
                    None => "too large".to_owned(),
                };
                let _ = write!(text, "{cell:>10}");
            }
        }
        text.push('\n');
    };
    table("pool / lower bound", &|outcome, comparison| ratio(outcome.pool_size, comparison));
    table("pool", &|outcome, _| format!("{:#}", Size(outcome.pool_size)));
    table("planning time", &|outcome, _| seconds(outcome.took));
    text
}

/// For machines: an object per input.
#[cfg(feature = "files")]
#[must_use]
pub fn comparisons_json(inputs: &[(String, Comparison)]) -> serde_json::Value {
    use serde_json::json;
    let entry = |entry: &Entry| match entry.outcome {
        None => json!({"strategy": entry.strategy.name(), "too_large": true}),
        Some(outcome) => json!({
            "strategy": entry.strategy.name(),
            "winner": outcome.winner.map(crate::Strategy::name),
            "pool_size": outcome.pool_size,
            "seconds": outcome.took.as_secs_f64(),
            "objects": outcome.objects,
        }),
    };
    inputs
        .iter()
        .map(|(name, comparison)| {
            json!({
                "input": name,
                "lower_bound": comparison.lower_bound,
                "shared_objects_bound": comparison.shared_objects_bound,
                "naive_size": comparison.naive_size,
                "strategies": comparison.entries.iter().map(entry).collect::<Vec<_>>(),
            })
        })
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn quotient(bytes: u64, comparison: &Comparison) -> f64 {
    match comparison.lower_bound {
        0 => 1.0,
        bound => bytes as f64 / bound as f64,
    }
}

fn ratio(bytes: u64, comparison: &Comparison) -> String {
    format!("{:.3}", quotient(bytes, comparison))
}

/// The sum of logarithms orders strategies as the geometric mean of their ratios does; who did not
/// plan everything comes last.
fn mean_log(inputs: &[(String, Comparison)], row: usize) -> f64 {
    inputs
        .iter()
        .map(|(_, comparison)| match comparison.entries[row].outcome {
            Some(outcome) => quotient(outcome.pool_size, comparison).ln(),
            None => f64::INFINITY,
        })
        .sum()
}

/// A time for people.
#[must_use]
pub fn seconds(took: Duration) -> String {
    match took.as_micros() {
        micros if micros < 10_000 => format!("{micros} µs"),
        micros if micros < 10_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}
