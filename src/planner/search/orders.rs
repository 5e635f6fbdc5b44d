//! Orders: which body lies below which?
//!
//! A staircase may hang at any height, and the valleys have to try them all. So problems with
//! staircases are also searched in another way, that of job-shop scheduling, where a section is a
//! machine, and a body is on all the machines of its sections at once.
//!
//! Two bodies that share a section keep apart if the difference of their offsets lies in one of a few
//! *gaps*: far enough down, far enough up, or, where they interlock, between. Gaps chosen for all
//! pairs are a system of differences; its least solution is a packing, if it ends below the limit.
//! Each offset has a range, the pairs narrow it, and the search decides those pairs that the lowest
//! ends of the ranges do not keep apart. All is lost when
//!
//! 1. a pair has no gap left,
//! 2. differences go round in a circle and grow (each offset would have to be above itself), or
//! 3. what must lie in a part of a section is larger than the part.

#![allow(clippy::cast_precision_loss, reason = "an order of trying may round")]

use std::ops::Range;

use super::{
    instance::{Instance, Part},
    rounds::{UNIT, weigh},
    tree::End,
};

/// More bodies, or pairs, or meetings of two on a section, than this are not looked at.
const MANY_BODIES: usize = 500;
const MANY_PAIRS: usize = 5000;
const MANY_MEETINGS: usize = 5_000_000;

/// The orders of so few bodies are soon tried: one long run.
const FEW: usize = 20;

/// The nodes of the first run of more bodies. It is short: where only some bodies are staircases, the
/// valleys often need no more.
const FIRST_RUN: u64 = 64;

/// No offset and no difference is as large.
const FAR: i64 = i64::MAX / 8;

/// Two bodies that share a section.
struct Pair {
    bodies: [usize; 2],
    /// Its gaps: what the second offset may be more than the first; ascending.
    gaps: Vec<(i64, i64)>,
    /// How often it had none left.
    faults: u64,
}

/// Some neighbouring gaps of a pair: the first and the last.
type Gaps = (usize, usize);

/// A body on a section.
struct Slice {
    body: usize,
    low: i64,
    high: i64,
}

/// A value to be put back.
enum Undo {
    Low(usize, i64),
    High(usize, i64),
    Open(usize, Gaps),
}

/// A pair that was decided, and the gaps not tried yet.
struct Frame {
    pair: usize,
    other: Option<Gaps>,
    mark: usize,
}

pub(super) struct Orders {
    align: i64,
    /// By body: the end of its highest part.
    tops: Vec<i64>,
    pairs: Vec<Pair>,
    /// By body.
    pairs_of: Vec<Vec<usize>>,
    sections: Vec<Vec<Slice>>,
    /// By body: its sections.
    spans: Vec<Range<usize>>,
    /// By body: the range of its offset.
    low: Vec<i64>,
    high: Vec<i64>,
    /// By pair: the first and the last gap that it may still have.
    open: Vec<Gaps>,
    trail: Vec<Undo>,
    frames: Vec<Frame>,
    /// Bodies whose range has changed, and how many steps in a row have lifted each; empty between uses.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
    steps: Vec<usize>,
    offsets: Vec<u64>,
    /// By section: whether the range of a body on it has changed; false between uses.
    stale: Vec<bool>,
    /// Scratch: of the bodies on a section, by highest end, the lowest begin, that end and the size.
    inside: Vec<[i64; 3]>,
    /// Choices tried.
    nodes: u64,
    /// Pairs looked at.
    work: u64,
}

