//! Chooses the partial overlaps that save memory.
//!
//! An output that begins below its input saves bytes in the one step that both share, but ties the two
//! together for their whole lifetimes. So an overlap is accepted only in a step that would otherwise need
//! more bytes than a limit. The first limit is the peak with all overlaps, since no pool can be smaller. If the
//! tied tensors then do not fit into a pool of that size, a planner tries higher limits. With a higher limit,
//! ordinary overwrites in a chain with an overlap are dropped too, if the limit leaves room for both tensors.
//!
//! On several streams, the bytes of a step are the bytes of all chunks that may be alive while its operator runs, an
//! upper bound of what is alive at any time. Bytes are counted with the padding, in multiples of the alignment.

use crate::{
    Bytes,
    bodies::{ClockTree, TimedBox, ranks},
    lower::{Cells, Placing, clocks::Lifetimes, place::DraftChunk},
    problem::{ChunkId, Links, Request},
};

/// The overlaps of a sequence, and the bytes alive in its steps.
pub(super) struct Overlaps<'a> {
    chunks: &'a [DraftChunk],
    links: &'a Links,
    requests: &'a [Request],
    /// The bytes of chunks with all overlaps, and with none.
    cells: Cells,
    cells_apart: Cells,
    /// By step: the bytes alive without overlaps. On several streams, those that may be alive in the steps of
    /// the requests.
    alive: Vec<i128>,
    /// The overlaps that the rules allow, by their index among the requests.
    allowed: Vec<usize>,
    /// The most bytes of any step if all of them are accepted.
    least: i128,
}

fn index(step: u64) -> usize {
    usize::try_from(step).unwrap_or(usize::MAX)
}

impl<'a> Overlaps<'a> {
    /// Returns `None` if the rules allow no overlap. `links` are all links that they allow.
    pub(super) fn of(
        chunks: &'a [DraftChunk],
        links: &'a Links,
        requests: &'a [Request],
        placing: Placing,
        lives: Option<&Lifetimes>,
    ) -> Option<Self> {
        let allowed = |at: &usize| requests[*at].below > 0 && links.is_accepted(&requests[*at]);
        let allowed: Vec<usize> = (0..requests.len()).filter(allowed).collect();
        if allowed.is_empty() {
            return None;
        }
        let steps = chunks.iter().map(|chunk| chunk.end).max().unwrap_or(0);
        // At first the change at each step, then the sum of the changes.
        let alive: Vec<i128> = vec![0; index(steps) + 1];
        let cells = Cells::of(placing, chunks.len(), requests);
        let apart: Vec<Request> = requests.iter().copied().filter(|one| one.below == 0).collect();
        let cells_apart = Cells::of(placing, chunks.len(), &apart);
        let mut overlaps =
            Self { chunks, links, requests, cells, cells_apart, alive, allowed, least: 0 };
        for at in overlaps.in_the_pool() {
            let chunk = &chunks[at];
            let begin = if overlaps.is_inside(at) { chunk.begin + 1 } else { chunk.begin };
            if begin < chunk.end {
                overlaps.alive[index(begin)] += i128::from(overlaps.bytes(at));
                overlaps.alive[index(chunk.end)] -= i128::from(overlaps.bytes(at));
            }
        }
        for step in 1..overlaps.alive.len() {
            overlaps.alive[step] += overlaps.alive[step - 1];
        }
        let mut least = overlaps.alive.clone();
        for &at in &overlaps.allowed {
            least[overlaps.step(at)] -= i128::from(overlaps.saved(at));
        }
        // Chunks that are alive together in the order of the list may be alive together on streams as well.
        overlaps.least = least.into_iter().max().unwrap_or(0);
        if let Some(lives) = lives {
            overlaps.count_in_clocks(lives);
        }
        Some(overlaps)
    }

    /// The chunks in the pool, by index.
    fn in_the_pool(&self) -> Vec<usize> {
        let root = |at: usize| self.links.place(ChunkId::from_index(at)).0;
        let is_in_the_pool = |at: &usize| self.chunks[root(*at).index()].outside.is_none();
        (0..self.chunks.len()).filter(is_in_the_pool).collect()
    }

    /// The bytes that a chunk counts without overlaps.
    fn bytes(&self, chunk: usize) -> Bytes {
        self.cells_apart.count(ChunkId::from_index(chunk), self.chunks[chunk].size)
    }

