//! Greedy by breadth: the busiest step first.
//!
//! **Idea.** The step with the most live bytes decides the plan. Take the steps by breadth and, in
//! each, the records without an object, largest first. A record takes the smallest object that is
//! large enough and free during its whole lifetime, otherwise the largest free one, which grows,
//! otherwise a new one.
//!
//! **Cost.** O(n log n), and a search through up to m objects for each of n records.
//!
//! **When.** For shared objects on graphs with a marked peak.
//!
//! **Source.** Pisarchyk and Lee, 2020, algorithm 1; TFLite GPU delegate, `GREEDY_BY_BREADTH`
//! (2020).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    Bytes, Problem,
    baselines::{
        boxes::Boxes,
        replay::CHUNK,
        tflite::{Objects, Record, Records, profiles::Tasks, timeline::Timeline},
    },
    budget::{Budget, Stop},
    plan::Layout,
    segment_tree::Maxima,
};

/// Shares objects, the busiest step first.
#[must_use]
pub fn objects(records: &Records) -> Objects {
    Budget::unlimited(|budget| share(records, budget))
}

pub(super) fn share(records: &Records, budget: &mut Budget<'_>) -> Result<Objects, Stop> {
    let mut objects = Objects::for_records(records.len());
    let mut timelines: Vec<Timeline> = Vec::new();
    let mut by_size: BTreeMap<Bytes, BTreeSet<usize>> = BTreeMap::new();
    for index in busiest_first(records) {
        let record = &records[index];
        let object = if let Some(object) = best_free(&by_size, &timelines, record, budget)? {
            let size = objects.sizes()[object];
            if size < record.size {
                if let Some(equals) = by_size.get_mut(&size) {
                    equals.remove(&object);
                }
                by_size.entry(record.size).or_default().insert(object);
                objects.grow(object, record.size);
            }
            timelines[object].insert(record);
            object
        } else {
            let object = objects.add(record.size);
            timelines.push(Timeline::of(record));
            by_size.entry(record.size).or_default().insert(object);
            object
        };
        objects.assign(index, object);
    }
    Ok(objects)
}

/// Returns the smallest object that is large enough, otherwise the largest; of equal ones, the one
/// with the lowest id.
fn best_free(
    by_size: &BTreeMap<Bytes, BTreeSet<usize>>,
    timelines: &[Timeline],
    record: &Record,
    budget: &mut Budget<'_>,
) -> Result<Option<usize>, Stop> {
    let large = by_size.range(record.size..).flat_map(|(_, objects)| objects);
    let small = by_size.range(..record.size).rev().flat_map(|(_, objects)| objects);
    let free = |object: usize| timelines[object].distance(record.first, record.last).is_some();
    for &object in large.chain(small) {
        budget.spend(CHUNK)?;
        if free(object) {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

/// Returns the records in the order of the busiest step in which each is alive, the first of
/// equally busy ones. Within a step they are sorted by size, largest first; equal ones keep their
/// order.
fn busiest_first(records: &Records) -> Vec<usize> {
    let tasks = Tasks::of(records);
    let breadths = tasks.breadths(records);
    let mut by_breadth: Vec<usize> = (0..breadths.len()).collect();
    by_breadth.sort_by_key(|&task| Reverse(breadths[task]));
    let mut ranks = vec![Reverse(0); breadths.len()];
    for (rank, &task) in by_breadth.iter().enumerate() {
        ranks[task] = Reverse(rank);
    }
    let ranks = Maxima::of(&ranks);
    let mut order: Vec<(usize, Reverse<Bytes>, usize)> = records
        .iter()
        .enumerate()
        .map(|(index, record)| {
            let (first, last) = tasks.range(record);
            let rank = ranks.largest(first..last + 1).map_or(usize::MAX, |Reverse(rank)| rank);
            (rank, Reverse(record.size), index)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, index)| index).collect()
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.share(problem, share(&boxes.records, budget)?))
}
