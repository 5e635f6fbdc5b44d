//! A problem without some of its requests, parts and constraints.

use std::sync::Arc;

use crate::problem::{
    ChunkId, Labels, Links, Problem, ProblemError, Request,
    constraints::{ChunkConstraints, Constraints, Part, Place, Pool, PoolId},
};

impl Problem {
    /// The same problem without the requests and optional parts at some indices. If `is_required`, the remaining
    /// optional parts become required.
    pub(crate) fn without(
        &self,
        requests: impl Fn(usize) -> bool,
        parts: impl Fn(usize) -> bool,
        is_required: bool,
    ) -> Result<Self, ProblemError> {
        let mut builder = self.clone().into_builder();
        keep(&mut builder.requests, |at| !requests(at));
        keep(&mut builder.optional_parts, |at| !parts(at));
        if is_required {
            for Part { part, whole, offset } in std::mem::take(&mut builder.optional_parts) {
                builder.part(part, whole, offset);
            }
        }
        builder.finish()
    }

    /// The problem of some chunks, given in ascending order, in one of the pools, without its capacity, and without
    /// groups of chunks kept apart. The accepted requests and parts between them are required.
    pub(crate) fn in_pool(&self, chunks: &[ChunkId], pool: PoolId) -> Result<Self, ProblemError> {
        let requests =
            self.accepted_requests().map(|request| Request { required: true, ..request });
        let parts = self.parts().iter().copied();
        let mut builder = self.subset(chunks, requests, parts)?.into_builder();
        if let Some(constraints) = &mut builder.constraints {
            let pool = self.pools()[pool.index()].clone();
            constraints.pools = vec![Pool { capacity: None, ..pool }];
            for own in &mut constraints.own {
                own.pools = None;
                own.pin = own.pin.map(|pin| Place::new(PoolId::default(), pin.offset));
            }
        }
        builder.finish()
    }

    /// The chunks and accepted overwrites of a constrained problem, without names, pools, pins and own alignments.
    /// `None` if the problem is unconstrained, or has streams, parts, chunks kept apart, partial overlaps, holes, or
    /// windows that do not cover their whole chunk.
    pub(crate) fn without_constraints(&self) -> Option<Self> {
        let Constraints { parts, apart, own, streams, .. } = self.constraints()?;
        let is_always_whole = |(constraints, size): (&ChunkConstraints, _)| {
            let mut windows = constraints.windows.iter();
            constraints.holes.is_empty() && windows.all(|window| window.bytes == (0..size))
        };
        let sizes = self.chunks.iter().map(|chunk| chunk.size);
        if *streams > 1
            || !parts.is_empty()
            || !apart.is_empty()
            || !own.iter().zip(sizes).all(is_always_whole)
        {
            return None;
        }
        let requests: Vec<_> = self.accepted_requests().collect();
        let (links, _) = Links::resolve(&self.chunks, &requests);
        let is_inside = |id| links.get(id).is_none_or(|link| link.below == 0);
        (links == self.links && self.ids().all(is_inside)).then(|| Self {
            chunks: self.chunks.clone(),
            requests,
            links,
            labels: Labels::default(),
            extra: None,
            derived: Arc::default(),
            optional_parts: Vec::new(),
            ..*self
        })
    }
}

/// Keeps the items whose index satisfies `is_kept`.
fn keep<T>(items: &mut Vec<T>, is_kept: impl Fn(usize) -> bool) {
    let mut places = 0..;
    items.retain(|_| places.next().is_some_and(&is_kept));
}
