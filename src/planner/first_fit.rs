//! First fit: bodies in several orders, each at the lowest allowed offset in the first pool that
//! holds it.
//!
//! **Idea.** Bodies whose place is fixed come first. The others follow in an order, by size, area,
//! life and so on; each takes the lowest offset, in the first of its pools with room, that its
//! alignments, the capacity and the bodies placed before it allow. All orders are tried, and the best
//! layout is kept: the least traffic, then the smallest pools, the last pool first.
//!
//! **Cost.** O(n log n) in common cases. With several streams, each body passes the boxes that lie in its spans of
//! time, which are all if they live long.
//!
//! **When.** For problems with pools, pins, holes, parts or streams; it supports all of them.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    Bytes, PlanError, Problem, Step,
    planner::{
        Layout,
        clashes::InPairs,
        in_clocks::InClocks,
        in_spans::InSpans,
        search::{Limits, Monitor, Observer, Occupancy},
        statement::{Statement, Times},
    },
    problem::{
        ChunkId, Segment,
        demands::{AllowedPool, Body, Place, Pool, PoolId, TimedBox},
    },
};

/// The figures of a body that orders sort by.
struct Figures {
    /// The bytes from the lowest to the highest.
    extent: u128,
    /// The steps from the first to the last, added up over all streams.
    life: u128,
    /// Bytes times steps of all boxes.
    area: u128,
    /// The first step.
    begin: u128,
    /// The cost of the traffic in the last pool, less that in the first.
    saving: u128,
}

/// The key of an order: the larger comes first, field by field.
type Key = fn(&Figures) -> [u128; 2];

const KEYS: [Key; 6] = [
    |body| [body.extent, body.life],
    |body| [body.area, body.extent],
    |body| [body.life, body.extent],
    |body| [u128::MAX - body.begin, body.extent],
    |body| [body.begin, body.extent],
    |body| [body.saving.saturating_mul(4096) / body.area.max(1), body.extent],
];

/// A packing by first fit.
#[derive(Clone)]
pub(super) struct Packed {
    /// The bodies, in the order in which they were placed; those that are fixed come first.
    pub(super) order: Vec<usize>,
    /// By body.
    pub(super) places: Vec<Place>,
    pub(super) objective: Vec<u128>,
}

/// Plans a problem.
///
/// # Errors
///
/// If in every order some body finds no place; a plain problem always has one.
pub fn layout(problem: &Problem) -> Result<Layout, PlanError> {
    let statement = Statement::of(problem);
    let mut monitor = Monitor::new(&Limits::default(), Observer::default());
    let packed = packed(&statement, &mut monitor)?;
    Ok(Layout::from_bodies(problem, &statement.bodies, &packed.places))
}

/// The best packing of all orders, or of those for which there is time. If there is none even for the first, the rest
/// of its bodies are put on top of the others.
pub(super) fn packed(
    statement: &Statement<'_>,
    monitor: &mut Monitor<'_>,
) -> Result<Packed, PlanError> {
    let Statement { problem, bodies, boxes, .. } = statement;
    let figures: Vec<Figures> =
        bodies.iter().zip(boxes).map(|(body, boxes)| figures(statement, body, boxes)).collect();
    let mut best: Option<Packed> = None;
    let mut failure = None;
    for key in KEYS {
        let mut order: Vec<usize> = (0..bodies.len()).collect();
        order.sort_by_key(|&at| (Reverse(bodies[at].fixed.is_some()), Reverse(key(&figures[at]))));
        let stop = &mut || if best.is_some() { monitor.must_stop() } else { monitor.is_overdue() };
        let late = if best.is_some() { Late::Stop } else { Late::OnTop };
        match pack(statement, &order, late, stop) {
            Ok(places) => {
                let objective = Layout::from_bodies(problem, bodies, &places).objective(problem);
                if best.as_ref().is_none_or(|best| objective < best.objective) {
                    best = Some(Packed { order, places, objective });
                }
            }
            Err(Unpacked::NoPlace(body)) => failure = failure.or(Some(body)),
            Err(Unpacked::Stopped) => break,
        }
    }
    best.ok_or_else(|| {
        let body = &bodies[failure.unwrap_or(0)];
        let chunk = problem.labels().name(body.members[0].0);
        PlanError::NoPlace { chunk, size: body.extent }
    })
}

