//! Decides whether a problem fits into a pool of a given capacity.

use crate::search::{
    cores,
    engine::Turn,
    first_layout::{self, FEW},
    packing::Packing,
    schedule::{FIRST, LIMITS_ALONE},
    search,
    sizes::LARGE,
    solution::Solution,
    state::instance::Instance,
};
use crate::{Bytes, Limits, Observer, Problem, monitor::Monitor, plan::Layout, problem::ChunkId};

/// The result of [`fits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It fits, in this layout.
    Yes(Layout),
    /// It is proven not to fit.
    No,
    /// The limits did not suffice to decide.
    Unknown,
}

/// Decides by search whether a problem fits into a pool of `capacity` bytes.
#[must_use]
pub fn fits(problem: &Problem, capacity: Bytes, limits: &Limits, observer: Observer<'_>) -> Fit {
    fits_monitored(problem, capacity, limits, &mut Monitor::new(limits, observer))
}

/// As [`fits`], with the monitor of a larger search.
pub(super) fn fits_monitored(
    problem: &Problem,
    capacity: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Fit {
    if capacity < problem.lower_bound() {
        return Fit::No;
    }
    let roots: Vec<_> = problem.roots().collect();
    if roots.len() > LARGE && monitor.must_stop() {
        return Fit::Unknown;
    }
    let is_large = roots.len() > LARGE;
    let (mut solution, _) = first_layout::cheapest(problem, FEW, capacity, limits, monitor);
    // A problem that is too large to be searched whole fits if its best packing does.
    let effort = if is_large { *limits } else { limits.nodes(0) };
    search(problem, &mut solution, capacity, &effort, monitor);
    if solution.pool_size > capacity && solution.lower_bound <= capacity && !is_large {
        let weight = cores::node_weight(roots.len());
        let limits = limits.scaled_to_gap(solution.lower_bound, solution.pool_size, weight);
        let decision = decide(problem, &roots, capacity, &limits, monitor);
        if decision.refuted {
            return Fit::No;
        }
        if let Some(bases) = decision.bases {
            solution.improve(problem, Layout::of_bases(problem, bases));
        }
    }
    match solution {
        Solution { pool_size, layout, .. } if pool_size <= capacity => Fit::Yes(layout),
        Solution { lower_bound, .. } if lower_bound > capacity => Fit::No,
        _ => Fit::Unknown,
    }
}

/// The result of [`decide`].
pub(super) struct Decision {
    /// The offsets of the roots, if they fit.
    pub(super) bases: Option<Vec<(ChunkId, Bytes)>>,
    /// It is proven that they do not fit.
    pub(super) refuted: bool,
    /// The nodes of the first thread.
    pub(super) nodes: u64,
}

/// Decides by search whether some of the roots fit together.
pub(super) fn decide(
    problem: &Problem,
    roots: &[ChunkId],
    capacity: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Decision {
    let Ok(inst) = Instance::new(problem, roots, monitor) else {
        return Decision { bases: None, refuted: false, nodes: 0 };
    };
    let limit = capacity / inst.unit / inst.align * inst.align;
    if limit < inst.bound() {
        return Decision { bases: None, refuted: true, nodes: 0 };
    }
    // Start as if a packing one alignment above the limit were known.
    let packing = Packing::new(&inst, limit * inst.unit, (limit + inst.align) * inst.unit);
    let mut packing =
        packing.with_threads(limits.threads).reporting(Some(inst.bound() * inst.unit), capacity);
    let effort = limits.effort();
    let mut nodes = FIRST.run(Turn::first(&inst, effort, limits), &mut packing, monitor);
    let turn = Turn::first(&inst, effort.saturating_sub(nodes), limits);
    nodes += LIMITS_ALONE.run(turn, &mut packing, monitor);
    Decision { bases: packing.bases(), refuted: packing.bound() > limit * inst.unit, nodes }
}
