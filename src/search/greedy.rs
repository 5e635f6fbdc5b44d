//! Greedy packings: bodies in some order, each at its lowest free offset.
//!
//! Large bodies first is best on most networks, large areas or long lifetimes on some; all are
//! tried.

use crate::search::sizes::{LARGE, MAX_WORK, TIME_PER_CHUNK, WORK_PER_NODE};

use smallvec::SmallVec;

use crate::{
    Bytes, Step,
    budget::{Budget, Stop},
    monitor::Monitor,
    plan::Layout,
    problem::{ChunkId, Problem, Segment},
    search::{Solution, live_maxima::LiveMaxima, state::occupancy::Occupancy},
};

/// The bodies of a problem, with the figures that orders sort by.
pub(super) struct Greedy<'a> {
    problem: &'a Problem,
    bodies: Vec<Body>,
    occupancy: Occupancy,
    /// The number of runs of taken bytes examined so far, in all packings; a body counts for several.
    pub(super) work: u64,
}

pub(super) struct Body {
    root: ChunkId,
    size: Bytes,
    begin: Step,
    end: Step,
    /// The most bytes alive in any step of its life.
    live: Bytes,
    /// Usually one; several for a staircase.
    segments: SmallVec<[Segment; 1]>,
}

/// The key of an order: the larger comes first, field by field.
pub(super) type Key = fn(&Body) -> (u128, u128, u128);

const KEYS: [Key; 7] = [
    |b| (b.size.into(), b.life(), 0),
    |b| (b.live.into(), b.size.into(), b.life()),
    |b| (b.live.into(), b.life(), b.size.into()),
    |b| (b.live.into(), b.area(), 0),
    |b| (b.life(), b.size.into(), 0),
    |b| (b.area(), b.size.into(), 0),
    |b| (b.life(), b.live.into(), b.size.into()),
];

/// The keys of the orders in which to complete a packing of some bodies.
pub(super) const COMPLETING: [Key; 2] = [KEYS[1], KEYS[3]];

impl Body {
    fn new(problem: &Problem, root: ChunkId, live: &LiveMaxima) -> Self {
        let around = problem.bounding_box(root);
        Self {
            root,
            size: around.high,
            begin: around.begin,
            end: around.end,
            live: live.most(around.begin, around.end),
            segments: problem.segments(root).collect(),
        }
    }

    fn life(&self) -> u128 {
        (self.end - self.begin).into()
    }

    fn area(&self) -> u128 {
        self.life() * u128::from(self.size)
    }
}

