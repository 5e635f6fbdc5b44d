//! A better order: the same operators, with fewer bytes live at the peak.
//!
//! The order of the operators determines how many bytes are live at once, and most graphs can run in
//! many orders. [`Planner::reorder`] searches for the order with the lowest peak and for a lower bound for every
//! order. The peak is the one that [`lower`](mod@crate::lower) computes, with views, overwriting,
//! workspaces and alignment included. If a tensor is used in parts or lies inside others, it is the content
//! bound instead, which holds whatever a plan chooses.
//!
//! [`Planner::reorder`]: crate::Planner::reorder
//!
//! | file | idea |
//! | --- | --- |
//! | `model` | the live bytes as a function of what has run |
//! | `overwrites` | the bytes that outputs save by overwriting dying chunks |
//! | `lazy` | operators that only supply something run right before their readers |
//! | `bound` | bytes that every order needs, by minimum cuts |
//! | `operands` | bytes that every order needs, by its operators one by one |
//! | `cut` | the state of least live bytes between two others: a minimum cut |
//! | `fuse` | operators that only rewrite a result run right after its producer |
//! | `modules` | parts that can run without interruption become one operator each |
//! | `joins` | joins such operators before a search |
//! | `greedy` | orders by simple rules |
//! | `trees` | operators whose results flow into a single one have one best order |
//! | `symmetry` | branches that are equal |
//! | `search` | finds an order within a budget |
//! | `moves` | the moves from a state, those without a choice first |
//! | `blocks` | the moves with a choice at the front |
//! | `layer` | the open states of a search |
//! | `budgets` | finds the least budget |
//! | `windows` | improves long sequences, a window around each peak at a time |
//! | `mutations` | wrong rules, for the tests |
//! | `nearest` | an order near the given one, among those with the same peak |
//! | `fewest` | the order that moves the fewest operators, if little work suffices to find it |

mod blocks;
mod bound;
mod budgets;
mod cut;
mod fewest;
mod fuse;
mod greedy;
mod joins;
mod layer;
mod lazy;
mod model;
mod modules;
mod moves;
mod mutations;
mod nearest;
mod operands;
mod overwrites;
mod search;
mod symmetry;
#[cfg(test)]
mod tests;
mod trees;
mod windows;

use crate::sets::{self, narrow};
use crate::{
    Bytes, Limits, Observer, OpSequence, PlanError, ProblemError, SequenceError,
    effort::Effort,
    lower::{
        Grain, LoweringOptions, Placing, chunk_graph, content_bound, has_rival_outputs,
        has_shared_content, lower_apart, overlap_distances, value_graph,
    },
    problem::align_up,
};
use model::Model;

/// Options of [`reorder`].
#[derive(Clone, Debug)]
pub(crate) struct ReorderOptions<'a> {
    pub(crate) lowering: LoweringOptions,
    pub(crate) placing: Placing,
    pub(crate) limits: Limits,
    pub(crate) observer: Observer<'a>,
}

/// The default limits: 10 000 000 nodes, which take a few seconds. Most proofs need far fewer.
#[must_use]
pub fn default_limits() -> Limits {
    Limits::default().nodes(10_000_000)
}

/// The visited operators and edges that count as one node.
const VISITS_PER_NODE: u64 = 48;

/// The work of a search for an order.
fn effort<'a>(limits: &Limits, observer: Observer<'a>) -> Effort<'a> {
    Effort::new(limits, observer, (VISITS_PER_NODE, default_limits().effort()))
}

/// The order found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reordered {
    /// The steps of the sequence in the order in which to run them, for [`OpSequence::permuted`].
    /// This is the given order unless another needs fewer bytes. Among orders with the same peak, it
    /// moves few operators; for small sequences, and if few operators must move, the fewest possible.
    pub order: Vec<usize>,
    /// The most bytes live at a step in that order.
    pub peak: Bytes,
    /// The most bytes live at a step in the given order.
    pub given_peak: Bytes,
    /// A lower bound in bytes for every order. 0 if there is none, which happens if outputs may begin below their
    /// inputs and either the distances are not multiples of the alignment, or some tensors are gathered or used in
    /// parts; if two outputs of an operator may be written over one input, and one of them over another one, too, or
    /// over views of the same bytes; and if a view of a whole tensor is a copy in the given order because of a required
    /// overwrite.
    pub lower_bound: Bytes,
    /// The fewest operators that must be moved to turn the given order into this one.
    pub moved: usize,
    /// The number of nodes searched.
    pub nodes: u64,
}

