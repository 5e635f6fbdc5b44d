//! Blocks: the fastest packing on several streams that shares memory, for where there is no time for a better one.
//!
//! **Idea.** As with [size classes](super::size_classes) on one stream, the program is replayed with an allocator that
//! rounds every size up to one of four classes per power of two. A body takes a free block of its class whose last body
//! is over, on every stream, before it begins. As many free blocks of other streams may not be over yet, each stream has
//! its own, and few of them are looked at. If none is over, a new block is made at the top.
//!
//! **Cost.** O(n) after sorting by clock, for each stream. The pool can be several times as large.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    Bytes, Problem, Step,
    problem::demands::{
        AllowedPool, Body, Chains, Pool, TimedBox, TimedBoxes, by_sum, chains, is_over, wide_sum,
    },
};

/// The blocks of a class and a stream that are looked at: those that became free last, and first.
const NEWEST: usize = 4;
const OLDEST: usize = 4;

/// Returns whether bodies of a problem can be packed in blocks: on several streams, in one pool without any limits.
pub(super) fn packs(problem: &Problem) -> bool {
    let Some(demands) = problem.demands() else { return false };
    let is_free =
        |pool: &Pool| pool.capacity.is_none() && pool.largest.is_none() && pool.reserved.is_empty();
    // Rounded up, sizes near the limits of 64 bits could exceed them.
    let room = |body: &Body| body.pools.first().map_or(0, |allowed| allowed.modulus);
    let room = |body: &Body| u128::from(body.extent) * 2 + u128::from(room(body)) * 2;
    demands.streams > 1
        && matches!(&*demands.pools, [pool] if is_free(pool))
        && demands.apart.is_empty()
        && problem.bodies().iter().all(|body| body.fixed.is_none())
        && problem.bodies().iter().map(room).sum::<u128>() < u128::from(Bytes::MAX / 2)
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

/// The lives of bodies, each from the first begin of a box, stream by stream, to the last end.
struct Lives {
    streams: usize,
    /// By body: the begin, then the end.
    clocks: Vec<Step>,
}

impl Lives {
    fn of<'a>(bodies: impl Iterator<Item = &'a [TimedBox]>) -> Self {
        let mut lives = Self { streams: 0, clocks: Vec::new() };
        for boxes in bodies {
            let Some(first) = boxes.first() else { continue };
            lives.streams = first.begin.len();
            let at = lives.clocks.len();
            lives.clocks.extend([&*first.begin, &*first.end].into_iter().flatten());
            let (begin, end) = lives.clocks[at..].split_at_mut(lives.streams);
            for one in &boxes[1..] {
                for stream in 0..begin.len() {
                    begin[stream] = begin[stream].min(one.begin[stream]);
                    end[stream] = end[stream].max(one.end[stream]);
                }
            }
        }
        lives
    }

    fn begins(&self) -> Vec<&[Step]> {
        self.clocks.chunks_exact(2 * self.streams).map(|life| &life[..self.streams]).collect()
    }

    fn ends(&self) -> Vec<&[Step]> {
        self.clocks.chunks_exact(2 * self.streams).map(|life| &life[self.streams..]).collect()
    }
}

