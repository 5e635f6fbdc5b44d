//! A pool that first fit fills: the bytes taken in it over time, and the rules of its buffers, reserved bytes and
//! chunks kept apart.

use std::collections::BTreeMap;

use crate::{
    Bytes,
    bodies::{AllowedPool, Body, TimedBox},
    problem::{
        ChunkId, Segment,
        constraints::{Pool, PoolId},
    },
    search::{
        Occupancy,
        clashes::PairSpace,
        interval_set::IntervalSet,
        pool_instance::{OverlapFinder, PoolInstance},
        time_bucket_space::TimeBucketSpace,
    },
};

/// A pool that is being filled.
pub(super) struct PoolSpace<'a> {
    instance: &'a PoolInstance<'a>,
    pool: &'a Pool,
    taken: Taken<'a>,
    /// The end of the highest taken byte.
    top: Bytes,
    /// By group of chunks kept apart: the bytes of its chunks, extended to the ends of their cells.
    apart: Vec<IntervalSet>,
    /// By group of chunks kept apart: all of its chunks begin at multiples of this.
    cells: Vec<Bytes>,
    /// The sizes of the buffers in use, if the pool consists of buffers, and their sum.
    buffers: BTreeMap<u64, Bytes>,
    sum: Bytes,
}

/// The bytes that are taken.
enum Taken<'a> {
    /// With one stream: over each run of steps.
    Steps(Occupancy),
    /// With several streams: by the boxes that lie here.
    TimeBuckets(TimeBucketSpace<'a>),
    /// With several streams: by the bodies that lie here.
    Pairs(PairSpace<'a>),
}

/// The members of a body that are kept apart from other chunks, each with its group.
type Apart<'p> = Vec<(usize, &'p (ChunkId, Bytes))>;

impl<'a> PoolSpace<'a> {
    pub(super) fn new(instance: &'a PoolInstance<'_>, id: PoolId, pool: &'a Pool) -> Self {
        let taken = match &instance.overlaps {
            OverlapFinder::Steps => Taken::Steps(in_steps(instance, pool)),
            OverlapFinder::TimeBuckets(buckets) => {
                Taken::TimeBuckets(TimeBucketSpace::new(buckets))
            }
            OverlapFinder::Pairs(clashes) => Taken::Pairs(PairSpace::new(clashes)),
            OverlapFinder::Unknown => unreachable!("nothing is placed one by one"),
        };
        let apart = vec![IntervalSet::default(); instance.apart().len()];
        let cells = cells(instance, id);
        let (top, buffers, sum) = (0, BTreeMap::new(), 0);
        Self { instance, pool, taken, top, apart, cells, buffers, sum }
    }

    /// An offset at which a body lies above all that may be alive together with it.
    pub(super) fn top_over(&self, at: usize) -> Bytes {
        let boxes = &self.instance.boxes[at];
        match &self.taken {
            Taken::Steps(taken) => taken.top_over(&segments(boxes)),
            Taken::TimeBuckets(taken) => taken.top_over(at, boxes),
            Taken::Pairs(taken) => taken.top_over(at),
        }
    }

    /// The lowest offset from `from` on at which a body may lie; `None` if it does not fit.
    pub(super) fn lowest(&mut self, at: usize, allowed: AllowedPool, from: Bytes) -> Option<Bytes> {
        let body = &self.instance.bodies[at];
        let mut offset = allowed.round_up(from)?;
        loop {
            let found = self.clear(at, allowed, offset)?;
            let end = found.checked_add(body.extent)?;
            let lifted = match self.pool.largest {
                // A body that would cross the end of a buffer moves up to the next one.
                Some(largest) if found / largest != (end - 1) / largest => {
                    allowed.round_up((end - 1) / largest * largest)?
                }
                None if self.pool.capacity.is_some_and(|capacity| end > capacity) => return None,
                _ => found,
            };
            if lifted == found {
                return self.has_capacity(found, body.extent).then_some(found);
            }
            offset = lifted;
        }
    }

    /// Returns whether the buffers stay within the capacity if these bytes are added.
    pub(super) fn has_capacity(&self, offset: Bytes, extent: Bytes) -> bool {
        let (Some(largest), Some(capacity)) = (self.pool.largest, self.pool.capacity) else {
            return true;
        };
        let size = self.buffers.get(&(offset / largest)).copied().unwrap_or(0);
        let grown = self.size_of_buffer(offset, extent, largest).max(size);
        (self.sum - size).saturating_add(grown) <= capacity
    }

    /// The size that a buffer has if these bytes are its highest.
    fn size_of_buffer(&self, offset: Bytes, extent: Bytes, largest: Bytes) -> Bytes {
        let top = offset % largest + extent;
        self.pool.aligned(self.instance.problem, top).unwrap_or(Bytes::MAX).min(largest)
    }