/// Packs in one order; `None` if some body finds no place, or the search must stop.
pub(super) fn pack_in(
    statement: &Statement<'_>,
    order: Vec<usize>,
    monitor: &mut Monitor<'_>,
) -> Option<Packed> {
    let places = pack(statement, &order, Late::Stop, &mut || monitor.must_stop()).ok()?;
    let layout = Layout::from_bodies(statement.problem, &statement.bodies, &places);
    Some(Packed { order, objective: layout.objective(statement.problem), places })
}

fn figures(statement: &Statement<'_>, body: &Body, boxes: &[TimedBox]) -> Figures {
    let sum = |clock: &[Step]| clock.iter().map(|&step| u128::from(step)).sum::<u128>();
    let begin = boxes.iter().map(|b| sum(&b.begin)).min().unwrap_or(0);
    let end = boxes.iter().map(|b| sum(&b.end)).max().unwrap_or(0);
    let area = |b: &TimedBox| {
        (sum(&b.end) - sum(&b.begin)).saturating_mul((b.bytes.end - b.bytes.start).into())
    };
    let cost =
        |pool: Option<&AllowedPool>| pool.map_or(0, |allowed| statement.cost(body, allowed.pool));
    let (first, last) = (cost(body.pools.first()), cost(body.pools.last()));
    Figures {
        extent: body.extent.into(),
        life: end - begin,
        area: boxes.iter().map(area).fold(0, u128::saturating_add),
        begin,
        saving: last.saturating_sub(first),
    }
}

/// The boxes that are placed between two looks at the time.
const PAUSE: usize = 64;

/// The way in which a packing ends for which there is no time.
#[derive(Clone, Copy, PartialEq)]
enum Late {
    Stop,
    /// All other bodies are put on top of those that are placed, where they fit.
    OnTop,
}

/// The reason for which bodies are not packed.
enum Unpacked {
    /// This body finds no place.
    NoPlace(usize),
    Stopped,
}

