//! The disjunctive search: decides for each pair which body lies below the other.
//!
//! A staircase may hang at any height, and the valleys have to try them all. So problems with
//! staircases are also searched as in job-shop scheduling: a section is a machine, and a body
//! occupies all the machines of its sections at once.
//!
//! Two bodies that share a section keep apart if the difference of their offsets lies in one of a few *gaps*:
//! far enough down, far enough up, or, where they interlock, between. Gaps chosen for all pairs are a system
//! of difference constraints; its least solution is a packing if it ends below the limit. Each offset has a
//! range, the pairs narrow it, and the search branches on pairs that overlap when every body lies at the
//! lowest offset of its range. There is no packing if
//!
//! 1. a pair has no gap left,
//! 2. difference constraints form a positive cycle (each offset on it would have to exceed itself),
//!    or
//! 3. the bodies that must lie in a part of a section are larger than the part.

#![allow(clippy::cast_precision_loss, reason = "an order of trying may round")]

use crate::search::sizes::{MEDIUM, TINY};
use std::ops::Range;

mod pairs;

pub use pairs::{FAR, Interval, Pair};
use pairs::{Gap, pairs};

use crate::search::{
    control::meter::Meter,
    effort::{PROBE, UNIT, Verdict, weigh},
    ranges::Grid,
    state::instance::{Fixed, Instance, Item, Part},
};

/// Some neighbouring gaps of a pair, by place, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    first: usize,
    last: usize,
}

/// A change that can be undone, with the old value.
enum Undo {
    Low { body: usize, low: i64 },
    High { body: usize, high: i64 },
    Open { pair: usize, open: Open },
}

/// A pair that was decided, and the gaps not tried yet.
struct Frame {
    pair: usize,
    other: Option<Open>,
    mark: usize,
}

/// A pair to decide, and its gaps in two parts, the part to try first and the other.
struct Choice {
    pair: usize,
    parts: [Open; 2],
}

/// A body on a section: where it must lie, and its size.
struct Inside {
    from: i64,
    to: i64,
    size: i64,
}

#[derive(Default)]
pub struct Disjunctive {
    /// By body: the end of its highest part.
    tops: Vec<i64>,
    /// By body: the offsets that it may have, or the only one.
    offered: Vec<(Grid, Option<i64>)>,
    /// The longest sequence of pairs, each lifting a body of the next, without a positive cycle. In a
    /// longer sequence, a body repeats with the same residue, and the lifting would go on for ever.
    most_steps: usize,
    pairs: Vec<Pair>,
    /// By body.
    pairs_of: Vec<Vec<usize>>,
    sections: Vec<Vec<Interval>>,
    /// By body: its sections.
    spans: Vec<Range<usize>>,
    /// By body: the range of its offset.
    low: Vec<i64>,
    high: Vec<i64>,
    /// By pair: the gaps that it may still have.
    open: Vec<Open>,
    trail: Vec<Undo>,
    frames: Vec<Frame>,
    /// Bodies whose range has changed; empty between uses.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
    /// By body: the number of pairs, each lifting the next, that have lifted it; 0 between uses.
    steps: Vec<usize>,
    /// By section: true if the range of a body on it has changed; false between uses.
    stale: Vec<bool>,
    /// Scratch: the bodies on a section, by highest end.
    inside: Vec<Inside>,
    /// The number of choices tried.
    nodes: u64,
    /// The number of pairs examined.
    work: u64,
}

impl Disjunctive {
    /// Returns `None` if there are no staircases, or if bodies, pairs or numbers are too many or
    /// too large.
    pub fn new(inst: &Instance) -> Option<Self> {
        if inst.staircases.is_empty() || inst.bodies() > MEDIUM {
            return None;
        }
        // A stack of all bodies, each at a multiple of the alignment, must be lower than FAR.
        let highs = inst.all_parts().map(|part| part.high);
        let total = highs
            .map(|high| high.checked_next_multiple_of(inst.align).unwrap_or(u64::MAX))
            .fold(inst.align, u64::saturating_add);
        if total >= FAR.unsigned_abs() {
            return None;
        }
        let align = i64::try_from(inst.align).ok()?;
        let mut sections: Vec<Vec<Interval>> = (0..inst.sections).map(|_| Vec::new()).collect();
        let (mut tops, mut spans) = (Vec::new(), Vec::new());
        for (body, parts) in inst.parts().enumerate() {
            let around = Item::around(&parts);
            spans.push(around.sections());
            tops.push(i64::try_from(around.size).ok()?);
            for Part { first, end, low, high } in parts {
                let (low, high) = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
                for section in &mut sections[first as usize..end as usize] {
                    section.push(Interval { body, low, high });
                }
            }
        }
        let pairs = pairs(&sections, tops.len(), align)?;
        let mut offered = vec![(Grid { modulus: align, residue: 0 }, None); tops.len()];
        for &Fixed { body, offset } in &inst.fixed {
            offered[body as usize].1 = Some(i64::try_from(offset).ok()?);
        }
        Some(Self::of_pairs(tops, offered, pairs, sections, spans))
    }

