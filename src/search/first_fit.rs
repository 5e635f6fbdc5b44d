//! First fit: bodies in several orders, each at the lowest allowed offset in the first pool that
//! holds it.
//!
//! **Idea.** Bodies whose place is fixed come first. The others follow in an order, by size, area,
//! life and so on; each takes the lowest offset, in the first of its pools with room, that its
//! alignments, the capacity and the bodies placed before it allow. All orders are tried, and the best
//! layout is kept: the least traffic, then the smallest pools, the last pool first.
//!
//! **Cost.** O(n log n) in common cases. With several streams, each body passes the boxes that lie in its time
//! buckets, which are all if they live long.
//!
//! **When.** For problems with pools, pins, holes, parts or streams; it supports all of them.

use std::{cell::OnceCell, cmp::Reverse};

use crate::{
    PlanError, Problem,
    bodies::{AllowedPool, Body, TimedBox, wide_sum},
    budget::Budget,
    monitor::Monitor,
    plan::Layout,
    problem::constraints::{Place, PoolId},
    search::{
        Limits, Observer, Stage,
        pool_instance::{OverlapFinder, PoolInstance},
        pool_space::PoolSpace,
        size_classes::OpenPool,
        sizes::{LARGE, WORK_PER_NODE},
    },
};

/// The figures of a body that orders sort by.
struct Figures {
    /// The bytes from the lowest to the highest.
    extent: u128,
    /// The steps from the first to the last, added up over all streams.
    life: u128,
    /// Bytes times steps of all boxes.
    area: u128,
    /// The first step.
    begin: u128,
    /// The cost of the traffic in the last pool, less that in the first.
    saving: u128,
}

/// The key of an order: the larger comes first, field by field.
type Key = fn(&Figures) -> [u128; 2];

const KEYS: [Key; 6] = [
    |body| [body.extent, body.life],
    |body| [body.area, body.extent],
    |body| [body.life, body.extent],
    |body| [u128::MAX - body.begin, body.extent],
    |body| [body.begin, body.extent],
    |body| [body.saving.saturating_mul(4096) / body.area.max(1), body.extent],
];

/// The orders for many bodies on several streams in one pool. Each takes seconds, and on 17 such problems, no other
/// order packed lower.
const OF_MANY: [Key; 2] = [KEYS[0], KEYS[5]];

/// A packing by first fit.
#[derive(Clone)]
pub(crate) struct Packed {
    /// The bodies, in the order in which they were placed; those that are fixed come first.
    pub(crate) order: Vec<usize>,
    /// By body.
    pub(crate) places: Vec<Place>,
    pub(crate) objective: Vec<u128>,
}

/// Plans a problem by first fit in all orders, and returns the best layout.
///
/// # Errors
///
/// If in every order some body finds no place. That never happens for an unconstrained problem.
pub fn layout(problem: &Problem) -> Result<Layout, PlanError> {
    layout_within(problem, &Limits::default(), Observer::default())
}

