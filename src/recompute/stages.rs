//! The stages of a search.
//!
//! Minimum cuts give the first choices ([`seeds`](super::seeds)). Each is repaired until its peak is within the
//! budget, and results that need not be dropped are restored ([`repair`](super::repair)). Annealing improves the
//! best choice ([`anneal`](super::anneal)); between its rounds, shifts improve it too ([`shift`](super::shift)),
//! and, while nothing fits, chains ([`chains`](super::chains)).

use crate::recompute::{
    anneal,
    repair::Trials,
    search::{Choice, Search},
};

impl Search<'_, '_, '_> {
    /// Looks for the best choice. `seeds` are choices to begin from.
    pub(super) fn run(&mut self, seeds: &[Vec<u32>]) {
        let nothing = self.nothing();
        let score = self.score(&nothing);
        self.note(&nothing, score);
        if self.best.is_some() {
            return;
        }
        for seed in seeds {
            self.polish(seed.clone(), Trials::Few);
        }
        self.polish(nothing, Trials::AllAtFirst);
        self.cut();
        anneal::anneal(self);
        self.tidy();
    }

    /// Restores operators that are deferred without need, which saves no cost but makes the result simpler.
    fn tidy(&mut self) {
        if let Some(Choice { mut thresholds, .. }) = self.best.take() {
            self.restore(&mut thresholds);
            let score = self.score(&thresholds);
            self.best = Some(Choice { thresholds, score });
        }
    }

    /// Searches for any choice within the budget, starting from a choice that nearly fits.
    pub(super) fn run_until_found(&mut self, near: &[u32]) {
        self.stops_early = true;
        self.polish(near.to_vec(), Trials::Few);
        self.cut();
        anneal::anneal(self);
        self.stops_early = false;
    }
}
