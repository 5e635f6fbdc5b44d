//! Offline plans for TensorFlow Lite Micro, and models with their operators in another order.
//!
//! The runtime reads an offset for every tensor from the metadata of a model, puts those tensors there, and
//! places the others, scratch buffers among them, around them. [`OfflinePlan`] holds such offsets;
//! [`OfflinePlan::simulate`] places all buffers as the runtime does with them.

mod c_struct;
mod check;
mod permute;
mod write;

pub use c_struct::c_struct;
pub use permute::permuted;

use std::collections::HashMap;

use crate::{
    Bytes, Plan, TensorPlace,
    baselines::tflite::{Offsets, Record, RecordError, Records, micro},
    import::tflite::{ALIGNMENT, Arena, ArenaBuffer},
};

/// The name of the metadata entry that holds an offline plan.
pub const ENTRY: &str = "OfflineMemoryAllocation";

/// The offset of each tensor of all subgraphs from the start of the arena, in bytes; `None` for a
/// tensor that the runtime places, or that does not lie in the head.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfflinePlan {
    /// The offsets, subgraph by subgraph.
    pub offsets: Vec<Option<Bytes>>,
}

impl OfflinePlan {
    /// Creates a plan from the offsets of the tensors, subgraph by subgraph.
    #[must_use]
    pub const fn new(offsets: Vec<Option<Bytes>>) -> Self {
        Self { offsets }
    }

    /// Creates a plan without offsets: the runtime places everything.
    #[must_use]
    pub fn online(arena: &Arena) -> Self {
        Self { offsets: vec![None; arena.tensors] }
    }

    /// Takes the offsets of the tensors from a plan of the model's sequence. An offline plan cannot
    /// state those of scratch buffers.
    #[must_use]
    pub fn of_plan(arena: &Arena, plan: &Plan) -> Self {
        let mut offline = Self::online(arena);
        let offsets: HashMap<&str, Bytes> = plan
            .tensors
            .iter()
            .filter_map(|tensor| match tensor.place {
                TensorPlace::Pool { offset, .. } => Some((&*tensor.name, offset)),
                _ => None,
            })
            .collect();
        for buffer in &arena.buffers {
            if let Some(tensor) = buffer.tensor {
                offline.offsets[tensor] = offsets.get(&*buffer.name).copied();
            }
        }
        offline
    }

    /// The places of all buffers of the arena in its head, as [`simulate`](Self::simulate) finds them.
    pub(crate) fn head(&self, arena: &Arena) -> Result<Offsets, RecordError> {
        if self.offsets.len() != arena.tensors {
            let (records, entries) = (arena.tensors, self.offsets.len());
            return Err(RecordError::Count { records, entries });
        }
        let record = |buffer: &ArenaBuffer| Record {
            size: buffer.size,
            first: buffer.first,
            last: buffer.last,
        };
        let records = Records::new(arena.buffers.iter().map(record).collect())?;
        let offline: Vec<Option<Bytes>> =
            arena.buffers.iter().map(|buffer| self.offsets[buffer.tensor?]).collect();
        micro::replay(&records, &offline, ALIGNMENT)
    }
}
