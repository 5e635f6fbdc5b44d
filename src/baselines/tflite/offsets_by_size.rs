//! Offsets greedy by size: large records first, each into the tightest gap.
//!
//! **Idea.** Take the records by size, largest first. Each goes into the smallest gap that holds it
//! between the placed ones that share a step with it, the lowest of equal gaps; if there is none,
//! it goes on top of them.
//!
//! **Cost.** O(n log n) and a walk over the conflicting records: O(n k log k) for k of them.
//!
//! **When.** It is the best of the simple planners for one pool, a few per cent above the lower
//! bound on most networks.
//!
//! **Source.** Pisarchyk and Lee, 2020, algorithm 3; TFLite GPU delegate, `GREEDY_BY_SIZE` for
//! offsets (2020).

use crate::{
    Bytes, Problem,
    baselines::{
        boxes::Boxes,
        tflite::{Offsets, RecordError, Records, placed::Placed},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// Places records at offsets that are multiples of an alignment in bytes, which need not be a power
/// of two. The total is not rounded up.
///
/// # Errors
///
/// If the alignment is 0, or the sum of the aligned sizes exceeds 64 bits.
pub fn offsets(records: &Records, alignment: Bytes) -> Result<Offsets, RecordError> {
    records.check_aligned(alignment)?;
    Ok(Budget::unlimited(|budget| place(records, alignment, budget)))
}

fn place(records: &Records, alignment: Bytes, budget: &mut Budget<'_>) -> Result<Offsets, Stop> {
    let mut answer = Offsets { offsets: vec![0; records.len()], total: 0 };
    let mut placed = Placed::new(records);
    for index in records.by_size() {
        let record = &records[index];
        placed.spend(budget)?;
        let mut top = 0;
        let mut best: Option<(Bytes, Bytes)> = None;
        for place in placed.conflicts(record) {
            if let Some(gap) = place.offset.checked_sub(top)
                && gap >= record.size
                && best.is_none_or(|(smallest, _)| gap < smallest)
            {
                best = Some((gap, top));
            }
            top = top.max(place.end);
        }
        let offset = best.map_or(top, |(_, offset)| offset);
        placed.insert(record, offset, (offset + record.size).next_multiple_of(alignment));
        answer.offsets[index] = offset;
        answer.total = answer.total.max(offset + record.size);
    }
    Ok(answer)
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    let placed = place(&boxes.records, problem.alignment(), budget)?;
    Ok(boxes.layout(problem, &placed.offsets))
}
