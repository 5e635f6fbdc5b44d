//! Chains: an operator that runs again at an early step, together with the operands that are not live then, their
//! operands, and so on. If no choice fits, a chain may lower the peak although no part of it does.

use crate::{
    lists::NOBODY,
    recompute::{
        gaps,
        repair::{Over, Trials},
        search::{Choice, Search, apply},
        sweep::{EARLY, Score},
    },
};

/// With more operators that may run again, no chains are tried: their number grows with the square of it.
const CHAINED: usize = 128;

impl Search<'_, '_, '_> {
    /// Looks for a choice within the budget, or at least of a lower peak.
    pub(super) fn add_chains(&mut self) {
        let has_few = self.candidates.len() <= CHAINED;
        while has_few && self.best.is_none() {
            let Choice { thresholds, score } = self.least.clone();
            if !self.add_chain(thresholds.clone(), score) {
                let in_time = self.run_in_time(thresholds, score);
                if !self.add_chain(in_time, score) {
                    return;
                }
            }
        }
    }

    /// The same choice without operators that are deferred at no gain, because a chain could not contain them.
    fn run_in_time(&mut self, mut thresholds: Vec<u32>, score: Score) -> Vec<u32> {
        for at in 0..self.candidates.len() {
            let operator = self.candidates[at] as usize;
            let threshold = std::mem::take(&mut thresholds[operator]);
            let tried = self.score(&thresholds);
            if (tried.peak, tried.cost) > (score.peak, score.cost) {
                thresholds[operator] = threshold;
            }
        }
        thresholds
    }

    /// Tries the chain of every operator at every step, with each operator of the chain also at earlier steps. Returns
    /// whether a choice within the budget, or one of a lower peak, was found.
    fn add_chain(&mut self, mut thresholds: Vec<u32>, score: Score) -> bool {
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

    /// Adds to some operators the chain of the last of them.
    fn chain(&mut self, mut changes: Vec<(u32, u32)>, thresholds: &[u32]) -> Vec<(u32, u32)> {
        self.score(thresholds);
        if let Some(&(operator, step)) = changes.last() {
            let drops = (operator, step & !EARLY);
            self.add_operands(drops, Over::Last, thresholds, &mut changes);
        }
        changes
    }

    /// The steps before step `before` at which the first operator of a chain may run again: right before and right
    /// after the uses of the chain's operands.
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
}
