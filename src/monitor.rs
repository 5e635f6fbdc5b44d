//! The monitor connects a search with its caller: time limit, cancel flag and progress.

use std::time::{Duration, Instant};

use crate::{
    Bytes, Limits, Observer, Progress,
    budget::Budget,
    search::{Stage, Without},
};

/// The time after the limit in which the first layout may still be completed, because all that is faster is much
/// larger.
const GRACE: Duration = Duration::from_millis(75);

pub(crate) struct Monitor<'a> {
    until: Option<Instant>,
    /// [`GRACE`], or none.
    grace: Duration,
    observer: Observer<'a>,
    /// The nodes of earlier searches.
    before: u64,
    stopped: bool,
    without: Without,
    /// The smallest pool of a packing that the search sets aside.
    found: Bytes,
}

impl<'a> Monitor<'a> {
    pub fn new(limits: &Limits, observer: Observer<'a>) -> Self {
        let until = limits.time.and_then(|time| Instant::now().checked_add(time));
        let until = until.map(|until| until.checked_sub(limits.late).unwrap_or(until));
        Self {
            until,
            grace: GRACE,
            observer,
            before: 0,
            stopped: false,
            without: limits.without,
            found: Bytes::MAX,
        }
    }

    /// The same, but the first layout must be given up as soon as the time is over.
    pub fn without_grace(self) -> Self {
        Self { grace: Duration::ZERO, ..self }
    }

    /// The same, but all must end so much earlier.
    pub fn keeping(&self, time: Duration) -> Self {
        let until = self.until.map(|until| until.checked_sub(time).unwrap_or(until));
        Self { until, ..*self }
    }

    /// Reports the progress of the search; returns whether it must stop.
    pub fn stop(&mut self, nodes: u64, lower_bound: Bytes, best: Bytes) -> bool {
        if let Some(progress) = self.observer.progress {
            let best = best.min(self.found);
            progress(&Progress { lower_bound, best, nodes: self.before + nodes });
        }
        self.must_stop()
    }

    /// Returns whether the search must stop, without a report.
    pub fn must_stop(&mut self) -> bool {
        self.stopped = self.stopped || self.is_late(Duration::ZERO);
        self.stopped
    }

    /// Returns whether even the first layout must be given up.
    pub fn is_overdue(&self) -> bool {
        self.is_late(self.grace)
    }

    /// The budget of a planner with the same time limit and flag. The effort in nodes does not count.
    pub fn budget(&self) -> Budget<'a> {
        Budget::until(self.until, self.observer.cancel)
    }

    /// The budget of the first layout.
    pub fn first_budget(&self) -> Budget<'a> {
        let until = self.until.map(|until| until.checked_add(self.grace).unwrap_or(until));
        Budget::until(until, self.observer.cancel)
    }

    /// The time that is left, if there is a limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.budget().left()
    }

    /// The time in which the first layout must be completed, if there is a limit.
    pub fn left(&self) -> Option<Duration> {
        let until = self.until?.checked_add(self.grace)?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    fn is_late(&self, grace: Duration) -> bool {
        self.observer.is_cancelled()
            || self.until.is_some_and(|until| {
                let late = Instant::now().checked_duration_since(until);
                late.is_some_and(|late| late >= grace)
            })
    }

    /// Returns whether a stage is switched on.
    pub fn has(&self, stage: Stage) -> bool {
        self.without.has(stage)
    }

    /// The stages that are switched off.
    pub fn without(&self) -> Without {
        self.without
    }

    /// Makes later reports state no larger pool: the search has set aside a packing with this one, in bytes.
    pub fn found(&mut self, pool: Bytes) {
        self.found = self.found.min(pool);
    }

    /// Returns whether the search was stopped.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Adds the nodes of a search that has ended; returns the nodes of all searches.
    pub fn add(&mut self, nodes: u64) -> u64 {
        self.before += nodes;
        self.before
    }
}
