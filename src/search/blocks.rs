//! Blocks: the fastest packing that shares memory, for constrained problems without time for a better one: on several
//! streams, or around pins and reserved bytes.
//!
//! **Idea.** Replay the program with a size-class allocator, as [size classes](super::size_classes) do for
//! unconstrained problems: round every size up to one of four classes per power of two. All blocks lie above pins and
//! reserved bytes, in a pool without a capacity. A body takes a free block of its class if the last body in it is over,
//! on every stream, before this one begins. Each stream has its own free blocks, and only a few of them are examined.
//! If none can be taken, a new block is made at the top.
//!
//! **Cost.** O(n) after sorting by clock, for each stream. The pool can be several times as large.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    Bytes, Limits, Observer, Problem,
    bodies::{AllowedPool, Body, BodyLifetimes, by_sum, happens_before, in_chains, wide_sum},
    monitor::Monitor,
    plan::Layout,
    problem::constraints::{Place, Pool, PoolId},
};

/// With more bodies than this, packing in blocks takes longer than the grace period of a first layout.
const MAX_IN_GRACE: u32 = 250_000;

/// The time that packing in blocks, and all that follows, takes for each body.
const TIME: Duration = Duration::from_nanos(400);

/// Every better packing than blocks takes at least this long for each body.
const MIN_TIME: Duration = Duration::from_nanos(500);

/// The monitor of a packing that falls back to blocks when its time ends. With many bodies, it reserves the time that
/// packing in blocks takes.
pub(crate) fn monitor<'a>(
    problem: &Problem,
    within: Option<BlockPool>,
    limits: &Limits,
    observer: Observer<'a>,
) -> Monitor<'a> {
    let monitor = Monitor::new(limits, observer);
    match within.map(|_| count(problem)).filter(|&bodies| bodies > MAX_IN_GRACE) {
        Some(bodies) => monitor.keeping(bodies * TIME).without_grace(),
        None => monitor,
    }
}

fn count(problem: &Problem) -> u32 {
    u32::try_from(problem.bodies().len()).unwrap_or(u32::MAX)
}

/// Packs all bodies in blocks, if there is no time for more, and the problem allows it.
pub(crate) fn layout_if_late(
    problem: &Problem,
    within: Option<BlockPool>,
    monitor: &Monitor<'_>,
) -> Option<Layout> {
    let within = within?;
    let is_short = || monitor.left().is_some_and(|left| left < count(problem) * MIN_TIME);
    if monitor.is_overdue() || is_short() { layout(problem, within) } else { None }
}

/// With pins or reserved bytes, in several pools, or on one stream, up to this many bodies are placed one by one even
/// if there is no time left. That takes little time, mostly needs fewer bytes, and in several pools causes less
/// traffic.
pub(crate) const MAX_SINGLY: usize = if cfg!(test) { 8 } else { 20_000 };

/// A pool without limits that all bodies allow, in which they can be packed in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPool {
    pub(crate) id: PoolId,
    /// The end of the highest reserved range; 0 without any.
    pub(crate) floor: Bytes,
}

impl BlockPool {
    /// The first such pool; `None` with [few](MAX_SINGLY) bodies.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        let constraints = problem.constraints()?;
        let is_bare = constraints.streams > 1
            && matches!(&*constraints.pools, [pool] if pool.reserved.is_empty())
            && problem.fixed_bodies().next().is_none();
        let is_few = !is_bare && problem.bodies().len() <= MAX_SINGLY;
        // Blocks must not cross buffers, and chunks kept apart occupy their bytes even in their holes.
        let has_buffers = constraints.pools.iter().any(|pool| pool.largest.is_some());
        if is_few || has_buffers || !constraints.apart.is_empty() {
            return None;
        }
        let is_free = |pool: &Pool| pool.capacity.is_none();
        let ids = (0..).map(PoolId);
        ids.zip(&constraints.pools).filter(|(_, pool)| is_free(pool)).find_map(|(id, pool)| {
            let floor = pool.reserved.iter().map(|range| range.end).max().unwrap_or(0);
            let within = Self { id, floor };
            // Rounded up, sizes near the limits of 64 bits could exceed them.
            let room = |body: &Body| {
                if let Some(place) = body.fixed {
                    return Some(u128::from(place.offset) + u128::from(body.extent));
                }
                let modulus = within.allowed(body)?.modulus;
                Some(2 * (u128::from(body.extent) + u128::from(modulus)))
            };
            let rooms: u128 = problem.bodies().iter().map(room).sum::<Option<_>>()?;
            (u128::from(floor) + rooms < u128::from(Bytes::MAX / 2)).then_some(within)
        })
    }

    /// The offsets there that a body allows.
    pub(crate) fn allowed(self, body: &Body) -> Option<AllowedPool> {
        body.pools.iter().find(|allowed| allowed.pool == self.id).copied()
    }

    /// The end of a body that is fixed there.
    pub(crate) fn end_of(self, body: &Body) -> Option<Bytes> {
        body.fixed.filter(|place| place.pool == self.id).map(|place| place.offset + body.extent)
    }
}

