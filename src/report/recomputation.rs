//! What runs twice so that a plan fits, what that saves, and curves of peaks against extra work.

use crate::{
    Bytes, OpSequence, Step,
    planner::Replanned,
    recompute::{Recomputation, Recomputed},
    report::{
        Size, count,
        fit::{hanging, line, name, text},
        operator_at, printable,
    },
};

/// The number of operators that are named.
const SHOWN: usize = 12;

/// The width of a label.
const LABEL: usize = 16;

fn row(label: &str, words: &str) -> String {
    hanging(&format!("{label:<LABEL$}"), words, LABEL)
}

/// Reports the plan that fits, with the operators that run twice and the bytes that each of them saves; otherwise, that
/// it is proven that no plan fits, or that none was found.
#[must_use]
pub fn recomputation(
    found: &Recomputed<Replanned<Recomputation>>,
    given: &OpSequence,
    capacity: Bytes,
) -> String {
    match found {
        Recomputed::Found(found) => fitting(found, given),
        Recomputed::Impossible { peak_bound } => {
            let words = format!(
                "no recomputation fits into {}: {} are alive at once in every one, in this order",
                Size(capacity),
                Size(*peak_bound)
            );
            row("proven", &words)
        }
        Recomputed::NotFound { least, peak_bound } => {
            let words = format!(
                "no recomputation was found that fits into {}; the least found needs {}",
                Size(capacity),
                Size(*least)
            );
            let bound = format!("every one in this order has at least {} alive", Size(*peak_bound));
            row("not found", &words) + &row("not proven", &bound)
        }
    }
}

fn fitting(found: &Replanned<Recomputation>, given: &OpSequence) -> String {
    let of = &found.change;
    let (pool, before) = (Size(found.plan.pool_size), Size(found.given.pool_size));
    if of.later.is_empty() {
        return row("fits", &format!("a pool of {pool}; nothing runs twice"));
    }
    let twice: Vec<usize> = of.runs_twice().collect();
    let mut report = row("fits", &format!("a pool of {pool} instead of {before}"));
    let operators = count(given.operators().len() as u64, "operator");
    let deferred = of.later.len() - twice.len();
    let later = match deferred {
        0 => String::new(),
        _ => format!("; {deferred} run later than given"),
    };
    report += &row("runs twice", &format!("{} of {operators}{later}", twice.len()));
    let whole = of.cost - of.extra_cost;
    let extra = format!("{} more than {whole}, {}", of.extra_cost, share(of.extra_cost, whole));
    report += &row("cost", &extra);
    let (label, words) = if found.is_proven() {
        ("proven", "none in this order that fits costs less".to_owned())
    } else {
        let words = match of.cost_bound {
            0 => "no bound on the extra cost is known".to_owned(),
            bound => format!("every one in this order has an extra cost of at least {bound}"),
        };
        ("not proven", words)
    };
    report += &row(label, &words);
    report += &row(
        "alive at once",
        &format!(
            "{} instead of {}; in this order, at least {}",
            Size(of.peak),
            Size(of.given_peak),
            Size(of.peak_bound)
        ),
    );
    if twice.is_empty() {
        return report;
    }
    report += &hanging(
        "\n",
        "These run twice; what they make is not kept in between (steps as given):",
        0,
    );
    let mut saved: Vec<(Bytes, usize, usize)> = of
        .later
        .iter()
        .filter(|run| run.is_copy)
        .map(|run| (bytes_made(given, run.step), run.step, run.before))
        .collect();
    saved.sort_by_key(|&(bytes, step, _)| (std::cmp::Reverse(bytes), step));
    for &(bytes, step, before) in saved.iter().take(SHOWN) {
        let operator = operator_at(Some(given), step as Step).unwrap_or_default();
        report += &line(vec![
            text(format!("  {:>10}  ", format!("{:#}", Size(bytes)))),
            name(printable(&operator)),
            text(format!(" (step {step}), again before step {before}")),
        ]);
    }
    if let Some(rest) = saved.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|(bytes, ..)| *bytes).fold(0, Bytes::saturating_add);
        let others = count(rest.len() as u64, "more operator");
        report += &line(vec![text(format!("  {:>10}  by {others}", format!("{:#}", Size(bytes))))]);
    }
    report
}

