//! A shelf: some bodies in one bin, packed as low as possible.

use crate::search::sizes::{LARGE, MAX_COVERED, WORK_PER_NODE};
use std::{collections::BTreeSet, ops::Range};

use crate::{
    Bytes, Step,
    bodies::{Body, TimedBox, concurrent},
    monitor::Monitor,
    search::{
        control::meter::Meter,
        disjunctive::{self, Disjunctive, FAR, Pair},
        effort::Verdict,
        pool_instance::{OverlapFinder, PoolInstance},
        pools::bins::Bin,
        ranges::Grid,
    },
    sets::distinct,
};

/// Bytes of a body in a section.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    pub body: usize,
    pub low: Bytes,
    pub high: Bytes,
}

/// Intervals any two of which may be alive together; with one stream, the intervals alive in one step.
pub type Section = Vec<Interval>;

/// The sections of a problem: with one stream, one for each step where bytes begin to be needed. `None` if the
/// search must stop, or if with several streams they take more nodes than the budget.
pub fn sections(
    instance: &PoolInstance<'_>,
    budget: u64,
    monitor: &mut Monitor<'_>,
) -> Option<Vec<Section>> {
    let intervals: Vec<(usize, TimedBox)> = (0..)
        .zip(instance.bodies)
        .flat_map(|(at, body)| {
            instance.problem.disjoint_boxes(body).map(move |interval| (at, interval))
        })
        .collect();
    let nodes =
        (intervals.len() as u64).saturating_mul(intervals.len() as u64) / WORK_PER_NODE as u64;
    let sections = match instance.streams() {
        1 => alive_in_steps(&intervals, monitor)?,
        _ if nodes > budget => return None,
        _ => alive_together(&intervals, monitor)?,
    };
    let interval = |at: usize| {
        let (body, TimedBox { bytes, .. }) = &intervals[at];
        Interval { body: *body, low: bytes.start, high: bytes.end }
    };
    let section = |section: Vec<usize>| section.into_iter().map(interval).collect();
    Some(distinct(sections).into_iter().map(section).collect())
}

/// For each interval, the intervals that are alive when it begins, found by comparing all with all. `None` if the
/// search must stop.
fn alive_together(
    intervals: &[(usize, TimedBox)],
    monitor: &mut Monitor<'_>,
) -> Option<Vec<Vec<usize>>> {
    let alive_at = |cut: &[Step]| {
        let is_alive = |at: &usize| intervals[*at].1.is_alive_at(cut);
        (0..intervals.len()).filter(is_alive).collect()
    };
    intervals.iter().map(|(_, cut)| (!monitor.must_stop()).then(|| alive_at(&cut.begin))).collect()
}

/// On one stream: for each step in which an interval begins, the intervals that are alive in it. `None` if the search
/// must stop, or if their lists are too long to store.
fn alive_in_steps(
    intervals: &[(usize, TimedBox)],
    monitor: &mut Monitor<'_>,
) -> Option<Vec<Vec<usize>>> {
    let sorted = |step: fn(&TimedBox) -> Step| {
        let mut events: Vec<(Step, usize)> =
            intervals.iter().enumerate().map(|(at, (_, interval))| (step(interval), at)).collect();
        events.sort_unstable();
        events
    };
    let mut ends = sorted(|interval| interval.end[0]).into_iter().peekable();
    let mut alive = BTreeSet::new();
    let (mut sections, mut count) = (Vec::new(), 0);
    for begun in sorted(|interval| interval.begin[0]).chunk_by(|a, b| a.0 == b.0) {
        alive.extend(begun.iter().map(|&(_, at)| at));
        while let Some((_, at)) = ends.next_if(|&(end, _)| end <= begun[0].0) {
            alive.remove(&at);
        }
        count += alive.len();
        if count > MAX_COVERED || monitor.must_stop() {
            return None;
        }
        sections.push(alive.iter().copied().collect());
    }
    Some(sections)
}

/// Bodies to pack in one bin.
pub struct Shelf {
    search: Option<Disjunctive>,
    /// The number of bodies; reserved ranges follow as bodies that cannot move.
    bodies: usize,
    /// By body, the bytes from its lowest to its highest.
    extents: Vec<Bytes>,
    /// A limit that no packing meets.
    pub refuted: Option<Bytes>,
    /// The lowest packing so far: the size of the bin, and offsets from its base.
    pub packed: Option<(Bytes, Vec<Bytes>)>,
}