impl Orders {
    /// None if it is no use: without staircases, or with too many pairs.
    pub(super) fn new(inst: &Instance) -> Option<Self> {
        if inst.odds.is_empty() || inst.bodies() > MANY_BODIES {
            return None;
        }
        // All bodies on one another, each at a multiple of the alignment, must be lower than FAR.
        let highs = parts(inst).flat_map(|(_, parts)| parts.into_iter().map(|part| part.high));
        let total = highs
            .map(|high| high.checked_next_multiple_of(inst.align).unwrap_or(u64::MAX))
            .fold(inst.align, u64::saturating_add);
        if total >= FAR.unsigned_abs() {
            return None;
        }
        let align = i64::try_from(inst.align).ok()?;
        let mut sections: Vec<Vec<Slice>> = (0..inst.sections).map(|_| Vec::new()).collect();
        let (mut tops, mut spans) = (Vec::new(), Vec::new());
        for (body, parts) in parts(inst) {
            let mut top = 0;
            let first = parts.first().map_or(0, |part| part.first as usize);
            spans.push(first..parts.last().map_or(first, |part| part.end as usize));
            for Part { first, end, low, high } in parts {
                let (low, high) = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
                top = top.max(high);
                for section in &mut sections[first as usize..end as usize] {
                    section.push(Slice { body, low, high });
                }
            }
            tops.push(top);
        }
        let pairs = pairs(&sections, tops.len(), align)?;
        let mut pairs_of = vec![Vec::new(); tops.len()];
        for (at, pair) in pairs.iter().enumerate() {
            for body in pair.bodies {
                pairs_of[body].push(at);
            }
        }
        let bodies = tops.len();
        Some(Self {
            align,
            tops,
            pairs,
            pairs_of,
            sections,
            spans,
            low: vec![0; bodies],
            high: vec![0; bodies],
            open: Vec::new(),
            trail: Vec::new(),
            frames: Vec::new(),
            changed: Vec::new(),
            is_changed: vec![false; bodies],
            steps: vec![0; bodies],
            offsets: vec![u64::MAX; bodies],
            stale: vec![false; inst.sections],
            inside: Vec::new(),
            nodes: 0,
            work: 0,
        })
    }

    /// The offsets, in units by body, of the last packing.
    pub(super) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// How long the first run under a limit is; the others are longer and longer.
    pub(super) fn first_run(&self, rounds: u64) -> u64 {
        if self.tops.len() <= FEW { UNIT.saturating_mul(rounds) } else { FIRST_RUN }
    }

    /// Searches under a limit from the beginning, until there are so many nodes more, or until `stop`,
    /// which is asked with the nodes so far.
    pub(super) fn decide(
        &mut self,
        limit: u64,
        nodes: u64,
        stop: &mut impl FnMut(u64) -> bool,
    ) -> End {
        // All bodies on one another are not as high.
        let limit = i64::try_from(limit).map_or(FAR, |limit| limit.min(FAR));
        let budget = self.nodes().saturating_add(nodes);
        self.run(limit, |nodes| stop(nodes) || nodes >= budget)
    }

    /// Nodes so far. A node that looks at many pairs counts for several.
    pub(super) fn nodes(&self) -> u64 {
        weigh(self.nodes, self.work)
    }

