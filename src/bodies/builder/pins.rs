//! Overwrites that would pin chunks to bytes that other pinned chunks need.
//!
//! A request that joins a body to a pinned one fixes the place of all its chunks. It is rejected if one of them would
//! need the same bytes as a pinned chunk of another body. If a pending request would write one of two compared chunks
//! over the other, they are compared as if that request were accepted.

use std::ops::Range;

use crate::bodies::builder::{
    ALL_STEPS, BodyBuilder, Index, life, placement_constraints::PlacementConstraints,
};
use crate::{
    bodies::join_error::{JoinError, PinConflict},
    problem::{ChunkId, Link, Request, constraints::PoolId},
};

/// The chunks that pins fix, and the requests that are allowed and not yet refused.
#[derive(Default)]
pub(super) struct Pinned {
    /// By pool: where they are found.
    of_pool: Vec<Index>,
    /// By chunk: its pool and its offset there.
    places: Vec<Option<(PoolId, i128)>>,
    /// By overwriter.
    pending: Vec<Option<Request>>,
}

impl BodyBuilder<'_> {
    /// Returns whether pins already put the overwriter of a request at the requested distance from the other chunk.
    pub(super) fn is_pinned_so(&self, request: &Request) -> bool {
        let [new, old] =
            [request.overwriter, request.overwritten].map(|chunk| self.pinned.place(chunk));
        let (Some((pool, new)), Some((of_old, old))) = (new, old) else { return false };
        pool == of_old && new - old == request.link().distance()
    }

    /// Pins the chunks of the bodies that pins fix.
    pub(super) fn pin_bodies(&mut self) {
        let fixed = self.bodies.iter().filter_map(|body| Some((body, body.fixed?)));
        let place = |at, of: i128| i128::from(at) + of;
        let chunks: Vec<(ChunkId, PoolId, i128)> = fixed
            .flat_map(|(body, fixed)| {
                let members = body.members.iter();
                members.map(move |&(chunk, at)| (chunk, fixed.pool, place(at, fixed.offset.into())))
            })
            .collect();
        for (chunk, pool, offset) in chunks {
            self.pin(chunk, pool, offset);
        }
    }

    /// Marks a request as pending: allowed and not yet tried; or, with `is_pending` false, as decided.
    pub(super) fn set_pending(&mut self, request: Request, is_pending: bool) {
        if self.pinned.places.is_empty() && !request.required {
            return;
        }
        if self.pinned.pending.is_empty() {
            self.pinned.pending = vec![None; self.view.chunks.len()];
        }
        self.pinned.pending[request.overwriter.index()] = is_pending.then_some(request);
    }

    pub(super) fn pin(&mut self, chunk: ChunkId, pool: PoolId, offset: i128) {
        if self.pinned.places.is_empty() {
            self.pinned.places = vec![None; self.view.chunks.len()];
            self.pinned.of_pool = vec![Index::default(); self.view.constraints.pools.len()];
        }
        self.pinned.places[chunk.index()] = Some((pool, offset));
        let (bytes, steps) = (self.view.bytes_at(chunk, offset), self.steps_of(chunk));
        self.pinned.of_pool[pool.index()].add(chunk.index(), bytes, steps);
    }

    fn steps_of(&self, chunk: ChunkId) -> Range<i128> {
        let is_in_steps = self.view.constraints.streams == 1 && self.apart.is_free(chunk);
        if is_in_steps { life(&self.view, None, chunk) } else { ALL_STEPS }
    }

    /// If one of two groups is pinned and the other is not, pins the other.
    ///
    /// # Errors
    ///
    /// If the other would need bytes that other pinned chunks need.
    pub(super) fn pin_joined(
        &mut self,
        (a, b, shift): (u32, u32, i128),
        needs: &PlacementConstraints,
    ) -> Result<(), JoinError> {
        let Some((pool, origin)) = needs.pinned().filter(|_| a != b) else { return Ok(()) };
        let is_pinned = |group: u32| {
            self.groups[group as usize].needs.as_ref().is_some_and(|n| n.pinned().is_some())
        };
        match (is_pinned(a), is_pinned(b)) {
            (true, false) => self.pin_group((b, a), (pool, origin + shift)),
            (false, true) => self.pin_group((a, b), (pool, origin)),
            _ => Ok(()),
        }
    }

    /// Pins a group of chunks whose origin lies at an offset, unless one of them would need the bytes of a pinned
    /// chunk of another group than this one and `joined`.
    fn pin_group(
        &mut self,
        (group, joined): (u32, u32),
        (pool, origin): (PoolId, i128),
    ) -> Result<(), JoinError> {
        let members = self.groups[group as usize].members.clone();
        for &(x, at) in &members {
            let low = origin + at;
            let bytes = self.view.bytes_at(x, low);
            let Some(index) = self.pinned.of_pool.get(pool.index()) else { break };
            for y in index.near(&bytes, &self.steps_of(x)) {
                let y = ChunkId::from_index(y);
                let Some((_, of_y)) = self.pinned.place(y) else { continue };
                if self.of[y.index()].0 != joined && self.needs_same_bytes((x, low), (y, of_y)) {
                    return Err(JoinError::Pins(x, PinConflict::Pinned));
                }
            }
        }
        for (chunk, at) in members {
            self.pin(chunk, pool, origin + at);
        }
        Ok(())
    }

    /// Returns whether two chunks of different bodies of a pool need the same bytes at these offsets.
    pub(super) fn needs_same_bytes(&self, x: (ChunkId, i128), y: (ChunkId, i128)) -> bool {
        self.apart.need_same_bytes(self.view, x, y, |one, other| {
            let link = self.pinned.pending(one, other).map(Request::link);
            self.view.boxes(one, link.or(self.links[one.index()]))
        })
    }
}

impl Pinned {
    /// The request to write a chunk over another at this distance, if it is still to be looked at.
    fn pending(&self, new: ChunkId, (old, distance): (ChunkId, i128)) -> Option<Request> {
        let pending = self.pending.get(new.index()).copied().flatten();
        pending.filter(|one| one.overwritten == old && one.link().distance() == distance)
    }

    /// The link of such a request if it is required: either it is accepted later, or the problem is an error.
    pub(super) fn link_to_come(&self, new: ChunkId, old: (ChunkId, i128)) -> Option<Link> {
        self.pending(new, old).filter(|pending| pending.required).map(Request::link)
    }

    pub(super) fn place(&self, chunk: ChunkId) -> Option<(PoolId, i128)> {
        self.places.get(chunk.index()).copied().flatten()
    }
}
