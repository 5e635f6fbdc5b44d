//! First packings: bodies in some order, each at its lowest free offset.
//!
//! Large bodies first is best on most networks, large areas or long lives on some; all are tried.

use crate::{
    Bytes, Step,
    planner::{Layout, range_tree::Maxima, search::state::occupancy::Occupancy},
    problem::{ChunkId, Problem, Segment},
};

/// The bodies of a problem with what an order is made of.
pub(super) struct Greedy<'a> {
    problem: &'a Problem,
    bodies: Vec<Body>,
    occupancy: Occupancy,
}

pub(super) struct Body {
    root: ChunkId,
    size: Bytes,
    begin: Step,
    end: Step,
    /// The most bytes alive in any step of its life.
    crowd: Bytes,
    segments: Vec<Segment>,
}

/// The key of an order: the larger comes first, field by field.
pub(super) type Key = fn(&Body) -> (u128, u128, u128);

const KEYS: [Key; 7] = [
    |b| (b.size.into(), b.life(), 0),
    |b| (b.crowd.into(), b.size.into(), b.life()),
    |b| (b.crowd.into(), b.life(), b.size.into()),
    |b| (b.crowd.into(), b.area(), 0),
    |b| (b.life(), b.size.into(), 0),
    |b| (b.area(), b.size.into(), 0),
    |b| (b.life(), b.crowd.into(), b.size.into()),
];

/// Of more bodies than this, only the first orders are tried.
const MANY: usize = 5000;

/// A packing that looks at more runs of taken bytes is given up: seconds of work. Networks stay far
/// below, random lives of 10^5 chunks do not.
const MOST_WORK: u64 = 300_000_000;

impl Body {
    fn life(&self) -> u128 {
        (self.end - self.begin).into()
    }

    fn area(&self) -> u128 {
        self.life() * u128::from(self.size)
    }
}

impl<'a> Greedy<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let crowds = Crowds::new(problem);
        let bodies: Vec<Body> = problem
            .roots()
            .map(|root| {
                let around = problem.bounding_box(root);
                Body {
                    root,
                    size: around.high,
                    begin: around.begin,
                    end: around.end,
                    crowd: crowds.most(around.begin, around.end),
                    segments: problem.segments(root).collect(),
                }
            })
            .collect();
        let begins = bodies.iter().flat_map(|body| &body.segments).map(|s| s.begin);
        let occupancy = Occupancy::new(begins);
        Self { problem, bodies, occupancy }
    }

    /// The keys of the orders to try, the most promising one first.
    pub(super) fn orders(&self) -> &'static [Key] {
        if self.bodies.len() > MANY { &KEYS[..2] } else { &KEYS }
    }

    /// Packs all bodies in an order, unless that takes too much work.
    pub(super) fn pack(&mut self, key: Key) -> Option<Layout> {
        self.place(&self.order(key), None)
    }

    /// The roots of all bodies that live in a step where at least so much is alive.
    pub(super) fn crowded(&self, live: Bytes) -> Vec<ChunkId> {
        self.bodies.iter().filter(|b| b.crowd >= live).map(|b| b.root).collect()
    }

    /// Keeps the offsets of some roots and places the others around them, unless that takes too much
    /// work.
    pub(super) fn complete(&mut self, kept: &[(ChunkId, Bytes)]) -> Option<Layout> {
        let mut bases = vec![None; self.problem.len()];
        for &(root, base) in kept {
            bases[root.index()] = Some(base);
        }
        self.place(&self.order(KEYS[1]), Some(&bases))
    }

    fn order(&self, key: Key) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.bodies.len()).collect();
        order.sort_by_key(|&b| std::cmp::Reverse(key(&self.bodies[b])));
        order
    }

    /// Each body at its lowest free offset, or, before all others, where it is kept.
    fn place(&mut self, order: &[usize], kept: Option<&[Option<Bytes>]>) -> Option<Layout> {
        let mut bases = vec![0; self.problem.len()];
        let kept = |b: usize| kept.and_then(|kept| kept[self.bodies[b].root.index()]);
        let first = order.iter().filter(|&&b| kept(b).is_some());
        let then = order.iter().filter(|&&b| kept(b).is_none());
        self.occupancy.clear();
        for &b in first.chain(then) {
            let Body { root, segments, .. } = &self.bodies[b];
            let base = kept(b).unwrap_or_else(|| self.occupancy.lowest(segments, self.problem));
            bases[root.index()] = base;
            self.occupancy.take(segments, base);
            if self.occupancy.work > MOST_WORK {
                return None;
            }
        }
        Some(Layout::from_roots(self.problem, |root| bases[root.index()]))
    }
}

