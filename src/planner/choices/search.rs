//! The search over sets of ties.

use std::collections::HashSet;

use super::{
    Best, Choices, MAX_OPEN,
    source::{Tied, Wanted},
};
use crate::{
    Bytes, Plan, PlanError, Planner,
    lower::{Grain, LoweringOptions},
    planner::{Prepared, smaller},
};

/// A search over sets of given-up ties: lowers and plans the input without them.
pub(super) struct Search<'a> {
    pub(super) choices: &'a Choices<'a>,
    pub(super) ties: Vec<Tied>,
    pub(super) lowering: LoweringOptions,
    /// The fewest bytes of a pool, whatever is chosen.
    pub(super) bound: Bytes,
    /// The smallest lower bound of a set of ties so far.
    pub(super) least: Bytes,
    /// The lowerings that are left.
    pub(super) left: usize,
    /// The number of plans left open: neither optimal for their ties nor refuted.
    pub(super) open: usize,
    /// True if a plan was not finished in time.
    pub(super) is_stopped: bool,
}

impl<'a> Search<'a> {
    /// Tries all sets of ties, the ones with the fewest copies first. Returns whether the best plan is then proven
    /// over all choices.
    pub(super) fn try_all(&mut self, best: &mut Best) -> Result<bool, PlanError> {
        let count = self.ties.len();
        let copied: Vec<Bytes> = self
            .ties
            .iter()
            .map(|&tie| self.choices.source.copy(tie).map_or(0, |copy| copy.size))
            .collect();
        let members = |set: u32| (0..count).filter(move |at| set >> at & 1 == 1);
        let mut sets: Vec<(Bytes, u32, u32)> = (0..1_u32 << count)
            .map(|set| (members(set).map(|at| copied[at]).sum(), set.count_ones(), set))
            .collect();
        sets.sort_unstable();
        self.left = 2 * self.grains().len() * sets.len();
        // Accept every overlap, even if it saves nothing with these ties, because sets of overlaps are tried too.
        let limit = self.lowering.overlap_limit.unwrap_or(0);
        self.lowering = self.lowering.overlap_limit(Some(limit));
        let mut is_proven = true;
        // Sets that need at least the bytes of the best plan, so that all sets around them do.
        let mut refuted: Vec<u32> = Vec::new();
        for (_, _, set) in sets {
            if refuted.iter().any(|inner| set & inner == *inner) {
                continue;
            }
            let given_up: Vec<Tied> = members(set).map(|at| self.ties[at]).collect();
            if self.is_refuted(&given_up, best) {
                refuted.push(set);
                continue;
            }
            // The number of runs with the previous grain, if lowering with it succeeded.
            let mut runs = None;
            for &grain in self.grains() {
                if self.is_over() {
                    return Ok(false);
                }
                let wanted = runs.map_or(Wanted::Any, Wanted::OtherRuns);
                let mut is_partial = runs.is_none();
                if let Some(trial) = self.lower(&given_up, grain, wanted)? {
                    runs = Some(trial.runs());
                    is_partial = trial.is_partial;
                    is_proven &= !trial.may_accept_more();
                    is_proven &= self.attempt(&trial, &given_up, best)?;
                }
                // A chunk that cannot be aligned may still lie inside an output.
                is_partial &= self.lowering.gathers;
                if is_partial && let Some(trial) = self.lower(&given_up, grain, Wanted::Gathered)? {
                    is_proven &= self.attempt(&trial, &given_up, best)?;
                }
                if self.choices.is_small(best, self.bound) {
                    return Ok(is_proven);
                }
            }
        }
        Ok(is_proven)
    }

    /// Returns whether no plan without these ties is better than the best, whatever else it gives up. Several pools
    /// are also compared by traffic.
    fn is_refuted(&self, given_up: &[Tied], best: &Best) -> bool {
        let Choices { planner, source, .. } = *self.choices;
        best.plan.as_ref().is_ok_and(|plan| {
            let is_one = plan.pools.len() < 2;
            is_one && source.bound(planner, given_up).is_some_and(|least| least >= plan.pool_size)
        })
    }

    /// Gives up ties at the peak as long as it falls.
    pub(super) fn descend(&mut self, best: &mut Best) -> Result<(), PlanError> {
        let mut runs = 0;
        for &grain in self.grains() {
            if self.is_over() {
                break;
            }
            let mut given_up: Vec<Tied> = Vec::new();
            let Some(mut now) = self.lower(&given_up, grain, Wanted::Any)? else { continue };
            let has_tried = std::mem::replace(&mut runs, now.runs()) == now.runs();
            if grain != Grain::Chunks {
                if best.plan.is_ok() && has_tried {
                    break;
                }
                self.attempt(&now, &given_up, best)?;
            }
            while !self.choices.is_small(best, self.bound) && !self.is_over() {
                let Some((tie, next)) = self.best_step(&now, &given_up, grain)? else { break };
                given_up.push(tie);
                now = next;
                self.attempt(&now, &given_up, best)?;
            }
        }
        self.restore(best)
    }

