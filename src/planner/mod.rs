//! Planners: each takes a [`Problem`] and chooses an offset for every chunk.
//!
//! [`Strategy`] is the one place that knows them all.

pub mod best;
pub mod best_fit;
mod chunk_order;
mod compare;
mod error;
mod fit;
pub mod free_list;
pub mod interval_move;
mod layout;
pub mod nnvm;
mod objects;
pub mod pushdown;
mod records;
mod replay;
pub mod search;
mod strategy;
pub mod tflite;

use tracing::{debug, info};

pub use compare::{Comparison, Entry, Outcome, compare};
pub use error::PlanError;
pub use fit::PlanFit;
pub use layout::{Layout, ObjectTable};
pub use objects::{Objects, Offsets};
pub use records::{Record, RecordError, Records, Size};
pub use strategy::{Strategy, UnknownStrategy};

use crate::{
    Bytes, OpSequence, Plan, Problem,
    lower::{LoweringOptions, lower},
    planner::search::Observer,
};

/// How to plan. Every option has a default; a planner holds no state and can be used again.
///
/// ```
/// use memplan::{Planner, Problem};
///
/// let mut problem = Problem::builder();
/// problem.chunk(0..2, 10);
/// problem.chunk(1..3, 20);
/// problem.chunk(2..4, 10);
/// let plan = Planner::new().plan_problem(&problem.build()?)?;
/// assert_eq!(plan.pool_size, 30);
/// # Ok::<(), memplan::PlanError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planner {
    strategy: Strategy,
    alignment: Option<Bytes>,
    padding: Option<Bytes>,
    lowering: LoweringOptions,
    limits: search::Limits,
}

impl Planner {
    /// A planner with the default options: the default [`Strategy`], the alignment and padding of
    /// the problem (for a sequence 1 and 0), the default [`LoweringOptions`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans with this strategy.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Aligns the offsets of roots to a power of two in bytes.
    #[must_use]
    pub fn alignment(mut self, bytes: Bytes) -> Self {
        self.alignment = Some(bytes);
        self
    }

    /// Adds bytes to the size of every chunk.
    #[must_use]
    pub fn padding(mut self, bytes: Bytes) -> Self {
        self.padding = Some(bytes);
        self
    }

    /// Lowers sequences with these options.
    #[must_use]
    pub fn lowering(mut self, options: LoweringOptions) -> Self {
        self.lowering = options;
        self
    }

    /// How far the strategies that search may go; [`Strategy::Best`] and [`Strategy::Optimal`] do.
    #[must_use]
    pub fn limits(mut self, limits: search::Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Plans an operator sequence.
    ///
    /// # Errors
    ///
    /// If the sequence cannot be lowered, or the alignment is not a power of two, or sizes do not
    /// add up in 64 bits.
    pub fn plan(&self, sequence: &OpSequence) -> Result<Plan, PlanError> {
        self.plan_observed(sequence, Observer::default())
    }

    /// Plans an operator sequence; a strategy that searches tells how far it is, and ends early,
    /// with the best so far, when it is cancelled.
    ///
    /// ```
    /// use std::{sync::atomic::AtomicBool, time::Duration};
    ///
    /// use memplan::{Planner, Strategy, networks, planner::search::{Limits, Observer}};
    ///
    /// // For another thread, or a signal handler, to set.
    /// let cancel = AtomicBool::new(false);
    /// let progress = |progress: &_| println!("{progress:?}");
    /// let observer = Observer::default().cancel(&cancel).progress(&progress);
    /// let limits = Limits::default().nodes(u64::MAX).time(Duration::from_secs(60));
    /// let planner = Planner::new().strategy(Strategy::Optimal).limits(limits);
    /// let plan = planner.plan_observed(&networks::mobilenet_v2(1)?, observer)?;
    /// assert!(plan.proven_optimal);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan).
    pub fn plan_observed(
        &self,
        sequence: &OpSequence,
        observer: Observer<'_>,
    ) -> Result<Plan, PlanError> {
        let lowered = lower(sequence, self.lowering)?;
        let problem = self.adjust(lowered.problem)?;
        let layout = self.layout(&problem, observer)?;
        Ok(Plan::of_sequence(sequence, &lowered.homes, &problem, self.strategy, &layout))
    }

    /// Plans chunks whose lifetimes are known.
    ///
    /// # Errors
    ///
    /// If the alignment is not a power of two, or sizes do not add up in 64 bits.
    pub fn plan_problem(&self, problem: &Problem) -> Result<Plan, PlanError> {
        self.plan_problem_observed(problem, Observer::default())
    }

    /// Plans chunks whose lifetimes are known, like [`plan_observed`](Self::plan_observed).
    ///
    /// # Errors
    ///
    /// As [`plan_problem`](Self::plan_problem).
    pub fn plan_problem_observed(
        &self,
        problem: &Problem,
        observer: Observer<'_>,
    ) -> Result<Plan, PlanError> {
        let problem = self.adjust(problem.clone())?;
        let layout = self.layout(&problem, observer)?;
        Ok(Plan::of_problem(&problem, self.strategy, &layout))
    }

    /// Says whether an operator sequence fits into a pool of `capacity` bytes. [`Strategy::Best`] and
    /// [`Strategy::Optimal`] search for a plan that fits, or a proof that there is none, within the
    /// limits; the others plan as always.
    ///
    /// ```
    /// use memplan::{Planner, networks, planner::{PlanFit, search::Observer}};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let fit = |capacity| Planner::new().fit(&sequence, capacity, Observer::default());
    /// assert!(matches!(fit(6 << 20)?, PlanFit::Yes(plan) if plan.pool_size <= 6 << 20));
    /// assert!(matches!(fit(5 << 20)?, PlanFit::No(_)));
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan).
    pub fn fit(
        &self,
        sequence: &OpSequence,
        capacity: Bytes,
        observer: Observer<'_>,
    ) -> Result<PlanFit, PlanError> {
        let lowered = lower(sequence, self.lowering)?;
        let problem = self.adjust(lowered.problem)?;
        let (answer, layout) = self.fit_layout(&problem, capacity, observer)?;
        let homes = &lowered.homes;
        Ok(answer(Plan::of_sequence(sequence, homes, &problem, self.strategy, &layout)))
    }

    /// Says whether chunks whose lifetimes are known fit, like [`fit`](Self::fit).
    ///
    /// # Errors
    ///
    /// As [`plan_problem`](Self::plan_problem).
    pub fn fit_problem(
        &self,
        problem: &Problem,
        capacity: Bytes,
        observer: Observer<'_>,
    ) -> Result<PlanFit, PlanError> {
        let problem = self.adjust(problem.clone())?;
        let (answer, layout) = self.fit_layout(&problem, capacity, observer)?;
        Ok(answer(Plan::of_problem(&problem, self.strategy, &layout)))
    }

    fn adjust(&self, problem: Problem) -> Result<Problem, PlanError> {
        let alignment = self.alignment.unwrap_or(problem.alignment());
        let padding = self.padding.unwrap_or(problem.padding());
        Ok(problem.with_alignment(alignment, padding)?)
    }

    fn layout(&self, problem: &Problem, observer: Observer<'_>) -> Result<Layout, PlanError> {
        let layout = self.strategy.layout(problem, &self.limits, observer)?;
        debug!(target: "memplan::plan", strategy = %self.strategy, chunks = problem.len(), "laid out");
        info!(
            target: "memplan::plan",
            strategy = %self.strategy,
            winner = layout.winner.map(Strategy::name),
            pool = layout.pool_size(problem),
            chunks = problem.len(),
            "planned",
        );
        Ok(layout)
    }
}
