//! Checks offsets against the operators: they run on a shadow of the head.

use std::{collections::BTreeMap, fmt::Display};

use crate::{
    Plan, PlannedChunk, PlannedTensor, TensorPlace,
    baselines::tflite::RecordError,
    export::tflite::OfflinePlan,
    import::tflite::{ALIGNMENT, Runtime, Survey},
    plan::{PlannedCopies, Scope},
    sequence::SizeBasis,
    verify::execute,
};

impl OfflinePlan {
    /// Reads the offline plan in the metadata of a model, if there is one. TensorFlow Lite's interpreter
    /// reads none.
    ///
    /// # Errors
    ///
    /// If the model would run wrongly with the plan, or the plan cannot be read: all that is wrong.
    pub fn right(model: &[u8], survey: &Survey) -> Result<Option<Self>, Vec<String>> {
        let alone = |error: &dyn Display| vec![error.to_string()];
        if survey.arena.runtime == Runtime::Interpreter {
            return Ok(None);
        }
        let Some(offline) = Self::of_model(model).map_err(|error| alone(&error))? else {
            return Ok(None);
        };
        let head = offline.simulate(survey).map_err(|error| alone(&error))?;
        let faults = offline.faults(survey, &head);
        if faults.is_empty() { Ok(Some(offline)) } else { Err(faults) }
    }

    /// Describes all that goes wrong when a model runs with the plan, which gives it this [head](Self::simulate).
    #[must_use]
    pub fn faults(&self, survey: &Survey, head: &Plan) -> Vec<String> {
        let mut in_head = vec![false; self.offsets.len()];
        for tensor in survey.arena.buffers.iter().filter_map(|buffer| buffer.tensor) {
            if let Some(in_head) = in_head.get_mut(tensor) {
                *in_head = true;
            }
        }
        let offsets = self.offsets.iter().zip(&in_head).enumerate();
        let misplaced = offsets.filter_map(|(tensor, (&offset, &in_head))| match offset? {
            offset if !offset.is_multiple_of(ALIGNMENT) => {
                Some(format!("tensor {tensor} lies at {offset}, which is no multiple of {ALIGNMENT}"))
            }
            offset if !in_head && survey.arena.variables > 0 => Some(format!(
                "tensor {tensor} lies outside the head, but has the offset {offset}; a variable there may be overwritten"
            )),
            _ => None,
        });
        let violations = execute(&survey.sequence, head);
        misplaced.chain(violations.iter().map(ToString::to_string)).collect()
    }

    /// Places all buffers in the head of the arena as the runtime does: first the tensors that have an offset,
    /// unchecked, then the others around them. Returns the head as a plan of the model's sequence, with a chunk for
    /// each buffer; its pool has the size that the runtime reports. [`execute`] finds everything that goes wrong when
    /// the operators run with it: a tensor may lie over an input only where the sequence, read for the kernels that
    /// will run, allows it.
    ///
    /// # Errors
    ///
    /// If there is not an entry for each tensor, or a sum of sizes and offsets exceeds 64 bits.
    pub fn simulate(&self, survey: &Survey) -> Result<Plan, RecordError> {
        let head = self.head(&survey.arena)?;
        let buffers = || survey.arena.buffers.iter().zip(&head.offsets);
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
        Ok(Plan {
            strategy: None,
            winner: None,
            pool_size: head.total,
            lower_bound: 0,
            proven_optimal: false,
            scope: Scope::TheseChoices,
            content_bound: None,
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
            undeclared: Vec::new(),
            copies: PlannedCopies::default(),
            is_sorted: false,
        })
    }
}
