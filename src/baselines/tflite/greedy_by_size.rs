//! Greedy by size: large records first, each into the object that is nearest in time.
//!
//! **Idea.** The k-th object must be at least as large as the k-th positional maximum, so records
//! between the same two maxima are equally urgent. Among them, the record that fits an object with
//! the fewest idle steps in between goes first and takes that object; a record that fits no object
//! opens a new one.
//!
//! **Cost.** Every placed record is compared with every waiting one: O(n^2), a few nanoseconds
//! each. A record whose best object is taken compares all open ones again. One bit per record and
//! object marks conflicts.
//!
//! **When.** It gives the smallest shared objects of the greedy strategies on most graphs.
//!
//! **Source.** Pisarchyk and Lee, 2020, algorithm 2 and its improvement; TFLite GPU delegate,
//! `GREEDY_BY_SIZE` for objects, `GreedyBySizeDistPriority` (2020).

use crate::{
    Bytes, Problem, Step,
    baselines::{
        boxes::Boxes,
        replay::CHUNK,
        tflite::{
            Objects, Record, Records, greedy_by_breadth, profiles::positional_maxima,
            timeline::Timeline,
        },
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// The distance of a record that fits no open object.
const FAR: Step = Step::MAX;

/// A record that waits for its object.
struct Waiting {
    first: Step,
    last: Step,
    /// The steps to the nearest record of the best object, or `FAR`.
    distance: Step,
    /// The nearest object that fits, the earliest of equally near ones; meaningless if the distance
    /// is `FAR`.
    best: usize,
    record: usize,
}

/// An object that records may still join.
struct Open {
    timeline: Timeline,
    /// One bit per record: set if it conflicts with a record of the object. Valid for waiting
    /// records.
    barred: Vec<u64>,
}

impl Open {
    fn bar(&mut self, record: usize) {
        self.barred[record / 64] |= 1 << (record % 64);
    }

    fn bars(&self, record: usize) -> bool {
        self.barred[record / 64] & (1 << (record % 64)) != 0
    }
}

/// Shares objects, large records first.
#[must_use]
pub fn objects(records: &Records) -> Objects {
    Budget::unlimited(|budget| share(records, budget))
}

fn share(records: &Records, budget: &mut Budget<'_>) -> Result<Objects, Stop> {
    let mut objects = Objects::for_records(records.len());
    let mut open: Vec<Open> = Vec::new();
    let mut waiting: Vec<Waiting> = records
        .by_size()
        .into_iter()
        .map(|record| {
            let Record { first, last, .. } = records[record];
            Waiting { first, last, distance: FAR, best: 0, record }
        })
        .collect();
    // Sorted by size, the records of one position follow each other, with the smallest last.
    waiting.reverse();
    let mut floors = positional_maxima(records).into_iter().skip(1);
    while !waiting.is_empty() {
        let floor = floors.next();
        let is_above = |size: Bytes| floor.is_none_or(|floor| size > floor);
        let urgent = waiting.partition_point(|w| !is_above(records[w.record].size));
        while let Some(next) = most_urgent(&waiting[urgent..]) {
            budget.spend(waiting.len())?;
            let Waiting { distance, best, record: index, .. } = waiting.remove(urgent + next);
            let record = &records[index];
            let object = if distance == FAR {
                let barred = vec![0; records.len().div_ceil(64)];
                open.push(Open { timeline: Timeline::of(record), barred });
                objects.add(record.size)
            } else {
                open[best].timeline.insert(record);
                objects.grow(best, record.size);
                best
            };
            objects.assign(index, object);
            update(&mut waiting, &mut open, record, object, budget)?;
        }
    }
    Ok(objects)
}

/// Returns the waiting record with the least distance; of equal ones the largest, then the first in
/// the list.
fn most_urgent(urgent: &[Waiting]) -> Option<usize> {
    // The search starts from the back, where the largest records are.
    let (at, _) = urgent.iter().enumerate().rev().min_by_key(|(_, waiting)| waiting.distance)?;
    Some(at)
}

/// Returns the steps between a record and a waiting one; `FAR` if they conflict.
fn gap(record: &Record, waiting: &Waiting) -> Step {
    if waiting.last < record.first {
        record.first - waiting.last
    } else if record.last < waiting.first {
        waiting.first - record.last
    } else {
        FAR
    }
}

/// Updates distances and conflicts after an object has taken a record.
fn update(
    waiting: &mut [Waiting],
    open: &mut [Open],
    record: &Record,
    object: usize,
    budget: &mut Budget<'_>,
) -> Result<(), Stop> {
    for other in waiting {
        let gap = gap(record, other);
        if gap == FAR {
            open[object].bar(other.record);
            if other.best == object && other.distance != FAR {
                budget.spend(CHUNK * open.len())?;
                (other.distance, other.best) = nearest(open, other);
            }
        } else if gap < other.distance && !open[object].bars(other.record) {
            (other.distance, other.best) = (gap, object);
        }
    }
    Ok(())
}

/// Returns the nearest object without a conflict; of equal ones, the lowest id.
fn nearest(open: &[Open], waiting: &Waiting) -> (Step, usize) {
    let mut best = (FAR, 0);
    for (object, open) in open.iter().enumerate().filter(|(_, open)| !open.bars(waiting.record)) {
        let distance = open.timeline.distance(waiting.first, waiting.last).unwrap_or(FAR);
        best = best.min((distance, object));
    }
    best
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.share(problem, share(&boxes.records, budget)?))
}

/// Shares objects by *greedy best*: greedy by size, unless greedy by breadth is strictly smaller.
/// TFLite itself uses this strategy for buffers.
#[must_use]
pub fn best_objects(records: &Records) -> Objects {
    Budget::unlimited(|budget| share_best(records, budget))
}

fn share_best(records: &Records, budget: &mut Budget<'_>) -> Result<Objects, Stop> {
    let (by_size, by_breadth) =
        (share(records, budget)?, greedy_by_breadth::share(records, budget)?);
    Ok(if by_breadth.total() < by_size.total() { by_breadth } else { by_size })
}

/// Plans a problem by [`best_objects`], with every chain as a box.
pub(crate) fn best_layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.share(problem, share_best(&boxes.records, budget)?))
}
