//! NNVM's and MXNet's `PlanMemory`: reference counts, storages that are passed on, in-place
//! operators.
//!
//! **Idea.** Walk over the graph and count the remaining readers of every entry. An output takes
//! over the storage of an input that has no other reader, if its operator can work in place;
//! otherwise it takes a free storage of about its size ([`PlanOptions::match_range`]), which grows
//! if it is too small; otherwise it takes a new one. A storage becomes free after its last reader.
//! The result is a storage per entry, not an offset.
//!
//! **Cost.** O(n log n); with colours, a request also passes over the free storages of other
//! colours.
//!
//! **When.** For static graphs whose planner must be quick and simple. The match range trades waste
//! inside a storage for reuse; [`PlanOptions::auto_search`] tries several ranges.
//!
//! **Source.** Tianqi Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016, section
//! 3; NNVM `plan_memory.cc` and `graph_compile.cc`, MXNet (2016 to 2018). The storages equal the
//! original's. [`plan`] takes a [`Graph`], which has entries, identities and variables; [`objects`]
//! takes records.

mod assign;
mod colours;
mod error;
mod graph;
mod plan;
mod storages;

pub use assign::{AssignedPlan, assign};
pub use error::GraphError;
pub use graph::{Graph, InPlace, Node, NodeEntry, NodeKind, Tensor};
pub use plan::{EntryPlan, MemoryPlan, PlanOptions, plan};

use std::cmp::Reverse;

use crate::{
    Problem,
    baselines::{
        Objects,
        boxes::Boxes,
        nnvm::storages::Storages,
        records::{InUse, Records},
        replay::CHUNK,
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// The match range of the original.
pub const MATCH_RANGE: u64 = 16;

/// Plans records as `PlanMemory` would. In each step, the records that begin request a storage, the
/// largest first and of equal ones the later first; then the records that end release theirs.
#[must_use]
pub fn objects(records: &Records, match_range: u64) -> Objects {
    Budget::unlimited(|budget| share(records, match_range, budget))
}

fn share(records: &Records, match_range: u64, budget: &mut Budget<'_>) -> Result<Objects, Stop> {
    let mut storages = Storages::new(match_range);
    let mut storage_of = vec![0; records.len()];
    let mut in_use = InUse::default();
    let mut order: Vec<usize> = (0..records.len()).collect();
    order
        .sort_by_key(|&index| (records[index].first, Reverse(records[index].size), Reverse(index)));
    for index in order {
        budget.spend(CHUNK)?;
        let record = &records[index];
        while let Some(ended) = in_use.ended_before(record.first) {
            storages.release(storage_of[ended], 0);
        }
        storage_of[index] = storages.request(record.size, 0, 0);
        in_use.until(record.last, index);
    }
    let mut objects = Objects::for_records(records.len());
    for size in storages.into_sizes() {
        objects.add(size);
    }
    for (index, storage) in storage_of.into_iter().enumerate() {
        objects.assign(index, storage);
    }
    Ok(objects)
}

/// Plans a problem with every chain as a box and the original's match range.
pub(super) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.share(problem, share(&boxes.records, MATCH_RANGE, budget)?))
}
