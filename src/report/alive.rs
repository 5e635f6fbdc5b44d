//! The bytes alive at each step and their places: explanations, maps, pages and traces all use this account.
//!
//! Chunks that lie inside others share bytes with them, and a chunk may lie in several at once. So the
//! [pieces](Plan::pieces) of a plan are cut from the boxes of its chunks: in a right plan, no byte is in two
//! pieces at any step, and together they have all bytes that are alive.

use std::{cmp::Reverse, ops::AddAssign};

use crate::{
    Bytes, Plan, PlannedChunk, Step,
    boxes::{Boxes, PlacedBox, visible},
    plan::PlannedPart,
    sets::{find, join},
    steps::sum_by_step,
};

/// Bytes of a chunk that no other piece has while it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The chunk, by its place in [`Plan::chunks`].
    pub(super) chunk: usize,
    pub(super) own: PlacedBox,
}

impl Plan {
    /// The pieces, by chunk and then by step. Bytes that a chunk shares with its part, or that several chunks with a
    /// common part share, belong to the largest of these chunks.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let families = Families::of(self);
        let mut pieces = Vec::with_capacity(self.chunks.len());
        let boxes = Boxes::of(self);
        for (chunk, own) in boxes.all().filter(|&(chunk, _)| families.is_single(chunk)) {
            pieces.push(Piece { chunk, own });
        }
        for family in families.lists() {
            let boxes =
                family.into_iter().flat_map(|at| boxes.of_chunk(at).map(move |own| (at, own)));
            pieces.extend(self.cut(boxes));
        }
        pieces.sort_by_key(|piece| (piece.chunk, piece.own.begin, piece.own.low));
        pieces
    }

    /// Cuts boxes of related chunks into pieces; chunks of a later begin have the bytes that others of the same
    /// size share.
    fn cut(&self, boxes: impl Iterator<Item = (usize, PlacedBox)>) -> Vec<Piece> {
        let mut boxes: Vec<(usize, PlacedBox)> = boxes.collect();
        boxes.sort_by_key(|&(at, _)| {
            let PlannedChunk { size, begin, .. } = self.chunks[at];
            (Reverse(size), Reverse(begin), at)
        });
        let (chunks, boxes): (Vec<usize>, Vec<PlacedBox>) = boxes.into_iter().unzip();
        let pieces = visible(&boxes).into_iter();
        pieces.map(|(at, own)| Piece { chunk: chunks[at], own }).collect()
    }
}

/// Chunks that parts join, directly or through others.
struct Families {
    /// By chunk: another one of its family, or itself. Following these leads to one chunk of the family.
    of: Vec<usize>,
    /// The chunks in families of more than one chunk.
    members: Vec<usize>,
}

impl Families {
    fn of(plan: &Plan) -> Self {
        let mut families = Self { of: (0..plan.chunks.len()).collect(), members: Vec::new() };
        let is_right = |part: &&PlannedPart| part.chunk.max(part.whole) < plan.chunks.len();
        for part in plan.parts.iter().filter(is_right) {
            join(&mut families.of, part.whole, part.chunk);
            families.members.extend([part.chunk, part.whole]);
        }
        families.members.sort_unstable();
        families.members.dedup();
        families
    }

    fn is_single(&self, chunk: usize) -> bool {
        self.members.binary_search(&chunk).is_err()
    }

    /// The families of several chunks.
    fn lists(mut self) -> Vec<Vec<usize>> {
        let members = std::mem::take(&mut self.members);
        let mut named: Vec<(usize, usize)> =
            members.into_iter().map(|at| (find(&mut self.of, at), at)).collect();
        named.sort_unstable();
        let lists = named.chunk_by(|a, b| a.0 == b.0);
        lists.map(|list| list.iter().map(|&(_, at)| at).collect()).collect()
    }
}

/// The bytes alive at every step at which their number changes. The bytes that an overwriter shares with the
/// overwritten chunk count for the overwriter from the first step in which it has them to itself.
pub(super) fn live_bytes(plan: &Plan) -> Vec<(Step, Bytes)> {
    let mut live = Vec::new();
    let mut alive = Change::default();
    let changes = Changes { alignment: plan.alignment.max(1) };
    let last = plan.chunks.iter().map(|chunk| chunk.end).max().unwrap_or(0);
    let mut visit = |step: Step, change: Change| {
        alive += change;
        live.push((step, changes.bytes(alive)));
    };
    // Copying the boxes of 10^6 chunks would take longer than all else.
    if plan.parts.is_empty() {
        let boxes = Boxes::of(plan);
        let ends = boxes.all().flat_map(|(_, own)| changes.of(own));
        sum_by_step(ends, 2 * plan.chunks.len(), last, &mut visit);
    } else {
        let pieces = plan.pieces();
        let ends = pieces.iter().flat_map(|piece| changes.of(piece.own));
        sum_by_step(ends, 2 * pieces.len(), last, &mut visit);
    }
    live
}

