//! The result of verifying a plan, as text.

use std::fmt::Write;

use crate::{
    Bytes, Plan,
    report::{
        Size, bound_name, count,
        fit::shortened,
        printable,
        summary::{CLAIMED, PEAK, Row, UNCHECKED, table},
    },
    verify::Violation,
};

/// The most characters of a name in a violation.
const MAX_NAME: usize = 60;

/// Shortens the quoted names in a sentence, each to its beginning and its end. Generated names may fill several lines.
fn abridged(sentence: &str) -> String {
    let parts = sentence.split('\'').enumerate();
    let parts =
        parts.map(|(at, part)| if at % 2 == 1 { shortened(part, MAX_NAME) } else { part.into() });
    parts.collect::<Vec<_>>().join("'")
}

/// Reports that a plan is right, with its figures, or lists up to `shown` of its violations, one per line. The peak is
/// the [bytes alive](crate::verify::Verifier::bytes_alive) that verification counted; a larger bound in the plan is
/// reported as a claim.
#[must_use]
pub fn verification(
    plan: &Plan,
    violations: &[Violation],
    bytes_alive: Bytes,
    shown: usize,
) -> String {
    if !violations.is_empty() {
        let sentences: Vec<String> = violations.iter().map(ToString::to_string).collect();
        return of_another_input(plan, violations) + &self::violations(&sentences, shown);
    }
    // Only a search can prove a bound above the bytes alive.
    let mut checked = plan.clone();
    checked.lower_bound = plan.lower_bound.min(bytes_alive);
    let mut rows = match checked.ratio() {
        1.0 => vec![Row::new("pool", plan.pool_size, "= peak of live tensors".to_owned())],
        ratio => vec![
            Row::new("pool", plan.pool_size, format!("= {ratio:.3} x {PEAK}")),
            Row::new(PEAK, bytes_alive, "the most bytes live at one step".to_owned()),
        ],
    };
    if plan.lower_bound > bytes_alive {
        rows.push(Row::new(CLAIMED, plan.lower_bound, UNCHECKED.to_owned()));
    }
    let chunks = count(plan.chunks.len() as u64, "chunk");
    let tensors = count(plan.tensors.len() as u64, "tensor");
    format!("correct: {chunks}, {tensors}\n{}", table(&rows))
}

/// Lists up to `shown` violations, one per line, and states how many there are.
#[must_use]
pub fn violations(sentences: &[String], shown: usize) -> String {
    let mut text = String::new();
    for sentence in sentences.iter().take(shown) {
        text.push_str(&abridged(&printable(sentence)));
        text.push('\n');
    }
    if let Some(more) = sentences.len().checked_sub(shown).filter(|&more| more > 0) {
        let _ = writeln!(text, "and {more} more; -v lists all");
    }
    let _ = writeln!(text, "wrong: {}", count(sentences.len() as u64, "violation"));
    text
}

/// A note that a plan is of another input, if most of its names are not in this one; otherwise empty.
fn of_another_input(plan: &Plan, violations: &[Violation]) -> String {
    let is_unknown = |violation: &&Violation| matches!(violation, Violation::Unknown { .. });
    let names = if plan.tensors.is_empty() { plan.chunks.len() } else { plan.tensors.len() };
    let known = names.saturating_sub(violations.iter().filter(is_unknown).count());
    if known >= names.div_ceil(2) {
        return String::new();
    }
    format!("the plan is of another input: {known} of its {names} names are in this one\n")
}

/// The pool as a multiple of the larger bound: `1.071 x the peak, 14.0 KiB (14 336 B)`.
#[must_use]
pub fn bound_ratio(plan: &Plan) -> String {
    format!("{:.3} x the {}, {}", plan.ratio(), bound_name(plan), Size(plan.lower_bound))
}

#[cfg(test)]
mod tests {
    use super::abridged;

    #[test]
    fn long_names_are_abridged_in_the_middle() {
        let long = format!("model/{}/bias", "block/".repeat(40));
        let shown = abridged(&format!("'{long}' and 'x' share the bytes [0, 4)"));
        assert!(
            shown.starts_with("'model/block/")
                && shown.ends_with("/bias' and 'x' share the bytes [0, 4)")
        );
        assert_eq!(shown.chars().count(), 60 + "'' and 'x' share the bytes [0, 4)".chars().count());
        assert_eq!(abridged("'a' lies at 5"), "'a' lies at 5");
    }
}
