//! The same operators with other costs.

use crate::sequence::OpSequence;

impl OpSequence {
    /// The same operators with other costs, and other statements of which must not run twice, by step. Operators
    /// beyond the list keep theirs.
    #[must_use]
    pub fn with_costs(&self, costs: &[(u64, bool)]) -> Self {
        let mut sequence = self.clone();
        for (operator, &(cost, once)) in sequence.operators.iter_mut().zip(costs) {
            (operator.cost, operator.once) = (cost, once);
        }
        sequence
    }
}
