//! Best: the smallest pool among the planners that cost little.
//!
//! **Idea.** No simple planner wins everywhere, and each takes milliseconds. Run them in a fixed order,
//! keep the smallest pool, the first of equals, and stop when one meets the lower bound, since
//! none can be smaller.
//!
//! **Cost.** The sum of its [`CANDIDATES`]; one that takes no problem of this size
//! ([`Strategy::limit`]) is left out.
//!
//! **When.** Whenever a plan is computed once and run often. [`Layout::winner`] says who won.

use tracing::debug;

use crate::{
    Problem,
    planner::{Layout, Strategy},
};

/// Who is tried, in this order: the likeliest winners first, so that the search often ends early.
pub const CANDIDATES: &[Strategy] = &[
    Strategy::Pushdown,
    Strategy::TfliteOffsetsBySize,
    Strategy::BestFit,
    Strategy::TfliteCpuArena,
    Strategy::TfliteMicro,
    Strategy::FreeList,
    Strategy::TfliteGreedyInOrder,
    Strategy::Nnvm,
    Strategy::TfliteEquality,
];

/// Plans with every candidate until the lower bound is met.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    let bound = problem.lower_bound().bytes;
    let chains = problem.roots().count();
    let takes = |strategy: &&Strategy| strategy.limit().is_none_or(|limit| chains <= limit);
    let mut best: Option<(u64, Layout)> = None;
    for &strategy in CANDIDATES.iter().filter(takes) {
        let layout = strategy.layout(problem);
        let pool = layout.pool_size(problem);
        debug!(target: "memplan::best", %strategy, pool, bound, "tried");
        if best.as_ref().is_none_or(|&(smallest, _)| pool < smallest) {
            best = Some((pool, Layout { winner: Some(strategy), ..layout }));
        }
        if pool <= bound {
            break;
        }
    }
    best.map(|(_, layout)| layout).unwrap_or_default()
}
