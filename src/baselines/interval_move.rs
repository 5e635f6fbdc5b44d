//! `MegEngine`'s interval move: the longest lifetimes first, pushing up boxes that are in the way.
//!
//! **Idea.** Place the chains as boxes, the longest-lived first. Among the placed boxes with a
//! common step, take the gap that leaves the least space; if none is large enough, widen the one
//! that makes the pool grow least, by pushing up everything above it.
//!
//! **Cost.** O(n^2), a few nanoseconds per pair; the original needs minutes for 10^4 boxes. A box
//! can be pushed by the height of the tallest tower on it before the pool grows. Towers and pushes
//! follow links only from a box to the few that it touches.
//!
//! **When.** It finds good plans for dense problems of some thousand chunks without overwrite
//! chains.
//!
//! **Source.** `MegEngine`'s static memory allocator, `INTERVAL_MOVE` (2020). The offsets equal the
//! original's wherever its order has no ties. The original leaves ties to its sort; here tied
//! chunks keep the problem's order.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    Bytes, Problem, Step,
    baselines::{
        boxes::Boxes,
        objects::Offsets,
        records::{Record, Records},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// Places records; the total is the highest end.
#[must_use]
pub fn offsets(records: &Records) -> Offsets {
    Budget::unlimited(|budget| place(records, budget))
}

fn place(records: &Records, budget: &mut Budget<'_>) -> Result<Offsets, Stop> {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|&index| {
        let Record { size, first, last } = records[index];
        (Reverse(last - first), first, Reverse(size))
    });
    let mut stack = Stack::default();
    for (number, &index) in (0..).zip(&order) {
        stack.insert(number, &records[index], budget)?;
    }
    let mut answer = Offsets { offsets: vec![0; records.len()], total: stack.peak };
    for (&index, &(begin, _)) in order.iter().zip(&stack.places) {
        answer.offsets[index] = begin;
    }
    Ok(answer)
}

/// A box in the pool.
#[derive(Clone, Copy, Debug)]
struct Laid {
    begin: Bytes,
    end: Bytes,
    first: Step,
    last: Step,
    /// Counts from 0 in the order of insertion.
    number: u32,
}

/// A gap between the boxes that share a step with the next one.
#[derive(Clone, Copy, Debug)]
struct Gap {
    begin: Bytes,
    size: Bytes,
    /// The number of conflicting boxes below it.
    below: usize,
}

/// All boxes placed so far.
#[derive(Default)]
struct Stack {
    /// The boxes by offset.
    by_offset: Vec<Laid>,
    /// The begin and end of each box, by number.
    places: Vec<(Bytes, Bytes)>,
    /// The boxes that each box rests on, by number, or rested on when the later of the two was
    /// placed. Every box below it in a common step can be reached along these links.
    rests_on: Vec<Vec<u32>>,
    /// The height of the tallest tower on each box, by number: boxes that must lie above each
    /// other, the box itself included. Pushing changes no tower.
    towers: Vec<Bytes>,
    /// The boxes whose tower has grown, the highest first.
    grown: BinaryHeap<(Bytes, u32)>,
    /// A work buffer.
    alive: Vec<u32>,
    peak: Bytes,
}

impl Stack {
    fn insert(
        &mut self,
        number: u32,
        record: &Record,
        budget: &mut Budget<'_>,
    ) -> Result<(), Stop> {
        budget.spend(self.by_offset.len())?;
        let alive = alive_with(&self.by_offset, record, &mut self.alive);
        let conflicts: Vec<Laid> = alive.iter().map(|&at| self.by_offset[at as usize]).collect();
        let gaps = gaps(&conflicts, self.peak);
        let fitting = gaps.iter().filter(|gap| gap.size >= record.size);
        let gap = match fitting.min_by_key(|gap| gap.size) {
            Some(gap) => *gap,
            None => self.gap_to_widen(&gaps, &conflicts, record.size),
        };
        let (below, above) = conflicts.split_at(gap.below);
        let (begin, end) = (gap.begin, gap.begin + record.size);
        let (first, last) = (record.first, record.last);
        self.places.push((begin, end));
        self.rests_on.push(touched(below.iter().rev(), record));
        self.towers.push(record.size);
        for upper in touched(above.iter(), record) {
            self.rests_on[upper as usize].push(number);
            self.grow_tower(number, upper);
        }
        self.grown.push((begin, number));
        self.grow_towers(budget)?;
        let at = self.by_offset.partition_point(|other| other.begin < begin);
        self.by_offset.insert(at, Laid { begin, end, first, last, number });
        self.peak = self.peak.max(end);
        if gap.size < record.size {
            self.push_up(at);
        }
        Ok(())
    }

