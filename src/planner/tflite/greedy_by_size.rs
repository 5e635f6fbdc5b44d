//! Greedy by size: large records first, each into the object that is nearest in time.
//!
//! **Idea.** The positional maxima say how large the k-th object must be anyway, so records that
//! fall between the same two maxima are equally urgent. Among them the one goes first that fits
//! an object with the fewest idle steps in between, and takes it; one that fits no object opens a
//! new one.
//!
//! **Cost.** Every placed record is compared with every waiting one: O(n^2), a few nanoseconds
//! each; a record whose best object is taken looks at all objects again.
//!
//! **When.** The best shared objects of the field on most graphs.
//!
//! **Source.** Pisarchyk and Lee, 2020, algorithm 2 and its improvement; TFLite GPU delegate,
//! `GREEDY_BY_SIZE` for objects, `GreedyBySizeDistPriority` (2020).

use crate::{
    Bytes, Problem, Step,
    planner::{
        Layout,
        records::Boxes,
        tflite::{
            Objects, Record, Records, greedy_by_breadth, profiles::positional_maxima,
            timeline::Timeline,
        },
    },
};

/// No object is near.
const FAR: Step = Step::MAX;

/// A record that waits for its object.
struct Waiting {
    first: Step,
    last: Step,
    /// The steps to the nearest record of the best object, or `FAR`.
    distance: Step,
    /// The object that fits with the least distance, the earliest to reach it; meaningless if
    /// the distance is `FAR`.
    best: usize,
    record: usize,
}

/// Shares objects, large records first.
#[must_use]
pub fn objects(records: &Records) -> Objects {
    let mut objects = Objects::for_records(records.len());
    let mut timelines: Vec<Timeline> = Vec::new();
    let mut waiting: Vec<Waiting> = records
        .by_size()
        .into_iter()
        .map(|record| {
            let Record { first, last, .. } = records[record];
            Waiting { first, last, distance: FAR, best: 0, record }
        })
        .collect();
    // Sorted by size, the records of one position follow each other; the smallest come last here.
    waiting.reverse();
    let mut floors = positional_maxima(records).into_iter().skip(1);
    while !waiting.is_empty() {
        let floor = floors.next();
        let is_above = |size: Bytes| floor.is_none_or(|floor| size > floor);
        let urgent = waiting.partition_point(|w| !is_above(records[w.record].size));
        while let Some(next) = most_urgent(&waiting[urgent..]) {
            let Waiting { distance, best, record: index, .. } = waiting.remove(urgent + next);
            let record = &records[index];
            if distance == FAR {
                let object = objects.add(record.size);
                objects.assign(index, object);
                timelines.push(Timeline::of(record));
                welcome(&mut waiting, record, object);
            } else {
                objects.grow(best, record.size);
                objects.assign(index, best);
                timelines[best].insert(record);
                update(&mut waiting, &timelines, record, best);
            }
        }
    }
    objects
}

/// The waiting record with the least distance; of equals the largest, then the first in the list.
fn most_urgent(urgent: &[Waiting]) -> Option<usize> {
    // From the back, where the largest are.
    let (at, _) = urgent.iter().enumerate().rev().min_by_key(|(_, waiting)| waiting.distance)?;
    Some(at)
}

/// The steps between a record and a waiting one; `FAR` if they conflict.
fn gap(record: &Record, waiting: &Waiting) -> Step {
    if waiting.last < record.first {
        record.first - waiting.last
    } else if record.last < waiting.first {
        waiting.first - record.last
    } else {
        FAR
    }
}

/// A new object is nearest to some.
fn welcome(waiting: &mut [Waiting], record: &Record, object: usize) {
    for other in waiting {
        let gap = gap(record, other);
        if gap < other.distance {
            (other.distance, other.best) = (gap, object);
        }
    }
}

/// An object has taken another record: it comes nearer to some and is barred for others.
fn update(waiting: &mut [Waiting], timelines: &[Timeline], record: &Record, object: usize) {
    for other in waiting {
        let gap = gap(record, other);
        if gap == FAR {
            if other.best == object && other.distance != FAR {
                (other.distance, other.best) = nearest(timelines, other);
            }
        } else if gap < other.distance
            && timelines[object].distance(other.first, other.last).is_some()
        {
            (other.distance, other.best) = (gap, object);
        }
    }
}

/// The nearest object that fits; of equals the lowest id.
fn nearest(timelines: &[Timeline], waiting: &Waiting) -> (Step, usize) {
    let distance =
        |timeline: &Timeline| timeline.distance(waiting.first, waiting.last).unwrap_or(FAR);
    let distances = timelines.iter().map(distance).zip(0..);
    distances.min_by_key(|&(distance, _)| distance).unwrap_or((FAR, 0))
}

/// Plans a problem, every chain a box.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.share(problem, objects(&boxes.records))
}

/// *Greedy best*: greedy by size, unless greedy by breadth is strictly smaller. The strategy that
/// TFLite itself uses for buffers.
#[must_use]
pub fn best_objects(records: &Records) -> Objects {
    let (by_size, by_breadth) = (objects(records), greedy_by_breadth::objects(records));
    if by_breadth.total() < by_size.total() { by_breadth } else { by_size }
}

/// Plans a problem by [`best_objects`], every chain a box.
#[must_use]
pub fn best_layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.share(problem, best_objects(&boxes.records))
}
