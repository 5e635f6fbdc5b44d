//! A plan for other operators than those given.

use crate::{OpSequence, Plan, recompute::Recomputation};

/// A plan for other operators than those given: in [another order](crate::order::Reordered), or in a sequence that
/// runs some of them [twice](crate::recompute::Recomputation).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replanned<T> {
    /// The order, or the operators that run twice or later, with its cost and its bounds. The order is the given one
    /// unless another one has a smaller pool. The peak of a recomputation is counted in the order of the plan.
    pub change: T,
    /// The sequence that is planned, in the order of the plan.
    pub sequence: OpSequence,
    /// Its plan. After a search for an order of the given operators, it states that order.
    pub plan: Plan,
    /// The plan of the sequence given, made in the same way.
    pub given: Plan,
}

impl Replanned<Recomputation> {
    /// Returns whether the plan is in another order than the [expanded sequence](Recomputation::sequence).
    #[must_use]
    pub fn is_reordered(&self) -> bool {
        !self.sequence.has_same_operators(&self.change.sequence)
    }

    /// Returns whether no expanded sequence in the given order that fits costs less.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.change.extra_cost == 0 || (self.change.is_proven() && !self.is_reordered())
    }
}
