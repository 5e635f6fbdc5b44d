//! The features that a problem may have.

use std::fmt;

use crate::problem::{ChunkId, Problem};

/// A feature of a problem that planners of unconstrained problems do not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// Several pools.
    Pools,
    /// A pool of limited size.
    Capacity,
    /// Ranges of a pool that no chunk may touch.
    Reserved,
    /// A pool that consists of buffers.
    Largest,
    /// A pool or a chunk with an alignment of its own.
    Alignments,
    /// A chunk with a fixed place.
    Pins,
    /// A chunk that needs no bytes in some steps.
    Holes,
    /// A chunk that needs only some of its bytes in some steps.
    Windows,
    /// A chunk that lies inside another one.
    Parts,
    /// Chunks that may not share bytes of a pool, even if they are never alive together.
    Apart,
    /// A chunk that begins below the one that it overwrites.
    Overlap,
    /// Several streams.
    Streams,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pools => "several pools",
            Self::Capacity => "a capacity",
            Self::Reserved => "reserved ranges",
            Self::Largest => "a largest buffer",
            Self::Alignments => "alignments of single pools and chunks",
            Self::Pins => "pins",
            Self::Holes => "holes",
            Self::Windows => "windows",
            Self::Parts => "parts",
            Self::Apart => "chunks kept apart",
            Self::Overlap => "partial overlaps",
            Self::Streams => "streams",
        })
    }
}

impl Problem {
    /// The first feature of the problem that planners of unconstrained problems do not support.
    #[must_use]
    pub fn feature(&self) -> Option<Feature> {
        self.unsupported_feature().map(|(feature, _)| feature)
    }

    /// The first feature that a problem uses, and the first chunk that has it, if it is one of chunks; `None` if the
    /// problem is unconstrained, or could be.
    pub(crate) fn unsupported_feature(&self) -> Option<(Feature, Option<ChunkId>)> {
        let constraints = self.constraints()?;
        let of_pools = constraints.pools.iter().find_map(|pool| {
            let asks = [
                (pool.capacity.is_some(), Feature::Capacity),
                (!pool.reserved.is_empty(), Feature::Reserved),
                (pool.largest.is_some(), Feature::Largest),
                (pool.alignment > self.alignment(), Feature::Alignments),
            ];
            asks.into_iter().find(|(asks, _)| *asks)
        });
        let several = [
            (constraints.pools.len() > 1, Feature::Pools),
            (constraints.streams > 1, Feature::Streams),
        ];
        let of_problem = several.into_iter().find(|(asks, _)| *asks);
        if let Some((_, feature)) = of_problem.or(of_pools) {
            return Some((feature, None));
        }
        let of_chunk = |(chunk, constraints): (ChunkId, &super::ChunkConstraints)| {
            let asks = [
                (constraints.pin.is_some(), Feature::Pins),
                (!constraints.holes.is_empty(), Feature::Holes),
                (!constraints.windows.is_empty(), Feature::Windows),
                (constraints.alignment > 1, Feature::Alignments),
            ];
            let (_, feature) = asks.into_iter().find(|(asks, _)| *asks)?;
            Some((feature, Some(chunk)))
        };
        let part = constraints.parts.first().map(|part| (Feature::Parts, Some(part.part)));
        let apart =
            constraints.apart.iter().flatten().next().map(|&chunk| (Feature::Apart, Some(chunk)));
        let is_below = |chunk: &ChunkId| self.link(*chunk).is_some_and(|link| link.below > 0);
        let below = self.ids().find(is_below).map(|chunk| (Feature::Overlap, Some(chunk)));
        let of_chunks = self.ids().zip(&constraints.own).find_map(of_chunk);
        of_chunks.or(part).or(apart).or(below)
    }
}
