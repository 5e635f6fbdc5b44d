//! Running a strategy: a planner, or a search.

use std::{borrow::Cow, time::Instant};

use crate::{
    Bytes, PlanError, Problem, Strategy,
    planner::{
        Layout, best,
        blocks::{self, BlockPool},
        first_fit, plain,
        relaxed::Relaxed,
        search::{self, Limits, Observer, Progress},
    },
    problem::demands::Asked,
};

impl Strategy {
    /// Chooses an offset for every chunk; the same problem always gets the same layout. Strategies
    /// that search stay within the limits and report progress; those that [end early](Self::ends_early)
    /// keep a time limit and can be cancelled.
    ///
    /// # Errors
    ///
    /// If the strategy cannot plan such a problem.
    pub fn layout(
        self,
        problem: &Problem,
        limits: &Limits,
        observer: Observer<'_>,
    ) -> Result<Layout, PlanError> {
        let start = Instant::now();
        if !self.ends_early() {
            let problem = problem.linear().unwrap_or(problem);
            if let Some(relaxed) = Relaxed::of(problem).filter(|relaxed| !relaxed.may_bind())
                && let Some(layout) = plain::layout(self, &relaxed.problem)
                && let Some(layout) = relaxed.satisfied(layout)
            {
                return Ok(layout);
            }
            return match problem.asked() {
                Some(asked) => Err(self.unsupported(problem, asked)),
                None => Ok(plain::layout(self, problem).unwrap_or_default()),
            };
        }
        let block_pool = BlockPool::of(problem);
        let monitor = blocks::monitor(problem, block_pool, limits, observer);
        // Finding one line of time and the bound that a plan has may take half of the limit.
        let half = || limits.time.map(|time| (time / 2).saturating_sub(start.elapsed()));
        let mut is_over = || half().is_some_and(|half| half.is_zero()) || monitor.is_overdue();
        let (problem, block_pool) = match problem.linear_until(&mut is_over) {
            Some(linear) => (linear, BlockPool::of(linear)),
            None => (problem, block_pool),
        };
        // A bound that a search without the constraints has proven.
        let mut more = 0;
        if self.searches()
            && let Some(relaxed) = Relaxed::of(problem)
        {
            let limits = relaxed.limits(limits.after(start));
            // A layout that breaks constraints is none.
            let report = |progress: &Progress| {
                if let Some(report) = observer.progress {
                    report(&Progress { best: Bytes::MAX, ..*progress });
                }
            };
            let hidden = Observer { progress: Some(&report), ..observer };
            let observer = if relaxed.may_bind() { hidden } else { observer };
            let layout = self.layout(&relaxed.problem, &limits, observer)?;
            more = relaxed.bound(&layout);
            if let Some(layout) = relaxed.satisfied(layout) {
                return Ok(layout);
            }
        }
        let crowd = problem.crowd_within(half(), &mut || monitor.is_overdue());
        let limits = &limits.after(start);
        let layout = match blocks::layout_if_late(problem, block_pool, &monitor) {
            Some(layout) => layout,
            None => self.layout_above(problem, crowd.bytes.max(more), limits, observer)?,
        };
        let crowd = match crowd {
            Cow::Borrowed(_) => None,
            Cow::Owned(lighter) => Some(lighter),
        };
        Ok(Layout { crowd, lower_bound: layout.lower_bound.max(more), ..layout })
    }

    /// As [`layout`](Self::layout), with a strategy that ends early. No pool is smaller than `bound` bytes.
    fn layout_above(
        self,
        problem: &Problem,
        bound: Bytes,
        limits: &Limits,
        observer: Observer<'_>,
    ) -> Result<Layout, PlanError> {
        match self {
            Self::FirstFit => first_fit::layout_within(problem, limits, observer),
            _ if problem.asked().is_some() => {
                search::places::layout(problem, bound, limits, observer)
            }
            Self::Best => best::layout(problem, limits, observer),
            _ => Ok(search::layout(problem, limits, observer)),
        }
    }

    fn unsupported(self, problem: &Problem, Asked { feature, chunk }: Asked) -> PlanError {
        let chunk = chunk.map(|chunk| problem.labels().name(chunk));
        PlanError::Unsupported { strategy: self, feature, chunk }
    }
}