    /// Returns whether a chunk is an overwriter inside another one, so that it has its bytes to itself only
    /// from the next step on.
    fn is_inside(&self, chunk: usize) -> bool {
        self.links.get(ChunkId::from_index(chunk)).is_some_and(|link| link.below == 0)
    }

    /// Counts the bytes that may be alive on several streams in the steps of the requests.
    fn count_in_clocks(&mut self, lives: &Lifetimes) {
        let chunks = self.in_the_pool();
        let boxes: Vec<TimedBox> = chunks
            .into_iter()
            .filter_map(|at| {
                let (life, bytes) = (lives.life(at), 0..self.bytes(at));
                let begin = if self.is_inside(at) { life.written() } else { life.begin.clone() };
                let one = TimedBox { begin, end: life.end.clone(), bytes };
                Some(one).filter(TimedBox::is_life)
            })
            .collect();
        let places = ranks(&boxes);
        let mut tree = ClockTree::of_boxes(boxes.len(), lives.streams);
        let mut below: Vec<i128> = vec![0; tree.len()];
        for (one, &place) in boxes.iter().zip(&places) {
            tree.add_box(place, one);
            for node in tree.nodes(place) {
                below[node] += i128::from(one.bytes.end);
            }
        }
        for (at, request) in self.requests.iter().enumerate() {
            let life = lives.life(request.overwriter.index());
            let step = TimedBox { begin: life.begin.clone(), end: life.written(), bytes: 0..0 };
            let mut alive = 0;
            tree.visit_meeting(&step, |node| alive += below[node]);
            let at = self.step(at);
            self.alive[at] = alive;
        }
    }

    /// The step that the two chunks of a request share.
    fn step(&self, request: usize) -> usize {
        index(self.chunks[self.requests[request].overwriter.index()].begin)
    }

    /// The bytes that an output saves by lying over its input: the shared bytes, and the difference between its counts
    /// at aligned and unaligned offsets.
    fn saved(&self, request: usize) -> Bytes {
        let request = &self.requests[request];
        let size = |chunk: ChunkId| self.chunks[chunk.index()].size;
        let (overwriter, output) = (request.overwriter, size(request.overwriter));
        let shared = self.cells.shared(request, output, size(request.overwritten));
        self.bytes(overwriter.index()) - self.cells.count(overwriter, output) + shared
    }

    /// The limits that may lead to different plans, ascending.
    pub(super) fn limits(&self) -> Vec<Bytes> {
        let alive = self.allowed.iter().map(|&at| self.alive[self.step(at)]);
        let mut limits: Vec<i128> = alive.filter(|&alive| alive > self.least).collect();
        limits.push(self.least);
        limits.sort_unstable();
        limits.dedup();
        limits.into_iter().map(|limit| Bytes::try_from(limit).unwrap_or(Bytes::MAX)).collect()
    }

    /// The indices of requests that save no bytes above a limit. Without a limit, it is `least`, and only overlaps are
    /// returned.
    pub(super) fn useless(&self, limit: Option<Bytes>) -> Vec<usize> {
        let most = limit.map_or(self.least, i128::from);
        // At unaligned offsets, an overlap that saves nothing by count may still save some bytes.
        let is_useless = |at: &usize| self.saved(*at) > 0 && self.alive[self.step(*at)] <= most;
        let (mut useless, kept): (Vec<usize>, Vec<usize>) =
            self.allowed.iter().partition(|at| is_useless(at));
        if limit.is_none() {
            return useless;
        }
        let root = |at: usize| self.links.place(self.requests[at].overwriter).0;
        let mut tied: Vec<ChunkId> = kept.iter().map(|&at| root(at)).collect();
        tied.sort_unstable();
        let mut alive = self.alive.clone();
        for (at, request) in self.requests.iter().enumerate() {
            let size = i128::from(self.bytes(request.overwriter.index()));
            let is_in_place = request.below == 0 && !request.required;
            let step = self.step(at);
            if is_in_place
                && self.links.is_accepted(request)
                && tied.binary_search(&root(at)).is_ok()
                && alive[step] + size <= most
            {
                alive[step] += size;
                useless.push(at);
            }
        }
        useless.sort_unstable();
        useless
    }
}
