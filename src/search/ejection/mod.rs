//! Ejection: bodies that do not fit below a limit eject others, which are placed again elsewhere.
//!
//! Under a limit, bodies are first placed from the most crowded section outwards, in both directions of time.
//! Each is placed in the gap that it fills best, next to bodies that end at about the same time (or, before the most
//! crowded section, begin at about the same time), so that the space that they leave is in one piece.
//!
//! Bodies that fit into no gap wait. They are then placed one after the other, each where the bodies in its way weigh
//! least. These are ejected, and either fit into other gaps or wait too (ejection chains; Glover 1996). The weight of a
//! body is its area, with each section scaled by a high power of its live bytes, so that in the end the waiting bodies
//! live in sections with room to spare. The weight of a body grows each time it finds no gap. Now and then, all placed
//! bodies settle, upwards and downwards in turn, which merges the space between them. Under the next lower limit,
//! only the bodies that end above it wait; all others stay.
//!
//! Bodies without sections are given by their clashes instead, with a packing to begin with.
//!
//! Bodies that cannot move are never ejected. The method suits problems with a little room to spare. It proves nothing,
//! and it rarely finds packings without waste, which are left to the other searches.

mod strip;

use std::ops::RangeInclusive;

use crate::{
    monitor::Monitor,
    search::{
        clashes::Clashes,
        control::{
            descent::{Attempt, Attempts, Packer},
            meter::Meter,
        },
        effort::ON_TOP,
        engine::{Engine, Share},
        packing::Packing,
        random::Random,
        ranges::Grid,
        sizes::{LONG, MAX_KEPT, WORK_PER_NODE},
        solution::near,
        state::instance::{Fixed, Instance, Item, Part},
    },
};
use strip::{Block, End, SORT_PASSES, Strip};

/// The limits to try, in 64ths of the gap between the bound and the best packing: small steps, because each attempt
/// begins with the packing below the limit before it.
const LEVELS: [u64; 3] = [56, 60, 62];

/// A first attempt has this many times the nodes that placing all bodies takes.
const PLACINGS: u64 = 32;

/// Attempts with a limit from here on are not made.
const HIGH: i64 = 1 << 40;

/// The weight of a section is its live bytes squared this many times, for more than [`LONG`] rectangles and for others.
const SQUARINGS_OF_LONG: usize = 7;
const SQUARINGS: usize = 5;

/// The bits of the sum of all weights.
const TOTAL_BITS: u32 = 44;

/// The weight of a body that cannot move, above every sum of other weights.
const HEAVIEST: u64 = 1 << 62;

/// A body that finds no gap gains one in this many parts of its first weight: in instances, and where pairs clash.
const GROWTH: u64 = 16;
const GROWTH_OF_PAIRS: u64 = 4;

/// The ends of lives to compare, to place a body next to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Begins,
    Ends,
    Either,
}

/// The bodies of an instance, most of which can move.
#[derive(Default)]
pub struct Ejection {
    strip: Strip,
    /// The number that the instance gives to each body of the strip.
    numbers: Vec<usize>,
    align: i64,
    limit: i64,
    /// The section with the most live bytes.
    peak: u32,
    /// The bodies that can move, in the order of first placing.
    order: Vec<usize>,
    /// The first weight of each body.
    weights: Vec<u64>,
    growth: u64,
    /// The mean size of the bodies.
    size: i64,
    /// Their mean number of sections.
    life: i64,
    random: Random,
    /// By body of the strip: its offset in the last packing.
    packed: Option<Vec<Option<i64>>>,
    /// Below this height, bodies that cannot move leave some body no place.
    floor: i64,
}

impl Engine for Ejection {
    /// Repacks all bodies if the pool is more than a percent above the bound. The nodes on top are spent only while it
    /// still is.
    fn run(&mut self, packing: &mut Packing<'_>, share: Share, monitor: &mut Monitor<'_>) -> u64 {
        let before = self.nodes();
        let first = self.share();
        let on_top = share.on_top.min(first.saturating_mul(ON_TOP));
        let all = share.nodes.saturating_add(on_top);
        if packing.is_near() || self.placing() > all {
            return 0;
        }
        for (most, enough) in [(share.nodes, 0), (all, near(packing.bound()))] {
            let enough = enough / packing.inst().unit;
            let attempts = Attempts { levels: &LEVELS, share: first, enough };
            let left = most.saturating_sub(self.nodes() - before);
            packing.descend(self, attempts, left, monitor);
        }
        self.nodes() - before
    }
}

