//! A better order of the operators: the bytes that it saves, and the operators whose moves save them.

use std::collections::{BTreeMap, HashMap};

use crate::{
    Bytes, OpSequence, Step,
    order::Reordered,
    planner::Replanned,
    report::{
        Size,
        alive::{Peak, bytes_by_chunk},
        count,
        fit::{hanging, line, name, text},
        operator_at, printable, short_step,
    },
};

/// The number of operators that are named.
const SHOWN: usize = 6;

/// The remark where there is no lower bound over all orders.
const NO_BOUND: &str = "no bound is counted where outputs may begin below inputs or compete for \
                        one, or where an update makes a view a copy";

/// The width of a label.
const LABEL: usize = 16;

/// Returns whether each operator has to run after the one before it.
fn is_only_order(sequence: &OpSequence) -> bool {
    sequence.operators().windows(2).zip(0..).all(|(pair, before)| {
        let [first, second] = pair else { return false };
        let reads = second.inputs.iter().any(|input| first.outputs.contains(input));
        reads || second.after.contains(&before)
    })
}

/// Reports that an order is better and by how much, or that it is proven that none is better, or that none
/// was found. For a better order, names the operators whose new places save memory.
#[must_use]
pub fn reordering(found: &Replanned<Reordered>, given: &OpSequence) -> String {
    let order = &found.change;
    let row = |label: &str, words: String| hanging(&format!("{label:<LABEL$}"), &words, LABEL);
    let (pool, before) = (found.plan.pool_size, found.given.pool_size);
    let bound = Size(order.lower_bound);
    if !order.is_better() {
        let stays = format!("pool {}, peak {}", Size(before), Size(order.given_peak));
        return if order.is_proven() {
            let words = if is_only_order(given) {
                "the operators have to run in this order"
            } else {
                "no order is better"
            };
            row("proven", words.to_owned()) + &row("unchanged", stays)
        } else {
            let words = match order.lower_bound {
                0 => NO_BOUND.to_owned(),
                _ => format!("every order has a peak of at least {bound}"),
            };
            row("not found", "no better order within the effort".to_owned())
                + &row("unchanged", stays)
                + &row("not proven", words)
        };
    }
    let mut report = row(
        "smaller",
        format!(
            "pool {:#} instead of {:#} ({} saved)",
            Size(pool),
            Size(before),
            share(pool, before)
        ),
    );
    let words = match order.lower_bound {
        _ if order.is_proven() => "no order has a lower peak".to_owned(),
        0 => NO_BOUND.to_owned(),
        _ => format!("no order has a peak below {bound}"),
    };
    let instead = match order.given_peak {
        peak if peak == order.peak => String::new(),
        peak => format!(" instead of {}", Size(peak)),
    };
    let peak = format!("peak {}{instead}; {words}", Size(order.peak));
    report += &row(if order.is_proven() { "proven" } else { "not proven best" }, peak);
    let operators = count(order.order.len() as u64, "operator");
    report += &row("moved", format!("{} of {operators}", order.moved));
    let pays = pays(found);
    if pays.is_empty() {
        return report;
    }
    report += &hanging(
        "\n",
        &format!(
            "The given order has its peak at {}. In the new order, these are not alive there:",
            short_step(Some(given), found.given.peak_step)
        ),
        0,
    );
    for pay in pays.iter().take(SHOWN) {
        let role = match pay.role {
            Role::Makes => ("made by ", "which now runs after it"),
            Role::ReadsLast => ("read last by ", "which now runs before it"),
        };
        let operator = operator_at(Some(given), pay.step as Step).unwrap_or_default();
        report += &line(vec![
            text(format!("  {:>10}  {}", format!("{:#}", Size(pay.bytes)), role.0)),
            name(printable(&operator)),
            text(format!(" (step {}), {}", pay.step, role.1)),
        ]);
    }
    if let Some(rest) = pays.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let bytes = Size(rest.iter().map(|pay| pay.bytes).fold(0, Bytes::saturating_add));
        let bytes = format!("{bytes:#}");
        let others = count(rest.len() as u64, "more operator");
        report += &line(vec![text(format!("  {bytes:>10}  by {others}"))]);
    }
    report
}

