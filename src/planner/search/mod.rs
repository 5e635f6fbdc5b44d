//! The optimal planner: the smallest pool there is, with a proof when it has one.
//!
//! Planning is strip packing with fixed time: every chain is a body of one or more rectangles
//! whose steps are given and whose height is to be chosen. The search is anytime: it starts from
//! the pushdown planner's packing and from greedy ones, and betters the best until its effort,
//! counted in nodes, is spent or the best is proven the best. The same problem and effort give the
//! same answer everywhere; only a time limit or a cancelled search depends on the machine.
//!
//! | file | idea |
//! | --- | --- |
//! | `instance` | time cut into sections, sizes in units |
//! | `skyline` | a partial packing, with a trail to go back |
//! | `valley` | where to branch, and what follows without branching |
//! | `survey` | one valley, section by section |
//! | `tree` | the search tree, over components that know nothing of each other |
//! | `refuted` | what failed once, remembered |
//! | `rounds` | restarts with other orders: does everything fit under a limit? |
//! | `ladder` | limits in turn: the smallest |
//! | `greedy` | first packings |
//! | `taken` | the bytes that a first packing has taken, by time |

mod greedy;
mod instance;
mod ladder;
mod refuted;
mod rounds;
mod skyline;
mod survey;
mod taken;
mod tree;
mod valley;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{
    Bytes, Problem,
    planner::{Layout, pushdown},
    problem::ChunkId,
};
use greedy::Greedy;
use instance::Instance;
use rounds::Rounds;
use tree::End;

/// How far to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The effort in search nodes. A node that looks at many chunks counts for several, so that
    /// the time is in proportion: about 10^6 nodes per second.
    pub nodes: u64,
    /// The longest time, if any. With it, the answer depends on the machine.
    pub time: Option<Duration>,
}

impl Default for Limits {
    /// 50 000 nodes, some hundredths of a second; no time limit.
    fn default() -> Self {
        Self { nodes: 50_000, time: None }
    }
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// No pool is smaller, in bytes.
    pub lower_bound: Bytes,
    /// The best pool so far, in bytes.
    pub best: Bytes,
    /// Nodes so far.
    pub nodes: u64,
}

/// Hooks into a running search. The default has none.
#[derive(Default)]
pub struct Observer<'a> {
    /// The search ends soon after this is set, with the best so far.
    pub cancel: Option<&'a AtomicBool>,
    /// Called every few hundred nodes.
    pub progress: Option<&'a mut dyn FnMut(&Progress)>,
}

/// The answer of [`optimize`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The best layout found.
    pub layout: Layout,
    /// The size of its pool in bytes.
    pub pool_size: Bytes,
    /// No pool is smaller, in bytes; the live bytes, or more where more was proven.
    pub lower_bound: Bytes,
    /// Whether the pool is proven the smallest.
    pub proven_optimal: bool,
    /// The nodes it took.
    pub nodes: u64,
}

impl Outcome {
    fn of(problem: &Problem, layout: Layout) -> Self {
        Self {
            pool_size: layout.pool_size(problem),
            layout,
            lower_bound: problem.lower_bound().bytes,
            proven_optimal: false,
            nodes: 0,
        }
    }

    /// Takes a layout if it is better.
    fn better(&mut self, problem: &Problem, layout: Layout) {
        let pool_size = layout.pool_size(problem);
        if pool_size < self.pool_size {
            (self.layout, self.pool_size) = (layout, pool_size);
        }
    }
}

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

/// What stands between the search and the caller: the time, the cancel flag, the progress.
struct Report<'a> {
    until: Option<Instant>,
    observer: Observer<'a>,
    stopped: bool,
}

impl<'a> Report<'a> {
    fn new(limits: &Limits, observer: Observer<'a>) -> Self {
        let until = limits.time.and_then(|time| Instant::now().checked_add(time));
        Self { until, observer, stopped: false }
    }

