//! Passes: if only a time limit is given, the input is planned with the default effort first, and then again with more
//! and more effort until the time is over. So if the time suffices for the first pass, the pool is never larger than
//! with the default effort. A single pass with unlimited effort would not do: the first stage that never ends by itself
//! would use all of the time.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::{Bytes, Limits, Observer, Progress};

/// Each pass has this many times the effort of the one before.
const GROWTH: u64 = 8;

/// Runs passes until the result is final, the time is over or the caller cancels. If a pass takes less than twice the
/// time of the one before, although it had [`GROWTH`] times the effort, nothing is left to search, and it is the last.
pub(super) fn in_passes<T>(
    limits: Limits,
    observer: Observer<'_>,
    mut pass: impl FnMut(Limits, Observer<'_>) -> T,
    is_final: impl Fn(&T) -> bool,
    better: impl Fn(T, T) -> T,
) -> T {
    if !limits.is_time_alone() {
        return pass(limits, observer);
    }
    let start = Instant::now();
    let totals = Totals::default();
    let report = |progress: &Progress| {
        if let Some(report) = observer.progress {
            report(&totals.add(progress));
        }
    };
    let reported = observer.progress.map_or(observer, |_| observer.progress(&report));
    let mut result = pass(limits, reported);
    let (mut times, mut before) = (GROWTH, Duration::ZERO);
    loop {
        let left = limits.after(start);
        if is_final(&result) || observer.is_cancelled() || left.time == Some(Duration::ZERO) {
            return result;
        }
        totals.end_pass();
        let began = Instant::now();
        result = better(result, pass(left.times(times), reported));
        let took = began.elapsed();
        if took < 2 * before {
            return result;
        }
        (times, before) = (times.saturating_mul(GROWTH), took);
    }
}

/// The progress of all passes together.
struct Totals {
    /// The nodes of the passes that have ended, and of all with the last report.
    ended: AtomicU64,
    nodes: AtomicU64,
    best: AtomicU64,
    lower_bound: AtomicU64,
}

impl Default for Totals {
    fn default() -> Self {
        let [ended, nodes, lower_bound] = [0, 0, 0].map(AtomicU64::new);
        Self { ended, nodes, best: AtomicU64::new(Bytes::MAX), lower_bound }
    }
}

impl Totals {
    fn add(&self, progress: &Progress) -> Progress {
        let nodes = self.ended.load(Ordering::Relaxed).saturating_add(progress.nodes);
        self.nodes.store(nodes, Ordering::Relaxed);
        let best = self.best.fetch_min(progress.best, Ordering::Relaxed).min(progress.best);
        let lower_bound = self.lower_bound.fetch_max(progress.lower_bound, Ordering::Relaxed);
        Progress { nodes, best, lower_bound: lower_bound.max(progress.lower_bound) }
    }

    fn end_pass(&self) {
        self.ended.store(self.nodes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// The first pass has the default effort, and all passes report as one search.
    #[test]
    fn passes_grow_and_report_together() {
        let (limits, reports) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let report = |progress: &Progress| {
            let Progress { nodes, best, lower_bound } = *progress;
            reports.lock().unwrap().push((nodes, best, lower_bound));
        };
        let observer = Observer::default().progress(&report);
        let pass = |given: Limits, observer: Observer<'_>| {
            let mut limits = limits.lock().unwrap();
            limits.push(given.times);
            let best = [30, 40, 20][limits.len() - 1];
            let report = observer.progress.unwrap();
            report(&Progress { nodes: 5, best, lower_bound: 30 - best / 2 });
            best
        };
        let hour = Limits::default().time(Duration::from_hours(1));
        assert_eq!(in_passes(hour, observer, pass, |&best| best == 20, u64::min), 20);
        assert_eq!(*limits.lock().unwrap(), [1, 8, 64]);
        assert_eq!(*reports.lock().unwrap(), [(5, 30, 15), (10, 30, 15), (15, 20, 20)]);
    }

    #[test]
    fn a_given_effort_has_one_pass_and_no_time_has_none_after_the_first() {
        let hour = Duration::from_hours(1);
        for limits in [
            Limits::default(),
            Limits::default().nodes(7),
            Limits::default().nodes(7).time(hour),
            Limits::default().time(Duration::ZERO),
        ] {
            let mut passes = 0;
            let pass = |_: Limits, _: Observer<'_>| passes += 1;
            in_passes(limits, Observer::default(), pass, |()| false, |(), ()| ());
            assert_eq!(passes, 1, "{limits:?}");
        }
    }
}