impl Shelf {
    /// Creates a shelf for these bodies, which are ascending.
    pub fn new(
        instance: &PoolInstance<'_>,
        sections: &[Section],
        bin: &Bin,
        bodies: &[usize],
        monitor: &mut Monitor<'_>,
    ) -> Self {
        let extents = bodies.iter().map(|&at| instance.bodies[at].extent).collect();
        let search = pack(instance, sections, bin, bodies, monitor);
        Self { search, bodies: bodies.len(), extents, refuted: None, packed: None }
    }

    /// The number of nodes so far.
    pub fn nodes(&self) -> u64 {
        self.search.as_ref().map_or(0, Disjunctive::nodes)
    }

    /// Searches for a packing that ends no higher than the limit, within this many nodes.
    pub fn decide(
        &mut self,
        bin: &Bin,
        limit: Bytes,
        nodes: u64,
        meter: &mut Meter<'_>,
    ) -> Verdict {
        if self.packed.as_ref().is_some_and(|&(size, _)| size <= limit) {
            return Verdict::Packed;
        }
        if self.refuted.is_some_and(|refuted| limit <= refuted) {
            return Verdict::Refuted;
        }
        let Some(search) = &mut self.search else { return Verdict::NodeLimit };
        let verdict = search.decide(limit, nodes, meter);
        match verdict {
            Verdict::Packed => {
                let offsets = search.offsets()[..self.bodies].to_vec();
                let tops =
                    offsets.iter().zip(&self.extents).map(|(offset, extent)| offset + extent);
                self.packed = Some((bin.size(tops.max().unwrap_or(0)), offsets));
            }
            Verdict::Refuted => self.refuted = Some(limit),
            Verdict::NodeLimit => {}
        }
        verdict
    }
}

/// The search for a shelf; `None` if sizes are too large or pairs too many for it, or the search must stop.
fn pack(
    instance: &PoolInstance<'_>,
    sections: &[Section],
    bin: &Bin,
    bodies: &[usize],
    monitor: &mut Monitor<'_>,
) -> Option<Disjunctive> {
    let whole = |bytes: Bytes| i64::try_from(bytes).ok().filter(|&bytes| bytes < FAR / 4);
    let total = bodies.iter().map(|&at| &instance.bodies[at]);
    let total = total.fold(0, |sum: Bytes, body| sum.saturating_add(body.extent));
    whole(total)?;
    let (mut tops, mut offered) = (Vec::new(), Vec::new());
    for &at in bodies {
        let body = &instance.bodies[at];
        let allowed = body.pools.iter().find(|allowed| allowed.pool.index() == bin.pool)?;
        let (modulus, base) = (whole(allowed.modulus)?, whole(bin.base)?);
        let residue = (whole(allowed.residue)? - base).rem_euclid(modulus);
        let fixed = match body.fixed {
            Some(place) => Some(whole(place.offset.checked_sub(bin.base)?)?),
            None => None,
        };
        tops.push(whole(body.extent)?);
        offered.push((Grid { modulus, residue }, fixed));
    }
    let mut pairs = Vec::new();
    for (b, &second) in bodies.iter().enumerate() {
        if monitor.must_stop() {
            return None;
        }
        for (a, &first) in bodies[..b].iter().enumerate() {
            let clashes = clashes(instance, first, second);
            if !clashes.is_empty() {
                pairs.push(Pair::new([a, b], clashes, 1));
            }
        }
    }
    for Range { start, end } in bin.reserved.iter().cloned() {
        let (start, end) = (whole(start)?, whole(end)?);
        // Reserved bytes may lie above the limit.
        let at = tops.len();
        tops.push(i64::MIN / 4);
        offered.push((Grid { modulus: 1, residue: 0 }, Some(start)));
        for (a, &body) in bodies.iter().enumerate() {
            let reach = |&(chunk, low): &(_, Bytes)| {
                let (low, size) = (low.cast_signed(), instance.problem.padded_size(chunk));
                (low - (end - start), low + size.cast_signed())
            };
            let members = &instance.bodies[body].members;
            pairs.push(Pair::new([a, at], members.iter().map(reach).collect(), 1));
        }
    }
    if pairs.len() > LARGE {
        return None;
    }
    let mut slices: Vec<Vec<disjunctive::Interval>> = Vec::new();
    for section in sections {
        let mut found = Vec::new();
        for interval in section {
            if let Ok(body) = bodies.binary_search(&interval.body) {
                let (low, high) = (interval.low.cast_signed(), interval.high.cast_signed());
                found.push(disjunctive::Interval { body, low, high });
            }
        }
        if found.len() > 1 {
            slices.push(found);
        }
    }
    let mut spans = vec![0..0; tops.len()];
    for (at, section) in slices.iter().enumerate() {
        for slice in section {
            let span = &mut spans[slice.body];
            *span = if span.end == 0 { at..at + 1 } else { span.start..at + 1 };
        }
    }
    Some(Disjunctive::of_pairs(tops, offered, pairs, slices, spans))
}

