//! Running a strategy: a planner, or a search.

use std::{borrow::Cow, time::Instant};

use crate::{
    Bytes, PlanError, Problem, Strategy, baselines,
    budget::Budget,
    monitor::Monitor,
    plan::Layout,
    planner::{choices::may_be_cured, passes::in_passes},
    search::{
        self, Limits, Observer, Progress, best, first_fit,
        relaxed::Relaxed,
        size_classes::{OpenPool, is_late},
    },
};

impl Strategy {
    /// Chooses an offset for every chunk. The same problem always gets the same layout, unless a time
    /// limit or a cancellation ends the search. Strategies that search stay within the limits and report
    /// progress; [anytime strategies](Self::is_anytime) return their best layout at a time limit or when
    /// they are cancelled.
    ///
    /// # Errors
    ///
    /// If the strategy does not support a feature of the problem, or is not anytime and was cancelled or
    /// out of time before it had a layout.
    pub(crate) fn layout(
        self,
        problem: &Problem,
        limits: &Limits,
        observer: Observer<'_>,
    ) -> Result<Layout, PlanError> {
        let is_final = |layout: &Result<Layout, PlanError>| match layout {
            Ok(layout) => {
                let bound = layout.peak_set(problem).bytes.max(layout.lower_bound);
                layout.is_proven || layout.pool_size(problem) <= bound
            }
            Err(error) => !may_be_cured(error),
        };
        let better = |layout: Result<Layout, PlanError>, other: Result<Layout, PlanError>| {
            let (Ok(a), Ok(b)) = (&layout, &other) else { return layout.or(other) };
            let bound = a.lower_bound.max(b.lower_bound);
            let best = if b.objective(problem) < a.objective(problem) { other } else { layout };
            best.map(|best| Layout { lower_bound: bound, ..best })
        };
        let pass = |limits: Limits, observer: Observer<'_>| {
            self.layout_in_pass(problem, &limits, observer)
        };
        in_passes(*limits, observer, pass, |layout| !self.searches() || is_final(layout), better)
    }

    /// As [`layout`](Self::layout), in one pass.
    pub(super) fn layout_in_pass(
        self,
        problem: &Problem,
        limits: &Limits,
        observer: Observer<'_>,
    ) -> Result<Layout, PlanError> {
        let start = Instant::now();
        if !self.is_anytime() {
            return self.whole_layout(problem, &mut Monitor::new(limits, observer).budget());
        }
        let open_pool = OpenPool::of(problem);
        let monitor = OpenPool::monitor(open_pool, problem, limits, observer);
        // Collapsing the streams and counting the bound may take half of the time limit.
        let half = || limits.time.map(|time| (time / 2).saturating_sub(start.elapsed()));
        let budget = || monitor.first_budget().within(half());
        let (problem, open_pool) = match problem.linear_within(&mut budget()) {
            Ok(Some(linear)) => (linear, OpenPool::of(linear)),
            _ => (problem, open_pool),
        };
        let late = || open_pool.filter(|_| is_late(problem, &monitor));
        // A bound that a search without the constraints has proven.
        let mut more = 0;
        if self.searches()
            && late().is_none()
            && limits.without.has(search::Stage::Relaxed)
            && let Some(relaxed) = Relaxed::of(problem)
        {
            let limits = relaxed.limits(limits.after(start));
            // The best layout of the relaxed problem may break constraints, so it is not reported.
            let report = |progress: &Progress| {
                if let Some(report) = observer.progress {
                    report(&Progress { best: Bytes::MAX, ..*progress });
                }
            };
            let hidden = Observer { progress: Some(&report), ..observer };
            let observer = if relaxed.may_bind() { hidden } else { observer };
            let layout = self.layout_in_pass(&relaxed.problem, &limits, observer)?;
            more = relaxed.bound(&layout);
            if let Some(layout) = relaxed.satisfied(layout) {
                return Ok(layout);
            }
        }
        let peak_set = problem.peak_set_within(&mut budget());
        let bound = peak_set.bytes;
        let limits = &limits.after(start);
        let layout = match late().and_then(|open| open.layout(problem)) {
            Some(layout) => layout,
            None => self.layout_above(problem, bound.max(more), limits, observer)?,
        };
        let peak_set = match peak_set {
            Cow::Borrowed(_) => None,
            Cow::Owned(lighter) => Some(lighter),
        };
        let proven = if more > bound { more } else { 0 };
        Ok(Layout { peak_set, lower_bound: layout.lower_bound.max(proven), ..layout })
    }

    /// As [`layout`](Self::layout), with a strategy that is not anytime.
    fn whole_layout(self, problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, PlanError> {
        let linear = problem.linear_within(budget).map_err(|stop| stop.error(self))?;
        let problem = linear.unwrap_or(problem);
        let planned = |problem: &Problem, budget: &mut Budget<'_>| {
            let layout = baselines::layout(self, problem, budget);
            layout.map(Option::unwrap_or_default).map_err(|stop| stop.error(self))
        };
        if let Some(relaxed) = Relaxed::of(problem).filter(|relaxed| !relaxed.may_bind())
            && let Some(layout) = relaxed.satisfied(planned(&relaxed.problem, budget)?)
        {
            return Ok(layout);
        }
        match problem.unsupported_feature() {
            Some((feature, chunk)) => {
                let chunk = chunk.map(|chunk| problem.name(chunk));
                Err(PlanError::Unsupported { strategy: self, feature, chunk })
            }
            None => planned(problem, budget),
        }
    }

    /// As [`layout`](Self::layout), with an anytime strategy. `bound` is a lower bound of the pool in bytes.
    fn layout_above(
        self,
        problem: &Problem,
        bound: Bytes,
        limits: &Limits,
        observer: Observer<'_>,
    ) -> Result<Layout, PlanError> {
        match self {
            Self::FirstFit => first_fit::layout_within(problem, limits, observer),
            _ if problem.unsupported_feature().is_some() => {
                search::pools::layout(problem, bound, limits, observer)
            }
            Self::Best => Ok(best::layout(problem, limits, observer)),
            _ => Ok(search::layout(problem, limits, observer)),
        }
    }
}
