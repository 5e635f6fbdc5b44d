//! The conflict walk: the placed records that share a step with the next one, by offset.
//!
//! There are two ways to find them. If many records conflict, walk over all placed ones, which are
//! kept by offset. If few do, collect and sort them: those that are alive when the next record
//! begins, and those that begin later in its lifetime. The lengths of the lists to collect are
//! known, so the cheaper way is known beforehand.

use crate::{
    Bytes, Step,
    baselines::tflite::{Record, Records, profiles::Tasks},
    budget::{Budget, Stop},
    segment_tree::{ancestors, cover},
};

/// The bytes of a placed record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) offset: Bytes,
    pub(super) end: Bytes,
}

/// A placed record in the list by offset.
#[derive(Clone, Copy)]
struct PlacedRecord {
    place: Place,
    first: Step,
    last: Step,
}

/// The most entries in a piece of the list by offset.
const PIECE: usize = 512;

/// Walking over this many entries costs as much as collecting and sorting one.
const WALK_PER_SORT: usize = 16;

/// The records placed so far.
pub(super) struct Placed {
    tasks: Tasks,
    leaves: usize,
    /// The placed records by offset, in pieces, none of them empty.
    by_offset: Vec<Vec<PlacedRecord>>,
    count: usize,
    /// The records alive in all tasks of each node of the tree over tasks. Every record is at the
    /// nodes that cover its lifetime.
    alive: Vec<Vec<Place>>,
    /// The records that begin in a task of each node of the tree over tasks.
    beginning: Vec<Vec<Place>>,
    /// The last answer.
    conflicts: Vec<Place>,
}

impl Placed {
    pub(super) fn new(records: &Records) -> Self {
        let tasks = Tasks::of(records);
        let leaves = tasks.steps.len();
        Self {
            tasks,
            leaves,
            by_offset: Vec::new(),
            count: 0,
            alive: vec![Vec::new(); 2 * leaves],
            beginning: vec![Vec::new(); 2 * leaves],
            conflicts: Vec::new(),
        }
    }

    /// Spends the work of one call of [`conflicts`](Self::conflicts): at most one pass over all records.
    pub(super) fn spend(&self, budget: &mut Budget<'_>) -> Result<(), Stop> {
        budget.spend(self.count)
    }

    /// Places a record; `end` is the first offset that another one may take above it.
    pub(super) fn insert(&mut self, record: &Record, offset: Bytes, end: Bytes) {
        let place = Place { offset, end };
        let (first, last) = self.tasks.range(record);
        for node in cover(self.leaves, first..last + 1) {
            self.alive[node].push(place);
        }
        for node in ancestors(self.leaves + first) {
            self.beginning[node].push(place);
        }
        self.count += 1;
        let entry = PlacedRecord { place, first: record.first, last: record.last };
        let above = self.by_offset.partition_point(|piece| piece[0].place.offset <= offset);
        let Some(piece) = self.by_offset.get_mut(above.saturating_sub(1)) else {
            self.by_offset.push(vec![entry]);
            return;
        };
        piece.insert(piece.partition_point(|other| other.place.offset <= offset), entry);
        if piece.len() > PIECE {
            let upper = piece.split_off(PIECE / 2);
            self.by_offset.insert(above.max(1), upper);
        }
    }

    /// Returns the places of all records that share a step with this one, by offset.
    pub(super) fn conflicts(&mut self, record: &Record) -> &[Place] {
        let Self { tasks, leaves, by_offset, count, alive, beginning, conflicts } = self;
        let (first, last) = tasks.range(record);
        let lists = || {
            let later = cover(*leaves, first + 1..last + 1).map(|node| &beginning[node]);
            ancestors(*leaves + first).map(|node| &alive[node]).chain(later)
        };
        let expected: usize = lists().map(Vec::len).sum();
        conflicts.clear();
        if expected.saturating_mul(WALK_PER_SORT) < *count {
            conflicts.extend(lists().flatten());
            conflicts.sort_unstable();
        } else {
            // This loop has no branch per entry: the place after the last one found is scratch.
            conflicts.resize(expected + 1, Place::default());
            let mut found = 0;
            for entry in by_offset.iter().flatten() {
                conflicts[found] = entry.place;
                found += usize::from(entry.first <= record.last)
                    & usize::from(record.first <= entry.last);
            }
            conflicts.truncate(found);
        }
        debug_assert_eq!(conflicts.len(), expected, "the two walks differ");
        conflicts
    }
}
