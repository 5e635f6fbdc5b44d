//! Placement constraints: the pools, pins, alignments and extent of a body's chunks, summed up, so that
//! two bodies can be joined without reading all of their chunks.

use smallvec::SmallVec;

use crate::{
    Bytes,
    bodies::{
        AllowedPool, ShortList,
        boxes::View,
        join_error::{JoinError, PinConflict},
    },
    problem::{
        ChunkId,
        constraints::{Place, Pool, PoolId},
    },
};

/// The most alignments that are kept: two for each power of two, one for roots and one for other chunks. Among more
/// than that, two contradict each other already, so further ones change nothing.
const MAX_ALIGNMENTS: usize = 2 * Bytes::BITS as usize + 1;

/// The placement constraints of chunks at fixed distances from a common origin.
#[derive(Clone, Debug)]
pub(super) struct PlacementConstraints {
    first: ChunkId,
    /// The lowest byte of all, and the end of the highest.
    low: i128,
    high: i128,
    /// Those that all chunks allow, in the problem's order.
    pools: SmallVec<[PoolId; 4]>,
    pin: Option<Pin>,
    alignments: SmallVec<[Alignment; 1]>,
}

/// The place that pins give the origin.
#[derive(Clone, Copy, Debug)]
struct Pin {
    /// The first pinned chunk.
    chunk: ChunkId,
    pool: PoolId,
    origin: i128,
}

/// An alignment that some chunks require.
#[derive(Clone, Copy, Debug)]
struct Alignment {
    own: Bytes,
    /// The alignment of the pool holds for roots, too.
    is_root: bool,
    /// The offset of the origin: `residue` modulo `modulus`, the largest of the alignments in any pool.
    modulus: Bytes,
    residue: Bytes,
    /// The first chunk that requires it, and the number of such chunks.
    first: ChunkId,
    count: usize,
}

/// The places that are left for a body.
pub(super) struct Settled {
    pub(super) pools: ShortList<AllowedPool>,
    /// The place of the lowest byte, if a pin fixes it.
    pub(super) fixed: Option<Place>,
    pub(super) extent: Bytes,
}

impl PlacementConstraints {
    /// Sums up the constraints of chunks at distances from their origin.
    pub(super) fn of(
        view: &View<'_>,
        members: impl IntoIterator<Item = (ChunkId, i128)>,
        is_root: impl Fn(ChunkId) -> bool,
    ) -> Result<Self, JoinError> {
        let mut needs = Self {
            first: ChunkId(u32::MAX),
            low: i128::MAX,
            high: i128::MIN,
            pools: (0..).take(view.constraints.pools.len()).map(PoolId).collect(),
            pin: None,
            alignments: SmallVec::new(),
        };
        for member in members {
            needs.add(view, member, is_root(member.0))?;
        }
        Ok(needs)
    }

    fn add(
        &mut self,
        view: &View<'_>,
        (chunk, at): (ChunkId, i128),
        is_root: bool,
    ) -> Result<(), JoinError> {
        let constraints = view.constraints.of(chunk);
        self.first = self.first.min(chunk);
        self.low = self.low.min(at);
        self.high = self.high.max(at + i128::from(view.padded(chunk)));
        if let Some(allowed) = &constraints.pools {
            self.pools.retain(|pool| allowed.contains(pool));
        }
        if let Some(Place { pool, offset }) = constraints.pin {
            self.add_pin(Pin { chunk, pool, origin: i128::from(offset) - at })?;
        }
        self.add_alignment(Alignment::of(view, (chunk, at), is_root));
        Ok(())
    }

    /// Adds the constraints of other chunks, whose origin lies at a distance from this one.
    pub(super) fn add_all(&mut self, other: &Self, distance: i128) -> Result<(), JoinError> {
        let Self { first, low, high, pools, pin, alignments } = other;
        self.first = self.first.min(*first);
        self.low = self.low.min(low + distance);
        self.high = self.high.max(high + distance);
        self.pools.retain(|pool| pools.contains(pool));
        if let Some(pin) = *pin {
            self.add_pin(Pin { origin: pin.origin - distance, ..pin })?;
        }
        for &one in alignments {
            self.add_alignment(one.moved(distance));
        }
        Ok(())
    }

    /// The same, counted from another origin that lies at a distance from this one.
    pub(super) fn counted_from(mut self, distance: i128) -> Self {
        self.low -= distance;
        self.high -= distance;
        self.pin = self.pin.map(|pin| Pin { origin: pin.origin + distance, ..pin });
        self.alignments.iter_mut().for_each(|one| *one = one.moved(-distance));
        self
    }

    /// Changes a chunk from a root to one that is none.
    pub(super) fn no_longer_root(&mut self, view: &View<'_>, member: (ChunkId, i128)) {
        let old = Alignment::of(view, member, true);
        if let Some(at) = self.alignments.iter().position(|one| one.is_like(&old)) {
            self.alignments[at].count -= 1;
            if self.alignments[at].count == 0 {
                self.alignments.remove(at);
            }
            self.add_alignment(Alignment::of(view, member, false));
        }
    }

    /// The place that a pin gives the origin.
    pub(super) fn pinned(&self) -> Option<(PoolId, i128)> {
        self.pin.map(|pin| (pin.pool, pin.origin))
    }

    fn add_pin(&mut self, new: Pin) -> Result<(), JoinError> {
        self.pools.retain(|pool| *pool == new.pool);
        let old = self.pin.unwrap_or(new);
        if (old.pool, old.origin) != (new.pool, new.origin) {
            return Err(JoinError::TwoPins(self.first));
        }
        self.pin = Some(Pin { chunk: old.chunk.min(new.chunk), ..new });
        Ok(())
    }

