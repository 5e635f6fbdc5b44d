//! Size classes: the fastest planner that shares memory, for when there is no time for a better plan.
//!
//! **Idea.** Sizes are rounded up to one of four classes per power of two, and only chains of the same class share
//! memory. So each class is planned by itself, and its chains and their times fit in a cache. A chain takes the block
//! that became free last, or if none is free, a new one at the top. A class takes as many blocks as the most of its
//! chains that are alive at once, each as large as its largest chain.
//!
//! In a constrained problem, bodies take the place of chains, and the bodies of a class allow the same offsets. All
//! blocks lie above pins and reserved bytes, in a pool without a capacity. Each stream has classes of its own. A body
//! takes a block if the last body in it is over, on every stream, before this one begins; only two free blocks are
//! examined: those that became free last and first.
//!
//! **Cost.** O(n log n): for a million chunks, a tenth of what pushdown takes where many are alive at once. The pool
//! can be several times as large.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    Bytes, Limits, Observer, Problem, Step,
    bodies::{AllowedPool, Body, BodyLifetimes, happens_before},
    monitor::Monitor,
    plan::Layout,
    problem::{
        ChunkId, Segment,
        constraints::{Place, Pool, PoolId},
    },
    search::sizes::TIME_PER_CHUNK,
    steps::{indices, sorted_by_step},
};

/// In constrained problems, up to this many bodies are placed one by one even if there is no time left. That takes
/// little time, mostly needs fewer bytes, and in several pools causes less traffic.
const MAX_SINGLY: usize = if cfg!(test) { 8 } else { 20_000 };

/// A chain or body from its begin to its end. On several streams, both are sums over all streams.
#[derive(Clone, Copy, Default)]
struct Life {
    begin: Step,
    end: Step,
    /// In bytes, padding included; 0 if there is nothing to place.
    size: Bytes,
    /// The number of the chunk or lifetime.
    at: u32,
    class: u32,
}

/// The number of the class of a size: it is rounded up to a multiple of a quarter of the largest power of two that is
/// not above it.
fn class_of(size: Bytes) -> u32 {
    let quarter = size.checked_ilog2().unwrap_or(0).saturating_sub(2);
    let quarters = u32::try_from(size.div_ceil(1 << quarter)).unwrap_or(8);
    4 * quarter + quarters
}

/// Plans an unconstrained problem.
pub(super) fn layout(problem: &Problem) -> Layout {
    // Rounded up, sizes near the limits of 64 bits could exceed them, so there each chain has a class of its own.
    let is_rounded = problem.naive_size() < Bytes::MAX / 2;
    let life = |at| {
        let root = ChunkId(at);
        if problem.link(root).is_some() {
            return Life::default();
        }
        let Segment { begin, end, high: size, .. } = problem.bounding_box(root);
        Life { begin, end, size, at, class: if is_rounded { class_of(size) } else { at } }
    };
    let all = indices(problem.len()).map(life);
    let last = all.clone().map(|life| life.class).max().unwrap_or(0);
    let by_class = sorted_by_step(all, last.into(), |life| life.class.into());
    let mut bases = vec![0; problem.len()];
    let mut top = 0;
    let classes = by_class.chunk_by(|a, b| a.class == b.class);
    for lives in classes.filter(|lives| lives[0].size > 0) {
        let size = problem.align_up(lives.iter().map(|life| life.size).max().unwrap_or(0));
        let mut end = top;
        for (life, block) in lives.iter().zip(blocks(lives, problem.steps(), |_, _| true)) {
            bases[life.at as usize] = top + size * block;
            end = end.max(top + size * (block + 1));
        }
        top = end;
    }
    Layout::from_roots(problem, |root| bases[root.index()])
}

