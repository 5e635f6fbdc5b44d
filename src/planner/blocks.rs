//! Blocks: the fastest packing on several streams, or around pins and reserved bytes, that shares memory, for where
//! there is no time for a better one.
//!
//! **Idea.** As with [size classes](super::size_classes) for plain problems, the program is replayed with an allocator
//! that rounds every size up to one of four classes per power of two. All blocks lie above pins and reserved bytes, in a
//! pool without a capacity. A body takes a free block of its class whose last body is over, on every stream, before it
//! begins. As many free blocks of other streams may not be over yet, each stream has its own, and few of them are looked
//! at. If none is over, a new block is made at the top.
//!
//! **Cost.** O(n) after sorting by clock, for each stream. The pool can be several times as large.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    Bytes, Limits, Observer, Problem, Step,
    planner::{Layout, search::Monitor},
    problem::demands::{
        AllowedPool, Body, Chains, Lives, Place, Pool, PoolId, TimedBox, TimedBoxes, by_sum,
        chains_in, is_over, wide_sum,
    },
};

/// Packing more bodies in blocks takes as long as the grace of a first layout.
const MANY: u32 = 250_000;

/// The time that packing in blocks, and all that follows, takes for each body.
const TIME: Duration = Duration::from_nanos(400);

/// All that is better than blocks takes at least this long for each body.
const LEAST_TIME: Duration = Duration::from_nanos(500);

/// There is always time to place no more bodies than these one by one, which mostly takes fewer bytes, and less traffic
/// in several pools. On several streams, without all of that, it depends on how they wait.
const FEW: usize = if cfg!(test) { 8 } else { 20_000 };

/// The blocks of a class and a stream that are looked at: those that became free last, and first.
const NEWEST: usize = 4;
const OLDEST: usize = 4;

/// A pool without limits that all bodies allow, in which they can be packed in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    pub(super) pool: PoolId,
    /// No reserved byte lies above.
    pub(super) floor: Bytes,
}

impl Ground {
    /// The first such pool; `None` with [few](FEW) bodies.
    pub(super) fn of(problem: &Problem) -> Option<Self> {
        let demands = problem.demands()?;
        let is_bare = demands.streams > 1
            && matches!(&*demands.pools, [pool] if pool.reserved.is_empty())
            && problem.bodies().iter().all(|body| body.fixed.is_none());
        let is_few = !is_bare && problem.bodies().len() <= FEW;
        // Buffers have a size each, and chunks kept apart have it even where they need no bytes.
        let has_buffers = demands.pools.iter().any(|pool| pool.largest.is_some());
        if is_few || has_buffers || !demands.apart.is_empty() {
            return None;
        }
        let is_free = |pool: &Pool| pool.capacity.is_none();
        let ids = (0..).map(PoolId);
        ids.zip(&demands.pools).filter(|(_, pool)| is_free(pool)).find_map(|(id, pool)| {
            let floor = pool.reserved.iter().map(|range| range.end).max().unwrap_or(0);
            let ground = Self { pool: id, floor };
            // Rounded up, sizes near the limits of 64 bits could exceed them.
            let room = |body: &Body| {
                if let Some(place) = body.fixed {
                    return Some(u128::from(place.offset) + u128::from(body.extent));
                }
                let modulus = ground.allowed(body)?.modulus;
                Some(2 * (u128::from(body.extent) + u128::from(modulus)))
            };
            let rooms: u128 = problem.bodies().iter().map(room).sum::<Option<_>>()?;
            (u128::from(floor) + rooms < u128::from(Bytes::MAX / 2)).then_some(ground)
        })
    }

    /// The offsets there that a body allows.
    fn allowed(self, body: &Body) -> Option<AllowedPool> {
        body.pools.iter().find(|allowed| allowed.pool == self.pool).copied()
    }

    /// The end of a body that is fixed there.
    fn end_of(self, body: &Body) -> Option<Bytes> {
        body.fixed.filter(|place| place.pool == self.pool).map(|place| place.offset + body.extent)
    }
}

/// The monitor of a packing that ends in blocks if it is late. With many bodies, the time for these is kept.
pub(super) fn monitor<'a>(
    problem: &Problem,
    limits: &Limits,
    observer: Observer<'a>,
) -> Monitor<'a> {
    let bodies = count(problem);
    if bodies <= MANY || Ground::of(problem).is_none() {
        return Monitor::new(limits, observer);
    }
    let time = limits.time.map(|time| time.saturating_sub(bodies * TIME));
    Monitor::new(&Limits { time, ..*limits }, observer).without_grace()
}