    /// Creates a search for the offsets of bodies, given all pairs that may clash. `sections` may
    /// be empty; they only help to refute more.
    pub fn of_pairs(
        tops: Vec<i64>,
        offered: Vec<(Grid, Option<i64>)>,
        pairs: Vec<Pair>,
        sections: Vec<Vec<Interval>>,
        spans: Vec<Range<usize>>,
    ) -> Self {
        let mut pairs_of = vec![Vec::new(); tops.len()];
        for (at, pair) in pairs.iter().enumerate() {
            for body in pair.bodies {
                pairs_of[body].push(at);
            }
        }
        let bodies = tops.len();
        let moduli = || offered.iter().map(|(grid, _)| grid.modulus);
        let remainders = moduli().max().unwrap_or(1) / moduli().min().unwrap_or(1);
        let remainders = usize::try_from(remainders).unwrap_or(usize::MAX);
        Self {
            most_steps: bodies.saturating_mul(remainders),
            stale: vec![false; sections.len()],
            tops,
            offered,
            pairs,
            pairs_of,
            sections,
            spans,
            low: vec![0; bodies],
            high: vec![0; bodies],
            is_changed: vec![false; bodies],
            steps: vec![0; bodies],
            ..Self::default()
        }
    }

    /// The offsets, in units by body, of the packing that was just found: the lowest of all ranges.
    pub fn offsets(&self) -> Vec<u64> {
        self.low.iter().map(|low| low.unsigned_abs()).collect()
    }

    /// The nodes of the first run under a limit; each later run is longer than the one before.
    pub fn first_run(&self, rounds: u64) -> u64 {
        if self.tops.len() <= TINY { UNIT.saturating_mul(rounds) } else { PROBE }
    }

    /// Searches under a limit from the beginning, for at most this many nodes more.
    pub fn decide(&mut self, limit: u64, nodes: u64, meter: &mut Meter<'_>) -> Verdict {
        // No limit needs to be higher: a stack of all bodies is lower than `FAR`.
        let limit = i64::try_from(limit).map_or(FAR, |limit| limit.min(FAR));
        let last = self.nodes().saturating_add(nodes);
        self.run(limit, &mut meter.part(0, last))
    }

    /// The number of nodes so far. A node that examines many pairs counts for several.
    pub fn nodes(&self) -> u64 {
        weigh(self.nodes, self.work)
    }

    fn run(&mut self, limit: i64, meter: &mut Meter<'_>) -> Verdict {
        self.trail.clear();
        self.frames.clear();
        self.open.clear();
        self.open
            .extend(self.pairs.iter().map(|pair| Open { first: 0, last: pair.gaps.len() - 1 }));
        for (body, &(grid, fixed)) in self.offered.iter().enumerate() {
            let highest = limit - self.tops[body];
            (self.low[body], self.high[body]) = match fixed {
                Some(fixed) if fixed <= highest => (fixed, fixed),
                Some(_) => return Verdict::Refuted,
                None => (grid.round_up(0), grid.round_down(highest)),
            };
            if self.high[body] < self.low[body] {
                return Verdict::Refuted;
            }
        }
        (0..self.tops.len()).for_each(|body| self.change(body));
        let mut stands = self.narrow(true);
        loop {
            if stands {
                let Some(Choice { pair, parts: [first, second] }) = self.choice() else {
                    return Verdict::Packed;
                };
                self.frames.push(Frame { pair, other: Some(second), mark: self.trail.len() });
                stands = self.decide_pair(pair, first);
            } else {
                let Some(frame) = self.frames.last_mut() else { return Verdict::Refuted };
                let (pair, mark, other) = (frame.pair, frame.mark, frame.other.take());
                self.undo(mark);
                let Some(other) = other else {
                    self.frames.pop();
                    continue;
                };
                stands = self.decide_pair(pair, other);
            }
            self.nodes += 1;
            self.work += (self.pairs.len() + self.sections.len()) as u64 / 8;
            if meter.is_over(self.nodes()) {
                return Verdict::NodeLimit;
            }
        }
    }

    /// Chooses a pair to decide: the one with the least freedom among those that overlap when all bodies
    /// lie at their lowest offsets. The wider part of its gaps is tried first. `None` if no pair overlaps.
    fn choice(&self) -> Option<Choice> {
        let mut best: Option<Choice> = None;
        let mut least = f64::INFINITY;
        for (at, pair) in self.pairs.iter().enumerate() {
            let [a, b] = pair.bodies;
            let Open { first, last } = self.open[at];
            let difference = self.low[b] - self.low[a];
            let gaps = &pair.gaps[first..=last];
            // There is a gap above and a gap below, because the ranges have been narrowed.
            let below = gaps.partition_point(|gap| gap.most < difference);
            if gaps[below].least <= difference {
                continue;
            }
            let down = gaps[below - 1].most - (self.low[b] - self.high[a]);
            let up = (self.high[b] - self.low[a]) - gaps[below].least;
            let freedom = (down.unsigned_abs() + 1) as f64 * (up.unsigned_abs() + 1) as f64;
            let key = freedom / (1 + pair.faults) as f64;
            if key < least {
                let lower = Open { first, last: first + below - 1 };
                let upper = Open { first: first + below, last };
                let parts = if down >= up { [lower, upper] } else { [upper, lower] };
                best = Some(Choice { pair: at, parts });
                least = key;
            }
        }
        best
    }

