//! The answer of the search.

use crate::{Bytes, Problem, plan::Layout};

/// The answer of [`optimize`](super::optimize).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Solution {
    /// The best layout found.
    pub layout: Layout,
    /// The size of its pool in bytes.
    pub pool_size: Bytes,
    /// A lower bound in bytes: the largest number of live bytes, or more if the search has proven
    /// more.
    pub lower_bound: Bytes,
    /// True if the pool is proven the smallest.
    pub proven_optimal: bool,
    /// The number of nodes, of all threads.
    pub nodes: u64,
}

impl Solution {
    pub(super) fn of(problem: &Problem, layout: Layout) -> Self {
        Self {
            pool_size: layout.pool_size(problem),
            layout,
            lower_bound: problem.lower_bound(),
            proven_optimal: false,
            nodes: 0,
        }
    }

    /// Returns whether the pool is within a percent of the bound.
    pub(super) fn is_near(&self) -> bool {
        self.pool_size <= near(self.lower_bound)
    }

    /// Replaces the layout by a better one; returns the size of the new one's pool.
    pub(super) fn improve(&mut self, problem: &Problem, layout: Layout) -> Bytes {
        let pool_size = layout.pool_size(problem);
        if pool_size < self.pool_size {
            (self.layout, self.pool_size) = (layout, pool_size);
        }
        pool_size
    }
}

/// A pool of this size is within a percent of a bound.
pub(super) fn near(bound: Bytes) -> Bytes {
    bound.saturating_add(bound / 100)
}
