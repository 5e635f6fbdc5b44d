//! The optimal planner: the smallest pool there is, with a proof when it has one.
//!
//! Planning is strip packing with fixed time: every chain is a body of one or more rectangles
//! whose steps are given and whose height is to be chosen. The search is anytime: it starts from
//! the packings of pushdown and of the free list and from greedy ones, and betters the best until
//! its effort, counted in nodes, is spent or the best is proven the best. The same problem and
//! effort give the same answer everywhere; only a time limit or a cancelled search depends on the
//! machine.
//!
//! | file | idea |
//! | --- | --- |
//! | `instance` | time cut into sections, sizes in units |
//! | `skyline` | a partial packing, with a trail to go back |
//! | `valley` | where to branch, and what follows without branching |
//! | `survey` | one valley, section by section |
//! | `tree` | the search tree, over components that know nothing of each other |
//! | `refuted` | what failed once, remembered |
//! | `orders` | another way for staircases: which body lies below which |
//! | `rounds` | both ways by turns, with other orders: does everything fit under a limit? |
//! | `ladder` | limits in turn: the smallest |
//! | `threads` | several searches of one problem |
//! | `capacity` | does it fit, and if not, what does not fit together? |
//! | `greedy` | first packings |
//! | `taken` | the bytes that a first packing has taken, by time |

mod capacity;
mod greedy;
mod instance;
mod ladder;
mod orders;
mod refuted;
mod rounds;
mod skyline;
mod survey;
mod taken;
mod threads;
mod tree;
mod valley;

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{
    Bytes, Problem,
    planner::{Layout, free_list, pushdown},
    problem::ChunkId,
};
pub use capacity::{Conflict, Fit, conflict, fits};
use greedy::Greedy;
use instance::Instance;
use threads::Board;

/// How far to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The effort in search nodes. A node that looks at many chunks counts for several, so that
    /// the time is in proportion: about 10^6 nodes per second.
    pub nodes: u64,
    /// The longest time, if any. With it, the answer depends on the machine.
    pub time: Option<Duration>,
    /// The threads that search at once, at least one, and no more than there are cores. Each has all
    /// the nodes, and all end with the first. The answer of several is as good as that of one for
    /// the same nodes, or better; which of several good ones it is depends on the machine.
    pub threads: usize,
}

impl Default for Limits {
    /// 50 000 nodes, some hundredths of a second; no time limit; one thread.
    fn default() -> Self {
        Self { nodes: 50_000, time: None, threads: 1 }
    }
}

impl Limits {
    /// Spends this much effort, in search nodes.
    #[must_use]
    pub const fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = nodes;
        self
    }

    /// Ends after this time.
    #[must_use]
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Searches with this many threads.
    #[must_use]
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }
}

/// How far a search is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// No pool is smaller, in bytes.
    pub lower_bound: Bytes,
    /// The best pool so far, in bytes.
    pub best: Bytes,
    /// Nodes so far, of all threads.
    pub nodes: u64,
}

/// Hooks into a running search. The default has none.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Observer<'a> {
    /// The search ends soon after this is set, with the best so far.
    pub cancel: Option<&'a AtomicBool>,
    /// Called every few hundred nodes, by the thread that asked for the search.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
}

impl<'a> Observer<'a> {
    /// Ends the search soon after the flag is set.
    #[must_use]
    pub const fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Reports how far the search is.
    #[must_use]
    pub const fn progress(mut self, progress: &'a (dyn Fn(&Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.progress.map(|_| "a function");
        f.debug_struct("Observer")
            .field("cancel", &self.cancel)
            .field("progress", &progress)
            .finish()
    }
}

/// The answer of [`optimize`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The best layout found.
    pub layout: Layout,
    /// The size of its pool in bytes.
    pub pool_size: Bytes,
    /// No pool is smaller, in bytes; the live bytes, or more where more was proven.
    pub lower_bound: Bytes,
    /// Whether the pool is proven the smallest.
    pub proven_optimal: bool,
    /// The nodes it took, of all threads.
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

/// What stands between the search and the caller: the time, the cancel flag, the progress.
struct Report<'a> {
    until: Option<Instant>,
    observer: Observer<'a>,
    /// The nodes of what was searched before.
    before: u64,
    stopped: bool,
}

impl<'a> Report<'a> {
    fn new(limits: &Limits, observer: Observer<'a>) -> Self {
        let until = limits.time.and_then(|time| Instant::now().checked_add(time));
        Self { until, observer, before: 0, stopped: false }
    }

    /// Tells how far the search is, and asks whether it is to stop.
    fn stop(&mut self, nodes: u64, lower_bound: Bytes, best: Bytes) -> bool {
        if let Some(progress) = self.observer.progress {
            progress(&Progress { lower_bound, best, nodes: self.before + nodes });
        }
        self.stopped = self.stopped
            || self.observer.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
            || self.until.is_some_and(|until| Instant::now() >= until);
        self.stopped
    }
}

