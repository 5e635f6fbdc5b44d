//! The results of a search.

use crate::effort::Effort;
use crate::{
    Bytes, OpSequence, PlanError,
    lower::{Grain, lower_apart},
    recompute::{
        LaterRun, Recompute, bound, expand,
        model::Model,
        search::{Choice, Search},
        sweep::Sweep,
    },
};

/// The result of a search for what fits a capacity: an expanded sequence, or its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recomputed<T> {
    /// The expanded sequence, or its plan, that fits.
    Found(Box<T>),
    /// No expanded sequence in the given order fits, however often operators run again.
    Impossible {
        /// The least peak in bytes of any expanded sequence in the given order; more than the capacity.
        peak_bound: Bytes,
    },
    /// The search found nothing that fits, but it may exist.
    NotFound {
        /// The least peak, or the smallest pool, in bytes that it found.
        least: Bytes,
        /// A bound in bytes: no expanded sequence in the given order has a smaller peak.
        peak_bound: Bytes,
    },
}

/// An expanded sequence whose peak is within a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recomputation {
    /// The operators in their order, with copies where they run again.
    pub sequence: OpSequence,
    /// The runs that are not at their own steps, in order: copies, and deferred operators.
    pub later: Vec<LaterRun>,
    /// The most bytes that may be live at a step: the capacity that the search had.
    pub capacity: Bytes,
    /// The cost of all copies, in the unit of [`Operator::cost`](crate::Operator::cost).
    pub extra_cost: u64,
    /// The cost of all operators and all copies.
    pub cost: u64,
    /// A lower bound on the extra cost of every expanded sequence in the given order that fits the capacity,
    /// however often operators run again.
    pub cost_bound: u64,
    /// The most bytes live at a step of the expanded sequence.
    pub peak: Bytes,
    /// The most bytes live at a step of the given sequence.
    pub given_peak: Bytes,
    /// A bound in bytes: no expanded sequence in the given order has a smaller peak.
    pub peak_bound: Bytes,
    /// The number of nodes searched.
    pub nodes: u64,
}

impl Recomputation {
    /// The steps of the given sequence whose operators run twice, in the order of their copies.
    pub fn runs_twice(&self) -> impl Iterator<Item = usize> + '_ {
        self.later.iter().filter(|run| run.is_copy).map(|run| run.step)
    }

    /// The cost of all operators of the given sequence.
    #[must_use]
    pub const fn given_cost(&self) -> u64 {
        self.cost - self.extra_cost
    }

    /// Returns whether no expanded sequence in the given order that is within the capacity costs less.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.extra_cost == self.cost_bound
    }
}

/// This fraction of the effort is for the bound on the cost: 1 / `BOUND`.
const BOUND: u64 = 8;

impl Recompute<'_> {
    /// Returns the most bytes live at a step: the lower bound of every plan.
    pub(super) fn peak(&self, sequence: &OpSequence) -> Result<Bytes, PlanError> {
        let problem = lower_apart(sequence, self.lowering, self.placing, Grain::Chunks)?.problem;
        let placed =
            problem.with_alignment(self.placing.alignment)?.with_padding(self.placing.padding)?;
        Ok(placed.lower_bound())
    }

    /// Searches for one capacity.
    pub(super) fn find(
        &self,
        model: &Model,
        sequences: Sequences<'_>,
        effort: &mut Effort<'_>,
    ) -> Result<Recomputed<Recomputation>, PlanError> {
        let given_peak = self.peak(sequences.flat)?;
        let peak_bound = bound::peak(model).min(given_peak);
        effort.lower_bound = peak_bound;
        if peak_bound > self.capacity {
            return Ok(Recomputed::Impossible { peak_bound });
        }
        let fits = given_peak <= self.capacity;
        let cost_bound = if fits { 0 } else { self.cost_bound(model, effort) };
        let mut budget = self.capacity;
        let mut least_peak = given_peak;
        // The model's peak may differ slightly, so the peak after lowering decides.
        for _ in 0..4 {
            let mut search = Search::new(model, budget, effort);
            search.least_cost = cost_bound;
            search.run(&[]);
            if self.limits.is_unlimited() {
                search.swap();
            }
            let choice = search.best.take().unwrap_or_else(|| search.least.clone());
            let later = later_runs(model, &choice.thresholds);
            let flat = expand(sequences.flat, &later)?;
            let peak = self.peak(&flat)?;
            least_peak = least_peak.min(peak);
            if peak <= self.capacity {
                let found = self.found(model, sequences, &choice, cost_bound)?;
                let nodes = effort.nodes();
                return Ok(Recomputed::Found(Box::new(Recomputation { nodes, ..found })));
            }
            let over = peak - self.capacity;
            if effort.is_spent() || choice.score.peak > budget || budget < over {
                break;
            }
            budget -= over;
        }
        Ok(Recomputed::NotFound { least: least_peak, peak_bound })
    }

    /// The expanded sequence of a choice, with what is known about it.
    pub(super) fn found(
        &self,
        model: &Model,
        sequences: Sequences<'_>,
        choice: &Choice,
        cost_bound: u64,
    ) -> Result<Recomputation, PlanError> {
        let later = later_runs(model, &choice.thresholds);
        let given_peak = self.peak(sequences.flat)?;
        let peak = self.peak(&expand(sequences.flat, &later)?)?;
        let extra_cost = choice.score.cost;
        Ok(Recomputation {
            sequence: expand(sequences.given, &later)?,
            later,
            capacity: self.capacity,
            extra_cost,
            cost: model.cost.iter().sum::<u64>() + extra_cost,
            cost_bound: cost_bound.min(extra_cost),
            peak,
            given_peak,
            peak_bound: bound::peak(model).min(given_peak),
            nodes: 0,
        })
    }

    /// The least extra cost within the capacity, by a part of the effort.
    pub(super) fn cost_bound(&self, model: &Model, effort: &mut Effort<'_>) -> u64 {
        let whole = effort.limit_to(BOUND);
        let bound = bound::cost(model, self.capacity, effort);
        effort.restore(whole);
        bound
    }
}

/// A sequence, and the same one with workspace in place of its bodies.
#[derive(Clone, Copy)]
pub(super) struct Sequences<'a> {
    pub(super) given: &'a OpSequence,
    pub(super) flat: &'a OpSequence,
}

/// The later runs of a choice.
pub(super) fn later_runs(model: &Model, thresholds: &[u32]) -> Vec<LaterRun> {
    if thresholds.is_empty() {
        return Vec::new();
    }
    let mut sweep = Sweep::new(model);
    sweep.score(thresholds);
    let run = |step: usize| LaterRun {
        before: sweep.slots[step] as usize,
        step,
        is_copy: !sweep.deferred[step],
    };
    let mut later: Vec<LaterRun> =
        (0..model.operators()).filter(|&step| sweep.slots[step] > 0).map(run).collect();
    later.sort_unstable();
    later
}
