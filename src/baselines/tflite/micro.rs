//! TFLite Micro: large buffers first, first fit, with optional fixed offsets.
//!
//! **Idea.** A buffer with an offline offset lies where a tool has placed it. The others follow by
//! size, largest first, each in the lowest gap between conflicting ones that holds it.
//!
//! **Cost.** O(n log n) and a walk over the conflicting records: O(n k log k) for k of them.
//!
//! **When.** It shows what a microcontroller would do, and plans around buffers that are fixed.
//!
//! **Source.** TensorFlow Lite for Microcontrollers, `GreedyMemoryPlanner` (2019). Of equal sizes
//! the last added comes first. The original does not detect conflicting offline offsets; here they
//! are an error, except in [`replay`]. The original's alignment is 16; a problem is planned with its
//! own.

use std::cmp::Reverse;

use crate::{
    Bytes, Problem,
    baselines::{
        boxes::Boxes,
        tflite::{Offsets, Record, RecordError, Records, placed::Placed},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// The alignment of the original, in bytes.
pub const ALIGNMENT: Bytes = 16;

/// Places records; their sizes are rounded up to a multiple of an alignment in bytes.
///
/// # Errors
///
/// If the alignment is 0, or the sum of the aligned sizes exceeds 64 bits.
pub fn offsets(records: &Records, alignment: Bytes) -> Result<Offsets, RecordError> {
    offsets_around(records, &vec![None; records.len()], alignment)
}

/// Places records around those that have an offline offset.
///
/// # Errors
///
/// If `offline` does not have an entry per record, two offline offsets conflict, the alignment is
/// 0, or the sum of the aligned sizes, or of an offline offset and a size, exceeds 64 bits.
pub fn offsets_around(
    records: &Records,
    offline: &[Option<Bytes>],
    alignment: Bytes,
) -> Result<Offsets, RecordError> {
    let records = fitting(records, offline, alignment)?;
    check_offline(&records, offline)?;
    Ok(Budget::unlimited(|budget| place(&records, offline, budget)))
}

/// Places records as the original does: offline offsets are taken as they are, even where they make
/// records overlap that are alive at the same time.
///
/// # Errors
///
/// If `offline` does not have an entry per record, the alignment is 0, or the sum of the aligned
/// sizes, or of an offline offset and a size, exceeds 64 bits.
pub fn replay(
    records: &Records,
    offline: &[Option<Bytes>],
    alignment: Bytes,
) -> Result<Offsets, RecordError> {
    let records = fitting(records, offline, alignment)?;
    Ok(Budget::unlimited(|budget| place(&records, offline, budget)))
}

/// Rounds the sizes up, and checks that their sum, on top of the ends of the offline records, fits
/// into 64 bits.
fn fitting(
    records: &Records,
    offline: &[Option<Bytes>],
    alignment: Bytes,
) -> Result<Records, RecordError> {
    if offline.len() != records.len() {
        return Err(RecordError::Count { records: records.len(), entries: offline.len() });
    }
    let records = records.rounded_up(alignment)?;
    check_fits(&records, offline)?;
    Ok(records)
}

fn place(
    records: &Records,
    offline: &[Option<Bytes>],
    budget: &mut Budget<'_>,
) -> Result<Offsets, Stop> {
    let mut order: Vec<usize> = (0..records.len()).rev().collect();
    order.sort_by_key(|&index| match offline[index] {
        Some(_) => (None, index),
        None => (Some(Reverse(records[index].size)), 0),
    });
    let mut answer = Offsets { offsets: vec![0; records.len()], total: 0 };
    let mut placed = Placed::new(records);
    for index in order {
        let record = &records[index];
        placed.spend(budget)?;
        let offset = offline[index].unwrap_or_else(|| first_fit(&mut placed, record));
        placed.insert(record, offset, offset + record.size);
        answer.offsets[index] = offset;
        answer.total = answer.total.max(offset + record.size);
    }
    Ok(answer)
}

fn first_fit(placed: &mut Placed, record: &Record) -> Bytes {
    let mut top: Bytes = 0;
    for place in placed.conflicts(record) {
        if place.offset.checked_sub(top).is_some_and(|gap| gap >= record.size) {
            break;
        }
        top = top.max(place.end);
    }
    top
}

/// Checks that offline records end, and that the others fit on top of them.
fn check_fits(records: &Records, offline: &[Option<Bytes>]) -> Result<(), RecordError> {
    let mut top: Bytes = 0;
    for (index, (record, offset)) in records.iter().zip(offline).enumerate() {
        let Some(offset) = *offset else { continue };
        let overflow = RecordError::SizeOverflow { record: index };
        top = top.max(offset.checked_add(record.size).ok_or(overflow)?);
    }
    let sum: Bytes = records.iter().map(|record| record.size).sum();
    match top.checked_add(sum) {
        Some(_) => Ok(()),
        None => Err(RecordError::SizeOverflow { record: records.len() - 1 }),
    }
}

/// Checks that no two offline records share steps and bytes.
fn check_offline(records: &Records, offline: &[Option<Bytes>]) -> Result<(), RecordError> {
    let mut fixed: Vec<(Bytes, Bytes, usize)> = Vec::new();
    for (index, (record, offset)) in records.iter().zip(offline).enumerate() {
        let Some(offset) = *offset else { continue };
        fixed.push((offset, offset.saturating_add(record.size), index));
    }
    fixed.sort_unstable();
    for (at, &(_, end, a)) in fixed.iter().enumerate() {
        let beside = fixed[at + 1..].iter().take_while(|&&(offset, ..)| offset < end);
        let empty = |index: usize| records[index].size == 0;
        for &(.., b) in beside {
            if records[a].conflicts(&records[b]) && !empty(a) && !empty(b) {
                return Err(RecordError::Clash { records: (a.min(b), a.max(b)) });
            }
        }
    }
    Ok(())
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    let offline = vec![None; boxes.records.len()];
    Ok(boxes.layout(problem, &place(&boxes.records, &offline, budget)?.offsets))
}
