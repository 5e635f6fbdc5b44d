//! Changes that would make the pool smaller, each measured by a plan with that change: another order of the operators,
//! one operator in place of several (fusion), several operators run in two halves, and changes that the caller has
//! measured.

mod change;
mod words;

use std::ops::Range;

use crate::{
    Bytes, Limits, OpSequence, Plan, PlanError, Planner, SequenceError, Step, Strategy,
    report::alive::live_bytes,
};
use change::Fusion;
#[cfg(feature = "files")]
pub use words::advice_json;
pub use words::advice_text;

/// The effort of the search for an order, in nodes: a fraction of a second.
const ORDER_EFFORT: u64 = 1_000_000;
/// The effort of the plans that choose among runs of steps, in nodes.
const QUICK_EFFORT: u64 = 1_000;
/// The most operators for which changes are planned.
const MAX_OPERATORS: usize = 5_000;
/// The most operators that may become one by hand.
const MAX_FUSED: usize = 3;
/// The parts of the peak, in eighths, that bound the runs of steps around it.
const LEVELS: [Bytes; 6] = [7, 6, 5, 4, 3, 2];
/// A run of steps has at most this many steps or a quarter of all steps, whichever is more.
const SHORT_RUN: usize = 4;

/// A change of the sequence, or of the options that it is read with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Another order of the operators: their present steps, in the order in which they are to run.
    Order(Vec<usize>),
    /// An option of the command.
    Option(String),
    /// The operators of these steps become one (fusion). While it runs, it holds only its inputs and its results.
    OneOperator(Range<usize>),
    /// As [`OneOperator`](Self::OneOperator), for so many steps that the peak then lies elsewhere.
    Without {
        /// The steps.
        steps: Range<usize>,
        /// The step of the new peak, in the given sequence; `None` if the peak is still in these steps.
        next_peak: Option<usize>,
    },
    /// The operators of these steps become one that runs them twice, each time for one half of its results. The tensors
    /// that they pass to each other take half their size.
    Halves(Range<usize>),
}

/// Plans a sequence with changes, and returns those that make the pool of `plan` smaller, each with the size in bytes
/// of the pool with it, the smallest pool first. The effort is bounded: a search for an order, and six plans with the
/// options of the planner. Sequences of more than 5000 operators, in several pools or on several streams get no advice.
///
/// ```
/// use memplan::{OpSequence, Operator, Output, Planner, report::advice};
///
/// let sequence = OpSequence::builder()
///     .operator(Operator::new("expand").output(Output::new("a", 64)))
///     .operator(Operator::new("scores").inputs(["a"]).output(Output::new("s", 1024)))
///     .operator(Operator::new("attend").inputs(["a", "s"]).output(Output::new("y", 64)))
///     .output("y")
///     .build()?;
/// let planner = Planner::new();
/// let found = advice(&sequence, &planner.plan(&sequence)?, &planner)?;
/// // One kernel for all three keeps nothing but its result.
/// assert_eq!(found[0].1, 64);
/// # Ok::<(), memplan::PlanError>(())
/// ```
///
/// # Errors
///
/// As [`Planner::plan`] for the sequence itself. A change that has no plan is left out. If the planner is cancelled or
/// runs out of time, the list ends early; that is no error.
pub fn advice(
    sequence: &OpSequence,
    plan: &Plan,
    planner: &Planner<'_>,
) -> Result<Vec<(Change, Bytes)>, PlanError> {
    let mut found = Vec::new();
    let count = sequence.operators().len();
    let is_plain = plan.pools.len() <= 1 && plan.pinned.is_empty() && sequence.streams() == 1;
    if !is_plain || count > MAX_OPERATORS || plan.pool_size == 0 {
        return Ok(found);
    }
    match (Changes { sequence, plan, planner }).measure(&mut found) {
        // The planner has a pool with limits, in which no other sequence is planned.
        Err(PlanError::OrderInPools) => {}
        Err(error) if !error.is_stop() => return Err(error),
        _ => {}
    }
    found.retain(|&(_, pool_size)| pool_size < plan.pool_size);
    found.sort_by_key(|&(_, pool_size)| pool_size);
    Ok(found)
}

struct Changes<'a> {
    sequence: &'a OpSequence,
    plan: &'a Plan,
    planner: &'a Planner<'a>,
}