/// The most live bytes in any range of steps.
struct Crowds {
    /// The steps at which the number of live bytes changes.
    steps: Vec<Step>,
    /// The live bytes from each of them on.
    live: Maxima<Bytes>,
}

impl Crowds {
    fn new(problem: &Problem) -> Self {
        let (mut steps, mut live) = (Vec::new(), Vec::new());
        problem.sweep_live_bytes(|at| {
            steps.push(at.step);
            live.push(at.bytes);
        });
        Self { steps, live: Maxima::of(&live) }
    }

    fn most(&self, begin: Step, end: Step) -> Bytes {
        let first = self.steps.partition_point(|&s| s <= begin).saturating_sub(1);
        let end = self.steps.partition_point(|&s| s < end);
        if first < end { self.live.largest(first, end - 1).unwrap_or(0) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::search::samples::random_problem;

    /// The bytes alive in a step.
    fn live(problem: &Problem, step: Step) -> Bytes {
        let segments = problem.roots().flat_map(|root| problem.segments(root));
        let live = segments.filter(|s| (s.begin..s.end).contains(&step));
        live.map(|s| s.high - s.low).sum()
    }

    #[test]
    fn of_many_bodies_only_the_first_orders_are_tried() {
        for (bodies, orders) in [(MANY, KEYS.len()), (MANY + 1, 2)] {
            let mut problem = Problem::builder();
            for at in 0..bodies as u64 {
                problem.chunk(at..at + 1, 1);
            }
            assert_eq!(Greedy::new(&problem.build().unwrap()).orders().len(), orders);
        }
    }

    #[test]
    fn a_body_knows_its_life_its_size_and_its_crowd() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let greedy = Greedy::new(&problem);
            assert!(greedy.orders().len() == KEYS.len());
            for body in &greedy.bodies {
                let steps = body.begin..body.end;
                assert_eq!(body.life(), (body.end - body.begin).into());
                assert_eq!(body.area(), body.life() * u128::from(body.size));
                if problem.alignment() == 1 {
                    let crowd = steps.map(|step| live(&problem, step)).max();
                    assert_eq!(Some(body.crowd), crowd, "{problem:#?}");
                }
            }
            let most = greedy.bodies.iter().map(|body| body.crowd).max().unwrap_or(0);
            let lows: Vec<ChunkId> =
                greedy.bodies.iter().filter(|b| b.crowd == most).map(|b| b.root).collect();
            assert_eq!(greedy.crowded(most), lows);
            assert_eq!(greedy.crowded(0).len(), greedy.bodies.len());
            assert_eq!(greedy.crowded(most + 1), []);
            Ok(())
        });
    }

    /// Returns whether two placed roots share bytes.
    fn shares(problem: &Problem, (a, at): (ChunkId, Bytes), (b, other): (ChunkId, Bytes)) -> bool {
        problem.segments(a).any(|s| {
            problem.segments(b).any(|o| {
                let in_time = s.begin < o.end && o.begin < s.end;
                in_time && at + s.low < other + o.high && other + o.low < at + s.high
            })
        })
    }

    #[test]
    fn every_body_lies_as_low_as_those_before_it_allow() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let mut greedy = Greedy::new(&problem);
            for &key in greedy.orders() {
                let mut order: Vec<&Body> = greedy.bodies.iter().collect();
                order.sort_by_key(|body| std::cmp::Reverse(key(body)));
                let order: Vec<ChunkId> = order.into_iter().map(|body| body.root).collect();
                let layout = greedy.pack(key).unwrap();
                for (at, &root) in order.iter().enumerate() {
                    let stands = |base| {
                        let before = order[..at].iter().map(|&root| (root, layout.offset(root)));
                        !before.into_iter().any(|old| shares(&problem, (root, base), old))
                    };
                    let mut bases = (0..).map(|turn| turn * problem.alignment());
                    assert_eq!(bases.find(|&base| stands(base)), Some(layout.offset(root)));
                }
                // Kept where they are, a few of them are stood around by the others.
                let some: Vec<(ChunkId, Bytes)> =
                    order.iter().step_by(2).map(|&root| (root, layout.offset(root) + 64)).collect();
                let completed = greedy.complete(&some).unwrap();
                assert!(some.iter().all(|&(root, base)| completed.offset(root) == base));
                let all: Vec<(ChunkId, Bytes)> =
                    order.iter().map(|&root| (root, completed.offset(root))).collect();
                for (at, &body) in all.iter().enumerate() {
                    assert!(!all[..at].iter().any(|&other| shares(&problem, body, other)));
                }
            }
            Ok(())
        })
        .budget_ms(200);
    }
}
