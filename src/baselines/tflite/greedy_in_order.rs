//! Greedy in order: walk over time and take the free object of the nearest size.
//!
//! **Idea.** Work as an allocator would: when a record begins, it takes the free object whose size
//! differs least, which grows if it is too small. Textures cannot grow ([`texture_objects`]). If
//! operators run in parallel, a [`ReallocationGraph`] defines which records may take over from each
//! other.
//!
//! **Cost.** O(n log n); with textures or a graph O(n m) for m objects.
//!
//! **When.** For a quick answer on graphs whose sizes change smoothly.
//!
//! **Source.** TFLite GPU delegate, `GREEDY_IN_ORDER` (2019).

use std::collections::BTreeSet;

use crate::{
    Bytes, Problem,
    baselines::{
        boxes::Boxes,
        records::{InUse, RecordError, RecordSize},
        replay::CHUNK,
        tflite::{Objects, ReallocationGraph, Records},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// Shares objects; a record takes the free object of the nearest size.
#[must_use]
pub fn objects(records: &Records) -> Objects {
    Budget::unlimited(|budget| share(records, budget))
}

fn share(records: &Records, budget: &mut Budget<'_>) -> Result<Objects, Stop> {
    walk(records, |free, _, index| nearest(free, records[index].size), budget)
}

/// Shares objects; a record takes the free object of the nearest size among those whose last record
/// may pass it on to this one according to the graph.
///
/// # Errors
///
/// If the graph does not have as many records.
pub fn objects_in_parallel(
    records: &Records,
    graph: &ReallocationGraph,
) -> Result<Objects, RecordError> {
    graph.check(records.len())?;
    let allowed = |free: &Free, last_record: &[usize], index: usize| {
        let size = records[index].size;
        free.iter()
            .copied()
            .filter(|&(_, object)| graph.allows(last_record[object], index))
            .min_by_key(|&(free, _)| free.abs_diff(size))
    };
    Ok(Budget::unlimited(|budget| walk(records, allowed, budget)))
}

/// The free objects as (size, id).
type Free = BTreeSet<(Bytes, usize)>;

/// Walks over time; for the record at an index, `choose` picks one of the free objects, given the
/// last record of every object.
fn walk(
    records: &Records,
    choose: impl Fn(&Free, &[usize], usize) -> Option<(Bytes, usize)>,
    budget: &mut Budget<'_>,
) -> Result<Objects, Stop> {
    let mut objects = Objects::for_records(records.len());
    let mut free = Free::new();
    let mut last_record: Vec<usize> = Vec::new();
    let mut in_use = InUse::default();
    for index in records.by_first_use() {
        budget.spend(CHUNK)?;
        let record = &records[index];
        while let Some(object) = in_use.ended_before(record.first) {
            free.insert((objects.sizes()[object], object));
        }
        let object = if let Some(chosen) = choose(&free, &last_record, index) {
            free.remove(&chosen);
            objects.grow(chosen.1, record.size);
            last_record[chosen.1] = index;
            chosen.1
        } else {
            last_record.push(index);
            objects.add(record.size)
        };
        objects.assign(index, object);
        in_use.until(record.last, object);
    }
    Ok(objects)
}

/// Returns the smallest object that is large enough, unless the largest of the others is nearer in
/// size.
fn nearest(free: &Free, size: Bytes) -> Option<(Bytes, usize)> {
    let hit = free.range((size, 0)..).next().copied();
    let miss = free.range(..(size, 0)).next_back().copied();
    match (hit, miss) {
        (Some(hit), Some(miss)) => Some(if size - miss.0 < hit.0 - size { miss } else { hit }),
        (hit, miss) => hit.or(miss),
    }
}

/// Shares textures: a record takes the free object of the nearest volume among those that are large
/// enough in every dimension; of equal ones, the one that became free first. Objects never grow.
#[must_use]
pub fn texture_objects<const N: usize>(records: &Records<[u32; N]>) -> Objects<[u32; N]> {
    let mut objects: Objects<[u32; N]> = Objects::for_records(records.len());
    let mut free: Vec<usize> = Vec::new();
    let mut in_use = InUse::default();
    for index in records.by_first_use() {
        let record = &records[index];
        while let Some(object) = in_use.ended_before(record.first) {
            free.push(object);
        }
        let waste = |&(_, &object): &(usize, &usize)| {
            objects.sizes()[object].volume() - record.size.volume()
        };
        let holds = |object: usize| {
            objects.sizes()[object].iter().zip(&record.size).all(|(room, side)| room >= side)
        };
        let best = free
            .iter()
            .enumerate()
            .filter(|&(_, &object)| holds(object))
            .min_by_key(waste)
            .map(|(at, _)| at);
        let object = match best {
            Some(at) => free.remove(at),
            None => objects.add(record.size),
        };
        objects.assign(index, object);
        in_use.until(record.last, object);
    }
    objects
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.share(problem, share(&boxes.records, budget)?))
}
