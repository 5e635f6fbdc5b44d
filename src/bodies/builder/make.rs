//! Makes bodies of chunks.

use crate::{
    Bytes,
    bodies::{
        Body,
        boxes::View,
        builder::{
            Members,
            placement_constraints::{PlacementConstraints, Settled},
        },
        join_error::{JoinError, PinConflict},
    },
    problem::{ChunkId, constraints::PoolId},
};

/// The bodies of a problem that joins no chunks: one for each chunk with bytes.
pub(crate) fn single_bodies(view: View<'_>) -> Result<Vec<Body>, JoinError> {
    let mut bodies = Vec::with_capacity(view.chunks.len());
    for (chunk, at) in view.chunks.iter().zip(0..) {
        if chunk.size > 0 {
            bodies.push(body(&view, &[(ChunkId(at), 0)], |_| true)?);
        }
    }
    Ok(bodies)
}

/// Makes chunks a body, if they have a pool, a place and an alignment.
pub(super) fn body(
    view: &View<'_>,
    members: &[(ChunkId, i128)],
    is_root: impl Fn(ChunkId) -> bool,
) -> Result<Body, JoinError> {
    let mut members = Members::from_slice(members);
    members.sort_unstable();
    let needs = PlacementConstraints::of(view, members.iter().copied(), is_root)?;
    let reserved = |pool, origin| reserved(view, &members, pool, origin);
    let Settled { pools, fixed, extent } = needs.settle(view, reserved)?;
    let low = members.iter().map(|&(_, at)| at).min().unwrap_or(0);
    let within = |at: i128| Bytes::try_from(at - low).unwrap_or(Bytes::MAX);
    let members = members.into_iter().map(|(chunk, at)| (chunk, within(at))).collect();
    Ok(Body { members, pools, fixed, extent })
}

/// The reserved bytes that a chunk has if the origin of these lies at an offset in a pool.
pub(super) fn reserved(
    view: &View<'_>,
    members: &[(ChunkId, i128)],
    pool: PoolId,
    origin: i128,
) -> Option<PinConflict> {
    let reserved = &view.constraints.pools[pool.index()].reserved;
    let hit = |&(chunk, at): &(ChunkId, i128)| {
        let low = origin + at;
        let high = low + i128::from(view.padded(chunk));
        reserved.iter().find(|one| low < i128::from(one.end) && i128::from(one.start) < high)
    };
    let hit = members.iter().filter(|_| !reserved.is_empty()).find_map(hit)?;
    Some(PinConflict::Reserved { low: hit.start, high: hit.end })
}
