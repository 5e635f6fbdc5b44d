//! Bodies: chunks joined by overwrites and parts, which move as one.

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes, Step,
    bodies::{BodyLifetimes, TimedBox, TimedBoxes, View},
    problem::{
        ChunkId, Problem, Segment,
        constraints::{Place, PoolId},
    },
};

/// A list that mostly has one item, which then needs no memory of its own.
pub(crate) type ShortList<T> = SmallVec<[T; 1]>;

/// Chunks joined by links. All lie in one pool, at fixed distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// The chunks and their distances from the lowest of them, ascending by id.
    pub(crate) members: ShortList<(ChunkId, Bytes)>,
    /// The pools that all members allow and in which the body fits, in the problem's order.
    pub(crate) pools: ShortList<AllowedPool>,
    /// The place of the lowest chunk, if a pin fixes it.
    pub(crate) fixed: Option<Place>,
    /// The bytes from the lowest to the end of the highest, padding included.
    pub(crate) extent: Bytes,
}

/// A pool that a body may lie in, and the offsets there that the alignments of its members allow:
/// `residue` modulo `modulus`, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AllowedPool {
    /// The pool.
    pub(crate) pool: PoolId,
    /// The distance between allowed offsets, in bytes.
    pub(crate) modulus: Bytes,
    /// The lowest allowed offset, in bytes.
    pub(crate) residue: Bytes,
}

impl AllowedPool {
    /// The lowest allowed offset that is not below this one; `None` if it exceeds 64 bits.
    pub(crate) fn round_up(self, offset: Bytes) -> Option<Bytes> {
        if offset <= self.residue {
            return Some(self.residue);
        }
        let over = (offset - self.residue).checked_next_multiple_of(self.modulus)?;
        self.residue.checked_add(over)
    }
}

impl Problem {
    /// The bodies. Each moves as one, and a plan chooses their places. The bodies of an unconstrained problem are its
    /// [chains](Self::chain).
    pub(crate) fn bodies(&self) -> &[Body] {
        match self.extra.as_deref() {
            Some(extra) => &extra.bodies,
            None => self
                .derived
                .bodies
                .get_or_init(|| self.roots().map(|root| self.body_of(root)).collect()),
        }
    }

    /// The body of a chain of an unconstrained problem.
    fn body_of(&self, root: ChunkId) -> Body {
        let at = |chunk| (chunk, self.place_in_chain(chunk).1);
        let mut members: ShortList<(ChunkId, Bytes)> = self.chain(root).map(at).collect();
        members.sort_unstable();
        let allowed = AllowedPool { pool: PoolId(0), modulus: self.alignment, residue: 0 };
        let extent = self.padded_size(root);
        Body { members, pools: smallvec![allowed], fixed: None, extent }
    }

    /// The bodies that pins fix.
    pub(crate) fn fixed_bodies(&self) -> impl Iterator<Item = &Body> {
        let bodies = self.extra.iter().flat_map(|extra| &extra.bodies);
        bodies.filter(|body| body.fixed.is_some())
    }

    /// The cost of a body's traffic if it lies in a pool.
    pub(crate) fn cost_in(&self, body: &Body, pool: PoolId) -> u128 {
        let bytes = body.members.iter().map(|&(chunk, _)| u128::from(self.traffic(chunk)));
        bytes.fold(0, u128::saturating_add).saturating_mul(self.pools()[pool.index()].cost.into())
    }

    /// The boxes of a body: bytes, counted from its lowest, and the time in which it needs them.
    pub(crate) fn boxes_of(&self, body: &Body) -> TimedBoxes {
        if self.is_unconstrained() {
            let (root, _) = self.place_in_chain(body.members[0].0);
            let timed = |Segment { begin, end, low, high, .. }| TimedBox {
                begin: [begin].into(),
                end: [end].into(),
                bytes: low..high,
            };
            return self.segments(root).map(timed).collect();
        }
        self.boxes_by_chunk(body).map(|(_, one)| one).collect()
    }

    /// The begin and the end of a body that is one chunk and overwrites none.
    pub(crate) fn one_life(&self, body: &Body) -> Option<(&[Step], &[Step])> {
        let [(id, _)] = *body.members else { return None };
        let is_whole = !self.is_unconstrained() && body.extent > 0 && self.link(id).is_none();
        is_whole.then(|| self.view().life(id))
    }

    /// The lives of the bodies of a constrained problem.
    pub(crate) fn body_lives(&self) -> Option<&BodyLifetimes> {
        (!self.is_unconstrained())
            .then(|| self.derived.lives.get_or_init(|| BodyLifetimes::of(self)))
    }

    /// The boxes of a body, by member.
    pub(crate) fn boxes_by_chunk(&self, body: &Body) -> impl Iterator<Item = (ChunkId, TimedBox)> {
        let view = self.view();
        body.members.iter().flat_map(move |&(chunk, at)| {
            let boxes = view.boxes(chunk, self.link(chunk)).into_iter();
            boxes.map(move |b| {
                (chunk, TimedBox { bytes: b.bytes.start + at..b.bytes.end + at, ..b })
            })
        })
    }

    pub(crate) fn view(&self) -> View<'_> {
        let (chunks, constraints) = (&*self.chunks, self.all_constraints());
        View { chunks, constraints, alignment: self.alignment, padding: self.padding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::constraints::Pool;

    /// A problem without constraints has the pool, the bodies and the boxes that it has with a pool without limits.
    #[test]
    fn an_unconstrained_problem_has_a_pool_bodies_and_boxes() {
        let mut builder = Problem::builder().alignment(4).padding(1);
        let (a, b) = (builder.chunk(0..3, 12), builder.chunk(1..2, 0));
        let (c, d) = (builder.chunk(2..5, 4), builder.chunk(4..6, 3));
        builder.overwrite(c, a, 8).overwrite(d, c, 0);
        let plain = builder.build().unwrap();
        builder.pool(Pool::new("pool"));
        let listed = builder.build().unwrap();
        assert!(plain.is_unconstrained() && !listed.is_unconstrained());
        assert_eq!(plain.pools(), listed.pools());
        assert_eq!(plain.bodies(), listed.bodies());
        for (body, same) in plain.bodies().iter().zip(listed.bodies()) {
            assert_eq!(plain.boxes_of(body), listed.boxes_of(same), "{body:?}");
        }
        let members: Vec<Vec<ChunkId>> = plain
            .bodies()
            .iter()
            .map(|body| body.members.iter().map(|one| one.0).collect())
            .collect();
        // A chunk without bytes is in none.
        assert_eq!((members, plain.chunk(b).size), (vec![vec![a, c, d]], 0));
        let bytes: Vec<_> =
            plain.boxes_of(&plain.bodies()[0]).into_iter().map(|one| one.bytes).collect();
        assert_eq!(bytes, [0..13, 8..13, 8..12]);
    }
}
