//! Traffic baselines: the traffic under simple rules, for comparison with a plan in several pools.

use crate::{
    Bytes, Problem,
    bodies::{Body, TimedBox, concurrent},
    problem::{
        align_up,
        constraints::{Pool, PoolId},
    },
};

/// In larger problems, the rule that compares pairs of bodies is left out.
const MAX_PAIRS: usize = 50_000_000;

/// The cost of the traffic of a problem in several pools under two simple rules: each byte counts the cost of its pool.
#[derive(Clone, Copy)]
pub(crate) struct TrafficReference {
    /// Rule 1: every body lies in the last pool that it allows.
    pub(crate) all_slow: u128,
    /// Rule 2: each pool is a bank of shared objects, filled as greedy planners of frameworks do: the
    /// largest bodies first, each into the first pool that has a large enough object that is free while
    /// the body is alive, or room for a new one. `None` if a body finds no place, or if there are too
    /// many bodies.
    pub(crate) banked: Option<u128>,
}

impl TrafficReference {
    /// Counts the traffic; `None` if there are fewer than two pools.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        if problem.pools().len() < 2 {
            return None;
        }
        let slow = problem.bodies().iter().map(|body| {
            let last = body.pools.last().map_or(PoolId::default(), |allowed| allowed.pool);
            problem.cost_in(body, last)
        });
        let all_slow = slow.fold(0, u128::saturating_add);
        Some(Self { all_slow, banked: banked(problem) })
    }
}

/// A run of bytes for bodies that are never alive together.
struct Object {
    size: Bytes,
    lives: Vec<TimedBox>,
}

/// A pool with its objects one after another.
struct Bank<'p> {
    pool: &'p Pool,
    objects: Vec<Object>,
    used: Bytes,
}

impl Bank<'_> {
    /// Puts a body into an object, or returns false.
    fn take(&mut self, life: &TimedBox, size: Bytes, alignment: Bytes) -> bool {
        let is_free = |object: &&mut Object| {
            object.size >= size && !object.lives.iter().any(|other| concurrent(other, life))
        };
        if let Some(object) = self.objects.iter_mut().find(is_free) {
            object.lives.push(life.clone());
            return true;
        }
        let reserved: Bytes = self
            .pool
            .reserved
            .iter()
            .map(|bytes| bytes.end - bytes.start)
            .fold(0, Bytes::saturating_add);
        let low = align_up(self.used, self.pool.root_alignment(alignment));
        let Some(end) = low.checked_add(size) else { return false };
        if self.pool.capacity.is_some_and(|most| end.saturating_add(reserved) > most) {
            return false;
        }
        self.used = end;
        self.objects.push(Object { size, lives: vec![life.clone()] });
        true
    }
}

fn banked(problem: &Problem) -> Option<u128> {
    let bodies = problem.bodies();
    if bodies.len().saturating_mul(bodies.len()) / 2 > MAX_PAIRS {
        return None;
    }
    let bank = |pool| Bank { pool, objects: Vec::new(), used: 0 };
    let mut banks: Vec<Bank<'_>> = problem.pools().iter().map(bank).collect();
    let mut order: Vec<&Body> = bodies.iter().collect();
    order.sort_by_key(|body| (body.fixed.is_none(), std::cmp::Reverse(body.extent)));
    let mut sum: u128 = 0;
    for body in order {
        let pools = body.pools.iter().map(|allowed| allowed.pool);
        let mut pools = pools.filter(|&pool| body.fixed.is_none_or(|place| place.pool == pool));
        let pool = match TimedBox::around(problem.boxes_of(body)) {
            // A body that never needs bytes needs no object.
            None => pools.next(),
            Some(life) => {
                pools.find(|pool| banks[pool.index()].take(&life, body.extent, problem.alignment()))
            }
        };
        sum = sum.saturating_add(problem.cost_in(body, pool?));
    }
    Some(sum)
}