    /// The gap that makes the pool grow least, then the one with the shortest push, then the
    /// lowest.
    fn gap_to_widen(&self, gaps: &[Gap], conflicts: &[Laid], size: Bytes) -> Gap {
        let mut tower = 0;
        let mut above = conflicts.len();
        let mut best = (Bytes::MAX, Bytes::MAX);
        let mut widened = Gap { begin: self.peak, size: 0, below: conflicts.len() };
        for gap in gaps.iter().rev() {
            for laid in &conflicts[gap.below..above] {
                tower = tower.max(self.towers[laid.number as usize]);
            }
            above = gap.below;
            let growth = (gap.begin + size + tower).saturating_sub(self.peak);
            let push = size - gap.size;
            if (growth, push) <= best {
                (best, widened) = ((growth, push), *gap);
            }
        }
        widened
    }

    /// Raises the tower of a box to at least the box plus the tower of an upper one; returns
    /// whether it grew.
    fn grow_tower(&mut self, number: u32, upper: u32) -> bool {
        let (begin, end) = self.places[number as usize];
        let tower = end - begin + self.towers[upper as usize];
        let own = &mut self.towers[number as usize];
        let grows = tower > *own;
        *own = tower.max(*own);
        grows
    }

    /// Propagates grown towers downwards, from the top.
    fn grow_towers(&mut self, budget: &mut Budget<'_>) -> Result<(), Stop> {
        while let Some((_, upper)) = self.grown.pop() {
            budget.spend(self.rests_on[upper as usize].len())?;
            for at in 0..self.rests_on[upper as usize].len() {
                let lower = self.rests_on[upper as usize][at];
                if self.grow_tower(lower, upper) {
                    self.grown.push((self.places[lower as usize].0, lower));
                }
            }
        }
        Ok(())
    }

    /// Pushes up every box that overlaps one that it rests on.
    fn push_up(&mut self, from: usize) {
        for laid in &mut self.by_offset[from..] {
            let rests_on = &self.rests_on[laid.number as usize];
            let ends = rests_on.iter().map(|&lower| self.places[lower as usize].1);
            let push = ends.max().unwrap_or(0).saturating_sub(laid.begin);
            if push > 0 {
                laid.begin += push;
                laid.end += push;
                self.places[laid.number as usize] = (laid.begin, laid.end);
                self.peak = self.peak.max(laid.end);
            }
        }
        // The list is nearly sorted, which the stable sort makes use of.
        self.by_offset[from..].sort_by_key(|laid| laid.begin);
    }
}

/// Returns the indices of the boxes that share a step with a record, found without a branch per
/// box. `places` is a work buffer.
fn alive_with<'a>(boxes: &[Laid], record: &Record, places: &'a mut Vec<u32>) -> &'a [u32] {
    places.resize(places.len().max(boxes.len() + 1), 0);
    let mut count = 0;
    for (place, laid) in (0..).zip(boxes) {
        places[count] = place;
        count += usize::from(laid.first <= record.last) & usize::from(record.first <= laid.last);
    }
    &places[..count]
}

/// Returns the gaps between boxes sorted by offset, from the bottom of the pool to its peak. Where
/// two boxes touch there is a gap of no bytes, which can be widened.
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

/// Returns the boxes that a record would touch in some step, from the nearest outward.
///
/// All of them were placed earlier, so they live at least as long as the record. So each one that
/// shares a step with the record is alive in its first or last step, and the steps in which nothing
/// has been touched yet stay one range.
fn touched<'a>(boxes: impl Iterator<Item = &'a Laid>, record: &Record) -> Vec<u32> {
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

/// Plans a problem with every chain as a box.
pub(super) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.layout(problem, &place(&boxes.records, budget)?.offsets))
}