/// The free blocks of a class and a stream that are examined: this many that became free last, and this many that
/// became free first.
const NEWEST: usize = 4;
const OLDEST: usize = 4;

/// The most streams whose free blocks are examined.
const MAX_STREAMS: usize = 8;

/// Packs all bodies of a problem. Returns `None` if an offset exceeds 64 bits.
fn layout(problem: &Problem, within: BlockPool) -> Option<Layout> {
    let bodies = problem.bodies();
    let mut places = vec![Place::default(); bodies.len()];
    pack(problem, within, None, 0, &mut places)?;
    Some(Layout::from_bodies(problem, bodies, &places))
}

/// Packs the rest of the bodies, given by index, from an offset on. Returns `None` if an offset exceeds 64 bits.
pub(crate) fn pack_above(
    problem: &Problem,
    within: BlockPool,
    rest: &[usize],
    top: Bytes,
    places: &mut [Place],
) -> Option<()> {
    let mut is_left = vec![false; places.len()];
    for &at in rest {
        is_left[at] = true;
    }
    pack(problem, within, Some(&is_left), top, places)
}

/// Packs the bodies that are left, or all, from an offset on.
fn pack(
    problem: &Problem,
    within: BlockPool,
    is_left: Option<&[bool]>,
    mut top: Bytes,
    places: &mut [Place],
) -> Option<()> {
    let bodies = problem.bodies();
    let BodyLifetimes { lives, bodies: body_of, idle, .. } = problem.body_lives()?;
    let mut class_of = vec![NONE; bodies.len()];
    let (mut classes, mut numbers) = (Vec::new(), BTreeMap::new());
    for (at, body) in bodies.iter().enumerate() {
        if is_left.is_some_and(|is_left| !is_left[at]) {
            continue;
        }
        if let Some(place) = body.fixed {
            places[at] = place;
            top = top.max(within.end_of(body).unwrap_or(0));
        } else {
            let allowed = within.allowed(body)?;
            let next = u32::try_from(classes.len()).ok().filter(|&next| next != NONE)?;
            class_of[at] =
                *numbers.entry((class_size(body.extent), allowed)).or_insert_with_key(|class| {
                    classes.push(*class);
                    next
                });
        }
    }
    top = top.max(within.floor);
    // A body that needs no bytes at any time may lie anywhere except in reserved bytes.
    for at in idle.iter().map(|&at| at as usize).filter(|&at| class_of[at] != NONE) {
        let offset = within.allowed(&bodies[at])?.round_up(within.floor)?;
        places[at] = Place::new(within.id, offset);
    }
    let mut free = FreeBlocks(vec![Vec::new(); classes.len()]);
    // From here on, tables are indexed by lifetime, so that entries of the same time are close in memory.
    let block = |&at: &u32| Block { class: class_of[at as usize], stream: 0, offset: 0 };
    let mut blocks: Vec<Block> = body_of.iter().map(block).collect();
    let with_sum = |last| (last as usize, wide_sum(lives.end(last as usize)));
    let mut ended = by_sum(lives.ends()).into_iter().map(with_sum).peekable();
    for (new, chain) in in_chains(lives.begins(), lives.streams()).enumerate() {
        let class = blocks[new].class;
        if class == NONE {
            continue;
        }
        let begin = lives.begin(new);
        let now = wide_sum(begin);
        while let Some((last, _)) = ended.next_if(|&(_, sum)| sum <= now) {
            let Block { class, stream, .. } = blocks[last];
            if class != NONE {
                free.give(class, stream, last);
            }
        }
        // With few exceptions, chains are the streams of the program. The exceptions are one more stream.
        let stream = u32::try_from(chain.map_or(0, |chain| chain + 1)).ok()?;
        let found = free.take(class, stream, |last| happens_before(lives.end(last), begin));
        let offset = if let Some(last) = found {
            blocks[last].offset
        } else {
            let (size, allowed) = classes[class as usize];
            let offset = allowed.round_up(top)?;
            top = offset.checked_add(size)?;
            offset
        };
        blocks[new] = Block { class, stream, offset };
    }
    for (Block { class, offset, .. }, &at) in blocks.into_iter().zip(body_of) {
        if class != NONE {
            places[at as usize] = Place::new(within.id, offset);
        }
    }
    Some(())
}

/// The class of a body that is not packed.
const NONE: u32 = u32::MAX;

/// The size of the blocks of a class: one of four for each power of two.
fn class_size(size: Bytes) -> Bytes {
    size.next_multiple_of(1 << size.checked_ilog2().unwrap_or(0).saturating_sub(2))
}

/// The block of a body, and its stream.
#[derive(Clone, Copy)]
struct Block {
    class: u32,
    stream: u32,
    offset: Bytes,
}

/// The free blocks of each class and stream, in the order in which they became free. A block is given by the last life
/// in it.
struct FreeBlocks(Vec<Vec<VecDeque<usize>>>);

