//! The most live bytes in a range of steps.

use crate::{Bytes, Step, problem::Problem, segment_tree::Maxima};

/// The most live bytes in any range of steps.
pub(super) struct LiveMaxima {
    /// The steps at which the number of live bytes changes.
    steps: Vec<Step>,
    /// The live bytes from each of them on.
    live: Maxima<Bytes>,
}

impl LiveMaxima {
    pub(super) fn new(problem: &Problem) -> Self {
        let (mut steps, mut live) = (Vec::new(), Vec::new());
        problem.sweep_live_bytes(|step, bytes| {
            steps.push(step);
            live.push(bytes);
        });
        Self { steps, live: Maxima::of(&live) }
    }

    pub(super) fn most(&self, begin: Step, end: Step) -> Bytes {
        let first = self.steps.partition_point(|&s| s <= begin).saturating_sub(1);
        let end = self.steps.partition_point(|&s| s < end);
        self.live.largest(first..end).unwrap_or(0)
    }
}
