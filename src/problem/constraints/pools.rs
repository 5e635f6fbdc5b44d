//! Pools: the memories that chunks may lie in, and places in them.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    Bytes,
    problem::{ChunkId, Problem},
};

/// A memory: a run of addresses from 0. The pools of a problem are listed in order of preference,
/// the fastest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pool {
    /// Its name; no two pools have the same.
    pub name: Box<str>,
    /// The number of bytes, if it is limited.
    pub capacity: Option<Bytes>,
    /// The alignment of roots in this pool, in bytes. The problem's alignment applies instead if it is larger.
    pub alignment: Bytes,
    /// The cost of a byte of traffic, in any unit; 0 by default. Planners prefer plans with less total cost.
    pub cost: u64,
    /// The address of its first byte, in bytes; planning ignores it.
    pub base: Bytes,
    /// Ranges that no chunk may touch, ascending.
    pub reserved: Vec<Range<Bytes>>,
    /// The size in bytes of the buffers that the pool consists of, if no chunk may cross the boundary between two
    /// buffers; `None` if the pool is one buffer.
    pub largest: Option<Bytes>,
}

impl Pool {
    /// Creates a pool without limits.
    #[must_use]
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self {
            name: name.into(),
            capacity: None,
            alignment: 1,
            cost: 0,
            base: 0,
            reserved: Vec::new(),
            largest: None,
        }
    }

    /// Limits the pool to this many bytes.
    #[must_use]
    pub fn capacity(mut self, bytes: Bytes) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Aligns roots in this pool to a power of two in bytes.
    #[must_use]
    pub fn alignment(mut self, bytes: Bytes) -> Self {
        self.alignment = bytes;
        self
    }

    /// Sets the cost of a byte of traffic.
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Sets the address of the first byte, which planning ignores.
    #[must_use]
    pub fn base(mut self, address: Bytes) -> Self {
        self.base = address;
        self
    }

    /// Keeps chunks out of a range of bytes.
    #[must_use]
    pub fn reserved(mut self, bytes: Range<Bytes>) -> Self {
        self.reserved.push(bytes);
        self.reserved.sort_by_key(|range| (range.start, range.end));
        self
    }

    /// Divides the pool into buffers of this size, whose boundaries no chunk may cross.
    #[must_use]
    pub fn largest(mut self, bytes: Bytes) -> Self {
        self.largest = Some(bytes);
        self
    }
}

/// The index of a pool in its problem, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u16);

impl PoolId {
    /// The index of the pool in tables with an entry per pool.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id of the pool at an index of such a table; no problem has more than 2^16 pools.
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u16::try_from(index).unwrap_or(u16::MAX))
    }
}

/// A place for a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) pool: PoolId,
    /// Bytes from the start of the pool.
    pub(crate) offset: Bytes,
}

impl Place {
    pub(crate) const fn new(pool: PoolId, offset: Bytes) -> Self {
        Self { pool, offset }
    }
}

/// The bytes of a chunk in its pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedBytes {
    pub(crate) pool: PoolId,
    pub(crate) low: Bytes,
    /// The byte after the last, padding included.
    pub(crate) high: Bytes,
}

impl Problem {
    /// The size of each pool if these bytes are used: the end of the highest one, rounded up to the
    /// alignment, but never above the capacity. The size of a pool of buffers is the sum of the sizes
    /// of its buffers.
    pub(crate) fn pool_sizes(&self, used: impl Iterator<Item = UsedBytes>) -> Vec<Bytes> {
        let mut tops: Vec<BTreeMap<u64, Bytes>> = vec![BTreeMap::new(); self.pools().len()];
        for UsedBytes { pool, low, high } in used {
            let Some(Pool { largest, .. }) = self.pools().get(pool.index()) else { continue };
            let buffer = largest.map_or(0, |largest| low / largest);
            let base = buffer * largest.unwrap_or(0);
            let top = tops[pool.index()].entry(buffer).or_default();
            *top = (high - base).max(*top);
        }
        let size = |(pool, tops): (&Pool, &BTreeMap<u64, Bytes>)| {
            let limit = pool.largest.or(pool.capacity).unwrap_or(Bytes::MAX);
            let sizes = tops.values().map(|&top| match pool.aligned(self, top) {
                Some(size) => size.min(limit),
                None => limit,
            });
            sizes.fold(0, Bytes::saturating_add)
        };
        self.pools().iter().zip(&tops).map(size).collect()
    }

    /// The cost of the traffic of all chunks, each in its pool.
    pub(crate) fn cost_of(&self, pool: impl Fn(ChunkId) -> PoolId) -> u128 {
        let used = self.ids().filter(|&chunk| self.chunk(chunk).size > 0);
        let cost = |chunk| self.pools().get(pool(chunk).index()).map_or(0, |pool| pool.cost);
        let bytes = |chunk| u128::from(cost(chunk)) * u128::from(self.traffic(chunk));
        used.map(bytes).fold(0, u128::saturating_add)
    }
}

impl Pool {
    /// The alignment of roots in this pool in bytes: its own or the problem's, whichever is larger.
    pub(crate) fn root_alignment(&self, alignment: Bytes) -> Bytes {
        self.alignment.max(alignment)
    }

    /// Rounds up to that alignment; `None` if the result exceeds 64 bits.
    pub(crate) fn aligned(&self, problem: &Problem, bytes: Bytes) -> Option<Bytes> {
        bytes.checked_next_multiple_of(self.root_alignment(problem.alignment()))
    }
}
