//! Running a strategy: a planner, or a search.

use crate::{
    PlanError, Problem, Strategy,
    planner::{
        Layout, best, plain,
        search::{self, Limits, Observer},
    },
};

impl Strategy {
    /// Chooses an offset for every chunk; the same problem always gets the same layout. Strategies
    /// that search stay within the limits, report progress and can be cancelled.
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
        match self {
            Self::Best => best::layout(problem, limits, observer),
            strategy => Ok(plain::layout(strategy, problem)
                .unwrap_or_else(|| search::layout(problem, limits, observer))),
        }
    }
}