/// The bytes of the memory that an operator makes and that no result keeps.
fn bytes_made(given: &OpSequence, step: usize) -> Bytes {
    let outputs = given.operators()[step].outputs.iter();
    let dropped = outputs.filter(|id| !given.outputs().contains(id));
    dropped.map(|&id| given.tensor(id).size.unwrap_or(0)).fold(0, Bytes::saturating_add)
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Returns a table of a [curve](crate::Planner::recompute_curve): the bytes alive, which can be given as a capacity,
/// the extra cost, and the lower bound of that cost. Capacities with the same plan share a row, which shows the bound of
/// the smallest of them. The text is empty if there are no points.
#[must_use]
pub fn recompute_curve(curve: &[Recomputation]) -> String {
    let Some(given) = curve.last() else { return String::new() };
    let line = |[alive, bytes, part, extra, cost, bound]: [String; 6]| {
        format!("{alive:>9}  {bytes:>13}  {part:>8}  {extra:>8}  {cost:>12}  {bound:>10}\n")
    };
    let heads = ["alive", "bytes", "of given", "extra", "extra cost", "bound"];
    let mut table = line(heads.map(str::to_owned));
    let mut points: Vec<_> = curve.iter().collect();
    points.dedup_by_key(|found| (found.peak, found.extra_cost));
    for found in points {
        table.push_str(&line([
            format!("{:#}", Size(found.peak)),
            found.peak.to_string(),
            share(found.peak, given.given_peak),
            share(found.extra_cost, given.given_cost()),
            found.extra_cost.to_string(),
            found.cost_bound.to_string(),
        ]));
    }
    let bound = Size(given.peak_bound);
    table + &format!("every recomputation in this order has at least {bound} alive at once\n")
}

/// Returns the answer for a capacity as JSON.
#[cfg(feature = "files")]
#[must_use]
pub fn recomputation_json(
    found: &Recomputed<Replanned<Recomputation>>,
    given: &OpSequence,
    capacity: Bytes,
) -> serde_json::Value {
    use serde_json::{Value, json};
    const FORMAT: &str = "memplan-recomputation/1";
    match found {
        Recomputed::Found(found) => {
            let of = &found.change;
            let runs: Vec<String> = of.runs_twice().map(|step| given.operator_name(step)).collect();
            json!({
                "format": FORMAT,
                "capacity": capacity,
                "pool_size": found.plan.pool_size,
                "peak": of.peak,
                "peak_bound": of.peak_bound,
                "extra_cost": of.extra_cost,
                "cost": of.cost,
                "cost_bound": of.cost_bound,
                "proven": found.is_proven(),
                "runs": runs,
            })
        }
        Recomputed::Impossible { peak_bound } => json!({
            "format": FORMAT,
            "capacity": capacity,
            "possible": false,
            "peak_bound": peak_bound,
        }),
        Recomputed::NotFound { least, peak_bound } => json!({
            "format": FORMAT,
            "capacity": capacity,
            "possible": Value::Null,
            "least": least,
            "peak_bound": peak_bound,
        }),
    }
}

/// Returns a [curve](crate::Planner::recompute_curve) as JSON; null if it has no points.
#[cfg(feature = "files")]
#[must_use]
pub fn recompute_curve_json(curve: &[Recomputation]) -> serde_json::Value {
    use serde_json::json;
    let Some(given) = curve.last() else { return serde_json::Value::Null };
    let points: Vec<serde_json::Value> = curve
        .iter()
        .map(|found| {
            json!({
                "capacity": found.capacity,
                "peak": found.peak,
                "extra_cost": found.extra_cost,
                "cost_bound": found.cost_bound,
            })
        })
        .collect();
    json!({
        "format": "memplan-recompute-curve/1",
        "given_peak": given.given_peak,
        "peak_bound": given.peak_bound,
        "cost": given.given_cost(),
        "points": points,
    })
}
