//! A sequence with some ties given up, lowered but not yet planned.

use std::cmp::Reverse;

use crate::{
    Bytes, InputRef, Limits, Plan, PlanError, Step,
    lower::{Lowered, LoweredPlace},
    planner::{Planner, Prepared},
    problem::{ChunkId, RejectReason},
    sequence::TensorId,
};

/// The bytes alive at the peak, and its step: the smaller, and the later, the better.
pub(super) type Peak = (Bytes, Reverse<Step>);

/// A trial is an input that is prepared with some ties given up.
impl Prepared<'_> {
    /// The lowered sequence whose bound is smaller: with gathered inputs in their places, or with copies.
    fn lighter(&self) -> &Lowered {
        let apart = &self.lowered;
        let bound = |lowered: &Lowered| lowered.problem.lower_bound();
        let gathered = self.gathered.as_ref();
        gathered.filter(|gathered| bound(gathered) <= bound(apart)).unwrap_or(apart)
    }

    pub(super) fn peak(&self) -> Peak {
        let peak_set = self.lighter().problem.peak_set();
        (peak_set.bytes, Reverse(peak_set.step))
    }

    /// Returns whether no plan of this is better than another plan. Several pools are also compared by traffic.
    pub(super) fn is_no_better(&self, than: &Plan) -> bool {
        than.pools.len() < 2 && self.peak().0 >= than.pool_size
    }

    /// Returns whether several requests that are refused because of parts may be possible together.
    pub(super) fn may_accept_more(&self) -> bool {
        let problem = &self.lowered.problem;
        let is_clash = |refused: &(usize, RejectReason)| refused.1 == RejectReason::Clash;
        !problem.parts().is_empty() && problem.refused().into_iter().filter(is_clash).count() > 1
    }

    /// The number of runs that chunks consist of.
    pub(super) fn runs(&self) -> usize {
        self.lowered.runs.len()
    }

    pub(super) fn place(&self, tensor: TensorId) -> LoweredPlace {
        self.lighter().places[tensor.index()]
    }

    /// Returns whether a chunk, or a run of its bytes, is alive at the peak.
    pub(super) fn is_at_peak(&self, chunk: ChunkId) -> bool {
        let Lowered { problem, runs, .. } = self.lighter();
        let peak_set = problem.peak_set();
        if !peak_set.chunks.is_empty() {
            return peak_set.chunks.contains(&chunk);
        }
        let is_alive = |chunk: ChunkId| {
            let chunk = problem.chunk(chunk);
            chunk.begin <= peak_set.step && peak_set.step < chunk.end
        };
        is_alive(chunk) || runs.iter().any(|one| one.whole == chunk && is_alive(one.run))
    }

    pub(super) fn plan_within(
        &self,
        input: InputRef<'_>,
        limits: Limits,
    ) -> Result<Plan, PlanError> {
        let planner = Planner { limits, ..self.planner.clone() };
        Prepared { planner, ..self.clone() }.best(input)
    }
}
