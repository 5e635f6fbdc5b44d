//! Finds chunks that share bytes of a pool although both need them, or although they are to be kept
//! apart.
//!
//! With one stream, a sweep over the steps of each pool finds the pairs that share bytes and steps.
//! With several, a sweep over the addresses finds the pairs that share bytes and of which neither is
//! over before the other begins.

use std::{collections::HashSet, ops::Range};

use crate::{
    Bytes, Step,
    problem::ChunkId,
    verify::{
        Violation,
        chains::{ClockTreeSpace, each_meeting},
        facts::{Facts, Need, Spot},
        same_bytes::SameBytes,
        sweep::{OVERLAP_LIMIT, Rectangle, each_overlap},
    },
};

/// Returns the pairs of chunks that may not share the bytes that they share, up to a limit.
pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut clashes = Clashes { facts, found: Vec::new(), reported: HashSet::new() };
    let same = SameBytes::new(facts.problem, &facts.constraints.parts);
    let complete = clashes.check_apart()
        && (0..facts.constraints.pools.len()).all(|pool| match facts.constraints.streams {
            1 => clashes.check_steps(pool, &same),
            _ => clashes.check_clocks(pool, &same),
        });
    if !complete {
        clashes.found.push(Violation::MoreOverlaps { limit: OVERLAP_LIMIT });
    }
    clashes.found
}

struct Clashes<'a> {
    facts: &'a Facts<'a>,
    found: Vec<Violation>,
    /// Pairs, the smaller id first.
    reported: HashSet<(ChunkId, ChunkId)>,
}

/// Returns the common bytes of two chunks.
fn common(a: Spot, b: Spot) -> (u128, u128) {
    (a.low.max(b.low).into(), a.high.min(b.high))
}

fn to_bytes(value: u128) -> Bytes {
    Bytes::try_from(value).unwrap_or(Bytes::MAX)
}

/// A chunk in its pool, at a time when it needs bytes or is written.
#[derive(Clone, Copy)]
struct Owner {
    chunk: ChunkId,
    low: Bytes,
    /// True in the step in which an overwriter is written.
    is_written: bool,
}

impl Facts<'_> {
    /// The byte after the last of a chunk, without padding.
    fn end_of_value(&self, chunk: ChunkId, low: Bytes) -> Bytes {
        low.saturating_add(self.problem.chunk(chunk).size)
    }

    /// With several streams: returns whether one of two chunks is an overwriter in the step that writes it, and may
    /// share its bytes with the other chunk in that step.
    fn is_harmless(&self, same: &SameBytes<'_>, x: &Timed<'_>, y: &Timed<'_>) -> bool {
        self.shares_first_step(same, x, y) || self.shares_first_step(same, y, x)
    }

    /// Returns whether an overwriter, in the step that writes it, may share its bytes with another chunk. That holds
    /// for the chunk that it overwrites, for a chunk further down the chain of chunks overwritten in the same step, and
    /// for a relative of the overwritten chunk of which only padding is shared, which is neither written nor destroyed.
    fn shares_first_step(&self, same: &SameBytes<'_>, new: &Timed<'_>, other: &Timed<'_>) -> bool {
        let made = |chunk: ChunkId| {
            let stream = self.constraints.of(chunk).stream;
            (stream, self.begin(chunk).get(stream).copied())
        };
        let over = |&chunk: &ChunkId| self.overwrites[chunk.index()].map(|over| over.chunk);
        let Some(old) = over(&new.chunk).filter(|_| new.is_written()) else { return false };
        let is_after = |old: &ChunkId| made(*old) == made(new.chunk);
        let olds = || std::iter::successors(Some(old), over).take(self.problem.len());
        let together = olds().take_while(is_after).count();
        let end = |one: &Timed<'_>| self.end_of_value(one.chunk, one.spot.low);
        let is_real = new.spot.low.max(other.spot.low) < end(new).min(end(other));
        new.chunk == other.chunk
            || olds().take(together + 1).any(|old| old == other.chunk)
            || same.are_relatives(old, other.chunk) && !is_real
    }

    /// Returns whether an overwriter, in the step that writes it, cannot destroy bytes of another chunk. If two chunks
    /// are written over relatives in the same step, one of them must be written over the other.
    fn spares(&self, same: &SameBytes<'_>, new: Owner, other: Owner) -> bool {
        let over = |&chunk: &ChunkId| self.overwrites[chunk.index()].map(|over| over.chunk);
        let Some(old) = over(&new.chunk).filter(|_| new.is_written) else { return false };
        if new.is_written && other.is_written {
            let is_in_step = |chunk: &ChunkId| self.begin(*chunk) == self.begin(new.chunk);
            let mut olds = std::iter::successors(Some(old), over).take_while(is_in_step);
            let is_of_family = over(&other.chunk)
                .is_some_and(|of_other| of_other == old || same.are_relatives(old, of_other));
            let is_over = new.chunk == other.chunk || olds.any(|old| old == other.chunk);
            return is_over || !is_of_family;
        }
        let is_same = old == other.chunk || new.chunk == other.chunk;
        is_same || !same.are_relatives(old, other.chunk)
    }
}

