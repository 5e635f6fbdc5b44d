//! The gaps between the readers of what an operator makes. Results are dropped over one of them.

use crate::{
    lists::narrow,
    recompute::{model::Model, sweep::Sweep},
};

/// Finds the steps at which the results of an operator, or copies of them, are read: by operators of the given
/// sequence at their steps, and by copies in their slots; ascending, without repeats.
pub(super) fn uses(model: &Model, slots: &[u32], operator: u32, found: &mut Vec<u32>) {
    found.clear();
    add_uses(model, slots, operator, found);
    found.sort_unstable();
    found.dedup();
}

fn add_uses(model: &Model, slots: &[u32], operator: u32, found: &mut Vec<u32>) {
    for &reader in model.readers.get(operator as usize) {
        if model.leader[reader as usize] == model.leader[operator as usize] && reader != operator {
            // It makes a view, so its readers count.
            if model.leader[reader as usize] != reader {
                add_uses(model, slots, reader, found);
                continue;
            }
        }
        found.push(reader);
        if slots[reader as usize] > 0 {
            found.push(slots[reader as usize]);
        }
    }
}

/// A gap between two readers, or between an operator and the first reader of what it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// The first step of the gap: the threshold of dropping over it.
    pub(super) threshold: u32,
    /// The use that ends it.
    pub(super) until: u32,
}

/// The gaps between the uses of what an operator makes, in order.
pub(super) fn gaps(operator: u32, uses: &[u32]) -> impl Iterator<Item = Gap> + '_ {
    let mut before = operator;
    uses.iter().map(move |&until| {
        let threshold = std::mem::replace(&mut before, until) + 1;
        Gap { threshold, until }
    })
}

/// The longest gap, or the last of several longest ones; `None` without uses.
pub(super) fn longest(operator: u32, uses: &[u32]) -> Option<Gap> {
    gaps(operator, uses).max_by_key(|gap| gap.until.saturating_sub(gap.threshold))
}

/// An estimate of the gaps over which results are dropped, for when no walk is known yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    /// By operator: the threshold of its longest gap; 0 if it cannot run again, or if no operator reads its results.
    pub(super) thresholds: Vec<u32>,
    /// By operator: the step at which it would run again.
    pub(super) slots: Vec<u32>,
}

impl Estimate {
    /// Finds, for each operator, the longest gap between its readers in the given sequence, or up to a reader that
    /// would run again, if that gap is more than twice as long. If the last walk is `known`, its slots replace
    /// estimates.
    pub(super) fn new(model: &Model, known: Option<&Sweep<'_>>) -> Self {
        let operators = model.operators();
        let nothing = vec![0; operators];
        let mut estimate = Self { thresholds: nothing.clone(), slots: nothing.clone() };
        let (mut found, mut all) = (Vec::new(), Vec::new());
        for operator in (0..narrow(operators)).rev() {
            let at = operator as usize;
            if model.latest[at] == 0 || model.leader[at] != operator {
                continue;
            }
            uses(model, &nothing, operator, &mut found);
            uses(model, &estimate.slots, operator, &mut all);
            let own = longest(operator, &found);
            let Some(whole) = longest(operator, &all) else { continue };
            // Readers that run again within the gap do not shorten it here, because not all of them will run again.
            let gap =
                own.filter(|own| 2 * (own.until - own.threshold) >= whole.until - whole.threshold);
            let gap = gap.unwrap_or(whole);
            if gap.threshold <= model.latest[at] {
                estimate.thresholds[at] = gap.threshold;
                let slot = known.map_or(0, |sweep| sweep.slots[at]);
                estimate.slots[at] = if slot > 0 { slot } else { gap.until };
            }
        }
        estimate
    }
}
