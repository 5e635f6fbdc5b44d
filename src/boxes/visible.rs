//! Boxes that share bytes, cut so that every byte belongs to one of them at any step.
//!
//! A sweep over the steps keeps the live boxes in a segment tree over the addresses, each box at the largest ranges
//! that it covers. A byte belongs to the first live box, in the order of the list, that contains it. In each step,
//! only the addresses of boxes that begin or end are searched again, and only down to ranges that belong to one box.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    Bytes, Step,
    boxes::PlacedBox,
    segment_tree::{ancestors, cover},
    sets::distinct,
};

/// Cuts boxes so that no byte is in two of them at any step. If two boxes share bytes, the earlier one in the list
/// keeps them. Each piece comes with the index of its box.
pub(crate) fn visible(boxes: &[PlacedBox]) -> Vec<(usize, PlacedBox)> {
    let all = || boxes.iter().enumerate().filter(|(_, own)| !own.is_empty());
    let ends: Vec<Bytes> = distinct(all().flat_map(|(_, own)| [own.low, own.high]));
    let events = all().flat_map(|(at, own)| [(own.begin, true, at), (own.end, false, at)]);
    let mut events: Vec<(Step, bool, usize)> = events.collect();
    events.sort_unstable();
    let mut sweep =
        Sweep { alive: Alive::new(ends.len()), ends, shown: BTreeMap::new(), pieces: Vec::new() };
    for now in events.chunk_by(|a, b| a.0 == b.0) {
        let mut changed: Vec<Range<usize>> = Vec::with_capacity(now.len());
        for &(_, begins, at) in now {
            let cells = sweep.cells(boxes[at]);
            sweep.alive.change(cells.clone(), at, begins);
            changed.push(cells);
        }
        changed.sort_unstable_by_key(|cells| cells.start);
        let mut from = 0;
        for cells in changed {
            let cells = cells.start.max(from)..cells.end;
            for (cells, owner) in sweep.alive.owners(&cells) {
                sweep.show(cells, owner, now[0].0);
            }
            from = from.max(cells.end);
        }
    }
    sweep.pieces
}

/// The boxes that are alive. A cell is the range between two neighbouring ends of boxes.
struct Alive {
    leaves: usize,
    /// By node: the boxes that cover all of its cells but not all of its parent's.
    covering: Vec<BTreeSet<usize>>,
    /// By node: the first box that covers some of its cells but not all of its parent's.
    first: Vec<usize>,
}

/// No box.
const NONE: usize = usize::MAX;

impl Alive {
    fn new(cells: usize) -> Self {
        let leaves = cells.max(1).next_power_of_two();
        Self { leaves, covering: vec![BTreeSet::new(); 2 * leaves], first: vec![NONE; 2 * leaves] }
    }

    /// Adds a box that covers these cells, or removes it.
    fn change(&mut self, cells: Range<usize>, at: usize, begins: bool) {
        for covered in cover(self.leaves, cells) {
            if begins {
                self.covering[covered].insert(at);
            } else {
                self.covering[covered].remove(&at);
            }
            for node in ancestors(covered) {
                let below = if node < self.leaves {
                    self.first[2 * node].min(self.first[2 * node + 1])
                } else {
                    NONE
                };
                self.first[node] = self.covering(node).min(below);
            }
        }
    }

    fn covering(&self, node: usize) -> usize {
        self.covering[node].first().copied().unwrap_or(NONE)
    }

    /// The ranges of cells that belong to one box, from the lowest cell up, each with its box or [`NONE`].
    fn owners(&self, cells: &Range<usize>) -> Vec<(Range<usize>, usize)> {
        let mut owners: Vec<(Range<usize>, usize)> = Vec::new();
        // The node, its cells, and the first box that covers all of them.
        let mut open = vec![(1, 0..self.leaves, NONE)];
        while let Some((node, within, first)) = open.pop() {
            let inside = within.start.max(cells.start)..within.end.min(cells.end);
            if inside.is_empty() {
                continue;
            }
            let first = first.min(self.covering(node));
            if node < self.leaves && self.first[node] < first {
                let middle = usize::midpoint(within.start, within.end);
                open.push((2 * node + 1, middle..within.end, first));
                open.push((2 * node, within.start..middle, first));
            } else {
                match owners.last_mut() {
                    Some((last, owner)) if *owner == first => last.end = inside.end,
                    _ => owners.push((inside, first)),
                }
            }
        }
        owners
    }
}

