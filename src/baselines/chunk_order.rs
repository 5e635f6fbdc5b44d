//! The problem in chunk order, in which chunks that live together lie together.
//!
//! Planners that replay the run walk over time. On a million chunks they would spend most of their
//! time fetching scattered chunks, so they work on ranks in chunk order, and the layout is
//! converted back at the end.

use std::borrow::Cow;

use crate::{
    Bytes, Step,
    plan::Layout,
    problem::{Chunk, ChunkId, Problem},
    steps::{indices, sorted_by_step},
};

/// The position of a chunk in chunk order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(pub(super) u32);

impl Rank {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The end and size of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) end: Step,
    /// The size in bytes, padding included.
    pub(super) size: Bytes,
}

/// An overwrite link between ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankLink {
    pub(super) overwritten: Rank,
    pub(super) offset: Bytes,
}

/// All chunks of at least one byte, in chunk order.
pub(super) struct ChunkOrder<'a> {
    problem: &'a Problem,
    ids: Vec<ChunkId>,
    /// By rank; those of the problem if they are in order.
    chunks: Cow<'a, [Chunk]>,
    /// The end of each chunk, in order of time; those of one step are in chunk order.
    ends: Vec<(Step, Rank)>,
    /// The next three lists have an entry per rank, or are empty if no chunks are linked.
    links: Vec<Option<RankLink>>,
    overwritten: Vec<bool>,
    /// The root of the chain and the offset from it.
    places: Vec<(Rank, Bytes)>,
}

impl<'a> ChunkOrder<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let ids = problem.chunk_order();
        let chunks: Cow<'_, [Chunk]> = if ids.len() == problem.len() && ids.is_sorted() {
            problem.chunks().into()
        } else {
            ids.iter().map(|&id| *problem.chunk(id)).collect()
        };
        let ends = indices(ids.len()).map(|rank| (chunks[rank as usize].end, Rank(rank)));
        let ends = sorted_by_step(ends, problem.steps(), |&(end, _)| end);
        let mut order = Self {
            problem,
            ids,
            chunks,
            ends,
            links: Vec::new(),
            overwritten: Vec::new(),
            places: Vec::new(),
        };
        if problem.has_links() {
            order.link();
        }
        order
    }

    fn link(&mut self) {
        let mut ranks = vec![Rank(0); self.problem.len()];
        for (rank, id) in (0..).map(Rank).zip(&self.ids) {
            ranks[id.index()] = rank;
        }
        for &id in &self.ids {
            self.links.push(self.problem.link(id).map(|link| RankLink {
                overwritten: ranks[link.overwritten.index()],
                offset: link.offset,
            }));
            self.overwritten.push(self.problem.overwriter(id).is_some());
            let (root, offset) = self.problem.place_in_chain(id);
            self.places.push((ranks[root.index()], offset));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn ends(&self) -> &[(Step, Rank)] {
        &self.ends
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        indices(self.ids.len()).map(Rank)
    }

    pub(super) fn get(&self, rank: Rank) -> Moment {
        let Chunk { end, size, .. } = self.chunks[rank.index()];
        Moment { end, size: size + self.problem.padding() }
    }

    /// The first step of a chunk; `None` past the last rank.
    pub(super) fn begin(&self, rank: Rank) -> Option<Step> {
        self.chunks.get(rank.index()).map(|chunk| chunk.begin)
    }

    pub(super) fn link_of(&self, rank: Rank) -> Option<RankLink> {
        *self.links.get(rank.index())?
    }

    pub(super) fn is_overwritten(&self, rank: Rank) -> bool {
        self.overwritten.get(rank.index()).is_some_and(|&overwritten| overwritten)
    }

    pub(super) fn place(&self, rank: Rank) -> (Rank, Bytes) {
        self.places.get(rank.index()).copied().unwrap_or((rank, 0))
    }

    pub(super) fn align_up(&self, bytes: Bytes) -> Bytes {
        self.problem.align_up(bytes)
    }

    pub(super) fn id(&self, rank: Rank) -> ChunkId {
        self.ids[rank.index()]
    }

    /// The name of a chunk in traces.
    pub(super) fn name(&self, rank: Rank) -> String {
        self.problem.name(self.ids[rank.index()])
    }

    /// Converts offsets of roots by rank into a layout.
    pub(super) fn layout(&self, base: impl Fn(Rank) -> Bytes) -> Layout {
        let mut offsets = vec![0; self.problem.len()];
        for (rank, id) in (0..).map(Rank).zip(&self.ids) {
            let (root, offset) = self.place(rank);
            offsets[id.index()] = base(root) + offset;
        }
        Layout { offsets, ..Layout::default() }
    }
}
