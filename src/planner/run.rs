//! Running a strategy: a planner, or a search.

use std::time::Instant;

use crate::{
    PlanError, Problem, Strategy,
    planner::{
        Layout, best, first_fit, plain,
        search::{self, Limits, Observer},
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
        let problem = problem.linear().unwrap_or(problem);
        if limits.time.is_some() && self.ends_early() {
            // A plan has its bound. What that takes counts towards the limit.
            let _ = problem.lower_bound();
        }
        let limits = &limits.after(start);
        if self == Self::FirstFit {
            return first_fit::layout_within(problem, limits, observer);
        }
        if let Some(Asked { feature, chunk }) = problem.asked() {
            return match self {
                Self::Best | Self::Optimal => search::places::layout(problem, limits, observer),
                strategy => {
                    let chunk = chunk.map(|chunk| problem.labels().name(chunk));
                    Err(PlanError::Unsupported { strategy, feature, chunk })
                }
            };
        }
        match self {
            Self::Best => best::layout(problem, limits, observer),
            strategy => Ok(plain::layout(strategy, problem)
                .unwrap_or_else(|| search::layout(problem, limits, observer))),
        }
    }
}
