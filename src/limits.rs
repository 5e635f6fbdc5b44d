//! The settings and reports of a search: limits, hooks, progress. Planners and
//! [`order`](crate::order) share them.

use std::{fmt, sync::atomic::AtomicBool, time::Duration};

use crate::Bytes;

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The effort in search nodes. A node that examines many chunks counts for several, so that
    /// nodes are proportional to time: about 10^6 per second.
    pub nodes: u64,
    /// The time limit, if any. With one, the answer depends on the machine.
    pub time: Option<Duration>,
    /// The threads that search at once: at least one, and at most one per core. Each has all the
    /// nodes, and all end with the first. With several threads, the answer is at least as good as
    /// with one for the same nodes; which of several equally good answers is found depends on the
    /// machine.
    pub threads: usize,
}

impl Default for Limits {
    /// Allows 50 000 nodes (some hundredths of a second), without a time limit, on one thread.
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
    /// The lower bound of the pool, or of the peak when searching for an order, in bytes.
    pub lower_bound: Bytes,
    /// The best pool or peak so far, in bytes.
    pub best: Bytes,
    /// The nodes so far, of all threads.
    pub nodes: u64,
}

/// Hooks into a running search. The default has none.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Observer<'a> {
    /// The search ends soon after this is set and returns its best result so far.
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
