//! Advice as text and as JSON.

use std::ops::Range;

use crate::{
    Bytes, OpSequence, Step,
    report::{
        Size,
        advice::Change,
        fit::{hanging, wrapped},
        operator_at, short, short_step,
    },
};

/// The first line of the list.
const TITLE: &str = "What would help, with the size of the pool that is planned then:";
/// The column in which the changes begin.
const INDENT: usize = 14;

/// Lists changes that make the pool smaller, each with the size of the pool after it. The text is empty if there are
/// none.
#[must_use]
pub fn advice_text(advice: &[(Change, Bytes)], steps: Option<&OpSequence>) -> String {
    let mut text = if advice.is_empty() { String::new() } else { wrapped(TITLE, 0) };
    for (change, pool_size) in advice {
        let label = format!("  {:>10}  ", format!("{:#}", Size(*pool_size)));
        text.push_str(&hanging(&label, &sentence(change, steps), INDENT));
    }
    text
}

fn sentence(change: &Change, steps: Option<&OpSequence>) -> String {
    let run = |run: &Range<usize>| {
        let (first, last) = (run.start, run.end - 1);
        let name = |step: usize| operator_at(steps, step as Step).map(|name| short(&name));
        match name(first).zip(name(last)) {
            Some((begin, end)) => format!("steps {first}..{} ({begin} to {end})", run.end),
            None => format!("steps {first}..{}", run.end),
        }
    };
    match change {
        Change::Order(_) => "in another order of the operators, by memplan reorder".to_owned(),
        Change::Option(option) => format!("with {option}"),
        Change::OneOperator(range) => {
            format!("with one fused operator in place of {}", run(range))
        }
        Change::Without { steps: range, next_peak } => {
            let next = next_peak
                .map(|step| format!("; the next peak is at {}", short_step(steps, step as Step)));
            let next = next.unwrap_or_default();
            format!("without what {} pass to each other{next}", run(range))
        }
        Change::Halves(range) => {
            format!("with {} computed in two halves, one after the other", run(range))
        }
    }
}

/// Returns the changes as JSON: a list with `change`, `pool_size`, and what the change is about.
#[cfg(feature = "files")]
#[must_use]
pub fn advice_json(advice: &[(Change, Bytes)]) -> serde_json::Value {
    use serde_json::json;
    let entry = |(change, pool_size): &(Change, Bytes)| match change {
        Change::Order(order) => {
            json!({"change": "order", "pool_size": pool_size, "order": order})
        }
        Change::Option(option) => {
            json!({"change": "option", "pool_size": pool_size, "option": option})
        }
        Change::OneOperator(steps) => {
            json!({"change": "one_operator", "pool_size": pool_size, "begin": steps.start, "end": steps.end})
        }
        Change::Without { steps, next_peak } => json!({
            "change": "without", "pool_size": pool_size, "begin": steps.start, "end": steps.end,
            "next_peak": next_peak,
        }),
        Change::Halves(steps) => {
            json!({"change": "halves", "pool_size": pool_size, "begin": steps.start, "end": steps.end})
        }
    };
    advice.iter().map(entry).collect()
}
