//! Questions of a capacity: does a problem fit, and if not, which chains do not fit together?

use super::{
    CROWDS, LARGE, Limits, Observer, Report,
    greedy::Greedy,
    instance::Instance,
    ladder, pack, search, simulated,
    threads::{self, Board},
};
use crate::{
    Bytes, Problem,
    planner::Layout,
    problem::{ChunkId, Segment},
};

/// The answer of [`fits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It fits, like this.
    Yes(Layout),
    /// It does not: that is proven.
    No,
    /// The limits were not enough to tell.
    Unknown,
}

/// Asks whether a problem fits into a pool of `capacity` bytes.
#[must_use]
pub fn fits(problem: &Problem, capacity: Bytes, limits: &Limits, observer: Observer<'_>) -> Fit {
    fits_reporting(problem, capacity, limits, &mut Report::new(limits, observer))
}

fn fits_reporting(
    problem: &Problem,
    capacity: Bytes,
    limits: &Limits,
    report: &mut Report<'_>,
) -> Fit {
    if capacity < problem.lower_bound().bytes {
        return Fit::No;
    }
    let mut outcome = simulated(problem);
    let roots: Vec<_> = problem.roots().collect();
    if outcome.pool_size > capacity {
        let mut greedy = Greedy::new(problem);
        pack(problem, &mut greedy, &mut outcome, capacity, report);
        // What is too large to be searched whole fits if the best that is found of it does.
        if roots.len() > LARGE && outcome.pool_size > capacity && !report.stopped {
            search(problem, &mut greedy, &mut outcome, limits, report);
        }
    }
    if outcome.pool_size <= capacity {
        Fit::Yes(outcome.layout)
    } else if outcome.lower_bound > capacity {
        Fit::No
    } else if roots.len() > LARGE {
        Fit::Unknown
    } else {
        decide(problem, &roots, capacity, limits, report)
    }
}

/// Chunks that cannot fit together, the answer of [`conflict`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The roots of their chains.
    pub roots: Vec<ChunkId>,
    /// Whether all others fit once any one root is left out. If not, the limits were not enough to
    /// tell of some root, and it stayed.
    pub irreducible: bool,
}

/// Looks for an irreducible set of chains that cannot fit together into `capacity` bytes. `None` if
/// the problem fits, or if the limits are not enough to tell. Each question that the reduction asks
/// may take the nodes of `limits`, and all together the time.
#[must_use]
pub fn conflict(
    problem: &Problem,
    capacity: Bytes,
    limits: &Limits,
    observer: Observer<'_>,
) -> Option<Conflict> {
    let mut report = Report::new(limits, observer);
    if fits_reporting(problem, capacity, limits, &mut report) != Fit::No {
        return None;
    }
    let bound = problem.lower_bound();
    let mut roots: Vec<ChunkId> = problem.roots().collect();
    // What is small goes first, so that few remain.
    roots.sort_by_key(|&root| problem.padded_size(root));
    if bound.bytes > capacity {
        let alive = |segment: &Segment| (segment.begin..segment.end).contains(&bound.peak_step);
        roots.retain(|&root| problem.segments(root).any(|segment| alive(&segment)));
        let cells = |root: &ChunkId| -> Bytes {
            let segments = problem.segments(*root).filter(alive);
            segments.map(|s| problem.align_up(s.high) - problem.align_up(s.low)).sum()
        };
        roots.sort_by_cached_key(cells);
        // The fewest that are too large together.
        let mut together = 0;
        let enough = roots.iter().rposition(|root| {
            together += cells(root);
            together > capacity
        });
        if let Some(first) = enough {
            roots.drain(..first);
            // In any other step, no more of them are alive.
            if roots.iter().all(|&root| problem.overwriter(root).is_none()) {
                roots.sort_unstable();
                return Some(Conflict { roots, irreducible: true });
            }
        }
    }
    if roots.len() > LARGE {
        // A crowded part of it was refuted.
        let greedy = Greedy::new(problem);
        let mut cores = CROWDS.map(|crowd| greedy.crowded(bound.bytes / 100 * crowd)).into_iter();
        let refuted =
            cores.find(|core| decide(problem, core, capacity, limits, &mut report) == Fit::No);
        roots = refuted.unwrap_or(roots);
        roots.sort_by_key(|&root| problem.padded_size(root));
    }
    // Leave out runs of half the set, of a quarter, and so on down to single roots.
    let mut run = roots.len().div_ceil(2);
    loop {
        let (mut at, mut irreducible) = (0, true);
        while at < roots.len() && !report.stop(0, bound.bytes, capacity) {
            let end = (at + run).min(roots.len());
            let rest: Vec<ChunkId> = [&roots[..at], &roots[end..]].concat();
            let is_low = stack(problem, &rest) <= capacity;
            match (!is_low).then(|| decide(problem, &rest, capacity, limits, &mut report)) {
                Some(Fit::No) => roots = rest,
                answer => {
                    irreducible &= answer != Some(Fit::Unknown);
                    at = end;
                }
            }
        }
        if run <= 1 {
            roots.sort_unstable();
            return Some(Conflict { roots, irreducible: irreducible && !report.stopped });
        }
        run = run.div_ceil(2).min(roots.len());
    }
}

/// The height of chains that lie on one another.
fn stack(problem: &Problem, roots: &[ChunkId]) -> Bytes {
    roots.iter().map(|&root| problem.align_up(problem.padded_size(root))).sum()
}

fn decide(
    problem: &Problem,
    roots: &[ChunkId],
    capacity: Bytes,
    limits: &Limits,
    report: &mut Report<'_>,
) -> Fit {
    let inst = Instance::new(problem, roots);
    let limit = capacity / inst.unit / inst.align * inst.align;
    if limit < inst.bound() {
        return Fit::No;
    }
    // As if a packing were known that is one step too large.
    let board = Board::new(limit, limit + inst.align);
    let mut stop =
        |nodes, _| report.stop(nodes + board.helped(), inst.bound() * inst.unit, capacity);
    let nodes = threads::together(limits.threads, &board, &mut stop, |thread, stop| {
        ladder::ask(&inst, limit, thread, limits.nodes, &board, stop)
    });
    report.before += nodes + board.helped();
    if board.standing().0 > limit {
        return Fit::No;
    }
    let Some(offsets) = board.into_offsets() else { return Fit::Unknown };
    let mut bases = vec![0; problem.len()];
    for (root, offset) in inst.roots.iter().zip(offsets) {
        bases[root.index()] = offset * inst.unit;
    }
    Fit::Yes(Layout::from_roots(problem, |root| bases[root.index()]))
}
