//! Recomputation (rematerialization): some operators run twice, so that fewer bytes are live at the peak.
//!
//! A training step keeps the activations of its forward pass for its backward pass, and networks with long skip
//! connections keep tensors in the same way. A tensor that is dropped after one reader and made again before
//! the next needs no memory in between. [`Recompute`] chooses what to make again so that the peak is within a
//! capacity at the least extra cost, and [`curve`] does so for many capacities. The result is an ordinary
//! [`OpSequence`], in which [`expand`] has added copies of operators.
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

pub use curve::{Curve, CurvePoint, curve};
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
///
/// ```
/// use memplan::{OpSequence, Operator, Output, recompute::{Recompute, Recomputed}};
///
/// // Activations of a forward pass, which a backward pass reads in reverse.
/// let mut step = OpSequence::builder();
/// step.input("a0", 100);
/// for layer in 1..=8 {
///     let below = format!("a{}", layer - 1);
///     step.operator(Operator::new(format!("f{layer}")).inputs([below]).output(Output::new(format!("a{layer}"), 100)));
/// }
/// for layer in (1..=8).rev() {
///     let mut inputs = vec![format!("a{layer}"), format!("a{}", layer - 1)];
///     inputs.extend((layer < 8).then(|| format!("g{}", layer + 1)));
///     step.operator(Operator::new(format!("b{layer}")).inputs(inputs).output(Output::new(format!("g{layer}"), 100)));
/// }
/// let step = step.output("g1").build()?;
///
/// let Recomputed::Found(found) = Recompute::new().capacity(600).run(&step)? else { panic!() };
/// assert!(found.peak <= 600);
/// assert_eq!(found.extra_cost, found.runs_twice().count() as u64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recompute<'a> {
    capacity: Bytes,
    lowering: LoweringOptions,
    placing: Placing,
    limits: Limits,
    observer: Observer<'a>,
}

/// The nodes of a search without limits: this many for each operator, and at least `NODES`. On training steps of 158 to
/// 2 001 operators, this was enough to fit half of the peak.
const NODES_PER_OPERATOR: u64 = 4_000;
const NODES: u64 = 1_000_000;

/// The nodes of a second search without limits, if the first finds nothing that fits. On training steps of 41 to 63
/// operators, this was enough to find the least peak.
const PATIENT_NODES: u64 = 8_000_000;

/// The visited runs, values and edges that count as one node.
const VISITS_PER_NODE: u64 = 160;

impl Default for Recompute<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl Recompute<'_> {
    /// Starts with unlimited capacity, the default [`LoweringOptions`], alignment 1, no padding, and
    /// [`Limits::default`]. These limits allow 4 000 nodes for each operator, at least 1 000 000, and 250 000
    /// more to improve the result. If nothing fits, a second search has 8 000 000 nodes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            capacity: Bytes::MAX,
            lowering: LoweringOptions::default(),
            placing: Placing::default(),
            limits: Limits::default(),
            observer: Observer::default(),
        }
    }

    /// Sets the most bytes that may be live at once.
    #[must_use]
    pub fn capacity(mut self, bytes: Bytes) -> Self {
        self.capacity = bytes;
        self
    }

    /// Limits the effort to this many nodes, which take about a microsecond each.
    #[must_use]
    pub fn effort(mut self, nodes: u64) -> Self {
        self.limits = self.limits.nodes(nodes);
        self
    }

    /// Limits the search. It uses one thread, however many are allowed.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Lowers sequences with these options. Gathered inputs count as copied.
    #[must_use]
    pub fn lowering(mut self, options: LoweringOptions) -> Self {
        self.lowering = options;
        self
    }

    /// Aligns the offsets of roots to a power of two in bytes.
    #[must_use]
    pub fn alignment(mut self, bytes: Bytes) -> Self {
        self.placing.alignment = bytes;
        self
    }

    /// Adds bytes to the size of every chunk.
    #[must_use]
    pub fn padding(mut self, bytes: Bytes) -> Self {
        self.placing.padding = bytes;
        self
    }

    /// Lets the caller watch and cancel the search. A cancelled search soon returns the best that it has. The
    /// progress is in bytes at the peak.
    #[must_use]
    pub fn observer(self, observer: Observer<'_>) -> Recompute<'_> {
        Recompute { observer, ..self }
    }

    /// Searches for the cheapest expanded sequence whose live bytes never exceed the capacity.
    ///
    /// # Errors
    ///
    /// If the sequence cannot be lowered, runs on several streams or has bodies, the alignment is not a power
    /// of two, or a sum of sizes or of costs exceeds 64 bits.
    pub fn run(&self, sequence: &OpSequence) -> Result<Recomputed, PlanError> {
        self.run_flat(sequence, sequence)
    }

    /// As [`run`](Self::run), for a sequence `given` with bodies; `flat` is the same sequence with workspace in
    /// place of them. The expanded sequence has the bodies.
    pub(crate) fn run_flat(
        &self,
        given: &OpSequence,
        flat: &OpSequence,
    ) -> Result<Recomputed, PlanError> {
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
        Ok(Model::new(given, flat, self.lowering, self.placing))
    }
}

/// The nodes of a search without limits.
fn usual_nodes(model: &Model) -> u64 {
    NODES.max(NODES_PER_OPERATOR.saturating_mul(model.operators() as u64))
}
