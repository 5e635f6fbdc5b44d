//! A plan in a better order of the operators.

use crate::{
    Bytes, Limits, OpSequence, Plan, PlanError, Planner,
    order::{ReorderError, ReorderOptions, Reordered, reorder},
};

/// A plan and the operator order that it is for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReorderedPlan {
    /// The order, and what is known about all orders. This is the given order unless another one
    /// has a smaller pool.
    pub reordered: Reordered,
    /// The sequence in that order.
    pub sequence: OpSequence,
    /// Its plan.
    pub plan: Plan,
    /// The pool size in bytes of the given order, planned in the same way.
    pub given_pool_size: Bytes,
}

impl Planner<'_> {
    /// Plans a sequence in the order that needs the least memory, as far as the search finds one
    /// within `limits`. The pool is never larger than with the given order, which is kept unless
    /// another one makes the pool smaller.
    ///
    /// ```
    /// use memplan::{Planner, networks, order::default_limits};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let found = Planner::new().plan_reordered(&sequence, default_limits())?;
    /// assert!(found.plan.pool_size <= found.given_pool_size);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan).
    pub fn plan_reordered(
        &self,
        sequence: &OpSequence,
        limits: Limits,
    ) -> Result<ReorderedPlan, PlanError> {
        let given = self.plan(sequence)?;
        let given_pool_size = given.pool_size;
        let options = ReorderOptions::default()
            .lowering(self.lowering)
            .alignment(given.alignment)
            .padding(given.padding)
            .limits(limits)
            .observer(self.observer);
        let mut reordered = reorder(sequence, &options)?;
        if reordered.is_better() {
            let sequence = sequence.permuted(&reordered.order)?;
            let plan = self.plan(&sequence)?;
            if plan.pool_size < given_pool_size {
                return Ok(ReorderedPlan { reordered, sequence, plan, given_pool_size });
            }
            reordered.keep_given();
        }
        Ok(ReorderedPlan { reordered, sequence: sequence.clone(), plan: given, given_pool_size })
    }
}

impl From<ReorderError> for PlanError {
    fn from(error: ReorderError) -> Self {
        match error {
            ReorderError::Sequence(error) => Self::Sequence(error),
            ReorderError::Problem(error) => Self::Problem(error),
        }
    }
}
