//! The state of a search for a choice whose peak is within a budget, at the least cost.

use crate::effort::Effort;
use crate::{
    Bytes,
    recompute::{
        model::Model,
        sweep::{Score, Sweep},
    },
};

/// A choice with what it leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) thresholds: Vec<u32>,
    pub(super) score: Score,
}

/// A search for one budget.
pub(super) struct Search<'m, 'e, 'o> {
    pub(super) model: &'m Model,
    pub(super) sweep: Sweep<'m>,
    pub(super) effort: &'e mut Effort<'o>,
    pub(super) budget: Bytes,
    /// A lower bound on the cost: the search is over once it is reached.
    pub(super) least_cost: u64,
    pub(super) candidates: Vec<u32>,
    /// The cheapest choice within the budget.
    pub(super) best: Option<Choice>,
    /// The choice with the lowest peak; the cheapest among several.
    pub(super) least: Choice,
    /// By run, and one more: the runs before it with more live bytes than the budget.
    pub(super) crowded: Vec<u32>,
    /// True if the search ends with the first choice within the budget.
    pub(super) stops_early: bool,
    pub(super) found: Vec<u32>,
}

impl<'m, 'e, 'o> Search<'m, 'e, 'o> {
    pub(super) fn new(model: &'m Model, budget: Bytes, effort: &'e mut Effort<'o>) -> Self {
        let mut search = Self {
            model,
            sweep: Sweep::new(model),
            effort,
            budget,
            least_cost: 0,
            candidates: model.candidates(),
            best: None,
            least: Choice::default(),
            crowded: Vec::new(),
            stops_early: false,
            found: Vec::new(),
        };
        let thresholds = search.nothing();
        let score = search.score(&thresholds);
        search.least = Choice { thresholds, score };
        search
    }

    /// The choice in which nothing runs again.
    pub(super) fn nothing(&self) -> Vec<u32> {
        vec![0; self.model.operators()]
    }

    /// Returns whether the search is over.
    pub(super) fn is_over(&self) -> bool {
        let is_good = |best: &Choice| self.stops_early || best.score.cost <= self.least_cost;
        self.effort.is_spent() || self.best.as_ref().is_some_and(is_good)
    }

    /// Walks over a choice and counts the work.
    pub(super) fn score(&mut self, thresholds: &[u32]) -> Score {
        let score = self.sweep.score(thresholds);
        self.effort.spend(std::mem::take(&mut self.sweep.work));
        score
    }

    /// Remembers a choice if it is the best so far.
    pub(super) fn note(&mut self, thresholds: &[u32], score: Score) {
        if (score.peak, score.cost) < (self.least.score.peak, self.least.score.cost) {
            self.least = Choice { thresholds: thresholds.to_vec(), score };
            self.effort.best = self.effort.best.min(score.peak);
        }
        let is_cheaper =
            |best: &Choice| (score.cost, score.peak) < (best.score.cost, best.score.peak);
        if score.peak <= self.budget && self.best.as_ref().is_none_or(is_cheaper) {
            self.best = Some(Choice { thresholds: thresholds.to_vec(), score });
        }
    }

    /// The bytes above the budget, summed up over the runs of the last walk.
    #[allow(clippy::cast_precision_loss, reason = "a sum for comparisons")]
    pub(super) fn excess(&self) -> f64 {
        self.sweep.live.iter().map(|live| live.saturating_sub(self.budget) as f64).sum()
    }
}

/// Changes thresholds; returns the changes that undo it.
pub(super) fn apply(thresholds: &mut [u32], changes: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let set = |&(operator, threshold): &(u32, u32)| {
        (operator, std::mem::replace(&mut thresholds[operator as usize], threshold))
    };
    let mut old: Vec<(u32, u32)> = changes.iter().map(set).collect();
    old.reverse();
    old
}
