//! Greedy changes of a choice: drops more results until the peak is within the budget, then restores those that need
//! not be dropped.

use std::cmp::Reverse;

use crate::{
    Bytes,
    lists::NOBODY,
    recompute::{
        gaps,
        search::{Search, apply},
        sweep::{EARLY, Score},
    },
};

/// How many drops are tried for each one that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trials {
    /// The ones with the best estimates: at least [`MIN_TRIALS`].
    Few,
    /// All, until a quarter of the effort is spent.
    AllAtFirst,
}

/// The gap over which operands are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Longest,
    /// The gap that ends at the step where they are needed.
    Last,
}

/// The drops that are tried at least.
const MIN_TRIALS: usize = 12;

/// The fraction of the effort within which all drops may be tried.
const AT_FIRST: f64 = 0.25;

/// The most operands that are dropped with an operator.
const OPERANDS: usize = 64;

/// A drop that a repair may make.
struct Drop {
    /// The bytes above the budget that it saves, summed over all runs, divided by its cost.
    rate: f64,
    operator: u32,
    threshold: u32,
}

impl Search<'_, '_, '_> {
    /// Repairs a choice, then restores results that need not be dropped.
    pub(super) fn polish(&mut self, mut thresholds: Vec<u32>, trials: Trials) {
        if self.repair(&mut thresholds, trials) {
            self.restore(&mut thresholds);
        }
    }

    /// Drops more results until the peak is within the budget, each time the drop that saves the most bytes above the
    /// budget, summed over all runs, per cost. Returns whether the peak is within the budget in the end.
    fn repair(&mut self, thresholds: &mut [u32], trials: Trials) -> bool {
        let start = self.effort.looks();
        loop {
            let score = self.score(thresholds);
            self.note(thresholds, score);
            if score.peak <= self.budget {
                return true;
            }
            if self.is_over() {
                return false;
            }
            let is_first = self.effort.done_since(start) < AT_FIRST;
            let most = match trials {
                Trials::AllAtFirst if is_first => usize::MAX,
                _ => MIN_TRIALS,
            };
            let Some(changes) = self.best_drop(thresholds, most) else { return false };
            apply(thresholds, &changes);
        }
    }

    /// Tries drops in the order of their estimates, and returns the best one. `thresholds` must be the choice that was
    /// walked last.
    fn best_drop(&mut self, thresholds: &mut [u32], most: usize) -> Option<Vec<(u32, u32)>> {
        let excess = self.excess();
        let cost = self.score(thresholds).cost;
        let drops = self.ranked_drops(thresholds);
        let mut best: Option<(f64, Vec<(u32, u32)>)> = None;
        for (at, &Drop { operator, threshold, .. }) in drops.iter().enumerate() {
            if (at >= most && best.is_some()) || self.is_over() {
                break;
            }
            let alone = vec![(operator, threshold)];
            self.score(thresholds);
            let until = self.slot_of(operator, threshold);
            let mut with_operands = alone.clone();
            self.add_operands((operator, until), Over::Longest, thresholds, &mut with_operands);
            let has_operands = with_operands.len() > 1;
            for changes in
                [Some(alone), has_operands.then_some(with_operands)].into_iter().flatten()
            {
                let old = apply(thresholds, &changes);
                let tried = self.score(thresholds);
                let saved = excess - self.excess();
                self.note(thresholds, tried);
                apply(thresholds, &old);
                let rate = match tried.cost.checked_sub(cost) {
                    Some(more @ 1..) => saved / as_float(more),
                    _ => f64::MAX,
                };
                if saved > 0.0 && best.as_ref().is_none_or(|(most, _)| rate > *most) {
                    best = Some((rate, changes));
                }
            }
        }
        best.map(|(_, changes)| changes)
    }

    /// The drops that save anything, by an estimate of how much they save for their cost.
    fn ranked_drops(&mut self, thresholds: &[u32]) -> Vec<Drop> {
        self.count_crowded();
        let mut drops = Vec::new();
        for at in 0..self.candidates.len() {
            let operator = self.candidates[at];
            let (threshold, saved) = self.best_gap(operator);
            if threshold != 0 && saved > 0.0 && thresholds[operator as usize] != threshold {
                // An operator whose results are dropped right after its step may be deferred instead of running twice.
                let is_deferred = threshold == operator + 1;
                let cost = if is_deferred { 0 } else { self.model.cost[operator as usize] };
                drops.push(Drop { rate: saved / (as_float(cost) + 1e-3), operator, threshold });
            }
        }
        drops.sort_by(|a, b| b.rate.total_cmp(&a.rate).then(a.operator.cmp(&b.operator)));
        drops
    }

    /// Counts the runs of the last walk with more live bytes than the budget.
    fn count_crowded(&mut self) {
        self.crowded.clear();
        self.crowded.push(0);
        let mut count = 0;
        for &live in &self.sweep.live {
            count += u32::from(live > self.budget);
            self.crowded.push(count);
        }
    }

    /// The threshold of the gap over which dropping the results of an operator saves the most bytes above the
    /// budget, and an estimate of how much that is.
    fn best_gap(&mut self, operator: u32) -> (u32, f64) {
        gaps::uses(self.model, &self.sweep.slots, operator, &mut self.found);
        let crowded = |step: u32| self.crowded[self.sweep.places[step as usize] as usize];
        let latest = self.model.latest[operator as usize];
        let (mut best, mut most) = (0, (0, 0));
        for gap in gaps::gaps(operator, &self.found).filter(|gap| gap.until <= latest) {
            let runs = crowded(gap.until).saturating_sub(crowded(gap.threshold));
            let saves = (runs, gap.until - gap.threshold);
            if saves > most {
                (best, most) = (gap.threshold, saves);
            }
        }
        let makes = self.model.makes.get(operator as usize).iter();
        let storages = makes.map(|&value| self.model.storage_of(value));
        let bytes: Bytes =
            storages.filter(|storage| !storage.kept).map(|storage| storage.bytes).sum();
        (best, as_float(bytes) * f64::from(most.0))
    }

    /// The step of the first use, from a threshold on, of what an operator makes.
    fn slot_of(&mut self, operator: u32, threshold: u32) -> u32 {
        gaps::uses(self.model, &self.sweep.slots, operator, &mut self.found);
        self.found.iter().copied().find(|&at| at >= threshold).unwrap_or(threshold)
    }

    /// Adds changes so that the operands of an operator run again too, if they would otherwise have to be kept until
    /// its slot.
    pub(super) fn add_operands(
        &mut self,
        (operator, slot): (u32, u32),
        over: Over,
        thresholds: &[u32],
        changes: &mut Vec<(u32, u32)>,
    ) {
        let mut open = vec![operator];
        // A result that is only made again after the slot is not live there yet, so it may be dropped over another gap.
        let is_dropped = |to: u32| to > 0 && (over == Over::Longest || to & !EARLY <= slot);
        while let Some(operator) = open.pop() {
            for &value in self.model.reads.get(operator as usize) {
                let storage = self.model.values[value as usize].storage;
                let storage_of = &self.model.storages[storage as usize];
                let producer = storage_of.producer;
                if storage_of.kept
                    || producer == NOBODY
                    || self.is_live(storage as usize, slot)
                    || self.model.latest[producer as usize] < slot
                    || is_dropped(thresholds[producer as usize])
                    || changes.iter().any(|&(changed, _)| changed == producer)
                    || changes.len() > OPERANDS
                {
                    continue;
                }
                gaps::uses(self.model, &self.sweep.slots, producer, &mut self.found);
                self.found.push(slot);
                self.found.sort_unstable();
                let gap = match over {
                    Over::Longest => gaps::longest(producer, &self.found),
                    Over::Last => gaps::gaps(producer, &self.found).find(|gap| gap.until >= slot),
                };
                if let Some(gap) = gap {
                    changes.push((producer, gap.threshold));
                    open.push(producer);
                }
            }
        }
    }

    /// Returns whether a storage or its copy was live right before a step in the last walk.
    fn is_live(&self, storage: usize, step: u32) -> bool {
        let place = self.sweep.places[step as usize];
        let copy = storage + self.model.storages.len();
        let (first, last) = (&self.sweep.first, &self.sweep.last);
        let lives = |at: usize| first[at] != NOBODY && last[at] >= place;
        lives(storage) || (first[copy] <= place && lives(copy))
    }

    /// Restores results that need not be dropped, the most expensive operators first.
    pub(super) fn restore(&mut self, thresholds: &mut [u32]) {
        let mut score = self.score(thresholds);
        loop {
            let before = score;
            let mut dropped = self.dropped(thresholds);
            dropped.sort_by_key(|&one| Reverse((self.model.cost[one as usize], one)));
            score = self.keep_each(thresholds, dropped, before);
            if score.cost == before.cost {
                return;
            }
        }
    }

    /// The operators whose results are dropped.
    pub(super) fn dropped(&self, thresholds: &[u32]) -> Vec<u32> {
        let is_dropped = |&operator: &u32| thresholds[operator as usize] > 0;
        self.candidates.iter().copied().filter(is_dropped).collect()
    }

    /// Restores the results of each of these operators, in order, if that costs no more and the peak stays within the
    /// budget or does not rise. `score` is the score before; returns the score after.
    pub(super) fn keep_each(
        &mut self,
        thresholds: &mut [u32],
        operators: Vec<u32>,
        mut score: Score,
    ) -> Score {
        for operator in operators {
            let threshold = std::mem::take(&mut thresholds[operator as usize]);
            let tried = self.score(thresholds);
            if tried.peak <= self.budget.max(score.peak) && tried.cost <= score.cost {
                score = tried;
            } else {
                thresholds[operator as usize] = threshold;
            }
        }
        self.note(thresholds, score);
        score
    }
}

#[allow(clippy::cast_precision_loss, reason = "for estimates")]
fn as_float(number: u64) -> f64 {
    number as f64
}
