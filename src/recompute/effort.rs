//! The effort of the search, and its end.

use std::{sync::atomic::Ordering, time::Instant};

use crate::{Bytes, Limits, Observer, Progress};

/// The visited runs, values and edges that count as one node, about a microsecond.
const LOOKS: u64 = 160;

/// The remaining work, counted so that it is the same everywhere.
pub(super) struct Effort<'a> {
    looks: u64,
    /// The number of visits after which the current part of the search ends.
    most: u64,
    until: Option<Instant>,
    observer: Observer<'a>,
    /// The number of visits at which the caller is notified next.
    report_at: u64,
    pub(super) lower_bound: Bytes,
    pub(super) best: Bytes,
    stopped: bool,
}

impl<'a> Effort<'a> {
    pub(super) fn new(limits: &Limits, observer: Observer<'a>) -> Self {
        let mut effort = Self {
            looks: 0,
            most: limits.effort().saturating_mul(LOOKS),
            until: limits.time.and_then(|time| Instant::now().checked_add(time)),
            observer,
            report_at: 0,
            lower_bound: 0,
            best: Bytes::MAX,
            stopped: false,
        };
        effort.spend(0);
        effort
    }

    pub(super) fn nodes(&self) -> u64 {
        self.looks / LOOKS
    }

    /// Allows no more than a part of the work that is left, until that is [lifted](Self::lift); returns the
    /// whole.
    pub(super) fn limit_to(&mut self, parts: u64) -> u64 {
        let most = self.looks.saturating_add(self.most.saturating_sub(self.looks) / parts);
        std::mem::replace(&mut self.most, most)
    }

    /// Allows the whole work again.
    pub(super) fn lift(&mut self, whole: u64) {
        self.most = whole;
    }

    /// The part of the work, from 0 to 1, that is done of what began at `start` visits.
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    pub(super) fn done_since(&self, start: u64) -> f64 {
        let whole = self.most.saturating_sub(start).max(1);
        (self.looks - start) as f64 / whole as f64
    }

    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    pub(super) fn spend(&mut self, looks: u64) {
        self.looks = self.looks.saturating_add(looks);
        if self.looks >= self.report_at {
            self.report_at = self.looks + 2_000 * LOOKS;
            self.report();
        }
    }

    /// Returns whether no work or time is left or the caller has cancelled.
    pub(super) fn is_spent(&self) -> bool {
        self.stopped || self.looks >= self.most
    }

    fn report(&mut self) {
        let nodes = self.nodes();
        if let Some(progress) = self.observer.progress {
            progress(&Progress { lower_bound: self.lower_bound, best: self.best, nodes });
        }
        let is_cancelled =
            self.observer.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        self.stopped =
            self.stopped || is_cancelled || self.until.is_some_and(|until| Instant::now() >= until);
    }
}
