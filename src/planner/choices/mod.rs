//! Choices: which outputs are views, which are written over inputs, and which inputs lie inside the outputs that
//! gather them.
//!
//! Idea: lowering accepts every *tie* between two tensors that it can (a view, an overwrite, a gathered input), which
//! is best for most graphs. But a tie also constrains: a small view keeps a large tensor alive, and an overwrite or a
//! gathered input puts two tensors into one pool at a fixed distance. So if a plan does not meet the [content
//! bound](crate::lower::content_bound), which holds for all choices, the input is planned again with other choices.
//! First, lifetimes become finer: of single bytes ([`Grain::Bytes`](crate::lower::Grain::Bytes)), then of the pieces
//! that outputs may gather or divide between them. Then ties at the peak are given up, one at a time, as long as the
//! peak falls. If there are few ties, all sets of them are tried instead, the ones that copy the fewest bytes first. A
//! set whose content bound without these ties reaches the best pool is refuted, and so are all sets around it. If every
//! set is planned optimally or refuted, the best plan is proven over all choices. With several pools, this holds
//! only if no set has a smaller lower bound, because the traffic comes first.
//!
//! Cost: a lowering for each tie at the peak, at most [`MAX_LOWERINGS`], and a plan whenever the bound falls. No
//! lowering begins once the time is over.

mod search;
mod source;
mod trial;

use std::time::{Duration, Instant};

use tracing::debug;

use crate::{
    Bytes, Limits, Plan, PlanError, Planner, ProblemError, SequenceError, plan::Scope,
    planner::smaller,
};
use search::Search;
pub(super) use source::Source;
use source::Tied;

/// The fewest lowerings that are worth a search, and the most for one plan.
const MIN_LOWERINGS: usize = 8;
const MAX_LOWERINGS: usize = 512;

/// The most operators or chunks that these lowerings may walk over, all together.
const MAX_WORK: usize = 4_000_000;

/// With at most this many ties, all sets of them are tried.
pub(super) const MAX_SETS_OF: usize = 10;

/// The most operators of a sequence, or chunks of a problem, with which all sets of ties are tried.
pub(super) const MAX_SIZE: usize = 64;

/// The search ends once more plans than this are left open: neither optimal for their ties nor refuted.
const MAX_OPEN: usize = 16;

/// The default effort, in nodes, for one set of ties.
const NODES: u64 = 20_000;

/// The search for the ties of an input that make its pool smallest.
pub(super) struct Choices<'a> {
    pub(super) planner: &'a Planner<'a>,
    pub(super) start: Instant,
    pub(super) source: Source<'a>,
    /// A pool of this many bytes is small enough: no other choices are tried then.
    pub(super) target: Bytes,
}

/// The best plan so far, with the ties that it gives up.
struct Best {
    plan: Result<Plan, PlanError>,
    given_up: Vec<Tied>,
}

