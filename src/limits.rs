//! The settings and reports of a search: limits, hooks, progress. Planners and
//! [`order`](crate::order) share them.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{Bytes, search::Without};

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The effort in search nodes. A node that examines many chunks counts for several, so that
    /// nodes are proportional to time: about 10^6 per second. With `None`, the effort follows the
    /// gap to the lower bound (see [`Limits::default`]). If there is a time limit, passes with more and more effort
    /// follow until the time is over.
    pub nodes: Option<u64>,
    /// The time limit, if any. With one, the answer depends on the machine.
    pub time: Option<Duration>,
    /// The threads that search at once: at least one, and at most one per core. Each may use the
    /// whole effort, and all stop when the first one ends. With several threads, the answer is at
    /// least as good as with one for the same nodes; which of several equally good answers is found
    /// depends on the machine.
    pub threads: usize,
    /// A search has this many times the default effort.
    pub(crate) times: u64,
    /// How long ago the time was over, if it has run out.
    pub(crate) late: Duration,
    /// The stages that are switched off, to measure what they gain.
    #[doc(hidden)]
    pub without: Without,
}

/// The default effort in nodes for a gap of less than a percent.
pub(crate) const NODES: u64 = 50_000;

/// The nodes that each percent of the gap adds, and the most with which a problem is searched.
const NODES_PER_PERCENT: u64 = 75_000;
const MAX_NODES: u64 = 1_500_000;

impl Default for Limits {
    /// Allows 50 000 nodes (some hundredths of a second) and 75 000 more for each percent by which the
    /// first packings exceed the lower bound, up to 1.5 million. Large problems, where a node takes
    /// longer, get fewer, but never less than 50 000. If that leaves a problem more than a percent above the bound, up to
    /// 3.2 million follow for a search of another kind. No time limit; one thread.
    fn default() -> Self {
        Self {
            nodes: None,
            time: None,
            threads: 1,
            times: 1,
            late: Duration::ZERO,
            without: Without::default(),
        }
    }
}

impl Limits {
    /// Limits the effort to this many search nodes.
    #[must_use]
    pub const fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Ends after this time. If no effort is set, the time is the only limit: after a pass with the default effort,
    /// others with more and more follow.
    #[must_use]
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self.late = Duration::ZERO;
        self
    }

    /// The limits with the time that is left of them.
    pub(crate) fn after(self, start: Instant) -> Self {
        let Some(time) = self.time else { return self };
        let elapsed = start.elapsed();
        let late = self.late + elapsed.saturating_sub(time);
        Self { time: Some(time.saturating_sub(elapsed)), late, ..self }
    }

    /// Returns whether no effort is set, so that a search has the default one.
    pub(crate) const fn is_default(&self) -> bool {
        self.nodes.is_none()
    }

    /// Returns whether neither an effort nor a time is set.
    pub(crate) const fn is_unlimited(&self) -> bool {
        self.nodes.is_none() && self.time.is_none()
    }

    /// The limits with this many times the default effort.
    pub(crate) const fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }

    /// Returns whether only the time is limited.
    pub(crate) const fn is_time_alone(&self) -> bool {
        self.nodes.is_none() && self.time.is_some()
    }

    /// The effort in search nodes, before it is adapted to a gap.
    pub(crate) const fn effort(&self) -> u64 {
        match self.nodes {
            Some(nodes) => nodes,
            None => NODES.saturating_mul(self.times),
        }
    }

    /// Returns the limits for a problem with this lower bound and this best pool so far. Each of
    /// its nodes counts as `weight` nodes.
    pub(crate) fn scaled_to_gap(self, lower_bound: Bytes, best: Bytes, weight: u64) -> Self {
        if !self.is_default() {
            return self;
        }
        let percent = u128::from(best - lower_bound) * 100 / u128::from(lower_bound.max(1));
        let more = u64::try_from(percent).unwrap_or(u64::MAX).saturating_mul(NODES_PER_PERCENT);
        let nodes = NODES.max(more.saturating_add(NODES).min(MAX_NODES) / weight);
        self.nodes(nodes.saturating_mul(self.times))
    }

    /// Searches with this many threads.
    #[must_use]
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }
}

/// The progress of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The lower bound of the pool, or of the peak when searching for an order, in bytes.
    pub lower_bound: Bytes,
    /// The best pool or peak so far, in bytes; [`Bytes::MAX`] if there is none yet.
    pub best: Bytes,
    /// The nodes so far, of all threads.
    pub nodes: u64,
}

/// Hooks into a running search. The default has none.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Observer<'a> {
    /// The search ends soon after this is set and returns its best result so far. Strategies without one before
    /// their end fail.
    pub cancel: Option<&'a AtomicBool>,
    /// Called every few hundred nodes, by the thread that started the search.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
}

impl<'a> Observer<'a> {
    /// Ends the search soon after the flag is set.
    #[must_use]
    pub const fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Reports the progress of the search.
    #[must_use]
    pub const fn progress(mut self, progress: &'a (dyn Fn(&Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Returns whether the caller has ended the search.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.progress.map(|_| "a function");
        f.debug_struct("Observer")
            .field("cancel", &self.cancel)
            .field("progress", &progress)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each percent of the gap adds 75 000 nodes, up to 1.5 million in all. The sum is divided by the weight of a node,
    /// but is never less than the base effort.
    #[test]
    fn the_default_effort_follows_the_gap_and_the_size() {
        let scaled_to_gap =
            |best, weight| Limits::default().scaled_to_gap(1000, best, weight).effort();
        for (best, weight, nodes) in [
            (1000, 1, 50_000),
            (1009, 1, 50_000),
            (1010, 1, 125_000),
            (1059, 2, 212_500),
            (1190, 1, 1_475_000),
            (u64::MAX, 1, 1_500_000),
            (1059, 9, 50_000),
        ] {
            assert_eq!(scaled_to_gap(best, weight), nodes, "pool {best}, weight {weight}");
        }
        assert_eq!(Limits::default().scaled_to_gap(0, 0, 1).effort(), 50_000);
    }

    #[test]
    fn a_given_effort_does_not_follow_the_gap() {
        let time = Duration::from_secs(1);
        for (limits, nodes) in [
            (Limits::default().nodes(7), 7),
            (Limits::default().nodes(7).time(time), 7),
            (Limits::default().time(time).nodes(7), 7),
            (Limits::default().time(time), 1_500_000),
        ] {
            assert_eq!(limits.scaled_to_gap(1, 1000, 1).effort(), nodes);
        }
    }

    #[test]
    fn limits_know_how_long_ago_the_time_was_over() {
        let hour = Duration::from_hours(1);
        let Some(start) = Instant::now().checked_sub(hour) else { return };
        let [none, half, twice] = [0, 30, 120].map(Duration::from_mins);
        assert_eq!(Limits::default().after(start), Limits::default());
        let ahead = Limits::default().time(twice).after(start);
        assert!(ahead.time.is_some_and(|time| time > none && time <= hour) && ahead.late == none);
        let over = Limits::default().time(half).after(start);
        assert!(over.time == Some(none) && over.late >= half);
        let long_over = over.after(start);
        assert!(long_over.time == Some(none) && long_over.late >= half + hour);
        assert_eq!(over.time(hour).late, none);
    }
}
