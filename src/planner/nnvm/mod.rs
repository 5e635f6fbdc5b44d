//! NNVM's and MXNet's `PlanMemory`: reference counts, storages that are handed on, in-place
//! operators.
//!
//! **Idea.** Walk over the graph and count who still reads what. An output takes over the storage
//! of an input that nobody else reads, if its operator can work in place; else a free storage of
//! about its size ([`PlanOptions::match_range`]), which grows if it is too small; else a new one. A
//! storage is free when its last reader is done. The answer is a storage per entry, no offset.
//!
//! **Cost.** O(n log n); with colours also the free storages of other colours are looked at.
//!
//! **When.** Static graphs whose planner must be quick and simple. The match range trades waste
//! inside a storage for reuse; [`PlanOptions::auto_search`] tries several.
//!
//! **Source.** Tianqi Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016, section
//! 3; NNVM `plan_memory.cc` and `graph_compile.cc`, MXNet (2016 to 2018). Storages equal the
//! original's. [`plan`] takes a [`Graph`] of its own, which knows entries, identities and
//! variables; [`layout`] plans a [`Problem`], every chain a box.

mod assign;
mod colours;
mod error;
mod graph;
mod plan;
mod storages;

pub use assign::{AssignedPlan, assign};
pub use error::GraphError;
pub use graph::{Entry, Graph, InPlace, Node, NodeKind, Tensor};
pub use plan::{EntryPlan, MemoryPlan, PlanOptions, plan};

use std::cmp::Reverse;

use crate::{
    Problem,
    planner::{
        Layout, Objects,
        nnvm::storages::Storages,
        records::{Boxes, InUse, Records},
    },
};

/// The match range of the original.
pub const MATCH_RANGE: u64 = 16;

/// Plans records as `PlanMemory` would: in each step the beginning ones request, the largest first,
/// of equals the later one; then the ending ones release.
#[must_use]
pub fn objects(records: &Records, match_range: u64) -> Objects {
    let mut storages = Storages::new(match_range);
    let mut storage_of = vec![0; records.len()];
    let mut in_use = InUse::default();
    let mut order: Vec<usize> = (0..records.len()).collect();
    order
        .sort_by_key(|&index| (records[index].first, Reverse(records[index].size), Reverse(index)));
    for index in order {
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
    objects
}

/// Plans a problem, every chain a box, with the original's match range.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.share(problem, objects(&boxes.records, MATCH_RANGE))
}
