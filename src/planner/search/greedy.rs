//! First packings: bodies in some order, each at its lowest free offset.
//!
//! Large bodies first is best on most networks, large areas or long lives on
//! some; all are tried.

use crate::{
    Bytes, Step,
    planner::Layout,
    problem::{ChunkId, Problem, Segment},
};

/// The bodies of a problem with what an order is made of.
pub(super) struct Greedy<'a> {
    problem: &'a Problem,
    bodies: Vec<Body>,
}

struct Body {
    root: ChunkId,
    size: Bytes,
    begin: Step,
    end: Step,
    /// The most bytes alive in any step of its life.
    crowd: Bytes,
    segments: Vec<Segment>,
}

/// What an order puts first: the larger, field by field.
type Key = fn(&Body) -> (u128, u128, u128);

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
        let bodies = problem
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
        Self { problem, bodies }
    }

    /// The best of all orders, or the first that is good enough.
    pub(super) fn best(&self, enough: Bytes) -> Layout {
        let orders = if self.bodies.len() > MANY { 2 } else { KEYS.len() };
        let mut best = (Bytes::MAX, Layout::default());
        for key in &KEYS[..orders] {
            let layout = self.place(&self.order(*key), None);
            let size = layout.pool_size(self.problem);
            if size < best.0 {
                best = (size, layout);
            }
            if best.0 <= enough {
                break;
            }
        }
        best.1
    }

    /// The roots of all bodies that live in a step where at least so much is alive.
    pub(super) fn crowded(&self, live: Bytes) -> Vec<ChunkId> {
        self.bodies.iter().filter(|b| b.crowd >= live).map(|b| b.root).collect()
    }

    /// Keeps the offsets of some roots and places the others around them.
    pub(super) fn complete(&self, kept: &[(ChunkId, Bytes)]) -> Layout {
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
    fn place(&self, order: &[usize], kept: Option<&[Option<Bytes>]>) -> Layout {
        let mut bases = vec![0; self.problem.len()];
        let mut placed: Vec<Placed> = Vec::with_capacity(order.len());
        let kept = |b: usize| kept.and_then(|kept| kept[self.bodies[b].root.index()]);
        let first = order.iter().filter(|&&b| kept(b).is_some());
        let then = order.iter().filter(|&&b| kept(b).is_none());
        for &b in first.chain(then) {
            let body = &self.bodies[b];
            let base = match (kept(b), &body.segments[..]) {
                (Some(base), _) => base,
                (None, [only]) => self.lowest(&placed, only),
                (None, segments) => self.lowest_odd(&placed, segments),
            };
            bases[body.root.index()] = base;
            for s in &body.segments {
                let (low, high) = (base + s.low, base + s.high);
                let at = placed.partition_point(|p| p.low < low);
                placed.insert(at, Placed { low, high, begin: s.begin, end: s.end });
            }
        }
        Layout::from_roots(self.problem, |root| bases[root.index()])
    }

    /// The lowest free offset of a rectangle; what is placed comes by its lowest byte.
    fn lowest(&self, placed: &[Placed], body: &Segment) -> Bytes {
        let mut base: Bytes = 0;
        for p in placed.iter().filter(|p| p.begin < body.end && body.begin < p.end) {
            if p.low >= base + body.high {
                break;
            }
            base = base.max(self.problem.align_up(p.high));
        }
        base
    }

    fn lowest_odd(&self, placed: &[Placed], segments: &[Segment]) -> Bytes {
        // Offsets from the first to before the second are taken.
        let mut taken: Vec<(Bytes, Bytes)> = Vec::new();
        for s in segments {
            for p in placed.iter().filter(|p| p.begin < s.end && s.begin < p.end && p.high > s.low)
            {
                taken.push(((p.low + 1).saturating_sub(s.high), p.high - s.low));
            }
        }
        taken.sort_unstable();
        let mut base: Bytes = 0;
        for (from, to) in taken {
            if from > base {
                break;
            }
            base = base.max(self.problem.align_up(to));
        }
        base
    }
}

/// A placed segment.
struct Placed {
    low: Bytes,
    high: Bytes,
    begin: Step,
    end: Step,
}

/// The most live bytes in any range of steps.
struct Crowds {
    /// Where the number of live bytes changes.
    steps: Vec<Step>,
    /// `most[k][i]`: the most from `steps[i]` over `2^k` of them.
    most: Vec<Vec<Bytes>>,
}

impl Crowds {
    fn new(problem: &Problem) -> Self {
        let (mut steps, mut row) = (Vec::new(), Vec::new());
        problem.sweep_live_bytes(|step, bytes| {
            steps.push(step);
            row.push(bytes);
        });
        let mut most = vec![row];
        let mut width = 1;
        while width * 2 <= steps.len() {
            let Some(last) = most.last() else { break };
            let row = (0..=steps.len() - width * 2).map(|i| last[i].max(last[i + width])).collect();
            most.push(row);
            width *= 2;
        }
        Self { steps, most }
    }

    fn most(&self, begin: Step, end: Step) -> Bytes {
        let from = self.steps.partition_point(|&s| s <= begin).saturating_sub(1);
        let to = self.steps.partition_point(|&s| s < end).max(from + 1);
        let level = (to - from).ilog2() as usize;
        match self.most.get(level) {
            Some(row) => row[from].max(row[to - (1 << level)]),
            None => 0,
        }
    }
}