    fn run(&mut self, limit: i64, mut stop: impl FnMut(u64) -> bool) -> End {
        self.trail.clear();
        self.frames.clear();
        self.open.clear();
        self.open.extend(self.pairs.iter().map(|pair| (0, pair.gaps.len() - 1)));
        self.low.fill(0);
        for (high, top) in self.high.iter_mut().zip(&self.tops) {
            *high = (limit - top).div_euclid(self.align) * self.align;
            if *high < 0 {
                return End::Refuted;
            }
        }
        (0..self.tops.len()).for_each(|body| self.change(body));
        let mut stands = self.narrow(true);
        loop {
            if stands {
                let Some((pair, [first, second])) = self.choice() else {
                    self.offsets.clear();
                    self.offsets.extend(self.low.iter().map(|low| low.unsigned_abs()));
                    return End::Packed;
                };
                self.frames.push(Frame { pair, other: Some(second), mark: self.trail.len() });
                stands = self.decide_pair(pair, first);
            } else {
                let Some(frame) = self.frames.last_mut() else { return End::Refuted };
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
            if stop(self.nodes()) {
                return End::Spent;
            }
        }
    }

    /// Of the pairs that the lowest offsets do not keep apart, the one with the least freedom, and its
    /// gaps in two parts, the wider first. None: all are kept apart.
    fn choice(&self) -> Option<(usize, [Gaps; 2])> {
        let mut best: Option<(f64, usize, [Gaps; 2])> = None;
        for (at, pair) in self.pairs.iter().enumerate() {
            let [a, b] = pair.bodies;
            let (first, last) = self.open[at];
            let difference = self.low[b] - self.low[a];
            let gaps = &pair.gaps[first..=last];
            // Ranges are narrow enough that not all gaps are below, nor all above.
            let below = gaps.partition_point(|gap| gap.1 < difference);
            if gaps[below].0 <= difference {
                continue;
            }
            let down = gaps[below - 1].1 - (self.low[b] - self.high[a]);
            let up = (self.high[b] - self.low[a]) - gaps[below].0;
            let freedom = (down.unsigned_abs() + 1) as f64 * (up.unsigned_abs() + 1) as f64;
            let key = freedom / (1 + pair.faults) as f64;
            if best.is_none_or(|(least, ..)| key < least) {
                let parts = [(first, first + below - 1), (first + below, last)];
                let parts = if down >= up { parts } else { [parts[1], parts[0]] };
                best = Some((key, at, parts));
            }
        }
        best.map(|(_, at, parts)| (at, parts))
    }

    /// Leaves a pair some of its gaps; false: all is lost.
    fn decide_pair(&mut self, pair: usize, gaps: Gaps) -> bool {
        self.trail.push(Undo::Open(pair, self.open[pair]));
        self.open[pair] = gaps;
        let stands = self.narrow_pair(pair);
        self.narrow(stands)
    }

    /// Draws all conclusions from changed ranges; false: all is lost.
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

    /// Narrows the ranges of two bodies by the gaps they may have; false: all is lost.
    fn narrow_pair(&mut self, at: usize) -> bool {
        self.work += 1;
        let pair = &self.pairs[at];
        let [a, b] = pair.bodies;
        let (least, most) = (self.low[b] - self.high[a], self.high[b] - self.low[a]);
        let (first, last) = self.open[at];
        let gaps = &pair.gaps[first..=last];
        let lowest = gaps.iter().find(|gap| gap.1 >= least);
        let highest = gaps.iter().rfind(|gap| gap.0 <= most);
        let (Some(&(up, _)), Some(&(_, down))) = (lowest, highest) else {
            self.pairs[at].faults += 1;
            return false;
        };
        let stands = self.lift(a, b, up)
            && self.press(b, a, -up)
            && self.lift(b, a, -down)
            && self.press(a, b, down);
        self.pairs[at].faults += u64::from(!stands);
        stands
    }

    /// The second offset is at least so much above the first; false: all is lost.
    fn lift(&mut self, from: usize, to: usize, by: i64) -> bool {
        let low = self.low[from] + by;
        if low <= self.low[to] {
            return true;
        }
        self.trail.push(Undo::Low(to, self.low[to]));
        self.low[to] = low;
        self.steps[to] = self.steps[from] + 1;
        self.change(to);
        low <= self.high[to] && self.steps[to] <= self.tops.len()
    }

    /// The second offset is at most so much above the first; false: all is lost.
    fn press(&mut self, from: usize, to: usize, by: i64) -> bool {
        let high = self.high[from] + by;
        if high >= self.high[to] {
            return true;
        }
        self.trail.push(Undo::High(to, self.high[to]));
        self.high[to] = high;
        self.change(to);
        high >= self.low[to]
    }

    fn change(&mut self, body: usize) {
        if !std::mem::replace(&mut self.is_changed[body], true) {
            self.changed.push(body);
        }
    }

    /// Whether what must lie in a part of a section fits there, for all its parts.
    fn fits(&mut self, section: usize) -> bool {
        let slices = &self.sections[section];
        self.work += (slices.len() * slices.len()) as u64 / 8;
        self.inside.clear();
        self.inside.extend(slices.iter().map(|&Slice { body, low, high }| {
            [self.low[body] + low, self.high[body] + high, high - low]
        }));
        self.inside.sort_unstable_by_key(|inside| inside[1]);
        self.inside.iter().all(|&[from, ..]| {
            let mut room = -from;
            self.inside.iter().filter(|inside| inside[0] >= from).all(|&[_, to, size]| {
                room -= size;
                to + room >= 0
            })
        })
    }

    fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            match self.trail.pop() {
                Some(Undo::Low(body, low)) => self.low[body] = low,
                Some(Undo::High(body, high)) => self.high[body] = high,
                Some(Undo::Open(pair, open)) => self.open[pair] = open,
                None => {}
            }
        }
    }
}

/// The parts of every body.
fn parts(inst: &Instance) -> impl Iterator<Item = (usize, Vec<Part>)> {
    let items = inst
        .items
        .iter()
        .map(|item| vec![Part { first: item.first, end: item.end, low: 0, high: item.size }]);
    items.chain(inst.odds.iter().map(|odd| odd.parts.clone())).enumerate()
}

