//! A better order: the same operators, with fewer bytes live at the peak.
//!
//! The order in which a graph runs decides how much of it is live at once, and most graphs can run
//! in many. [`reorder`] looks for the order whose peak is least, and for a proof: a bound that holds
//! for every order. The peak is the one that [`lower`](mod@crate::lower) gives the order, views,
//! overwriting, workspaces and alignment included.
//!
//! | file | idea |
//! | --- | --- |
//! | `model` | the live bytes as a function of what has run |
//! | `lazy` | operators that only bring something run right before their readers |
//! | `bound` | bytes that every order needs |
//! | `cut` | the state of least live bytes between two others: a minimum cut |
//! | `greedy` | orders by simple rules |
//! | `trees` | what flows into one operator has one best order |
//! | `search` | is there an order within a budget? |
//! | `layer` | the open states of a search |
//! | `ladder` | budgets in turn: the least |
//! | `windows` | long sequences, a window around each peak at a time |
//! | `nearest` | of orders with one peak, one near to the order given |

mod bound;
mod cut;
mod effort;
mod greedy;
mod ladder;
mod layer;
mod lazy;
mod model;
mod nearest;
mod search;
mod sets;
#[cfg(test)]
mod tests;
mod trees;
mod windows;

use crate::{
    Bytes, Limits, Observer, OpSequence, ProblemError, SequenceError,
    lower::{LoweringOptions, chunk_graph, lower},
};
use effort::Effort;
use model::{Model, Placing};

/// How to look for an order.
#[derive(Clone, Debug)]
pub struct ReorderOptions<'a> {
    lowering: LoweringOptions,
    alignment: Bytes,
    padding: Bytes,
    limits: Limits,
    observer: Observer<'a>,
}

impl Default for ReorderOptions<'_> {
    /// The default [`LoweringOptions`], alignment 1, no padding, and an effort of 6 000 000 nodes,
    /// some seconds.
    fn default() -> Self {
        Self {
            lowering: LoweringOptions::default(),
            alignment: 1,
            padding: 0,
            limits: default_limits(),
            observer: Observer::default(),
        }
    }
}

impl ReorderOptions<'_> {
    /// Lowers the sequence with these options.
    #[must_use]
    pub fn lowering(mut self, options: LoweringOptions) -> Self {
        self.lowering = options;
        self
    }

    /// Aligns the offsets of roots to a power of two in bytes.
    #[must_use]
    pub fn alignment(mut self, bytes: Bytes) -> Self {
        self.alignment = bytes;
        self
    }

    /// Adds bytes to the size of every chunk.
    #[must_use]
    pub fn padding(mut self, bytes: Bytes) -> Self {
        self.padding = bytes;
        self
    }

    /// How far to search. One thread searches, however many are allowed.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Lets the caller watch and cancel the search; a cancelled search ends soon, with the best order
    /// so far. The progress is in bytes at the peak.
    #[must_use]
    pub fn observer(self, observer: Observer<'_>) -> ReorderOptions<'_> {
        ReorderOptions { observer, ..self }
    }
}

/// The limits by default: 6 000 000 nodes, some seconds. What is proven in milliseconds takes few.
#[must_use]
pub fn default_limits() -> Limits {
    Limits::default().nodes(6_000_000)
}

/// The order found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reordered {
    /// The steps of the sequence in the order in which they are to run, for
    /// [`OpSequence::permuted`]. The order given unless another needs fewer bytes.
    pub order: Vec<usize>,
    /// The most bytes live at a step of that order.
    pub peak: Bytes,
    /// The same of the order given.
    pub given_peak: Bytes,
    /// No order needs fewer bytes.
    pub lower_bound: Bytes,
    /// The fewest operators that must be moved to get from the order given to this one.
    pub moved: usize,
    /// How far it searched, in nodes.
    pub nodes: u64,
}

impl Reordered {
    /// Whether no order needs fewer bytes than this one.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.peak == self.lower_bound
    }

    /// Goes back to the order given.
    pub(crate) fn keep_given(&mut self) {
        (self.peak, self.moved) = (self.given_peak, 0);
        self.order = (0..self.order.len()).collect();
    }

    /// Whether the order needs fewer bytes than the one given.
    #[must_use]
    pub fn is_better(&self) -> bool {
        self.peak < self.given_peak
    }
}

/// A sequence that has no order, or no peak.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReorderError {
    /// The sequence cannot be lowered.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// Alignment or padding make no sense.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

/// Looks for the order of the operators that needs the fewest bytes.
///
/// ```
/// use memplan::{OpSequence, Operator, Output, order::{ReorderOptions, reorder}};
///
/// // Two branches, listed side by side.
/// let mut sequence = OpSequence::builder();
/// for branch in ["a", "b"] {
///     sequence.operator(Operator::new("wide").output(Output::new(format!("{branch}1"), 1000)));
/// }
/// for branch in ["a", "b"] {
///     sequence.operator(
///         Operator::new("narrow")
///             .inputs([format!("{branch}1")])
///             .output(Output::new(format!("{branch}2"), 10)),
///     );
/// }
/// let join = Operator::new("join").inputs(["a2", "b2"]).output(Output::new("y", 10));
/// let sequence = sequence.operator(join).output("y").build()?;
///
/// let found = reorder(&sequence, &ReorderOptions::default())?;
/// assert_eq!((found.given_peak, found.peak), (2010, 1020));
/// assert_eq!(found.order, [0, 2, 1, 3, 4]);
/// assert!(found.is_proven());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the sequence cannot be lowered, the alignment is not a power of two, or sizes do not add up
/// in 64 bits.
pub fn reorder(
    sequence: &OpSequence,
    options: &ReorderOptions<'_>,
) -> Result<Reordered, ReorderError> {
    let given_peak = peak(sequence, options)?;
    let graph = chunk_graph(sequence, options.lowering)?;
    let placing = Placing { alignment: options.alignment, padding: options.padding };
    let model = Model::new(&graph, &sequence.predecessors(), placing);
    let mut effort = Effort::new(&options.limits, options.observer);
    let found = ladder::climb(&model, &mut effort);
    let mut reordered = Reordered {
        order: (0..sequence.operators().len()).collect(),
        peak: given_peak,
        given_peak,
        lower_bound: found.lower_bound.min(given_peak),
        moved: 0,
        nodes: effort.nodes(),
    };
    let order: Vec<usize> = found.order.iter().map(|&step| step as usize).collect();
    if order != reordered.order {
        // What counts is what lowering makes of it.
        let peak = sequence.permuted(&order).map(|permuted| peak(&permuted, options));
        if let Ok(Ok(peak)) = peak
            && peak < given_peak
        {
            (reordered.order, reordered.peak) = (order, peak);
            reordered.moved = nearest::moved(&found.order).len();
        }
    }
    Ok(reordered)
}

/// The most bytes live at a step: the lower bound of every plan of this order.
fn peak(sequence: &OpSequence, options: &ReorderOptions<'_>) -> Result<Bytes, ReorderError> {
    let problem = lower(sequence, options.lowering)?.problem;
    Ok(problem.with_alignment(options.alignment, options.padding)?.lower_bound().bytes)
}
