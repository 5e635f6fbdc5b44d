//! Capacities: decides whether a problem fits into a pool.

use super::{
    control::{
        ladder,
        monitor::Monitor,
        threads::{self, Board},
    },
    greedy::Greedy,
    improve::{self, LARGE},
    state::instance::Instance,
};
use crate::{Bytes, Limits, Observer, Problem, planner::Layout, problem::ChunkId};

/// The answer of [`fits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It fits, in this layout.
    Yes(Layout),
    /// It is proven not to fit.
    No,
    /// The limits did not suffice for an answer.
    Unknown,
}

/// Decides by search whether a problem fits into a pool of `capacity` bytes.
#[must_use]
pub fn fits(problem: &Problem, capacity: Bytes, limits: &Limits, observer: Observer<'_>) -> Fit {
    fits_monitored(problem, capacity, limits, &mut Monitor::new(limits, observer))
}

/// Answers as [`fits`] does, as a part of a larger search.
pub(super) fn fits_monitored(
    problem: &Problem,
    capacity: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Fit {
    if capacity < problem.lower_bound().bytes {
        return Fit::No;
    }
    let mut solution = improve::simulate(problem);
    let roots: Vec<_> = problem.roots().collect();
    if solution.pool_size > capacity {
        let mut greedy = Greedy::new(problem);
        let orders = greedy.orders();
        improve::pack(problem, &mut greedy, orders, &mut solution, capacity, monitor);
        // A problem that is too large to be searched whole fits if its best packing does.
        if roots.len() > LARGE && solution.pool_size > capacity && !monitor.stopped() {
            improve::search(problem, &mut greedy, &mut solution, limits, monitor);
        }
    }
    if solution.pool_size <= capacity {
        Fit::Yes(solution.layout)
    } else if solution.lower_bound > capacity {
        Fit::No
    } else if roots.len() > LARGE {
        Fit::Unknown
    } else {
        decide(problem, &roots, capacity, limits, monitor)
    }
}

/// Decides by search whether some of the roots fit together.
pub(super) fn decide(
    problem: &Problem,
    roots: &[ChunkId],
    capacity: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Fit {
    let inst = Instance::new(problem, roots);
    let limit = capacity / inst.unit / inst.align * inst.align;
    if limit < inst.bound() {
        return Fit::No;
    }
    // Start as if a packing were known that is one step too large.
    let board = Board::new(limit, limit + inst.align);
    let mut stop =
        |nodes, _| monitor.stop(nodes + board.helped(), inst.bound() * inst.unit, capacity);
    let nodes = threads::together(limits.threads, &board, &mut stop, |thread, stop| {
        ladder::ask(&inst, limit, thread, limits.nodes, &board, stop)
    });
    monitor.add(nodes + board.helped());
    if board.standing().bound > limit {
        return Fit::No;
    }
    let Some(offsets) = board.into_offsets() else { return Fit::Unknown };
    let mut bases = vec![0; problem.len()];
    for (root, offset) in inst.roots.iter().zip(offsets) {
        bases[root.index()] = offset * inst.unit;
    }
    Fit::Yes(Layout::from_roots(problem, |root| bases[root.index()]))
}
