//! The operators of a sequence that run twice, and what that saves.

use std::cmp::Reverse;

use crate::{
    Bytes, OpSequence, Plan, Step,
    report::{
        Size,
        alive::Peak,
        count,
        fit::{hanging, line, name, text, wrapped},
        operator_at, printable, short_step,
        times::lifetime,
    },
    sequence::{Origin, TensorId},
};

/// The number of operators that are named.
const SHOWN: usize = 12;

/// An operator that runs twice.
struct Rerun {
    step: Step,
    /// The step of its copy.
    again: Step,
    /// The bytes of its outputs that are not kept between the two runs.
    bytes: Bytes,
    /// The steps in which these bytes are not kept, half-open; empty if there are none.
    gap: (Step, Step),
}

/// Finds the operators that run twice, by the names that [`expand`](crate::recompute::expand) gives to copies and
/// to what they make: `name~1`.
fn reruns(sequence: &OpSequence) -> Vec<Rerun> {
    let roots = sequence.memory_roots();
    let mut last = vec![0; roots.len()];
    for (step, operator) in sequence.operators().iter().enumerate() {
        for id in operator.inputs.iter().chain(&operator.outputs) {
            last[roots[id.index()].index()] = step;
        }
    }
    for output in sequence.outputs() {
        last[roots[output.index()].index()] = usize::MAX;
    }
    let mut found = Vec::new();
    for (again, operator) in sequence.operators().iter().enumerate() {
        let pairs =
            || operator.outputs.iter().filter_map(|&id| Some((id, original(sequence, id)?)));
        let Some((_, first)) = pairs().next() else { continue };
        let Origin::Output { step, .. } = sequence.tensor(first).origin else { continue };
        if step >= again || sequence.operators()[step].kind != operator.kind {
            continue;
        }
        // Views have no bytes of their own.
        let own = pairs().filter(|&(id, _)| roots[id.index()] == id).map(|(_, original)| original);
        let dropped: Vec<TensorId> =
            own.filter(|id| last[roots[id.index()].index()] < again).collect();
        let bytes = dropped.iter().map(|&id| sequence.tensor(id).size.unwrap_or(0));
        let from = dropped.iter().map(|id| last[roots[id.index()].index()] + 1).max();
        found.push(Rerun {
            step: step as Step,
            again: again as Step,
            bytes: bytes.fold(0, Bytes::saturating_add),
            gap: (from.unwrap_or(again) as Step, again as Step),
        });
    }
    found
}

/// The tensor that a tensor is a copy of, by its name.
fn original(sequence: &OpSequence, copy: TensorId) -> Option<TensorId> {
    let mut name = &*sequence.tensor(copy).name;
    while let Some(shorter) = name.strip_suffix("~1") {
        name = shorter;
        if let Some(id) = sequence.tensor_id(name) {
            return Some(id);
        }
    }
    None
}

/// Names the operators of a sequence that run twice, and the bytes that this saves, in total and at the peak of the
/// plan. The text is empty if no operator runs twice.
#[must_use]
pub fn explain_reruns(sequence: &OpSequence, plan: &Plan) -> String {
    let mut found = reruns(sequence);
    if found.is_empty() {
        return String::new();
    }
    let operators = count(found.len() as u64, "operator");
    let verb = if found.len() == 1 { "runs" } else { "run" };
    let mut report =
        wrapped(&format!("{operators} {verb} twice; the bytes made are not kept in between:"), 0);
    found.sort_by_key(|one| (Reverse(one.bytes), one.step));
    for one in found.iter().take(SHOWN) {
        let operator = operator_at(Some(sequence), one.step).unwrap_or_default();
        let (from, to) = one.gap;
        let gap =
            if from < to { format!(", not kept in {}", lifetime(from, to)) } else { String::new() };
        report += &line(vec![
            text(format!("  {:>10}  ", format!("{:#}", Size(one.bytes)))),
            name(printable(&operator)),
            text(format!(", step {}, again in step {}{gap}", one.step, one.again)),
        ]);
    }
    let sum = |list: &mut dyn Iterator<Item = &Rerun>| {
        list.map(|one| one.bytes).fold(0, Bytes::saturating_add)
    };
    if let Some(rest) = found.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let others = count(rest.len() as u64, "more operator");
        let bytes = Size(sum(&mut rest.iter()));
        report += &line(vec![text(format!("  {:>10}  by {others}", format!("{bytes:#}")))]);
    }
    let peak = Peak::of(plan).step;
    let saved = sum(&mut found.iter().filter(|one| (one.gap.0..one.gap.1).contains(&peak)));
    let words = format!(
        "Without that, {} more would be alive in {}, which has the most bytes alive.",
        Size(saved),
        short_step(Some(sequence), peak)
    );
    report + &hanging("", &words, 0)
}

/// Returns the operators that run twice as JSON, by step; `None` if there are none.
#[cfg(feature = "files")]
#[must_use]
pub fn reruns_json(sequence: &OpSequence) -> Option<serde_json::Value> {
    let one = |rerun: Rerun| {
        serde_json::json!({
            "operator": sequence.operator_name(usize::try_from(rerun.step).unwrap_or_default()),
            "step": rerun.step,
            "again": rerun.again,
            "bytes": rerun.bytes,
            "not_kept": [rerun.gap.0, rerun.gap.1],
        })
    };
    let found = reruns(sequence);
    (!found.is_empty()).then(|| found.into_iter().map(one).collect())
}
