//! The unconstrained problem inside a constrained one.
//!
//! Many constraints bind nothing: a capacity above the sum of all sizes, a second pool that no chunk fits in, a window
//! that covers its chunk, a pin where the chunk lies anyway. Without its constraints, the problem is unconstrained (a
//! relaxation). A lower bound of the unconstrained problem is one of the constrained problem as well, and an optimal
//! layout of it that satisfies the constraints is optimal with them.

use crate::search::sizes::HUGE;
use crate::{
    Bytes, Limits, Problem,
    bodies::{AllowedPool, Body},
    plan::Layout,
    problem::constraints::{Pool, PoolId},
};

/// A problem without its pools, pins and windows.
pub(crate) struct Relaxed<'p> {
    constrained: &'p Problem,
    pub(crate) problem: Problem,
    /// The pool for all chunks: the only one that they may lie in, or the one where their traffic costs least.
    pool: PoolId,
    /// Its capacity, or the start of its lowest reserved range: no chunk may end above it.
    limit: Bytes,
}

impl<'p> Relaxed<'p> {
    /// Drops the constraints of a problem. Returns `None` if it has constraints that a layout cannot satisfy by chance,
    /// or if the constraints may bind and the problem is too large to plan it twice.
    pub(crate) fn of(constrained: &'p Problem) -> Option<Self> {
        let pool = cheapest_pool(constrained)?;
        let limit = limit(constrained.pools().get(pool.index())?)?;
        if may_bind(constrained, limit) && constrained.len() > HUGE {
            return None;
        }
        Some(Self { constrained, problem: constrained.without_constraints()?, pool, limit })
    }

    /// Returns whether a layout may break the constraints.
    pub(crate) fn may_bind(&self) -> bool {
        may_bind(self.constrained, self.limit)
    }

    /// The limits of a search for a layout that satisfies the constraints. If they may bind, half of a limited time is
    /// left for a search with them.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        let half = limits.time.map(|time| time / 2).filter(|_| self.may_bind());
        Limits { time: half.or(limits.time), ..limits }
    }

    /// A lower bound of the size of all pools together, taken from the bound of a layout of this problem; 0 if chunks
    /// may lie in other pools. The bound is at most the capacity, which need not be a multiple of the alignment.
    pub(crate) fn bound(&self, layout: &Layout) -> Bytes {
        if self.constrained.bodies().iter().any(|body| body.pools.len() > 1) {
            return 0;
        }
        let capacity = self.constrained.pools()[self.pool.index()].capacity;
        let bound = layout.lower_bound.max(self.problem.lower_bound());
        bound.min(capacity.unwrap_or(Bytes::MAX))
    }

    /// Makes a layout of the constrained problem from one of this problem, if it satisfies the constraints.
    pub(crate) fn satisfied(&self, layout: Layout) -> Option<Layout> {
        let pin = |chunk| self.constrained.all_constraints().of(chunk).pin;
        let is_right = |chunk| {
            let (low, size) = (layout.offset(chunk), self.problem.padded_size(chunk));
            // An overwrite that is not required may be given up. Then only the pinned chunk of its body must lie there.
            size == 0 || low + size <= self.limit && pin(chunk).is_none_or(|pin| pin.offset == low)
        };
        self.problem.ids().all(is_right).then(|| {
            let bound = self.problem.lower_bound().max(layout.lower_bound);
            let is_proven = layout.is_proven || layout.pool_size(&self.problem) == bound;
            let is_one = self.constrained.pools().len() < 2;
            let pools = if is_one { Vec::new() } else { vec![self.pool; self.problem.len()] };
            Layout { pools, is_proven, lower_bound: self.bound(&layout), ..layout }
        })
    }
}

/// The pool in which all bodies cost least, if they may lie at any multiple of the alignment there.
fn cheapest_pool(problem: &Problem) -> Option<PoolId> {
    let pools = problem.pools();
    let cost = |allowed: &AllowedPool| pools.get(allowed.pool.index()).map_or(0, |pool| pool.cost);
    let mut bodies = problem.bodies().iter().filter(|body| body.extent > 0).peekable();
    let cheapest = *bodies.peek()?.pools.iter().min_by_key(|allowed| cost(allowed))?;
    let is_cheapest = |body: &Body| {
        let has_traffic = || body.members.iter().any(|&(chunk, _)| problem.traffic(chunk) > 0);
        let costs_more = |other: &AllowedPool| cost(other) > cost(&cheapest) && has_traffic();
        let mut others = body.pools.iter().filter(|&other| *other != cheapest);
        body.pools.contains(&cheapest) && others.all(costs_more)
    };
    let is_usual = cheapest.modulus == problem.alignment() && cheapest.residue == 0;
    (is_usual && bodies.all(is_cheapest)).then_some(cheapest.pool)
}

/// The offset above which no chunk may end: the capacity of a pool, or the start of its lowest reserved range. `None`
/// if it consists of buffers.
fn limit(pool: &Pool) -> Option<Bytes> {
    let starts = pool.reserved.iter().map(|range| range.start);
    let limit = pool.capacity.into_iter().chain(starts).min().unwrap_or(Bytes::MAX);
    pool.largest.is_none().then_some(limit)
}

/// Returns whether a layout may break a pin or this limit. Few layouts are larger than the sum of all sizes.
fn may_bind(problem: &Problem, limit: Bytes) -> bool {
    problem.fixed_bodies().next().is_some() || limit < problem.naive_size()
}
