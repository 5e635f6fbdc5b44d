//! Task profiles, breadths and positional maxima, which the greedy strategies use, and the two
//! lower bounds.
//!
//! The profile of a step is the list of records alive there, largest first; its sum is the breadth
//! of the step. Positional maximum k is the largest k-th size over all profiles. Sorted by size,
//! the objects must be at least as large as the positional maxima.
//!
//! **Source.** Pisarchyk and Lee, 2020, section 4; TFLite GPU delegate, `internal.cc` (2019).

use std::cmp::Reverse;

use crate::{
    Bytes, Step,
    baselines::tflite::{Record, Records},
    segment_tree::{ancestors, cover},
};

/// Returns the records alive at a step, largest first; equal ones keep their order. Searches the
/// list.
#[must_use]
pub fn task_profile(records: &Records, task: Step) -> Vec<usize> {
    let mut profile: Vec<usize> = (0..records.len())
        .filter(|&index| (records[index].first..=records[index].last).contains(&task))
        .collect();
    profile.sort_by_key(|&index| Reverse(records[index].size));
    profile
}

/// Returns the largest first, second, third, ... size over all profiles, in bytes. O(n log n).
#[must_use]
pub fn positional_maxima(records: &Records) -> Vec<Bytes> {
    let tasks = Tasks::of(records);
    let mut alive = Counts::new(tasks.steps.len());
    let mut maxima = Vec::new();
    // By size: the record at which k of them are alive at once for the first time has the k-th
    // maximum.
    for index in records.by_size() {
        let (first, last) = tasks.range(&records[index]);
        if alive.add(first, last) > maxima.len() {
            maxima.push(records[index].size);
        }
    }
    maxima
}

/// Returns a lower bound of all shared objects together, in bytes: the sum of the positional
/// maxima.
#[must_use]
pub fn shared_objects_bound(records: &Records) -> Bytes {
    positional_maxima(records).iter().sum()
}

/// Returns a lower bound of the pool, in bytes: the largest breadth.
#[must_use]
pub fn offsets_bound(records: &Records) -> Bytes {
    Tasks::of(records).breadths(records).into_iter().max().unwrap_or(0)
}

/// The steps in which a record begins. Every profile is part of the profile of one of them.
pub(super) struct Tasks {
    /// The steps, ascending.
    pub(super) steps: Vec<Step>,
}

impl Tasks {
    pub(super) fn of(records: &Records) -> Self {
        let mut steps: Vec<Step> = records.iter().map(|record| record.first).collect();
        steps.sort_unstable();
        steps.dedup();
        Self { steps }
    }

    /// Returns the indices of the first and the last task in which a record is alive.
    pub(super) fn range(&self, record: &Record) -> (usize, usize) {
        let first = self.steps.partition_point(|&step| step < record.first);
        let last = self.steps.partition_point(|&step| step <= record.last) - 1;
        (first, last)
    }

    /// Returns the breadth of each task, in bytes.
    pub(super) fn breadths(&self, records: &Records) -> Vec<Bytes> {
        let mut begin: Vec<Bytes> = vec![0; self.steps.len()];
        let mut end = begin.clone();
        for record in records.iter() {
            let (first, last) = self.range(record);
            begin[first] += record.size;
            end[last] += record.size;
        }
        let mut breadth = 0;
        begin
            .into_iter()
            .zip(end)
            .map(|(begin, end)| {
                breadth += begin;
                breadth -= end;
                breadth + end
            })
            .collect()
    }
}

/// A counter per task, with the largest of them available.
///
/// The tables are indexed by the nodes of a [segment tree](crate::segment_tree), with the
/// counters at its leaves.
struct Counts {
    leaves: usize,
    /// The number added to the whole subtree.
    added: Vec<usize>,
    /// The largest counter of the subtree, without the numbers added above it.
    largest: Vec<usize>,
}

impl Counts {
    fn new(counters: usize) -> Self {
        let leaves = counters.next_power_of_two();
        Self { leaves, added: vec![0; 2 * leaves], largest: vec![0; 2 * leaves] }
    }

    /// Adds one to the counters from `first` to `last` and returns the largest counter.
    fn add(&mut self, first: usize, last: usize) -> usize {
        for node in cover(self.leaves, first..last + 1) {
            self.added[node] += 1;
            self.largest[node] += 1;
        }
        for leaf in [first + self.leaves, last + self.leaves] {
            for node in ancestors(leaf).skip(1) {
                let children = self.largest[2 * node].max(self.largest[2 * node + 1]);
                self.largest[node] = children + self.added[node];
            }
        }
        self.largest[1]
    }
}