fn count(problem: &Problem) -> u32 {
    u32::try_from(problem.bodies().len()).unwrap_or(u32::MAX)
}

/// Packs all bodies in blocks, if there is no time for more, and the problem allows it.
pub(super) fn layout_if_late(problem: &Problem, monitor: &Monitor<'_>) -> Option<Layout> {
    let is_short = || monitor.left().is_some_and(|left| left < count(problem) * LEAST_TIME);
    if !monitor.is_overdue() && !is_short() {
        return None;
    }
    layout(problem, Ground::of(problem)?)
}

/// The streams that are looked at.
const MOST_STREAMS: usize = 8;

/// Bodies of a class have blocks of the same size, at offsets that all of them allow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    size: Bytes,
    modulus: Bytes,
    rest: Bytes,
}

impl Class {
    fn of(body: &Body, allowed: AllowedPool) -> Self {
        let step = 1 << body.extent.checked_ilog2().unwrap_or(0).saturating_sub(2);
        let size = body.extent.next_multiple_of(step);
        Self { size, modulus: allowed.modulus, rest: allowed.rest }
    }
}

/// A free block: its offset, and the last body in it.
#[derive(Clone, Copy)]
struct Block {
    offset: Bytes,
    last: usize,
}

/// Packs all bodies of a problem. Returns `None` if an offset exceeds 64 bits.
fn layout(problem: &Problem, ground: Ground) -> Option<Layout> {
    let bodies = problem.bodies();
    let streams = problem.demands().map_or(1, |demands| demands.streams);
    let mut places = vec![Place::default(); bodies.len()];
    let mut rest = Rest::new(ground, streams, bodies.len());
    for (at, body) in bodies.iter().enumerate() {
        match (body.fixed, problem.only_life(body)) {
            (Some(place), _) => places[at] = place,
            (None, Some((_, life))) => rest.add(at, &life.begin, &life.end),
            (None, None) => rest.add_boxes(at, &problem.boxes_of(body)),
        }
    }
    let fixed = bodies.iter().filter_map(|body| ground.end_of(body)).max();
    rest.pack(bodies, fixed.unwrap_or(0), &mut places)?;
    Some(Layout::from_bodies(problem, bodies, &places))
}

/// Packs the rest of the bodies, given by index, from an offset on. Returns `None` if an offset exceeds 64 bits.
pub(super) fn pack_above(
    ground: Ground,
    (bodies, boxes): (&[Body], &[TimedBoxes]),
    rest: &[usize],
    top: Bytes,
    places: &mut [Place],
) -> Option<()> {
    let streams = boxes.iter().find_map(|boxes| boxes.first()).map_or(1, |one| one.begin.len());
    // In the order of the problem, which is often that of time, those that live together lie together.
    let mut is_left = vec![false; bodies.len()];
    for &at in rest {
        is_left[at] = true;
    }
    let (mut left, mut top) = (Rest::new(ground, streams, rest.len()), top);
    for (at, body) in bodies.iter().enumerate().filter(|&(at, _)| is_left[at]) {
        if let Some(place) = body.fixed {
            places[at] = place;
            top = top.max(ground.end_of(body).unwrap_or(0));
        } else {
            left.add_boxes(at, &boxes[at]);
        }
    }
    left.pack(bodies, top, places)
}

/// Bodies that are packed in blocks.
struct Rest {
    ground: Ground,
    /// The bodies, by index, and the life of each, from the first begin of a box, stream by stream, to the last end.
    packed: Vec<usize>,
    lives: Lives,
    /// Those that need no bytes at any time.
    idle: Vec<usize>,
}

impl Rest {
    fn new(ground: Ground, streams: usize, count: usize) -> Self {
        let lives = Lives::with_capacity(streams, count);
        Self { ground, packed: Vec::with_capacity(count), lives, idle: Vec::new() }
    }

    fn add(&mut self, body: usize, begin: &[Step], end: &[Step]) {
        self.packed.push(body);
        self.lives.push(begin, end);
    }

    fn add_boxes(&mut self, body: usize, boxes: &[TimedBox]) {
        let Some((first, others)) = boxes.split_first() else {
            self.idle.push(body);
            return;
        };
        self.add(body, &first.begin, &first.end);
        for one in others {
            self.lives.widen_last(&one.begin, &one.end);
        }
    }

