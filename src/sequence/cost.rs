//! The same operators with other costs.

use crate::sequence::OpSequence;

impl OpSequence {
    /// The same operators with other costs. `costs` lists, by step, the cost and whether the operator must not run
    /// twice; operators beyond the list keep both.
    #[must_use]
    pub fn with_costs(&self, costs: &[(u64, bool)]) -> Self {
        let mut sequence = self.clone();
        for (operator, &(cost, once)) in sequence.operators.iter_mut().zip(costs) {
            (operator.cost, operator.once) = (cost, once);
        }
        sequence
    }
}