/// Packs bodies, given by index, from an offset on; calls `put` with each body and its offset. Returns `None` if an
/// offset exceeds 64 bits.
pub(super) fn pack_above(
    (bodies, boxes): (&[Body], &[TimedBoxes]),
    packed: &[usize],
    mut top: Bytes,
    mut put: impl FnMut(usize, Bytes),
) -> Option<()> {
    let (packed, idle): (Vec<usize>, Vec<usize>) =
        packed.iter().partition(|&&at| !boxes[at].is_empty());
    // What needs no bytes at any time can lie anywhere.
    for at in idle {
        put(at, bodies[at].pools.first()?.rest);
    }
    if packed.is_empty() {
        return Some(());
    }
    let lives = Lives::of(packed.iter().map(|&at| &*boxes[at]));
    let (begins, ends) = (lives.begins(), lives.ends());
    let (stream_of, streams) = streams(&begins);
    let mut numbers: BTreeMap<Class, usize> = BTreeMap::new();
    // By class, stream by stream: the free blocks, in the order in which they became free.
    let mut free: Vec<VecDeque<Block>> = Vec::new();
    let mut class_of = Vec::with_capacity(packed.len());
    for &at in &packed {
        let class = Class::of(&bodies[at], *bodies[at].pools.first()?);
        let number = numbers.len();
        class_of.push(*numbers.entry(class).or_insert(number));
    }
    free.resize(numbers.len() * streams, VecDeque::new());
    let mut offsets = vec![0; packed.len()];
    let mut ended = by_sum(&ends).into_iter().peekable();
    for new in by_sum(&begins) {
        let now = wide_sum(begins[new]);
        while let Some(last) = ended.next_if(|&last| wide_sum(ends[last]) <= now) {
            let block = Block { offset: offsets[last], last };
            free[class_of[last] * streams + stream_of[last]].push_back(block);
        }
        let of_class = &mut free[class_of[new] * streams..][..streams];
        let is_over = |block: &Block| is_over(ends[block.last], begins[new]);
        let found = (0..streams.min(MOST_STREAMS))
            .find_map(|other| take(&mut of_class[(stream_of[new] + other) % streams], is_over));
        let body = &bodies[packed[new]];
        offsets[new] = if let Some(block) = found {
            block.offset
        } else {
            let allowed = *body.pools.first()?;
            let offset = allowed.lift(top)?;
            top = offset.checked_add(Class::of(body, allowed).size)?;
            offset
        };
        put(packed[new], offsets[new]);
    }
    Some(())
}

/// A number for the stream of each begin, and the number of streams. With few exceptions, they are those of the
/// program.
fn streams(begins: &[&[Step]]) -> (Vec<usize>, usize) {
    let Chains { chains, rest } = chains(begins);
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
        planner::statement::Statement,
        problem::{ChunkId, ProblemBuilder, demands::PoolId},
        verify::verify,
    };

    fn add(problem: &mut ProblemBuilder, size: Bytes, life: Range<[Step; 2]>) {
        let chunk = problem.chunk(0..1, size);
        problem.clocks(chunk, life.start.into(), life.end.into(), 0);
    }

    fn offsets(problem: &Problem, top: Bytes) -> Vec<Bytes> {
        let statement = Statement::of(problem);
        let mut offsets = vec![0; statement.bodies.len()];
        let all: Vec<usize> = (0..offsets.len()).collect();
        let put = |at: usize, offset| offsets[at] = offset;
        pack_above((&statement.bodies, &statement.boxes), &all, top, put).unwrap();
        offsets
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
            let cancel = AtomicBool::new(true);
            let observer = Observer::default().cancel(&cancel);
            if problem.linear().is_some() {
                return Ok(());
            }
            let layout = Strategy::Best.layout(&problem, &Limits::default(), observer).unwrap();
            let plan = Plan::from_offsets(&problem, &layout.offsets).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            shared += u32::from(plan.pool_size < plan.naive_size);
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(400);
        assert!(shared > 0);
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

    #[test]
    fn problems_with_limits_or_fixed_places_are_not_packed_in_blocks() {
        let packs = |demand: &dyn Fn(&mut ProblemBuilder)| {
            let mut problem = Problem::builder();
            problem.streams(2);
            add(&mut problem, 8, [0, 0]..[1, 1]);
            add(&mut problem, 8, [0, 0]..[1, 1]);
            demand(&mut problem);
            packs(&problem.build().unwrap())
        };
        let with = |pool: Pool| packs(&|problem| _ = problem.pool(pool.clone()));
        let ids = [0, 1].map(ChunkId::from_index);
        assert!(packs(&|_| ()));
        assert!(with(Pool::new("a")));
        assert!(!with(Pool::new("a").capacity(64)));
        assert!(!with(Pool::new("a").reserved(0..8)));
        assert!(!with(Pool::new("a").largest(64)));
        assert!(!packs(&|problem| _ = problem.pin(ids[0], PoolId::default(), 0)));
        assert!(!packs(&|problem| _ = problem.apart(ids)));
        assert!(!packs(&|problem| add(problem, 1 << 62, [0, 0]..[1, 1])));
        assert!(!packs(&|problem| {
            problem.pool(Pool::new("a"));
            problem.pool(Pool::new("b"));
        }));
    }
}
