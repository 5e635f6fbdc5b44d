//! The effort of a search over operators, for an order or for what runs twice, and its end.

use std::time::Instant;

use crate::{Bytes, Limits, Observer, Progress};

/// The number of visits between two reports to the caller.
const REPORT: u64 = 480_000;

/// The remaining work, counted so that it is the same everywhere.
pub(crate) struct Effort<'a> {
    /// The number of visits that count as one node, about a microsecond.
    per_node: u64,
    /// The nodes of which a part is a part of the work where only time is limited.
    usual: u64,
    looks: u64,
    /// The number of visits after which the current search ends.
    most: u64,
    until: Option<Instant>,
    observer: Observer<'a>,
    /// The number of visits at which the caller is notified next.
    report_at: u64,
    pub(crate) lower_bound: Bytes,
    pub(crate) best: Bytes,
    stopped: bool,
}

impl<'a> Effort<'a> {
    /// The work that limits allow. A node has `per_node` visits; `usual` is the default effort in nodes.
    pub(crate) fn new(
        limits: &Limits,
        observer: Observer<'a>,
        (per_node, usual): (u64, u64),
    ) -> Self {
        Self {
            per_node,
            usual,
            looks: 0,
            most: if limits.is_time_alone() {
                u64::MAX
            } else {
                limits.effort().saturating_mul(per_node)
            },
            until: limits.time.and_then(|time| Instant::now().checked_add(time)),
            observer,
            report_at: 0,
            lower_bound: 0,
            best: 0,
            stopped: observer.is_cancelled(),
        }
    }

    pub(crate) fn nodes(&self) -> u64 {
        self.looks / self.per_node
    }

    /// Returns a part of the work that is left. Where only time is limited, it is a part of the
    /// default effort, because rules that take quadratic time must end in long sequences.
    pub(crate) fn part(&self, parts: u64) -> u64 {
        let left = match self.most {
            u64::MAX => self.usual * self.per_node,
            most => most.saturating_sub(self.looks),
        };
        left / parts
    }

    /// Runs something with no more than a part of the work that is left.
    pub(crate) fn share<T>(&mut self, parts: u64, run: impl FnOnce(&mut Self) -> T) -> T {
        let most = self.looks.saturating_add(self.part(parts));
        let whole = std::mem::replace(&mut self.most, most);
        let result = run(self);
        self.most = whole;
        result
    }

    /// Does the same for a search in a part of the graph: its bytes are not those of the whole, so the
    /// caller is not notified of them.
    pub(crate) fn share_apart<T>(&mut self, parts: u64, run: impl FnOnce(&mut Self) -> T) -> T {
        let (best, lower_bound) = (self.best, self.lower_bound);
        let progress = self.observer.progress.take();
        let result = self.share(parts, run);
        (self.best, self.lower_bound, self.observer.progress) = (best, lower_bound, progress);
        result
    }

    /// Allows no more than a part of the work that is left, until that is [restored](Self::restore); returns the
    /// whole.
    pub(crate) fn limit_to(&mut self, parts: u64) -> u64 {
        let most = self.looks.saturating_add(self.most.saturating_sub(self.looks) / parts);
        std::mem::replace(&mut self.most, most)
    }

    /// Allows at least this many nodes from now on.
    pub(crate) fn extend(&mut self, nodes: u64) {
        let more = nodes.saturating_mul(self.per_node);
        self.most = self.most.max(self.looks.saturating_add(more));
    }

    /// Allows the whole work again.
    pub(crate) fn restore(&mut self, whole: u64) {
        self.most = whole;
    }

    /// The part of the work, from 0 to 1, that is done of what began at `start` visits.
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    pub(crate) fn done_since(&self, start: u64) -> f64 {
        let whole = self.most.saturating_sub(start).max(1);
        (self.looks - start) as f64 / whole as f64
    }

    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    pub(crate) fn spend(&mut self, looks: u64) {
        self.looks = self.looks.saturating_add(looks);
        if self.looks >= self.report_at {
            self.report_at = self.looks + REPORT;
            self.report();
        }
    }

    /// Returns whether no work or time is left or the caller has cancelled.
    pub(crate) fn is_spent(&self) -> bool {
        self.stopped || self.looks >= self.most
    }

    /// Returns whether no time is left or the caller has cancelled.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn report(&mut self) {
        let nodes = self.nodes();
        if let Some(progress) = self.observer.progress {
            progress(&Progress { lower_bound: self.lower_bound, best: self.best, nodes });
        }
        self.stopped = self.stopped
            || self.observer.is_cancelled()
            || self.until.is_some_and(|until| Instant::now() >= until);
    }
}
