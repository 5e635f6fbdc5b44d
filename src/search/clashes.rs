//! The offsets at which bodies clash, pair by pair.
//!
//! A tree of the lives of all bodies finds the pairs that may be alive together, without comparing all pairs. However
//! many boxes of two bodies are alive together, the two clash only if the difference of their offsets lies in one of a
//! few ranges. These ranges are found once; after that, bodies are compared without visiting their boxes.

use std::cmp::Reverse;

use crate::{
    Bytes,
    bodies::{ClockTree, TimedBox, TimedBoxes, ranks},
    budget::{Budget, Stop},
    search::{
        interval_set::IntervalSet,
        merge,
        sizes::{HUGE, MAX_KEPT},
    },
};

/// Bodies with bytes from here on are not supported: differences of offsets must fit in `i64`.
pub(super) const HIGHEST: Bytes = 1 << 60;

/// A body clashes with `other` if its offset minus the other's lies strictly between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clash {
    pub(super) other: usize,
    pub(super) low: i64,
    pub(super) high: i64,
}

/// By body: its clashes, in order of the other bodies.
#[derive(Clone, Default)]
pub(super) struct Clashes(pub(super) Vec<Vec<Clash>>);

impl Clashes {
    /// The clashes of all pairs of bodies; `None` if bodies or clashes are too many, or if the budget ends.
    pub(super) fn of(boxes: &[TimedBoxes], budget: &mut Budget<'_>) -> Option<Self> {
        let streams = boxes.iter().flatten().next()?.begin.len();
        let is_high = boxes.iter().flatten().any(|one| one.bytes.end >= HIGHEST);
        // Each node of a tree has four clocks.
        let is_large = boxes.len() > HUGE || 4 * boxes.len() * streams > MAX_KEPT;
        if is_high || is_large {
            return None;
        }
        // Every body is compared with those added before it, none of which has more boxes.
        let mut order: Vec<usize> = (0..boxes.len()).filter(|&at| !boxes[at].is_empty()).collect();
        order.sort_by_key(|&body| (boxes[body].len(), Reverse(body)));
        let lives: Vec<TimedBox> = order
            .iter()
            .filter_map(|&body| TimedBox::around(boxes[body].iter().cloned()))
            .collect();
        let places = ranks(&lives);
        let mut added = ClockTree::of_boxes(lives.len(), streams);
        // By place.
        let mut bodies = vec![None; added.len()];
        // By body of the order: the bodies added before it that may be alive together with it.
        let mut met: Vec<Vec<usize>> = Vec::with_capacity(order.len());
        let mut pairs = 0;
        for (&body, (life, &place)) in order.iter().zip(lives.iter().zip(&places)) {
            let mut others = Vec::new();
            let visited = added.visit_meeting(life, |node| {
                others.extend(bodies[added.places(node)].iter().flatten().copied());
            });
            budget.spend(visited + others.len()).ok()?;
            pairs += others.len();
            if pairs > MAX_KEPT {
                return None;
            }
            met.push(others);
            added.add_box(place, life);
            bodies[place] = Some(body);
        }
        let mut clashes = Self(vec![Vec::new(); boxes.len()]);
        let mut kept = 0;
        for (&second, others) in order.iter().zip(met) {
            let tree = BytesTree::of(&boxes[second]);
            for first in others {
                let ranges = tree.clashes(&boxes[first], budget).ok()?;
                kept += ranges.len();
                clashes.add(first, second, &ranges);
            }
            if kept > MAX_KEPT {
                return None;
            }
        }
        let by_other = |clash: &Clash| (clash.other, clash.low);
        clashes.0.iter_mut().for_each(|of_body| of_body.sort_unstable_by_key(by_other));
        Some(clashes)
    }

    /// Adds ranges of differences: the offset of the second body minus the offset of the first.
    pub(super) fn add(&mut self, first: usize, second: usize, ranges: &[(i64, i64)]) {
        for &(low, high) in ranges {
            self.0[second].push(Clash { other: first, low, high });
            self.0[first].push(Clash { other: second, low: -high, high: -low });
        }
    }

    /// The differences of offsets at which two bodies clash, as ranges: the second offset minus the first.
    pub(super) fn between(&self, first: usize, second: usize) -> Vec<(i64, i64)> {
        let of_second = &self.0[second];
        let from = of_second.partition_point(|clash| clash.other < first);
        let with_first = of_second[from..].iter().take_while(|clash| clash.other == first);
        with_first.map(|clash| (clash.low, clash.high)).collect()
    }
}

/// The boxes of a body.
struct BytesTree {
    tree: ClockTree,
    /// By node: the bytes of the boxes below it.
    taken: Vec<IntervalSet>,
}

impl BytesTree {
    fn of(boxes: &TimedBoxes) -> Self {
        let places = ranks(boxes);
        let mut tree = ClockTree::of_boxes(boxes.len(), boxes[0].begin.len());
        let mut taken = vec![IntervalSet::default(); tree.len()];
        for (one, &place) in boxes.iter().zip(&places) {
            tree.add_box(place, one);
            for node in tree.nodes(place) {
                taken[node].add(one.bytes.start, one.bytes.end);
            }
        }
        Self { tree, taken }
    }

