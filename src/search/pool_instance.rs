//! The input of the planners that support every feature: bodies with their boxes, and pools to place them in.

use crate::{
    bodies::{Body, TimedBoxes, boxes::Apart},
    budget::{Budget, Stop},
    problem::{ChunkId, Problem, constraints::Pool},
    search::{
        clashes::Clashes, size_classes::OpenPool, sizes::MAX_WORK, time_buckets::TimeBuckets,
    },
};

/// The structure that finds the boxes that are alive together.
pub(super) enum OverlapFinder {
    /// With one stream: the steps of the boxes suffice.
    Steps,
    /// With several streams: the pairs of bodies that clash.
    Pairs(Clashes),
    /// With several streams, and too many pairs.
    TimeBuckets(TimeBuckets),
    /// With several streams: there was no time to make one of these.
    Unknown,
}

impl OverlapFinder {
    /// Makes the structure. The search for pairs has a budget of its own.
    fn within(
        boxes: &[TimedBoxes],
        mut pairs: Budget<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Self, Stop> {
        if boxes.iter().flatten().next().is_none_or(|one| one.begin.len() == 1) {
            return Ok(Self::Steps);
        }
        budget.look()?;
        if let Some(clashes) = Clashes::of(boxes, &mut pairs) {
            return Ok(Self::Pairs(clashes));
        }
        TimeBuckets::within(boxes, budget).map(Self::TimeBuckets)
    }
}

/// Bodies to place in pools.
pub(super) struct PoolInstance<'p> {
    pub(super) problem: &'p Problem,
    pub(super) pools: &'p [Pool],
    pub(super) bodies: &'p [Body],
    /// By body.
    pub(super) boxes: Vec<TimedBoxes>,
    pub(super) overlaps: OverlapFinder,
    pub(super) groups: Apart,
    /// The pool to fill in [size classes](super::size_classes) if there is no time for more; `None` if the problem does
    /// not allow that.
    pub(super) open_pool: Option<OpenPool>,
}

impl<'p> PoolInstance<'p> {
    #[cfg(test)]
    pub(super) fn of(problem: &'p Problem) -> Self {
        Self::within(problem, &mut Budget::default())
    }

    /// Prepares a problem. If the problem can be planned in [size classes](super::size_classes) and the budget ends
    /// first, its [`OverlapFinder`] is unknown; otherwise the budget ends only the search for pairs that meet.
    pub(super) fn within(problem: &'p Problem, budget: &mut Budget<'_>) -> Self {
        let bodies = problem.bodies();
        let boxes: Vec<_> = bodies.iter().map(|body| problem.boxes_of(body)).collect();
        let open_pool = OpenPool::of(problem);
        let pairs = budget.within(budget.left().map(|left| left / 4)).at_most(MAX_WORK);
        let mut endless = Budget::default();
        let budget = if open_pool.is_some() { budget } else { &mut endless };
        let overlaps =
            OverlapFinder::within(&boxes, pairs, budget).unwrap_or(OverlapFinder::Unknown);
        let groups = Apart::of(problem.view());
        Self { problem, pools: problem.pools(), bodies, boxes, overlaps, groups, open_pool }
    }

    /// The groups of chunks kept apart.
    pub(super) fn apart(&self) -> &'p [Vec<ChunkId>] {
        &self.problem.all_constraints().apart
    }

    /// The number of streams.
    pub(super) fn streams(&self) -> usize {
        self.problem.streams()
    }
}
