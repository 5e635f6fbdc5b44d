//! Pools: the search for problems with pools, pins, holes, parts or streams.
//!
//! A plan gives every body a pool and an offset in it. Which body lies in which pool is decided by branch and
//! bound, the bodies with the most to save first; once that is decided, pools do not depend on each other,
//! and the disjunctive search packs each as low as possible. Pins and reserved ranges are bodies that cannot
//! move. A pool of buffers is a row of small pools, which are interchangeable while they are empty.
//!
//! | module | idea |
//! | --- | --- |
//! | `assign` | the pools of bodies |
//! | `bins` | pools and buffers: room, alignment, what is in them |
//! | `around_pins` | one pool and stream, with pins, reserved ranges, windows or parts: the unconstrained search |
//! | `cliques` | a bound for one pool with holes, windows or parts |
//! | `pairwise` | one pool on several streams, or with holes or pins: bodies eject others |
//! | `promote` | other problems: first fit in other orders |
//! | `repack` | several pools: each as a problem of its own |
//! | `shelf` | the bodies of one pool, packed as low as possible |

mod around_pins;
mod assign;
mod bins;
mod cliques;
mod pairwise;
mod promote;
mod repack;
mod shelf;

use crate::search::sizes::{LARGE, LONG, MEDIUM, TINY, WORK_PER_NODE};
use crate::{
    Bytes, Limits, Observer, PlanError, Problem, limits,
    plan::Layout,
    search::{
        Stage, first_fit,
        pool_instance::PoolInstance,
        pools::{
            around_pins::tighten, assign::Assignment, bins::Bin, pairwise::Pairwise,
            promote::promote, repack::repack,
        },
        size_classes::OpenPool,
    },
};

/// Constrained problems have this many times the default effort of unconstrained ones.
const TIMES: u64 = 10;

/// The nodes of a search if the caller sets no limit.
const NODES: u64 = TIMES * limits::NODES;

/// Searches for the best places of a constrained problem, within limits. No pool is smaller than `bound` bytes.
///
/// # Errors
///
/// If there is no plan, or none was found.
pub fn layout(
    problem: &Problem,
    bound: Bytes,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Layout, PlanError> {
    let mut monitor = OpenPool::monitor(OpenPool::of(problem), problem, limits, observer);
    let instance = PoolInstance::within(problem, &mut monitor.first_budget());
    let layout_of = |places: &[_]| Layout::from_bodies(problem, instance.bodies, places);
    let mut first = first_fit::packed(&instance, &mut monitor);
    if let Ok(packed) = &first
        && monitor.must_stop()
    {
        return Ok(layout_of(&packed.places));
    }
    let is_at_bound = first.as_ref().is_ok_and(|packed| match &*packed.objective {
        [_, size] => *size <= u128::from(bound),
        _ => false,
    });
    let mut budget = limits.nodes.unwrap_or(NODES.saturating_mul(limits.times));
    if is_at_bound || budget == 0 {
        return first.map(|packed| layout_of(&packed.places));
    }
    // Searching few bodies takes less time than packing them in many orders.
    let is_small = instance.bodies.len() <= TINY;
    // The search stores the load of each section for every pool and buffer.
    let is_large = instance.bodies.len() > MEDIUM || Bin::count(&instance) > LONG;
    let mut lower_bound = 0;
    if let Ok(packed) = &mut first
        && !is_small
        && let Some(found) = tighten(&instance, packed, bound, limits, &mut monitor)
    {
        let layout = layout_of(&found.places);
        lower_bound = found.bound;
        let is_proven = layout.pool_size(problem) <= lower_bound;
        if is_proven || monitor.stopped() {
            return Ok(Layout { lower_bound, is_proven, ..layout });
        }
        (packed.places, packed.objective) = (found.places, layout.objective(problem));
        // By default, each search has an effort of its own.
        budget = limits.nodes.map_or(budget, |nodes| nodes.saturating_sub(found.nodes));
    }
    let work = monitor.budget().at_most(budget.min(NODES) / 2 * WORK_PER_NODE as u64);
    let pairwise = if monitor.stopped() { None } else { Pairwise::new(&instance, work) };
    if let Some(pairwise) = pairwise.as_ref().filter(|_| monitor.has(Stage::Cliques)) {
        lower_bound = lower_bound.max(pairwise.bound(bound));
        if instance.pools[0].capacity.is_some_and(|capacity| lower_bound > capacity) {
            return Err(PlanError::Infeasible);
        }
    }
    let bound = bound.max(lower_bound);
    if let Ok(packed) = &mut first
        && !is_small
    {
        let share = if is_large { budget } else { budget / 2 };
        // By default, repacking has an effort of its own.
        let is_repacked = instance.pools.len() > 1
            && instance.bodies.len() <= LARGE
            && instance.apart().is_empty()
            && monitor.has(Stage::Repacking);
        let (share, repacking) = match limits.nodes {
            _ if !is_repacked => (share, 0),
            Some(_) => (share.div_ceil(2), share / 2),
            None => (share, share),
        };
        let nodes = match pairwise.filter(|_| monitor.has(Stage::Pairwise)) {
            Some(pairwise) => pairwise.improve(packed, bound, (share, limits), &mut monitor),
            None if monitor.has(Stage::Promotion) => {
                promote(&instance, packed, bound, share, &mut monitor)
            }
            None => 0,
        };
        monitor.add(nodes);
        if repacking > 0 && !monitor.must_stop() {
            let limits = Limits { time: monitor.time_left(), ..*limits };
            repack(&instance, packed, repacking, &limits, observer);
            monitor.add(repacking);
        }
    }
    let is_assigned = !is_large && !monitor.stopped() && monitor.has(Stage::Assignment);
    let budget = if is_small { budget } else { budget.div_ceil(2) };
    let new = || Assignment::new(&instance, first.as_ref().ok(), bound, budget, &mut monitor);
    let Some(mut search) = is_assigned.then(new).flatten() else {
        return first.map(|packed| Layout { lower_bound, ..layout_of(&packed.places) });
    };
    search.run(&mut monitor);
    let is_proven = search.is_whole();
    match (search.best(), first) {
        (Some(places), _) => {
            let layout = layout_of(places);
            // With one pool, the proof is a bound.
            let is_one = is_proven && instance.pools.len() == 1;
            let lower_bound = if is_one { layout.pool_size(problem) } else { lower_bound };
            Ok(Layout { lower_bound, is_proven, ..layout })
        }
        (None, _) if is_proven => Err(PlanError::Infeasible),
        (None, first) => first.map(|packed| Layout { lower_bound, ..layout_of(&packed.places) }),
    }
}
