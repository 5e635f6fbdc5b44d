//! The search tree: an explicit stack, so that depth costs no call stack.
//!
//! A boundary of sections that no remaining body crosses divides the packing into independent
//! components. Each is packed by itself. If one cannot be packed, the tree backtracks to the choice
//! that made it and skips all choices made in its siblings.

use std::ops::Range;

use crate::search::{
    Stage,
    control::meter::Meter,
    effort::{Verdict, weigh},
    reasoning::{
        nogoods::Nogoods,
        pivot::{Candidate, Pivot},
        valleys::Valleys,
    },
    state::fingerprint::Fingerprint,
};

/// A choice that was made, and the alternatives.
struct Frame {
    /// The sections of the component: `left..right`.
    left: usize,
    right: usize,
    /// The frame whose choice made the component.
    parent: usize,
    /// The trail's length before the choice.
    mark: usize,
    /// The candidates that have not been tried: `next..end` in the list of the tree.
    next: usize,
    end: usize,
    pivot: Pivot,
    /// The components to pack when this one is packed.
    pending: usize,
    state: Fingerprint,
}

/// A component to pack later, in a linked list through `below`.
#[derive(Clone, Copy)]
struct Pending {
    left: usize,
    right: usize,
    parent: usize,
    below: usize,
}

const NIL: usize = usize::MAX;

#[derive(Default)]
pub struct Tree {
    frames: Vec<Frame>,
    pendings: Vec<Pending>,
    candidates: Vec<Candidate>,
    /// The number of choices tried, in all runs.
    pub nodes: u64,
    /// A run ends once this many choices are tried.
    pub last: u64,
}

impl Tree {
    /// Searches for a packing from the state in `valleys`, bodies of low rank first. If a packing is found, the
    /// skyline holds its offsets.
    pub fn run(
        &mut self,
        valleys: &mut Valleys<'_>,
        rank: &[u32],
        nogoods: &mut Nogoods,
        meter: &mut Meter<'_>,
    ) -> Verdict {
        self.frames.clear();
        self.candidates.clear();
        let sections = valleys.sky.inst.sections;
        let fits = (0..sections).all(|x| valleys.sky.fits(x));
        if !fits || (sections > 0 && !valleys.settle(0..sections)) {
            return Verdict::Refuted;
        }
        let mut pending = self.split(valleys, 0..sections, NIL, NIL);
        while pending != NIL {
            let top = self.open(valleys, rank, nogoods, self.pendings[pending]);
            match self.advance(valleys, nogoods, top, meter) {
                Ok(next) => pending = next,
                Err(verdict) => return verdict,
            }
        }
        Verdict::Packed
    }

    /// Opens a component. Returns its frame, or the frame to backtrack to if the component cannot
    /// be packed.
    fn open(
        &mut self,
        valleys: &mut Valleys<'_>,
        rank: &[u32],
        nogoods: &Nogoods,
        component: Pending,
    ) -> usize {
        let Pending { left, right, parent, below } = component;
        let state = valleys.sky.fingerprint(left..right);
        if valleys.sky.inst.stages.has(Stage::Nogoods) && nogoods.contains(state) {
            return parent;
        }
        let Some(pivot) = valleys.pivot(left..right) else { return parent };
        let next = self.candidates.len();
        valleys.candidates(&pivot, &mut self.candidates);
        self.candidates[next..].sort_unstable_by_key(|candidate| rank[candidate.body as usize]);
        self.frames.push(Frame {
            left,
            right,
            parent,
            mark: valleys.sky.mark(),
            next,
            end: self.candidates.len(),
            pivot,
            pending: below,
            state,
        });
        self.frames.len() - 1
    }

    /// Makes the next choice that leads to no contradiction, at frame `at` or one further back. Returns
    /// the component to pack next.
    fn advance(
        &mut self,
        valleys: &mut Valleys<'_>,
        nogoods: &mut Nogoods,
        mut at: usize,
        meter: &mut Meter<'_>,
    ) -> Result<usize, Verdict> {
        loop {
            if at == NIL {
                return Err(Verdict::Refuted);
            }
            self.frames.truncate(at + 1);
            let frame = &mut self.frames[at];
            valleys.sky.undo(frame.mark);
            self.candidates.truncate(frame.end);
            let is_over = meter.is_over(weigh(self.nodes, valleys.work()));
            if is_over || self.nodes >= self.last {
                return Err(Verdict::NodeLimit);
            }
            self.nodes += 1;
            let changed = if frame.next < frame.end {
                let candidate = self.candidates[frame.next];
                frame.next += 1;
                valleys.put(candidate)
            } else if let Some(up) = frame.pivot.waste.take() {
                let x = frame.pivot.section;
                valleys.sky.raise(x, frame.pivot.valley.floor + up);
                x..x + 1
            } else {
                nogoods.insert(frame.state);
                at = frame.parent;
                continue;
            };
            let component = frame.left..frame.right;
            let pending = frame.pending;
            if valleys.settle(changed) {
                return Ok(self.split(valleys, component, at, pending));
            }
        }
    }

    /// Adds the components of some sections to the list of those to pack.
    fn split(
        &mut self,
        valleys: &Valleys<'_>,
        sections: Range<usize>,
        parent: usize,
        below: usize,
    ) -> usize {
        let sky = &valleys.sky;
        self.pendings.truncate(if below == NIL { 0 } else { below + 1 });
        let mut pending = below;
        let mut x = sections.start;
        while x < sections.end {
            let left = x;
            x += 1;
            while x < sections.end && sky.body_crosses(x) {
                x += 1;
            }
            // A body that crosses a boundary covers the sections on both sides.
            if sky.live(left) {
                self.pendings.push(Pending { left, right: x, parent, below: pending });
                pending = self.pendings.len() - 1;
            }
        }
        pending
    }
}
