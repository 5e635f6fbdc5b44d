//! Checks offsets against the operators: they run on a shadow of the head.

use std::collections::BTreeMap;

use crate::{
    Plan, PlannedChunk, PlannedTensor, TensorPlace,
    export::tflite::Head,
    import::tflite::{ALIGNMENT, Survey},
    sequence::SizeBasis,
    verify::{Violation, execute},
};

impl Head {
    /// The head as a plan of the model's sequence, with a chunk for each buffer.
    #[must_use]
    pub fn plan(&self, survey: &Survey) -> Plan {
        let buffers = || survey.arena.buffers.iter().zip(&self.offsets);
        let chunks: Vec<PlannedChunk> = buffers()
            .enumerate()
            .map(|(at, (buffer, &offset))| PlannedChunk {
                id: at as u64,
                name: buffer.name.clone(),
                size: buffer.size,
                begin: buffer.first,
                end: buffer.last + 1,
                pool: 0,
                offset,
                overwrites: None,
                object: None,
            })
            .collect();
        let tensors = buffers().enumerate().map(|(chunk, (buffer, &offset))| PlannedTensor {
            name: buffer.name.clone(),
            size: buffer.size,
            basis: SizeBasis::Exact,
            place: match buffer.size {
                0 => TensorPlace::Nowhere,
                _ => TensorPlace::Pool { chunk, offset },
            },
        });
        Plan {
            strategy: None,
            winner: None,
            pool_size: self.size,
            lower_bound: 0,
            proven_optimal: false,
            claimed_bound: None,
            naive_size: chunks.iter().map(|chunk| chunk.size).fold(0, u64::saturating_add),
            alignment: ALIGNMENT,
            padding: 0,
            steps: survey.sequence.operators().len() as u64,
            peak_step: 0,
            peak: Vec::new(),
            tensors: tensors.collect(),
            chunks,
            objects: Vec::new(),
            order: Vec::new(),
            bodies: Vec::new(),
            pools: Vec::new(),
            parts: Vec::new(),
            windows: Vec::new(),
            pinned: Vec::new(),
            reserved: Vec::new(),
            traffic: 0,
            dims: BTreeMap::new(),
        }
    }

    /// Returns everything that goes wrong when the operators run with their tensors at these offsets. A
    /// tensor may lie over an input only where the sequence, read for the kernels that will run, allows it.
    #[must_use]
    pub fn violations(&self, survey: &Survey) -> Vec<Violation> {
        execute(&survey.sequence, &self.plan(survey))
    }
}