/// Shares blocks among the lives of each class, of which none is after the step `last`; returns the number of each
/// life's block in its class. A block whose life, the first argument, has ended can be taken by another one if
/// `is_over`.
fn blocks(lives: &[Life], last: Step, is_over: impl Fn(u32, u32) -> bool) -> Vec<Bytes> {
    let classes = || lives.iter().map(|life| life.class as usize);
    let (Some(first), Some(highest)) = (classes().min(), classes().max()) else {
        return Vec::new();
    };
    let in_order = |step: fn(&Life) -> Step| {
        let steps = indices(lives.len()).map(|at| (step(&lives[at as usize]), at));
        sorted_by_step(steps, last, |&(step, _)| step)
    };
    let mut ended = in_order(|life| life.end).into_iter().peekable();
    let mut blocks: Vec<Bytes> = vec![0; lives.len()];
    // By class: its blocks, and the last lives in those that are free.
    let mut all: Vec<(Bytes, VecDeque<u32>)> = vec![(0, VecDeque::new()); highest + 1 - first];
    for (begin, new) in in_order(|life| life.begin) {
        while let Some((_, last)) = ended.next_if(|&(end, _)| end <= begin) {
            all[lives[last as usize].class as usize - first].1.push_back(last);
        }
        let Life { at: own, class, .. } = lives[new as usize];
        let (count, free) = &mut all[class as usize - first];
        let is_over = |&last: &u32| is_over(lives[last as usize].at, own);
        let last = if free.back().is_some_and(is_over) {
            free.pop_back()
        } else if free.front().is_some_and(is_over) {
            free.pop_front()
        } else {
            None
        };
        blocks[new as usize] = last.map_or(*count, |last| blocks[last as usize]);
        *count += Bytes::from(last.is_none());
    }
    blocks
}

/// A pool without limits that all bodies allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenPool {
    id: PoolId,
    /// The end of the highest reserved range; 0 without any.
    floor: Bytes,
}

impl OpenPool {
    /// The first such pool of a constrained problem; `None` with [few](MAX_SINGLY) bodies.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        let constraints = problem.constraints()?;
        // Blocks must not cross buffers, and chunks kept apart occupy their bytes even in their holes.
        let has_buffers = constraints.pools.iter().any(|pool| pool.largest.is_some());
        if problem.bodies().len() <= MAX_SINGLY || has_buffers || !constraints.apart.is_empty() {
            return None;
        }
        let is_free = |pool: &Pool| pool.capacity.is_none();
        let ids = (0..).map(PoolId);
        ids.zip(&constraints.pools).filter(|(_, pool)| is_free(pool)).find_map(|(id, pool)| {
            let floor = pool.reserved.iter().map(|range| range.end).max().unwrap_or(0);
            let open = Self { id, floor };
            // Rounded up, sizes near the limits of 64 bits could exceed them.
            let room = |body: &Body| {
                if let Some(place) = body.fixed {
                    return Some(u128::from(place.offset) + u128::from(body.extent));
                }
                let modulus = open.allowed(body)?.modulus;
                Some(2 * (u128::from(body.extent) + u128::from(modulus)))
            };
            let rooms: u128 = problem.bodies().iter().map(room).sum::<Option<_>>()?;
            (u128::from(floor) + rooms < u128::from(Bytes::MAX / 2)).then_some(open)
        })
    }

    /// The offsets there that a body allows.
    fn allowed(self, body: &Body) -> Option<AllowedPool> {
        body.pools.iter().find(|allowed| allowed.pool == self.id).copied()
    }

    /// The monitor of a packing that falls back to size classes. It reserves the time that they take.
    pub(crate) fn monitor<'a>(
        open: Option<Self>,
        problem: &Problem,
        limits: &Limits,
        observer: Observer<'a>,
    ) -> Monitor<'a> {
        let monitor = Monitor::new(limits, observer);
        if open.is_none() {
            return monitor;
        }
        monitor.keeping(time(problem)).without_grace()
    }

    /// Plans the problem.
    pub(crate) fn layout(self, problem: &Problem) -> Option<Layout> {
        Some(Layout::from_bodies(problem, problem.bodies(), &self.places(problem)?))
    }

    /// Places all bodies.
    pub(super) fn places(self, problem: &Problem) -> Option<Vec<Place>> {
        let bodies = problem.bodies();
        let BodyLifetimes { lives, bodies: body_of, .. } = problem.body_lives()?;
        let fixed = bodies.iter().filter_map(|body| Some((body.fixed?, body.extent)));
        let ends = fixed
            .filter(|(place, _)| place.pool == self.id)
            .map(|(place, extent)| place.offset + extent);
        let floor = ends.fold(self.floor, Bytes::max);
        // Bodies that need no bytes at any time stay where they are now.
        let lowest = |body: &Body| {
            let above = || Some(Place::new(self.id, self.allowed(body)?.round_up(floor)?));
            body.fixed.or_else(above)
        };
        let mut places: Vec<Place> = bodies.iter().map(lowest).collect::<Option<_>>()?;
        let stream =
            |body: &Body| problem.constraints().map(|all| all.of(body.members[0].0).stream);
        let (mut classes, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut all = Vec::with_capacity(lives.len());
        for (at, &of) in (0..).zip(body_of) {
            let body = &bodies[of as usize];
            if body.fixed.is_some() {
                continue;
            }
            let (allowed, size) = (self.allowed(body)?, body.extent);
            let class =
                *numbers.entry((allowed, stream(body), class_of(size))).or_insert_with(|| {
                    classes.push((allowed, 0, 0));
                    classes.len() - 1
                });
            let largest = &mut classes[class].1;
            *largest = size.max(*largest);
            let [begin, end] = [lives.begin(at), lives.end(at)].map(sum);
            let [at, class] = [at, class].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
            all.push(Life { begin, end, size, at, class });
        }
        let last = all.iter().map(|life| life.end).max().unwrap_or(0);
        let is_over = |last: u32, new: u32| {
            happens_before(lives.end(last as usize), lives.begin(new as usize))
        };
        let blocks = blocks(&all, last, is_over);
        let of_class = |life: &Life| life.class as usize;
        for (life, block) in all.iter().zip(&blocks) {
            let count = &mut classes[of_class(life)].2;
            *count = (block + 1).max(*count);
        }
        // From here on: by class, the distance between its blocks and the offset of the first.
        let mut top = floor;
        let classes: Vec<(Bytes, Bytes)> = classes
            .into_iter()
            .map(|(allowed, largest, count)| {
                let (size, base) =
                    (largest.next_multiple_of(allowed.modulus), allowed.round_up(top)?);
                top = base + size * count;
                Some((size, base))
            })
            .collect::<Option<_>>()?;
        for (life, block) in all.iter().zip(blocks) {
            let (size, base) = classes[of_class(life)];
            places[body_of[life.at as usize] as usize] = Place::new(self.id, base + size * block);
        }
        Some(places)
    }
}