/// The differences of offsets at which two bodies clash: those strictly within a range.
pub fn clashes(instance: &PoolInstance<'_>, first: usize, second: usize) -> Vec<(i64, i64)> {
    let mut clashes = Vec::new();
    let range = |p: &Range<Bytes>, q: &Range<Bytes>| {
        let [p_low, p_high, q_low, q_high] = [p.start, p.end, q.start, q.end].map(u64::cast_signed);
        (p_low - q_high, p_high - q_low)
    };
    if let OverlapFinder::Pairs(all) = &instance.overlaps {
        clashes = all.between(first, second);
    } else {
        for p in &instance.boxes[first] {
            let others = instance.boxes[second].iter().filter(|q| concurrent(p, q));
            clashes.extend(others.map(|q| range(&p.bytes, &q.bytes)));
        }
    }
    let bytes = |body: &Body, group: &[_]| -> Vec<Range<Bytes>> {
        let members = body.members.iter().filter(|(chunk, _)| group.contains(chunk));
        members.map(|&(chunk, at)| at..at + instance.problem.padded_size(chunk)).collect()
    };
    for group in instance.apart() {
        let (p, q) =
            (bytes(&instance.bodies[first], group), bytes(&instance.bodies[second], group));
        clashes.extend(p.iter().flat_map(|p| q.iter().map(|q| range(p, q))));
    }
    clashes
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rstest::rstest;

    use super::*;
    use crate::{Limits, Observer, Problem, seeds::times};

    #[test]
    fn slabs_of_a_step_are_those_alive_when_one_begins() {
        let mut monitor = Monitor::new(&Limits::default(), Observer::default());
        times(1000, |random| {
            let mut intervals = Vec::new();
            for body in 0..random.int_in_range(0..=12)? {
                let begin: Step = random.int_in_range(0..=9)?;
                let end = begin + random.int_in_range(1..=5)?;
                let interval = TimedBox { begin: [begin].into(), end: [end].into(), bytes: 0..1 };
                intervals.push((body, interval));
            }
            let by_pairs = distinct(alive_together(&intervals, &mut monitor).unwrap());
            assert_eq!(distinct(alive_in_steps(&intervals, &mut monitor).unwrap()), by_pairs);
            Ok(())
        });
    }

    /// Comparing 20 intervals with 20 moments takes 6 nodes.
    #[rstest]
    #[case::enough(2, 6, false, true)]
    #[case::no_budget(2, 5, false, false)]
    #[case::one_stream(1, 0, false, true)]
    #[case::cancelled(2, 6, true, false)]
    #[case::cancelled_on_one_stream(1, 6, true, false)]
    fn sections_end_with_the_budget_or_when_cancelled(
        #[case] streams: usize,
        #[case] budget: u64,
        #[case] is_cancelled: bool,
        #[case] is_found: bool,
    ) {
        let mut problem = Problem::builder();
        problem.streams(streams);
        for at in 0..20 {
            let chunk = problem.chunk(at..at + 2, 8);
            if streams > 1 {
                problem.clocks(chunk, [at, 0], [at + 2, 1], 0);
            } else {
                problem.align(chunk, 8);
            }
        }
        let problem = problem.build().unwrap();
        let cancel = AtomicBool::new(is_cancelled);
        let observer = Observer::default().cancel(&cancel);
        let mut monitor = Monitor::new(&Limits::default(), observer);
        let found = sections(&PoolInstance::of(&problem), budget, &mut monitor);
        assert_eq!(found.is_some(), is_found);
    }
}
