//! A plan in a few lines.

use std::fmt::Write;

use crate::{
    Plan, Strategy,
    report::{Size, StepNames, count, profile::most_alive},
};

/// Pool size, lower bound, what the plan saves, and the rules under which no plan is smaller:
/// `rules` says what could be written over what, such as `in place: rows`.
#[must_use]
pub fn summary(plan: &Plan, steps: StepNames<'_>, rules: &str) -> String {
    let links = plan.chunks.iter().filter(|chunk| chunk.overwrites.is_some()).count();
    let judgement = match plan.pool_size.cmp(&plan.lower_bound) {
        std::cmp::Ordering::Equal => "the lower bound".to_owned(),
        _ if !plan.proven_optimal && plan.strategy.is_some_and(Strategy::searches) => {
            format!("{:.3} x the lower bound; that none is smaller is not proven", plan.ratio())
        }
        _ => format!("{:.3} x the lower bound", plan.ratio()),
    };
    let rows = [
        ("pool", Size(plan.pool_size), judgement),
        ("lower bound", Size(plan.lower_bound), bound(plan, steps)),
        ("one buffer each", Size(plan.naive_size), saving(plan)),
    ];
    let width = rows.iter().map(|(_, size, _)| size.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (what, size, remark) in rows {
        let _ = writeln!(text, "{what:<16}{size:>width$}   {remark}");
    }
    let padding = match plan.padding {
        0 => String::new(),
        bytes => format!(", padding {bytes} B"),
    };
    let verdict = if plan.pool_size == plan.lower_bound || plan.proven_optimal {
        "no plan is smaller under these rules:"
    } else {
        "under these rules:"
    };
    let _ = writeln!(text, "{verdict} {rules}, alignment {} B{padding}", plan.alignment);
    let _ = writeln!(
        text,
        "{}, {links} of them written over another, {}, {}; strategy {}{}{}",
        count(plan.chunks.len() as u64, "chunk"),
        count(plan.tensors.len() as u64, "tensor"),
        count(plan.steps, "step"),
        plan.strategy_name(),
        plan.winner.map_or_else(String::new, |winner| format!(": {winner}")),
        if plan.objects.is_empty() {
            String::new()
        } else {
            format!(", {}", count(plan.objects.len() as u64, "shared object"))
        },
    );
    text
}

/// Why nothing is smaller.
fn bound(plan: &Plan, steps: StepNames<'_>) -> String {
    let peak = steps.name(plan.peak_step);
    match most_alive(plan) {
        0 => "nothing is ever alive".to_owned(),
        alive if alive < plan.lower_bound => {
            format!("proven by search; {} alive in {peak}", Size(alive))
        }
        _ => format!("alive in {peak}"),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn saving(plan: &Plan) -> String {
    if plan.naive_size == 0 {
        return "nothing to plan".to_owned();
    }
    let share = 100.0 * (1.0 - plan.pool_size as f64 / plan.naive_size as f64);
    if share < 0.0 {
        format!("the pool takes {:.1} % more", -share)
    } else {
        format!("the pool saves {share:.1} %")
    }
}
