//! A plan in a better order of the operators.

use std::time::{Duration, Instant};

use crate::{
    Limits, OpSequence, Plan, PlanError, Planner,
    order::{ReorderError, ReorderOptions, Reordered, peak, reorder},
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
    /// Its plan, which states the order.
    pub plan: Plan,
    /// The plan of the order given, made in the same way.
    pub given: Plan,
}

impl Planner<'_> {
    /// Plans a sequence in the order that needs the least memory, as far as the search finds one
    /// within `limits`. The pool is never larger than with the given order, which is kept unless
    /// another one makes the pool smaller.
    ///
    /// A time limit covers everything: at most a quarter is for the plan of the given order, as much
    /// again is kept for the plan of the new one, and the search takes the rest.
    ///
    /// ```
    /// use memplan::{Planner, networks, order::default_limits};
    ///
    /// let sequence = networks::mobilenet_v2(1)?;
    /// let found = Planner::new().plan_reordered(&sequence, default_limits())?;
    /// assert!(found.plan.pool_size <= found.given.pool_size);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and if [`pools`](Self::pools) are given: orders are compared by the
    /// size of one pool.
    pub fn plan_reordered(
        &self,
        sequence: &OpSequence,
        limits: Limits,
    ) -> Result<ReorderedPlan, PlanError> {
        if !self.memories.pools.is_empty() {
            return Err(PlanError::OrderInPools);
        }
        let start = Instant::now();
        let left = |time: Duration| time.saturating_sub(start.elapsed());
        let given = self.within(limits.time.map(|time| time / 4)).plan(sequence)?;
        let took = start.elapsed();
        let search =
            Limits { time: limits.time.map(|time| left(time).saturating_sub(took)), ..limits };
        let options = self.orders(&given).limits(search);
        let reordered = reorder(&self.flatten(sequence)?.sequence, &options)?;
        self.within(limits.time.map(left)).plan_found(sequence, reordered, given)
    }

    /// The options of comparing orders as plans do.
    fn orders(&self, given: &Plan) -> ReorderOptions<'_> {
        ReorderOptions::default()
            .lowering(self.lowering)
            .alignment(given.alignment)
            .padding(given.padding)
            .observer(self.observer)
    }

    /// The planner with at most this time.
    fn within(&self, time: Option<Duration>) -> Self {
        let least = [self.limits.time, time].into_iter().flatten().min();
        self.clone().limits(Limits { time: least, ..self.limits })
    }

    /// Plans a sequence in an order that was found, where its pool is smaller.
    fn plan_found(
        &self,
        sequence: &OpSequence,
        mut reordered: Reordered,
        given: Plan,
    ) -> Result<ReorderedPlan, PlanError> {
        if reordered.is_better() {
            let sequence = sequence.permuted(&reordered.order)?;
            match self.plan(&sequence) {
                Ok(mut plan) if plan.pool_size < given.pool_size => {
                    plan.order.clone_from(&reordered.order);
                    return Ok(ReorderedPlan { reordered, sequence, plan, given });
                }
                Err(error) if !error.is_stop() => return Err(error),
                // There is a plan of the order given.
                _ => {}
            }
            reordered.keep_given();
        }
        let (sequence, plan) = (sequence.clone(), given.clone());
        Ok(ReorderedPlan { reordered, sequence, plan, given })
    }
}

impl ReorderedPlan {
    /// Replaces the order by another one of `given`, the sequence before reordering; for example,
    /// by one that a file can hold. The order given is kept unless the pool of the other is
    /// smaller.
    ///
    /// # Errors
    ///
    /// As [`Planner::plan`], and if the operators cannot run in this order.
    pub fn with_order(
        self,
        order: Vec<usize>,
        given: &OpSequence,
        planner: &Planner<'_>,
    ) -> Result<Self, PlanError> {
        if order == self.reordered.order {
            return Ok(self);
        }
        let mut reordered = self.reordered;
        let permuted = given.permuted(&order)?;
        let flat = planner.flatten(&permuted)?;
        reordered.take(order, peak(&flat.sequence, &planner.orders(&self.given))?);
        planner.plan_found(given, reordered, self.given)
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
