//! The stages of a search.
//!
//! Minimum cuts give the first choices ([`seeds`](super::seeds)). Each is repaired until its peak is within the
//! budget, and whatever need not run again is kept again ([`repair`](super::repair)). Annealing improves the
//! best ([`anneal`](super::anneal)), and so do shifts between its rounds ([`shift`](super::shift))
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

    /// Undoes what saves no cost: operators that run later without need.
    fn tidy(&mut self) {
        if let Some(Choice { mut thresholds, .. }) = self.best.take() {
            self.keep_again(&mut thresholds);
            let score = self.score(&thresholds);
            self.best = Some(Choice { thresholds, score });
        }
    }

    /// Looks for any choice within the budget, from one that is near.
    pub(super) fn run_until_found(&mut self, near: &[u32]) {
        self.stops_early = true;
        self.polish(near.to_vec(), Trials::Few);
        self.cut();
        anneal::anneal(self);
        self.stops_early = false;
    }
}