/// All pairs that share a section, with their gaps; none if there are too many.
fn pairs(sections: &[Vec<Slice>], bodies: usize, align: i64) -> Option<Vec<Pair>> {
    let meetings = sections.iter().map(|section| section.len() * section.len() / 2);
    if meetings.sum::<usize>() > MANY_MEETINGS {
        return None;
    }
    let mut clashes: Vec<Vec<(i64, i64)>> = Vec::new();
    let mut number = vec![usize::MAX; bodies * bodies];
    let mut of = Vec::new();
    for section in sections {
        // By body.
        for (at, b) in section.iter().enumerate() {
            for a in &section[..at] {
                let number = &mut number[a.body * bodies + b.body];
                if *number == usize::MAX {
                    if clashes.len() == MANY_PAIRS {
                        return None;
                    }
                    *number = clashes.len();
                    clashes.push(Vec::new());
                    of.push([a.body, b.body]);
                }
                clashes[*number].push((a.low - b.high, a.high - b.low));
            }
        }
    }
    let pairs = of.into_iter().zip(clashes).map(|(bodies, mut clashes)| {
        clashes.sort_unstable();
        let mut gaps = Vec::new();
        let mut from = -FAR;
        for (low, high) in clashes {
            let to = low.div_euclid(align) * align;
            if from <= to {
                gaps.push((from, to));
            }
            from = from.max(-(-high).div_euclid(align) * align);
        }
        gaps.push((from, FAR));
        Pair { bodies, gaps, faults: 0 }
    });
    Some(pairs.collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::planner::search::{
        instance::tests::{instance, random_problem},
        rounds::Rounds,
    };

    fn always(_: u64) -> bool {
        false
    }

    /// Whether two bodies share nothing if the second lies so much above the first.
    fn keep_apart(orders: &Orders, [a, b]: [usize; 2], above: i64) -> bool {
        orders.sections.iter().all(|section| {
            let on = |body| section.iter().find(|slice| slice.body == body);
            on(a).zip(on(b)).is_none_or(|(a, b)| a.high <= b.low + above || b.high + above <= a.low)
        })
    }

    /// Chains of few bytes, but each at a multiple of an alignment: what is too high is not refuted.
    #[test]
    fn what_is_too_high_to_be_counted_is_left_to_the_valleys() {
        for (shift, used) in [(50, true), (57, false)] {
            let mut problem = crate::Problem::builder().alignment(1 << shift);
            for _ in 0..12 {
                let whole = problem.chunk(0..2, 100);
                let part = problem.chunk(1..3, 50);
                problem.overwrite(part, whole, 1);
            }
            let problem = problem.build().unwrap();
            let inst = instance(&problem);
            let orders = Orders::new(&inst);
            assert_eq!(orders.is_some(), used, "2^{shift}");
            if let Some(mut orders) = orders {
                assert_eq!(orders.decide(u64::MAX, UNIT, &mut always), End::Packed);
                assert_eq!(orders.decide((12 << shift) - 1, UNIT, &mut always), End::Packed);
            }
            let planner = crate::Planner::new().strategy(crate::Strategy::Optimal);
            let plan = planner.plan(&problem).unwrap();
            assert_eq!((plan.pool_size, plan.lower_bound), (12 << shift, 12 << shift));
        }
    }

    #[test]
    fn gaps_are_the_differences_that_keep_two_bodies_apart() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let Some(orders) = Orders::new(&instance(&problem)) else { return Ok(()) };
            for pair in &orders.pairs {
                for above in (-40..=40).map(|above| above * orders.align) {
                    let gap = pair.gaps.iter().any(|gap| (gap.0..=gap.1).contains(&above));
                    assert_eq!(gap, keep_apart(&orders, pair.bodies, above), "{problem:#?}");
                }
                let rising = pair.gaps.is_sorted_by(|a, b| a.1 < b.0);
                assert!(rising && pair.gaps.iter().all(|gap| gap.0 <= gap.1));
            }
            for (body, pairs) in orders.pairs_of.iter().enumerate() {
                assert!(pairs.iter().all(|&at| orders.pairs[at].bodies.contains(&body)));
            }
            let pairs: usize = orders.pairs_of.iter().map(Vec::len).sum();
            assert_eq!(pairs, 2 * orders.pairs.len());
            Ok(())
        });
    }

    /// No difference that a gap allows is lost, and no range is wider than the gaps that can be reached.
    #[test]
    fn pairs_narrow_each_other_as_far_as_their_gaps_say() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let Some(mut orders) = Orders::new(&instance(&problem)) else { return Ok(()) };
            orders.run(1000, |_| true);
            for at in 0..orders.pairs.len() {
                let [a, b] = orders.pairs[at].bodies;
                // No row of steps leads from one pair to the next.
                orders.steps.fill(0);
                for body in [a, b] {
                    orders.low[body] = random.int_in_range(0..=12)? * orders.align;
                    orders.high[body] =
                        orders.low[body] + random.int_in_range(0..=12)? * orders.align;
                }
                let (last, range) = (orders.pairs[at].gaps.len() - 1, |orders: &Orders, body| {
                    let all = orders.low[body]..=orders.high[body];
                    all.step_by(usize::try_from(orders.align).unwrap()).collect::<Vec<i64>>()
                });
                let first = random.int_in_range(0..=last)?;
                orders.open[at] = (first, random.int_in_range(first..=last)?);
                let gaps = orders.pairs[at].gaps[first..=orders.open[at].1].to_vec();
                let (of_a, of_b) = (range(&orders, a), range(&orders, b));
                let all: Vec<(i64, i64)> =
                    of_a.iter().flat_map(|&x| of_b.iter().map(move |&y| (x, y))).collect();
                let allowed = |(x, y): (i64, i64)| {
                    gaps.iter().find(|gap| (gap.0..=gap.1).contains(&(y - x))).copied()
                };
                let used: Vec<(i64, i64)> = all.iter().filter_map(|&xy| allowed(xy)).collect();
                let before = orders.pairs[at].faults;
                let stands = orders.narrow_pair(at);
                assert_eq!(stands, !used.is_empty());
                assert_eq!(orders.pairs[at].faults, before + u64::from(!stands));
                if stands {
                    let least = used.iter().map(|gap| gap.0).min().unwrap();
                    let most = used.iter().map(|gap| gap.1).max().unwrap();
                    let hull: Vec<(i64, i64)> = all
                        .into_iter()
                        .filter(|(x, y)| (least..=most).contains(&(y - x)))
                        .collect();
                    let ends = |of: fn(&(i64, i64)) -> i64| {
                        (hull.iter().map(of).min().unwrap(), hull.iter().map(of).max().unwrap())
                    };
                    let now = |body: usize| (orders.low[body], orders.high[body]);
                    assert_eq!((now(a), now(b)), (ends(|xy| xy.0), ends(|xy| xy.1)), "{gaps:?}");
                }
            }
            Ok(())
        })
        .budget_ms(400);
    }

    /// Wherever it ends, what is left is true, and going back leaves nothing behind.
    #[test]
    fn packings_keep_apart_and_end_below_the_limit_and_rounds_leave_no_trace() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let Some(mut orders) = Orders::new(&inst) else { return Ok(()) };
            let mut told = Vec::new();
            for limit in inst.bound()..inst.bound() + 6 {
                let end = orders.decide(limit, 1_000_000, &mut always);
                told.push(end);
                if end == End::Packed {
                    let at = |body: usize| i64::try_from(orders.offsets()[body]).unwrap();
                    for (body, top) in orders.tops.iter().enumerate() {
                        assert!(at(body) % orders.align == 0);
                        assert!(at(body) + top <= i64::try_from(limit).unwrap());
                    }
                    for pair in &orders.pairs {
                        let [a, b] = pair.bodies;
                        assert!(keep_apart(&orders, pair.bodies, at(b) - at(a)));
                    }
                }
                orders.undo(0);
                let open =
                    |(at, open): (usize, &Gaps)| *open == (0, orders.pairs[at].gaps.len() - 1);
                assert!(orders.low.iter().all(|&low| low == 0));
                assert!(orders.open.iter().enumerate().all(open));
                assert!(orders.changed.is_empty() && !orders.is_changed.contains(&true));
                assert!(!orders.stale.contains(&true));
                assert!(orders.steps.iter().all(|&steps| steps == 0));
            }
            // What fits, fits below a higher limit.
            let refuted = told.iter().filter(|&&end| end == End::Refuted).count();
            let (refuted, packed) = told.split_at(refuted);
            assert!(refuted.iter().all(|&end| end == End::Refuted), "{told:?}");
            assert!(packed.iter().all(|&end| end == End::Packed), "{told:?}");
            Ok(())
        })
        .budget_ms(400);
    }

    /// Without staircases, the valleys are enough; where both look, both say the same.
    #[test]
    fn orders_and_valleys_agree() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let orders = Orders::new(&inst);
            assert_eq!(orders.is_none(), inst.odds.is_empty());
            let Some(mut orders) = orders else { return Ok(()) };
            let mut valleys = Rounds::new(&inst, 0);
            valleys.orders = None;
            for limit in inst.bound()..inst.bound() + 4 {
                let end = valleys.decide(limit, 8, u64::MAX, &mut |_| false);
                let known = end != End::Spent;
                assert!(!known || orders.decide(limit, 8000, &mut always) == end, "{problem:#?}");
            }
            Ok(())
        })
        .budget_ms(400);
    }

    /// Three bodies, each of which must lie above another: no range is narrowed byte by byte.
    #[test]
    fn circles_are_seen_at_once() {
        let mut problem = crate::Problem::builder();
        let whole = problem.chunk(0..1, 9);
        let part = problem.chunk(0..2, 2);
        problem.overwrite(part, whole, 7);
        problem.chunk(0..2, 3);
        problem.chunk(1..2, 4);
        let problem = problem.build().unwrap();
        let inst = instance(&problem);
        let mut orders = Orders::new(&inst).unwrap();
        let limit = 1_000_000_000;
        assert_eq!(orders.decide(limit, UNIT, &mut always), End::Packed);
        // Each of the three above the next.
        orders.trail.clear();
        orders.low.fill(0);
        orders.high.fill(1_000_000_000);
        for (at, pair) in orders.pairs.iter().enumerate() {
            let [a, b] = pair.bodies;
            let last = pair.gaps.len() - 1;
            orders.open[at] = if (a, b) == (0, 2) { (0, 0) } else { (last, last) };
        }
        (0..orders.tops.len()).for_each(|body| orders.change(body));
        let before = orders.work;
        assert!(!orders.narrow(true));
        assert!(orders.work - before < 100, "{} pairs looked at", orders.work - before);
    }

    /// Few pairs that meet very often take much time and room, too.
    #[test]
    fn pairs_that_meet_too_often_are_left_to_the_valleys() {
        for (sections, used) in [(3900, true), (4100, false)] {
            let slices = || (0..50).map(|body| Slice { body, low: 0, high: 1 }).collect();
            let sections: Vec<Vec<Slice>> = (0..sections).map(|_| slices()).collect();
            assert_eq!(pairs(&sections, 50, 1).map(|pairs| pairs.len()), used.then_some(1225));
        }
    }

    #[test]
    fn a_run_has_its_nodes() {
        for (chains, first) in [(20, 5 * UNIT), (21, FIRST_RUN)] {
            let problem = interlocking(chains);
            let inst = instance(&problem);
            let mut orders = Orders::new(&inst).unwrap();
            assert_eq!(orders.first_run(5), first);
            for runs in 1..4 {
                let mut last = 0;
                let end = orders.decide(inst.bound(), first, &mut |nodes| {
                    last = nodes;
                    false
                });
                assert_eq!((end, orders.nodes()), (End::Spent, last));
                // A node may count for several.
                assert!((runs * first..runs * (first + 20)).contains(&last), "{last} of {first}");
            }
        }
    }

    #[test]
    fn a_search_that_is_to_stop_stops() {
        let problem = interlocking(9);
        let inst = instance(&problem);
        let mut orders = Orders::new(&inst).unwrap();
        let mut asked = Vec::new();
        let end = orders.decide(inst.bound(), 9000, &mut |nodes| {
            asked.push(nodes);
            asked.len() == 3
        });
        assert_eq!((end, orders.nodes), (End::Spent, 3));
        assert!(asked.is_sorted_by(|a, b| a < b) && asked[0] > 0 && asked[2] == orders.nodes());
        assert!(orders.work > 0);
    }

    /// Staircases that leave many orders open.
    pub(in crate::planner::search) fn interlocking(chains: u64) -> crate::Problem {
        let mut problem = crate::Problem::builder();
        for at in 0..chains {
            let size = 100 + at * 37 % 60;
            let whole = problem.chunk(at..at + 3 + at % 4, size);
            let part = problem.chunk(at + 2 + at % 4..at + 9, size / 2 + at % 9);
            problem.overwrite(part, whole, at * 7 % 20);
        }
        problem.build().unwrap()
    }
}