impl Choices<'_> {
    /// Returns the plan, or a better one with other choices, with the scope of what is proven about it.
    pub(super) fn improve(&self, plan: Result<Plan, PlanError>) -> Result<Plan, PlanError> {
        if plan.as_ref().is_err_and(|error| !may_be_cured(error)) {
            return plan;
        }
        let ties = self.source.ties(self.planner.lowering);
        let has_others = !ties.is_empty() || self.source.has_parts(self.planner.lowering);
        if plan.is_ok() && (!has_others || self.is_over()) {
            return plan;
        }
        let bound = self.source.bound(self.planner, &[]).unwrap_or(0);
        let first = plan.as_ref().map_or(0, |plan| plan.pool_size);
        let mut best = Best { plan, given_up: Vec::new() };
        let (mut is_proven, mut least) = (false, 0);
        if self.planner.strategy.searches() && !self.is_small(&best, bound) {
            let size = self.source.len();
            let is_few = ties.len() <= MAX_SETS_OF && size <= MAX_SIZE;
            let left = MAX_LOWERINGS.min(MAX_WORK / size.max(1));
            let mut search = Search {
                choices: self,
                ties,
                lowering: self.planner.lowering,
                bound,
                least: Bytes::MAX,
                left,
                open: 0,
                is_stopped: false,
            };
            if is_few {
                is_proven = search.try_all(&mut best)?;
                least = search.least;
            } else if left >= MIN_LOWERINGS {
                search.descend(&mut best)?;
            }
        }
        let is_whole = is_proven && !self.source.has_more(self.planner.lowering);
        let plan = match best.plan {
            Err(PlanError::Infeasible) if !is_whole && !self.is_too_much(bound) => {
                return Err(PlanError::NoPlanFound);
            }
            plan => plan?,
        };
        let copies = best.given_up.iter().filter_map(|&tie| self.source.copy(tie)).collect();
        let saved = first.saturating_sub(plan.pool_size);
        let plan = plan.with_copies(copies, saved);
        let is_one = plan.pools.len() < 2;
        if is_one && (is_whole || plan.pool_size == bound) {
            let bound = plan.pool_size;
            return Ok(of_all_choices(plan, bound));
        }
        // With several pools, the traffic comes first, so another choice may lead to smaller pools.
        if is_whole && plan.lower_bound <= bound.max(least) {
            let bound = plan.lower_bound;
            return Ok(of_all_choices(plan, bound));
        }
        Ok(plan)
    }

    /// Returns whether the planner's pools together have a smaller capacity than this.
    fn is_too_much(&self, bytes: Bytes) -> bool {
        let pools = &self.planner.memories.pools;
        let room = pools.iter().map(|pool| pool.capacity.unwrap_or(Bytes::MAX));
        !pools.is_empty() && room.fold(0, Bytes::saturating_add) < bytes
    }

    /// Returns whether a plan is small enough, or known to be the smallest.
    fn is_small(&self, best: &Best, bound: Bytes) -> bool {
        let is_small = |plan: &Plan| plan.pool_size <= bound.max(self.target);
        best.plan.as_ref().is_ok_and(|plan| plan.pools.len() < 2 && is_small(plan))
    }

    /// The limits of a plan with other choices.
    fn limits(&self) -> Limits {
        let limits = self.planner.limits.after(self.start);
        let nodes = limits.nodes.unwrap_or(NODES).min(NODES);
        limits.nodes(nodes)
    }

    /// Returns whether the time is over, or the caller has cancelled.
    fn is_over(&self) -> bool {
        let Planner { limits, observer, .. } = self.planner;
        observer.is_cancelled() || limits.after(self.start).time == Some(Duration::ZERO)
    }
}

/// Returns whether other choices may lead to a plan although the first ones failed with this error.
pub(super) const fn may_be_cured(error: &PlanError) -> bool {
    matches!(
        error,
        PlanError::NoPlace { .. }
            | PlanError::Infeasible
            | PlanError::PinsDiffer { .. }
            | PlanError::Sequence(
                SequenceError::RequiredOverwrite { .. }
                    | SequenceError::RequiredOverwriteOfAlias { .. }
                    | SequenceError::RequiredGather { .. }
            )
    ) || match error {
        // The alignment is an option of the caller, so no choice makes a difference.
        PlanError::Problem(error) => !matches!(error, ProblemError::Alignment { .. }),
        _ => false,
    }
}

/// The plan, with a bound that holds for all choices.
pub(super) fn of_all_choices(plan: Plan, lower_bound: Bytes) -> Plan {
    let proven_optimal = plan.proven_optimal || plan.pool_size == lower_bound;
    let scope = Scope::AllChoices.with_bodies(&plan.bodies);
    Plan { lower_bound, proven_optimal, scope, ..plan }
}

impl Best {
    /// Takes a plan if it is better.
    fn offer(&mut self, plan: Plan, given_up: &[Tied]) {
        if self.plan.as_ref().is_ok_and(|best| !smaller(&plan, best)) {
            return;
        }
        debug!(target: "memplan::plan", given_up = given_up.len(), pool = plan.pool_size, "other choices");
        *self = Self { plan: Ok(plan), given_up: given_up.to_vec() };
    }
}
