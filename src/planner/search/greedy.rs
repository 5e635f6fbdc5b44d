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
    segments: Vec<Segment>,
}

impl<'a> Greedy<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let bodies = problem
            .roots()
            .map(|root| {
                let around = problem.bounding_box(root);
                let segments = problem.segments(root).collect();
                Body { root, size: around.high, begin: around.begin, end: around.end, segments }
            })
            .collect();
        Self { problem, bodies }
    }

    /// The best of all orders, or the first that is good enough.
    pub(super) fn best(&self, enough: Bytes) -> Layout {
        let keys: [fn(&Body) -> (u128, u128); 4] = [
            |b| (b.size.into(), (b.end - b.begin).into()),
            |b| (u128::from(b.size) * u128::from(b.end - b.begin), b.size.into()),
            |b| ((b.end - b.begin).into(), b.size.into()),
            |b| (u128::from(u64::MAX - b.begin), b.size.into()),
        ];
        let mut best = (Bytes::MAX, Layout::default());
        for key in keys {
            let mut order: Vec<usize> = (0..self.bodies.len()).collect();
            order.sort_by_key(|&b| std::cmp::Reverse(key(&self.bodies[b])));
            let layout = self.place(&order);
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

    /// Each body at its lowest free offset.
    fn place(&self, order: &[usize]) -> Layout {
        let mut bases = vec![0; self.problem.len()];
        let mut placed: Vec<Placed> = Vec::with_capacity(order.len());
        for &b in order {
            let body = &self.bodies[b];
            let base = match body.segments[..] {
                [only] => self.lowest(&placed, &only),
                _ => self.lowest_odd(&placed, &body.segments),
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
            for p in placed.iter().filter(|p| p.begin < s.end && s.begin < p.end && p.high > s.low) {
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
