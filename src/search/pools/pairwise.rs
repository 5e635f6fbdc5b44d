//! Ejection where pairs of bodies clash: on several streams, where no steps tell which bodies are alive together, and
//! in one pool with holes, windows or parts.
//!
//! Under a limit, the bodies of the last packing that end above the limit wait; all others stay. The waiting bodies are
//! placed one after the other, the heaviest first, each where the bodies in its way weigh least. These are ejected, and
//! then wait too (ejection chains; Glover 1996). The weight of a body is its extent, times the number of bodies that it
//! clashes with, times one more than the number of times that it was ejected.

use crate::search::sizes::{MAX_CLASHES, WORK_PER_NODE};
use std::{borrow::Cow, collections::BinaryHeap};

use crate::{
    Bytes, Limits,
    monitor::Monitor,
    plan::Layout,
    problem::constraints::Place,
    search::{
        clashes::{Clash, Clashes},
        control::{
            descent::{self, Attempt, Attempts, Packer},
            meter::{Meter, Watch},
        },
        effort::on_top,
        first_fit::Packed,
        incumbent::Incumbent,
        pool_instance::{OverlapFinder, PoolInstance},
        pools::{cliques::Graph, shelf::clashes},
        ranges::merge,
        solution::near,
        state::fingerprint::scramble,
    },
};

/// The limits to try, in 64ths of the gap between the bound and the best packing.
const LEVELS: [u64; 4] = [32, 48, 56, 60];

/// A first attempt gets this many times the nodes that it takes to place all bodies.
const PLACINGS: u64 = 20;

/// On one stream, the nodes on top of the effort are spent until the pool exceeds the bound by at most the bound
/// divided by this.
const NEAR: Bytes = 400;

/// The most nodes on top of the effort, which take about a second.
const MAX_ON_TOP: u64 = 750_000;

/// Problems with more boxes are not packed, because all pairs of boxes are compared.
const MAX_BOXES: usize = 4000;

/// Bodies whose packing could reach this height are not packed, because offsets and their differences must fit in
/// `i64`.
const HIGHEST: Bytes = 1 << 60;

/// Ranges that are examined in the time of a node.
const CLASHES_PER_NODE: u64 = 16;

/// The largest weight of a body that was never ejected, so that sums of weights fit in 64 bits.
const HEAVIEST: u64 = 1 << 43;

/// Ejection for bodies each of which may clash with some others.
pub struct Pairwise<'a> {
    instance: &'a PoolInstance<'a>,
    clashes: Cow<'a, Clashes>,
    /// By body: its offset in the last packing.
    packed: Vec<i64>,
    /// By body: its offset, unless it waits.
    offsets: Vec<Option<i64>>,
    /// By body: its [`weight`](Self::weight), times one more than the number of times that it was ejected.
    weights: Vec<u64>,
    nodes: u64,
    seed: u64,
}

impl<'a> Pairwise<'a> {
    /// Returns `None` if there are several pools, pins, reserved ranges or overlaps, or if there are too many bodies,
    /// or too large ones.
    pub fn new(instance: &'a PoolInstance<'a>) -> Option<Self> {
        let ([pool], bodies) = (instance.pools, instance.bodies) else { return None };
        let is_free = bodies.iter().all(|body| body.fixed.is_none() && body.pools.len() == 1);
        let boxes = instance.boxes.iter().flatten().count();
        let known = match &instance.overlaps {
            OverlapFinder::Pairs(clashes) => Some(clashes),
            _ => None,
        };
        let is_few = boxes <= MAX_BOXES || known.is_some();
        let is_simple = is_few && pool.largest.is_none() && pool.reserved.is_empty();
        // Each pair of bodies would look for its members in all groups.
        let has_groups = !instance.apart().is_empty();
        if !is_free || !is_simple || has_groups {
            return None;
        }
        // No packing is higher than this, so all offsets fit in 63 bits.
        let highest = bodies.iter().fold(0, |sum: Bytes, body| {
            sum.saturating_add(body.extent).saturating_add(body.pools[0].modulus)
        });
        if highest >= HIGHEST {
            return None;
        }
        let (clashes, compared) = match known {
            Some(clashes) => (Cow::Borrowed(clashes), 0),
            None => (Cow::Owned(all_clashes(instance)?), boxes * boxes / 2),
        };
        Some(Self {
            instance,
            clashes,
            packed: Vec::new(),
            offsets: Vec::new(),
            weights: Vec::new(),
            nodes: compared as u64 / WORK_PER_NODE,
            seed: 0,
        })
    }