/// Places all bodies in an order. `stop` returns whether it is late.
fn pack(
    statement: &Statement<'_>,
    order: &[usize],
    late: Late,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<Place>, Unpacked> {
    let Statement { pools, bodies, .. } = statement;
    let ids = (0..).map(PoolId);
    let mut rooms: Vec<Room<'_>> =
        ids.zip(pools.iter()).map(|(id, pool)| Room::new(statement, id, pool)).collect();
    let mut places = vec![Place::default(); bodies.len()];
    let (mut boxes, mut is_late) = (PAUSE, false);
    for &at in order {
        let body = &bodies[at];
        boxes += statement.boxes[at].len();
        if boxes >= PAUSE && !is_late {
            (boxes, is_late) = (0, stop());
        }
        if is_late && late == Late::Stop {
            return Err(Unpacked::Stopped);
        }
        let place = body.fixed.or_else(|| {
            body.pools.iter().find_map(|allowed| {
                let room = &mut rooms[allowed.pool.index()];
                let on_top = is_late.then_some(room.top);
                let offset = on_top.and_then(|top| room.lowest(at, *allowed, top));
                let offset = offset.or_else(|| room.lowest(at, *allowed, 0))?;
                Some(Place::new(allowed.pool, offset))
            })
        });
        let place = place.ok_or(Unpacked::NoPlace(at))?;
        // A pinned buffer counts towards the capacity of its pool as well.
        if !rooms[place.pool.index()].has_capacity(place.offset, body.extent) {
            return Err(Unpacked::NoPlace(at));
        }
        rooms[place.pool.index()].take(at, place.offset);
        places[at] = place;
    }
    Ok(places)
}

/// A pool that is being filled.
struct Room<'a> {
    statement: &'a Statement<'a>,
    pool: &'a Pool,
    taken: Taken<'a>,
    /// Nothing that is taken lies above.
    top: Bytes,
    /// By group of chunks kept apart: the bytes of its chunks, and what is left of their cells.
    apart: Vec<Runs>,
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
    Spans(InSpans<'a>),
    Clocks(InClocks<'a>),
    /// With several streams: by the bodies that lie here.
    Pairs(InPairs<'a>),
}

/// Bytes as runs: by first byte, the byte after the last. No two runs touch.
#[derive(Clone, Default)]
struct Runs(BTreeMap<Bytes, Bytes>);

impl Runs {
    fn add(&mut self, low: Bytes, high: Bytes) {
        let (mut low, mut high) = (low, high);
        while let Some((&start, &end)) = self.0.range(..=high).next_back()
            && end >= low
        {
            self.0.remove(&start);
            (low, high) = (low.min(start), high.max(end));
        }
        self.0.insert(low, high);
    }

    /// The end of a run that shares bytes with these.
    fn end_of(&self, low: Bytes, high: Bytes) -> Option<Bytes> {
        let (_, &end) = self.0.range(..high).next_back()?;
        (end > low).then_some(end)
    }
}

/// The members of a body that are kept apart from other chunks, each with its group.
type Apart<'p> = Vec<(usize, &'p (ChunkId, Bytes))>;

impl<'a> Room<'a> {
    fn new(statement: &'a Statement<'_>, id: PoolId, pool: &'a Pool) -> Self {
        let taken = match &statement.times {
            Times::Steps => Taken::Steps(in_steps(statement, pool)),
            Times::Spans(spans) => Taken::Spans(InSpans::new(spans)),
            Times::Places(places) => Taken::Clocks(InClocks::new(places, statement.streams())),
            Times::Pairs(clashes) => Taken::Pairs(InPairs::new(clashes)),
        };
        let apart = vec![Runs::default(); statement.apart().len()];
        let cells = cells(statement, id);
        Self { statement, pool, taken, top: 0, apart, cells, buffers: BTreeMap::new(), sum: 0 }
    }

    /// The lowest offset from `from` on at which a body may lie; `None` if it does not fit.
    fn lowest(&mut self, at: usize, allowed: AllowedPool, from: Bytes) -> Option<Bytes> {
        let body = &self.statement.bodies[at];
        let mut offset = allowed.lift(from)?;
        loop {
            let found = self.clear(at, allowed, offset)?;
            let end = found.checked_add(body.extent)?;
            let lifted = match self.pool.largest {
                // A body that would cross the end of a buffer moves up to the next one.
                Some(largest) if found / largest != (end - 1) / largest => {
                    allowed.lift((end - 1) / largest * largest)?
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
    fn has_capacity(&self, offset: Bytes, extent: Bytes) -> bool {
        let (Some(largest), Some(capacity)) = (self.pool.largest, self.pool.capacity) else {
            return true;
        };
        let size = self.buffers.get(&(offset / largest)).copied().unwrap_or(0);
        let grown = self.size_of_buffer(offset, extent, largest).max(size);
        (self.sum - size).saturating_add(grown) <= capacity
    }

    /// The size of the buffer around some bytes, if they are its highest.
    fn size_of_buffer(&self, offset: Bytes, extent: Bytes, largest: Bytes) -> Bytes {
        let top = offset % largest + extent;
        self.pool.aligned(self.statement.problem, top).unwrap_or(Bytes::MAX).min(largest)
    }

    /// The lowest allowed offset from `offset` on at which a body clashes with nothing.
    fn clear(&mut self, at: usize, allowed: AllowedPool, mut offset: Bytes) -> Option<Bytes> {
        let (body, boxes) = (&self.statement.bodies[at], &self.statement.boxes[at]);
        // The whole body must end within 64 bits.
        let extent = body.extent;
        let lift = |offset| allowed.lift(offset).filter(|at| at.checked_add(extent).is_some());
        offset = lift(offset)?;
        let apart = self.groups(body);
        loop {
            let mut found = match &mut self.taken {
                _ if offset >= self.top => offset,
                Taken::Steps(taken) => taken.lowest_from(&segments(boxes), offset, lift)?,
                Taken::Spans(taken) => taken.lowest_from(at, boxes, offset, lift)?,
                Taken::Clocks(taken) => taken.lowest_from(boxes, offset, lift)?,
                Taken::Pairs(taken) => taken.lowest_from(at, offset, lift)?,
            };
            offset = found;
            // Neither reserved bytes nor a chunk that is kept apart may lie in the range of a chunk, not even
            // in its holes.
            for &(chunk, at) in &body.members {
                let size = self.statement.problem.padded_size(chunk);
                let ranges = self.pool.reserved.iter().map(|range| (range.start, range.end));
                for (low, high) in ranges {
                    if found + at < high && low < found + at + size {
                        found = lift(high - at)?;
                    }
                }
            }
            for &(group, &(chunk, at)) in &apart {
                let size = self.statement.problem.padded_size(chunk);
                while let Some(high) = self.apart[group].end_of(found + at, found + at + size) {
                    found = lift(high - at)?;
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
            let groups = self.statement.groups.get(&member.0).into_iter().flatten();
            groups.map(move |&group| (group, member))
        };
        body.members.iter().flat_map(inside).collect()
    }

    fn take(&mut self, at: usize, offset: Bytes) {
        let (body, boxes) = (&self.statement.bodies[at], &self.statement.boxes[at]);
        self.top = self.top.max(offset + body.extent);
        match &mut self.taken {
            Taken::Steps(taken) => taken.take(&segments(boxes), offset),
            Taken::Spans(taken) => taken.take(at, boxes, offset),
            Taken::Clocks(taken) => taken.take(at, boxes, offset),
            Taken::Pairs(taken) => taken.take(at, offset),
        }
        for (group, &(chunk, at)) in self.groups(body) {
            let low = offset + at;
            let high = low + self.statement.problem.padded_size(chunk);
            // No chunk of the group begins in what is left of a cell, and runs that touch become one.
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

/// By group of chunks kept apart: the largest power of two of which all its chunks begin at a multiple, except
/// those with a fixed place.
fn cells(statement: &Statement<'_>, pool: PoolId) -> Vec<Bytes> {
    let mut cells: Vec<Bytes> = vec![1 << 63; statement.apart().len()];
    if cells.is_empty() {
        return cells;
    }
    for body in statement.bodies.iter().filter(|body| body.fixed.is_none()) {
        let Some(allowed) = body.pools.iter().find(|allowed| allowed.pool == pool) else {
            continue;
        };
        for (chunk, at) in &body.members {
            let begin = allowed.rest.wrapping_add(*at);
            let cell = match begin {
                0 => allowed.modulus,
                begin => allowed.modulus.min(1 << begin.trailing_zeros()),
            };
            for &group in statement.groups.get(chunk).into_iter().flatten() {
                cells[group] = cells[group].min(cell);
            }
        }
    }
    cells
}

/// With one stream: the reserved bytes of a pool, taken in all steps.
fn in_steps(statement: &Statement<'_>, pool: &Pool) -> Occupancy {
    let begins = statement.boxes.iter().flatten().map(|b| b.begin[0]);
    let mut taken = Occupancy::new(begins.chain([0]));
    let end = statement.problem.steps().max(1);
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

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        sync::atomic::{AtomicBool, Ordering},
    };

    use rstest::rstest;

    use super::*;

    #[test]
    fn runs_are_the_bytes_that_were_added() {
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let (mut runs, mut bytes) = (Runs::default(), BTreeSet::new());
            for _ in 0..random.int_in_range(1..=8)? {
                let low = random.int_in_range(0..=20)?;
                let high = low + random.int_in_range(1..=5)?;
                let shared = (low..high).rev().find(|byte| bytes.contains(byte));
                let end = shared.map(|byte| (byte..99).find(|byte| !bytes.contains(byte)).unwrap());
                assert_eq!(runs.end_of(low, high), end, "{:?}", runs.0);
                runs.add(low, high);
                bytes.extend(low..high);
            }
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(100);
    }

    /// A search that is cancelled at once puts each body on top of those before it, as long as the first pool holds it.
    #[test]
    fn bodies_for_which_there_is_no_time_are_put_on_top() {
        let mut problem = Problem::builder();
        problem.streams(2);
        let small = problem.pool(Pool::new("small").capacity(30));
        let large = problem.pool(Pool::new("large"));
        for at in 0..5 {
            let chunk = problem.chunk(0..1, 10);
            problem.clocks(chunk, [at, at].into(), [at + 1, at + 1].into(), 0);
        }
        // It is as large as the others together, and comes first.
        let chunk = problem.chunk(0..1, 50);
        problem.clocks(chunk, [0, 0].into(), [9, 9].into(), 0);
        let problem = problem.build().unwrap();
        let statement = Statement::of(&problem);
        let cancel = AtomicBool::new(false);
        let places = || {
            let observer = Observer::default().cancel(&cancel);
            packed(&statement, &mut Monitor::new(&Limits::default(), observer)).unwrap().places
        };
        assert_eq!(places()[..5], [Place::new(small, 0); 5]);
        cancel.store(true, Ordering::Relaxed);
        let places = places();
        assert_eq!(places[..3], [0, 10, 20].map(|at| Place::new(small, at)));
        // The small pool has no room above these, but below.
        assert_eq!(places[3..5], [Place::new(small, 0); 2]);
        assert_eq!(places[5], Place::new(large, 0));
    }

    /// Two streams, and a pool of which only the last 100 bytes of 64 bits are free.
    #[rstest]
    #[case::one_fits(&[100], 0, true)]
    #[case::one_is_too_large(&[101], 0, false)]
    #[case::two_fit(&[50, 50], 0, true)]
    #[case::two_are_too_large(&[50, 51], 0, false)]
    #[case::one_after_the_other(&[100, 100], 2, true)]
    fn bytes_near_the_end_of_64_bits_are_found_on_streams(
        #[case] sizes: &[Bytes],
        #[case] later: Step,
        #[case] fits: bool,
    ) {
        let mut problem = Problem::builder();
        problem.streams(2);
        problem.pool(Pool::new("last").reserved(0..Bytes::MAX - 100));
        for (at, &size) in (0..).zip(sizes) {
            let chunk = problem.chunk(0..1, size);
            let begin = at * later;
            problem.clocks(chunk, [begin, begin].into(), [begin + 1, begin + 2].into(), 0);
        }
        assert_eq!(layout(&problem.build().unwrap()).is_ok(), fits);
    }

    /// A part with a high alignment lifts a whole, which then ends after 64 bits. Another part, which lives on
    /// when the whole is over, is compared with other chunks by itself.
    #[test]
    fn a_whole_that_ends_after_64_bits_has_no_place_on_streams() {
        let mut problem = Problem::builder();
        problem.streams(2);
        let whole = problem.chunk(0..1, (1 << 63) + (1 << 62) + 10);
        let (part, last) = (problem.chunk(0..1, 1), problem.chunk(0..1, 1));
        let other = problem.chunk(0..1, 1);
        for (chunk, begin, end) in [(whole, 0, 1), (part, 0, 1), (last, 0, 3), (other, 2, 3)] {
            problem.clocks(chunk, [begin, begin].into(), [end, end].into(), 0);
        }
        problem.pin(other, PoolId(0), 0);
        problem.align(part, 1 << 63).part(part, whole, 1 << 62);
        problem.part(last, whole, (1 << 63) + (1 << 62) + 5);
        let layout = problem.build().map(|problem| layout(&problem).is_err());
        assert_eq!(layout, Ok(true));
    }
}