/// Plans a problem until the time is over, or the search is cancelled.
pub(crate) fn layout_within(
    problem: &Problem,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Layout, PlanError> {
    let mut monitor = OpenPool::monitor(OpenPool::of(problem), problem, limits, observer);
    let instance = PoolInstance::within(problem, &mut monitor.first_budget());
    let packed = packed(&instance, &mut monitor)?;
    Ok(Layout::from_bodies(problem, instance.bodies, &packed.places))
}

/// The best packing of all orders, or of as many as the time allows. If the time ends during the first order, each of
/// its other bodies is put on top of the bodies that may be alive together with it. If there are many bodies, and the
/// problem allows it, all are then placed in [size classes](super::size_classes).
pub(super) fn packed(
    instance: &PoolInstance<'_>,
    monitor: &mut Monitor<'_>,
) -> Result<Packed, PlanError> {
    let PoolInstance { problem, bodies, boxes, .. } = instance;
    let figures = OnceCell::new();
    let figures_of = || -> Vec<Figures> {
        bodies.iter().zip(boxes).map(|(body, boxes)| figures_of(instance, body, boxes)).collect()
    };
    let mut best: Option<Packed> = None;
    let mut failure = None;
    for &key in keys(instance) {
        let is_done = monitor.must_stop() || !monitor.has(Stage::FirstFitOrders);
        if best.is_some() && is_done {
            break;
        }
        let (late, mut budget) = match best {
            Some(_) => (Late::Stop, monitor.budget()),
            None if instance.open_pool.is_some() => (Late::Stop, monitor.first_budget()),
            None => (Late::Finish, monitor.first_budget()),
        };
        if late == Late::Stop && budget.look().is_err() {
            break;
        }
        let mut order: Vec<usize> = (0..bodies.len()).collect();
        let figures = figures.get_or_init(figures_of);
        order.sort_by_cached_key(|&at| {
            (Reverse(bodies[at].fixed.is_some()), Reverse(key(&figures[at])))
        });
        match pack(instance, &order, late, &mut budget) {
            Ok(places) => {
                let objective = Layout::from_bodies(problem, bodies, &places).objective(problem);
                if best.as_ref().is_none_or(|best| objective < best.objective) {
                    best = Some(Packed { order, places, objective });
                }
            }
            Err(Unpacked::NoPlace(body)) => failure = failure.or(Some(body)),
            Err(Unpacked::Stopped) => break,
        }
    }
    if best.is_none()
        && let Some(places) = instance.open_pool.and_then(|open| open.places(problem))
    {
        let objective = Layout::from_bodies(problem, bodies, &places).objective(problem);
        best = Some(Packed { order: (0..bodies.len()).collect(), places, objective });
    }
    best.ok_or_else(|| {
        let body = &bodies[failure.unwrap_or(0)];
        let chunk = problem.name(body.members[0].0);
        PlanError::NoPlace { chunk, size: body.extent }
    })
}

/// The keys of the orders to try.
fn keys(instance: &PoolInstance<'_>) -> &'static [Key] {
    let are_many = instance.bodies.len() > LARGE;
    let is_slow = instance.streams() > 1 && instance.pools.len() == 1;
    if are_many && is_slow { &OF_MANY } else { &KEYS }
}

/// Packs in one order; `None` if some body finds no place, or the search must stop.
pub(super) fn pack_in(
    instance: &PoolInstance<'_>,
    order: Vec<usize>,
    monitor: &mut Monitor<'_>,
) -> Option<Packed> {
    let places = pack(instance, &order, Late::Stop, &mut monitor.budget()).ok()?;
    let layout = Layout::from_bodies(instance.problem, instance.bodies, &places);
    Some(Packed { order, objective: layout.objective(instance.problem), places })
}

/// The bytes of a body, each times the steps in which it is needed, on all streams.
pub(super) fn area(boxes: &[TimedBox]) -> u128 {
    let area = |b: &TimedBox| {
        (wide_sum(&b.end) - wide_sum(&b.begin)).saturating_mul((b.bytes.end - b.bytes.start).into())
    };
    boxes.iter().map(area).fold(0, u128::saturating_add)
}

fn figures_of(instance: &PoolInstance<'_>, body: &Body, boxes: &[TimedBox]) -> Figures {
    let begin = boxes.iter().map(|b| wide_sum(&b.begin)).min().unwrap_or(0);
    let end = boxes.iter().map(|b| wide_sum(&b.end)).max().unwrap_or(0);
    let cost = |pool: Option<&AllowedPool>| {
        pool.map_or(0, |allowed| instance.problem.cost_in(body, allowed.pool))
    };
    let (first, last) = (cost(body.pools.first()), cost(body.pools.last()));
    Figures {
        extent: body.extent.into(),
        life: end - begin,
        area: area(boxes),
        begin,
        saving: last.saturating_sub(first),
    }
}

/// The treatment of bodies that are not placed when the time ends.
#[derive(Clone, Copy, PartialEq)]
enum Late {
    /// The packing is given up.
    Stop,
    /// Each is put on top of those that are placed and may be alive together with it, where it fits.
    Finish,
}

/// The reason why packing failed.
enum Unpacked {
    /// This body finds no place.
    NoPlace(usize),
    Stopped,
}

/// Places all bodies in an order.
fn pack(
    instance: &PoolInstance<'_>,
    order: &[usize],
    late: Late,
    budget: &mut Budget<'_>,
) -> Result<Vec<Place>, Unpacked> {
    let PoolInstance { pools, bodies, boxes, .. } = instance;
    let mut places = vec![Place::default(); bodies.len()];
    let mut is_late = budget.look().is_err();
    if late == Late::Stop && (is_late || matches!(instance.overlaps, OverlapFinder::Unknown)) {
        return Err(Unpacked::Stopped);
    }
    let ids = (0..).map(PoolId);
    let mut rooms: Vec<PoolSpace<'_>> =
        ids.zip(pools.iter()).map(|(id, pool)| PoolSpace::new(instance, id, pool)).collect();
    for &at in order {
        let body = &bodies[at];
        is_late = is_late || budget.spend(WORK_PER_NODE * boxes[at].len()).is_err();
        if is_late && late == Late::Stop {
            return Err(Unpacked::Stopped);
        }
        let place = body.fixed.or_else(|| {
            body.pools.iter().find_map(|allowed| {
                let room = &mut rooms[allowed.pool.index()];
                let on_top = is_late.then(|| room.top_over(at));
                let offset = on_top.and_then(|top| room.lowest(at, *allowed, top));
                let offset = offset.or_else(|| room.lowest(at, *allowed, 0))?;
                Some(Place::new(allowed.pool, offset))
            })
        });
        let place = place.ok_or(Unpacked::NoPlace(at))?;
        // A pinned buffer counts towards the capacity of its pool as well.
        if !rooms[place.pool.index()].has_capacity(place.offset, body.extent) {
            return Err(Unpacked::NoPlace(at));
        }
        rooms[place.pool.index()].take(at, place.offset);
        places[at] = place;
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rstest::rstest;

    use super::*;
    use crate::{Bytes, Step, Strategy, problem::constraints::Pool};

    /// A search that is cancelled at once puts each body on top of those that are alive together with it, as long as
    /// the first pool holds it.
    #[test]
    fn bodies_for_which_there_is_no_time_are_put_on_top() {
        let mut problem = Problem::builder();
        problem.streams(2);
        let small = problem.pool(Pool::new("small").capacity(30));
        let large = problem.pool(Pool::new("large"));
        for at in 0..5 {
            let chunk = problem.chunk(0..1, 10);
            problem.clocks(chunk, [at, at], [at + 2, at + 2], 0);
        }
        // It is as large as the others together, and comes first.
        let chunk = problem.chunk(0..1, 50);
        problem.clocks(chunk, [0, 0], [9, 9], 0);
        let problem = problem.build().unwrap();
        let instance = PoolInstance::of(&problem);
        let cancel = AtomicBool::new(false);
        let places = || {
            let observer = Observer::default().cancel(&cancel);
            packed(&instance, &mut Monitor::new(&Limits::default(), observer)).unwrap().places
        };
        let in_small = |offsets: [Bytes; 5]| offsets.map(|at| Place::new(small, at));
        assert_eq!(places()[..5], in_small([0, 10, 0, 10, 0]));
        let named = || {
            let observer = Observer::default().cancel(&cancel);
            Strategy::FirstFit.layout(&problem, &Limits::default(), observer).unwrap()
        };
        let at_leisure = named();
        cancel.store(true, Ordering::Relaxed);
        let places = places();
        assert_ne!(named(), at_leisure);
        // The small pool has no room above the third, but below.
        assert_eq!(places[..5], in_small([0, 10, 20, 0, 10]));
        assert_eq!(places[5], Place::new(large, 0));
    }

    /// In one pool without limits, many bodies share blocks, whether the time ends before anything is placed or after.
    #[test]
    fn many_bodies_for_which_there_is_no_time_are_placed_in_size_classes() {
        let mut problem = Problem::builder();
        problem.streams(2);
        for at in 0..1000 {
            let chunk = problem.chunk(0..1, 10);
            problem.clocks(chunk, [at, at], [at + 1, at + 1], 0);
            // No other chunk is as large.
            let chunk = problem.chunk(0..1, 100 + at);
            problem.clocks(chunk, [at, 0], [at + 1, 0], 0);
        }
        let problem = problem.build().unwrap();
        let instance = PoolInstance::of(&problem);
        let order: Vec<usize> = (0..2000).rev().collect();
        // The first look comes before all bodies, the second after 64.
        for looks in 0..3 {
            let packed = pack(&instance, &order, Late::Stop, &mut Budget::of_looks(looks));
            assert!(matches!(packed, Err(Unpacked::Stopped)));
        }
        let late = PoolInstance::within(&problem, &mut Budget::of_looks(0));
        assert!(matches!(late.overlaps, OverlapFinder::Unknown));
        let cancel = AtomicBool::new(true);
        let observer = Observer::default().cancel(&cancel);
        let mut monitor = Monitor::new(&Limits::default(), observer);
        for instance in [instance, late] {
            let places = packed(&instance, &mut monitor).unwrap().places;
            assert_eq!(Some(&places), instance.open_pool.unwrap().places(&problem).as_ref());
        }
    }

    #[rstest]
    #[case::many_on_streams(LARGE + 1, 2, 1, OF_MANY.len())]
    #[case::fewer(LARGE, 2, 1, KEYS.len())]
    #[case::on_one_stream(LARGE + 1, 1, 1, KEYS.len())]
    #[case::in_two_pools(LARGE + 1, 2, 2, KEYS.len())]
    fn many_bodies_on_streams_are_packed_in_fewer_orders(
        #[case] bodies: usize,
        #[case] streams: usize,
        #[case] pools: usize,
        #[case] orders: usize,
    ) {
        let mut problem = Problem::builder();
        problem.streams(streams);
        (0..pools).for_each(|at| _ = problem.pool(Pool::new(format!("pool {at}"))));
        for at in 0..bodies as Step {
            let chunk = problem.chunk(at..at + 1, 8);
            if streams > 1 {
                problem.clocks(chunk, [at, 0], [at + 1, 0], 0);
            }
        }
        let problem = problem.build().unwrap();
        assert_eq!(keys(&PoolInstance::of(&problem)).len(), orders);
    }

    /// Two streams, and a pool of which only the last 100 bytes of 64 bits are free.
    #[rstest]
    #[case::one_fits(&[100], 0, true)]
    #[case::one_is_too_large(&[101], 0, false)]
    #[case::two_fit(&[50, 50], 0, true)]
    #[case::two_are_too_large(&[50, 51], 0, false)]
    #[case::one_after_the_other(&[100, 100], 2, true)]
    fn bytes_near_the_end_of_64_bits_are_found_on_streams(
        #[case] sizes: &[Bytes],
        #[case] later: Step,
        #[case] fits: bool,
    ) {
        let mut problem = Problem::builder();
        problem.streams(2);
        problem.pool(Pool::new("last").reserved(0..Bytes::MAX - 100));
        for (at, &size) in (0..).zip(sizes) {
            let chunk = problem.chunk(0..1, size);
            let begin = at * later;
            problem.clocks(chunk, [begin, begin], [begin + 1, begin + 2], 0);
        }
        assert_eq!(layout(&problem.build().unwrap()).is_ok(), fits);
    }

    /// A part with a high alignment lifts a whole, which then ends after 64 bits. Another part, which lives on
    /// when the whole is over, is compared with other chunks by itself.
    #[test]
    fn a_whole_that_ends_after_64_bits_has_no_place_on_streams() {
        let mut problem = Problem::builder();
        problem.streams(2);
        let whole = problem.chunk(0..1, (1 << 63) + (1 << 62) + 10);
        let (part, last) = (problem.chunk(0..1, 1), problem.chunk(0..1, 1));
        let other = problem.chunk(0..1, 1);
        for (chunk, begin, end) in [(whole, 0, 1), (part, 0, 1), (last, 0, 3), (other, 2, 3)] {
            problem.clocks(chunk, [begin, begin], [end, end], 0);
        }
        problem.pin(other, PoolId(0), 0);
        problem.align(part, 1 << 63).part(part, whole, 1 << 62);
        problem.part(last, whole, (1 << 63) + (1 << 62) + 5);
        let layout = problem.build().map(|problem| layout(&problem).is_err());
        assert_eq!(layout, Ok(true));
    }
}