    /// A lower bound of the pool, in bytes: `bound`, or if more, the bytes of bodies any two of which lie side by side.
    pub fn bound(&self, bound: Bytes) -> Bytes {
        let bodies = self.instance.bodies;
        let sizes: Vec<(Bytes, Bytes)> =
            bodies.iter().map(|body| self.instance.problem.sizes_alone(body)).collect();
        let beside = |body: usize| {
            let clashes = self.clashes.0[body].iter();
            let is_whole = move |clash: &&Clash| {
                clash.other < body
                    && clash.low <= -self.extent(body)
                    && clash.high >= self.extent(clash.other)
            };
            clashes.filter(is_whole).map(move |clash| (clash.other, body))
        };
        // The set that is heaviest in bytes need not be the one that is heaviest in cells of the alignment.
        let heaviest = |size: fn(&(Bytes, Bytes)) -> Bytes| {
            let weights: Vec<Bytes> = sizes.iter().map(size).collect();
            Graph::new(&weights, (0..bodies.len()).flat_map(beside)).heaviest(0)
        };
        let plain = heaviest(|size| size.0);
        let is_aligned = sizes.iter().any(|&(plain, aligned)| aligned > plain);
        let aligned = if is_aligned { heaviest(|size| size.1) } else { 0 };
        bound.max(self.instance.problem.bytes_beside(plain, aligned))
    }

    /// Improves a packing until the budget is spent, and then with more nodes on top while the pool is not
    /// [near](NEAR) the bound; returns the nodes.
    pub fn improve(
        &mut self,
        best: &mut Packed,
        bound: Bytes,
        (budget, more): (u64, u64),
        monitor: &mut Monitor<'_>,
    ) -> u64 {
        self.descend(best, (bound, bound), budget, monitor);
        // On several streams, the bound is seldom this close to the best pool.
        let near = match self.instance.streams() {
            1 => bound.saturating_add(bound / NEAR),
            _ => near(bound),
        };
        if more > 0 && best.objective[1] > near.into() && !monitor.stopped() {
            self.descend(best, (bound, near), budget.saturating_add(more), monitor);
        }
        self.nodes
    }

    /// The nodes that come on top of the effort.
    pub fn on_top(&self, limits: &Limits) -> u64 {
        on_top(self.share(), MAX_ON_TOP, limits)
    }

    /// Packs all bodies below lower and lower limits, until this many nodes are spent or the pool is small enough.
    fn descend(
        &mut self,
        best: &mut Packed,
        (bound, enough): (Bytes, Bytes),
        nodes: u64,
        monitor: &mut Monitor<'_>,
    ) {
        self.packed = best.places.iter().map(|place| place.offset.cast_signed()).collect();
        let (instance, size) = (self.instance, self.height());
        let attempts = Attempts { levels: &LEVELS, share: self.share(), enough };
        let incumbent = Incumbent::new(bound, size);
        let mut watch = Watch::new(monitor, &incumbent, 1);
        let left = nodes.saturating_sub(self.nodes);
        descent::descend(
            &incumbent,
            attempts,
            self,
            &mut Meter::new(&mut watch).part(self.nodes, left),
        );
        if let Some(offsets) = incumbent.into_offsets() {
            let pools = best.places.iter().map(|place| place.pool);
            let places: Vec<Place> =
                pools.zip(offsets).map(|(pool, offset)| Place::new(pool, offset)).collect();
            let layout = Layout::from_bodies(instance.problem, instance.bodies, &places);
            (best.places, best.objective) = (places, layout.objective(instance.problem));
        }
    }

