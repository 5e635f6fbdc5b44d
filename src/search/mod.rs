//! The optimal planner: searches for the smallest pool, and proves that it is the smallest if it
//! can.
//!
//! Planning is strip packing with fixed times: every chain is a body of one or more rectangles
//! whose steps are given and whose offset is to be chosen. The search is an anytime algorithm: it
//! starts from the packings of pushdown, of the free list and of greedy orders, and improves the best
//! one until its effort, counted in nodes, is spent, or until the best is proven optimal. The same
//! problem and effort give the same layout everywhere; only a time limit or a cancellation makes the
//! result depend on the machine.
//!
//! | module | idea |
//! | --- | --- |
//! | `best` | the smallest pool of the fast planners, then the search |
//! | `first_layout`, `size_classes` | first layouts, and layouts where time is short |
//! | `fewer_overwrites`, `relaxed` | the same problem with fewer overwrites, or without constraints that may not bind |
//! | `first_fit`, `pool_space` | bodies in one order, each where it fits; the free bytes of pools |
//! | `pool_instance`, `clashes` | the bodies of a constrained problem, and which of them clash |
//! | `time_buckets`, `time_bucket_space` | the lowest free offset on several streams |
//! | `interval_set` | a set of bytes |
//! | `live_maxima` | the most live bytes in a range of steps |
//! | `solution` | what a caller gets |
//! | `incumbent` | what a search has found, shared by its threads |
//! | `under_way` | what the stages of a search share, and how a packing of all chains improves it |
//! | `capacity`, `conflict` | whether a problem fits; chains that do not fit together |
//! | `schedule`, `engine` | which engine improves a packing when, and with how many nodes |
//! | `improve` | better packings of a problem: the schedule, with what it needs around it |
//! | `packing` | the best packing of an instance so far |
//! | `cores` | with many chains, the chains of the most crowded steps first |
//! | `tighten` | a search for some of the chains, and the others around them |
//! | `greedy` | first packings |
//! | `repair_peaks` | crowded steps, repacked while all other chains stay |
//! | `contraction` | perfect packings, from the inside out |
//! | `control` | the effort: restarts, limits in turn, threads, meters |
//! | `branching` | the search tree, over independent components |
//! | `disjunctive` | another search for staircases, over the order of bodies in each pair |
//! | `ejection` | packings in which bodies that do not fit eject others |
//! | `guided` | packings of the most crowded sections, which guide packings of more sections |
//! | `repair_pins` | packings without pins, repacked until all pins hold |
//! | `reasoning` | conclusions from a partial packing, the place to branch, states refuted |
//! | `state` | time cut into sections, sizes in units, a partial packing that can be undone |
//! | `pools` | pools and offsets of constrained problems |
//! | `sizes`, `effort` | where the search changes its method; the count of nodes, the ends of a search |
//! | `random` | pseudo-random numbers |
//! | `ranges` | the offsets that a body may have, and ranges at which bodies clash |

pub mod best;
pub(crate) mod branching;
mod capacity;
mod clashes;
mod conflict;
mod contraction;
mod control;
mod cores;
mod disjunctive;
mod effort;
mod ejection;
mod engine;
mod fewer_overwrites;
pub mod first_fit;
mod first_layout;
mod greedy;
mod guided;
mod improve;
mod incumbent;
mod interval_set;
mod live_maxima;
mod packing;
mod pool_instance;
mod pool_space;
pub(super) mod pools;
mod random;
mod ranges;
mod reasoning;
pub(crate) mod relaxed;
mod repair_peaks;
mod repair_pins;
#[cfg(test)]
pub(crate) mod samples;
mod schedule;
pub(crate) mod size_classes;
mod sizes;
mod solution;
mod stages;
mod state;
mod tighten;
mod time_bucket_space;
mod time_buckets;
mod under_way;

use crate::{Bytes, PlanError, Problem, Strategy, monitor::Monitor};
pub use crate::{Limits, Progress, limits::Observer, plan::layout::Layout};
pub use capacity::{Fit, fits};
pub use conflict::{Conflict, conflict};
pub(crate) use first_layout::conflicts;
use greedy::Greedy;
pub(super) use ranges::merge;
use repair_peaks::repair_if_large;
pub use solution::Solution;
#[doc(hidden)]
pub use stages::{Stage, Without};
pub(crate) use state::occupancy::Occupancy;
use under_way::Search;

/// Chooses an offset for every chunk. The same problem always gets the same layout, unless a time limit or a
/// cancellation ends the search.
///
/// # Errors
///
/// If the strategy does not support a feature of the problem, or is not [anytime](Strategy::is_anytime) and was
/// cancelled or out of time before it had a layout.
pub fn lay_out(
    strategy: Strategy,
    problem: &Problem,
    limits: &Limits,
    observer: Observer<'_>,
) -> Result<Layout, PlanError> {
    strategy.layout(problem, limits, observer)
}

/// Searches for the smallest pool within limits; [`optimize`] reports more.
#[must_use]
pub fn layout(problem: &Problem, limits: &Limits, observer: Observer<'_>) -> Layout {
    let solution = optimize(problem, limits, observer);
    Layout { lower_bound: solution.lower_bound, winner: None, ..solution.layout }
}

/// Searches for the smallest pool.
///
/// The search ends when its effort is spent, or earlier if `limits` has a time limit. It does not use up the rest of
/// the time; [`Planner::plan`](crate::Planner::plan) searches again with more effort while time is left.
///
/// ```
/// use memplan::{Limits, Problem, search};
///
/// let mut problem = Problem::builder();
/// problem.chunk(0..2, 3);
/// problem.chunk(1..3, 2);
/// problem.chunk(2..4, 3);
/// let solution =
///     search::optimize(&problem.build()?, &Limits::default(), search::Observer::default());
/// assert_eq!((solution.pool_size, solution.proven_optimal), (5, true));
/// # Ok::<(), memplan::ProblemError>(())
/// ```
#[must_use]
pub fn optimize(problem: &Problem, limits: &Limits, observer: Observer<'_>) -> Solution {
    let mut monitor = Monitor::new(limits, observer);
    let bound = problem.lower_bound();
    let (mut solution, _) =
        first_layout::cheapest(problem, first_layout::FEW, bound, limits, &mut monitor);
    search(problem, &mut solution, bound, limits, &mut monitor);
    solution
}

/// Improves a solution until its pool has at most `enough` bytes or is proven the smallest, or the limits end the
/// search.
pub(super) fn search(
    problem: &Problem,
    solution: &mut Solution,
    enough: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) {
    if solution.pool_size > enough
        && !monitor.must_stop()
        && let Some(greedy) = Greedy::within(problem, solution, monitor)
    {
        let before = solution.pool_size;
        let (orders, _) = greedy.orders();
        let mut search = Search { problem, greedy, solution, monitor };
        search.pack(orders, enough);
        if search.solution.pool_size < before && search.solution.pool_size > enough {
            repair_if_large(problem, search.solution, limits, search.monitor);
        }
        if search.solution.pool_size > enough && !search.monitor.must_stop() && limits.effort() > 0
        {
            improve::improve(&mut search, limits);
        }
    }
    solution.proven_optimal = solution.lower_bound == solution.pool_size;
}
