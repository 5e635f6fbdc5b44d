//! Bins: pools, and the buffers of pools that consist of them.

use crate::{
    Bytes,
    bodies::Body,
    problem::constraints::{Place, Pool, PoolId},
    search::pool_instance::PoolInstance,
    sets::distinct,
};

/// A run of addresses that bodies lie in.
pub struct Bin {
    /// The index of the pool.
    pub pool: usize,
    /// The address of its first byte in the pool.
    pub base: Bytes,
    /// The number of its bytes, if it is limited.
    pub room: Option<Bytes>,
    /// The size of the bin is a multiple of this, or all of its room.
    pub alignment: Bytes,
    /// The ranges that no chunk may touch.
    pub reserved: Vec<std::ops::Range<Bytes>>,
}

impl Bin {
    /// An upper limit of the number of bins.
    pub fn count(instance: &PoolInstance<'_>) -> usize {
        let rows = instance.pools.iter().filter(|pool| pool.largest.is_some()).count();
        instance.pools.len() + rows * instance.bodies.len()
    }

    /// All bins, by pool. A pool of buffers has as many bins as there are bodies that may lie in it, and the buffers
    /// that bodies are pinned in.
    pub fn all(instance: &PoolInstance<'_>) -> Vec<Self> {
        let mut bins = Vec::new();
        for (pool, entry) in instance.pools.iter().enumerate() {
            let Pool { capacity, largest, .. } = *entry;
            let alignment = entry.root_alignment(instance.problem.alignment());
            let Some(largest) = largest else {
                let reserved = entry.reserved.clone();
                bins.push(Self { pool, base: 0, room: capacity, alignment, reserved });
                continue;
            };
            let allows = |body: &&Body| body.pools.iter().any(|at| at.pool.index() == pool);
            let count = instance.bodies.iter().filter(allows).count() as u64;
            let pinned = instance.bodies.iter().filter_map(|body| body.fixed);
            let pinned = pinned.filter(|place| place.pool.index() == pool);
            let buffers = distinct(pinned.map(|place| place.offset / largest).chain(0..count));
            bins.extend(buffers.into_iter().map(|buffer| Self {
                pool,
                base: buffer.saturating_mul(largest),
                room: Some(largest),
                alignment,
                reserved: Vec::new(),
            }));
        }
        bins
    }

    /// The place at an offset from the base.
    pub fn place(&self, offset: Bytes) -> Place {
        Place::new(PoolId::from_index(self.pool), self.base + offset)
    }

    /// The size of the bin if its highest byte ends here.
    pub fn size(&self, top: Bytes) -> Bytes {
        let aligned = top.checked_next_multiple_of(self.alignment).unwrap_or(Bytes::MAX);
        self.room.map_or(aligned, |room| aligned.min(room.max(top)))
    }

    /// The largest size below this one; `None` below 0.
    pub fn below(&self, size: Bytes) -> Option<Bytes> {
        let less = size.checked_sub(1)?;
        Some(less - less % self.alignment)
    }
}
