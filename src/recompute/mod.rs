//! Recomputation (rematerialization): some operators run twice, so that fewer bytes are live at the peak.
//!
//! A training step keeps the activations of its forward pass for its backward pass, and networks with long skip
//! connections keep tensors in the same way. A tensor that is dropped after one reader and made again before the next
//! needs no memory in between. [`Planner::recompute`] chooses what to make again so that the peak is within a capacity
//! at the least extra cost, and [`Planner::recompute_curve`] does so for many capacities. The result is an ordinary
//! [`OpSequence`], in which [`expand`] has added copies of operators.
//!
//! [`Planner::recompute`]: crate::Planner::recompute
//! [`Planner::recompute_curve`]: crate::Planner::recompute_curve
//!
//! | file | idea |
//! | --- | --- |
//! | `model` | operators, storages and values as numbers |
//! | `sweep` | the live bytes of an expanded sequence, by one walk over it |
//! | `gaps` | the gaps between readers, over which results may be dropped |
//! | `cuts` | what to make again, at a given price of bytes, by minimum cuts |
//! | `search` | the list of what follows |
//! | `seeds` | choices to begin from, by cuts |
//! | `repair` | drops more until it fits, then keeps again what it can |
//! | `anneal` | improves a choice by random changes |
//! | `shift` | moves single copies to other steps, then keeps again what it can |
//! | `swap` | puts in single copies, then keeps again what it can |
//! | `bound` | the least peak and the least cost of all expanded sequences |
//! | `expand` | the expanded sequence |
//! | `found` | the results of a search |
//! | `curve` | the results for many capacities |
//! | `shapes` | costs of the operators of a model, from their shapes |

mod anneal;
mod bound;
mod chains;
mod curve;
mod cuts;
mod expand;
mod found;
mod gaps;
mod model;
mod repair;
mod search;
mod seeds;
mod shapes;
mod shift;
mod stages;
mod swap;
mod sweep;
#[cfg(test)]
mod tests;

pub use expand::{LaterRun, expand};
#[cfg(feature = "onnx")]
pub(crate) use expand::{Run, runs};
pub use found::{Recomputation, Recomputed};
pub use shapes::with_costs_from_shapes;

use crate::{
    Bytes, Limits, Observer, OpSequence, PlanError, SequenceError,
    effort::Effort,
    lower::{LoweringOptions, Placing},
};
use found::Sequences;
use model::Model;

/// A search for the least recomputation within a capacity.
#[derive(Clone, Debug)]
pub(crate) struct Recompute<'a> {
    /// The most bytes that may be live at once.
    pub(crate) capacity: Bytes,
    /// Gathered inputs count as copied.
    pub(crate) lowering: LoweringOptions,
    pub(crate) placing: Placing,
    pub(crate) limits: Limits,
    pub(crate) observer: Observer<'a>,
}

/// The nodes of a search without limits: this many for each operator, and at least `NODES`. On training steps of 158 to
/// 2 001 operators, this was enough to fit half of the peak.
const NODES_PER_OPERATOR: u64 = 4_000;
const NODES: u64 = 1_250_000;

/// The nodes of a second search without limits, if the first finds nothing that fits. On training steps of 41 to 63
/// operators, this was enough to find the least peak.
const PATIENT_NODES: u64 = 8_000_000;

/// The visited runs, values and edges that count as one node.
const VISITS_PER_NODE: u64 = 160;

impl Recompute<'_> {
    /// Searches for the cheapest expanded sequence of `given`; `flat` is the same sequence with workspace in place of
    /// its bodies. The expanded sequence has the bodies.
    pub(crate) fn run(
        &self,
        given: &OpSequence,
        flat: &OpSequence,
    ) -> Result<Recomputed<Recomputation>, PlanError> {
        let model = self.model(given, flat)?;
        let usual = usual_nodes(&model);
        let find = |nodes| self.find(&model, Sequences { given, flat }, &mut self.work(nodes));
        match find(usual)? {
            Recomputed::NotFound { .. } if self.limits.is_unlimited() && usual < PATIENT_NODES => {
                find(PATIENT_NODES)
            }
            found => Ok(found),
        }
    }

    /// The work of a search that usually takes this many nodes.
    fn work(&self, usual: u64) -> Effort<'_> {
        let limits =
            if self.limits.is_unlimited() { self.limits.nodes(usual) } else { self.limits };
        let mut effort = Effort::new(&limits, self.observer, (VISITS_PER_NODE, usual));
        effort.best = Bytes::MAX;
        effort.spend(0);
        effort
    }

    /// Checks a sequence and makes its model.
    fn model(&self, given: &OpSequence, flat: &OpSequence) -> Result<Model, PlanError> {
        if flat.streams() > 1 {
            return Err(SequenceError::SeveralStreams.into());
        }
        self.peak(flat)?;
        let sum =
            |sum: u64, operator: &crate::sequence::OperatorNode| sum.checked_add(operator.cost);
        let total = flat.operators().iter().try_fold(0, sum);
        if total.is_none_or(|total| total > u64::MAX / 2) {
            return Err(PlanError::CostOverflow);
        }
        let model = Model::new(given, flat, self.lowering, self.placing);
        // Sweeps add up signed numbers, and a tensor may be alive together with its copy.
        let sizes = model.storages.iter().map(|storage| u128::from(storage.bytes));
        let workspace = model.workspace.iter().max().map_or(0, |&bytes| u128::from(bytes));
        if 2 * sizes.sum::<u128>() + workspace >= 1 << 63 {
            return Err(PlanError::TooLargeTwice);
        }
        Ok(model)
    }
}

/// The nodes of a search without limits.
fn usual_nodes(model: &Model) -> u64 {
    NODES.max(NODES_PER_OPERATOR.saturating_mul(model.operators() as u64))
}
