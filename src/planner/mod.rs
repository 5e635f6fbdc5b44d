//! Planners: each takes a [`Problem`] and chooses an offset for every chunk.
//!
//! [`Strategy`] is the one place that knows them all.

mod error;
mod layout;
pub mod pushdown;
pub mod search;
mod strategy;

use tracing::{debug, info};

pub use error::PlanError;
pub use layout::Layout;
pub use strategy::{Strategy, UnknownStrategy};

use crate::{
    Bytes, OpSequence, Plan, Problem,
    lower::{LoweringOptions, lower},
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

    /// Plans an operator sequence.
    ///
    /// # Errors
    ///
    /// If the sequence cannot be lowered, or the alignment is not a power of two, or sizes do not
    /// add up in 64 bits.
    pub fn plan(&self, sequence: &OpSequence) -> Result<Plan, PlanError> {
        let lowered = lower(sequence, self.lowering)?;
        let problem = self.adjust(lowered.problem)?;
        let layout = self.layout(&problem);
        Ok(Plan::of_sequence(sequence, &lowered.homes, &problem, self.strategy, &layout))
    }

    /// Plans chunks whose lifetimes are known.
    ///
    /// # Errors
    ///
    /// If the alignment is not a power of two, or sizes do not add up in 64 bits.
    pub fn plan_problem(&self, problem: &Problem) -> Result<Plan, PlanError> {
        let problem = self.adjust(problem.clone())?;
        let layout = self.layout(&problem);
        Ok(Plan::of_problem(&problem, self.strategy, &layout))
    }

    fn adjust(&self, problem: Problem) -> Result<Problem, PlanError> {
        let alignment = self.alignment.unwrap_or(problem.alignment());
        let padding = self.padding.unwrap_or(problem.padding());
        Ok(problem.with_alignment(alignment, padding)?)
    }

    fn layout(&self, problem: &Problem) -> Layout {
        let layout = self.strategy.layout(problem);
        debug!(target: "memplan::plan", strategy = %self.strategy, chunks = problem.len(), "laid out");
        info!(
            target: "memplan::plan",
            strategy = %self.strategy,
            pool = layout.pool_size(problem),
            chunks = problem.len(),
            "planned",
        );
        layout
    }
}
