//! Several threads on one problem: a portfolio that shares what it finds.
//!
//! The time of one search has a heavy tail, and the best branching order is not known beforehand. So every
//! thread runs the whole search with its own noise in the orders, and all record the best packing and the
//! best bound on one incumbent; the search ends when the two meet. That is all that the first thread reads from
//! the incumbent: otherwise it searches as it would alone, so that more threads are never worse for the same
//! nodes. When it ends, the others end.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use crate::search::control::meter::{Caller, Meter, Worker};

/// The best known bound and packing, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// No pool is smaller.
    pub bound: u64,
    /// The size of the best packing.
    pub best: u64,
}

/// The results of all threads, in units.
pub struct Incumbent {
    /// No pool is smaller.
    bound: AtomicU64,
    /// The size of the best packing known.
    best: AtomicU64,
    /// Its offsets, by body, if it was found here.
    offsets: Mutex<Option<Vec<u64>>>,
    /// The nodes of all threads but the first.
    worker_nodes: AtomicU64,
    over: AtomicBool,
}

impl Incumbent {
    pub fn new(bound: u64, best: u64) -> Self {
        Self {
            bound: AtomicU64::new(bound),
            best: AtomicU64::new(best),
            offsets: Mutex::new(None),
            worker_nodes: AtomicU64::new(0),
            over: AtomicBool::new(bound >= best),
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            bound: self.bound.load(Ordering::Relaxed),
            best: self.best.load(Ordering::Relaxed),
        }
    }

    /// Returns whether bound and best have met.
    pub fn is_solved(&self) -> bool {
        let Snapshot { bound, best } = self.snapshot();
        bound >= best
    }

    /// Returns whether nothing is left to search.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Records a packing if it is smaller than the best.
    pub fn packed(&self, size: u64, offsets: &[u64]) {
        let mut held = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        if size < self.best.load(Ordering::Relaxed) {
            *held = Some(offsets.to_vec());
            self.best.store(size, Ordering::Relaxed);
        }
        drop(held);
        self.compare();
    }

    /// Records a bound.
    pub fn refuted(&self, bound: u64) {
        self.bound.fetch_max(bound, Ordering::Relaxed);
        self.compare();
    }

    fn compare(&self) {
        if self.is_solved() {
            self.end();
        }
    }

    /// Adds nodes of a thread that is not the first.
    pub fn help(&self, nodes: u64) {
        self.worker_nodes.fetch_add(nodes, Ordering::Relaxed);
    }

    pub fn worker_nodes(&self) -> u64 {
        self.worker_nodes.load(Ordering::Relaxed)
    }

    pub fn into_offsets(self) -> Option<Vec<u64>> {
        self.offsets.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The nodes of the first thread before others begin. A shorter search ends sooner alone: threads
/// cost time to start, and share the machine's memory.
const ALONE: u64 = 10_000;

/// The caller of the first thread, which starts the others once the search has turned out to be long.
struct First<'a, F> {
    caller: &'a mut dyn Caller,
    start: Option<F>,
}

impl<F: FnOnce()> Caller for First<'_, F> {
    fn ends(&mut self, nodes: u64) -> bool {
        if nodes >= ALONE
            && let Some(start) = self.start.take()
        {
            start();
        }
        self.caller.ends(nodes)
    }
}

/// Runs a search on several threads for a caller of the first one; returns the nodes of the first thread. There are never
/// more threads than cores for this process: more would only slow each other down.
pub fn together(
    threads: usize,
    incumbent: &Incumbent,
    caller: &mut dyn Caller,
    search: impl Fn(u64, Meter<'_>) -> u64 + Sync,
) -> u64 {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads > 1 { threads.min(cores()) } else { 1 };
    thread::scope(|scope| {
        let start = || {
            for number in (1u64..).take(threads - 1) {
                let search = &search;
                let other = move || search(number, Meter::new(&mut Worker::new(incumbent)));
                // If the system refuses a thread, the others go on without it.
                let _ = thread::Builder::new().spawn_scoped(scope, other);
            }
        };
        let nodes = search(0, Meter::new(&mut First { caller, start: Some(start) }));
        incumbent.end();
        nodes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_packings_stays_and_the_first_of_equals() {
        let incumbent = Incumbent::new(3, 10);
        for (size, offsets) in [(12, [1]), (7, [2]), (9, [3]), (7, [4])] {
            incumbent.packed(size, &offsets);
        }
        assert_eq!(
            (incumbent.snapshot(), incumbent.is_over()),
            (Snapshot { bound: 3, best: 7 }, false)
        );
        incumbent.refuted(7);
        assert_eq!(
            (incumbent.snapshot(), incumbent.is_over()),
            (Snapshot { bound: 7, best: 7 }, true)
        );
        assert_eq!(incumbent.into_offsets(), Some(vec![2]));
    }

    /// The incumbent counts the nodes of all threads but the first.
    #[test]
    fn no_more_threads_search_than_requested_and_than_there_are_cores() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for (asked, run) in [(0, 1), (1, 1), (2, cores.min(2)), (usize::MAX, cores)] {
            let (incumbent, searches) = (Incumbent::new(0, 9), AtomicU64::new(0));
            let mut calls = 0;
            let mut caller = |_| {
                calls += 1;
                false
            };
            let nodes = together(asked, &incumbent, &mut caller, |number, mut meter| {
                searches.fetch_add(1, Ordering::Relaxed);
                for nodes in [5, ALONE + number] {
                    // The first thread may be at its end.
                    assert!(!meter.is_over(nodes) || number > 0);
                }
                ALONE + number
            });
            let run = run as u64;
            assert_eq!((nodes, searches.into_inner(), calls), (ALONE, run, 2));
            assert_eq!(
                incumbent.worker_nodes(),
                (1..run).map(|number| ALONE + number).sum::<u64>()
            );
            assert!(incumbent.is_over());
        }
    }

    #[test]
    fn a_short_search_has_one_thread() {
        let (incumbent, searches) = (Incumbent::new(0, 9), AtomicU64::new(0));
        let nodes = together(2, &incumbent, &mut |_| false, |_, mut meter| {
            searches.fetch_add(1, Ordering::Relaxed);
            assert!(!meter.is_over(ALONE - 1));
            ALONE - 1
        });
        assert_eq!((nodes, searches.into_inner(), incumbent.worker_nodes()), (ALONE - 1, 1, 0));
    }
}
