//! The search tree: an explicit stack, so that depth costs no call stack.
//!
//! Where no body yet to come crosses a boundary of sections, the packing falls apart into
//! components that know nothing of each other. Each is packed for itself: when one cannot be, the
//! tree goes back to the choice that made it, past everything that was tried in its siblings.

use super::{
    instance::Instance,
    refuted::Refuted,
    valley::{Pivot, Valleys},
};

/// A choice that was made, and what is left to choose.
struct Frame {
    /// The component.
    left: usize,
    right: usize,
    /// The frame whose choice made the component.
    parent: usize,
    /// The trail's length before the choice.
    mark: usize,
    /// The candidates not tried yet.
    next: usize,
    end: usize,
    pivot: Pivot,
    waste: Option<u64>,
    /// The components to pack when this one is packed.
    pending: usize,
    state: (u64, u64),
}

/// A component to pack later; a list by `below`.
#[derive(Clone, Copy)]
struct Pending {
    left: usize,
    right: usize,
    parent: usize,
    below: usize,
}

const NIL: usize = usize::MAX;

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Everything is placed.
    Packed,
    /// There is no packing.
    Refuted,
    /// The budget is spent.
    Spent,
}

pub(super) struct Tree {
    frames: Vec<Frame>,
    pendings: Vec<Pending>,
    candidates: Vec<(u32, u64)>,
    /// Choices tried, in all runs.
    pub nodes: u64,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { frames: Vec::new(), pendings: Vec::new(), candidates: Vec::new(), nodes: 0 }
    }

    /// Looks for a packing from the state in `valleys`, trying bodies of low rank first, until
    /// `stop` says so, which is asked with the number of nodes. When packed, the skyline holds the
    /// offsets.
    pub(super) fn run(
        &mut self,
        inst: &Instance,
        valleys: &mut Valleys<'_>,
        rank: &[u32],
        refuted: &mut Refuted,
        mut stop: impl FnMut(u64, u64) -> bool,
    ) -> End {
        self.frames.clear();
        self.candidates.clear();
        let sections = inst.sections;
        if !valleys.sky.loads_fit() || (sections > 0 && !valleys.settle(0, sections)) {
            return End::Refuted;
        }
        let mut pending = self.split(valleys, (0, sections), NIL, NIL);
        while pending != NIL {
            let top = self.open(valleys, rank, refuted, self.pendings[pending]);
            match self.advance(valleys, refuted, top, &mut stop) {
                Ok(next) => pending = next,
                Err(end) => return end,
            }
        }
        End::Packed
    }

    /// Opens a component; gives the frame to go on with, or back to.
    fn open(
        &mut self,
        valleys: &mut Valleys<'_>,
        rank: &[u32],
        refuted: &Refuted,
        component: Pending,
    ) -> usize {
        let Pending { left, right, parent, below } = component;
        let state = valleys.sky.hash(left, right);
        if refuted.contains(state) {
            return parent;
        }
        let Some(pivot) = valleys.pivot(left, right) else { return parent };
        let next = self.candidates.len();
        valleys.candidates(&pivot, &mut self.candidates);
        self.candidates[next..].sort_unstable_by_key(|&(body, _)| rank[body as usize]);
        self.frames.push(Frame {
            left,
            right,
            parent,
            mark: valleys.sky.mark(),
            next,
            end: self.candidates.len(),
            pivot,
            waste: pivot.waste,
            pending: below,
            state,
        });
        self.frames.len() - 1
    }

    /// Makes the next choice that stands, at frame `at` or further back; gives what is to pack
    /// then.
    fn advance(
        &mut self,
        valleys: &mut Valleys<'_>,
        refuted: &mut Refuted,
        mut at: usize,
        stop: &mut impl FnMut(u64, u64) -> bool,
    ) -> Result<usize, End> {
        loop {
            if at == NIL {
                return Err(End::Refuted);
            }
            self.frames.truncate(at + 1);
            let frame = &mut self.frames[at];
            valleys.sky.undo(frame.mark);
            self.candidates.truncate(frame.end);
            if stop(self.nodes, valleys.work()) {
                return Err(End::Spent);
            }
            self.nodes += 1;
            let changed = if frame.next < frame.end {
                let (body, offset) = self.candidates[frame.next];
                frame.next += 1;
                valleys.put(body, offset)
            } else if let Some(up) = frame.waste.take() {
                let x = frame.pivot.section;
                valleys.sky.raise(x, frame.pivot.valley.floor + up);
                (x, x + 1)
            } else {
                refuted.insert(frame.state);
                at = frame.parent;
                continue;
            };
            let component = (frame.left, frame.right);
            let pending = frame.pending;
            if valleys.settle(changed.0, changed.1) {
                return Ok(self.split(valleys, component, at, pending));
            }
        }
    }

    /// Puts the components of a range on the list of those to pack.
    fn split(
        &mut self,
        valleys: &Valleys<'_>,
        (left, right): (usize, usize),
        parent: usize,
        below: usize,
    ) -> usize {
        let sky = &valleys.sky;
        self.pendings.truncate(if below == NIL { 0 } else { below + 1 });
        let mut pending = below;
        let mut x = left;
        while x < right {
            let start = x;
            x += 1;
            while x < right && sky.cross[x] + sky.odd_cross[x] > 0 {
                x += 1;
            }
            // What crosses a boundary is over both its sections.
            if sky.live(start) {
                self.pendings.push(Pending { left: start, right: x, parent, below: pending });
                pending = self.pendings.len() - 1;
            }
        }
        pending
    }
}
