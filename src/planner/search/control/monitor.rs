//! The monitor connects a search with its caller: time limit, cancel flag and progress.

use std::{sync::atomic::Ordering, time::Instant};

use crate::{Bytes, Limits, Observer, Progress};

pub struct Monitor<'a> {
    until: Option<Instant>,
    observer: Observer<'a>,
    /// The nodes of earlier searches.
    before: u64,
    stopped: bool,
}

impl<'a> Monitor<'a> {
    pub fn new(limits: &Limits, observer: Observer<'a>) -> Self {
        let until = limits.time.and_then(|time| Instant::now().checked_add(time));
        Self { until, observer, before: 0, stopped: false }
    }

    /// Reports the progress of the search; returns whether it must stop.
    pub fn stop(&mut self, nodes: u64, lower_bound: Bytes, best: Bytes) -> bool {
        if let Some(progress) = self.observer.progress {
            progress(&Progress { lower_bound, best, nodes: self.before + nodes });
        }
        self.stopped = self.stopped
            || self.observer.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
            || self.until.is_some_and(|until| Instant::now() >= until);
        self.stopped
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
