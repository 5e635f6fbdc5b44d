//! Shifts single copies to other steps, and keeps what is no longer needed then. Most shifts neither cost nor save
//! anything by themselves, so that annealing rarely tries the right one.

use crate::{
    lists::NOBODY,
    recompute::{
        gaps,
        repair::{Over, Trials},
        search::{Choice, Search, apply},
        sweep::EARLY,
    },
};

/// The most operators of which chains are tried: their number grows with the square of the operators.
const CHAINED: usize = 128;

impl Search<'_, '_, '_> {
    /// Tries every step for every copy of the best choice until no shift makes it cheaper; if none is within the
    /// budget, repairs whatever has less above it.
    pub(super) fn shift(&mut self) {
        while self.shift_once() {}
        let has_few = self.candidates.len() <= CHAINED;
        while has_few && self.best.is_none() && (self.shift_chain(false) || self.shift_chain(true))
        {
        }
    }

    /// Tries every step for every operator with the operands that are not there then; each of these may run earlier,
    /// while its own operands are there. What runs later without need is missing in chains, and may run in time first.
    /// Returns whether the least choice has become better.
    fn shift_chain(&mut self, in_time: bool) -> bool {
        let Choice { mut thresholds, score } = self.least.clone();
        for at in 0..if in_time { self.candidates.len() } else { 0 } {
            let operator = self.candidates[at] as usize;
            let threshold = std::mem::take(&mut thresholds[operator]);
            let tried = self.score(&thresholds);
            if (tried.peak, tried.cost) > (score.peak, score.cost) {
                thresholds[operator] = threshold;
            }
        }
        self.score(&thresholds);
        let excess = self.excess();
        let slots = self.sweep.slots.clone();
        for at in 0..self.candidates.len() {
            let operator = self.candidates[at];
            gaps::uses(self.model, &slots, operator, &mut self.found);
            let last = self.found.last().map_or(0, |&last| last);
            for step in operator + 1..=last.min(self.model.latest[operator as usize]) {
                let chain = self.chain(vec![(operator, step | EARLY)], &thresholds);
                for link in 0..chain.len() {
                    let operand = chain[link].0;
                    let steps = match link {
                        0 => vec![step],
                        _ => self.early_steps(&chain[link..], step, &slots),
                    };
                    for earlier in steps {
                        if self.is_over() {
                            return false;
                        }
                        let mut changes = chain[..link].to_vec();
                        changes.push((operand, earlier | EARLY));
                        let changes = self.chain(changes, &thresholds);
                        let old = apply(&mut thresholds, &changes);
                        let tried = self.score(&thresholds);
                        self.note(&thresholds, tried);
                        if self.excess() < excess {
                            self.polish(thresholds.clone(), Trials::Few);
                        }
                        apply(&mut thresholds, &old);
                        if self.best.is_some() || self.least.score.peak < score.peak {
                            return true;
                        }
                    }
                }
            }
        }
        false
    }

    /// Adds the operands that are not there when the last of some operators runs again.
    fn chain(&mut self, mut changes: Vec<(u32, u32)>, thresholds: &[u32]) -> Vec<(u32, u32)> {
        self.score(thresholds);
        if let Some(&(operator, step)) = changes.last() {
            let drops = (operator, step & !EARLY);
            self.add_operands(drops, Over::Last, thresholds, &mut changes);
        }
        changes
    }

    /// The steps before another, right before and after the uses of the operands of a chain, at which its first
    /// operator may run again.
    fn early_steps(&mut self, chain: &[(u32, u32)], before: u32, slots: &[u32]) -> Vec<u32> {
        let model = self.model;
        let mut steps = Vec::new();
        for &(operator, _) in chain {
            for &value in model.reads.get(operator as usize) {
                let storage = model.values[value as usize].storage as usize;
                let producer = model.storages[storage].producer;
                if producer != NOBODY {
                    gaps::uses(model, slots, producer, &mut self.found);
                    steps.extend(self.found.iter().flat_map(|&at| [at, at + 1]));
                }
            }
        }
        let first = chain[0].0;
        steps.retain(|&at| at > first && at < before && at <= model.latest[first as usize]);
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// Returns whether a shift has made the best choice cheaper.
    fn shift_once(&mut self) -> bool {
        let has_found = self.best.is_some();
        let from = self.best.clone().unwrap_or_else(|| self.least.clone());
        let Choice { mut thresholds, score } = from;
        self.score(&thresholds);
        let excess = self.excess();
        let slots = self.sweep.slots.clone();
        for at in 0..self.candidates.len() {
            let operator = self.candidates[at];
            let slot = slots[operator as usize];
            if slot == 0 {
                continue;
            }
            gaps::uses(self.model, &slots, operator, &mut self.found);
            let last = self.found.last().map_or(0, |&last| last);
            let before = thresholds[operator as usize];
            for step in operator + 1..=last.min(self.model.latest[operator as usize]) {
                if self.is_over() {
                    return false;
                }
                thresholds[operator as usize] = step | EARLY;
                let tried = self.score(&thresholds);
                if !has_found && self.excess() < excess {
                    self.polish(thresholds.clone(), Trials::Few);
                    if self.best.is_some() {
                        return true;
                    }
                }
                if step != slot && tried.peak <= self.budget && tried.cost <= score.cost {
                    self.keep_again(&mut thresholds.clone());
                    if self.best.as_ref().is_some_and(|best| best.score.cost < score.cost) {
                        return true;
                    }
                }
            }
            thresholds[operator as usize] = before;
        }
        false
    }
}
