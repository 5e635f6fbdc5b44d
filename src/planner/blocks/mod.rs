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

mod late;
mod pool;

use std::collections::{BTreeMap, VecDeque};

pub(super) use late::{layout_if_late, monitor};
pub(super) use pool::BlockPool;

use crate::{
    Bytes, Problem, Step,
    planner::Layout,
    problem::demands::{
        AllowedPool, Body, Chains, Lives, Place, TimedBox, TimedBoxes, by_sum, chains_in, is_over,
        wide_sum,
    },
};

/// The blocks of a class and a stream that are looked at: those that became free last, and first.
const NEWEST: usize = 4;
const OLDEST: usize = 4;

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
fn layout(problem: &Problem, within: BlockPool) -> Option<Layout> {
    let bodies = problem.bodies();
    let streams = problem.demands().map_or(1, |demands| demands.streams);
    let mut places = vec![Place::default(); bodies.len()];
    let mut rest = Rest::new(within, streams, bodies.len());
    for (at, body) in bodies.iter().enumerate() {
        match (body.fixed, problem.only_life(body)) {
            (Some(place), _) => places[at] = place,
            (None, Some((begin, end))) => rest.add(at, begin, end),
            (None, None) => rest.add_boxes(at, &problem.boxes_of(body)),
        }
    }
    let fixed = bodies.iter().filter_map(|body| within.end_of(body)).max();
    rest.pack(bodies, fixed.unwrap_or(0), &mut places)?;
    Some(Layout::from_bodies(problem, bodies, &places))
}

/// Packs the rest of the bodies, given by index, from an offset on. Returns `None` if an offset exceeds 64 bits.
pub(super) fn pack_above(
    within: BlockPool,
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
    let (mut left, mut top) = (Rest::new(within, streams, rest.len()), top);
    for (at, body) in bodies.iter().enumerate().filter(|&(at, _)| is_left[at]) {
        if let Some(place) = body.fixed {
            places[at] = place;
            top = top.max(within.end_of(body).unwrap_or(0));
        } else {
            left.add_boxes(at, &boxes[at]);
        }
    }
    left.pack(bodies, top, places)
}

/// Bodies that are packed in blocks.
struct Rest {
    within: BlockPool,
    /// The bodies, by index, and the life of each, from the first begin of a box, stream by stream, to the last end.
    packed: Vec<usize>,
    lives: Lives,
    /// Those that need no bytes at any time.
    idle: Vec<usize>,
}

impl Rest {
    fn new(within: BlockPool, streams: usize, count: usize) -> Self {
        let lives = Lives::with_capacity(streams, count);
        Self { within, packed: Vec::with_capacity(count), lives, idle: Vec::new() }
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
        let Self { within, packed, lives, idle } = self;
        // A body that needs no bytes at any time may lie anywhere except in reserved bytes.
        for at in idle {
            let offset = within.allowed(&bodies[at])?.lift(within.floor)?;
            places[at] = Place::new(within.id, offset);
        }
        let mut top = top.max(within.floor);
        let begins = lives.begins();
        let order = by_sum(&begins);
        let (stream_of, streams) = streams(&begins, &order);
        let mut numbers: BTreeMap<Class, usize> = BTreeMap::new();
        // By class, stream by stream: the free blocks, in the order in which they became free.
        let mut free: Vec<VecDeque<Block>> = Vec::new();
        let mut class_of = Vec::with_capacity(packed.len());
        for &at in &packed {
            let class = Class::of(&bodies[at], within.allowed(&bodies[at])?);
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
                let allowed = within.allowed(body)?;
                let offset = allowed.lift(top)?;
                top = offset.checked_add(Class::of(body, allowed).size)?;
                offset
            };
            places[packed[new]] = Place::new(within.id, offsets[new]);
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
        Limits, Observer, Plan, Strategy,
        planner::{blocks::pool::FEW, statement::Statement},
        problem::{
            ChunkId, ProblemBuilder,
            demands::{Pool, PoolId},
        },
        verify::verify,
    };

    pub(super) fn add(problem: &mut ProblemBuilder, size: Bytes, life: Range<[Step; 2]>) {
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
        pack_above(statement.block_pool.unwrap(), boxes, &all, top, &mut places).unwrap();
        places
    }

    /// The layout of a search that is cancelled at once. It packs in blocks, as packing all bodies above nothing does.
    fn late_layout(problem: &Problem) -> Layout {
        let cancel = AtomicBool::new(true);
        let observer = Observer::default().cancel(&cancel);
        let in_blocks = Strategy::Best.layout(problem, &Limits::default(), observer).unwrap();
        assert_eq!(Some(&in_blocks), layout(problem, BlockPool::of(problem).unwrap()).as_ref());
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
            let within = BlockPool::of(&problem);
            if within.is_none() {
                refused += u32::from(problem.bodies().len() > FEW);
                return Ok(());
            }
            assert_eq!(within, Some(BlockPool { id: large, floor: low + 32 }));
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
}