impl Clashes<'_> {
    /// Reports a pair once. Returns false if there are too many.
    fn report(&mut self, x: ChunkId, y: ChunkId, violation: impl FnOnce() -> Violation) -> bool {
        let pair = (x.min(y), x.max(y));
        if self.reported.contains(&pair) {
            return true;
        }
        if self.found.len() == OVERLAP_LIMIT {
            return false;
        }
        self.reported.insert(pair);
        self.found.push(violation());
        true
    }

    /// Checks that chunks that are to be kept apart share no byte at all.
    fn check_apart(&mut self) -> bool {
        let facts = self.facts;
        for group in &facts.constraints.apart {
            let ids: HashSet<ChunkId> = group.iter().copied().collect();
            let mut chunks: Vec<(ChunkId, Spot)> =
                ids.into_iter().filter_map(|chunk| Some((chunk, facts.spot(chunk)?))).collect();
            chunks.sort_unstable_by_key(|&(chunk, spot)| (spot.pool, spot.low, chunk));
            let mut open: Vec<(ChunkId, Spot)> = Vec::new();
            for (y, at_y) in chunks {
                open.retain(|(_, at)| at.pool == at_y.pool && at.high > at_y.low.into());
                for &(x, at_x) in &open {
                    let (low, high) = common(at_x, at_y);
                    let go_on = self.report(x, y, || Violation::TogetherThoughApart {
                        first: facts.name(x),
                        second: facts.name(y),
                        low: to_bytes(low),
                        high: to_bytes(high),
                    });
                    if !go_on {
                        return false;
                    }
                }
                open.push((y, at_y));
            }
        }
        true
    }

    /// Sweeps over the steps of the only stream.
    fn check_steps(&mut self, pool: usize, same: &SameBytes<'_>) -> bool {
        let facts = self.facts;
        let mut rectangles = Vec::new();
        for (chunk, spot) in facts.placed().filter(|(_, spot)| spot.pool == pool) {
            let overwritten = facts.overwrites[chunk.index()];
            if overwritten.is_some_and(|over| same.has_relatives(over.chunk)) {
                // The overwriter must not be written over bytes that relatives of the overwritten chunk need in this
                // step.
                let begin = facts.problem.chunk(chunk).begin;
                rectangles.push(Rectangle {
                    owner: Owner { chunk, low: spot.low, is_written: true },
                    begin,
                    end: begin.saturating_add(1),
                    low: spot.low,
                    high: spot.low.saturating_add(facts.problem.chunk(chunk).size),
                });
            }
            let needs = facts.needs(chunk, overwritten).into_iter();
            rectangles.extend(needs.map(|Need { begin, end, low, high }| Rectangle {
                owner: Owner { chunk, low: spot.low, is_written: false },
                begin,
                end,
                low: to_bytes(u128::from(spot.low) + low),
                high: to_bytes(u128::from(spot.low) + high),
            }));
        }
        each_overlap(&rectangles, |old, new| {
            let (low, mut high) = (old.low.max(new.low), old.high.min(new.high));
            let (x, y) = (old.owner, new.owner);
            if x.is_written || y.is_written {
                // Padding is neither written nor destroyed, and no other chunk has bytes there.
                let end = |one: Owner| facts.end_of_value(one.chunk, one.low);
                high = high.min(end(x)).min(end(y));
                if low >= high || facts.spares(same, x, y) || facts.spares(same, y, x) {
                    return true;
                }
            }
            let share =
                || same.may_share((x.chunk, x.low), (y.chunk, y.low), (low.into(), high.into()));
            if x.chunk == y.chunk || share() {
                return true;
            }
            self.report(x.chunk, y.chunk, || Violation::Overlap {
                first: facts.name(x.chunk),
                second: facts.name(y.chunk),
                step: new.begin,
                low,
                high,
            })
        })
    }

    /// Sweeps over the addresses of a pool. With several streams, chunks have no holes or windows.
    fn check_clocks(&mut self, pool: usize, same: &SameBytes<'_>) -> bool {
        let facts = self.facts;
        let mut chunks: Vec<Timed<'_>> = facts
            .placed()
            .filter(|(_, spot)| spot.pool == pool)
            .flat_map(|(chunk, spot)| Timed::all(facts, chunk, spot))
            .collect();
        // While an overwriter is written, its bytes are those of the overwritten chunk, and of no other one.
        let is_over = |chunk: ChunkId| facts.overwrites[chunk.index()].is_some();
        let written = facts.placed().filter(|&(chunk, spot)| spot.pool == pool && is_over(chunk));
        chunks.extend(written.map(|(chunk, spot)| Timed::new(facts, chunk, spot, Time::Written)));
        chunks.sort_by_key(|timed| (timed.bytes.start, timed.chunk, timed.is_written()));
        each_meeting(&chunks, |old, new| {
            let low = old.bytes.start.max(new.bytes.start);
            let high = old.bytes.end.min(new.bytes.end);
            let (x, y) = ((old.chunk, old.spot.low), (new.chunk, new.spot.low));
            if facts.is_harmless(same, old, new) || same.may_share(x, y, (low, high)) {
                return true;
            }
            self.report(x.0, y.0, || Violation::ClockOverlap {
                first: facts.name(x.0),
                second: facts.name(y.0),
                low: to_bytes(low),
                high: to_bytes(high),
            })
        })
    }
}

