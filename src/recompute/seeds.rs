//! First choices, by minimum cuts: the convex hull of bytes against cost, then Lagrange multipliers for each step.

use crate::{
    Bytes,
    lists::narrow,
    recompute::{
        cuts::{Cuts, Prices},
        repair::Trials,
        search::{Choice, Search},
        sweep::Score,
    },
};

/// The prices of the hull: the first charges this fraction of the total cost for all bytes together, and each is
/// `TIMES` times the one before.
const FIRST_PRICE: f64 = 0.05;
const TIMES: f64 = 1.5;
const PRICES: usize = 40;

/// The points of the hull nearest to the budget, from which multipliers start.
const STARTS: usize = 6;

/// Rounds in which the prices follow the live bytes.
const ROUNDS: u32 = 25;

/// The first step length of the multipliers, as a fraction of Polyak's, and the rounds after which it is halved.
/// Measured on training steps of 61 to 399 operators.
const STEP: f64 = 0.05;
const HALF: f64 = 8.0;

impl Search<'_, '_, '_> {
    /// Begins from the points of the hull nearest to the budget.
    pub(super) fn cut(&mut self) {
        let mut cuts = Cuts::new(self.model);
        let nothing = self.nothing();
        self.score(&nothing);
        let crowded = self.most_crowded();
        let mut points: Vec<(f64, Choice)> = Vec::new();
        let all: Bytes = self.model.storages.iter().map(|storage| storage.bytes).sum();
        #[allow(clippy::cast_precision_loss, reason = "a price needs no more digits")]
        let mut price = FIRST_PRICE / (all.max(1) as f64);
        let mut last = Score::default();
        for _ in 0..PRICES {
            if self.is_over() {
                break;
            }
            // Only what is kept over the step with the most live bytes has a price.
            let price_of = |from, to| if from < crowded && crowded < to { price } else { 0.0 };
            let choice = self.choose(&mut cuts, price_of);
            if choice.score != last {
                last = choice.score;
                points.push((price, choice));
            }
            price *= TIMES;
        }
        points.sort_by_key(|(_, choice)| {
            (choice.score.peak.abs_diff(self.budget), choice.score.cost)
        });
        points.truncate(STARTS);
        for (price, choice) in points {
            self.follow_prices(&mut cuts, price, crowded);
            self.polish(choice.thresholds, Trials::Few);
        }
    }

    /// Makes a choice by a minimum cut.
    fn choose(&mut self, cuts: &mut Cuts<'_>, price: impl Fn(u32, u32) -> f64) -> Choice {
        let thresholds = cuts.choose(price);
        self.effort.spend(std::mem::take(&mut cuts.work));
        let score = self.score(&thresholds);
        self.note(&thresholds, score);
        Choice { thresholds, score }
    }

    /// The step with the most live bytes in the last walk.
    fn most_crowded(&self) -> u32 {
        let most = (0..self.sweep.live.len()).max_by_key(|&run| self.sweep.live[run]).unwrap_or(0);
        let step = self.sweep.places.partition_point(|&place| (place as usize) < most);
        narrow(step.min(self.model.operators().saturating_sub(1)))
    }

    /// Multipliers by step: raises the prices of the steps above the budget and cuts again. Begins with a price at
    /// one step.
    fn follow_prices(&mut self, cuts: &mut Cuts<'_>, price: f64, crowded: u32) {
        cuts.follow(None);
        let mut prices = Prices::new(self.model.operators());
        prices.set(crowded as usize, price);
        let mut nearest: Option<Choice> = None;
        for round in 0..ROUNDS {
            if self.is_over() {
                return;
            }
            let choice = self.choose(cuts, |from, to| prices.between(from, to));
            let damping = STEP / (1.0 + f64::from(round) / HALF);
            let distance = |paid: f64| damping * self.distance(choice.score, paid);
            prices.follow(&self.sweep, self.budget, distance);
            cuts.follow(Some(&self.sweep));
            let rank = |of: &Choice| (of.score.peak.saturating_sub(self.budget), of.score.cost);
            if nearest.as_ref().is_none_or(|nearest| rank(&choice) < rank(nearest)) {
                nearest = Some(choice);
            }
        }
        if let Some(choice) = nearest {
            self.polish(choice.thresholds, Trials::Few);
        }
    }

    /// How far the Lagrangian bound of a choice, its cost plus what is `paid` for bytes above the budget, is from
    /// the best cost, as a part of the cost of everything.
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    fn distance(&self, score: Score, paid: f64) -> f64 {
        let total = self.model.cost.iter().sum::<u64>().max(1) as f64;
        let cost = score.cost as f64 / total;
        let bound = cost + paid;
        let goal = match &self.best {
            Some(best) => best.score.cost as f64 / total,
            None => bound.max(cost) * 1.1 + 0.01,
        };
        (goal - bound).abs().max(0.002)
    }
}