/// Returns whether the [monitor](OpenPool::monitor) of a constrained problem leaves no time for a better plan.
pub(crate) fn is_late(problem: &Problem, monitor: &Monitor<'_>) -> bool {
    monitor.is_overdue() || monitor.left().is_some_and(|left| left < time(problem))
}

/// The time that planning a constrained problem and finishing the plan take: twice as long as for other problems.
fn time(problem: &Problem) -> Duration {
    u32::try_from(problem.bodies().len()).unwrap_or(u32::MAX) * TIME_PER_CHUNK * 2
}

/// The sum of a clock over all streams.
fn sum(clock: &[u32]) -> Step {
    clock.iter().map(|&step| Step::from(step)).sum()
}

#[cfg(test)]
mod tests {
    use std::{ops::Range, sync::atomic::AtomicBool};

    use super::*;
    use crate::{
        problem::ProblemBuilder,
        search::samples::{add_problem, random_problem, right_plan},
        seeds::times,
    };

    fn offsets(problem: &Problem) -> Vec<Bytes> {
        layout(problem).offsets
    }

    #[test]
    fn plans_in_size_classes_are_right_however_large_the_sizes_are() {
        let shift = [0, 8, 56];
        times(800, |random| {
            let small = random_problem(random)?;
            let shift = random.choose(&shift)?;
            let mut problem = Problem::builder().alignment(small.alignment());
            add_problem(&mut problem, &small, 0, *shift);
            let Ok(problem) = problem.build() else { return Ok(()) };
            right_plan(&problem, &layout(&problem));
            Ok(())
        });
    }

    /// Chunks of a class share a block, others do not. Smaller classes lie lower.
    #[test]
    fn a_block_is_shared_by_chunks_of_its_class() {
        for (size, expected) in
            [(80, [0, 0]), (79, [0, 0]), (65, [0, 0]), (64, [64, 0]), (81, [0, 80])]
        {
            let mut problem = Problem::builder();
            problem.chunk(0..1, 80);
            problem.chunk(1..2, size);
            assert_eq!(offsets(&problem.build().unwrap()), expected, "{size}");
        }
        // A block has room for the largest chunk of its class, whatever lies in it first.
        let mut problem = Problem::builder();
        problem.chunk(0..1, 65);
        problem.chunk(0..2, 7);
        problem.chunk(1..2, 80);
        problem.chunk(0..1, 66);
        assert_eq!(offsets(&problem.build().unwrap()), [7, 0, 87, 87]);
    }

