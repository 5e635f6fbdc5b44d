//! Tables of the page about chunks that are not whole rectangles.

use serde::Serialize;

use crate::{Bytes, Plan, Step, boxes::PlacedBox, report::alive::Piece};

/// Steps and bytes of chunks, by chunk and then by step.
#[derive(Default, Serialize)]
pub(super) struct TimeBuckets {
    chunk: Vec<usize>,
    begin: Vec<Step>,
    end: Vec<Step>,
    /// The bytes, from the start of the chunk.
    low: Vec<Bytes>,
    high: Vec<Bytes>,
}

impl TimeBuckets {
    fn push(&mut self, chunk: usize, [begin, end]: [Step; 2], [low, high]: [Bytes; 2]) {
        self.chunk.push(chunk);
        self.begin.push(begin);
        self.end.push(end);
        self.low.push(low);
        self.high.push(high);
    }

    /// The steps in which chunks need only some of their bytes; none in a hole.
    pub(super) fn of_windows(plan: &Plan) -> Self {
        let mut table = Self::default();
        for window in &plan.windows {
            table.push(window.chunk, [window.begin, window.end], [window.low, window.high]);
        }
        table
    }

    /// The pieces of the chunks that are not a single piece with all of their bytes, padding included, for all of their
    /// lives. For a chunk without pieces, the table has an entry without steps.
    pub(super) fn of_pieces(plan: &Plan) -> Self {
        let mut table = Self::default();
        let pieces = plan.pieces();
        let mut next = 0;
        for (at, chunk) in plan.chunks.iter().enumerate() {
            let from = next;
            next += pieces[from..].iter().take_while(|piece| piece.chunk == at).count();
            let own = &pieces[from..next];
            let (begin, end) = (plan.own_begin(chunk), chunk.end);
            let whole = PlacedBox { begin, end, low: chunk.offset, high: plan.end_of(chunk) };
            let is_whole = match own {
                [] => begin >= end || chunk.size == 0,
                [piece] => piece.own == whole,
                _ => false,
            };
            if is_whole {
                continue;
            }
            if own.is_empty() {
                table.push(at, [begin, begin], [0, 0]);
            }
            for Piece { own, .. } in own {
                let bytes = [own.low, own.high].map(|at| at.saturating_sub(chunk.offset));
                table.push(at, [own.begin, own.end], bytes);
            }
        }
        table
    }
}

/// The chunks that lie inside others.
#[derive(Default, Serialize)]
pub(super) struct Parts {
    chunk: Vec<usize>,
    whole: Vec<usize>,
    /// Bytes from the start of the whole.
    offset: Vec<Bytes>,
}

impl Parts {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut table = Self::default();
        let count = plan.chunks.len();
        for part in plan.parts.iter().filter(|part| part.chunk.max(part.whole) < count) {
            table.chunk.push(part.chunk);
            table.whole.push(part.whole);
            table.offset.push(part.offset);
        }
        table
    }
}
