//! The effort of the search for an order, and its end.

use std::{sync::atomic::Ordering, time::Instant};

use crate::{Bytes, Limits, Observer, Progress, order::default_limits};

/// The number of visited operators and edges that count as one node, about a microsecond.
const LOOKS: u64 = 48;

/// The remaining work, counted so that it is the same everywhere.
pub(super) struct Effort<'a> {
    looks: u64,
    /// The number of visits after which the current search ends.
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
        Self {
            looks: 0,
            most: limits.effort().saturating_mul(LOOKS),
            until: limits.time.and_then(|time| Instant::now().checked_add(time)),
            observer,
            report_at: 0,
            lower_bound: 0,
            best: 0,
            stopped: is_cancelled(observer),
        }
    }

    pub(super) fn nodes(&self) -> u64 {
        self.looks / LOOKS
    }

    /// Returns a part of the work that is left. Where only time is limited, it is a part of the
    /// default effort, because rules that take quadratic time must end in long sequences.
    pub(super) fn part(&self, parts: u64) -> u64 {
        let left = match self.most {
            u64::MAX => default_limits().effort() * LOOKS,
            most => most.saturating_sub(self.looks),
        };
        left / parts
    }

    /// Runs something with no more than a part of the work that is left.
    pub(super) fn share<T>(&mut self, parts: u64, run: impl FnOnce(&mut Self) -> T) -> T {
        let most = self.looks.saturating_add(self.part(parts));
        let whole = std::mem::replace(&mut self.most, most);
        let result = run(self);
        self.most = whole;
        result
    }

    /// Does the same for a search in a part of the graph: its bytes are not those of the whole, so the
    /// caller is not notified of them.
    pub(super) fn share_apart<T>(&mut self, parts: u64, run: impl FnOnce(&mut Self) -> T) -> T {
        let (best, lower_bound) = (self.best, self.lower_bound);
        let progress = self.observer.progress.take();
        let result = self.share(parts, run);
        (self.best, self.lower_bound, self.observer.progress) = (best, lower_bound, progress);
        result
    }

    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    pub(super) fn spend(&mut self, looks: u64) {
        self.looks = self.looks.saturating_add(looks);
        if self.looks >= self.report_at {
            self.report_at = self.looks + 10_000 * LOOKS;
            self.report();
        }
    }

    /// Returns whether no work or time is left or the caller has cancelled.
    pub(super) fn is_spent(&self) -> bool {
        self.stopped || self.looks >= self.most
    }

    /// Returns whether no time is left or the caller has cancelled.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn report(&mut self) {
        let nodes = self.nodes();
        if let Some(progress) = self.observer.progress {
            progress(&Progress { lower_bound: self.lower_bound, best: self.best, nodes });
        }
        self.stopped = self.stopped
            || is_cancelled(self.observer)
            || self.until.is_some_and(|until| Instant::now() >= until);
    }
}

fn is_cancelled(observer: Observer<'_>) -> bool {
    observer.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
}