    fn pack(self, bodies: &[Body], top: Bytes, places: &mut [Place]) -> Option<()> {
        let Self { ground, packed, lives, idle } = self;
        // What needs no bytes at any time can lie anywhere but in reserved bytes.
        for at in idle {
            let offset = ground.allowed(&bodies[at])?.lift(ground.floor)?;
            places[at] = Place::new(ground.pool, offset);
        }
        let mut top = top.max(ground.floor);
        let begins = lives.begins();
        let order = by_sum(&begins);
        let (stream_of, streams) = streams(&begins, &order);
        let mut numbers: BTreeMap<Class, usize> = BTreeMap::new();
        // By class, stream by stream: the free blocks, in the order in which they became free.
        let mut free: Vec<VecDeque<Block>> = Vec::new();
        let mut class_of = Vec::with_capacity(packed.len());
        for &at in &packed {
            let class = Class::of(&bodies[at], ground.allowed(&bodies[at])?);
            let number = numbers.len();
            class_of.push(*numbers.entry(class).or_insert(number));
        }
        free.resize(numbers.len() * streams, VecDeque::new());
        let mut offsets = vec![0; packed.len()];
        let ends = lives.ends();
        let mut ended = by_sum(&ends).into_iter().peekable();
        for new in order {
            let now = wide_sum(begins[new]);
            while let Some(last) = ended.next_if(|&last| wide_sum(ends[last]) <= now) {
                let block = Block { offset: offsets[last], last };
                free[class_of[last] * streams + stream_of[last]].push_back(block);
            }
            let of_class = &mut free[class_of[new] * streams..][..streams];
            let is_over = |block: &Block| is_over(ends[block.last], begins[new]);
            let found = (0..streams.min(MOST_STREAMS))
                .find_map(|other| take(&mut of_class[(stream_of[new] + other) % streams], is_over));
            offsets[new] = if let Some(block) = found {
                block.offset
            } else {
                let body = &bodies[packed[new]];
                let allowed = ground.allowed(body)?;
                let offset = allowed.lift(top)?;
                top = offset.checked_add(Class::of(body, allowed).size)?;
                offset
            };
            places[packed[new]] = Place::new(ground.pool, offsets[new]);
        }
        Some(())
    }
}

/// A number for the stream of each begin, and the number of streams. With few exceptions, they are those of the
/// program.
fn streams(begins: &[&[Step]], order: &[usize]) -> (Vec<usize>, usize) {
    let Chains { chains, rest } = chains_in(begins, order);
    let mut stream_of = vec![chains.len(); begins.len()];
    for (stream, chain) in chains.iter().enumerate() {
        for &at in chain {
            stream_of[at] = stream;
        }
    }
    (stream_of, chains.len() + usize::from(!rest.is_empty()))
}

/// Takes a block of those that became free last or first.
fn take(blocks: &mut VecDeque<Block>, is_over: impl Fn(&Block) -> bool) -> Option<Block> {
    let count = blocks.len();
    let newest = (count.saturating_sub(NEWEST)..count).rev();
    let oldest = 0..OLDEST.min(count.saturating_sub(NEWEST));
    let at = newest.chain(oldest).find(|&at| is_over(&blocks[at]))?;
    blocks.remove(at)
}

#[cfg(test)]
mod tests {
    use std::{ops::Range, sync::atomic::AtomicBool};

    use super::*;
    use crate::{
        Plan, Strategy,
        planner::statement::Statement,
        problem::{ChunkId, ProblemBuilder, demands::PoolId},
        verify::verify,
    };

    fn add(problem: &mut ProblemBuilder, size: Bytes, life: Range<[Step; 2]>) {
        let chunk = problem.chunk(0..1, size);
        problem.clocks(chunk, life.start.into(), life.end.into(), 0);
    }

    fn offsets(problem: &Problem, top: Bytes) -> Vec<Bytes> {
        places(problem, top).iter().map(|place| place.offset).collect()
    }

    /// The places if all bodies are packed above an offset.
    fn places(problem: &Problem, top: Bytes) -> Vec<Place> {
        let statement = Statement::of(problem);
        let mut places = vec![Place::default(); statement.bodies.len()];
        let all: Vec<usize> = (0..places.len()).rev().collect();
        let boxes = (&*statement.bodies, &*statement.boxes);
        pack_above(statement.ground.unwrap(), boxes, &all, top, &mut places).unwrap();
        places
    }