    fn add_alignment(&mut self, new: Alignment) {
        if let Some(one) = self.alignments.iter_mut().find(|one| one.is_like(&new)) {
            one.first = one.first.min(new.first);
            one.count += new.count;
        } else if self.alignments.len() < MAX_ALIGNMENTS {
            self.alignments.push(new);
        }
    }

    /// The offsets of the lowest byte that the alignments allow in a pool.
    fn allowed(&self, view: &View<'_>, pool: PoolId) -> Result<AllowedPool, JoinError> {
        let of_roots = view.constraints.pools[pool.index()].root_alignment(view.alignment);
        let mut sum = AllowedPool { pool, modulus: 1, residue: 0 };
        for one in &self.alignments {
            let modulus = if one.is_root { one.own.max(of_roots) } else { one.own };
            // The residue modulo a power of two: the last bits.
            let residue = one.residue & (modulus - 1);
            let common = modulus.min(sum.modulus);
            if (residue ^ sum.residue) & (common - 1) != 0 {
                return Err(JoinError::Misaligned(one.first));
            }
            if modulus > sum.modulus {
                sum = AllowedPool { pool, modulus, residue };
            }
        }
        // From the origin to the lowest byte.
        Ok(AllowedPool { residue: residue(i128::from(sum.residue) + self.low, sum.modulus), ..sum })
    }

    /// The places that the constraints leave. `reserved` returns a conflict if some chunk would lie in a reserved
    /// range when the origin lies at an offset in a pool.
    ///
    /// # Errors
    ///
    /// If no place is left.
    pub(super) fn settle(
        &self,
        view: &View<'_>,
        reserved: impl FnOnce(PoolId, i128) -> Option<PinConflict>,
    ) -> Result<Settled, JoinError> {
        if self.pools.is_empty() {
            return Err(JoinError::NoCommonPool(self.first));
        }
        let extent = Bytes::try_from(self.high - self.low).unwrap_or(Bytes::MAX);
        let fixed = match self.pin {
            None => None,
            Some(pin) => {
                let error = |conflict| JoinError::Pins(pin.chunk, conflict);
                let offset = Bytes::try_from(pin.origin + self.low)
                    .map_err(|_| error(PinConflict::BelowThePool))?;
                let place = Place::new(pin.pool, offset);
                let allowed = self.allowed(view, pin.pool)?;
                let reserved = || reserved(pin.pool, pin.origin);
                match conflict(view, place, extent, allowed, reserved) {
                    Some(conflict) => return Err(error(conflict)),
                    None => Some(place),
                }
            }
        };
        let mut error = JoinError::TooLarge(self.first, extent);
        let allowed = self.pools.iter().filter_map(|&pool| {
            let Pool { largest, capacity, .. } = view.constraints.pools[pool.index()];
            let limit = largest.into_iter().chain(capacity).min();
            let allowed = self.allowed(view, pool).map_err(|found| error = found).ok()?;
            let AllowedPool { modulus, residue, .. } = allowed;
            // In a pool of buffers, the lowest offset in a buffer that the alignments allow.
            let lowest = largest
                .map_or(0, |largest| residue % modulus.min(largest & largest.wrapping_neg()));
            let end = lowest.checked_add(extent);
            limit.is_none_or(|limit| end.is_some_and(|end| end <= limit)).then_some(allowed)
        });
        let pools: ShortList<AllowedPool> = allowed.collect();
        if pools.is_empty() {
            return Err(error);
        }
        Ok(Settled { pools, fixed, extent })
    }
}

impl Alignment {
    fn of(view: &View<'_>, (chunk, at): (ChunkId, i128), is_root: bool) -> Self {
        let own = view.constraints.of(chunk).alignment;
        let pools = view.constraints.pools.iter();
        let of_pools =
            pools.map(|pool| pool.root_alignment(view.alignment)).max().filter(|_| is_root);
        let modulus = of_pools.map_or(own, |of_pools| of_pools.max(own));
        Self { own, is_root, modulus, residue: residue(-at, modulus), first: chunk, count: 1 }
    }

    /// The same alignment for an origin that lies `distance` bytes lower.
    fn moved(self, distance: i128) -> Self {
        Self { residue: residue(i128::from(self.residue) - distance, self.modulus), ..self }
    }

    fn is_like(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.own, one.is_root, one.residue);
        key(self) == key(other)
    }
}

/// The residue of an offset modulo a power of two: its last bits, below zero as well.
fn residue(offset: i128, modulus: Bytes) -> Bytes {
    // No residue has more bits than the modulus.
    Bytes::try_from(offset & i128::from(modulus - 1)).unwrap_or(0)
}

/// The conflict that keeps a body from a place: reserved bytes, the end of the pool or its alignment.
fn conflict(
    view: &View<'_>,
    place: Place,
    extent: Bytes,
    allowed: AllowedPool,
    reserved: impl FnOnce() -> Option<PinConflict>,
) -> Option<PinConflict> {
    let (offset, pool) = (place.offset, &view.constraints.pools[place.pool.index()]);
    let Some(end) = offset.checked_add(extent) else { return Some(PinConflict::Addresses) };
    if let Some(reserved) = reserved() {
        return Some(reserved);
    }
    match (pool.largest, pool.capacity) {
        (Some(largest), _) if offset / largest != (end - 1) / largest => {
            return Some(PinConflict::Buffers(largest));
        }
        (None, Some(capacity)) if end > capacity => {
            return Some(PinConflict::Capacity(capacity));
        }
        _ => {}
    }
    let AllowedPool { modulus, residue, .. } = allowed;
    (offset % modulus != residue).then_some(PinConflict::Alignment { offset, modulus })
}
