//! Promotion: first fit in other orders, in which bodies that found no place in a cheaper pool come
//! earlier.
//!
//! With first fit, the order alone decides which bodies spill into a more expensive pool. So one of them,
//! chosen by a fixed sequence of random numbers, moves ahead by some places, and everything is packed again;
//! the new order is kept unless the plan is worse.

use crate::{
    Bytes,
    monitor::Monitor,
    search::{
        first_fit::{Packed, pack_in},
        pool_instance::PoolInstance,
        state::fingerprint::scramble,
    },
};

/// Improves a packing until the budget is spent; returns the nodes.
pub fn promote(
    instance: &PoolInstance<'_>,
    best: &mut Packed,
    bound: Bytes,
    budget: u64,
    monitor: &mut Monitor<'_>,
) -> u64 {
    let bodies = instance.bodies;
    let movable = best.order.iter().position(|&body| bodies[body].fixed.is_none());
    let Some(first) = movable else { return 0 };
    let boxes: usize = instance.boxes.iter().flatten().count();
    // Packing a body or a box takes about as long as a node.
    let cost = bodies.len().max(boxes) as u64;
    let (mut nodes, mut seed) = (0, 0_u64);
    let mut random = |below: usize| {
        seed += 1;
        usize::try_from(scramble(seed) % below.max(1) as u64).unwrap_or(0)
    };
    while nodes + cost <= budget {
        nodes += cost;
        // A body spills if its traffic would cost less in another pool.
        let spills = |&at: &usize| {
            let body = &bodies[best.order[at]];
            let place = best.places[best.order[at]];
            let cost = |pool| instance.problem.cost_in(body, pool);
            let here = cost(place.pool);
            body.fixed.is_none() && body.pools.iter().any(|allowed| cost(allowed.pool) < here)
        };
        let spilled: Vec<usize> = (first + 1..best.order.len()).filter(spills).collect();
        let at = match spilled.len() {
            0 => first + random(best.order.len() - first),
            count => spilled[random(count)],
        };
        let to = first + random(at - first + 1);
        let mut order = best.order.clone();
        order[to..=at].rotate_right(1);
        if let Some(packed) = pack_in(instance, order, monitor)
            && packed.objective <= best.objective
        {
            *best = packed;
        }
        let size = best.objective[1..].iter().sum::<u128>();
        if monitor.stop(nodes, bound, u64::try_from(size).unwrap_or(u64::MAX)) {
            break;
        }
    }
    nodes
}
