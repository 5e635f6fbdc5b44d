//! The accessors of a plan, one for each field.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    Bytes, Step, Strategy,
    plan::{Plan, PlannedBody, PlannedChunk, PlannedPart, PlannedPool, PlannedTensor, Scope},
    sequence::DimRange,
};

impl Plan {
    /// The strategy that planned it, if known: a CSV file does not name it.
    #[must_use]
    pub const fn strategy(&self) -> Option<Strategy> {
        self.strategy
    }

    /// The strategy that won, if several were tried.
    #[must_use]
    pub const fn winner(&self) -> Option<Strategy> {
        self.winner
    }

    /// The number of bytes that the framework must reserve.
    #[must_use]
    pub const fn pool_size(&self) -> Bytes {
        self.pool_size
    }

    /// A lower bound in bytes: no plan within [`Plan::scope`] can be smaller.
    #[must_use]
    pub const fn lower_bound(&self) -> Bytes {
        self.lower_bound
    }

    /// True if no smaller pool exists within [`Plan::scope`].
    #[must_use]
    pub const fn proven_optimal(&self) -> bool {
        self.proven_optimal
    }

    /// The plans that the lower bound holds for.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// The bytes that every plan needs, whatever it chooses; see
    /// [`Planner::content_bound`](crate::Planner::content_bound). Only set in a plan of
    /// [`Planner::fit`](crate::Planner::fit) that does not fit, if they exceed the capacity; files do not store them.
    #[must_use]
    pub const fn content_bound(&self) -> Option<Bytes> {
        self.content_bound
    }

    /// A lower bound in bytes that the plan's file states but that differs from the counted one; see
    /// [`Planner::count_bound`](crate::Planner::count_bound). `None` if there is no such bound.
    #[must_use]
    pub const fn claimed_bound(&self) -> Option<Bytes> {
        self.claimed_bound
    }

    /// The total with one buffer per chunk, in bytes. The bodies of an operator count as its workspace.
    #[must_use]
    pub const fn naive_size(&self) -> Bytes {
        self.naive_size
    }

    /// Alignment of the pool and of all roots, in bytes.
    #[must_use]
    pub const fn alignment(&self) -> Bytes {
        self.alignment
    }

    /// Bytes added to the size of every chunk.
    #[must_use]
    pub const fn padding(&self) -> Bytes {
        self.padding
    }

    /// The number of steps.
    #[must_use]
    pub const fn steps(&self) -> Step {
        self.steps
    }

    /// The first step at which the most bytes are alive, as [`Problem::peak_step`](crate::Problem::peak_step) defines
    /// it; 0 if there are several streams.
    #[must_use]
    pub const fn peak_step(&self) -> Step {
        self.peak_step
    }

    /// With several streams, the chunks that are alive together and take the most bytes, by their places in
    /// [`Plan::chunks`]. Empty with one stream: those chunks are the ones alive at the peak step.
    #[must_use]
    pub const fn peak(&self) -> &[usize] {
        self.peak.as_slice()
    }

    /// The chunks, in the order of the problem.
    #[must_use]
    pub const fn chunks(&self) -> &[PlannedChunk] {
        self.chunks.as_slice()
    }

    /// The tensors, in the order of the sequence; empty for a plan of a bare problem.
    #[must_use]
    pub const fn tensors(&self) -> &[PlannedTensor] {
        self.tensors.as_slice()
    }

    /// The sizes of the shared objects in bytes; empty unless the strategy assigns chunks to objects.
    #[must_use]
    pub const fn objects(&self) -> &[Bytes] {
        self.objects.as_slice()
    }

    /// The order in which the operators run under this plan, as steps of the sequence in the order given; pass it to
    /// [`OpSequence::permuted`](crate::OpSequence::permuted). Empty if it is the order given. All steps of the plan
    /// count in this order.
    #[must_use]
    pub const fn order(&self) -> &[usize] {
        self.order.as_slice()
    }

    /// The plans of the sequences that operators run, by step and then in the order of the
    /// operator's list.
    #[must_use]
    pub const fn bodies(&self) -> &[PlannedBody] {
        self.bodies.as_slice()
    }