/// A change of the live bytes, and of the cells of the alignment that they alone touch, in bytes.
#[derive(Clone, Copy, Default)]
struct Change {
    plain: i128,
    aligned_bytes: i128,
}

impl AddAssign for Change {
    fn add_assign(&mut self, other: Self) {
        self.plain += other.plain;
        self.aligned_bytes += other.aligned_bytes;
    }
}

/// Counts plain bytes and cells of the alignment like `Problem::lower_bound`, because offsets of roots are
/// multiples of the alignment. Plans from files may be wrong, so sums are wide.
#[derive(Clone, Copy)]
struct Changes {
    alignment: Bytes,
}

impl Changes {
    fn cell(self, at: u128) -> u128 {
        // A division of 128 bits would take longer than all else.
        if self.alignment == 1 { at } else { at.next_multiple_of(self.alignment.into()) }
    }

    fn size(self, PlacedBox { low, high, .. }: PlacedBox) -> Change {
        let (low, high) = (u128::from(low), u128::from(high));
        let signed = |bytes: u128| i128::try_from(bytes).unwrap_or(0);
        let aligned_bytes = signed(self.cell(high)) - signed(self.cell(low));
        Change { plain: signed(high) - signed(low), aligned_bytes }
    }

    fn of(self, own: PlacedBox) -> [(Step, Change); 2] {
        let Change { plain, aligned_bytes } = self.size(own);
        [
            (own.begin, Change { plain, aligned_bytes }),
            (own.end, Change { plain: -plain, aligned_bytes: -aligned_bytes }),
        ]
    }

    /// The bytes that these need.
    fn bytes(self, alive: Change) -> Bytes {
        let plain = self.cell(u128::try_from(alive.plain).unwrap_or(0));
        let bytes = plain.max(u128::try_from(alive.aligned_bytes).unwrap_or(0));
        Bytes::try_from(bytes).unwrap_or(Bytes::MAX)
    }
}

/// The most bytes alive in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peak {
    /// The first step with the most bytes alive, or the plan's own if it is one of them. With several streams, the
    /// first such sum of clocks.
    pub(super) step: Step,
    /// The bytes that the pieces need, with what the alignment adds. With several streams, those of the chunks that
    /// the plan lists as its peak.
    pub(super) bytes: Bytes,
}

impl Peak {
    pub(super) fn of(plan: &Plan) -> Self {
        let live = live_bytes(plan);
        let most = live.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
        let last = live.partition_point(|&(step, _)| step <= plan.peak_step);
        let is_at_own = plan.peak.is_empty() && last > 0 && live[last - 1].1 == most;
        let first = || live.iter().find(|&&(_, bytes)| bytes == most).map_or(0, |&(step, _)| step);
        let step = if is_at_own { plan.peak_step } else { first() };
        if plan.peak.is_empty() {
            return Self { step, bytes: most };
        }
        let counting = Changes { alignment: plan.alignment.max(1) };
        let mut alive = Change::default();
        plan.together().iter().for_each(|piece| alive += counting.size(piece.own));
        Self { step, bytes: counting.bytes(alive) }
    }

    /// The pieces alive, by chunk.
    pub(super) fn pieces(self, plan: &Plan) -> Vec<Piece> {
        if !plan.peak.is_empty() {
            return plan.together();
        }
        let mut pieces = plan.pieces();
        pieces.retain(|piece| piece.own.is_alive_at(self.step));
        pieces
    }
}

impl Plan {
    /// The pieces of the chunks that the plan lists as its peak, which are alive together though maybe not at one
    /// sum of clocks. Their steps mean nothing.
    fn together(&self) -> Vec<Piece> {
        let peak = self.peak.iter().copied().filter(|&at| at < self.chunks.len());
        let all = Boxes::of(self);
        let boxes = peak.flat_map(|at| all.of_chunk(at).map(move |own| (at, own)));
        let mut pieces =
            self.cut(boxes.map(|(at, own)| (at, PlacedBox { begin: 0, end: 1, ..own })));
        pieces.sort_by_key(|piece| (piece.chunk, piece.own.low));
        pieces
    }
}

/// The bytes of each chunk among pieces that are sorted by chunk.
pub(super) fn bytes_by_chunk(pieces: &[Piece]) -> Vec<(usize, Bytes)> {
    let lists = pieces.chunk_by(|a, b| a.chunk == b.chunk);
    let bytes = |list: &[Piece]| {
        list.iter().map(|piece| piece.own.high - piece.own.low).fold(0, Bytes::saturating_add)
    };
    lists.map(|list| (list[0].chunk, bytes(list))).collect()
}
