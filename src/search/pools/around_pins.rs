//! The limit schedule for one pool: a problem whose only constraints are pins and reserved ranges is packed by the
//! search of unconstrained problems, around the bodies that cannot move. Before and after that, packings without pins
//! are repacked until all pins hold. Where that stays above the bound, guided search follows. Where this fails as well,
//! or there are too many bodies for all of these, bodies eject others.

use std::ops::Range;

use crate::{
    Bytes, Limits,
    monitor::Monitor,
    problem::{
        ChunkId, Segment,
        constraints::{Body, Place, TimedBox},
    },
    search::{
        Stage,
        control::{
            descent::{Attempts, Packer},
            threads::Snapshot,
        },
        ejection::{Ejection, LEVELS},
        first_fit::Packed,
        packing::Packing,
        pool_instance::PoolInstance,
        repack::{MAX_ON_TOP, on_top},
        repair_pins::PinRepair,
        schedule::{HUGE, LARGE},
        state::instance::{Instance, Outline},
    },
};

/// The most nodes, so that a search without an end reaches the other searches.
const MAX_NODES: u64 = 50_000_000;

/// The default effort is this many times the effort of an unconstrained problem.
const TIMES: u64 = 9;

/// The nodes of a first search, which prove what is easy.
const QUICK: u64 = 20_000;

/// Before the longer search, one in this many of the nodes go to repairing pins.
const EARLY: u64 = 16;

/// A quarter of fewer nodes goes to it, up to this many, which are often enough.
const OFTEN_ENOUGH: u64 = 200_000;

/// The result of the search.
pub struct Tightened {
    /// The places of all bodies in the best pool.
    pub places: Vec<Place>,
    /// The bound in bytes: no pool is smaller.
    pub bound: Bytes,
    pub nodes: u64,
}

/// Searches for a pool between a bound and that of a packing; `None` if the problem has other
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
    let inst = Instance::of_outlines(&bodies, alignment, false).without(monitor.without());
    let is_tightened = instance.bodies.len() <= LARGE;
    let inst = if is_tightened { inst.with_pins() } else { inst };
    let step = inst.unit * inst.align;
    if !bound.is_multiple_of(step) {
        return None;
    }
    let usual = Limits { nodes: None, ..*limits }.scaled_to_gap(bound, best, 1);
    let usual = usual.effort().saturating_mul(TIMES);
    let effort = match limits.nodes {
        None => usual,
        Some(nodes) => (nodes / 2).min(MAX_NODES),
    };
    let mut packing = Packing::new(&inst, bound, best);
    let mut nodes = 0;
    let first = effort.min(usual);
    // By default, other searches have nodes on top of the effort; a given effort contains them.
    let more = |spent| if limits.is_default() { u64::MAX } else { effort.saturating_sub(spent) };
    if is_tightened {
        // More effort begins as the default one does.
        let mut repair = PinRepair::new(&inst);
        let quick = first.min(QUICK);
        nodes += packing.tighten(quick, 1, monitor);
        let early = (first / 4).min(OFTEN_ENOUGH).max(first / EARLY);
        let early = repair_pins(&mut packing, &mut repair, early, monitor);
        nodes +=
            early + packing.tighten(first.saturating_sub(quick + early), limits.threads, monitor);
        let late = (first / 2).min(more(first));
        let late = repair_pins(&mut packing, &mut repair, late, monitor);
        let spent = first + late;
        let guided = packing.guide(&[0], (first / 2).min(more(spent)), monitor);
        let spent = spent + guided;
        let ejected = eject(&mut packing, first / 4, more(spent), monitor);
        nodes += late + guided + ejected;
        let ejected = ejected.saturating_sub(first / 4);
        // A search that only time ends goes on as long as it can.
        let rest = effort.saturating_sub(spent + ejected);
        nodes += packing.tighten(rest, limits.threads, monitor);
    } else {
        nodes += eject(&mut packing, effort, more(effort), monitor);
    }
    let mut places = packed.places.clone();
    for (root, offset) in inst.roots.iter().zip(packing.offsets.iter().flatten()) {
        // Reserved ranges have a number that no body has.
        if let Some(place) = places.get_mut(root.index()) {
            place.offset = offset * inst.unit;
        }
    }
    Some(Tightened { places, bound: packing.bound().min(best), nodes })
}

/// Packs all bodies at the bound without pins, and repacks them until all pins hold, with this many nodes or a few
/// more; returns the nodes.
fn repair_pins(
    packing: &mut Packing<'_>,
    packer: &mut Option<PinRepair<'_>>,
    nodes: u64,
    monitor: &mut Monitor<'_>,
) -> u64 {
    let is_on = nodes > 0 && !packing.is_proven() && monitor.has(Stage::PinRepair);
    let Some(packer) = packer.as_mut().filter(|_| is_on && !monitor.must_stop()) else { return 0 };
    let attempts = Attempts { levels: &[0], share: nodes, nodes: packer.nodes() + nodes };
    packing.descend(packer, attempts, 0, monitor)
}

/// If the pool is more than a percent above the bound, repacks all bodies, and lets those that do
/// not fit eject others, with this many nodes and those that come on top by default, but no more of these than
/// `most_on_top`. Returns the nodes.
fn eject(
    packing: &mut Packing<'_>,
    nodes: u64,
    most_on_top: u64,
    monitor: &mut Monitor<'_>,
) -> u64 {
    let Snapshot { bound, best } = packing.snapshot;
    let is_near = best.saturating_sub(bound) <= bound / 100;
    if is_near || !monitor.has(Stage::Ejection) || monitor.must_stop() {
        return 0;
    }
    let Some(mut packer) = Ejection::new(packing.inst) else { return 0 };
    let share = packer.share();
    let all = nodes + on_top(share, MAX_ON_TOP, &Limits::default()).min(most_on_top);
    if packer.placing() > all {
        return 0;
    }
    packing.descend(&mut packer, Attempts { levels: &LEVELS, share, nodes: all }, 0, monitor)
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
    let alignment = pool.root_alignment(problem);
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

/// Sorts ranges, and makes one of those that overlap or touch.
fn merged(mut ranges: Vec<Range<Bytes>>) -> Vec<Range<Bytes>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let is_one = next.start <= last.end;
        last.end = if is_one { last.end.max(next.end) } else { last.end };
        is_one
    });
    ranges
}

/// A body, if all its offsets are multiples of the alignment, its boxes follow each other without a
/// break, and they need each of its bytes at some time: a byte that none needs must not lie in reserved
/// bytes either.
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
    let segment = |TimedBox { begin, end, bytes }: &TimedBox| {
        let (begin, end) = (*begin.first()?, *end.first()?);
        let (low, high) = (bytes.start, bytes.end.checked_next_multiple_of(alignment)?);
        let is_some = begin < end && low < high && low.is_multiple_of(alignment);
        is_some.then_some(Segment { chunk: number, begin, end, low, high })
    };
    let mut segments: Vec<Segment> = boxes.iter().map(segment).collect::<Option<_>>()?;
    segments.sort_unstable_by_key(|segment| segment.begin);
    let follow = segments.is_sorted_by(|a, b| a.end == b.begin);
    // A box that takes over the bytes of the one before it makes no staircase.
    segments.dedup_by(|next, last| {
        let is_one = (last.end, last.low, last.high) == (next.begin, next.low, next.high);
        last.end = if is_one { next.end } else { last.end };
        is_one
    });
    let fixed = body.fixed.map(|place| place.offset);
    follow.then_some(Outline { root: number, segments, fixed })
}