    /// The pools; empty if the problem is [unconstrained](crate::Problem::is_unconstrained).
    #[must_use]
    pub const fn pools(&self) -> &[PlannedPool] {
        self.pools.as_slice()
    }

    /// The chunks that lie inside others and share their bytes.
    #[must_use]
    pub const fn parts(&self) -> &[PlannedPart] {
        self.parts.as_slice()
    }

    /// The chunks whose places the problem or the caller gives, by their places in [`Plan::chunks`], ascending.
    #[must_use]
    pub const fn pinned(&self) -> &[usize] {
        self.pinned.as_slice()
    }

    /// The bytes of a pool that no chunk may touch, by the pool's place in [`Plan::pools`].
    pub fn reserved(&self, pool: usize) -> impl Iterator<Item = Range<Bytes>> + '_ {
        let reserved = self.reserved.iter().filter(move |&&(own, _)| own == pool);
        reserved.map(|(_, bytes)| bytes.clone())
    }

    /// The copies that make the pool smaller, or that a required overwrite needs: views and gathered inputs that the
    /// plan copies to memory of their own. Each is an output, the input that it could share bytes with, and the number
    /// of bytes that are copied.
    #[must_use]
    pub fn copies(&self) -> impl ExactSizeIterator<Item = (&str, &str, Bytes)> {
        self.copies.list.iter().map(|copy| (&*copy.output, &*copy.input, copy.size))
    }

    /// The bytes by which the pools are smaller than the ones of the best plan found without these copies.
    #[must_use]
    pub const fn saved_by_copies(&self) -> Bytes {
        self.copies.saved
    }

    /// The cost of the traffic: the bytes that operators move to and from the chunks, each times
    /// the cost of its pool.
    #[must_use]
    pub const fn traffic(&self) -> u128 {
        self.traffic
    }

    /// The dimensions whose sizes may differ from run to run, by name, each with the range of sizes that the plan holds
    /// for. The plan was made for the largest sizes. Empty if all sizes are fixed.
    #[must_use]
    pub const fn dims(&self) -> &BTreeMap<Box<str>, DimRange> {
        &self.dims
    }

    /// The names that operators of the sequence read although no operator produces them and they were not declared.
    /// They count as weights, outside the pool.
    #[must_use]
    pub const fn undeclared(&self) -> &[Box<str>] {
        self.undeclared.as_slice()
    }

    /// True if the operators were not given in execution order; steps count in the sorted order.
    #[must_use]
    pub const fn is_sorted(&self) -> bool {
        self.is_sorted
    }
}

/// Tests spoil plans with these methods, which are not part of the public interface.
macro_rules! fields_mut {
    ($($name:ident: $field:ident, $type:ty;)*) => {
        impl Plan {
            $(
                #[doc(hidden)]
                pub const fn $name(&mut self) -> &mut $type {
                    &mut self.$field
                }
            )*
        }
    };
}

fields_mut! {
    pool_size_mut: pool_size, Bytes;
    lower_bound_mut: lower_bound, Bytes;
    naive_size_mut: naive_size, Bytes;
    alignment_mut: alignment, Bytes;
    padding_mut: padding, Bytes;
    steps_mut: steps, Step;
    peak_step_mut: peak_step, Step;
    proven_optimal_mut: proven_optimal, bool;
    content_bound_mut: content_bound, Option<Bytes>;
    traffic_mut: traffic, u128;
    peak_mut: peak, Vec<usize>;
    chunks_mut: chunks, Vec<PlannedChunk>;
    tensors_mut: tensors, Vec<PlannedTensor>;
    objects_mut: objects, Vec<Bytes>;
    bodies_mut: bodies, Vec<PlannedBody>;
    pools_mut: pools, Vec<PlannedPool>;
    parts_mut: parts, Vec<PlannedPart>;
    pinned_mut: pinned, Vec<usize>;
    reserved_mut: reserved, Vec<(usize, Range<Bytes>)>;
}
