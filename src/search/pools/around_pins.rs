//! The limit schedule for one pool: a problem whose only constraints are pins and reserved ranges is packed by the
//! search of unconstrained problems, around the bodies that cannot move. Before and after that, packings without pins
//! are repacked until all pins hold. Where that stays above the bound, guided search follows. Where this fails as well,
//! or there are too many bodies for all of these, bodies eject others. Without pins and reserved ranges, bodies of
//! windows or parts are staircases of an unconstrained problem, and are searched by its schedule.

use std::{iter, ops::Range};

use crate::{
    Bytes, Limits,
    bodies::{Body, TimedBox},
    monitor::Monitor,
    problem::{ChunkId, Segment, constraints::Place},
    search::{
        Stage,
        engine::Turn,
        first_fit::Packed,
        packing::Packing,
        pool_instance::PoolInstance,
        pools::TIMES,
        schedule::{AROUND_PINS, IN_TURNS, LIMITS_ALONE},
        sizes::{HUGE, LARGE, LONG, MAX_COVERED},
        state::instance::{Instance, Outline},
    },
    sets::{distinct, merged},
};

/// The result of the search.
pub struct Tightened {
    /// The places of all bodies in the best pool.
    pub places: Vec<Place>,
    /// The bound in bytes: no pool is smaller.
    pub bound: Bytes,
    pub nodes: u64,
}