impl Reordered {
    /// Returns whether no order needs fewer bytes than this one.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.peak == self.lower_bound
    }

    /// Returns to the given order.
    pub(crate) fn keep_given(&mut self) {
        (self.peak, self.moved) = (self.given_peak, 0);
        self.order = (0..self.order.len()).collect();
    }

    /// Takes another order, with the most bytes live at a step of it.
    pub(crate) fn take(&mut self, order: Vec<usize>, peak: Bytes) {
        let places: Vec<u32> = order.iter().map(|&step| narrow(step)).collect();
        self.moved = nearest::moved(&places).len();
        (self.order, self.peak) = (order, peak);
    }

    /// Returns whether this is another order than the given one, which needs more bytes.
    #[must_use]
    pub fn is_better(&self) -> bool {
        self.moved > 0
    }
}

/// See [`Planner::reorder`](crate::Planner::reorder).
pub(crate) fn reorder(
    sequence: &OpSequence,
    options: &ReorderOptions<'_>,
) -> Result<Reordered, PlanError> {
    if sequence.streams() > 1 {
        return Err(SequenceError::SeveralStreams.into());
    }
    let given_peak = peak(sequence, options)?;
    let placing = options.placing;
    let is_shared = has_shared_content(sequence, options.lowering);
    // Orders with overlaps are compared by chunks. With unaligned distances or other choices, an order may need less.
    let mut distances = overlap_distances(sequence).peekable();
    let has_overlaps = distances.peek().is_some();
    let is_bounded = !has_overlaps
        || !is_shared && distances.all(|below| below.is_multiple_of(placing.alignment));
    // The model gives each output the first input that it may be written over.
    let is_bounded = is_bounded && !has_rival_outputs(sequence, options.lowering);
    let by_chunks = if is_shared && !has_overlaps {
        None
    } else {
        chunk_graph(sequence, options.lowering).ok()
    };
    // Copies of other views may need less, and so may overlaps where a required overwrite needs bytes one by one.
    let is_bounded =
        is_bounded && by_chunks.as_ref().map_or(!has_overlaps, |graph| !graph.has_copies);
    let graph = by_chunks.map_or_else(
        || value_graph(sequence, options.lowering, placing),
        |graph| graph.counted(placing),
    );
    let model = Model::of(&graph, &sequence.predecessors());
    let mut effort = effort(&options.limits, options.observer);
    let found = joins::best_order(&model, &mut effort);
    // A pool is a multiple of the alignment.
    let bound = align_up(found.lower_bound, placing.alignment).min(given_peak);
    let mut reordered = Reordered {
        order: (0..sequence.operators().len()).collect(),
        peak: given_peak,
        given_peak,
        lower_bound: if is_bounded { bound } else { 0 },
        moved: 0,
        nodes: effort.nodes(),
    };
    let order: Vec<usize> = found.order.iter().map(|&step| step as usize).collect();
    if order != reordered.order {
        // The model's peak may differ slightly, so the peak after lowering decides.
        let peak = sequence.permuted(&order).map(|permuted| peak(&permuted, options));
        if let Ok(Ok(peak)) = peak
            && peak < given_peak
        {
            reordered.take(order, peak);
        }
    }
    Ok(reordered)
}

/// Returns the most bytes live at a step, whatever a plan chooses: the lower bound of every plan in this order.
pub(crate) fn peak(
    sequence: &OpSequence,
    options: &ReorderOptions<'_>,
) -> Result<Bytes, PlanError> {
    let Placing { alignment, padding } = options.placing;
    if !alignment.is_power_of_two() {
        return Err(ProblemError::Alignment { alignment }.into());
    }
    if has_shared_content(sequence, options.lowering)
        && let Some(bound) = content_bound(sequence, options.lowering, options.placing)
    {
        return Ok(bound);
    }
    let problem = lower_apart(sequence, options.lowering, options.placing, Grain::Chunks)?.problem;
    let placed = problem.with_alignment(alignment)?.with_padding(padding)?;
    Ok(placed.lower_bound())
}
