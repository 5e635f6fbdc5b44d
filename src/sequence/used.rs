//! The tensors whose bytes an operator uses.

use crate::sequence::{Dependency, OpSequence, OperatorNode, Origin, TensorId};

impl OpSequence {
    /// The tensors whose bytes an operator uses, each with true if it is an input.
    ///
    /// An operator without a workspace whose outputs are all views computes nothing: of the inputs that these show, it
    /// uses only the bytes that they show. `is_view` returns whether an output that may be a view of an input is one.
    pub(crate) fn used_tensors<'a>(
        &'a self,
        operator: &'a OperatorNode,
        is_view: impl Fn(TensorId, TensorId) -> bool,
    ) -> impl Iterator<Item = (TensorId, bool)> + 'a {
        let viewed = |&output: &TensorId| match self.tensor(output).origin {
            Origin::Output { dependency: Dependency::Reads { input, .. }, .. } => Some(input),
            _ => None,
        };
        let has_bytes = |output: TensorId| self.tensor(output).size != Some(0);
        let only_views = operator.bodies.is_empty()
            && !operator.runs_bodies
            && operator.workspace == 0
            && operator.outputs.iter().all(|output| {
                viewed(output).is_some_and(|input| !has_bytes(*output) || is_view(*output, input))
            });
        let is_shown = move |input: TensorId| {
            let mut views = operator.outputs.iter().filter(|&&output| has_bytes(output));
            only_views && views.any(|output| viewed(output) == Some(input))
        };
        let inputs = operator.inputs.iter().filter(move |&&input| !is_shown(input));
        let inputs = inputs.map(|&input| (input, true));
        inputs.chain(operator.outputs.iter().map(|&output| (output, false)))
    }
}
