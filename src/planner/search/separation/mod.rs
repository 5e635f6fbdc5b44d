//! Separation: bodies under a limit may overlap at first, and move one at a time until none does.
//!
//! The bodies of the most crowded steps are inserted first, each where it overlaps the others least.
//! If an overlap is left, the bodies that overlap move in turn, each to the height at which its
//! overlaps weigh least. An overlap that stays weighs more after each turn, so that
//! sooner or later others give way (guided local search; Egeblad, Nielsen, Odgaard 2007, for strip
//! packing). Times are fixed, so the best height of a body is found exactly: its overlaps with
//! all others are a piecewise linear function of its height.
//!
//! This suits long staircases with a little room to spare. It proves nothing, and it rarely finds
//! packings without waste, which are left to the other searches.

mod meetings;

use super::{
    control::descent::{Attempt, Packer},
    random::Random,
    state::instance::{Instance, Item, Part},
};
use meetings::{LIGHT, Meeting, meetings, signed};

/// Problems whose stack of all bodies is higher are not searched.
const FAR: u64 = 1 << 48;

/// The highest weight of a meeting.
const HEAVY: i64 = 1 << 32;

/// After this many turns, the bodies are packed in the order of their offsets, which often resolves
/// the last overlaps.
const TURNS: u64 = 16;

/// The limits to try, in 64ths of the gap between the bound and the best packing.
pub const RUNGS: [u64; 2] = [44, 58];

/// An attempt has this many times the nodes that inserting all bodies takes; later ones have more.
const SHARE: u64 = 24;

/// The number of events and meetings that count as a node.
const WORK_PER_NODE: u64 = 16;

/// A change of the weight of all overlaps of a body as its offset grows.
#[derive(Clone)]
struct Event {
    at: i64,
    /// The change of the slope.
    slope: i64,
    /// The change of the number of overlaps.
    overlaps: i64,
}

/// A place for a body.
struct Place {
    offset: i64,
    /// The weight of its overlaps there.
    cost: i128,
    /// The weight of its overlaps where it lies now.
    now: i128,
}

/// An overlap of two bodies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Overlap {
    /// The meeting, seen from the first body.
    meeting: usize,
    first: usize,
    second: usize,
    depth: i64,
}

/// The bodies of an instance, with some of them placed.
#[derive(Clone)]
pub struct Separation {
    align: i64,
    /// By body.
    tops: Vec<i64>,
    /// The bodies of the most crowded sections first.
    order: Vec<usize>,
    meetings: Vec<Meeting>,
    /// The end of the meetings of each body; they begin where those of the body before end.
    ends: Vec<usize>,
    limit: i64,
    offsets: Vec<i64>,
    is_placed: Vec<bool>,
    /// The meetings with more than their initial weight, seen from the first body.
    weighted: Vec<usize>,
    events: Vec<Event>,
    random: Random,
    /// The number of events and meetings examined.
    work: u64,
}

impl Separation {
    /// Returns `None` if there are too many meetings or the bodies are too high.
    pub fn new(inst: &Instance) -> Option<Self> {
        let bodies: Vec<Vec<Part>> = parts(inst).collect();
        let total = bodies.iter().flatten().map(|part| part.high);
        if total.fold(inst.align, u64::saturating_add) >= FAR {
            return None;
        }
        let align = i64::try_from(inst.align).ok()?;
        let top = |parts: &Vec<Part>| parts.iter().map(|part| signed(part.high)).max().unwrap_or(0);
        let (meetings, ends) = meetings(&bodies, align)?;
        Some(Self {
            align,
            tops: bodies.iter().map(top).collect(),
            order: by_crowd(&bodies, inst.sections),
            meetings,
            ends,
            limit: 0,
            offsets: vec![0; bodies.len()],
            is_placed: vec![false; bodies.len()],
            weighted: Vec::new(),
            events: Vec::new(),
            random: Random::default(),
            work: 0,
        })
    }

    /// The nodes of a first attempt.
    pub fn share(&self) -> u64 {
        (self.meetings.len() as u64 * 2 / WORK_PER_NODE).saturating_mul(SHARE)
    }

    /// Starts again under a limit; returns false if some body alone exceeds it.
    fn begin(&mut self, limit: u64, seed: u64) -> bool {
        // Even an attempt without a chance counts as a node.
        self.work += WORK_PER_NODE;
        self.limit = signed(limit.min(FAR));
        self.random = Random::new(seed);
        for at in std::mem::take(&mut self.weighted) {
            self.set_weight(at, LIGHT);
        }
        self.tops.iter().all(|&top| top <= self.limit)
    }

