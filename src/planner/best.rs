//! Best: the smallest pool of all planners that are cheap.
//!
//! **Idea.** No simple planner wins everywhere, and each takes milliseconds. Run them in a fixed
//! order, keep the first of the smallest pools, and stop when one meets the lower bound, since no
//! pool can be smaller. If none meets it, the search for the optimum starts from the best one.
//!
//! **Cost.** The sum of its [`CANDIDATES`], O(n log n) together. The three that walk over conflicts
//! take a tenth of a second each for 10^7 pairs of conflicting chains and are left out beyond that;
//! the pairs are counted beforehand, so the choice does not depend on a clock. The free list is
//! left out beyond 100 000 chains and the search beyond 200 000, where they may take many seconds.
//!
//! **When.** Whenever a plan is computed once and run often. [`Layout::winner`] names the winner.

use std::time::{Duration, Instant};

use tracing::debug;

use crate::{
    Bytes, Problem, Step,
    planner::{
        Layout, PlanError, Strategy, free_list, plain,
        search::{self, Limits, Observer},
    },
};

/// The strategies to try, in this order.
pub const CANDIDATES: &[Strategy] = &[
    Strategy::Pushdown,
    Strategy::TfliteOffsetsBySize,
    Strategy::BestFit,
    Strategy::TfliteMicro,
    Strategy::TfliteCpuArena,
    Strategy::FreeList,
    Strategy::Nnvm,
    Strategy::TfliteGreedyInOrder,
    Strategy::TfliteEquality,
];

/// The number of conflicting pairs above which no candidate walks over them.
const MOST_CONFLICTS: u64 = 10_000_000;

/// The number of chains above which a problem is not searched.
const MOST_SEARCHED: usize = 200_000;

/// Plans with every candidate until one meets the lower bound, then searches within the limits. The
/// time that the candidates take counts towards the limit.
///
/// # Errors
///
/// If a candidate cannot plan such a problem.
pub fn layout(
    problem: &Problem,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Layout, PlanError> {
    let start = limits.time.map(|_| Instant::now());
    let remaining =
        || limits.time.zip(start).map(|(time, start)| time.saturating_sub(start.elapsed()));
    let bound = problem.lower_bound().bytes;
    let dense = conflicts(problem) > MOST_CONFLICTS;
    let mut best: Option<(Bytes, Layout)> = None;
    let left_out = |strategy| {
        dense && walks(strategy) || strategy == Strategy::FreeList && !free_list::is_quick(problem)
    };
    for &strategy in CANDIDATES.iter().filter(|&&strategy| !left_out(strategy)) {
        let Some(layout) = plain::layout(strategy, problem) else { continue };
        let pool = layout.pool_size(problem);
        debug!(target: "memplan::best", %strategy, pool, bound, "tried");
        if best.as_ref().is_none_or(|&(smallest, _)| pool < smallest) {
            best = Some((pool, Layout { winner: Some(strategy), ..layout }));
        }
        if pool <= bound || remaining() == Some(Duration::ZERO) {
            break;
        }
    }
    let Some((pool, cheap)) = best else { return Ok(Layout::default()) };
    let limits = Limits { time: remaining(), ..*limits };
    if pool <= bound || !is_searched(problem) || limits.time == Some(Duration::ZERO) {
        return Ok(cheap);
    }
    let found = search::optimize(problem, Some(&cheap), &limits, observer);
    debug!(target: "memplan::best", strategy = %Strategy::Optimal, pool = found.pool_size, nodes = found.nodes, "tried");
    let winner = if found.pool_size < pool { Some(Strategy::Optimal) } else { cheap.winner };
    Ok(Layout { winner, lower_bound: found.lower_bound, ..found.layout })
}

/// Returns whether a problem is small enough to be searched.
pub(super) fn is_searched(problem: &Problem) -> bool {
    problem.roots().nth(MOST_SEARCHED).is_none()
}

/// Returns whether a candidate compares every pair of conflicting chains.
fn walks(strategy: Strategy) -> bool {
    use Strategy::{TfliteCpuArena, TfliteMicro, TfliteOffsetsBySize};
    matches!(strategy, TfliteOffsetsBySize | TfliteCpuArena | TfliteMicro)
}

/// Counts the pairs of chains that are alive in a common step.
pub(super) fn conflicts(problem: &Problem) -> u64 {
    let boxes = || problem.roots().map(|root| problem.bounding_box(root));
    let mut begins: Vec<Step> = boxes().map(|outline| outline.begin).collect();
    let mut ends: Vec<Step> = boxes().map(|outline| outline.end).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let (mut pairs, mut ended) = (0, 0);
    for (begun, begin) in begins.into_iter().enumerate() {
        while ends[ended] <= begin {
            ended += 1;
        }
        // Fewer than 2^32 chains make fewer than 2^63 pairs.
        pairs += (begun - ended) as u64;
    }
    pairs
}
