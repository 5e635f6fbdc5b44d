//! Conflicts: sets of chains that do not fit together.

use crate::search::{
    capacity::{Decision, Fit, decide, fits_monitored},
    cores::{FIRST_LEVELS, thousandths},
    greedy::Greedy,
    sizes::LARGE,
};
use crate::{
    Bytes, Limits, Observer, Problem,
    monitor::Monitor,
    problem::{ChunkId, Segment},
};

/// Chunks that cannot fit together, the answer of [`Planner::conflict`](crate::Planner::conflict).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The roots of their chains.
    pub roots: Vec<ChunkId>,
    /// True if the others fit once any one root is removed. If false, some root was kept because the limits
    /// did not suffice to decide whether the others fit without it.
    pub irreducible: bool,
}

/// Searches for an irreducible set of chains that cannot fit together into `capacity` bytes. `None`
/// if the problem fits, or if the limits do not suffice to decide. Each decision of the reduction
/// may use all nodes of `limits`; its time limit applies to all of them together.
#[must_use]
pub fn conflict(
    problem: &Problem,
    capacity: Bytes,
    limits: &Limits,
    observer: Observer<'_>,
) -> Option<Conflict> {
    let mut monitor = Monitor::new(limits, observer);
    if fits_monitored(problem, capacity, limits, &mut monitor) != Fit::No {
        return None;
    }
    let mut roots: Vec<ChunkId> = problem.roots().collect();
    // Small roots are removed first, so that few remain.
    roots.sort_by_key(|&root| problem.padded_size(root));
    if problem.lower_bound() > capacity {
        roots = peak_clique(problem, roots, capacity);
        // No other step has more of them alive.
        if roots.iter().all(|&root| problem.overwriter(root).is_none()) {
            roots.sort_unstable();
            return Some(Conflict { roots, irreducible: true });
        }
    }
    if roots.len() > LARGE {
        roots = refuted_core(problem, roots, capacity, limits, &mut monitor);
    }
    Some(shrink(problem, roots, capacity, limits, &mut monitor))
}

/// The fewest roots alive at the peak that are too large together, smallest first.
fn peak_clique(problem: &Problem, mut roots: Vec<ChunkId>, capacity: Bytes) -> Vec<ChunkId> {
    let peak = problem.peak_step();
    let alive = |segment: &Segment| (segment.begin..segment.end).contains(&peak);
    roots.retain(|&root| problem.segments(root).any(|segment| alive(&segment)));
    let bytes = |root: &ChunkId| -> Bytes {
        let segments = problem.segments(*root).filter(alive);
        segments.map(|s| problem.align_up(s.high) - problem.align_up(s.low)).sum()
    };
    roots.sort_by_cached_key(bytes);
    let mut together = 0;
    let first = roots.iter().rposition(|root| {
        together += bytes(root);
        together > capacity
    });
    roots.drain(..first.unwrap_or(0));
    roots
}

/// The first crowded core that does not fit, or all roots if none is refuted; smallest first.
fn refuted_core(
    problem: &Problem,
    roots: Vec<ChunkId>,
    capacity: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Vec<ChunkId> {
    let live = problem.lower_bound();
    let greedy = Greedy::new(problem);
    let mut cores = FIRST_LEVELS.map(|level| greedy.crowded(thousandths(live, level))).into_iter();
    let refuted = cores.find(|core| decide(problem, core, capacity, limits, monitor).refuted);
    let mut roots = refuted.unwrap_or(roots);
    roots.sort_by_key(|&root| problem.padded_size(root));
    roots
}

/// Removes half of the roots at a time, then a quarter, and so on down to single roots, as long as
/// the rest is still refuted (as in delta debugging; Zeller and Hildebrandt, 2002).
fn shrink(
    problem: &Problem,
    mut roots: Vec<ChunkId>,
    capacity: Bytes,
    limits: &Limits,
    monitor: &mut Monitor<'_>,
) -> Conflict {
    let bound = problem.lower_bound();
    let mut run = roots.len().div_ceil(2);
    loop {
        let (mut at, mut irreducible) = (0, true);
        while at < roots.len() && !monitor.stop(0, bound, capacity) {
            let end = (at + run).min(roots.len());
            let rest: Vec<ChunkId> = [&roots[..at], &roots[end..]].concat();
            let fits_as_stack = stack(problem, &rest) <= capacity;
            let decision =
                (!fits_as_stack).then(|| decide(problem, &rest, capacity, limits, monitor));
            match decision {
                Some(Decision { refuted: true, .. }) => roots = rest,
                decision => {
                    irreducible &= decision.is_none_or(|decision| decision.bases.is_some());
                    at = end;
                }
            }
        }
        if run <= 1 {
            roots.sort_unstable();
            return Conflict { roots, irreducible: irreducible && !monitor.stopped() };
        }
        run = run.div_ceil(2).min(roots.len());
    }
}

/// The height of a stack of chains.
fn stack(problem: &Problem, roots: &[ChunkId]) -> Bytes {
    roots.iter().map(|&root| problem.align_up(problem.padded_size(root))).sum()
}