    /// Restricts a pair to some of its gaps; returns false if that leaves no packing.
    fn decide_pair(&mut self, pair: usize, open: Open) -> bool {
        self.trail.push(Undo::Open { pair, open: self.open[pair] });
        self.open[pair] = open;
        let stands = self.narrow_pair(pair);
        self.narrow(stands)
    }

    /// Propagates changed ranges; returns false if there is no packing.
    fn narrow(&mut self, mut stands: bool) -> bool {
        let mut next = 0;
        while stands && next < self.changed.len() {
            let body = self.changed[next];
            next += 1;
            self.is_changed[body] = false;
            for at in 0..self.pairs_of[body].len() {
                if !self.narrow_pair(self.pairs_of[body][at]) {
                    stands = false;
                    break;
                }
            }
        }
        for body in self.changed.drain(..) {
            self.is_changed[body] = false;
            self.steps[body] = 0;
            self.stale[self.spans[body].clone()].fill(true);
        }
        for x in 0..self.sections.len() {
            if std::mem::take(&mut self.stale[x]) {
                stands = stands && self.fits(x);
            }
        }
        stands
    }

    /// Narrows the ranges of two bodies to the gaps that are open to them; returns false if there
    /// is no packing.
    fn narrow_pair(&mut self, at: usize) -> bool {
        self.work += 1;
        let pair = &self.pairs[at];
        let [a, b] = pair.bodies;
        let (least, most) = (self.low[b] - self.high[a], self.high[b] - self.low[a]);
        let Open { first, last } = self.open[at];
        let gaps = &pair.gaps[first..=last];
        let lowest = gaps.iter().find(|gap| gap.most >= least);
        let highest = gaps.iter().rfind(|gap| gap.least <= most);
        let (Some(&Gap { least: up, .. }), Some(&Gap { most: down, .. })) = (lowest, highest)
        else {
            self.pairs[at].faults += 1;
            return false;
        };
        let stands = self.round_up(a, b, up)
            && self.round_down(b, a, -up)
            && self.round_up(b, a, -down)
            && self.round_down(a, b, down);
        self.pairs[at].faults += u64::from(!stands);
        stands
    }

    /// Raises the lowest offset of `to` to at least `by` above that of `from`; returns false if
    /// that leaves no packing.
    fn round_up(&mut self, from: usize, to: usize, by: i64) -> bool {
        let low = self.low[from] + by;
        if low <= self.low[to] {
            return true;
        }
        let low = self.offered[to].0.round_up(low);
        self.trail.push(Undo::Low { body: to, low: self.low[to] });
        self.low[to] = low;
        self.steps[to] = self.steps[from] + 1;
        self.change(to);
        low <= self.high[to] && self.steps[to] <= self.most_steps
    }

    /// Lowers the highest offset of `to` to at most `by` above that of `from`; returns false if
    /// that leaves no packing.
    fn round_down(&mut self, from: usize, to: usize, by: i64) -> bool {
        let high = self.high[from] + by;
        if high >= self.high[to] {
            return true;
        }
        let high = self.offered[to].0.round_down(high);
        self.trail.push(Undo::High { body: to, high: self.high[to] });
        self.high[to] = high;
        self.change(to);
        high >= self.low[to]
    }

    fn change(&mut self, body: usize) {
        if !std::mem::replace(&mut self.is_changed[body], true) {
            self.changed.push(body);
        }
    }

    /// Returns whether, for every range of bytes in a section, the bodies that must lie in that range fit
    /// there.
    fn fits(&mut self, section: usize) -> bool {
        let slices = &self.sections[section];
        self.work += (slices.len() * slices.len()) as u64 / 8;
        self.inside.clear();
        self.inside.extend(slices.iter().map(|&Interval { body, low, high }| Inside {
            from: self.low[body] + low,
            to: self.high[body] + high,
            size: high - low,
        }));
        self.inside.sort_unstable_by_key(|inside| inside.to);
        self.inside.iter().all(|&Inside { from, .. }| {
            let mut room = -from;
            self.inside.iter().filter(|inside| inside.from >= from).all(|inside| {
                room -= inside.size;
                inside.to + room >= 0
            })
        })
    }

    fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            match self.trail.pop() {
                Some(Undo::Low { body, low }) => self.low[body] = low,
                Some(Undo::High { body, high }) => self.high[body] = high,
                Some(Undo::Open { pair, open }) => self.open[pair] = open,
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