    /// Tells how far the search is, and asks whether it is to stop.
    fn stop(&mut self, nodes: u64, lower_bound: Bytes, best: Bytes) -> bool {
        if let Some(progress) = &mut self.observer.progress {
            progress(&Progress { lower_bound, best, nodes });
        }
        self.stopped = self.stopped
            || self.observer.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
            || self.until.is_some_and(|until| Instant::now() >= until);
        self.stopped
    }
}

/// Looks for the smallest pool with the default effort.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    layout_within(problem, &Limits::default())
}

/// Looks for the smallest pool within limits.
#[must_use]
pub fn layout_within(problem: &Problem, limits: &Limits) -> Layout {
    let outcome = optimize(problem, None, limits, Observer::default());
    Layout { lower_bound: outcome.lower_bound, ..outcome.layout }
}

/// Looks for the smallest pool.
///
/// An `incumbent`, a right layout from elsewhere, is what has to be bettered; without a better one
/// it is the answer.
///
/// ```
/// use memplan::{Problem, planner::search::{self, Limits, Observer}};
///
/// let mut problem = Problem::builder();
/// problem.chunk(0..2, 3);
/// problem.chunk(1..3, 2);
/// problem.chunk(2..4, 3);
/// let outcome = search::optimize(&problem.build()?, None, &Limits::default(), Observer::default());
/// assert_eq!((outcome.pool_size, outcome.proven_optimal), (5, true));
/// # Ok::<(), memplan::ProblemError>(())
/// ```
#[must_use]
pub fn optimize(
    problem: &Problem,
    incumbent: Option<&Layout>,
    limits: &Limits,
    observer: Observer<'_>,
) -> Outcome {
    let mut report = Report::new(limits, observer);
    let layout = incumbent.map_or_else(|| pushdown::layout(problem), Layout::clone);
    let mut outcome = Outcome::of(problem, layout);
    if outcome.pool_size > outcome.lower_bound {
        let mut greedy = Greedy::new(problem);
        let enough = outcome.lower_bound;
        pack(problem, &mut greedy, &mut outcome, enough, &mut report);
        if outcome.pool_size > enough && !report.stopped && limits.nodes > 0 {
            search(problem, &mut greedy, &mut outcome, limits.nodes, &mut report);
        }
    }
    outcome.proven_optimal = outcome.lower_bound == outcome.pool_size;
    outcome
}

/// Packs greedily in one order after the other, until a pool is small enough.
fn pack(
    problem: &Problem,
    greedy: &mut Greedy<'_>,
    outcome: &mut Outcome,
    enough: Bytes,
    report: &mut Report<'_>,
) {
    for &key in greedy.orders() {
        if outcome.pool_size <= enough || report.stop(0, outcome.lower_bound, outcome.pool_size) {
            break;
        }
        outcome.better(problem, greedy.pack(key));
    }
}

/// Searches the whole problem, or, if it is too large for that, its crowded core.
fn search(
    problem: &Problem,
    greedy: &mut Greedy<'_>,
    outcome: &mut Outcome,
    nodes: u64,
    report: &mut Report<'_>,
) {
    let roots: Vec<_> = problem.roots().collect();
    if roots.len() <= LARGE {
        let (found, bound) = climb(problem, &roots, outcome, nodes, report);
        if let Some(bases) = found {
            outcome.better(problem, greedy.complete(&bases));
        }
        outcome.lower_bound = outcome.lower_bound.max(bound).min(outcome.pool_size);
        return;
    }
    for crowd in CROWDS {
        let core = greedy.crowded(outcome.lower_bound / 100 * crowd);
        let nodes = nodes.saturating_sub(outcome.nodes) / 3 * 2;
        if let (Some(bases), _) = climb(problem, &core, outcome, nodes, report) {
            outcome.better(problem, greedy.complete(&bases));
        }
        if outcome.pool_size == outcome.lower_bound || report.stopped {
            break;
        }
    }
}

/// Problems of more chains are not searched whole.
const LARGE: usize = 5000;

/// How crowded a step of the core is, in percent of the lower bound.
const CROWDS: [Bytes; 3] = [95, 90, 80];

