//! The most live bytes in a range of steps.

use crate::{Bytes, Step, baselines::segment_tree::Maxima, problem::Problem};

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
        if first < end { self.live.largest(first, end - 1).unwrap_or(0) } else { 0 }
    }
}
