//! Plans of a sequence in several pools. The pools are laid out one after another, so that all
//! other checks see one; properties of the single pools are checked here.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use crate::{
    Bytes, OpSequence, Plan, TensorPlace,
    sequence::{Dependency, Origin, TensorId},
    verify::{Violation, reserved::Reserved},
};

/// Returns whether the plan lists pools that can be checked.
const fn has_pools(plan: &Plan) -> bool {
    !plan.pools.is_empty() && plan.alignment.is_power_of_two()
}

/// The plan with its pools one after another, each at a multiple of the alignment.
pub(super) fn in_one(plan: &Plan) -> Cow<'_, Plan> {
    if !has_pools(plan) {
        return Cow::Borrowed(plan);
    }
    // The addresses in a pool of buffers reach beyond the sum of their sizes.
    let mut tops: Vec<Bytes> = plan.pools.iter().map(|pool| pool.size).collect();
    for chunk in plan.chunks.iter().filter(|chunk| chunk.size > 0) {
        if let Some(top) = tops.get_mut(chunk.pool) {
            *top = (*top).max(plan.end_of(chunk));
        }
    }
    let mut bases = Vec::with_capacity(tops.len());
    let mut end: Bytes = 0;
    for top in tops {
        bases.push(end);
        let size = top.checked_next_multiple_of(plan.alignment);
        end = end.saturating_add(size.unwrap_or(Bytes::MAX));
    }
    let mut one = plan.clone();
    let base = |chunk: usize| {
        let pool = plan.chunks.get(chunk).map_or(0, |chunk| chunk.pool);
        bases.get(pool).copied().unwrap_or(0)
    };
    for (at, chunk) in one.chunks.iter_mut().enumerate() {
        chunk.offset = chunk.offset.saturating_add(base(at));
    }
    for tensor in &mut one.tensors {
        if let TensorPlace::Pool { chunk, offset } = &mut tensor.place {
            *offset = offset.saturating_add(base(*chunk));
        }
    }
    let used = one.chunks.iter().filter(|chunk| chunk.size > 0);
    let top = used.map(|chunk| one.end_of(chunk)).max().unwrap_or(0);
    one.pool_size = top.checked_next_multiple_of(plan.alignment).unwrap_or(Bytes::MAX);
    // What the plan claims of its pools is checked with the pools.
    one.proven_optimal = false;
    Cow::Owned(one)
}

/// Checks the pools that the plan of a sequence lists: everything lies inside, sizes and traffic are
/// right, and nothing exceeds a capacity.
pub(super) fn check(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = check_places(plan);
    if has_pools(plan) {
        let expected = traffic(sequence, plan);
        if plan.traffic != expected {
            violations.push(Violation::WrongTraffic { expected, found: plan.traffic });
        }
        let Plan { lower_bound, pool_size, .. } = *plan;
        if lower_bound > pool_size {
            violations.push(Violation::BoundAbovePool { lower_bound, pool_size });
        }
        // With several pools, a proof is about the objective, not the sum of the sizes.
        if plan.proven_optimal && plan.pools.len() == 1 && lower_bound != pool_size {
            violations.push(Violation::NotProven { lower_bound, pool_size });
        }
    } else if plan.traffic > 0 {
        violations.push(Violation::WrongTraffic { expected: 0, found: plan.traffic });
    }
    // Pins are the caller's.
    if plan.pinned.iter().any(|&chunk| chunk >= plan.chunks.len()) {
        violations.push(Violation::NoSuchChunk { user: "a pin".to_owned() });
    }
    violations
}

