//! `MegEngine`'s interval move: long lives first, and what is in the way is pushed up.
//!
//! **Idea.** Lay the chains as boxes, the longest-lived first. Among the placed boxes that are alive in
//! common steps, take the gap that leaves least; if none is large enough, widen the one that makes
//! the pool grow least, by pushing up what lies above it, and what lies above that in turn.
//!
//! **Cost.** O(n^2), about a nanosecond per pair. The original needs minutes for 10^4 boxes. How far
//! a box may be pushed before the pool grows is the height of the tallest tower on it; towers and
//! pushes follow only from a box to those it touches, a few for each. See [`Stack`].
//!
//! **When.** Good plans for dense problems of some thousand chunks without overwrite chains.
//!
//! **Source.** `MegEngine`'s static memory allocator, `INTERVAL_MOVE` (2020). The offsets equal the
//! original's wherever its order has no ties; it leaves those to its sort, here they keep the
//! problem's order.

use std::cmp::Reverse;

use crate::{
    Bytes, Problem, Step,
    planner::{
        Layout,
        objects::Offsets,
        records::{Boxes, Record, Records},
    },
};

/// Places records; the total is the highest end.
#[must_use]
pub fn offsets(records: &Records) -> Offsets {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|&index| {
        let Record { size, first, last } = records[index];
        (Reverse(last - first), first, Reverse(size))
    });
    let mut stack = Stack::default();
    for &index in &order {
        stack.insert(&records[index]);
    }
    let mut answer = Offsets { offsets: vec![0; records.len()], total: stack.peak };
    for laid in &stack.by_offset {
        answer.offsets[order[laid.number]] = laid.begin;
    }
    answer
}

/// A box in the pool.
#[derive(Clone, Copy, Debug)]
struct Laid {
    begin: Bytes,
    end: Bytes,
    first: Step,
    last: Step,
    /// Counts from 0 in the order of insertion.
    number: usize,
}

/// A gap between the boxes that are alive in common steps with the next one.
#[derive(Clone, Copy, Debug)]
struct Gap {
    begin: Bytes,
    size: Bytes,
    /// The number of conflicting boxes below it.
    below: usize,
}

/// All boxes laid so far.
#[derive(Default)]
struct Stack {
    /// By offset.
    by_offset: Vec<Laid>,
    /// By number: the boxes on which a box rests, or did when the later of the two came. Whoever is
    /// below it in a common step is reached along these.
    rests_on: Vec<Vec<usize>>,
    /// By number: the height of the tallest tower of boxes that must lie above each other, from
    /// the box up, itself included. Pushing changes no tower.
    towers: Vec<Bytes>,
    /// Whether `towers` is right.
    measured: bool,
    peak: Bytes,
}

impl Stack {
    fn insert(&mut self, record: &Record) {
        let conflicts: Vec<Laid> = self
            .by_offset
            .iter()
            .filter(|laid| laid.first <= record.last && record.first <= laid.last)
            .copied()
            .collect();
        let gaps = gaps(&conflicts, self.peak);
        let fitting = gaps.iter().filter(|gap| gap.size >= record.size);
        let gap = match fitting.min_by_key(|gap| gap.size) {
            Some(gap) => *gap,
            None => self.gap_to_widen(&gaps, &conflicts, record.size),
        };
        let (begin, end) = (gap.begin, gap.begin + record.size);
        let laid = Laid {
            begin,
            end,
            first: record.first,
            last: record.last,
            number: self.rests_on.len(),
        };
        let (below, above) = conflicts.split_at(gap.below);
        self.rests_on.push(touched(below.iter().rev(), record));
        for upper in touched(above.iter(), record) {
            self.rests_on[upper].push(laid.number);
        }
        let at = self.by_offset.partition_point(|other| other.begin < begin);
        self.by_offset.insert(at, laid);
        self.peak = self.peak.max(end);
        self.measured = false;
        if gap.size < record.size {
            self.push_up(at);
        }
    }

    /// The gap that makes the pool grow least, then the one with the shortest push, the lowest of
    /// equals.
    fn gap_to_widen(&mut self, gaps: &[Gap], conflicts: &[Laid], size: Bytes) -> Gap {
        self.measure();
        let mut tower = 0;
        let mut above = conflicts.len();
        let mut best: Option<(Bytes, Bytes, Gap)> = None;
        for gap in gaps.iter().rev() {
            for laid in &conflicts[gap.below..above] {
                tower = tower.max(self.towers[laid.number]);
            }
            above = gap.below;
            let growth = (gap.begin + size + tower).saturating_sub(self.peak);
            let push = size - gap.size;
            if best.is_none_or(|(least, shortest, _)| (growth, push) <= (least, shortest)) {
                best = Some((growth, push, *gap));
            }
        }
        best.map_or(Gap { begin: self.peak, size: 0, below: conflicts.len() }, |(.., gap)| gap)
    }

    /// The towers, from the top down.
    fn measure(&mut self) {
        if self.measured {
            return;
        }
        self.towers.clear();
        self.towers.resize(self.rests_on.len(), 0);
        for laid in self.by_offset.iter().rev() {
            self.towers[laid.number] += laid.end - laid.begin;
            let tower = self.towers[laid.number];
            for &lower in &self.rests_on[laid.number] {
                self.towers[lower] = self.towers[lower].max(tower);
            }
        }
        self.measured = true;
    }

    /// Pushes up whatever a new box overlaps.
    fn push_up(&mut self, from: usize) {
        let mut ends = vec![0; self.rests_on.len()];
        for laid in &self.by_offset[..from] {
            ends[laid.number] = laid.end;
        }
        for laid in &mut self.by_offset[from..] {
            let rests_on = self.rests_on[laid.number].iter().map(|&lower| ends[lower]);
            let push = rests_on.max().unwrap_or(0).saturating_sub(laid.begin);
            laid.begin += push;
            laid.end += push;
            ends[laid.number] = laid.end;
            self.peak = self.peak.max(laid.end);
        }
        // Nearly sorted, which the stable sort makes use of.
        self.by_offset[from..].sort_by_key(|laid| laid.begin);
    }
}

/// The gaps between boxes sorted by offset, from the bottom of the pool to its peak. Where two boxes
/// touch there is one, too, of no bytes: it can be widened.
fn gaps(conflicts: &[Laid], peak: Bytes) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut top = 0;
    for (below, laid) in conflicts.iter().enumerate() {
        if let Some(size) = laid.begin.checked_sub(top) {
            gaps.push(Gap { begin: top, size, below });
        }
        top = top.max(laid.end);
    }
    gaps.push(Gap { begin: top, size: peak - top, below: conflicts.len() });
    gaps
}

/// The boxes that a record would touch in some step, from the nearest outward.
///
/// All of them live at least as long as the record, for they came earlier, so each that shares a
/// step is alive in its first or last step, and the steps in which nothing has been touched yet
/// stay one range.
fn touched<'a>(boxes: impl Iterator<Item = &'a Laid>, record: &Record) -> Vec<usize> {
    let (mut first, mut last) = (record.first, record.last);
    let mut touched = Vec::new();
    for laid in boxes {
        if laid.first > last || laid.last < first {
            continue;
        }
        touched.push(laid.number);
        match (laid.first <= first, laid.last >= last) {
            (true, true) => break,
            (true, false) => first = laid.last + 1,
            (false, true) => last = laid.first - 1,
            (false, false) => debug_assert!(false, "a box lives shorter than a later one"),
        }
    }
    touched
}

/// Plans a problem, every chain a box.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.layout(problem, &offsets(&boxes.records).offsets)
}