impl Ejection {
    /// Returns `None` if there are too many bodies, too high ones, or too many pairs that share a section.
    pub fn new(inst: &Instance) -> Option<Self> {
        let (bodies, numbers) = bodies(inst);
        let mut fixed_at = vec![None; bodies.len()];
        for &Fixed { body, offset } in &inst.fixed {
            fixed_at[body as usize] = Some(i64::try_from(offset).ok()?);
        }
        let fixed: Vec<_> = numbers.iter().map(|&number| fixed_at[number]).collect();
        let stack = bodies.iter().flatten().map(|part| part.high);
        let stack = stack.fold(inst.align, u64::saturating_add);
        let is_small = bodies.len() < MAX_KEPT && stack < 1 << 48;
        let is_low = inst.bound() < HIGH.unsigned_abs() / 2;
        if bodies.len() <= inst.fixed.len() || !is_small || !is_low {
            return None;
        }
        let align = i64::try_from(inst.align).ok()?;
        let live = inst.live();
        let peak = (0..).zip(&live).max_by_key(|&(_, live)| live).map_or(0, |(section, _)| section);
        let is_rectangle = |parts: &Vec<Part>| matches!(parts[..], [Part { low: 0, .. }]);
        let is_long = bodies.len() > LONG && bodies.iter().all(is_rectangle);
        let squarings = if is_long { SQUARINGS_OF_LONG } else { SQUARINGS };
        let weights = weights(areas(&bodies, &live, squarings), &fixed);
        let strip = Strip::new(bodies, fixed, align)?;
        let mut order = outwards(&strip.items, peak);
        order.retain(|&body| strip.fixed[body].is_none());
        let tops = (strip.items.iter().zip(&strip.fixed))
            .map(|(item, fixed)| fixed.unwrap_or(0) + strip.aligned(item.size));
        let count = strip.items.len() as u64;
        let mean = |sum: u64| i64::try_from(sum / count).unwrap_or(i64::MAX).max(1);
        let lives = strip.items.iter().map(|item| item.sections().len() as u64);
        Some(Self {
            align,
            peak,
            order,
            numbers,
            weights,
            growth: GROWTH,
            size: mean(strip.items.iter().map(|item| item.size).sum()),
            life: mean(lives.sum()),
            floor: tops.max().unwrap_or(0),
            strip,
            ..Self::default()
        })
    }

    /// Improves a packing of bodies without sections, given by their sizes, allowed offsets and fixed offsets, their
    /// clashes, and their offsets in the packing.
    pub fn of_clashes(
        bodies: Vec<(u64, Grid, Option<i64>)>,
        clashes: Clashes,
        packed: &[u64],
    ) -> Self {
        let sizes = bodies.iter().map(|body| u128::from(body.0));
        let area = |(size, clashes): (u128, &Vec<_>)| size * (clashes.len() as u128).pow(2);
        let areas = sizes.zip(&clashes.0).map(area).collect();
        let packed: Vec<_> = packed.iter().map(|offset| Some(offset.cast_signed())).collect();
        let mut strip = Strip::of_clashes(bodies, clashes);
        strip.offsets.clone_from(&packed);
        let bodies = 0..strip.items.len();
        let top = |body: usize| {
            strip.fixed[body].unwrap_or(strip.lowest(body)) + strip.aligned(strip.items[body].size)
        };
        Self {
            align: 1,
            order: bodies.clone().filter(|&body| strip.fixed[body].is_none()).collect(),
            numbers: bodies.clone().collect(),
            weights: weights(areas, &strip.fixed),
            growth: GROWTH_OF_PAIRS,
            size: 1,
            life: 1,
            packed: Some(packed),
            floor: bodies.map(top).max().unwrap_or(0),
            strip,
            ..Self::default()
        }
    }

