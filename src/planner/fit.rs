//! Decides whether a plan fits a capacity, which is often much easier than finding the smallest
//! pool.

use std::time::Instant;

use tracing::info;

use crate::{
    Bytes, InputRef, Plan, PlanError, Problem, Strategy,
    lower::Lowered,
    plan::{Layout, Scope},
    planner::{Planner, choices, passes::in_passes},
    search::{self, Fit, Limits, Observer, best, relaxed::Relaxed},
};

/// The result of [`Planner::fit`]. No variant will be added.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanFit {
    /// This plan fits. Its pool need not be the smallest.
    Yes(Plan),
    /// It is proven that no plan fits, whatever it chooses: the lower bound or the
    /// [content bound](Plan::content_bound) of this plan, which is too large, exceeds the capacity.
    No(Plan),
    /// Undecided. This plan is too large; another strategy or more effort may find one that fits.
    Unknown(Plan),
}

/// Answers whether a capacity suffices, by the plan with the best choices found.
fn judged(found: Plan, capacity: Bytes) -> PlanFit {
    match found.scope {
        _ if found.pool_size <= capacity => PlanFit::Yes(found),
        Scope::AllChoices if found.lower_bound > capacity => PlanFit::No(found),
        _ => PlanFit::Unknown(found),
    }
}

/// Wraps the plan in the answer.
type Answer = fn(Plan) -> PlanFit;

impl Planner<'_> {
    /// Decides whether the input fits into a pool of `capacity` bytes. [`Strategy::Best`] and
    /// [`Strategy::Optimal`] search for a plan that fits or a proof that none exists, within the
    /// limits; the other strategies plan as usual.
    ///
    /// ```
    /// use memplan::{Planner, networks, planner::PlanFit};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let fit = |capacity| Planner::new().fit(&sequence, capacity);
    /// assert!(matches!(fit(6 << 20)?, PlanFit::Yes(plan) if plan.pool_size() <= 6 << 20));
    /// assert!(matches!(fit(5 << 20)?, PlanFit::No(_)));
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan).
    pub fn fit<'i>(
        &self,
        input: impl Into<InputRef<'i>>,
        capacity: Bytes,
    ) -> Result<PlanFit, PlanError> {
        let answer = self.fit_by_any_choices(input.into(), capacity)?;
        if let PlanFit::Yes(plan) = &answer {
            plan.log_decisions();
        }
        Ok(answer)
    }

    fn fit_by_any_choices(
        &self,
        input: InputRef<'_>,
        capacity: Bytes,
    ) -> Result<PlanFit, PlanError> {
        let start = Instant::now();
        let limited = match self.fit_with_first_choices(input, capacity) {
            Ok(PlanFit::Yes(plan)) => {
                return Ok(PlanFit::Yes(self.at_content_bound(plan, input)?));
            }
            Ok(PlanFit::No(plan) | PlanFit::Unknown(plan)) if plan.scope != Scope::AllChoices => {
                let bound = self.content_bound(input)?.filter(|&bound| bound > capacity);
                if bound.is_some() {
                    return Ok(PlanFit::No(Plan { content_bound: bound, ..plan }));
                }
                self.after(start)
            }
            Err(error) if choices::may_be_cured(&error) => self.after(start),
            answer => return answer,
        };
        // Other choices may be possible, or may lead to a smaller pool.
        Ok(judged(limited.plan_within(input, capacity)?, capacity))
    }

    /// Returns a plan that fits. If the content bound equals its pool size, no other choice is smaller, and the plan
    /// says so.
    fn at_content_bound(&self, plan: Plan, input: InputRef<'_>) -> Result<Plan, PlanError> {
        if plan.scope == Scope::AllChoices || plan.pools.len() > 1 {
            return Ok(plan);
        }
        match self.content_bound(input)? {
            Some(bound) if bound == plan.pool_size => Ok(choices::of_all_choices(plan, bound)),
            _ => Ok(plan),
        }
    }

    /// Decides whether the input fits with the choices that are made first.
    fn fit_with_first_choices(
        &self,
        input: InputRef<'_>,
        capacity: Bytes,
    ) -> Result<PlanFit, PlanError> {
        let prepared = self.prepare(input)?;
        let lowered = Instant::now();
        let fit = |planner: &Planner<'_>, lowered: &Lowered| -> Result<PlanFit, PlanError> {
            let (answer, layout) = planner.fit_layout(&lowered.problem, capacity)?;
            Ok(answer(prepared.plan(input, lowered, &layout)))
        };
        let gathered = prepared.gathered.as_ref();
        let answer = match gathered.map(|gathered| fit(&prepared.of_gathered(), gathered)) {
            Some(Ok(PlanFit::Yes(plan))) => PlanFit::Yes(plan),
            // A plan with all copies may fit even if no plan with gathered inputs does.
            _ => fit(&prepared.planner.after(lowered), &prepared.lowered)?,
        };
        if let (PlanFit::Yes(_), Some(sequence)) = (&answer, input.sequence()) {
            prepared.lowered.log(sequence);
        }
        Ok(answer)
    }

    /// Returns the strategy's layout if it fits. Otherwise, if the strategy searches, searches for
    /// one that does.
    fn fit_layout(
        &self,
        problem: &Problem,
        capacity: Bytes,
    ) -> Result<(Answer, Layout), PlanError> {
        if let Some(relaxed) = Relaxed::of(problem).filter(|relaxed| !relaxed.may_bind()) {
            let (answer, layout) = self.fit_layout(&relaxed.problem, capacity)?;
            if let Some(layout) = relaxed.satisfied(layout) {
                return Ok((answer, layout));
            }
        }
        if problem.unsupported_feature().is_some() {
            let layout = self.strategy.layout(problem, &self.limits, self.observer)?;
            let is_one = problem.pools().len() == 1;
            let is_refuted = layout.peak_set(problem).bytes > capacity
                || is_one && (layout.is_proven || layout.lower_bound > capacity);
            return Ok(match layout.pool_size(problem) <= capacity {
                true => (PlanFit::Yes, layout),
                false if is_refuted => (PlanFit::No, layout),
                false => (PlanFit::Unknown, layout),
            });
        }
        let start = Instant::now();
        let limits = self.limits.nodes(0);
        let mut layout = self.strategy.layout(problem, &limits, self.observer)?;
        let lower_bound = problem.lower_bound();
        let mut answer: Answer = PlanFit::Yes;
        if layout.pool_size(problem) > capacity {
            let fit = match () {
                () if lower_bound > capacity => Fit::No,
                () if self.strategy.searches() => {
                    let is_best = self.strategy == Strategy::Best;
                    let fits = if is_best { best::fits } else { search::fits };
                    let limits = self.limits.after(start);
                    let pass = |limits: Limits, observer: Observer<'_>| {
                        fits(problem, capacity, &limits, observer)
                    };
                    let is_final = |fit: &Fit| !matches!(fit, Fit::Unknown);
                    in_passes(limits, self.observer, pass, is_final, |_, fit| fit)
                }
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
