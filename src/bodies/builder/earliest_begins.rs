//! Finds clocks on several streams that contradict each other.
//!
//! In every program, what begins after an operator is over also begins after everything that this operator waited for.
//! Overwrites rely on this: while an overwriter is written, its bytes still belong to the overwritten chunk, so no
//! other chunk lies there. If the clocks contradict each other, a chunk may begin after the overwritten chunk is over
//! but not after the overwriter was written, and could take the same bytes.

use crate::{
    Step,
    bodies::{boxes::View, happens_before},
    problem::{ChunkId, Request, constraints::Clock},
    sets::distinct,
};

/// By stream: the steps at which requested overwriters have been written, ascending; and for each of them, the earliest
/// begin, entry by entry, of all chunks that begin at that step of the stream or later.
pub(super) struct EarliestBegins(Vec<(Vec<Step>, Vec<Clock>)>);

impl EarliestBegins {
    /// Collects the steps of all requests. Empty if there is one stream or no request.
    pub(super) fn of(view: &View<'_>, requests: &[Request]) -> Self {
        let streams = view.constraints.streams;
        if streams == 1 || requests.is_empty() {
            return Self(Vec::new());
        }
        let mut steps: Vec<Vec<Step>> = vec![Vec::new(); streams];
        for request in requests {
            let stream = view.constraints.of(request.overwriter).stream;
            steps[stream].push(view.written(request.overwriter)[stream]);
        }
        let never: Clock = vec![Step::MAX; streams].into();
        let of_stream = |(stream, steps): (usize, Vec<Step>)| {
            let steps = distinct(steps);
            let mut earliest = vec![never.clone(); steps.len()];
            let lives = view.constraints.lives.iter().zip(view.chunks);
            for (life, _) in lives.filter(|(_, chunk)| chunk.size > 0) {
                let begun = steps.partition_point(|&step| step <= life.begin[stream]);
                if let Some(at) = begun.checked_sub(1) {
                    earliest[at].merge(&life.begin, Step::min);
                }
            }
            for at in (1..earliest.len()).rev() {
                let (before, after) = earliest.split_at_mut(at);
                before[at - 1].merge(&after[0], Step::min);
            }
            (steps, earliest)
        };
        Self(steps.into_iter().enumerate().map(of_stream).collect())
    }

    /// Returns whether some chunk begins after an overwriter is written according to the clock of the overwriter's
    /// stream, but not according to the clocks of all streams.
    pub(super) fn contradicts(&self, view: &View<'_>, new: ChunkId) -> bool {
        let stream = view.constraints.of(new).stream;
        let Some((steps, earliest)) = self.0.get(stream) else { return false };
        let written = view.written(new);
        let at = steps.partition_point(|&step| step < written[stream]);
        earliest.get(at).is_some_and(|earliest| !happens_before(&written, earliest))
    }
}
