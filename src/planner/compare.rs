//! Every planner on one problem, side by side.

use std::{
    iter,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use crate::{
    Bytes, Plan, PlanError, Problem, Strategy,
    baselines::{boxes::Boxes, tflite},
    lower::LoweringOptions,
    plan::Scope,
    planner::ReorderedPlan,
    search::{Limits, Observer, best},
};

/// The results of all strategies on one problem.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The largest number of bytes alive at one step.
    pub lower_bound: Bytes,
    /// The plans that the lower bound holds for.
    pub scope: Scope,
    /// A lower bound on the total size of objects that whole chains share, in bytes.
    pub shared_objects_bound: Bytes,
    /// The total with one buffer per chunk, in bytes.
    pub naive_size: Bytes,
    /// A row per strategy, in the order of [`Strategy::ALL`].
    pub rows: Vec<ComparisonRow>,
    /// The answer of [`Strategy::Best`] for a better order of the operators, if one was searched
    /// for.
    pub reordered: Option<Measurement>,
}

impl Comparison {
    /// Adds the answer for a better order of the operators, and the time that it took to find and
    /// plan it.
    #[must_use]
    pub fn with_reordered(mut self, found: &ReorderedPlan, took: Duration) -> Self {
        let Plan { pool_size, winner, .. } = found.plan;
        self.reordered = Some(Measurement { pool_size, took, objects: None, winner });
        self
    }
}

/// The result of one strategy.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ComparisonRow {
    /// The strategy.
    pub strategy: Strategy,
    /// Its answer, or the reason why it has none.
    pub measurement: Result<Measurement, LeftOut>,
}

/// The reason why a strategy has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOut {
    /// The problem is too large for it.
    #[error("too large")]
    TooLarge,
    /// It does not support a feature of the problem.
    #[error("not known")]
    Unsupported,
    /// It did not end within the time limit.
    #[error("too slow")]
    TooSlow,
    /// The caller cancelled the comparison before it ended.
    #[error("stopped")]
    Stopped,
}

/// The answer of a strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measurement {
    /// The size of its pool in bytes.
    pub pool_size: Bytes,
    /// The time that it took.
    pub took: Duration,
    /// The number of shared objects, if the strategy answers with objects.
    pub objects: Option<usize>,
    /// The strategy that won, if it chose among several planners.
    pub winner: Option<Strategy>,
}

/// The number of conflicting pairs above which strategies that compare pairs take too long.
const MAX_CONFLICTS: u64 = 200_000_000;

/// Plans a problem with every strategy that takes a reasonable time for it. Each has the limits to itself.
/// At a time limit, or when they are cancelled, strategies that [end early](Strategy::is_anytime) have their
/// best answer so far; the others have none. Strategies that begin after the caller has cancelled have none,
/// either.
///
/// # Errors
///
/// If planning fails for another reason than an unsupported feature.
pub fn compare(
    problem: &Problem,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Comparison, PlanError> {
    compare_both(problem, None, limits, observer)
}

/// Does the same with a second problem: the first one with gathered inputs inside their outputs, for the
/// strategies that know parts.
pub(super) fn compare_both(
    problem: &Problem,
    gathered: Option<&Problem>,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Comparison, PlanError> {
    let both = Both { apart: problem, gathered };
    // No strategy is measured with the time in which the problem is found in steps.
    for problem in iter::once(problem).chain(gathered) {
        problem.linear();
    }
    let chains = problem.roots().count();
    let dense = best::conflicts(problem) > MAX_CONFLICTS;
    let too_large = |limit: usize| chains > limit || dense;
    let rows = Strategy::ALL
        .iter()
        .map(|&strategy| {
            let measurement = if is_cancelled(observer) {
                Err(LeftOut::Stopped)
            } else if strategy.limit().is_some_and(too_large) {
                Err(LeftOut::TooLarge)
            } else {
                match both.plan(strategy, limits, observer) {
                    Err(PlanError::Unsupported { .. }) => Err(LeftOut::Unsupported),
                    Err(PlanError::OutOfTime { .. }) => Err(LeftOut::TooSlow),
                    Err(PlanError::Cancelled { .. }) => Err(LeftOut::Stopped),
                    measured => Ok(measured?),
                }
            };
            Ok(ComparisonRow { strategy, measurement })
        })
        .collect::<Result<_, PlanError>>()?;
    Ok(Comparison {
        lower_bound: both.lower_bound(),
        scope: Scope::of(problem.into(), LoweringOptions::default()),
        shared_objects_bound: tflite::shared_objects_bound(&Boxes::of(problem).records),
        naive_size: problem.naive_size(),
        rows,
        reordered: None,
    })
}

fn is_cancelled(observer: Observer<'_>) -> bool {
    observer.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
}

/// A problem with all copies of its concatenations and, if it has any, with gathered inputs inside their
/// outputs.
struct Both<'p> {
    apart: &'p Problem,
    gathered: Option<&'p Problem>,
}

impl Both<'_> {
    /// No plan of either is smaller.
    fn lower_bound(&self) -> Bytes {
        let apart = self.apart.lower_bound().bytes;
        self.gathered.map_or(apart, |gathered| gathered.lower_bound().bytes.min(apart))
    }

    /// Plans with gathered inputs inside their outputs first. Above the bound, also plans all copies; the
    /// smaller pool counts.
    fn plan(
        &self,
        strategy: Strategy,
        limits: &Limits,
        observer: Observer<'_>,
    ) -> Result<Measurement, PlanError> {
        let Some(gathered) = self.gathered.filter(|_| strategy.knows_parts()) else {
            return plan(self.apart, strategy, limits, observer);
        };
        let start = Instant::now();
        let inside = plan(gathered, strategy, &super::gathered_limits(strategy, *limits), observer);
        let is_least = |one: &Measurement| one.pool_size == self.lower_bound();
        if inside.as_ref().is_ok_and(is_least) {
            return inside;
        }
        let apart = plan(self.apart, strategy, &limits.after(start), observer);
        let best = match (inside, apart) {
            (Ok(inside), Ok(apart)) if apart.pool_size < inside.pool_size => apart,
            (Ok(inside), _) => inside,
            (Err(_), apart) => apart?,
        };
        Ok(Measurement { took: start.elapsed(), ..best })
    }
}

fn plan(
    problem: &Problem,
    strategy: Strategy,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Measurement, PlanError> {
    let start = Instant::now();
    let layout = strategy.layout(problem, limits, observer)?;
    let took = start.elapsed();
    Ok(Measurement {
        pool_size: layout.pool_size(problem),
        took,
        objects: layout.objects.map(|objects| objects.sizes.len()),
        winner: layout.winner,
    })
}