    /// Somewhat more than the nodes that placing all bodies once takes.
    pub fn placing(&self) -> u64 {
        self.strip.pairs * 2 * (1 + SORT_PASSES) / WORK_PER_NODE as u64
    }

    /// The nodes of a first attempt.
    pub fn share(&self) -> u64 {
        self.placing() * PLACINGS
    }

    /// The highest offset of a body.
    fn highest(&self, body: usize) -> i64 {
        self.strip.highest(body, self.limit)
    }

    /// Places a body in the free gap that suits it best; returns false if there is none. `again` says that the body is
    /// likely to be placed again soon, so that its clashes are kept.
    fn place(&mut self, body: usize, by: Match, again: bool) -> bool {
        self.strip.look_at(body, self.highest(body), again);
        self.strip.sort(End::Low);
        let offset = self.best_gap(body, by);
        self.strip.offsets[body] = offset;
        offset.is_some()
    }

    /// The best offset for a body in a free gap. The last look must have been at this body, with its blocks sorted by
    /// their low ends.
    fn best_gap(&self, body: usize, by: Match) -> Option<i64> {
        let highest = self.highest(body);
        let item = self.strip.items[body];
        let apart = |block: &Block| {
            let other = self.strip.items[block.body];
            let (begins, ends) = (other.first.abs_diff(item.first), other.end.abs_diff(item.end));
            match by {
                Match::Begins => begins,
                Match::Ends => ends,
                Match::Either => begins.min(ends),
            }
        };
        // Half of the mean size is worth as much as the mean life apart.
        let distance = |apart: u32| i128::from(apart) * i128::from(self.size) / 2;
        let mut best: Option<(i128, i64)> = None;
        let mut consider = |cost: i128, offset: i64| {
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, offset));
            }
        };
        let (mut at, mut below) = (self.strip.lowest(body), 0);
        let mut blocks = self.strip.sorted(End::Low).peekable();
        loop {
            let low = blocks.peek().map_or(highest, |block| block.low);
            if low >= at {
                let there = blocks.clone().take_while(|block| block.low == low);
                let above = there.map(apart).min().unwrap_or(0);
                let room = i128::from(low - at) * i128::from(self.life);
                if room == 0 {
                    let exact = 2 * i128::from(self.life) * i128::from(self.size);
                    consider(i128::midpoint(distance(below), distance(above)) - exact, at);
                } else {
                    consider(room + distance(below), at);
                    consider(room + distance(above), low);
                }
            }
            let Some(block) = blocks.next() else { break };
            if block.high > at {
                (at, below) = (block.high, apart(block));
            } else if block.high == at {
                below = below.min(apart(block));
            }
        }
        best.map(|(_, offset)| offset)
    }

    /// Places a body where the bodies in its way weigh least; ejects and returns these. [`place`](Self::place) must
    /// have failed for it just before. Returns `None` if a body that cannot move is in the way at every offset.
    fn force(&mut self, body: usize, weights: &[u64]) -> Option<Vec<usize>> {
        let best = self.lightest(self.strip.lowest(body)..=self.highest(body), weights)?;
        let blocks = self.strip.sorted(End::Low);
        let in_way = blocks.filter(|block| block.low < best && best < block.high);
        let ejected: Vec<usize> = in_way.map(|block| block.body).collect();
        for &other in &ejected {
            self.strip.offsets[other] = None;
        }
        self.strip.offsets[body] = Some(best);
        Some(ejected)
    }

    /// The offset in a range at which the bodies in the way weigh least, for the body of the last look.
    fn lightest(&mut self, offsets: RangeInclusive<i64>, weights: &[u64]) -> Option<i64> {
        self.strip.sort(End::High);
        let begins = self.strip.sorted(End::Low).peekable();
        let (mut begun, mut later) = (begins.clone(), begins);
        let mut ends = self.strip.sorted(End::High).peekable();
        let weight = |block: &Block| u128::from(weights[block.body]);
        let (mut at, highest) = offsets.into_inner();
        let mut cost = 0;
        let (mut least, mut found, mut best) = (u128::from(HEAVIEST) - 1, 0, None);
        // The cost is least where a block begins or ends, or at an end of the range. (`next_if` would not be inlined.)
        while at <= highest {
            while let Some(block) = begun.peek().filter(|block| block.low < at) {
                cost += weight(block);
                begun.next();
            }
            while let Some(block) = ends.peek().filter(|block| block.high <= at) {
                cost -= weight(block);
                ends.next();
            }
            if cost < least {
                (least, found) = (cost, 0);
            }
            if cost == least {
                found += 1;
                if self.random.below(found) == 0 {
                    best = Some(at);
                }
            }
            // Blocks that begin here are not in the way.
            while later.peek().is_some_and(|block| block.low <= at) {
                later.next();
            }
            let next = later.peek().map_or(highest, |block| block.low.min(highest));
            let next = ends.peek().map_or(next, |block| block.high.min(next));
            at = if at < highest { next } else { highest + 1 };
        }
        best
    }

    /// Moves all placed bodies up or down, one after the other, each as far as the others allow, until the search
    /// must end. If two staircases interlock, the first one to move is stopped by the other.
    fn settle(&mut self, up: bool, meter: &mut Meter<'_>) {
        let mut placed: Vec<(i64, usize)> = (self.order.iter())
            .filter_map(|&body| {
                let (offset, size) = (self.strip.offsets[body]?, self.strip.items[body].size);
                Some((if up { -(offset + self.strip.aligned(size)) } else { offset }, body))
            })
            .collect();
        placed.sort_unstable();
        for (_, body) in placed {
            let highest = self.highest(body);
            self.strip.look_at(body, highest, true);
            let mut offset = if up { highest } else { self.strip.lowest(body) };
            if up {
                self.strip.sort(End::High);
                for block in self.strip.sorted(End::High).rev() {
                    if block.high <= offset {
                        break;
                    }
                    offset = offset.min(block.low);
                }
            } else {
                self.strip.sort(End::Low);
                for block in self.strip.sorted(End::Low) {
                    if block.low >= offset {
                        break;
                    }
                    offset = offset.max(block.high);
                }
            }
            if meter.is_over(self.nodes()) {
                return;
            }
            self.strip.offsets[body] = Some(offset);
        }
    }

    /// Begins an attempt, with the last packing if there is one; returns the bodies that fit into no gap, or `None`
    /// if the search must end before.
    fn begin(&mut self, meter: &mut Meter<'_>) -> Option<Vec<usize>> {
        let mut waiting = Vec::new();
        if let Some(packed) = &self.packed {
            self.strip.offsets.clone_from(packed);
            for &body in &self.order {
                let highest = self.highest(body);
                let offset = &mut self.strip.offsets[body];
                if offset.is_some_and(|offset| offset > highest) {
                    *offset = None;
                    waiting.push(body);
                }
            }
            return Some(waiting);
        }
        self.strip.offsets.clone_from(&self.strip.fixed);
        for at in 0..self.order.len() {
            let body = self.order[at];
            let is_later = self.strip.items[body].end > self.peak;
            if !self.place(body, if is_later { Match::Ends } else { Match::Begins }, false) {
                waiting.push(body);
            }
            if meter.is_over(self.nodes()) {
                return None;
            }
        }
        Some(waiting)
    }

    /// The height of the last packing, a multiple of the alignment.
    pub fn height(&self) -> u64 {
        let offsets = self.strip.offsets.iter().map(|offset| offset.unwrap_or(0));
        let tops = offsets.zip(&self.strip.items);
        let tops = tops.map(|(offset, item)| offset + self.strip.aligned(item.size));
        tops.max().unwrap_or(0).unsigned_abs()
    }

    /// The offsets of the last packing, in units by body of the instance.
    fn offsets(&self) -> Vec<u64> {
        let mut offsets = vec![0; self.numbers.len()];
        for (&number, offset) in self.numbers.iter().zip(&self.strip.offsets) {
            offsets[number] = offset.unwrap_or(0).unsigned_abs();
        }
        offsets
    }
}

