//! Pools and pins that the caller gave in addition to a problem: a plan lists them, and must keep to them.

use std::borrow::Cow;

use crate::{
    Bytes, Plan, Problem,
    plan::PlannedPool,
    problem::{
        ChunkId,
        constraints::{Pool, PoolId},
    },
    verify::{Violation, problem},
};

/// The problem with the pools that a plan lists, if the problem lists none, and with the pins that the plan lists in
/// addition to those of the problem. Adds a violation if these contradict each other or the problem.
pub(super) fn asked<'p>(
    problem: &'p Problem,
    plan: &Plan,
    violations: &mut Vec<Violation>,
) -> Cow<'p, Problem> {
    let says_more = !plan.pools.is_empty()
        || !plan.parts.is_empty()
        || !plan.windows.is_empty()
        || !plan.pinned.is_empty()
        || !plan.reserved.is_empty()
        || !plan.peak.is_empty()
        || plan.traffic > 0;
    if !says_more {
        return Cow::Borrowed(problem);
    }
    let matching = problem::check(problem, plan, &mut Vec::new());
    let is_pinned = |chunk| problem.all_constraints().of(chunk).pin.is_some();
    let pins = plan.pinned.iter().filter_map(|&at| {
        let chunk = matching.chunks.get(at).copied().flatten()?;
        Some((chunk, plan.chunks.get(at)?)).filter(|(chunk, _)| !is_pinned(*chunk))
    });
    let pins: Vec<_> = pins.map(|(chunk, place)| (chunk, place.pool, place.offset)).collect();
    let has_pools = problem.all_constraints().has_pools;
    let adds_pools = !has_pools && pools(plan) != problem.pools();
    if !adds_pools && pins.is_empty() && problem.constraints().is_some() {
        return Cow::Borrowed(problem);
    }
    let with = |pins: &[(ChunkId, usize, Bytes)]| {
        let mut builder = problem.clone().into_builder();
        if !has_pools {
            builder.pools(pools(plan));
        }
        for &(chunk, pool, offset) in pins {
            builder.pin(chunk, PoolId::from_index(pool), offset);
        }
        builder.finish()
    };
    match with(&pins) {
        Ok(asked) => Cow::Owned(asked),
        Err(error) => {
            violations.push(Violation::WrongMemories { reason: error.to_string() });
            with(&[]).map_or(Cow::Borrowed(problem), Cow::Owned)
        }
    }
}

/// The pools that a plan lists.
fn pools(plan: &Plan) -> Vec<Pool> {
    if plan.pools.is_empty() {
        return vec![Pool::new("pool")];
    }
    let pool = |(at, planned): (usize, &PlannedPool)| {
        let mut pool = Pool::new(planned.name.clone()).cost(planned.cost);
        pool = pool.alignment(planned.alignment);
        (pool.capacity, pool.largest) = (planned.capacity, planned.largest);
        plan.reserved(at).fold(pool, Pool::reserved)
    };
    plan.pools.iter().enumerate().map(pool).collect()
}
