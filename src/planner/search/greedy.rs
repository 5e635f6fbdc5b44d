//! First packings: bodies in some order, each at its lowest free offset.
//!
//! Large bodies first is best on most networks, large areas or long lives on some; all are tried.

use crate::{
    Bytes, Step,
    planner::{Layout, search::taken::Taken},
    problem::{ChunkId, Problem, Segment},
};

/// The bodies of a problem with what an order is made of.
pub(super) struct Greedy<'a> {
    problem: &'a Problem,
    bodies: Vec<Body>,
    taken: Taken,
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

/// What an order puts first: the larger, field by field.
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
        let taken = Taken::nothing(begins);
        Self { problem, bodies, taken }
    }

    /// What orders put first, the most promising one first.
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
        self.taken.clear();
        for &b in first.chain(then) {
            let Body { root, segments, .. } = &self.bodies[b];
            let base = kept(b).unwrap_or_else(|| self.taken.lowest(segments, self.problem));
            bases[root.index()] = base;
            self.taken.take(segments, base);
            if self.taken.work > MOST_WORK {
                return None;
            }
        }
        Some(Layout::from_roots(self.problem, |root| bases[root.index()]))
    }
}

/// The most live bytes in any range of steps.
struct Crowds {
    /// Where the number of live bytes changes.
    steps: Vec<Step>,
    /// A tree of maxima: the live bytes from `steps[i]` on are its leaf `steps.len() + i`, and the
    /// children of node `i` are `2 * i` and `2 * i + 1`.
    most: Vec<Bytes>,
}

impl Crowds {
    fn new(problem: &Problem) -> Self {
        let (mut steps, mut live) = (Vec::new(), Vec::new());
        problem.sweep_live_bytes(|step, bytes| {
            steps.push(step);
            live.push(bytes);
        });
        let mut most = vec![0; steps.len()];
        most.append(&mut live);
        for node in (1..steps.len()).rev() {
            most[node] = most[2 * node].max(most[2 * node + 1]);
        }
        Self { steps, most }
    }

    fn most(&self, begin: Step, end: Step) -> Bytes {
        let leaves = self.steps.len();
        let mut from = leaves + self.steps.partition_point(|&s| s <= begin).saturating_sub(1);
        let mut to = leaves + self.steps.partition_point(|&s| s < end);
        let mut most = 0;
        while from < to {
            if from % 2 == 1 {
                most = most.max(self.most[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                most = most.max(self.most[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        most
    }
}