    /// Moves bodies until none overlap, where at first all overlaps are with `body`. Returns false
    /// if stopped.
    fn separate(&mut self, body: usize, stop: &mut impl FnMut(u64) -> bool) -> bool {
        let mut overlaps = Vec::new();
        self.collect_overlaps(&[body], &mut overlaps);
        let mut turn: u64 = 0;
        while !overlaps.is_empty() {
            turn += 1;
            if turn.is_multiple_of(TURNS) && self.pack_in_order() {
                break;
            }
            let mut bodies: Vec<usize> =
                overlaps.iter().flat_map(|overlap| [overlap.first, overlap.second]).collect();
            bodies.sort_unstable();
            bodies.dedup();
            for at in (1..bodies.len()).rev() {
                let other = self.random.below(at + 1);
                bodies.swap(at, other);
            }
            for &body in &bodies {
                let place = self.best_place(body, false);
                if place.cost < place.now {
                    self.offsets[body] = place.offset;
                }
                if stop(self.nodes()) {
                    return false;
                }
            }
            self.collect_overlaps(&bodies, &mut overlaps);
            self.weigh(&overlaps);
        }
        true
    }

    /// Makes the overlaps heavier, the deepest most, and all others lighter.
    fn weigh(&mut self, overlaps: &[Overlap]) {
        let deepest = overlaps.iter().map(|overlap| overlap.depth).max().unwrap_or(1).max(1);
        for at in std::mem::take(&mut self.weighted) {
            let weight = self.meetings[at].weight * 973 / 1024;
            self.set_weight(at, weight.max(LIGHT));
            if weight > LIGHT {
                self.weighted.push(at);
            }
        }
        for overlap in overlaps {
            let at = overlap.meeting;
            let weight = self.meetings[at].weight;
            if weight == LIGHT {
                self.weighted.push(at);
            }
            let share = i64::try_from(i128::from(overlap.depth) * 862 / i128::from(deepest));
            let heavier = weight * (1293 + share.unwrap_or(0)) / 1024;
            self.set_weight(at, heavier.min(HEAVY));
        }
    }

    fn set_weight(&mut self, meeting: usize, weight: i64) {
        let twin = self.meetings[meeting].twin as usize;
        self.meetings[meeting].weight = weight;
        self.meetings[twin].weight = weight;
    }

    /// The meetings of a body.
    fn of(&self, body: usize) -> std::ops::Range<usize> {
        let begin = if body > 0 { self.ends[body - 1] } else { 0 };
        begin..self.ends[body]
    }

    /// All overlaps of some bodies.
    fn collect_overlaps(&mut self, bodies: &[usize], overlaps: &mut Vec<Overlap>) {
        overlaps.clear();
        for &body in bodies {
            let range = self.of(body);
            self.work += range.len() as u64;
            for at in range {
                let meeting = &self.meetings[at];
                let other = meeting.other as usize;
                let depth = meeting.depth(self.offsets[body] - self.offsets[other]);
                if depth > 0 && self.is_placed[other] {
                    let at = at.min(meeting.twin as usize);
                    let (first, second) = (body.min(other), body.max(other));
                    overlaps.push(Overlap { meeting: at, first, second, depth });
                }
            }
        }
        overlaps.sort_unstable();
        overlaps.dedup();
    }

    /// The offset of a body at which its overlaps weigh least. Ties are broken at random, but with
    /// `lowest`, the lowest offset without an overlap wins.
    fn best_place(&mut self, body: usize, lowest: bool) -> Place {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let most = (self.limit - self.tops[body]).div_euclid(self.align) * self.align;
        let (mut cost, mut slope, mut overlaps, mut now) = (0i128, 0i64, 0i64, 0i128);
        let range = self.of(body);
        self.work += range.len() as u64;
        for meeting in &self.meetings[range] {
            let other = meeting.other as usize;
            if !self.is_placed[other] {
                continue;
            }
            let Meeting { weight, .. } = *meeting;
            let at = self.offsets[other];
            now += i128::from(weight) * i128::from(meeting.depth(self.offsets[body] - at));
            let (low, high) = (at + meeting.low, at + meeting.high);
            if high <= 0 || low >= most {
                continue;
            }
            // The depth grows up to the middle, which may be two heights, and then shrinks.
            let middle = low + (high - low) / 2;
            let turns = [middle, high - (middle - low)];
            let mut event = |at, slope, overlaps| events.push(Event { at, slope, overlaps });
            if low < 0 {
                overlaps += 1;
                cost += i128::from(weight) * i128::from(meeting.depth(-at));
                slope += weight;
            } else {
                event(low, weight, 1);
            }
            for turn in turns {
                if turn <= 0 {
                    slope -= weight;
                } else {
                    event(turn, -weight, 0);
                }
            }
            event(high, weight, -1);
        }
        self.work += events.len() as u64;
        events.sort_unstable_by_key(|event| event.at);
        let (mut best, mut found, mut offset) = (cost, 1, 0);
        let mut consider = |at: i64, cost: i128, is_free: bool, this: &mut Self| {
            if cost < best {
                (best, found, offset) = (cost, 1, at);
            } else if cost == best && !(lowest && is_free) {
                found += 1;
                if this.random.below(found) == 0 {
                    offset = at;
                }
            }
        };
        let mut at = 0;
        let mut rest = &events[..];
        while let Some(&Event { at: next, .. }) = rest.first()
            && next <= most
        {
            cost += i128::from(slope) * i128::from(next - at);
            at = next;
            let same = rest.partition_point(|event| event.at == next);
            let mut begun = 0;
            for event in &rest[..same] {
                slope += event.slope;
                begun += event.overlaps.max(0);
                overlaps += event.overlaps.min(0);
            }
            consider(at, cost, overlaps == 0, self);
            overlaps += begun;
            rest = &rest[same..];
        }
        if at < most {
            cost += i128::from(slope) * i128::from(most - at);
            consider(most, cost, overlaps == 0, self);
        }
        self.events = events;
        Place { offset, cost: best, now }
    }

