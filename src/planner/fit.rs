//! Decides whether a plan fits a capacity, which is often much easier than finding the smallest
//! pool.

use std::time::Instant;

use tracing::info;

use crate::{
    Bytes, InputRef, Plan, PlanError, Problem, Strategy,
    lower::Lowered,
    plan::{Layout, Scope},
    planner::{Planner, choices, passes::in_passes},
    search::{self, Conflict, Fit, Limits, Observer, best, relaxed::Relaxed},
};

impl Plan {
    /// Returns whether a pool of `capacity` bytes suffices. True if this plan fits. False if it is proven that no plan
    /// of the input fits, whatever it chooses: by the lower bound, the [content bound](Self::content_bound), or because
    /// no plan has a smaller pool. `None` if this plan is too large and another one may fit.
    #[must_use]
    pub fn fits(&self, capacity: Bytes) -> Option<bool> {
        if self.pool_size <= capacity {
            return Some(true);
        }
        let is_proven = self.proven_optimal && self.pools.len() < 2;
        let is_refuted =
            self.scope == Scope::AllChoices && (is_proven || self.lower_bound > capacity);
        let is_out = is_refuted || self.content_bound.is_some_and(|bound| bound > capacity);
        is_out.then_some(false)
    }
}

impl Planner<'_> {
    /// Searches for an irreducible set of chains that cannot fit together into `capacity` bytes. `None` if the problem
    /// fits, or if the limits do not suffice to decide. Each decision of the reduction may use all nodes of the limits;
    /// their time applies to all of them together. The problem is taken as it is, with its own alignment and padding.
    #[must_use]
    pub fn conflict(&self, problem: &Problem, capacity: Bytes) -> Option<Conflict> {
        search::conflict(problem, capacity, &self.limits, self.observer)
    }

    /// Decides whether the input fits into a pool of `capacity` bytes; [`Plan::fits`] has the answer.
    /// [`Strategy::Best`] and [`Strategy::Optimal`] search for a plan that fits or a proof that none exists, within the
    /// limits; the other strategies plan as usual. The pool of a plan that fits need not be the smallest. If the answer
    /// is open, another strategy or more effort may find a plan that fits.
    ///
    /// ```
    /// use memplan::{Planner, networks};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let fits = |capacity| Ok::<_, memplan::PlanError>(Planner::new().fit(&sequence, capacity)?.fits(capacity));
    /// assert_eq!((fits(6 << 20)?, fits(5 << 20)?), (Some(true), Some(false)));
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
    ) -> Result<Plan, PlanError> {
        let plan = self.fit_by_any_choices(input.into(), capacity)?;
        if plan.pool_size <= capacity {
            plan.log_decisions();
        }
        Ok(plan)
    }

    fn fit_by_any_choices(&self, input: InputRef<'_>, capacity: Bytes) -> Result<Plan, PlanError> {
        let start = Instant::now();
        let limited = match self.fit_with_first_choices(input, capacity) {
            Ok(plan) if plan.pool_size <= capacity => return self.at_content_bound(plan, input),
            Ok(plan) if plan.scope != Scope::AllChoices => {
                let bound = self.content_bound(input)?.filter(|&bound| bound > capacity);
                if bound.is_some() {
                    return Ok(Plan { content_bound: bound, ..plan });
                }
                self.after(start)
            }
            Err(error) if choices::may_be_cured(&error) => self.after(start),
            answer => return answer,
        };
        // Other choices may be possible, or may lead to a smaller pool.
        limited.plan_within(input, capacity)
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
    ) -> Result<Plan, PlanError> {
        let prepared = self.prepare(input)?;
        let lowered = Instant::now();
        let fit = |planner: &Planner<'_>, lowered: &Lowered| -> Result<Plan, PlanError> {
            let layout = planner.fit_layout(&lowered.problem, capacity)?;
            Ok(prepared.plan(input, lowered, &layout))
        };
        let gathered = prepared.gathered.as_ref();
        let plan = match gathered.map(|gathered| fit(&prepared.of_gathered(), gathered)) {
            Some(Ok(plan)) if plan.pool_size <= capacity => plan,
            // A plan with all copies may fit even if no plan with gathered inputs does.
            _ => fit(&prepared.planner.after(lowered), &prepared.lowered)?,
        };
        if let Some(sequence) = input.sequence().filter(|_| plan.pool_size <= capacity) {
            prepared.lowered.log(sequence);
        }
        Ok(plan)
    }

    /// Returns the strategy's layout if it fits. Otherwise, if the strategy searches, searches for
    /// one that does.
    fn fit_layout(&self, problem: &Problem, capacity: Bytes) -> Result<Layout, PlanError> {
        if let Some(relaxed) = Relaxed::of(problem).filter(|relaxed| !relaxed.may_bind()) {
            let layout = self.fit_layout(&relaxed.problem, capacity)?;
            if let Some(layout) = relaxed.satisfied(layout) {
                return Ok(layout);
            }
        }
        if problem.unsupported_feature().is_some() {
            return self.strategy.layout(problem, &self.limits, self.observer);
        }
        let start = Instant::now();
        let limits = self.limits.nodes(0);
        let mut layout = self.strategy.layout(problem, &limits, self.observer)?;
        let lower_bound = problem.lower_bound();
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
                }
                Fit::Unknown => {}
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
        Ok(layout)
    }
}