    /// The lowest allowed offset from `offset` on at which a body clashes with nothing.
    fn clear(&mut self, at: usize, allowed: AllowedPool, mut offset: Bytes) -> Option<Bytes> {
        let (body, boxes) = (&self.instance.bodies[at], &self.instance.boxes[at]);
        // The whole body must end within 64 bits.
        let extent = body.extent;
        let round_up =
            |offset| allowed.round_up(offset).filter(|at| at.checked_add(extent).is_some());
        offset = round_up(offset)?;
        let apart = self.groups(body);
        loop {
            let mut found = match &mut self.taken {
                _ if offset >= self.top => offset,
                Taken::Steps(taken) => taken.lowest_from(&segments(boxes), offset, round_up)?,
                Taken::TimeBuckets(taken) => taken.lowest_from(at, boxes, offset, round_up)?,
                Taken::Pairs(taken) => taken.lowest_from(at, offset, round_up)?,
            };
            offset = found;
            // Neither reserved bytes nor a chunk that is kept apart may lie in the range of a chunk, not even
            // in its holes.
            for &(chunk, at) in &body.members {
                let size = self.instance.problem.padded_size(chunk);
                let ranges = self.pool.reserved.iter().map(|range| (range.start, range.end));
                for (low, high) in ranges {
                    if found + at < high && low < found + at + size {
                        found = round_up(high - at)?;
                    }
                }
            }
            for &(group, &(chunk, at)) in &apart {
                let size = self.instance.problem.padded_size(chunk);
                while let Some(high) = self.apart[group].end_of(found + at, found + at + size) {
                    found = round_up(high - at)?;
                }
            }
            if found == offset {
                return Some(found);
            }
            offset = found;
        }
    }

    fn groups<'b>(&self, body: &'b Body) -> Apart<'b> {
        let inside = |member: &'b (ChunkId, Bytes)| {
            let groups = self.instance.groups.groups(member.0).iter();
            groups.map(move |&group| (group as usize, member))
        };
        body.members.iter().flat_map(inside).collect()
    }

    pub(super) fn take(&mut self, at: usize, offset: Bytes) {
        let (body, boxes) = (&self.instance.bodies[at], &self.instance.boxes[at]);
        self.top = self.top.max(offset + body.extent);
        match &mut self.taken {
            Taken::Steps(taken) => taken.take(&segments(boxes), offset),
            Taken::TimeBuckets(taken) => taken.take(at, boxes, offset),
            Taken::Pairs(taken) => taken.take(at, offset),
        }
        for (group, &(chunk, at)) in self.groups(body) {
            let low = offset + at;
            let high = low + self.instance.problem.padded_size(chunk);
            // No other chunk of the group can begin in the same cell; extended to cells, more runs merge.
            let cell = self.cells[group];
            self.apart[group].add(low, high.checked_next_multiple_of(cell).unwrap_or(high));
        }
        if let Some(largest) = self.pool.largest {
            let grown = self.size_of_buffer(offset, body.extent, largest);
            let size = self.buffers.entry(offset / largest).or_default();
            self.sum = (self.sum - *size).saturating_add(grown.max(*size));
            *size = grown.max(*size);
        }
    }
}

/// By group of chunks kept apart: the largest power of two such that all its chunks, except those with a fixed place,
/// begin at multiples of it.
fn cells(instance: &PoolInstance<'_>, pool: PoolId) -> Vec<Bytes> {
    let mut cells: Vec<Bytes> = vec![1 << 63; instance.apart().len()];
    if cells.is_empty() {
        return cells;
    }
    for body in instance.bodies.iter().filter(|body| body.fixed.is_none()) {
        let Some(allowed) = body.pools.iter().find(|allowed| allowed.pool == pool) else {
            continue;
        };
        for (chunk, at) in &body.members {
            let begin = allowed.residue.wrapping_add(*at);
            let cell = match begin {
                0 => allowed.modulus,
                begin => allowed.modulus.min(1 << begin.trailing_zeros()),
            };
            for &group in instance.groups.groups(*chunk) {
                cells[group as usize] = cells[group as usize].min(cell);
            }
        }
    }
    cells
}

/// With one stream: the reserved bytes of a pool, taken in all steps.
fn in_steps(instance: &PoolInstance<'_>, pool: &Pool) -> Occupancy {
    let begins = instance.boxes.iter().flatten().map(|b| b.begin[0]);
    let mut taken = Occupancy::new(begins.chain([0]));
    let end = instance.problem.steps().max(1);
    for range in &pool.reserved {
        let (low, high) = (range.start, range.end);
        taken.take(&[Segment { chunk: ChunkId(0), begin: 0, end, low, high }], 0);
    }
    taken
}

fn segments(boxes: &[TimedBox]) -> Vec<Segment> {
    let segment = |b: &TimedBox| Segment {
        chunk: ChunkId(0),
        begin: b.begin[0],
        end: b.end[0],
        low: b.bytes.start,
        high: b.bytes.end,
    };
    boxes.iter().map(segment).collect()
}