/// Searches for a pool between a bound and the pool of a packing; `None` if the problem has other
/// constraints than the search of unconstrained problems supports.
pub fn tighten(
    instance: &PoolInstance<'_>,
    packed: &Packed,
    bound: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Option<Tightened> {
    if !monitor.has(Stage::AroundPins) {
        return None;
    }
    let [_, best] = *packed.objective else { return None };
    let best = Bytes::try_from(best).ok()?;
    let (bodies, alignment) = outlines(instance, bound, best)?;
    let inst = Instance::of_outlines(&bodies, alignment).without(monitor.without());
    let is_tightened = inst.bodies() <= LARGE;
    let inst = if is_tightened { inst.with_pins() } else { inst };
    let step = inst.unit * inst.align;
    if !bound.is_multiple_of(step) {
        return None;
    }
    let usual = Limits { nodes: None, ..*limits }.scaled_to_gap(bound, best, 1);
    let is_free = inst.fixed.is_empty() && inst.pins.is_empty();
    let usual = usual.effort().saturating_mul(if is_free { 1 } else { TIMES });
    let effort = limits.nodes.map_or(usual, |nodes| nodes / 2);
    let mut packing = Packing::new(&inst, bound, best).with_threads(limits.threads);
    let is_in_turns = is_free && inst.bodies() <= LONG;
    let schedules = if is_in_turns { &[IN_TURNS, LIMITS_ALONE][..] } else { &[AROUND_PINS] };
    let mut nodes = 0;
    for schedule in schedules {
        let left = effort.saturating_sub(nodes);
        let turn = Turn { usual: left.min(usual), ..Turn::first(&inst, left, limits) };
        nodes += schedule.run(turn, &mut packing, monitor);
    }
    let mut places = packed.places.clone();
    for (root, offset) in packing.bases().into_iter().flatten() {
        // Reserved ranges have a number that no body has.
        if let Some(place) = places.get_mut(root.index()) {
            place.offset = offset;
        }
    }
    Some(Tightened { places, bound: packing.bound().min(best), nodes })
}

/// The bodies by number, then the reserved ranges, and the alignment of all offsets.
fn outlines(
    instance: &PoolInstance<'_>,
    bound: Bytes,
    best: Bytes,
) -> Option<(Vec<Outline>, Bytes)> {
    let PoolInstance { problem, bodies, .. } = instance;
    let [pool] = instance.pools else { return None };
    let is_simple = pool.largest.is_none() && instance.streams() == 1;
    if !is_simple || !instance.apart().is_empty() || bodies.len() > HUGE {
        return None;
    }
    let alignment = pool.root_alignment(problem.alignment());
    let boxes = bodies.iter().zip(&instance.boxes);
    let mut outlines: Vec<Outline> = (0..)
        .zip(boxes)
        .filter(|(_, (body, _))| body.extent > 0)
        .map(|(at, (body, boxes))| outline(ChunkId(at), body, boxes, alignment))
        .collect::<Option<_>>()?;
    let steps = || outlines.iter().flat_map(|outline| &outline.segments);
    let (begin, end) = (steps().map(|s| s.begin).min()?, steps().map(|s| s.end).max()?);
    // A range above the best pool does not matter; all others must lie below the bound.
    let mut reserved = Vec::new();
    for range in pool.reserved.iter().filter(|range| range.start < best && !range.is_empty()) {
        if range.end > bound || !range.start.is_multiple_of(alignment) {
            return None;
        }
        reserved.push(range.start..range.end.checked_next_multiple_of(alignment)?);
    }
    for range in merged(reserved) {
        let chunk = ChunkId(u32::MAX);
        let segments = vec![Segment { chunk, begin, end, low: 0, high: range.end - range.start }];
        outlines.push(Outline { root: chunk, segments, fixed: Some(range.start) });
    }
    Some((outlines, alignment))
}

/// The outline of a body. `None` unless all its offsets are multiples of the alignment, and it needs one range of bytes
/// at each time of its life, and each of its bytes at some time: a byte that no box needs would not be kept clear of
/// reserved ranges.
fn outline(number: ChunkId, body: &Body, boxes: &[TimedBox], alignment: Bytes) -> Option<Outline> {
    let is_aligned = match body.fixed {
        Some(place) => place.offset.is_multiple_of(alignment),
        None => body.pools.iter().all(|at| at.modulus == alignment && at.residue == 0),
    };
    let needed = merged(boxes.iter().map(|timed| timed.bytes.clone()).collect());
    let is_needed = matches!(&*needed, [all] if *all == (0..body.extent));
    if !is_aligned || !is_needed {
        return None;
    }
    let times = distinct(boxes.iter().flat_map(|timed| [timed.begin[0], timed.end[0]]));
    let is_some = |timed: &&TimedBox| !timed.bytes.is_empty() && timed.begin < timed.end;
    let mut begun: Vec<&TimedBox> = boxes.iter().filter(is_some).collect();
    begun.sort_by_key(|timed| timed.begin[0]);
    let mut begun = begun.into_iter().peekable();
    let (mut alive, mut segments): (Vec<&TimedBox>, Vec<Segment>) = (Vec::new(), Vec::new());
    let mut covered = 0;
    for time in times.windows(2) {
        let (begin, end) = (time[0], time[1]);
        alive.retain(|timed| timed.end[0] > begin);
        alive.extend(iter::from_fn(|| begun.next_if(|timed| timed.begin[0] == begin)));
        covered += alive.len();
        if covered > MAX_COVERED {
            return None;
        }
        let bytes = merged(alive.iter().map(|timed| timed.bytes.clone()).collect());
        let [Range { start: low, end: high }] = bytes[..] else { return None };
        let high = high.checked_next_multiple_of(alignment)?;
        if !low.is_multiple_of(alignment) {
            return None;
        }
        match segments.last_mut() {
            // The same bytes as before add no part to the staircase.
            Some(last) if (last.low, last.high) == (low, high) => last.end = end,
            _ => segments.push(Segment { chunk: number, begin, end, low, high }),
        }
    }
    Some(Outline { root: number, segments, fixed: body.fixed.map(|place| place.offset) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{Observer, Problem, Progress, Step, Strategy, search::samples::dice};

    /// Chunks of which every third needs only its upper half in the middle of its life.
    fn windows(chunks: u64, lives: u64) -> Problem {
        let mut roll = dice(3);
        let mut problem = Problem::builder();
        for _ in 0..chunks {
            let begin = roll(chunks);
            let end = begin + 3 + roll(lives);
            let size = 2 * (1 + roll(400));
            let chunk = problem.chunk(begin..end, size);
            if roll(3) == 0 {
                problem.window(chunk, begin + 1..end - 1, size / 2..size);
            }
        }
        problem.build().unwrap()
    }

    /// Parts of one body that are alive together are one range of bytes, or the body is no staircase.
    #[rstest::rstest]
    #[case::side_by_side(0..5, 2..5, 8, Some(vec![(0, 2, 0, 4), (2, 6, 0, 8)]))]
    #[case::one_alone(0..5, 5..5, 8, Some(vec![(0, 4, 0, 4), (4, 6, 0, 8)]))]
    #[case::with_a_gap_between_them(0..5, 2..5, 12, None)]
    fn parts_that_are_alive_together_are_one_range(
        #[case] first: Range<Step>,
        #[case] second: Range<Step>,
        #[case] size: Bytes,
        #[case] expected: Option<Vec<(Step, Step, Bytes, Bytes)>>,
    ) {
        let mut problem = Problem::builder();
        let whole = problem.chunk(4..6, size);
        for (life, offset) in [(first, 0), (second, size - 4)] {
            if !life.is_empty() {
                let part = problem.chunk(life, 4);
                problem.part(part, whole, offset);
            }
        }
        let problem = problem.build().unwrap();
        let instance = PoolInstance::of(&problem);
        let (body, boxes) = (&instance.bodies[0], &instance.boxes[0]);
        let found = outline(ChunkId(0), body, boxes, 1).map(|outline| {
            let segments = outline.segments.iter();
            segments.map(|s| (s.begin, s.end, s.low, s.high)).collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{boxes:?}");
    }

    /// Nothing is pinned, so the search takes no more nodes than that of other staircases.
    #[test]
    fn bodies_of_windows_take_the_effort_of_staircases() {
        let problem = windows(300, 60);
        let spent = AtomicU64::new(0);
        let progress = |progress: &Progress| {
            spent.fetch_max(progress.nodes, Ordering::Relaxed);
        };
        let observer = Observer { progress: Some(&progress), ..Observer::default() };
        let layout = Strategy::Best.layout(&problem, &Limits::default(), observer).unwrap();
        let (pool, bound) = (layout.pool_size(&problem), layout.lower_bound);
        assert!(bound < pool && pool < bound + bound / 25, "{pool}, {bound}");
        let spent = spent.into_inner();
        assert!((500_000..6_000_000).contains(&spent), "{spent}");
    }
}