/// Looks for the smallest pool within limits; [`optimize`] reports more.
#[must_use]
pub fn layout(problem: &Problem, limits: &Limits, observer: Observer<'_>) -> Layout {
    let outcome = optimize(problem, None, limits, observer);
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
    let mut outcome = match incumbent {
        Some(incumbent) => Outcome::of(problem, incumbent.clone()),
        None => simulated(problem),
    };
    if outcome.pool_size > outcome.lower_bound {
        let mut greedy = Greedy::new(problem);
        let enough = outcome.lower_bound;
        pack(problem, &mut greedy, &mut outcome, enough, &mut report);
        if outcome.pool_size > enough && !report.stopped && limits.nodes > 0 {
            search(problem, &mut greedy, &mut outcome, limits, &mut report);
        }
    }
    outcome.proven_optimal = outcome.lower_bound == outcome.pool_size;
    outcome
}

/// What planners that walk over time once make of it; on some large graphs nothing greedy is better.
fn simulated(problem: &Problem) -> Outcome {
    let mut outcome = Outcome::of(problem, pushdown::layout(problem));
    if outcome.pool_size > outcome.lower_bound && free_list::is_quick(problem) {
        outcome.better(problem, free_list::layout(problem));
    }
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
        if let Some(packing) = greedy.pack(key) {
            outcome.better(problem, packing);
        }
    }
}

/// Searches the whole problem, or, if it is too large for that, its crowded core.
fn search(
    problem: &Problem,
    greedy: &mut Greedy<'_>,
    outcome: &mut Outcome,
    limits: &Limits,
    report: &mut Report<'_>,
) {
    let roots: Vec<_> = problem.roots().collect();
    if roots.len() <= LARGE {
        climb_and_complete(problem, &roots, greedy, outcome, limits, report);
        return;
    }
    // Not of a bound that a search has raised: each core holds the one before, and the peak.
    let live = outcome.lower_bound;
    let mut left = limits.nodes;
    for crowd in CROWDS {
        let core = greedy.crowded(live / 100 * crowd);
        let limits = Limits { nodes: left / 3 * 2, ..*limits };
        let nodes = climb_and_complete(problem, &core, greedy, outcome, &limits, report);
        left = left.saturating_sub(nodes);
        if outcome.pool_size == outcome.lower_bound || report.stopped {
            break;
        }
    }
}

/// Packs some of the roots better than the best pool, and all others around them; tells the nodes of
/// the first thread.
fn climb_and_complete(
    problem: &Problem,
    roots: &[ChunkId],
    greedy: &mut Greedy<'_>,
    outcome: &mut Outcome,
    limits: &Limits,
    report: &mut Report<'_>,
) -> u64 {
    let climb = climb(problem, roots, outcome, limits, report);
    if let Some(packing) = climb.bases.and_then(|bases| greedy.complete(&bases)) {
        outcome.better(problem, packing);
    }
    // What some of the chains need at least, all need.
    outcome.lower_bound = outcome.lower_bound.max(climb.bound).min(outcome.pool_size);
    climb.nodes
}

/// Problems of more chains are not searched whole.
const LARGE: usize = 5000;

/// How crowded a step of the core is, in percent of the live bytes.
const CROWDS: [Bytes; 3] = [95, 90, 80];

/// What came of packing some of the roots.
struct Climb {
    /// Their offsets, if that is better than the best pool.
    bases: Option<Vec<(ChunkId, Bytes)>>,
    /// They need no less.
    bound: Bytes,
    /// The nodes of the first thread.
    nodes: u64,
}

/// Packs some of the roots better than the best pool.
fn climb(
    problem: &Problem,
    roots: &[ChunkId],
    outcome: &mut Outcome,
    limits: &Limits,
    report: &mut Report<'_>,
) -> Climb {
    let inst = Instance::new(problem, roots);
    let step = inst.unit * inst.align;
    // Every pool that the search makes is a multiple of the step, and some smallest one is. So is the
    // bound: what is alive at the peak is among the roots.
    debug_assert!(outcome.lower_bound.is_multiple_of(step));
    let best = outcome.pool_size.div_ceil(step) * inst.align;
    let board = Board::new(outcome.lower_bound / inst.unit, best);
    let whole = roots.len() == problem.roots().count();
    let mut stop = |nodes, _| {
        let (bound, best) = board.standing();
        let best = if whole { best * inst.unit } else { outcome.pool_size };
        report.stop(nodes + board.helped(), bound * inst.unit, best)
    };
    let nodes = threads::together(limits.threads, &board, &mut stop, |thread, stop| {
        ladder::climb(&inst, thread, limits.nodes, &board, stop)
    });
    report.before += nodes + board.helped();
    outcome.nodes = report.before;
    let bound = board.standing().0 * inst.unit;
    let bases = board.into_offsets().map(|offsets| {
        let bases = offsets.iter().map(|offset| offset * inst.unit);
        inst.roots.iter().copied().zip(bases).collect()
    });
    Climb { bases, bound, nodes }
}