/// As [`check`], but without the traffic, which depends on the sizes of the run.
pub(super) fn check_places(plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !has_pools(plan) {
        return violations;
    }
    for pool in &plan.pools {
        if let Some(largest) =
            pool.largest.filter(|&largest| !largest.is_multiple_of(plan.alignment))
        {
            let (pool, alignment) = (pool.name.to_string(), plan.alignment);
            violations.push(Violation::MisalignedBuffers { pool, largest, alignment });
        }
    }
    let mut reserved = vec![Vec::new(); plan.pools.len()];
    for (pool, bytes) in &plan.reserved {
        if let Some(ranges) = reserved.get_mut(*pool) {
            ranges.push(bytes.clone());
        }
    }
    let reserved: Vec<Reserved> = reserved.iter().map(Reserved::of).collect();
    // The bytes that are used of each buffer; a pool that is no row of buffers is one.
    let mut needed: Vec<BTreeMap<u64, Bytes>> = vec![BTreeMap::new(); plan.pools.len()];
    for chunk in plan.chunks.iter().filter(|chunk| chunk.size > 0) {
        let name = || chunk.name.to_string();
        let Some(pool) = plan.pools.get(chunk.pool) else {
            violations.push(Violation::NoSuchPool { chunk: name(), pool: chunk.pool.to_string() });
            continue;
        };
        let end = plan.end_of(chunk);
        if let Some((low, high)) = reserved[chunk.pool].meets(chunk.offset, end.into()) {
            let (pool, offset, size) = (pool.name.to_string(), chunk.offset, end - chunk.offset);
            violations.push(Violation::InReserved { chunk: name(), pool, offset, size, low, high });
        }
        let buffer =
            pool.largest.map_or(0, |largest| chunk.offset.checked_div(largest).unwrap_or(0));
        let base = pool.largest.map_or(0, |largest| largest.saturating_mul(buffer));
        let top = needed[chunk.pool].entry(buffer).or_default();
        *top = (*top).max(end - base);
        if let Some(largest) = pool.largest.filter(|&largest| end - base > largest) {
            violations.push(Violation::AcrossBuffers {
                chunk: name(),
                pool: pool.name.to_string(),
                low: chunk.offset,
                high: end,
                largest,
            });
        }
        if pool.largest.is_none() && pool.capacity.is_some_and(|capacity| end > capacity) {
            violations.push(Violation::OutsideCapacity {
                chunk: name(),
                pool: pool.name.to_string(),
                offset: chunk.offset,
                size: end - chunk.offset,
                capacity: pool.capacity.unwrap_or(Bytes::MAX),
            });
        }
    }
    for (pool, needed) in plan.pools.iter().zip(&needed) {
        let limit = pool.largest.or(pool.capacity);
        let sizes = needed.values().map(|&top| {
            let size = top.checked_next_multiple_of(plan.alignment).unwrap_or(Bytes::MAX);
            limit.map_or(size, |limit| size.min(limit.max(top)))
        });
        let expected = sizes.fold(0, Bytes::saturating_add);
        if pool.size != expected {
            let (pool, found) = (pool.name.to_string(), pool.size);
            violations.push(Violation::WrongPoolSize { pool, expected, found });
        }
        if let Some(capacity) = pool.capacity.filter(|&capacity| expected > capacity)
            && pool.largest.is_some()
        {
            let (pool, size) = (pool.name.to_string(), expected);
            violations.push(Violation::PoolTooLarge { pool, size, capacity });
        }
    }
    let expected = plan.pools.iter().map(|pool| pool.size).fold(0, Bytes::saturating_add);
    if plan.pool_size != expected {
        violations.push(Violation::WrongTotal { expected, found: plan.pool_size });
    }
    violations
}

/// The bytes of all reads and writes in the pools, each times the cost of its pool. An operator reads an
/// input once, and writes its outputs, except a view that lies where its input does.
fn traffic(sequence: &OpSequence, plan: &Plan) -> u128 {
    let chunks: HashMap<&str, usize> = plan
        .tensors
        .iter()
        .filter_map(|tensor| match tensor.place {
            TensorPlace::Pool { chunk, .. } => Some((&*tensor.name, chunk)),
            TensorPlace::Supplied { .. } | TensorPlace::Nowhere => None,
        })
        .collect();
    let chunk = |tensor: TensorId| chunks.get(&*sequence.tensor(tensor).name).copied();
    let cost = |tensor: TensorId| -> u128 {
        let pool = chunk(tensor).and_then(|chunk| plan.chunks.get(chunk)).map(|chunk| chunk.pool);
        let pool = pool.and_then(|pool| plan.pools.get(pool));
        let bytes = sequence.tensor(tensor).size.unwrap_or(0);
        pool.map_or(0, |pool| u128::from(pool.cost) * u128::from(bytes))
    };
    let is_written = |&&output: &&TensorId| match sequence.tensor(output).origin {
        Origin::Output { dependency: Dependency::Reads { input, .. }, .. } => {
            chunk(input) != chunk(output)
        }
        _ => true,
    };
    let mut sum: u128 = 0;
    for operator in sequence.operators() {
        let mut inputs = operator.inputs.clone();
        inputs.sort_unstable();
        inputs.dedup();
        let written = operator.outputs.iter().filter(is_written).copied();
        sum = inputs.into_iter().chain(written).map(cost).fold(sum, u128::saturating_add);
    }
    sum
}
