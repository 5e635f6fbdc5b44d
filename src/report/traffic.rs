//! Compares the traffic of a plan in several pools with simple rules.

use crate::{Plan, Problem, planner::TrafficReference, report::fit::wrapped};

/// States the traffic of a plan times its cost, and for comparison the same with everything in the slowest pool, and
/// with banks of shared objects filled greedily. `problem` is the problem of the plan. Ends with a newline; empty if
/// the problem has fewer than two pools.
#[must_use]
pub fn traffic(plan: &Plan, problem: &Problem) -> String {
    let Some(TrafficReference { all_slow, banked }) = TrafficReference::of(problem) else {
        return String::new();
    };
    let banked = match banked {
        Some(banked) => format!(
            "; with banks of shared objects, filled greedily by size, {banked}{}.",
            times(banked, plan.traffic)
        ),
        None => ". Banks of shared objects, filled greedily by size, are not compared: a chunk finds no place in them, or there are too many.".to_owned(),
    };
    let words = format!(
        "Traffic times cost is {}. With every chunk in the last pool that it may lie in, it would be {all_slow}{}{banked}",
        plan.traffic,
        times(all_slow, plan.traffic)
    );
    wrapped(&words, 0)
}

/// Formats `traffic` as a multiple of the plan's traffic.
#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn times(traffic: u128, plan: u128) -> String {
    match plan {
        0 => String::new(),
        plan => format!(" ({:.2} times as much)", traffic as f64 / plan as f64),
    }
}

/// The same as JSON; a number of 2^64 or more, or one that is not known, is null.
#[cfg(feature = "files")]
#[must_use]
pub fn traffic_json(plan: &Plan, problem: &Problem) -> serde_json::Value {
    let reference = TrafficReference::of(problem);
    let number = |traffic: u128| u64::try_from(traffic).ok();
    serde_json::json!({
        "plan": number(plan.traffic),
        "all_slow": reference.and_then(|of| number(of.all_slow)),
        "banked_greedy": reference.and_then(|of| number(of.banked?)),
    })
}