/// Packs some of the roots better than the best pool; gives their offsets, if it can, and a lower
/// bound of what they need.
fn climb(
    problem: &Problem,
    roots: &[ChunkId],
    outcome: &mut Outcome,
    nodes: u64,
    report: &mut Report<'_>,
) -> (Option<Vec<(ChunkId, Bytes)>>, Bytes) {
    let inst = Instance::new(problem, roots);
    let step = inst.unit * inst.align;
    // Every pool that the search makes is a multiple of the step, and some smallest one is.
    let bound = outcome.lower_bound.div_ceil(step) * inst.align;
    let best = outcome.pool_size.div_ceil(step) * inst.align;
    let climb = ladder::climb(&inst, (bound.max(inst.bound()), best), nodes, report);
    outcome.nodes += climb.nodes;
    let bases = climb.offsets.map(|offsets| {
        let bases = offsets.iter().map(|offset| offset * inst.unit);
        inst.roots.iter().copied().zip(bases).collect()
    });
    (bases, climb.bound * inst.unit)
}

/// Asks whether a problem fits into a pool of `capacity` bytes.
#[must_use]
pub fn fits(problem: &Problem, capacity: Bytes, limits: &Limits, observer: Observer<'_>) -> Fit {
    if capacity < problem.lower_bound().bytes {
        return Fit::No;
    }
    let mut report = Report::new(limits, observer);
    let mut outcome = Outcome::of(problem, pushdown::layout(problem));
    if outcome.pool_size > capacity {
        pack(problem, &mut Greedy::new(problem), &mut outcome, capacity, &mut report);
    }
    if outcome.pool_size <= capacity {
        return Fit::Yes(outcome.layout);
    }
    let roots: Vec<_> = problem.roots().collect();
    decide(problem, &roots, capacity, limits.nodes, &mut report)
}

/// An irreducible set of chunks that cannot fit together into `capacity` bytes: roots of chains,
/// which all fit once any one is left out. `None` if the problem fits, or if the limits are not
/// enough to tell. Each question that the reduction asks may take the nodes of `limits`; where one
/// is not answered, the root stays, and the set may be larger than it has to be.
#[must_use]
pub fn conflict(
    problem: &Problem,
    capacity: Bytes,
    limits: &Limits,
    observer: Observer<'_>,
) -> Option<Vec<ChunkId>> {
    let mut report = Report::new(limits, observer);
    let mut set: Vec<ChunkId> = problem.roots().collect();
    let mut refuted =
        |set: &[ChunkId]| decide(problem, set, capacity, limits.nodes, &mut report) == Fit::No;
    if !refuted(&set) {
        return None;
    }
    // Leave out runs of half the set, of a quarter, and so on down to single roots.
    let mut run = set.len().div_ceil(2);
    loop {
        let mut at = 0;
        while at < set.len() {
            let end = (at + run).min(set.len());
            let rest: Vec<ChunkId> = [&set[..at], &set[end..]].concat();
            if refuted(&rest) {
                set = rest;
            } else {
                at = end;
            }
        }
        if run <= 1 {
            return Some(set);
        }
        run = run.div_ceil(2).min(set.len());
    }
}

fn decide(
    problem: &Problem,
    roots: &[ChunkId],
    capacity: Bytes,
    nodes: u64,
    report: &mut Report<'_>,
) -> Fit {
    let inst = Instance::new(problem, roots);
    let limit = capacity / inst.unit / inst.align * inst.align;
    if limit < inst.bound() {
        return Fit::No;
    }
    let mut rounds = Rounds::new(&inst);
    let end = rounds.decide(limit, u64::MAX, nodes, &mut |nodes| {
        report.stop(nodes, inst.bound() * inst.unit, capacity)
    });
    match end {
        End::Packed => {
            let mut bases = vec![0; problem.len()];
            for (root, offset) in inst.roots.iter().zip(rounds.offsets()) {
                bases[root.index()] = offset * inst.unit;
            }
            Fit::Yes(Layout::from_roots(problem, |root| bases[root.index()]))
        }
        End::Refuted => Fit::No,
        End::Spent => Fit::Unknown,
    }
}
