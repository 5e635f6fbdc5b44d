//! What a caller sets for a search and what it reports: limits, hooks, progress. Planners and
//! [`order`](crate::order) share them.

use std::{fmt, sync::atomic::AtomicBool, time::Duration};

use crate::Bytes;

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The effort in search nodes. A node that examines many chunks counts for several, so that
    /// time is in proportion: about 10^6 nodes per second.
    pub nodes: u64,
    /// The longest time, if any. With it, the answer depends on the machine.
    pub time: Option<Duration>,
    /// The threads that search at once, at least one, and no more than there are cores. Each has all
    /// the nodes, and all end with the first. The answer of several is as good as that of one for
    /// the same nodes, or better; which of several good ones it is depends on the machine.
    pub threads: usize,
}

impl Default for Limits {
    /// 50 000 nodes, some hundredths of a second; no time limit; one thread.
    fn default() -> Self {
        Self { nodes: 50_000, time: None, threads: 1 }
    }
}

impl Limits {
    /// Spends this much effort, in search nodes.
    #[must_use]
    pub const fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = nodes;
        self
    }

    /// Ends after this time.
    #[must_use]
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
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
    /// No pool is smaller, in bytes; where an order is looked for, no peak.
    pub lower_bound: Bytes,
    /// The best pool or peak so far, in bytes.
    pub best: Bytes,
    /// Nodes so far, of all threads.
    pub nodes: u64,
}

/// Hooks into a running search. The default has none.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Observer<'a> {
    /// The search ends soon after this is set, with the best so far.
    pub cancel: Option<&'a AtomicBool>,
    /// Called every few hundred nodes, by the thread that asked for the search.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
}

impl<'a> Observer<'a> {
    /// Ends the search soon after the flag is set.
    #[must_use]
    pub const fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Reports how far the search is.
    #[must_use]
    pub const fn progress(mut self, progress: &'a (dyn Fn(&Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
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
