//! The tensors whose bytes an operator uses.

use smallvec::SmallVec;

use crate::sequence::{OpSequence, OperatorNode, TensorId};

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
        let viewed = |&output: &TensorId| Some(self.tensor(output).viewed()?.0);
        let has_bytes = |output: TensorId| self.tensor(output).size != Some(0);
        let only_views = operator.bodies.is_empty()
            && !operator.runs_bodies
            && operator.workspace == 0
            && operator.outputs.iter().all(|output| {
                viewed(output).is_some_and(|input| !has_bytes(*output) || is_view(*output, input))
            });
        let with_bytes = operator.outputs.iter().filter(|&&output| only_views && has_bytes(output));
        let mut shown: SmallVec<[TensorId; 4]> = with_bytes.filter_map(viewed).collect();
        shown.sort_unstable();
        let inputs = operator.inputs.iter().copied();
        let inputs = inputs.filter(move |input| shown.binary_search(input).is_err());
        let inputs = inputs.map(|input| (input, true));
        inputs.chain(operator.outputs.iter().map(|&output| (output, false)))
    }
}
