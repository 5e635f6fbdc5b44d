//! TFLite's arena for the CPU: large tensors first, best fit.
//!
//! **Idea.** Tensors that live during the whole run come first, in order; the others follow by
//! size, largest first, then by first use. Each goes into the gap between conflicting ones that
//! leaves the least space.
//!
//! **Cost.** O(n log n) and a walk over the conflicting records: O(n k log k) for k of them.
//!
//! **When.** It shows what TFLite's interpreter would do.
//!
//! **Source.** TensorFlow Lite, `arena_planner` and `simple_memory_arena` (2017 to 2024). The
//! original leaves the order of tensors of equal size and first use open; here it is the order of
//! the list. The original's alignment is 64; a problem is planned with its own.

use std::cmp::Reverse;

use crate::{
    Bytes, Problem, Step,
    baselines::{
        boxes::Boxes,
        tflite::{Offsets, RecordError, Records, placed::Placed},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// The alignment of the original, in bytes.
pub const ALIGNMENT: Bytes = 64;

/// Places records at offsets that are multiples of an alignment in bytes. Those that live from step
/// 0 to `last_step` live during the whole run and go first. The total is not rounded up.
///
/// # Errors
///
/// If the alignment is 0, or the sum of the aligned sizes exceeds 64 bits.
pub fn offsets(
    records: &Records,
    last_step: Step,
    alignment: Bytes,
) -> Result<Offsets, RecordError> {
    offsets_in_stages(records, &[], last_step, alignment)
}

/// Places records as [`offsets`] does, one stage after another. If the interpreter finds a shape only in a run, it then
/// places the tensors behind it beside all that it has placed before. `stages` has the stage of each record; records
/// beyond its end are in stage 0.
///
/// # Errors
///
/// As [`offsets`].
pub fn offsets_in_stages(
    records: &Records,
    stages: &[usize],
    last_step: Step,
    alignment: Bytes,
) -> Result<Offsets, RecordError> {
    records.check_aligned(alignment)?;
    let order = order(records, stages, last_step);
    Ok(Budget::unlimited(|budget| place(records, order, alignment, budget)))
}

fn order(records: &Records, stages: &[usize], last_step: Step) -> Vec<usize> {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|&index| {
        let record = &records[index];
        let passes = record.first > 0 || record.last < last_step;
        let stage = stages.get(index).copied().unwrap_or(0);
        (stage, passes.then_some((Reverse(record.size), record.first)))
    });
    order
}

fn place(
    records: &Records,
    order: Vec<usize>,
    alignment: Bytes,
    budget: &mut Budget<'_>,
) -> Result<Offsets, Stop> {
    let mut answer = Offsets { offsets: vec![0; records.len()], total: 0 };
    let mut placed = Placed::new(records);
    for index in order {
        let record = &records[index];
        if record.size == 0 {
            continue;
        }
        placed.spend(budget)?;
        let (mut top, mut start): (Bytes, Bytes) = (0, 0);
        let mut best: Option<(Bytes, Bytes)> = None;
        for place in placed.conflicts(record) {
            // The space left in a gap counts from its start before rounding up, as in the original.
            if start + record.size <= place.offset
                && best.is_none_or(|(least, _)| place.offset - start < least)
            {
                best = Some((place.offset - top, start));
            }
            if place.end > top {
                top = place.end;
                start = top.next_multiple_of(alignment);
            }
        }
        let offset = best.map_or(start, |(_, offset)| offset);
        placed.insert(record, offset, offset + record.size);
        answer.offsets[index] = offset;
        answer.total = answer.total.max(offset + record.size);
    }
    Ok(answer)
}

/// Plans a problem with every chain as a box. The original compares sizes as they are, before rounding.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::exact(problem);
    let last_step = problem.steps().saturating_sub(1);
    let placed =
        place(&boxes.records, order(&boxes.records, &[], last_step), problem.alignment(), budget)?;
    Ok(boxes.layout(problem, &placed.offsets))
}