impl FreeBlocks {
    fn give(&mut self, class: u32, stream: u32, last: usize) {
        let (streams, stream) = (&mut self.0[class as usize], stream as usize);
        if streams.len() <= stream {
            streams.resize_with(stream + 1, VecDeque::new);
        }
        streams[stream].push_back(last);
    }

    /// Takes a free block whose last body is over, preferably one of this stream, from the blocks that became free last
    /// or first.
    fn take(
        &mut self,
        class: u32,
        stream: u32,
        happens_before: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let (streams, stream) = (&mut self.0[class as usize], stream as usize);
        let count = streams.len();
        (stream..stream + count.min(MAX_STREAMS)).find_map(|other| {
            let blocks = &mut streams[other % count];
            let len = blocks.len();
            let newest = (len.saturating_sub(NEWEST)..len).rev();
            let oldest = 0..OLDEST.min(len.saturating_sub(NEWEST));
            let at = newest.chain(oldest).find(|&at| happens_before(blocks[at]))?;
            blocks.remove(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{ops::Range, sync::atomic::AtomicBool};

    use super::*;
    use crate::{
        Plan, Step,
        problem::{ChunkId, ProblemBuilder},
        search::pool_instance::PoolInstance,
        verify::verify,
    };

    fn add(problem: &mut ProblemBuilder, size: Bytes, life: Range<[Step; 2]>) {
        let chunk = problem.chunk(0..1, size);
        problem.clocks(chunk, life.start, life.end, 0);
    }

    fn offsets(problem: &Problem, top: Bytes) -> Vec<Bytes> {
        places(problem, top).iter().map(|place| place.offset).collect()
    }

    /// The places if all bodies are packed above an offset.
    fn places(problem: &Problem, top: Bytes) -> Vec<Place> {
        let instance = PoolInstance::of(problem);
        let mut places = vec![Place::default(); instance.bodies.len()];
        let all: Vec<usize> = (0..places.len()).rev().collect();
        pack_above(problem, instance.block_pool.unwrap(), &all, top, &mut places).unwrap();
        places
    }

    /// The layout of a search that is cancelled at once. It packs in blocks, as packing all bodies above nothing does.
    fn late_layout(problem: &Problem) -> Layout {
        let cancel = AtomicBool::new(true);
        let observer = Observer::default().cancel(&cancel);
        let within = BlockPool::of(problem);
        let monitor = monitor(problem, within, &Limits::default(), observer);
        let in_blocks = layout_if_late(problem, within, &monitor).unwrap();
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
                problem.clocks(chunk, begin, end, 0);
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
                refused += u32::from(problem.bodies().len() > MAX_SINGLY);
                return Ok(());
            }
            assert_eq!(within, Some(BlockPool { id: large, floor: low + 32 }));
            let in_blocks = late_layout(&problem);
            let place = |at: usize| {
                let pool = in_blocks.pools.get(at).copied().unwrap_or_default();
                (pool, in_blocks.offsets[at])
            };
            let places: Vec<_> = (0..problem.len()).map(place).collect();
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

    #[test]
    fn bodies_are_packed_in_blocks_in_the_first_pool_without_limits_that_all_allow() {
        let found = |bodies: usize, constrain: &dyn Fn(&mut ProblemBuilder)| {
            let mut problem = Problem::builder();
            problem.streams(2);
            for _ in 0..bodies {
                add(&mut problem, 8, [0, 0]..[1, 1]);
            }
            constrain(&mut problem);
            BlockPool::of(&problem.build().unwrap()).map(|pool| (pool.id.0, pool.floor))
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
            |constrain: &dyn Fn(&mut ProblemBuilder), expected: Option<(u16, Bytes)>, with_few| {
                assert_eq!(found(MAX_SINGLY + 1, constrain), expected);
                assert_eq!(found(2, constrain), expected.filter(|_| with_few));
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
        assert_eq!(found(MAX_SINGLY + 1, &two(0)), None);
    }

    /// With many bodies, a packing ends so early that packing the rest in blocks keeps the limit, and does not begin
    /// where there is hardly any time.
    #[test]
    fn time_is_kept_for_packing_many_bodies_in_blocks() {
        let mut problem = Problem::builder();
        problem.streams(2);
        add(&mut problem, 8, [0, 0]..[1, 7]);
        for at in 0..u64::from(MAX_IN_GRACE) {
            add(&mut problem, 8, [at, 0]..[at + 1, 0]);
        }
        let problem = problem.build().unwrap();
        let within = |time| {
            let (within, limits) = (BlockPool::of(&problem), Limits::default().time(time));
            let monitor = monitor(&problem, within, &limits, Observer::default());
            (monitor.left().unwrap(), layout_if_late(&problem, within, &monitor).is_some())
        };
        let (hour, kept) = (Duration::from_hours(1), MAX_IN_GRACE * TIME);
        let (left, in_blocks) = within(hour);
        assert!(left + kept <= hour && !in_blocks);
        assert_eq!(within(kept / 2), (Duration::ZERO, true));
        assert!(within(kept + MAX_IN_GRACE * MIN_TIME).1);
    }
}
