//! Tables of the page about chunks that are not whole rectangles.

use serde::Serialize;

use crate::{Bytes, Plan, Step, report::pools::drawn_ends};

/// Steps and bytes of chunks, by chunk and then by step.
#[derive(Default, Serialize)]
pub(super) struct Spans {
    chunk: Vec<usize>,
    begin: Vec<Step>,
    end: Vec<Step>,
    /// The bytes, from the start of the chunk.
    low: Vec<Bytes>,
    high: Vec<Bytes>,
}

/// The parts that are drawn only until their wholes begin, because those have the same bytes.
#[derive(Default, Serialize)]
pub(super) struct Cuts {
    chunk: Vec<usize>,
    end: Vec<Step>,
}

impl Spans {
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

    /// The boxes of the chunks that do not have one box for all of their bytes, padding included.
    pub(super) fn of_boxes(plan: &Plan) -> Self {
        let mut table = Self::default();
        for (at, chunk) in plan.chunks.iter().enumerate() {
            if plan.is_whole(at) && plan.own_in_first_step(at).next().is_none() {
                continue;
            }
            for own in plan.boxes(at) {
                let bytes = [own.low, own.high].map(|at| at.saturating_sub(chunk.offset));
                table.push(at, [own.begin, own.end], bytes);
            }
        }
        table
    }
}

impl Cuts {
    pub(super) fn of(plan: &Plan) -> Self {
        let ends = drawn_ends(plan);
        let cut = ends.zip(&plan.chunks).enumerate().filter(|(_, (end, chunk))| *end < chunk.end);
        let (chunk, end) = cut.map(|(at, (end, _))| (at, end)).unzip();
        Self { chunk, end }
    }
}