    /// The nodes of a first attempt.
    fn share(&self) -> u64 {
        let placing: u64 = self.clashes.0.iter().map(|clashes| nodes(clashes.len())).sum();
        placing * PLACINGS
    }

    fn extent(&self, body: usize) -> i64 {
        self.instance.bodies[body].extent.cast_signed()
    }

    /// The weight of a body that was never ejected.
    fn weight(&self, body: usize) -> u64 {
        let extent = self.instance.bodies[body].extent;
        extent.saturating_mul(self.clashes.0[body].len() as u64).min(HEAVIEST)
    }

    /// The lowest allowed offset that is not below this one.
    fn round_up(&self, body: usize, offset: i64) -> i64 {
        let allowed = self.instance.bodies[body].pools[0];
        allowed.round_up(offset.max(0).cast_unsigned()).map_or(i64::MAX, u64::cast_signed)
    }

    /// Places a body below a limit, where the bodies in its way weigh least, and returns those, which are ejected;
    /// `None` if the body is too large.
    fn place(&mut self, body: usize, limit: i64) -> Option<Vec<usize>> {
        let highest = limit - self.extent(body);
        let lowest = self.round_up(body, 0);
        if lowest > highest {
            return None;
        }
        let clashes = &self.clashes.0[body];
        self.nodes += nodes(clashes.len());
        let modulus = self.instance.bodies[body].pools[0].modulus.cast_signed();
        // The weight of the bodies in the way changes at the ends of these ranges.
        let mut changes: Vec<(i64, u64, bool)> = Vec::with_capacity(2 * clashes.len());
        let mut tried = vec![lowest];
        for clash in clashes {
            let Some(at) = self.offsets[clash.other] else { continue };
            let (low, high) = (at + clash.low, at + clash.high);
            if high <= lowest {
                continue;
            }
            let weight = self.weights[clash.other];
            // The first offset that clashes, and the first above that does not.
            changes.push((low + 1, weight, true));
            changes.push((high, weight, false));
            tried.push(self.round_up(body, high));
            let below = self.round_up(body, low);
            tried.push(if below > low { below - modulus } else { below });
        }
        changes.sort_unstable();
        tried.retain(|offset| (lowest..=highest).contains(offset));
        tried.sort_unstable();
        tried.dedup();
        let mut changes = changes.into_iter().peekable();
        let (mut sum, mut least, mut ties, mut chosen) = (0, u64::MAX, 0, lowest);
        for offset in tried {
            while let Some((_, weight, begins)) = changes.next_if(|change| change.0 <= offset) {
                sum = if begins { sum + weight } else { sum - weight };
            }
            ties = if sum == least { ties + 1 } else { 1 };
            self.seed += u64::from(sum == least);
            if sum < least || sum == least && scramble(self.seed).is_multiple_of(ties) {
                (least, chosen) = (sum, offset);
            }
            if sum == 0 {
                break;
            }
        }
        let is_hit = |clash: &&Clash| {
            let other = self.offsets[clash.other];
            other.is_some_and(|at| at + clash.low < chosen && chosen < at + clash.high)
        };
        let mut ejected: Vec<usize> =
            clashes.iter().filter(is_hit).map(|clash| clash.other).collect();
        ejected.dedup();
        self.offsets[body] = Some(chosen);
        Some(ejected)
    }
}

/// The clashes of all bodies; `None` if they are too many.
fn all_clashes(instance: &PoolInstance<'_>) -> Option<Clashes> {
    let count = instance.bodies.len();
    let mut all = Clashes(vec![Vec::new(); count]);
    let mut kept = 0;
    for second in 0..count {
        for first in 0..second {
            let mut ranges = clashes(instance, first, second);
            merge(&mut ranges);
            kept += ranges.len();
            all.add(first, second, &ranges);
        }
        if kept > MAX_CLASHES {
            return None;
        }
    }
    Some(all)
}

/// The nodes of placing a body with this many clashes.
fn nodes(clashes: usize) -> u64 {
    1 + clashes as u64 / CLASHES_PER_NODE
}

