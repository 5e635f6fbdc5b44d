//! Tables of strategies: one input in detail, or several inputs side by side.

use std::{fmt::Write, time::Duration};

use crate::{
    Strategy,
    planner::{Comparison, Measurement},
    report::{Size, fit::WIDTH, printable},
};

/// Formats one input: a row per strategy, the smallest pool first.
#[must_use]
pub fn comparison(name: &str, comparison: &Comparison) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", printable(name));
    for (what, bytes) in [
        ("peak", comparison.lower_bound),
        ("shared-object bound", comparison.shared_objects_bound),
        ("unshared", comparison.unshared_size),
    ] {
        let ratio = ratio(bytes, comparison);
        let _ = writeln!(text, "  {what:<NAME$}{:>SIZE$}{ratio:>9}", format!("{:#}", Size(bytes)));
    }
    let named = comparison.rows.iter().map(|&(strategy, outcome)| (strategy.name(), outcome));
    let reordered = comparison.reordered.map(|outcome| (REORDERED, Ok(outcome)));
    let mut rows: Vec<(&str, Result<Measurement, &'static str>)> = named.chain(reordered).collect();
    rows.sort_by_key(|(_, outcome)| outcome.map_or(u64::MAX, |outcome| outcome.pool_size));
    let _ = writeln!(
        text,
        "\n  {:<NAME$}{:>SIZE$}{:>9}{:>10}{:>9}",
        "strategy", "pool", "ratio", "time", "objects"
    );
    for (name, outcome) in rows {
        let winner = outcome.ok().and_then(|outcome| outcome.winner);
        let strategy = match winner {
            Some(winner) => format!("{name}: {winner}"),
            None => name.to_owned(),
        };
        let Measurement { pool_size, took, objects, .. } = match outcome {
            Ok(outcome) => outcome,
            Err(left_out) => {
                let _ = writeln!(text, "  {strategy:<NAME$}{left_out:>SIZE$}");
                continue;
            }
        };
        let objects = objects.map_or_else(String::new, |count| count.to_string());
        let row = format!(
            "  {strategy:<NAME$}{:>SIZE$}{:>9}{:>10}{objects:>9}",
            format!("{:#}", Size(pool_size)),
            ratio(pool_size, comparison),
            seconds(took),
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}

/// The row of the strategy *best* for a better order of the operators.
const REORDERED: &str = "best, reordered";

/// Column widths of a table of one input.
const NAME: usize = 31;
const SIZE: usize = 11;

/// Column widths of a table of several inputs.
const STRATEGY: usize = 26;
const CELL: usize = 10;

/// Formats several inputs, one per column: ratios to the peak, pool sizes and times, with a
/// row per strategy, the best average ratio first. Columns that do not fit go to further tables.
#[must_use]
pub fn comparisons(inputs: &[(String, Comparison)]) -> String {
    let mut text = String::new();
    for (at, (name, comparison)) in inputs.iter().enumerate() {
        let (name, bound) = (printable(name), Size(comparison.lower_bound));
        let _ = writeln!(text, "({}) {name}\n    peak: {bound}", at + 1);
    }
    let strategies = inputs.first().map_or(0, |(_, comparison)| comparison.rows.len());
    let mut rows: Vec<usize> = (0..strategies).collect();
    rows.sort_by(|&a, &b| mean_log(inputs, a).total_cmp(&mean_log(inputs, b)));
    let numbered: Vec<(usize, &Comparison)> =
        inputs.iter().enumerate().map(|(at, (_, comparison))| (at + 1, comparison)).collect();
    let mut table = |what: &str, cell: &dyn Fn(&Measurement, &Comparison) -> String| {
        for columns in numbered.chunks((WIDTH - STRATEGY) / CELL) {
            let _ = write!(text, "\n{what:<STRATEGY$}");
            for (number, _) in columns {
                let _ = write!(text, "{:>CELL$}", format!("({number})"));
            }
            for &row in &rows {
                let name = columns.first().map(|(_, comparison)| comparison.rows[row].0);
                let _ = write!(text, "\n{:<STRATEGY$}", name.map_or("", Strategy::name));
                for (_, comparison) in columns {
                    let cell = match &comparison.rows[row].1 {
                        Ok(measured) => cell(measured, comparison),
                        Err(left_out) => (*left_out).to_owned(),
                    };
                    let _ = write!(text, "{cell:>CELL$}");
                }
            }
            if columns.iter().any(|(_, comparison)| comparison.reordered.is_some()) {
                let _ = write!(text, "\n{REORDERED:<STRATEGY$}");
                for (_, comparison) in columns {
                    let outcome = comparison.reordered.as_ref();
                    let cell = outcome.map_or("-".to_owned(), |o| cell(o, comparison));
                    let _ = write!(text, "{cell:>CELL$}");
                }
            }
            text.push('\n');
        }
    };
    table("pool / peak", &|measured, comparison| ratio(measured.pool_size, comparison));
    table("pool", &|measured, _| format!("{:#}", Size(measured.pool_size)));
    table("planning time", &|measured, _| seconds(measured.took));
    text
}

/// Returns a JSON object per input.
#[cfg(feature = "files")]
#[must_use]
pub fn comparisons_json(inputs: &[(String, Comparison)]) -> serde_json::Value {
    use serde_json::json;
    let outcome = |outcome: &Measurement| json!({"pool_size": outcome.pool_size, "seconds": outcome.took.as_secs_f64()});
    let entry = |&(strategy, outcome): &(Strategy, Result<Measurement, &'static str>)| match outcome
    {
        Err(left_out) => {
            json!({"strategy": strategy.name(), left_out.replace(' ', "_"): true})
        }
        Ok(outcome) => json!({
            "strategy": strategy.name(),
            "winner": outcome.winner.map(Strategy::name),
            "pool_size": outcome.pool_size,
            "seconds": outcome.took.as_secs_f64(),
            "objects": outcome.objects,
        }),
    };
    inputs
        .iter()
        .map(|(name, comparison)| {
            let mut compared = json!({
                "input": name,
                "bytes_alive": comparison.lower_bound,
                "lower_bound": comparison.lower_bound,
                "scope": comparison.scope.name(),
                "shared_objects_bound": comparison.shared_objects_bound,
                "unshared_size": comparison.unshared_size,
                "strategies": comparison.rows.iter().map(entry).collect::<Vec<_>>(),
            });
            if let Some(reordered) = &comparison.reordered {
                compared["best_reordered"] = outcome(reordered);
            }
            compared
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

/// The sum of logarithms orders strategies like the geometric mean of their ratios. A strategy that
/// did not plan every input comes last.
fn mean_log(inputs: &[(String, Comparison)], row: usize) -> f64 {
    inputs
        .iter()
        .map(|(_, comparison)| match comparison.rows[row].1 {
            Ok(measured) => quotient(measured.pool_size, comparison).ln(),
            Err(_) => f64::INFINITY,
        })
        .sum()
}

/// Formats a time for display.
#[must_use]
pub fn seconds(took: Duration) -> String {
    match took.as_micros() {
        micros if micros < 10_000 => format!("{micros} µs"),
        micros if micros < 10_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}