impl<'a> Changes<'a> {
    fn measure(&self, found: &mut Vec<(Change, Bytes)>) -> Result<(), PlanError> {
        let mut least = self.plan.pool_size;
        if self.plan.strategy != Some(Strategy::Best) {
            let best = self.planner.clone().strategy(Strategy::Best).plan(self.sequence)?;
            least = best.pool_size;
            found.push((Change::Option("--strategy best".to_owned()), least));
        }
        let limits = Limits::default().nodes(ORDER_EFFORT);
        if let Some(order) = if_possible(self.planner.plan_reordered(self.sequence, limits))?
            && order.change.is_better()
            && order.plan.pool_size < least
        {
            found.push((Change::Order(order.change.order), order.plan.pool_size));
        }
        let close = self.best(self.close_runs())?;
        if let Some(fusion) = &close {
            let plan = plan_changed(self.planner, fusion.sequence(0))?;
            let change = Change::OneOperator(fusion.steps.clone());
            found.extend(plan.map(|plan| (change, plan.pool_size)));
        }
        let Some(wide) = self.best(self.wide_runs())?.or(close) else { return Ok(()) };
        let steps = wide.steps.clone();
        if steps.len() > MAX_FUSED {
            found.extend(plan_changed(self.planner, wide.sequence(0))?.map(|plan| {
                let next_peak = next_peak(&plan, &steps);
                (Change::Without { steps: steps.clone(), next_peak }, plan.pool_size)
            }));
        }
        let Some(half) = plan_changed(self.planner, wide.half())? else { return Ok(()) };
        let halves = plan_changed(self.planner, wide.sequence(half.pool_size))?;
        found.extend(halves.map(|plan| (Change::Halves(steps), plan.pool_size)));
        Ok(())
    }

    /// The fusion with the smallest pool, as planned with little effort. Among equals, the one of fewest steps wins,
    /// then the first.
    fn best(&self, runs: Vec<Range<usize>>) -> Result<Option<Fusion<'a>>, PlanError> {
        let limits = Limits::default().nodes(QUICK_EFFORT);
        let quick = self.planner.clone().strategy(Strategy::Best).limits(limits);
        let mut best: Option<(Bytes, Fusion<'_>)> = None;
        for fusion in runs.into_iter().filter_map(|run| Fusion::of(self.sequence, run)) {
            let Some(plan) = plan_changed(&quick, fusion.sequence(0))? else { continue };
            let pool = plan.pool_size;
            let rank = |pool: Bytes, fusion: &Fusion<'_>| (pool, fusion.steps.len());
            if best.as_ref().is_none_or(|(least, of)| rank(pool, &fusion) < rank(*least, of)) {
                best = Some((pool, fusion));
            }
        }
        Ok(best.map(|(_, fusion)| fusion))
    }

    fn peak(&self) -> usize {
        usize::try_from(self.plan.peak_step).unwrap_or(usize::MAX)
    }

    /// All runs of a few steps with the peak among them.
    fn close_runs(&self) -> Vec<Range<usize>> {
        let (peak, count) = (self.peak(), self.sequence.operators().len());
        let lengths = 2..=MAX_FUSED;
        let begins = lengths.flat_map(|length| {
            (peak.saturating_sub(length - 1)..=peak).map(move |begin| begin..begin + length)
        });
        begins.filter(|run| run.end <= count).collect()
    }

    /// For each of [`LEVELS`]: the longest run of steps around the peak in which more than this part of the peak's
    /// bytes is alive.
    fn wide_runs(&self) -> Vec<Range<usize>> {
        let (peak, count) = (self.peak(), self.sequence.operators().len());
        let mut alive = vec![0; count];
        let live = live_bytes(self.plan);
        for (at, &(from, bytes)) in live.iter().enumerate() {
            let until = live.get(at + 1).map_or(count as Step, |&(step, _)| step);
            for step in from..until.min(count as Step) {
                alive[usize::try_from(step).unwrap_or(0)] = bytes;
            }
        }
        let most = alive.get(peak).copied().unwrap_or(0);
        let longest = SHORT_RUN.max(count / 4);
        let runs = LEVELS.into_iter().map(|level| {
            let is_high =
                |step: &usize| u128::from(alive[*step]) * 8 > u128::from(most) * u128::from(level);
            let begin = (0..peak).rev().take_while(is_high).last().unwrap_or(peak);
            let end = (peak..count).take_while(|step| *step == peak || is_high(step)).count();
            begin..peak + end
        });
        let mut runs: Vec<Range<usize>> =
            runs.filter(|run| run.len() >= 2 && run.len() <= longest).collect();
        runs.dedup();
        runs
    }
}

/// Plans a changed sequence, if that is possible.
fn plan_changed(
    planner: &Planner<'_>,
    changed: Result<OpSequence, SequenceError>,
) -> Result<Option<Plan>, PlanError> {
    if_possible(changed.map_err(PlanError::from).and_then(|changed| planner.plan(&changed)))
}

/// Returns `None` for a change that has no plan, or no order: an operator would have to update a variable while it uses
/// a view of it.
fn if_possible<T>(planned: Result<T, PlanError>) -> Result<Option<T>, PlanError> {
    match planned {
        Err(PlanError::Sequence(_)) => Ok(None),
        planned => planned.map(Some),
    }
}

/// The peak of a plan in which one operator replaces those of `steps`, as a step of the unchanged sequence.
fn next_peak(plan: &Plan, steps: &Range<usize>) -> Option<usize> {
    let step = usize::try_from(plan.peak_step).ok()?;
    match step {
        step if step < steps.start => Some(step),
        step if step == steps.start => None,
        step => Some(step + steps.len() - 1),
    }
}
