//! The pool in which bodies can be packed in blocks.

use crate::{
    Bytes, Problem,
    problem::demands::{AllowedPool, Body, Pool, PoolId},
};

/// Around pins and reserved bytes, in several pools and on one stream, no more bodies than these are placed one by one,
/// however late it is. That takes little time and mostly fewer bytes, and in several pools, there is less traffic.
pub(crate) const FEW: usize = if cfg!(test) { 8 } else { 20_000 };

/// A pool without limits that all bodies allow, in which they can be packed in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPool {
    pub(crate) id: PoolId,
    /// No reserved byte lies above.
    pub(crate) floor: Bytes,
}

impl BlockPool {
    /// The first such pool; `None` with [few](FEW) bodies.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        let demands = problem.demands()?;
        let is_bare = demands.streams > 1
            && matches!(&*demands.pools, [pool] if pool.reserved.is_empty())
            && problem.fixed_bodies().next().is_none();
        let is_few = !is_bare && problem.bodies().len() <= FEW;
        // Buffers have a size each, and chunks kept apart have it even where they need no bytes.
        let has_buffers = demands.pools.iter().any(|pool| pool.largest.is_some());
        if is_few || has_buffers || !demands.apart.is_empty() {
            return None;
        }
        let is_free = |pool: &Pool| pool.capacity.is_none();
        let ids = (0..).map(PoolId);
        ids.zip(&demands.pools).filter(|(_, pool)| is_free(pool)).find_map(|(id, pool)| {
            let floor = pool.reserved.iter().map(|range| range.end).max().unwrap_or(0);
            let within = Self { id, floor };
            // Rounded up, sizes near the limits of 64 bits could exceed them.
            let room = |body: &Body| {
                if let Some(place) = body.fixed {
                    return Some(u128::from(place.offset) + u128::from(body.extent));
                }
                let modulus = within.allowed(body)?.modulus;
                Some(2 * (u128::from(body.extent) + u128::from(modulus)))
            };
            let rooms: u128 = problem.bodies().iter().map(room).sum::<Option<_>>()?;
            (u128::from(floor) + rooms < u128::from(Bytes::MAX / 2)).then_some(within)
        })
    }

    /// The offsets there that a body allows.
    pub(crate) fn allowed(self, body: &Body) -> Option<AllowedPool> {
        body.pools.iter().find(|allowed| allowed.pool == self.id).copied()
    }

    /// The end of a body that is fixed there.
    pub(crate) fn end_of(self, body: &Body) -> Option<Bytes> {
        body.fixed.filter(|place| place.pool == self.id).map(|place| place.offset + body.extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        problem::{ChunkId, ProblemBuilder},
        search::blocks::tests::add,
    };

    #[test]
    fn bodies_are_packed_in_blocks_in_the_first_pool_without_limits_that_all_allow() {
        let found = |bodies: usize, demand: &dyn Fn(&mut ProblemBuilder)| {
            let mut problem = Problem::builder();
            problem.streams(2);
            for _ in 0..bodies {
                add(&mut problem, 8, [0, 0]..[1, 1]);
            }
            demand(&mut problem);
            BlockPool::of(&problem.build().unwrap()).map(|pool| (pool.id.0, pool.floor))
        };
        let ids = [0, 1].map(ChunkId::from_index);
        let two = |only: u16| {
            move |problem: &mut ProblemBuilder| {
                problem.pool(Pool::new("a").capacity(64));
                problem.pool(Pool::new("b"));
                problem.only_in(ids[0], [PoolId(only)]);
            }
        };
        let with = |pool: Pool| move |problem: &mut ProblemBuilder| _ = problem.pool(pool.clone());
        let pinned = |problem: &mut ProblemBuilder| _ = problem.pin(ids[0], PoolId(0), 0);
        let apart = |problem: &mut ProblemBuilder| _ = problem.apart(ids);
        let huge = |problem: &mut ProblemBuilder| add(problem, 1 << 62, [0, 0]..[1, 1]);
        let check =
            |demand: &dyn Fn(&mut ProblemBuilder), expected: Option<(u16, Bytes)>, with_few| {
                assert_eq!(found(FEW + 1, demand), expected);
                assert_eq!(found(2, demand), expected.filter(|_| with_few));
            };
        check(&|_| (), Some((0, 0)), true);
        check(&with(Pool::new("a")), Some((0, 0)), true);
        check(&with(Pool::new("a").reserved(0..8)), Some((0, 8)), false);
        check(&with(Pool::new("a").capacity(1 << 20)), None, false);
        check(&with(Pool::new("a").largest(64)), None, false);
        check(&pinned, Some((0, 0)), false);
        check(&apart, None, false);
        check(&huge, None, false);
        check(&two(1), Some((1, 0)), false);
        assert_eq!(found(FEW + 1, &two(0)), None);
    }
}