impl<'a> Greedy<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let roots: Vec<ChunkId> = problem.roots().collect();
        Self::of(problem, &roots, &LiveMaxima::new(problem))
    }

    /// Prepares packings of a problem, to improve a solution; `None` if there is no time for that.
    pub(super) fn within(
        problem: &'a Problem,
        solution: &Solution,
        monitor: &mut Monitor<'_>,
    ) -> Option<Self> {
        let time = u32::try_from(problem.len()).unwrap_or(u32::MAX) * TIME_PER_CHUNK;
        let is_short = |monitor: &Monitor<'_>| monitor.left().is_some_and(|left| left < time);
        if is_short(monitor) || monitor.stop(0, solution.lower_bound, solution.pool_size) {
            return None;
        }
        let live = LiveMaxima::new(problem);
        let mut budget = monitor.budget();
        let body = |root| {
            budget.spend(WORK_PER_NODE).ok()?;
            Some(Body::new(problem, root, &live))
        };
        let bodies = problem.roots().map(body).collect::<Option<_>>()?;
        (!is_short(monitor)).then(|| Self::of_bodies(problem, bodies))
    }

    /// Creates packings of some of the bodies of a problem.
    pub(super) fn of(problem: &'a Problem, roots: &[ChunkId], live: &LiveMaxima) -> Self {
        let bodies = roots.iter().map(|&root| Body::new(problem, root, live)).collect();
        Self::of_bodies(problem, bodies)
    }

    fn of_bodies(problem: &'a Problem, bodies: Vec<Body>) -> Self {
        let begins = bodies.iter().flat_map(|body| &body.segments).map(|s| s.begin);
        let occupancy = Occupancy::new(begins);
        Self { problem, bodies, occupancy, work: 0 }
    }

    /// The keys of the orders to try, the most promising one first, and the other orders of many bodies, to try if a
    /// short search does not help.
    pub(super) fn orders(&self) -> (&'static [Key], &'static [Key]) {
        KEYS.split_at(if self.bodies.len() > LARGE { 2 } else { KEYS.len() })
    }

    /// Keeps some offsets, given by body, and places the other bodies around them in an order, below a limit; returns
    /// the offsets by body. `None` if a body ends at the limit or above it.
    ///
    /// # Errors
    ///
    /// If the budget does not suffice.
    pub(super) fn pack(
        &mut self,
        key: Key,
        kept: &[Option<Bytes>],
        below: Bytes,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<Bytes>>, Stop> {
        self.place(&self.order(key), kept, below, budget)
    }

    /// The highest aligned end of the first bodies, with these offsets.
    pub(super) fn top(&self, bases: &[Bytes]) -> Bytes {
        let bodies = self.bodies.iter().zip(bases);
        let tops = bodies.map(|(body, base)| self.problem.align_up(base + body.size));
        tops.max().unwrap_or(0)
    }

    /// The roots of all bodies that live in a step where at least this many bytes are alive.
    pub(super) fn crowded(&self, live: Bytes) -> Vec<ChunkId> {
        self.bodies.iter().filter(|b| b.live >= live).map(|b| b.root).collect()
    }

    /// Keeps the offsets of some roots and places the others around them: by live bytes and size, then by live bytes
    /// and area. With at most [`LARGE`] bodies, the first packing ignores the budget, so that a search that is stopped
    /// does not lose what it has found.
    pub(super) fn complete(
        &mut self,
        kept: &[(ChunkId, Bytes)],
        budget: Budget<'_>,
    ) -> impl Iterator<Item = Layout> {
        let mut by_root = vec![None; self.problem.len()];
        for &(root, base) in kept {
            by_root[root.index()] = Some(base);
        }
        let around: Vec<Option<Bytes>> =
            self.bodies.iter().map(|body| by_root[body.root.index()]).collect();
        let mut quick = (self.bodies.len() <= LARGE).then(Budget::default);
        // With nothing to place, another order changes nothing.
        let orders = if kept.len() == self.bodies.len() { &COMPLETING[..1] } else { &COMPLETING };
        orders.iter().map_while(move |&key| {
            let budget = quick.take().unwrap_or_else(|| budget.clone());
            let mut budget = budget.at_most(MAX_WORK);
            let bases = self.pack(key, &around, Bytes::MAX, &mut budget).ok().flatten()?;
            Some(self.layout(&bases))
        })
    }

    /// Places the bodies at their lowest free offsets, in the order of the given offsets. If those are a
    /// packing of rectangles, the pool does not grow: bodies at or below their old offsets leave the old
    /// offsets of those above them free.
    pub(super) fn settle(&mut self, offset: impl Fn(ChunkId) -> Bytes) -> Option<Layout> {
        let mut order: Vec<usize> = (0..self.bodies.len()).collect();
        order.sort_by_key(|&b| offset(self.bodies[b].root));
        let bases = self.place(&order, &[], Bytes::MAX, &mut Budget::default()).ok()??;
        Some(self.layout(&bases))
    }

    /// The layout of these offsets, given by body.
    pub(super) fn layout(&self, bases: &[Bytes]) -> Layout {
        let roots = self.bodies.iter().map(|body| body.root);
        Layout::of_bases(self.problem, roots.zip(bases.iter().copied()))
    }

    fn order(&self, key: Key) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.bodies.len()).collect();
        order.sort_by_cached_key(|&b| std::cmp::Reverse(key(&self.bodies[b])));
        order
    }

    /// Places each body at its lowest free offset, or, before all others, where it is kept; otherwise as
    /// [`pack`](Self::pack).
    fn place(
        &mut self,
        order: &[usize],
        kept: &[Option<Bytes>],
        below: Bytes,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<Bytes>>, Stop> {
        let mut bases = vec![0; self.bodies.len()];
        let kept = |b: usize| kept.get(b).copied().flatten();
        let first = order.iter().filter(|&&b| kept(b).is_some());
        let then = order.iter().filter(|&&b| kept(b).is_none());
        self.occupancy.clear();
        for &b in first.chain(then) {
            let before = self.occupancy.work;
            let segments = &self.bodies[b].segments;
            let base = kept(b).unwrap_or_else(|| self.occupancy.lowest(segments, self.problem));
            bases[b] = base;
            self.occupancy.take(segments, base);
            let work = self.occupancy.work - before + WORK_PER_NODE as u64;
            self.work += work;
            if base.saturating_add(self.bodies[b].size) >= below {
                return Ok(None);
            }
            budget.spend(usize::try_from(work).unwrap_or(usize::MAX))?;
        }
        Ok(Some(bases))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{
        search::samples::{random_problem, right_plan},
        seeds::times,
    };

    fn packed(greedy: &mut Greedy<'_>, key: Key) -> Layout {
        let bases = greedy.pack(key, &[], Bytes::MAX, &mut Budget::default()).unwrap().unwrap();
        greedy.layout(&bases)
    }

    /// Chunks of a few bytes, each of which shares a step with the next.
    fn overlapping(chunks: u64) -> Problem {
        let mut problem = Problem::builder();
        for at in 0..chunks {
            problem.chunk(at..at + 2, 1 + at % 7);
        }
        problem.build().unwrap()
    }

    /// The bytes alive in a step.
    fn live(problem: &Problem, step: Step) -> Bytes {
        let segments = problem.roots().flat_map(|root| problem.segments(root));
        let live = segments.filter(|s| (s.begin..s.end).contains(&step));
        live.map(|s| s.high - s.low).sum()
    }

    #[test]
    fn of_many_bodies_only_the_first_orders_are_tried_at_first() {
        for (bodies, orders) in [(LARGE, KEYS.len()), (LARGE + 1, 2)] {
            let mut problem = Problem::builder();
            for at in 0..bodies as u64 {
                problem.chunk(at..at + 1, 1);
            }
            let problem = problem.build().unwrap();
            let (first, others) = Greedy::new(&problem).orders();
            assert_eq!([first.len(), others.len()], [orders, KEYS.len() - orders]);
        }
    }

    #[test]
    fn a_body_has_its_lifetime_size_and_live_bytes() {
        times(500, |random| {
            let problem = random_problem(random)?;
            let greedy = Greedy::new(&problem);
            for body in &greedy.bodies {
                let steps = body.begin..body.end;
                assert_eq!(body.life(), (body.end - body.begin).into());
                assert_eq!(body.area(), body.life() * u128::from(body.size));
                if problem.alignment() == 1 {
                    let most = steps.map(|step| live(&problem, step)).max();
                    assert_eq!(Some(body.live), most, "{problem:#?}");
                }
            }
            let most = greedy.bodies.iter().map(|body| body.live).max().unwrap_or(0);
            let lows: Vec<ChunkId> =
                greedy.bodies.iter().filter(|b| b.live == most).map(|b| b.root).collect();
            assert_eq!(greedy.crowded(most), lows);
            assert_eq!(greedy.crowded(0).len(), greedy.bodies.len());
            assert_eq!(greedy.crowded(most + 1), []);
            Ok(())
        });
    }

    #[test]
    fn every_body_lies_as_low_as_those_before_it_allow() {
        times(400, |random| {
            let problem = random_problem(random)?;
            let mut greedy = Greedy::new(&problem);
            for &key in greedy.orders().0 {
                let layout = packed(&mut greedy, key);
                let mut order: Vec<&Body> = greedy.bodies.iter().collect();
                order.sort_by_key(|body| std::cmp::Reverse(key(body)));
                let begins = order.iter().flat_map(|body| &body.segments).map(|s| s.begin);
                let mut before = Occupancy::new(begins);
                for Body { root, segments, .. } in &order {
                    assert_eq!(before.lowest(segments, &problem), layout.offset(*root));
                    before.take(segments, layout.offset(*root));
                }
                // Half of the bodies are kept where they are, and the others are placed around
                // them.
                let roots = order.iter().step_by(2).map(|body| body.root);
                let some: Vec<(ChunkId, Bytes)> =
                    roots.map(|root| (root, layout.offset(root) + 64)).collect();
                for completed in greedy.complete(&some, Budget::default()) {
                    assert!(some.iter().all(|&(root, base)| completed.offset(root) == base));
                    right_plan(&problem, &completed);
                }
            }
            Ok(())
        });
    }

    /// Rectangles that are lifted off each other sink back without growing the pool.
    #[test]
    fn settled_rectangles_never_need_a_larger_pool() {
        times(600, |random| {
            let mut problem = Problem::builder();
            for _ in 0..random.int_in_range(0..=12)? {
                let begin = random.int_in_range(0..=11)?;
                let end = begin + random.int_in_range(1..=5)?;
                problem.chunk(begin..end, random.int_in_range(1..=9)?);
            }
            let problem = problem.build().unwrap();
            let mut greedy = Greedy::new(&problem);
            for &key in greedy.orders().0 {
                let packed = packed(&mut greedy, key);
                let round_up = random.int_in_range(1..=9)?;
                let settled = greedy.settle(|root| packed.offset(root) * round_up).unwrap();
                assert!(settled.pool_size(&problem) <= packed.pool_size(&problem));
                right_plan(&problem, &settled);
            }
            Ok(())
        });
    }

    #[test]
    fn packing_ends_with_its_budget() {
        let problem = overlapping(1000);
        let mut greedy = Greedy::new(&problem);
        let key = greedy.orders().0[0];
        let packing = packed(&mut greedy, key);
        let work = greedy.work;
        let mut within = |work| {
            let mut budget = Budget::default().at_most(work);
            greedy.pack(key, &[], Bytes::MAX, &mut budget)
        };
        assert_eq!(within(work), Ok(Some(packing.offsets)));
        assert_eq!(within(work - 1), Err(Stop::OutOfWork));
        assert_eq!(within(WORK_PER_NODE as u64), Err(Stop::OutOfWork));
        let cancel = AtomicBool::new(true);
        let mut budget = Budget::until(None, Some(&cancel));
        assert_eq!(greedy.pack(key, &[], Bytes::MAX, &mut budget), Err(Stop::Cancelled));
    }

    #[test]
    fn packing_gives_up_where_the_pool_is_too_large() {
        let problem = overlapping(10);
        let mut greedy = Greedy::new(&problem);
        for &key in greedy.orders().0 {
            let packing = packed(&mut greedy, key);
            let pool = packing.pool_size(&problem);
            let before = greedy.work;
            let mut below = |limit| greedy.pack(key, &[], limit, &mut Budget::default()).unwrap();
            assert_eq!([pool + 1, pool, 1].map(&mut below), [Some(packing.offsets), None, None]);
            assert!(greedy.work > before);
        }
    }

    /// A search that was stopped still completes what it has found.
    #[test]
    fn a_found_packing_is_completed_although_the_time_is_over() {
        let problem = overlapping(1000);
        let mut greedy = Greedy::new(&problem);
        let key = greedy.orders().0[0];
        let packing = packed(&mut greedy, key);
        for kept in [problem.len(), 10] {
            let kept = problem.ids().take(kept).map(|id| (id, packing.offsets[id.index()]));
            let kept: Vec<(ChunkId, Bytes)> = kept.collect();
            let completed: Vec<Layout> = greedy.complete(&kept, Budget::of_looks(0)).collect();
            assert_eq!(completed.len(), 1);
            assert!(kept.iter().all(|&(id, offset)| completed[0].offsets[id.index()] == offset));
        }
    }
}