    /// The layout of a search that is cancelled at once. It packs in blocks, as packing all bodies above nothing does.
    fn late_layout(problem: &Problem) -> Layout {
        let cancel = AtomicBool::new(true);
        let observer = Observer::default().cancel(&cancel);
        let in_blocks = Strategy::Best.layout(problem, &Limits::default(), observer).unwrap();
        assert_eq!(Some(&in_blocks), layout(problem, Ground::of(problem).unwrap()).as_ref());
        let above = Layout::from_bodies(problem, problem.bodies(), &places(problem, 0));
        assert_eq!(in_blocks, above);
        in_blocks
    }

    /// A search that is cancelled at once packs in blocks, and the plan is right.
    #[test]
    fn plans_in_blocks_are_right() {
        let mut shared = 0;
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut problem = Problem::builder().alignment(1 << random.int_in_range(0..=4)?);
            problem.streams(2);
            let mut last: Option<(ChunkId, [Step; 2], Bytes)> = None;
            for _ in 0..random.int_in_range(1..=30)? {
                let mut begin = [random.int_in_range(0..=20)?, random.int_in_range(0..=20)?];
                let mut size = random.int_in_range(0..=99)?;
                let over = last.filter(|_| random.ratio(1, 4).unwrap_or(false));
                if let Some((_, end, room)) = over {
                    // It is written over the one before, in the last step of that.
                    (begin, size) = ([end[0] - 1, end[1]], room);
                }
                let more = [random.int_in_range(1..=5)?, random.int_in_range(1..=5)?];
                let end = [begin[0] + more[0], begin[1] + more[1]];
                let chunk = problem.chunk(0..1, size);
                problem.clocks(chunk, begin.into(), end.into(), 0);
                problem.align(chunk, 1 << random.int_in_range(0..=3)?);
                if let Some((old, ..)) = over {
                    problem.overwrite(chunk, old, 0);
                }
                last = Some((chunk, end, size));
            }
            let problem = problem.build().unwrap();
            if problem.linear().is_some() {
                return Ok(());
            }
            let in_blocks = late_layout(&problem);
            let plan = Plan::from_offsets(&problem, &in_blocks.offsets).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            shared += u32::from(plan.pool_size < plan.naive_size);
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(400);
        assert!(shared > 0);
    }