    /// The differences of offsets at which two bodies clash, as ranges: the offset of this body minus the other's.
    fn clashes(
        &self,
        others: &TimedBoxes,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<(i64, i64)>, Stop> {
        let mut found: Vec<(i64, i64)> = Vec::new();
        for other in others {
            let before = found.len();
            let visited = self.tree.visit_meeting(other, |node| {
                found.extend(ranges(other, &self.taken[node].0));
            });
            budget.spend(visited + found.len() - before)?;
            if found.len() > MAX_KEPT {
                merge(&mut found);
                // The ranges that stay are merged again next time.
                budget.spend(found.len())?;
            }
        }
        merge(&mut found);
        Ok(found)
    }
}

/// The offsets at which the bytes of a box meet some of the runs.
fn ranges(own: &TimedBox, runs: &[(Bytes, Bytes)]) -> impl Iterator<Item = (i64, i64)> {
    let [start, end] = [own.bytes.start, own.bytes.end].map(u64::cast_signed);
    let range =
        move |&(low, high): &(Bytes, Bytes)| (start - high.cast_signed(), end - low.cast_signed());
    runs.iter().map(range)
}

/// The bodies that lie in a pool.
pub(super) struct PairSpace<'a> {
    clashes: &'a Clashes,
    /// By body: its offset, if it lies here.
    offsets: Vec<Option<Bytes>>,
}

impl<'a> PairSpace<'a> {
    pub(super) fn new(clashes: &'a Clashes) -> Self {
        Self { clashes, offsets: vec![None; clashes.0.len()] }
    }

    /// Takes the bytes of a body that lies at an offset.
    pub(super) fn take(&mut self, body: usize, offset: Bytes) {
        self.offsets[body] = Some(offset);
    }

    /// The lowest offset at which a body lies above all that it may clash with.
    pub(super) fn top_over(&self, body: usize) -> Bytes {
        let top = |clash: &Clash| self.offsets[clash.other]?.checked_add_signed(clash.high);
        self.clashes.0[body].iter().filter_map(top).max().unwrap_or(0)
    }

    /// The lowest offset from `offset` on, itself allowed, at which a body is clear of all that is taken. `round_up`
    /// raises an offset to the next allowed one; `None` if there is none.
    pub(super) fn lowest_from(
        &self,
        body: usize,
        mut offset: Bytes,
        round_up: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let range = |clash: &Clash| {
            let at = i128::from(self.offsets[clash.other]?);
            Some((at + i128::from(clash.low), at + i128::from(clash.high)))
        };
        let mut ranges: Vec<(i128, i128)> = self.clashes.0[body].iter().filter_map(range).collect();
        ranges.sort_unstable();
        for (low, high) in ranges {
            if i128::from(offset) <= low {
                break;
            }
            if i128::from(offset) < high {
                offset = round_up(Bytes::try_from(high).ok()?)?;
            }
        }
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// One body for each operator, which lives for a few operators of its stream. After every ten operators, each
    /// stream waits for all others.
    fn short_lives(count: u64, streams: usize) -> Vec<TimedBoxes> {
        let mut now = vec![0; streams];
        let mut bodies = Vec::new();
        for at in 0..count {
            let own = usize::try_from(at).unwrap() % streams;
            let mut begin = vec![0; streams];
            begin.fill(now.iter().copied().min().unwrap() / 10 * 10);
            begin[own] = now[own];
            let mut end = begin.clone();
            end[own] += 1 + at % 7;
            now[own] += 1;
            let bytes = 0..1 + at % 5;
            bodies.push([TimedBox { begin: begin.into(), end: end.into(), bytes }].into());
        }
        bodies
    }

    /// Problems of 10^5 bodies rely on it.
    #[rstest]
    fn work_grows_with_the_pairs_that_meet_and_not_with_all(#[values(1, 2, 4)] streams: usize) {
        let bodies = short_lives(20_000, streams);
        let mut budget = Budget::default();
        let clashes = Clashes::of(&bodies, &mut budget).unwrap();
        let pairs = clashes.0.iter().map(Vec::len).sum::<usize>() / 2;
        let most = 50 * (bodies.len() + pairs);
        assert!(
            pairs > bodies.len() && budget.spent() < most as u64,
            "{pairs}, {}",
            budget.spent()
        );
        let little = budget.spent() / 2;
        assert!(Clashes::of(&bodies, &mut Budget::default().at_most(little)).is_none());
    }

    #[test]
    fn trees_of_many_streams_are_too_large() {
        for (count, is_some) in [(20, true), (2000, false)] {
            let bodies = short_lives(count, 600);
            assert_eq!(Clashes::of(&bodies, &mut Budget::default()).is_some(), is_some);
        }
    }
}
