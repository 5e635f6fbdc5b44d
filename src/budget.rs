//! The budget of work that has no answer before its end: how much of it may be done, until when, and whether the
//! caller still wants the answer.
//!
//! A unit of work takes about as long as passing one entry of a list. Work is spent in small pieces. The clock and the
//! caller's flag are read once per [`PAUSE`] units, so small problems are always planned.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{PlanError, Strategy};

/// The work between two readings of the clock, which takes less than a tenth of a millisecond.
const PAUSE: u64 = 1 << 14;

/// The reason why work must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancelled,
    OutOfTime,
    OutOfWork,
}

impl Stop {
    /// The error that a strategy ended without a plan. Only time is limited for a whole strategy.
    pub(crate) fn error(self, strategy: Strategy) -> PlanError {
        match self {
            Self::Cancelled => PlanError::Cancelled { strategy },
            Self::OutOfTime | Self::OutOfWork => PlanError::OutOfTime { strategy },
        }
    }
}

#[derive(Clone)]
pub(crate) struct Budget<'a> {
    spent: u64,
    /// The work after which the limits are checked.
    pause: u64,
    /// The most work.
    most: u64,
    until: Option<Instant>,
    cancel: Option<&'a AtomicBool>,
}

impl Default for Budget<'_> {
    /// A budget without limits.
    fn default() -> Self {
        Self::until(None, None)
    }
}

impl<'a> Budget<'a> {
    /// A budget that ends at a time, or when the flag is set.
    pub(crate) fn until(until: Option<Instant>, cancel: Option<&'a AtomicBool>) -> Self {
        Self { spent: 0, pause: PAUSE, most: u64::MAX, until, cancel }
    }

    /// The same budget, with at most this much more work.
    pub(crate) fn at_most(self, work: u64) -> Self {
        let most = self.most.min(self.spent.saturating_add(work));
        Self { most, pause: self.pause.min(most), ..self }
    }

    /// The rest of this budget, for at most this time.
    pub(crate) fn within(&self, time: Option<Duration>) -> Self {
        let end = time.and_then(|time| Instant::now().checked_add(time));
        let until = self.until.into_iter().chain(end).min();
        let rest = self.most.saturating_sub(self.spent);
        Self::until(until, self.cancel).at_most(rest)
    }

    /// The time that is left, if it is limited.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Plans without any limit.
    pub(crate) fn unlimited<T: Default>(
        plan: impl FnOnce(&mut Budget<'_>) -> Result<T, Stop>,
    ) -> T {
        // Nothing stops such a plan, so the default is never taken.
        plan(&mut Budget::default()).unwrap_or_default()
    }

    /// The work spent so far.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    /// Spends work that is about to be done, or was just done.
    #[inline]
    pub(crate) fn spend(&mut self, work: usize) -> Result<(), Stop> {
        self.spent = self.spent.saturating_add(work as u64);
        if self.spent <= self.pause { Ok(()) } else { self.check() }
    }

    /// Reads the clock and the flag at once, which counts as [`PAUSE`] units of work.
    pub(crate) fn look(&mut self) -> Result<(), Stop> {
        self.spent = self.spent.saturating_add(PAUSE);
        self.check()
    }

    /// A budget that ends after this many looks.
    #[cfg(test)]
    pub(crate) fn of_looks(looks: u64) -> Self {
        Self::default().at_most(looks * PAUSE)
    }

    #[cold]
    fn check(&mut self) -> Result<(), Stop> {
        self.pause = self.spent.saturating_add(PAUSE).min(self.most);
        if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Stop::Cancelled);
        }
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(Stop::OutOfTime);
        }
        if self.spent > self.most { Err(Stop::OutOfWork) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Problem, baselines, plan::Layout, verify::verify};

    /// Chunks with long lives, some written over others; many are alive at once.
    fn dense(chunks: u64) -> Problem {
        let mut problem = Problem::builder();
        for at in 0..chunks {
            let begin = at * 7919 % chunks;
            let end = begin + 2 + at * 104_729 % (chunks / 2);
            let size = 16 + at * 15_485_863 % 10_007;
            let chunk = problem.chunk(begin..end, size);
            if at % 5 == 0 {
                let overwriter = problem.chunk(end - 1..end + 3, size - 7);
                problem.overwrite(overwriter, chunk, 7);
            }
        }
        problem.build().unwrap()
    }

    /// The work of a strategy that has no plan before its end, and its layout.
    fn work(strategy: Strategy, problem: &Problem) -> Option<(u64, Layout)> {
        let mut budget = Budget::until(None, None);
        let layout = baselines::layout(strategy, problem, &mut budget).unwrap()?;
        Some((budget.spent, layout))
    }

    #[test]
    fn a_strategy_without_enough_work_has_no_plan_and_with_enough_has_the_same() {
        let problem = dense(200);
        for &strategy in Strategy::ALL.iter().filter(|&&one| one != Strategy::Naive) {
            let Some((spent, layout)) = work(strategy, &problem) else { continue };
            assert!(spent >= problem.roots().count() as u64, "{strategy}: {spent}");
            let plan = Plan::from_offsets(&problem, &layout.offsets).unwrap();
            assert_eq!(verify(&problem, &plan), [], "{strategy}");
            let within = |work: u64| {
                let mut budget = Budget::until(None, None).at_most(work);
                baselines::layout(strategy, &problem, &mut budget)
            };
            assert_eq!(within(spent), Ok(Some(layout)), "{strategy}");
            for part in 0..10 {
                assert_eq!(within(spent * part / 10), Err(Stop::OutOfWork), "{strategy}");
            }
        }
    }

    /// The innermost loops count, so work grows as the time does: fourfold for twice as many chunks where every
    /// pair is compared.
    #[test]
    fn work_grows_as_time_does() {
        use Strategy::{
            IntervalMove, TfliteCpuArena, TfliteGreedyBest, TfliteGreedyBySize, TfliteMicro,
            TfliteMinCostFlow, TfliteOffsetsBySize,
        };
        for strategy in [
            IntervalMove,
            TfliteGreedyBySize,
            TfliteGreedyBest,
            TfliteOffsetsBySize,
            TfliteCpuArena,
            TfliteMicro,
            TfliteMinCostFlow,
        ] {
            let work = |chunks: u64| work(strategy, &dense(chunks)).unwrap().0;
            let (small, large) = (work(100), work(200));
            assert!(large > 3 * small, "{strategy}: {small} and {large}");
        }
    }

    #[test]
    fn a_set_flag_and_a_time_that_is_over_end_the_work_soon() {
        let flag = AtomicBool::new(true);
        let now = Some(Instant::now());
        for (mut budget, expected) in [
            (Budget::until(None, Some(&flag)), Stop::Cancelled),
            (Budget::until(now, None), Stop::OutOfTime),
            (Budget::until(now, Some(&flag)), Stop::Cancelled),
        ] {
            let ended = (0..=PAUSE).find_map(|_| budget.spend(1).err());
            assert_eq!(ended, Some(expected));
        }
        // Small pieces of work are done in any case, however often a budget is made.
        assert_eq!(Budget::until(now, Some(&flag)).spend(1000), Ok(()));
    }
}