/// Bytes of a chunk of a program on several streams, for some time.
#[derive(Clone)]
pub(super) struct Timed<'a> {
    pub(super) chunk: ChunkId,
    pub(super) spot: Spot,
    /// The addresses of the bytes.
    pub(super) bytes: Range<u128>,
    begin: &'a [Step],
    end: &'a [Step],
    /// For an overwriter, the stream in which it is written.
    stream: Option<usize>,
    time: Time,
}

/// A part of the life of a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    /// From its begin to its end.
    Whole,
    /// From the end of the step in which it is written over another chunk to its end.
    Alone,
    /// The step in which it is written over another chunk.
    Step,
    /// As `Step`, but for all bytes that are written, which may be bytes of the overwritten chunk.
    Written,
}

impl<'a> Timed<'a> {
    fn new(facts: &'a Facts<'_>, chunk: ChunkId, spot: Spot, time: Time) -> Self {
        let is_overwriter = facts.overwrites[chunk.index()].is_some();
        let stream = is_overwriter.then(|| facts.constraints.of(chunk).stream);
        let (begin, end) = (facts.begin(chunk), facts.end(chunk));
        let bytes = spot.low.into()..spot.high;
        Self { chunk, spot, bytes, begin, end, stream, time }
    }

    /// The whole life of a chunk, or, if it lies inside the one that it overwrites, its life without the step that
    /// both share; `None` if nothing is left.
    pub(super) fn life(facts: &'a Facts<'_>, chunk: ChunkId, spot: Spot) -> Option<Self> {
        match facts.overwrites[chunk.index()] {
            Some(over) if over.distance >= 0 => Self::alone(facts, chunk, spot),
            _ => Some(Self::new(facts, chunk, spot, Time::Whole)),
        }
    }

    /// The life of an overwriter without the step that it shares with the chunk that it overwrites; of another
    /// chunk, all of its life.
    fn alone(facts: &'a Facts<'_>, chunk: ChunkId, spot: Spot) -> Option<Self> {
        let timed = Self::new(facts, chunk, spot, Time::Alone);
        let is_empty = timed.begins().eq(timed.end.iter().copied());
        (!is_empty).then_some(timed)
    }

    /// The times in which a chunk has its bytes to itself. An overwriter that begins below the overwritten chunk has
    /// its bytes outside that chunk from its begin on.
    pub(super) fn all(
        facts: &'a Facts<'_>,
        chunk: ChunkId,
        spot: Spot,
    ) -> impl Iterator<Item = Self> {
        let over = facts.overwrites[chunk.index()].filter(|over| over.distance < 0);
        let outside = over.into_iter().flat_map(move |over| {
            let start = u128::from(spot.low);
            let old = start + over.distance.unsigned_abs();
            let below = start..old.min(spot.high);
            let above = (old + facts.padded(over.chunk)).max(start)..spot.high;
            let step = Self::new(facts, chunk, spot, Time::Step);
            [below, above].map(|bytes| Self { bytes, ..step.clone() })
        });
        let outside = outside.filter(|timed| !timed.bytes.is_empty());
        outside.chain(Self::alone(facts, chunk, spot))
    }

    fn is_written(&self) -> bool {
        self.time == Time::Written
    }

    /// A clock; if `is_later`, with one more step on the stream that writes the overwriter.
    fn later(&self, clock: &'a [Step], is_later: bool) -> impl Iterator<Item = Step> + use<'a> {
        let stream = self.stream.filter(|_| is_later);
        let step = move |at: usize| Step::from(stream == Some(at));
        clock.iter().enumerate().map(move |(at, &time)| time.saturating_add(step(at)))
    }
}

impl ClockTreeSpace for Timed<'_> {
    fn bytes(&self) -> Range<u128> {
        self.bytes.clone()
    }

    fn begins(&self) -> impl Iterator<Item = Step> {
        self.later(self.begin, self.time == Time::Alone)
    }

    fn ends(&self) -> impl Iterator<Item = Step> {
        match self.time {
            Time::Whole | Time::Alone => self.later(self.end, false),
            Time::Step | Time::Written => self.later(self.begin, true),
        }
    }
}
