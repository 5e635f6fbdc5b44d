//! Chains as boxes: the lifetime of a whole chain and the size of its root, for planners that know
//! nothing of overwriting.

use crate::{
    Bytes, Problem,
    baselines::{
        objects::Objects,
        records::{Record, Records},
    },
    plan::Layout,
    problem::ChunkId,
};

/// The chains of a problem as records, by first use. Every chain is a box, with the lifetime of the
/// whole chain and the root's padded size, rounded up to the alignment. So every sum of sizes is an
/// aligned offset.
#[derive(Debug)]
pub(crate) struct Boxes {
    /// The root of each record.
    pub(crate) roots: Vec<ChunkId>,
    pub(crate) records: Records,
}

impl Boxes {
    pub(crate) fn of(problem: &Problem) -> Self {
        Self::sized(problem, |high| problem.align_up(high))
    }

    /// Boxes of the root's padded size alone, for planners that round offsets up themselves.
    pub(crate) fn exact(problem: &Problem) -> Self {
        Self::sized(problem, |high| high)
    }

    fn sized(problem: &Problem, size: impl Fn(Bytes) -> Bytes) -> Self {
        let mut boxes: Vec<(ChunkId, Record)> = problem
            .roots()
            .map(|root| {
                let outline = problem.bounding_box(root);
                let size = size(outline.high);
                (root, Record { size, first: outline.begin, last: outline.end - 1 })
            })
            .collect();
        boxes.sort_by_key(|(_, record)| record.first);
        let (roots, records) = boxes.into_iter().unzip();
        Self { roots, records: Records(records) }
    }

    /// Builds a layout from an offset per record.
    pub(crate) fn layout(&self, problem: &Problem, offsets: &[Bytes]) -> Layout {
        let mut bases = vec![0; problem.len()];
        for (root, &offset) in self.roots.iter().zip(offsets) {
            bases[root.index()] = offset;
        }
        Layout::from_roots(problem, |root| bases[root.index()])
    }

    /// Builds a layout from shared objects, placed one after another.
    pub(crate) fn share(&self, problem: &Problem, objects: Objects) -> Layout {
        let layout = self.layout(problem, &objects.offsets().offsets);
        let (ids, objects) = objects.into_parts();
        let mut by_root = vec![None; problem.len()];
        for (root, id) in self.roots.iter().zip(ids) {
            by_root[root.index()] = Some(id);
        }
        let object_of = problem
            .ids()
            .map(|chunk| {
                let (root, _) = problem.place_in_chain(chunk);
                by_root[root.index()].filter(|_| problem.chunk(chunk).size > 0)
            })
            .collect();
        Layout { objects, object_of, ..layout }
    }
}