impl Packer for Pairwise<'_> {
    fn nodes(&self) -> u64 {
        self.nodes
    }

    fn pack(&mut self, attempt: Attempt, meter: &mut Meter<'_>) -> bool {
        let limit = attempt.limit.cast_signed();
        let mut order: Vec<usize> = (0..self.packed.len()).collect();
        order.sort_by_key(|&body| self.packed[body]);
        let fits = |body: usize| self.packed[body] + self.extent(body) <= limit;
        self.offsets =
            (0..order.len()).map(|body| fits(body).then_some(self.packed[body])).collect();
        self.weights = (0..self.packed.len()).map(|body| self.weight(body)).collect();
        // No weight changes while its body waits.
        let mut waiting: BinaryHeap<(u64, usize)> = order
            .into_iter()
            .filter(|&body| self.offsets[body].is_none())
            .map(|body| (self.weights[body], body))
            .collect();
        while let Some((_, body)) = waiting.pop() {
            if meter.is_over(self.nodes) {
                return false;
            }
            let Some(ejected) = self.place(body, limit) else { return false };
            for other in ejected {
                self.offsets[other] = None;
                let weight = self.weight(other);
                self.weights[other] = self.weights[other].saturating_add(weight).min(HEAVIEST);
                waiting.push((self.weights[other], other));
            }
        }
        self.packed = self.offsets.iter().flatten().copied().collect();
        true
    }

    fn floor(&self) -> u64 {
        let top = |body| self.round_up(body, 0) + self.extent(body);
        (0..self.packed.len()).map(top).max().unwrap_or(0).cast_unsigned()
    }

    fn height(&self) -> u64 {
        let top = |body| self.packed[body] + self.extent(body);
        (0..self.packed.len()).map(top).max().unwrap_or(0).cast_unsigned()
    }

    fn offsets(&self) -> Vec<u64> {
        self.packed.iter().map(|&offset| offset.cast_unsigned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{
        Limits, Observer, Problem, Step, Strategy,
        bodies::concurrent,
        problem::ChunkId,
        search::{first_fit, pools::NODES, samples::dice},
    };

    /// Operators on two streams that wait for each other now and then. Each makes a chunk that lives for a while, or
    /// until the next one of its stream is written over it.
    fn problem(seed: u64) -> Problem {
        let mut roll = dice(seed);
        let mut problem = Problem::builder().alignment(1 << (2 * (seed % 3)));
        problem.streams(2);
        let mut last: [[Step; 2]; 2] = [[0; 2]; 2];
        let mut waiting: [Option<(ChunkId, Bytes)>; 2] = [None; 2];
        for _ in 0..60 {
            let own = usize::try_from(roll(2)).unwrap();
            let old = waiting[own].take();
            let begin = match roll(4) {
                0 if old.is_none() => [last[0][0].max(last[1][0]), last[0][1].max(last[1][1])],
                _ => last[own],
            };
            let mut end = begin;
            end[own] += 1;
            last[own] = end;
            let size = 1 + roll(old.map_or(100, |(_, size)| size));
            let chunk = problem.chunk(0..1, size);
            let life = if roll(3) == 0 {
                waiting[own] = Some((chunk, size));
                end[own] += 1;
                end
            } else {
                [end[0] + roll(8), end[1] + roll(8)]
            };
            problem.clocks(chunk, begin, life, own);
            if let Some((old, _)) = old {
                problem.overwrite(chunk, old, 0);
            }
        }
        problem.build().unwrap()
    }

    #[test]
    fn bodies_with_an_alignment_of_almost_64_bits_are_left_alone() {
        for (alignment, is_taken) in [(1 << 50, true), (1 << 62, false)] {
            let mut problem = Problem::builder();
            problem.streams(2);
            for _ in 0..3 {
                let (whole, part) = (problem.chunk(0..1, 9), problem.chunk(0..1, 1));
                for chunk in [whole, part] {
                    problem.clocks(chunk, [0, 0], [1, 1], 0);
                }
                problem.align(part, alignment).part(part, whole, 4);
            }
            let problem = problem.build().unwrap();
            assert_eq!(
                Pairwise::new(&PoolInstance::of(&problem)).is_some(),
                is_taken,
                "{alignment}"
            );
        }
    }

    /// By default, more nodes come on top of the budget. They make no pool larger, and some smaller.
    #[test]
    fn nodes_come_on_top_of_a_default_budget() {
        let mut gained = 0;
        for seed in 0..6 {
            let problem = problem(seed);
            let instance = PoolInstance::of(&problem);
            let mut monitor = Monitor::new(&Limits::default(), Observer::default());
            let first = first_fit::packed(&instance, &mut monitor).unwrap();
            let bound = problem.lower_bound();
            let given = Limits::default().nodes(2_000);
            let [given, default] = [given, Limits::default()].map(|limits| {
                let mut packed = first.clone();
                let mut pairwise = Pairwise::new(&instance).unwrap();
                let more = pairwise.on_top(&limits);
                let nodes = pairwise.improve(&mut packed, bound, (2_000, more), &mut monitor);
                assert!(nodes < 3_000 + more, "{nodes} with {more} on top");
                packed.objective[1]
            });
            assert!(default <= given, "{default} after {given}");
            gained += u32::from(default < given);
        }
        assert!(gained > 0);
    }

    /// The whole search gives them by default.
    #[test]
    fn the_default_effort_packs_lower_than_the_same_effort_when_it_is_given() {
        let problem = holes(300, 120, 1);
        let pool = |limits: Limits| {
            let layout = Strategy::Best.layout(&problem, &limits, Observer::default()).unwrap();
            layout.pool_size(&problem)
        };
        let given = pool(Limits::default().nodes(NODES));
        assert!(pool(Limits::default()) < given, "{given}");
    }

    /// Chunks of which one in three needs no bytes in the middle of its life.
    fn with_holes(seed: u64) -> Problem {
        holes(100, 20, seed)
    }

    /// This many chunks over the same number of steps, each with a life of up to `lives + 2` steps.
    fn holes(chunks: u64, lives: u64, seed: u64) -> Problem {
        let mut roll = dice(seed);
        let mut problem = Problem::builder().alignment(1 << (2 * (seed % 3)));
        for _ in 0..chunks {
            let begin = roll(chunks);
            let end = begin + 3 + roll(lives);
            let chunk = problem.chunk(begin..end, 1 + roll(400));
            if roll(3) == 0 {
                problem.hole(chunk, begin + 1 + roll(end - begin - 2)..end - 1);
            }
        }
        problem.build().unwrap()
    }

    #[rstest]
    #[case::streams(problem)]
    #[case::holes(with_holes)]
    fn ejection_packs_lower_than_first_fit_and_no_two_bodies_clash(
        #[case] make: fn(u64) -> Problem,
    ) {
        let (mut before, mut after, mut several) = (0, 0, 0);
        for seed in 0..6 {
            let problem = make(seed);
            let instance = PoolInstance::of(&problem);
            several += instance.boxes.iter().filter(|boxes| boxes.len() > 1).count();
            let mut monitor = Monitor::new(&Limits::default(), Observer::default());
            let mut packed = first_fit::packed(&instance, &mut monitor).unwrap();
            let bound = problem.lower_bound();
            before += packed.objective[1];
            let mut pairwise = Pairwise::new(&instance).unwrap();
            let nodes = pairwise.improve(&mut packed, bound, (20_000, 0), &mut monitor);
            assert!(nodes < 22_000, "{nodes}");
            after += packed.objective[1];
            let all: Vec<_> = (0..instance.bodies.len())
                .flat_map(|at| instance.boxes[at].iter().map(move |one| (at, one)))
                .collect();
            for &(x, p) in &all {
                let at = packed.places[x].offset;
                assert!(at.is_multiple_of(problem.alignment()));
                for &(y, q) in &all {
                    let other = packed.places[y].offset;
                    let is_apart = at + p.bytes.end <= other + q.bytes.start
                        || other + q.bytes.end <= at + p.bytes.start;
                    assert!(x == y || !concurrent(p, q) || is_apart, "{x} and {y} of {seed}");
                }
            }
        }
        // By more than a percent.
        assert!(after * 100 < before * 99, "{after} after {before}");
        assert!(several > 30, "{several} bodies of several boxes");
    }
}
