//! Decides whether a plan fits a capacity, which is often much easier than finding the smallest
//! pool.

use tracing::info;

use crate::{
    Bytes, Plan, Problem,
    planner::{
        Layout, PlanError, Planner, Strategy, best,
        search::{self, Fit, Limits},
    },
};

/// The answer of [`Planner::fit`].
#[derive(Clone, Debug, PartialEq)]
pub enum PlanFit {
    /// This plan fits. Its pool need not be the smallest.
    Yes(Plan),
    /// No plan fits; this is proven. This plan is too large; its lower bound is above the capacity.
    No(Plan),
    /// Not known. This plan is too large; another strategy or more effort may find one that fits.
    Unknown(Plan),
}

/// Wraps the plan in the answer.
type Answer = fn(Plan) -> PlanFit;

impl Planner<'_> {
    /// Returns the strategy's layout if it fits. Otherwise, if the strategy searches, searches for
    /// one that does.
    pub(super) fn fit_layout(
        &self,
        problem: &Problem,
        capacity: Bytes,
    ) -> Result<(Answer, Layout), PlanError> {
        let searches = match self.strategy {
            Strategy::Best => best::is_searched(problem),
            strategy => strategy.searches(),
        };
        let limits = Limits { nodes: 0, ..self.limits };
        let mut layout = self.strategy.layout(problem, &limits, self.observer)?;
        let lower_bound = problem.lower_bound().bytes;
        let mut answer: Answer = PlanFit::Yes;
        if layout.pool_size(problem) > capacity {
            let fit = match () {
                () if lower_bound > capacity => Fit::No,
                () if searches => search::fits(problem, capacity, &self.limits, self.observer),
                () => Fit::Unknown,
            };
            match fit {
                Fit::Yes(found) => {
                    let winner = layout.winner.map(|_| Strategy::Optimal);
                    layout = Layout { winner, ..found };
                }
                Fit::No => {
                    // A pool larger than the capacity takes at least one more alignment unit.
                    let refuted = capacity - capacity % problem.alignment() + problem.alignment();
                    layout.lower_bound = refuted.max(lower_bound);
                    answer = PlanFit::No;
                }
                Fit::Unknown => answer = PlanFit::Unknown,
            }
        }
        info!(
            target: "memplan::plan",
            strategy = %self.strategy,
            pool = layout.pool_size(problem),
            capacity,
            chunks = problem.len(),
            "asked whether it fits",
        );
        Ok((answer, layout))
    }
}