    /// Packs the placed bodies in the order of their offsets, each as low as it can lie. If that
    /// exceeds the limit, changes nothing and returns false.
    fn pack_in_order(&mut self) -> bool {
        let mut order: Vec<usize> =
            (0..self.tops.len()).filter(|&body| self.is_placed[body]).collect();
        order.sort_by_key(|&body| self.offsets[body]);
        let mut offsets = vec![None; self.tops.len()];
        let mut taken: Vec<(i64, i64)> = Vec::new();
        for &body in &order {
            let range = self.of(body);
            self.work += 2 * range.len() as u64;
            taken.clear();
            taken.extend(self.meetings[range].iter().filter_map(|meeting| {
                let at: i64 = offsets[meeting.other as usize]?;
                Some((at + meeting.low, at + meeting.high))
            }));
            taken.sort_unstable();
            let mut offset = 0;
            for &(low, high) in &taken {
                if low >= offset {
                    break;
                }
                offset = offset.max(high);
            }
            if offset + self.tops[body] > self.limit {
                return false;
            }
            offsets[body] = Some(offset);
        }
        for (offset, packed) in self.offsets.iter_mut().zip(offsets) {
            *offset = packed.unwrap_or(*offset);
        }
        true
    }
}

impl Packer for Separation {
    fn nodes(&self) -> u64 {
        self.work / WORK_PER_NODE
    }

    fn pack(&mut self, attempt: Attempt, stop: &mut impl FnMut(u64) -> bool) -> bool {
        if !self.begin(attempt.limit, attempt.seed) {
            return false;
        }
        self.is_placed.fill(false);
        let last = self.nodes().saturating_add(attempt.nodes);
        let mut stop = |nodes| nodes >= last || stop(nodes);
        for at in 0..self.order.len() {
            let body = self.order[at];
            self.is_placed[body] = true;
            // A body that fits without an overlap is inserted as low as possible.
            let place = self.best_place(body, true);
            self.offsets[body] = place.offset;
            if place.cost > 0 && !self.separate(body, &mut stop) || stop(self.nodes()) {
                return false;
            }
        }
        self.pack_in_order();
        true
    }

    fn height(&self) -> u64 {
        let tops = self.offsets.iter().zip(&self.tops).map(|(offset, top)| offset + top);
        let height = tops.max().unwrap_or(0);
        (-(-height).div_euclid(self.align) * self.align).unsigned_abs()
    }

    fn offsets(&self) -> Vec<u64> {
        self.offsets.iter().map(|offset| offset.unsigned_abs()).collect()
    }
}

/// The parts of every body.
fn parts(inst: &Instance) -> impl Iterator<Item = Vec<Part>> + '_ {
    let item = |&Item { first, end, size }: &Item| vec![Part { first, end, low: 0, high: size }];
    let staircases = inst.staircases.iter().map(|staircase| staircase.parts.clone());
    inst.items.iter().map(item).chain(staircases)
}

/// The bodies by the most crowded section that they cover, then by area, largest first.
fn by_crowd(bodies: &[Vec<Part>], sections: usize) -> Vec<usize> {
    let mut live = vec![0u64; sections];
    for part in bodies.iter().flatten() {
        for bytes in &mut live[part.sections()] {
            *bytes += part.high - part.low;
        }
    }
    let key = |parts: &Vec<Part>| {
        let crowds = parts.iter().flat_map(|part| live[part.sections()].iter());
        let areas = parts
            .iter()
            .map(|part| part.sections().len() as u128 * u128::from(part.high - part.low));
        (crowds.max().copied(), areas.sum::<u128>())
    };
    let mut order: Vec<usize> = (0..bodies.len()).collect();
    order.sort_by_cached_key(|&body| std::cmp::Reverse(key(&bodies[body])));
    order
}

#[cfg(test)]
mod tests;