/// Returns the figures of [`reordering`] and the order itself as JSON.
#[cfg(feature = "files")]
#[must_use]
pub fn reordering_json(found: &Replanned<Reordered>, given: &OpSequence) -> serde_json::Value {
    use serde_json::json;
    let order = &found.change;
    let pays = pays(found);
    let paid: Vec<serde_json::Value> = pays
        .iter()
        .map(|pay| {
            json!({
                "operator": given.operator_name(pay.step),
                "step": pay.step,
                "runs": match pay.role { Role::Makes => "after", Role::ReadsLast => "before" },
                "chunks": pay.chunks,
                "bytes": pay.bytes,
            })
        })
        .collect();
    json!({
        "format": "memplan-order/1",
        "better": order.is_better(),
        "proven": order.is_proven(),
        "pool_size": found.plan.pool_size,
        "given_pool_size": found.given.pool_size,
        "bytes_alive": order.peak,
        "given_bytes_alive": order.given_peak,
        "lower_bound": order.lower_bound,
        "operators": order.order.len(),
        "moved": order.moved,
        "nodes": order.nodes,
        "given_peak_step": found.given.peak_step,
        "paid": paid,
        "order": order.order,
    })
}

#[allow(clippy::cast_precision_loss, reason = "a percentage for people")]
fn share(pool: Bytes, before: Bytes) -> String {
    format!("{:.1} %", 100.0 * (1.0 - pool as f64 / before.max(1) as f64))
}

/// An operator whose new place keeps chunks from being alive at the former peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pay {
    /// Its step in the order given.
    step: usize,
    role: Role,
    chunks: u64,
    bytes: Bytes,
}

/// The reason why an operator's new place matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// It makes the chunks, and now runs after the former peak.
    Makes,
    /// It is the last to read them, and now runs before the former peak.
    ReadsLast,
}

/// Finds the chunks that are alive at the peak of the given order, but not when the same operator runs in the new
/// order, and groups them by the operators whose moves cause that. The largest groups come first.
fn pays(found: &Replanned<Reordered>) -> Vec<Pay> {
    let order = &found.change.order;
    let given = &found.given;
    let peak = Peak::of(given);
    let place = order.iter().position(|&step| step as Step == peak.step);
    let Some(place) = place.filter(|_| found.change.is_better()) else {
        return Vec::new();
    };
    let place = place as Step;
    let now: HashMap<&str, (Step, Step)> =
        found.plan.chunks.iter().map(|chunk| (&*chunk.name, (chunk.begin, chunk.end))).collect();
    let mut pays: BTreeMap<(usize, Role), (u64, Bytes)> = BTreeMap::new();
    for (at, alive) in bytes_by_chunk(&peak.pieces(given)) {
        let chunk = &given.chunks[at];
        let Some(&(begin, end)) = now.get(&*chunk.name) else { continue };
        let (role, at) = match (begin > place, end <= place) {
            (true, _) => (Role::Makes, begin),
            (false, true) => (Role::ReadsLast, end.saturating_sub(1)),
            (false, false) => continue,
        };
        let Some(&step) = usize::try_from(at).ok().and_then(|at| order.get(at)) else { continue };
        let (chunks, bytes) = pays.entry((step, role)).or_default();
        (*chunks, *bytes) = (*chunks + 1, bytes.saturating_add(alive.min(chunk.size)));
    }
    let mut pays: Vec<Pay> = pays
        .into_iter()
        .map(|((step, role), (chunks, bytes))| Pay { step, role, chunks, bytes })
        .collect();
    pays.sort_by_key(|pay| (std::cmp::Reverse(pay.bytes), pay.step, pay.role));
    pays
}
