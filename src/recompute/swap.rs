//! Swaps: adds one copy, alone or with copies of its operands, and then removes all copies that are no longer needed.
//! So one copy may replace several. Annealing rarely does this, because the choices in between cost much more.

use std::cmp::Reverse;

use crate::{
    lists::NOBODY,
    recompute::{
        anneal::Random,
        gaps::{self, Gap},
        repair::Over,
        search::{Choice, Search},
        sweep::Score,
    },
};

/// The nodes for swaps, which are added to those of the search before.
const NODES: u64 = 250_000;

/// Swaps continue from a choice that costs at most this fraction more than the best. After `PATIENCE` swaps without
/// such a choice, they start again from the best. Measured on training steps of 158 to 399 operators.
const SLACK: f64 = 0.05;
const PATIENCE: u32 = 100;

/// The work that counts for an operator that cannot be swapped in.
const VISITS: u64 = 64;

impl Search<'_, '_, '_> {
    /// Swaps while that makes the best choice cheaper, then at random.
    pub(super) fn swap(&mut self) {
        self.effort.extend(NODES);
        while self.swap_once() {}
        self.swap_at_random(&mut Random(7));
    }

    /// Tries every operator; returns whether one has made the best choice cheaper.
    fn swap_once(&mut self) -> bool {
        let Some(from) = self.best.clone() else { return false };
        for at in 0..self.candidates.len() {
            let operator = self.candidates[at];
            for with_operands in [false, true] {
                if self.is_over() {
                    return false;
                }
                self.score(&from.thresholds);
                self.find_uses(operator);
                let gap = gaps::longest(operator, &self.found);
                if self.swapped(&from, operator, gap, with_operands).is_some()
                    && self.best.as_ref().is_some_and(|best| best.score.cost < from.score.cost)
                {
                    return true;
                }
            }
        }
        false
    }

    /// Swaps in random operators, also to choices that are a little worse.
    #[allow(clippy::cast_precision_loss, reason = "costs are compared with noise")]
    fn swap_at_random(&mut self, random: &mut Random) {
        if self.candidates.is_empty() {
            return;
        }
        let Some(mut now) = self.best.clone() else { return };
        let mut failed = 0;
        while !self.is_over() {
            let operator = self.candidates[random.below(self.candidates.len())];
            self.score(&now.thresholds);
            self.find_uses(operator);
            let gap = match random.below(3) {
                0 => gaps::gaps(operator, &self.found).nth(random.below(self.found.len().max(1))),
                _ => gaps::longest(operator, &self.found),
            };
            let swapped = self.swapped(&now, operator, gap, random.below(2) == 0);
            let Some(best) = &self.best else { return };
            let most = best.score.cost as f64 * (1.0 + SLACK * random.part());
            let is_good = |choice: &Choice| {
                choice.score.peak <= self.budget && choice.score.cost as f64 <= most
            };
            match swapped.filter(is_good) {
                Some(choice) => (now, failed) = (choice, 0),
                None if failed < PATIENCE => failed += 1,
                None => (now, failed) = (best.clone(), 0),
            }
        }
    }

    fn find_uses(&mut self, operator: u32) {
        gaps::uses(self.model, &self.sweep.slots, operator, &mut self.found);
    }

    /// Drops the results of an operator over a gap, and of its operands if `with_operands`, then restores all results
    /// that need not be dropped. `None` if the operator already runs again, or cannot. The last walk must be that of
    /// `from`.
    fn swapped(
        &mut self,
        from: &Choice,
        operator: u32,
        gap: Option<Gap>,
        with_operands: bool,
    ) -> Option<Choice> {
        let may_run = |gap: &Gap| gap.until <= self.model.latest[operator as usize];
        let is_kept = from.thresholds[operator as usize] == 0;
        let Some(gap) = gap.filter(|gap| is_kept && may_run(gap)) else {
            self.effort.spend(VISITS);
            return None;
        };
        let mut changes = vec![(operator, gap.threshold)];
        if with_operands {
            let drops = (operator, gap.until);
            self.add_operands(drops, Over::Longest, &from.thresholds, &mut changes);
        }
        let mut thresholds = from.thresholds.clone();
        for &(changed, threshold) in &changes {
            thresholds[changed as usize] = threshold;
        }
        let barred: Vec<u32> = changes.iter().map(|&(changed, _)| changed).collect();
        self.keep_others(&mut thresholds, &barred);
        let score = self.keep_others(&mut thresholds, &[]);
        Some(Choice { thresholds, score })
    }

    /// Restores results that need not be dropped, except those of `barred` operators, the most expensive first, with
    /// the cost of their operands' copies. A peak above the budget never rises.
    fn keep_others(&mut self, thresholds: &mut [u32], barred: &[u32]) -> Score {
        loop {
            let before = self.score(thresholds);
            let mut dropped = self.dropped(thresholds);
            dropped.retain(|operator| !barred.contains(operator));
            dropped.sort_by_cached_key(|&one| Reverse((self.cost_with_operands(one), one)));
            let score = self.keep_each(thresholds, dropped, before);
            if score.cost == before.cost {
                return score;
            }
        }
    }

    /// The cost of the copy of an operator, and of the copies of its operands in the same slot.
    fn cost_with_operands(&self, operator: u32) -> u64 {
        let slots = &self.sweep.slots;
        let slot = slots[operator as usize];
        let producers = self.model.reads.get(operator as usize).iter();
        let producers = producers.map(|&value| self.model.storage_of(value).producer);
        let in_slot =
            producers.filter(|&one| one != NOBODY && slot > 0 && slots[one as usize] == slot);
        let cost = |one: u32| self.model.cost[one as usize];
        in_slot.map(cost).sum::<u64>() + cost(operator)
    }
}
