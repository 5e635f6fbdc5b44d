//! A problem without its pools, pins and windows.

use std::sync::Arc;

use crate::problem::{
    Labels, Links, Problem,
    constraints::{ChunkConstraints, Constraints},
};

impl Problem {
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
