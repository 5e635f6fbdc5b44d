//! Every planner on one problem, side by side.

use std::time::{Duration, Instant};

use crate::{
    Bytes, Problem, Strategy,
    planner::{
        PlanError, best,
        records::Boxes,
        search::{Limits, Observer},
        tflite,
    },
};

/// What the strategies make of a problem.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The largest number of bytes alive at one step.
    pub lower_bound: Bytes,
    /// The least that any sharing of objects between whole chains can take, in bytes.
    pub shared_objects_bound: Bytes,
    /// One buffer per chunk, in bytes.
    pub naive_size: Bytes,
    /// An entry per strategy, in the order of [`Strategy::ALL`].
    pub entries: Vec<Entry>,
}

/// What one strategy makes of a problem.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The strategy.
    pub strategy: Strategy,
    /// Its answer; `None` if the problem is too large for it.
    pub outcome: Option<Outcome>,
}

/// The answer of a strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The size of its pool in bytes.
    pub pool_size: Bytes,
    /// How long it took.
    pub took: Duration,
    /// How many shared objects it made, if it answers with such.
    pub objects: Option<usize>,
    /// Who won, if it chose among several planners.
    pub winner: Option<Strategy>,
}

/// Pairs of chains alive together above which a strategy that looks at them takes too long.
const MOST_CONFLICTS: u64 = 200_000_000;

/// Plans a problem with every strategy that takes it in reasonable time. Strategies that search go as
/// far as the limits say, report how far they are, and can be cancelled.
///
/// # Errors
///
/// If a strategy cannot plan such a problem.
pub fn compare(
    problem: &Problem,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Comparison, PlanError> {
    let chains = problem.roots().count();
    let dense = best::conflicts(problem) > MOST_CONFLICTS;
    let too_large = |limit: usize| chains > limit || dense;
    let entries = Strategy::ALL
        .iter()
        .map(|&strategy| {
            let skipped = strategy.limit().is_some_and(too_large);
            let plan = || plan(problem, strategy, limits, observer);
            Ok(Entry { strategy, outcome: (!skipped).then(plan).transpose()? })
        })
        .collect::<Result<_, PlanError>>()?;
    Ok(Comparison {
        lower_bound: problem.lower_bound().bytes,
        shared_objects_bound: tflite::shared_objects_bound(&Boxes::of(problem).records),
        naive_size: problem.naive_size(),
        entries,
    })
}

fn plan(
    problem: &Problem,
    strategy: Strategy,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Outcome, PlanError> {
    let start = Instant::now();
    let layout = strategy.layout(problem, limits, observer)?;
    let took = start.elapsed();
    Ok(Outcome {
        pool_size: layout.pool_size(problem),
        took,
        objects: layout.objects.map(|objects| objects.sizes.len()),
        winner: layout.winner,
    })
}
