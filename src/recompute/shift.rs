//! Shifts single copies to other steps, and removes copies that are then no longer needed. Most shifts neither cost nor
//! save anything by themselves, so annealing rarely tries the right one.

use crate::recompute::{
    gaps,
    repair::Trials,
    search::{Choice, Search},
    sweep::EARLY,
};

impl Search<'_, '_, '_> {
    /// Tries every step for every copy of the best choice until no shift makes it cheaper. If no choice is within the
    /// budget yet, repairs every shift that leaves fewer bytes above it.
    pub(super) fn shift(&mut self) {
        while self.shift_once() {}
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
                    self.restore(&mut thresholds.clone());
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