    /// Plans a trial, unless its bound shows that no plan of it is better, and keeps the plan if it is better than the
    /// best. Returns whether it is proven that the trial has no better plan than the best.
    fn attempt(
        &mut self,
        trial: &Prepared<'a>,
        given_up: &[Tied],
        best: &mut Best,
    ) -> Result<bool, PlanError> {
        self.least = self.least.min(trial.peak().0);
        if best.plan.as_ref().is_ok_and(|plan| trial.is_no_better(plan)) {
            return Ok(true);
        }
        match self.plan(trial)? {
            Tried::Plan(plan) => {
                let is_proven = plan.proven_optimal;
                self.open += usize::from(!is_proven);
                best.offer(*plan, given_up);
                Ok(is_proven)
            }
            Tried::Impossible => Ok(true),
            Tried::Unknown => {
                self.open += 1;
                Ok(false)
            }
        }
    }

    /// The tie whose loss lowers the peak most, or else moves it to the latest step; `None` if none does.
    fn best_step(
        &mut self,
        now: &Prepared<'a>,
        given_up: &[Tied],
        grain: Grain,
    ) -> Result<Option<(Tied, Prepared<'a>)>, PlanError> {
        let mut least = now.peak();
        let mut found = None;
        for tie in self.at_peak(now, given_up) {
            if self.is_over() {
                break;
            }
            let all = [given_up, &[tie]].concat();
            let Some(trial) = self.lower(&all, grain, Wanted::Any)? else { continue };
            if trial.peak() < least {
                least = trial.peak();
                found = Some((tie, trial));
            }
        }
        Ok(found)
    }

    /// The ties of tensors that are alive at the peak.
    fn at_peak(&self, now: &Prepared<'_>, given_up: &[Tied]) -> Vec<Tied> {
        let given_up: HashSet<Tied> = given_up.iter().copied().collect();
        let ties = self.ties.iter().copied().filter(|tie| !given_up.contains(tie));
        ties.filter(|&tie| self.choices.source.is_at_peak(tie, now)).collect()
    }

    /// Restores given-up ties whose loss saves nothing.
    fn restore(&mut self, best: &mut Best) -> Result<(), PlanError> {
        for at in (0..best.given_up.len()).rev() {
            let mut fewer = best.given_up.clone();
            fewer.remove(at);
            for &grain in self.grains() {
                if self.is_over() {
                    return Ok(());
                }
                let Some(trial) = self.lower(&fewer, grain, Wanted::Any)? else { continue };
                if let Tried::Plan(plan) = self.plan(&trial)?
                    && best.plan.as_ref().is_ok_and(|best| !smaller(best, &plan))
                {
                    *best = Best { plan: Ok(*plan), given_up: fewer };
                    break;
                }
            }
        }
        Ok(())
    }

    /// Lowers the input without some ties. `None` if that is impossible, or not wanted.
    fn lower(
        &mut self,
        given_up: &[Tied],
        grain: Grain,
        wanted: Wanted,
    ) -> Result<Option<Prepared<'a>>, PlanError> {
        self.left = self.left.saturating_sub(1);
        let Choices { planner, source, .. } = *self.choices;
        let planner = Planner { lowering: self.lowering, ..planner.clone() };
        match source.prepare(&planner, given_up, grain, wanted) {
            Err(PlanError::Sequence(_) | PlanError::Problem(_) | PlanError::PinsDiffer { .. }) => {
                Ok(None)
            }
            prepared => prepared,
        }
    }

    fn plan(&mut self, trial: &Prepared<'a>) -> Result<Tried, PlanError> {
        match trial.plan_within(self.choices.source.input(), self.choices.limits()) {
            Ok(plan) => Ok(Tried::Plan(Box::new(plan))),
            Err(error) if error.is_stop() => {
                self.is_stopped = true;
                Ok(Tried::Unknown)
            }
            Err(PlanError::NoPlace { .. }) => Ok(Tried::Unknown),
            Err(PlanError::Problem(_) | PlanError::Infeasible) => Ok(Tried::Impossible),
            Err(error) => Err(error),
        }
    }

    fn grains(&self) -> &'static [Grain] {
        self.choices.source.grains(self.choices.planner.lowering)
    }

    fn is_over(&self) -> bool {
        self.left == 0 || self.open > MAX_OPEN || self.is_stopped || self.choices.is_over()
    }
}

/// The result of planning with other choices.
enum Tried {
    Plan(Box<Plan>),
    /// No plan exists.
    Impossible,
    /// No plan was found, but one may exist.
    Unknown,
}