/// Cells that belong to one box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    end: usize,
    owner: usize,
    since: Step,
}

/// A sweep over the steps.
struct Sweep {
    alive: Alive,
    ends: Vec<Bytes>,
    /// The cells that belong to a box, by the first of them.
    shown: BTreeMap<usize, Shown>,
    pieces: Vec<(usize, PlacedBox)>,
}

impl Sweep {
    fn cells(&self, PlacedBox { low, high, .. }: PlacedBox) -> Range<usize> {
        let cell = |at: Bytes| self.ends.partition_point(|&end| end < at);
        cell(low)..cell(high)
    }

    /// Gives cells to a box from now on, where they do not belong to it already.
    fn show(&mut self, cells: Range<usize>, owner: usize, now: Step) {
        let mut at = cells.start;
        while at < cells.end {
            let before = self.shown.range(..=at).next_back().map(|(&start, &shown)| (start, shown));
            let until;
            if let Some((start, old)) = before.filter(|(_, shown)| shown.end > at) {
                until = old.end.min(cells.end);
                if old.owner != owner {
                    self.take(start, old, at..until, now);
                    self.give(at..until, owner, now);
                }
            } else {
                let next = self.shown.range(at..).next().map_or(NONE, |(&start, _)| start);
                until = next.min(cells.end);
                self.give(at..until, owner, now);
            }
            at = until;
        }
    }

    /// Ends a piece of the cells from `start` on that belong to one box.
    fn take(&mut self, start: usize, old: Shown, cells: Range<usize>, now: Step) {
        self.shown.remove(&start);
        if start < cells.start {
            self.shown.insert(start, Shown { end: cells.start, ..old });
        }
        if cells.end < old.end {
            self.shown.insert(cells.end, old);
        }
        let (low, high) = (self.ends[cells.start], self.ends[cells.end]);
        match self.pieces.last_mut() {
            Some((owner, last))
                if (*owner, last.begin, last.end, last.high)
                    == (old.owner, old.since, now, low) =>
            {
                last.high = high;
            }
            _ => {
                let piece = PlacedBox { begin: old.since, end: now, low, high };
                self.pieces.push((old.owner, piece));
            }
        }
    }

    fn give(&mut self, cells: Range<usize>, owner: usize, now: Step) {
        if owner == NONE {
            return;
        }
        match self.shown.range_mut(..cells.start).next_back() {
            Some((_, last)) if (last.end, last.owner, last.since) == (cells.start, owner, now) => {
                last.end = cells.end;
            }
            _ => {
                self.shown.insert(cells.start, Shown { end: cells.end, owner, since: now });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::seeds::times;

    /// The first box that has each byte at each step.
    fn owners(boxes: &[PlacedBox]) -> BTreeMap<(Step, Bytes), usize> {
        let mut owners = BTreeMap::new();
        for (at, own) in boxes.iter().enumerate() {
            for step in own.begin..own.end {
                for byte in own.low..own.high {
                    owners.entry((step, byte)).or_insert(at);
                }
            }
        }
        owners
    }

    #[test]
    fn every_byte_belongs_to_the_first_box_that_has_it() {
        let mut cut = 0;
        times(3000, |random| {
            let mut boxes = Vec::new();
            for _ in 0..random.int_in_range(0..=9)? {
                let (begin, low) = (random.int_in_range(0..=9)?, random.int_in_range(0..=9)?);
                let (end, high) =
                    (begin + random.int_in_range(0..=6)?, low + random.int_in_range(0..=6)?);
                boxes.push(PlacedBox { begin, end, low, high });
            }
            let pieces = visible(&boxes);
            let mut found = BTreeMap::new();
            for (at, piece) in &pieces {
                for step in piece.begin..piece.end {
                    for byte in piece.low..piece.high {
                        assert_eq!(found.insert((step, byte), *at), None, "{boxes:?}");
                    }
                }
            }
            assert_eq!(found, owners(&boxes), "{boxes:?}");
            cut += usize::from(pieces.len() > boxes.len());
            Ok(())
        });
        assert!(cut > 10, "{cut}");
    }

    /// Each box lies inside the next one, and all of them end together.
    #[test]
    fn a_box_that_covers_others_is_one_piece() {
        let boxes: Vec<PlacedBox> = (0..50_000)
            .map(|at| PlacedBox { begin: 50_000 - at, end: 100_000, low: 0, high: 100_000 - at })
            .collect();
        assert_eq!(visible(&boxes).len(), boxes.len());
    }
}
