//! Equality: reuse among equal sizes.
//!
//! **Idea.** Walk over time; a record takes a free object of exactly its size, otherwise a new one.
//!
//! **Cost.** O(n log n).
//!
//! **When.** For textures whose shape must match, and for networks that repeat a few sizes. No
//! object has spare bytes, but records of unequal sizes share nothing.
//!
//! **Source.** TFLite GPU delegate, `EQUALITY` (2019). For plain sizes it takes the object that
//! became free last ([`objects`]); for 2-D and 3-D textures the one with the lowest id
//! ([`texture_objects`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Problem,
    baselines::{
        boxes::Boxes,
        records::{InUse, RecordSize},
        replay::CHUNK,
        tflite::{Objects, Records},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// Shares objects of equal size; a record takes the one that became free last.
#[must_use]
pub fn objects<S: RecordSize>(records: &Records<S>) -> Objects<S> {
    Budget::unlimited(|budget| share_equals(records, Vec::push, Vec::pop, budget))
}

/// Shares objects of equal size; a record takes the one with the lowest id.
#[must_use]
pub fn texture_objects<S: RecordSize>(records: &Records<S>) -> Objects<S> {
    let insert = |free: &mut BTreeSet<usize>, object| {
        free.insert(object);
    };
    Budget::unlimited(|budget| share_equals(records, insert, BTreeSet::pop_first, budget))
}

/// Shares objects of equal size. `F` holds the free objects of one size.
fn share_equals<S: RecordSize, F: Default>(
    records: &Records<S>,
    release: impl Fn(&mut F, usize),
    take: impl Fn(&mut F) -> Option<usize>,
    budget: &mut Budget<'_>,
) -> Result<Objects<S>, Stop> {
    let mut objects: Objects<S> = Objects::for_records(records.len());
    let mut free: BTreeMap<S, F> = BTreeMap::new();
    let mut in_use = InUse::default();
    for index in records.by_first_use() {
        budget.spend(CHUNK)?;
        let record = &records[index];
        while let Some(object) = in_use.ended_before(record.first) {
            release(free.entry(objects.sizes()[object].clone()).or_default(), object);
        }
        let object = free
            .get_mut(&record.size)
            .and_then(&take)
            .unwrap_or_else(|| objects.add(record.size.clone()));
        objects.assign(index, object);
        in_use.until(record.last, object);
    }
    Ok(objects)
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    let objects = share_equals(&boxes.records, Vec::push, Vec::pop, budget)?;
    Ok(boxes.share(problem, objects))
}