impl Packer for Ejection {
    fn nodes(&self) -> u64 {
        self.strip.work / WORK_PER_NODE as u64
    }

    fn pack(&mut self, attempt: Attempt, meter: &mut Meter<'_>) -> Option<(u64, Vec<u64>)> {
        // Even an attempt without a chance counts as a node.
        self.strip.work += WORK_PER_NODE as u64;
        let limit = i64::try_from(attempt.limit).unwrap_or(i64::MAX);
        self.limit = limit.div_euclid(self.align) * self.align;
        if limit >= HIGH || self.limit < self.floor {
            return None;
        }
        // The loops over offsets, weights and waiting bodies.
        self.strip.work += 3 * self.strip.items.len() as u64;
        self.random = Random::new(attempt.seed);
        let mut waiting = self.begin(meter)?;
        let mut weights = self.weights.clone();
        let until_settled = self.order.len() as u64;
        let mut forced = 0;
        while !waiting.is_empty() {
            let next = self.random.below(waiting.len());
            let body = waiting.swap_remove(next);
            if !self.place(body, Match::Either, true) {
                weights[body] += 1 + self.weights[body] / self.growth;
                let Some(mut ejected) = self.force(body, &weights) else {
                    self.floor = self.limit + self.align;
                    return None;
                };
                ejected.sort_by_key(|&other| std::cmp::Reverse(self.weights[other]));
                for other in ejected {
                    if !self.place(other, Match::Either, true) {
                        waiting.push(other);
                    }
                }
                forced += 1;
                if forced % until_settled == 0 {
                    self.settle(forced / until_settled % 2 == 1, meter);
                    waiting.retain(|&body| {
                        meter.is_over(self.nodes()) || !self.place(body, Match::Either, true)
                    });
                }
            }
            if meter.is_over(self.nodes()) {
                return None;
            }
        }
        self.packed = Some(self.strip.offsets.clone());
        Some((self.height(), self.offsets()))
    }