    /// With few and with many chunks for each step.
    #[test]
    fn a_class_takes_as_few_blocks_as_chunks_are_alive_at_once() {
        times(1000, |random| {
            let mut problem = Problem::builder();
            let steps = *random.choose(&[4, 40, 4000])?;
            for _ in 0..random.int_in_range(1..=30)? {
                let begin = random.int_in_range(0..=steps)?;
                problem.chunk(begin..begin + random.int_in_range(1..=steps)?, 100);
            }
            let problem = problem.build().unwrap();
            assert_eq!(layout(&problem).pool_size(&problem), problem.lower_bound());
            Ok(())
        });
    }

    fn add(problem: &mut ProblemBuilder, size: Bytes, life: Range<[Step; 2]>) {
        let chunk = problem.chunk(0..1, size);
        problem.clocks(chunk, life.start, life.end, 0);
    }

    /// The layout of a search that is cancelled at once.
    fn late_layout(problem: &Problem, open: OpenPool) -> Layout {
        let cancel = AtomicBool::new(true);
        let observer = Observer::default().cancel(&cancel);
        let monitor = OpenPool::monitor(Some(open), problem, &Limits::default(), observer);
        assert!(is_late(problem, &monitor));
        open.layout(problem).unwrap()
    }

    #[test]
    fn plans_in_size_classes_on_streams_are_right() {
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
            let Some(open) = OpenPool::of(&problem) else { return Ok(()) };
            let plan = right_plan(&problem, &late_layout(&problem, open));
            shared += u32::from(plan.pool_size < plan.naive_size);
            Ok(())
        };
        times(1500, one);
        assert!(shared > 0);
    }

    /// On one stream, with pins, reserved ranges and holes. Some chunks allow only the second pool, which has no
    /// capacity.
    #[test]
    fn plans_in_size_classes_around_pins_and_reserved_bytes_are_right() {
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
            let Some(open) = OpenPool::of(&problem) else {
                refused += u32::from(problem.bodies().len() > MAX_SINGLY);
                return Ok(());
            };
            assert_eq!(open, OpenPool { id: large, floor: low + 32 });
            let plan = right_plan(&problem, &late_layout(&problem, open));
            shared += u32::from(plan.pool_size < plan.naive_size);
            pinned += problem.bodies().iter().filter(|body| body.fixed.is_some()).count();
            Ok(())
        };
        times(1500, one);
        assert!(shared > 0 && pinned > 0 && refused > 0, "{shared} {pinned} {refused}");
    }

    /// On streams, a block is taken again by a chunk of its class that begins, on every stream, when the last one is
    /// over. All blocks lie above the reserved bytes.
    #[test]
    fn a_block_is_shared_by_chunks_that_follow_each_other_on_every_stream() {
        for (size, begin, shares) in
            [(80, [1, 1], true), (65, [1, 1], true), (81, [1, 1], false), (80, [0, 2], false)]
        {
            let mut problem = Problem::builder();
            problem.streams(2);
            add(&mut problem, 80, [0, 0]..[1, 1]);
            add(&mut problem, size, begin..[3, 3]);
            let problem = problem.build().unwrap();
            let places = OpenPool { id: PoolId(0), floor: 1000 }.places(&problem).unwrap();
            let next = if shares { 1000 } else { 1080 };
            let offsets = places.iter().map(|place| place.offset);
            assert_eq!(offsets.collect::<Vec<_>>(), [1000, next], "{size}, {begin:?}");
        }
    }

    #[test]
    fn many_bodies_share_the_first_pool_without_limits_that_all_allow() {
        let found = |bodies: usize, constrain: &dyn Fn(&mut ProblemBuilder)| {
            let mut problem = Problem::builder();
            problem.streams(2);
            for _ in 0..bodies {
                add(&mut problem, 8, [0, 0]..[1, 1]);
            }
            constrain(&mut problem);
            OpenPool::of(&problem.build().unwrap()).map(|pool| (pool.id.0, pool.floor))
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
        let check = |constrain: &dyn Fn(&mut ProblemBuilder), expected: Option<(u16, Bytes)>| {
            assert_eq!(found(MAX_SINGLY + 1, constrain), expected);
            assert_eq!(found(2, constrain), None);
        };
        check(&|_| (), Some((0, 0)));
        check(&with(Pool::new("a")), Some((0, 0)));
        check(&with(Pool::new("a").reserved(0..8)), Some((0, 8)));
        check(&with(Pool::new("a").capacity(1 << 20)), None);
        check(&with(Pool::new("a").largest(64)), None);
        check(&pinned, Some((0, 0)));
        check(&apart, None);
        check(&huge, None);
        check(&two(1), Some((1, 0)));
        check(&two(0), None);
    }
}