    /// On one stream, with pins, reserved ranges and holes. Some chunks allow only the second pool, which has no
    /// capacity.
    #[test]
    fn plans_in_blocks_around_pins_and_reserved_bytes_are_right() {
        let (mut shared, mut pinned, mut refused) = (0, 0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut problem = Problem::builder().alignment(1 << random.int_in_range(0..=4)?);
            let has_small = random.ratio(1, 2)?;
            if has_small {
                problem.pool(Pool::new("small").capacity(64));
            }
            let low = 16 * random.int_in_range(0..=9)?;
            let large = problem.pool(Pool::new("large").reserved(low..low + 32));
            let mut top = low + 32;
            for at in 0..random.int_in_range(1..=40)? {
                let (begin, size) = (random.int_in_range(0..=20)?, random.int_in_range(1..=64)?);
                let end = begin + random.int_in_range(1..=6)?;
                let chunk = problem.chunk(begin..end, size);
                if random.ratio(1, 8)? {
                    problem.pin(chunk, large, top);
                    top += 112;
                } else if random.ratio(1, 4)? {
                    problem.only_in(chunk, [large]);
                } else if has_small && at > 20 && random.ratio(1, 20)? {
                    problem.only_in(chunk, [PoolId(0)]);
                }
                let hole = random.int_in_range(begin + 1..=end)?..end;
                if !hole.is_empty() && random.ratio(1, 4)? {
                    problem.hole(chunk, hole);
                }
            }
            let problem = problem.build().unwrap();
            let ground = Ground::of(&problem);
            if ground.is_none() {
                refused += u32::from(problem.bodies().len() > FEW);
                return Ok(());
            }
            assert_eq!(ground, Some(Ground { pool: large, floor: low + 32 }));
            let in_blocks = late_layout(&problem);
            let place = |at: usize| {
                let pool = in_blocks.pools.get(at).copied().unwrap_or_default();
                Place::new(pool, in_blocks.offsets[at])
            };
            let places: Vec<Place> = (0..problem.len()).map(place).collect();
            let plan = Plan::from_places(&problem, &places).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            shared += u32::from(plan.pool_size < plan.naive_size);
            pinned += problem.bodies().iter().filter(|body| body.fixed.is_some()).count();
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(400);
        assert!(shared > 0 && pinned > 0 && refused > 0, "{shared} {pinned} {refused}");
    }

    /// A block is taken again by a chunk of its class that begins, on every stream, when the last one is over.
    #[test]
    fn a_block_is_shared_by_chunks_of_its_class_that_follow_each_other() {
        for (size, begin, shares) in [
            (80, [1, 1], true),
            (65, [1, 1], true),
            (64, [1, 1], false),
            (81, [1, 1], false),
            (80, [0, 2], false),
        ] {
            let mut problem = Problem::builder();
            problem.streams(2);
            add(&mut problem, 80, [0, 0]..[1, 1]);
            add(&mut problem, size, begin..[3, 3]);
            let problem = problem.build().unwrap();
            let next = if shares { 1000 } else { 1080 };
            assert_eq!(offsets(&problem, 1000), [1000, next], "{size}, {begin:?}");
        }
    }

    /// With many bodies, a packing ends so early that packing the rest in blocks keeps the limit, and does not begin
    /// where there is hardly any time.
    #[test]
    fn time_is_kept_for_packing_many_bodies_in_blocks() {
        let mut problem = Problem::builder();
        problem.streams(2);
        add(&mut problem, 8, [0, 0]..[1, 7]);
        for at in 0..u64::from(MANY) {
            add(&mut problem, 8, [at, 0]..[at + 1, 0]);
        }
        let problem = problem.build().unwrap();
        let within = |time| {
            let monitor = monitor(&problem, &Limits::default().time(time), Observer::default());
            (monitor.left().unwrap(), layout_if_late(&problem, &monitor).is_some())
        };
        let (hour, kept) = (Duration::from_hours(1), MANY * TIME);
        let (left, in_blocks) = within(hour);
        assert!(left + kept <= hour && !in_blocks);
        assert_eq!(within(kept / 2), (Duration::ZERO, true));
        assert!(within(kept + MANY * LEAST_TIME).1);
    }

    /// Two streams that do not wait for each other take blocks in turn, but each its own.
    #[test]
    fn each_stream_has_its_own_blocks() {
        let mut problem = Problem::builder();
        problem.streams(2);
        for at in 0..100 {
            for _ in 0..9 {
                add(&mut problem, 8, [at, 0]..[at + 1, 0]);
            }
            add(&mut problem, 8, [0, at]..[0, at + 1]);
        }
        let offsets = offsets(&problem.build().unwrap(), 0);
        assert_eq!(offsets.iter().max(), Some(&72));
    }

    #[test]
    fn bodies_are_packed_in_blocks_in_the_first_pool_without_limits_that_all_allow() {
        let ground = |bodies: usize, demand: &dyn Fn(&mut ProblemBuilder)| {
            let mut problem = Problem::builder();
            problem.streams(2);
            for _ in 0..bodies {
                add(&mut problem, 8, [0, 0]..[1, 1]);
            }
            demand(&mut problem);
            Ground::of(&problem.build().unwrap()).map(|ground| (ground.pool.0, ground.floor))
        };
        let ids = [0, 1].map(ChunkId::from_index);
        let two = |only: u16| {
            move |problem: &mut ProblemBuilder| {
                problem.pool(Pool::new("a").capacity(64));
                problem.pool(Pool::new("b"));
                problem.only_in(ids[0], [PoolId(only)]);
            }
        };
        let with = |pool: Pool| move |problem: &mut ProblemBuilder| _ = problem.pool(pool.clone());
        let pinned = |problem: &mut ProblemBuilder| _ = problem.pin(ids[0], PoolId(0), 0);
        let apart = |problem: &mut ProblemBuilder| _ = problem.apart(ids);
        let huge = |problem: &mut ProblemBuilder| add(problem, 1 << 62, [0, 0]..[1, 1]);
        let check =
            |demand: &dyn Fn(&mut ProblemBuilder), expected: Option<(u16, Bytes)>, with_few| {
                assert_eq!(ground(FEW + 1, demand), expected);
                assert_eq!(ground(2, demand), expected.filter(|_| with_few));
            };
        check(&|_| (), Some((0, 0)), true);
        check(&with(Pool::new("a")), Some((0, 0)), true);
        check(&with(Pool::new("a").reserved(0..8)), Some((0, 8)), false);
        check(&with(Pool::new("a").capacity(1 << 20)), None, false);
        check(&with(Pool::new("a").largest(64)), None, false);
        check(&pinned, Some((0, 0)), false);
        check(&apart, None, false);
        check(&huge, None, false);
        check(&two(1), Some((1, 0)), false);
        assert_eq!(ground(FEW + 1, &two(0)), None);
    }
}
