//! Every strategy on one input, side by side.

use std::{
    iter,
    time::{Duration, Instant},
};

use crate::{
    Bytes, InputRef, Plan, PlanError, Strategy,
    baselines::{boxes::Boxes, tflite},
    order::Reordered,
    plan::{Scope, unshared_size},
    planner::{Planner, Replanned},
    search,
};

/// The results of all strategies on one input.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The bytes that every plan within [`scope`](Self::scope) needs.
    pub lower_bound: Bytes,
    /// The plans that the lower bound holds for.
    pub scope: Scope,
    /// A lower bound on the total size of objects that whole chains share, in bytes.
    pub shared_objects_bound: Bytes,
    /// The total with one buffer per chunk, in bytes, as [`Plan::unshared_size`] counts it.
    pub unshared_size: Bytes,
    /// Each strategy with its result, in the order of [`Strategy::ALL`]. In place of a result, `too large` if the
    /// problem is too large for the strategy, `not known` if the strategy does not support it, `too slow` if it did
    /// not end within the time limit, or `stopped` if the caller cancelled before it ended.
    pub rows: Vec<(Strategy, Result<Measurement, &'static str>)>,
    /// The result of [`Strategy::Best`] for a better order of the operators, if one was searched for.
    pub reordered: Option<Measurement>,
}

impl Comparison {
    /// Adds the result for a better order of the operators, and the time that it took to find and plan
    /// it.
    #[must_use]
    pub fn with_reordered(mut self, found: &Replanned<Reordered>, took: Duration) -> Self {
        self.reordered = Some(Measurement::of(&found.plan, took));
        self
    }
}

/// The result of a strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measurement {
    /// The size of its pool in bytes.
    pub pool_size: Bytes,
    /// The time that it took.
    pub took: Duration,
    /// The number of shared objects, if the strategy assigns chunks to objects.
    pub objects: Option<usize>,
    /// The strategy that won, if it chose among several planners.
    pub winner: Option<Strategy>,
}

/// The number of conflicting pairs above which strategies that compare pairs take too long.
const MAX_CONFLICTS: u64 = 200_000_000;

impl Planner<'_> {
    /// Plans an input as [`plan`](Self::plan) does, with every strategy that takes a reasonable time for it, whichever
    /// strategy this planner has. The limits apply to each strategy on its own. At a time limit, or when the caller
    /// cancels, [anytime strategies](Strategy::is_anytime) give their best plan so far; the others have no result.
    /// Strategies that have not begun when the caller cancels have no result either.
    ///
    /// ```
    /// use memplan::{Planner, networks};
    ///
    /// let comparison = Planner::new().compare(&networks::mobilenet_v2(1)?)?;
    /// assert!(comparison.rows.iter().any(|(_, measurement)| measurement.is_ok()));
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), except for unsupported features and limits, which the rows report.
    pub fn compare<'i>(&self, input: impl Into<InputRef<'i>>) -> Result<Comparison, PlanError> {
        let input = input.into();
        let mut prepared = self.clone().strategy(Strategy::Best).prepare(input)?;
        let scope = Scope::of(input, self.lowering).with_bodies(&prepared.bodies);
        let lower_bound = match scope {
            Scope::TheseChoices => self.content_bound(input)?,
            Scope::AllChoices => None,
        };
        let (lower_bound, scope) = match lower_bound {
            Some(bound) => (bound, Scope::AllChoices.with_bodies(&prepared.bodies)),
            None => (prepared.lower_bound(), scope),
        };
        // No strategy is measured with the time in which the problem is found in steps.
        let problems = iter::once(&prepared.lowered).chain(&prepared.gathered);
        for lowered in problems {
            lowered.problem.linear();
        }
        let chains = prepared.lowered.problem.roots().count();
        let dense = search::conflicts(&prepared.lowered.problem) > MAX_CONFLICTS;
        let mut rows = Vec::new();
        for &strategy in Strategy::ALL {
            let measurement = if self.observer.is_cancelled() {
                Err("stopped")
            } else if strategy.limit().is_some_and(|limit| chains > limit || dense) {
                Err("too large")
            } else {
                let start = Instant::now();
                // Strategies that search also choose. Each strategy plans the bodies, too.
                let plan = if strategy.searches() || !prepared.bodies.is_empty() {
                    self.clone().strategy(strategy).plan(input)
                } else {
                    prepared.planner = self.clone().strategy(strategy);
                    prepared.best(input)
                };
                match plan {
                    Err(error) if is_unsupported(&error) => Err("not known"),
                    Err(PlanError::OutOfTime { .. }) => Err("too slow"),
                    Err(PlanError::Cancelled { .. }) => Err("stopped"),
                    plan => Ok(Measurement::of(&plan?, start.elapsed())),
                }
            };
            rows.push((strategy, measurement));
        }
        let problem = &prepared.lowered.problem;
        Ok(Comparison {
            lower_bound,
            scope,
            shared_objects_bound: tflite::shared_objects_bound(&Boxes::of(problem).records),
            unshared_size: unshared_size(problem.naive_size(), &prepared.bodies),
            rows,
            reordered: None,
        })
    }
}

/// Returns whether a strategy lacks a feature that the input or a body needs, at any depth.
fn is_unsupported(error: &PlanError) -> bool {
    match error {
        PlanError::Body { source, .. } => is_unsupported(source),
        error => matches!(error, PlanError::Unsupported { .. }),
    }
}

impl Measurement {
    fn of(plan: &Plan, took: Duration) -> Self {
        let objects = (!plan.objects.is_empty()).then_some(plan.objects.len());
        Self { pool_size: plan.pool_size, took, objects, winner: plan.winner }
    }
}