    fn floor(&self) -> u64 {
        self.floor.unsigned_abs()
    }
}

/// The parts of all bodies of an instance, by first section, and the number that the instance gives to each body.
fn bodies(inst: &Instance) -> (Vec<Vec<Part>>, Vec<usize>) {
    let mut bodies: Vec<(Vec<Part>, usize)> = inst.parts().zip(0..).collect();
    bodies.sort_by_key(|(parts, _)| parts.first().map(|part| part.first));
    bodies.into_iter().unzip()
}

/// The area of each body, where a section counts by a power of its live bytes.
fn areas(bodies: &[Vec<Part>], live: &[u64], squarings: usize) -> Vec<u128> {
    let most = u128::from(live.iter().copied().max().unwrap_or(0).max(1));
    let mut sum = 0;
    let mut before = vec![0];
    for &live in live {
        // A fraction of the most live bytes, in 2^-32.
        let crowd = (u128::from(live) << 32) / most;
        sum += (0..squarings).fold(crowd, |crowd, _| (crowd * crowd) >> 32);
        before.push(sum);
    }
    let area = |part: &Part| {
        u128::from(part.high - part.low) * (before[part.end as usize] - before[part.first as usize])
    };
    bodies.iter().map(|parts| parts.iter().map(area).sum()).collect()
}

/// The weight of each body: its share of the sum of all areas; the most if it cannot move.
fn weights(areas: Vec<u128>, fixed: &[Option<i64>]) -> Vec<u64> {
    let unit = (areas.iter().sum::<u128>() >> TOTAL_BITS).max(1);
    let weight = |(area, fixed): (u128, &Option<i64>)| match fixed {
        Some(_) => HEAVIEST,
        None => 1 + u64::try_from(area / unit).unwrap_or(0),
    };
    areas.into_iter().zip(fixed).map(weight).collect()
}

/// The bodies from the most crowded section outwards: first those that live in it, by begin; then all others, the
/// nearest first. The distance of a later body counts from its begin, that of an earlier one from its end.
fn outwards(items: &[Item], peak: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&body| {
        let Item { first, end, .. } = items[body];
        if first > peak {
            (first - peak, 0)
        } else if end > peak {
            (0, first)
        } else {
            (peak - end + 1, 0)
        }
    });
    order
}

#[cfg(test)]
mod tests;
