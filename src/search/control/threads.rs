//! Several threads on one problem: a portfolio that shares what it finds.
//!
//! The time of one search has a heavy tail, and the best branching order is not known beforehand. So every
//! thread runs the whole search with its own noise in the orders, and all record the best packing and the
//! best bound on one incumbent; the search ends when the two meet. That is all that the first thread reads from
//! the incumbent: otherwise it searches as it would alone, so that more threads are never worse for the same
//! nodes. When it ends, the others end.

use std::thread;

use crate::search::{
    control::meter::{Caller, Meter, Worker},
    effort::SHORT,
    incumbent::Incumbent,
};

/// The caller of the first thread, which starts the others once the search has turned out to be long.
struct First<'a, F> {
    caller: &'a mut dyn Caller,
    start: Option<F>,
}

impl<F: FnOnce()> Caller for First<'_, F> {
    fn ends(&mut self, nodes: u64) -> bool {
        if nodes >= SHORT
            && let Some(start) = self.start.take()
        {
            start();
        }
        self.caller.ends(nodes)
    }
}

/// Runs a search on several threads for a caller of the first one; returns the nodes of the first thread. There are
/// never more threads than cores for this process: more would only slow each other down.
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

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
                for nodes in [5, SHORT + number] {
                    // The first thread may be at its end.
                    assert!(!meter.is_over(nodes) || number > 0);
                }
                SHORT + number
            });
            let run = run as u64;
            assert_eq!((nodes, searches.into_inner(), calls), (SHORT, run, 2));
            assert_eq!(
                incumbent.worker_nodes(),
                (1..run).map(|number| SHORT + number).sum::<u64>()
            );
            assert!(incumbent.is_over());
        }
    }

    #[test]
    fn a_short_search_has_one_thread() {
        let (incumbent, searches) = (Incumbent::new(0, 9), AtomicU64::new(0));
        let nodes = together(2, &incumbent, &mut |_| false, |_, mut meter| {
            searches.fetch_add(1, Ordering::Relaxed);
            assert!(!meter.is_over(SHORT - 1));
            SHORT - 1
        });
        assert_eq!((nodes, searches.into_inner(), incumbent.worker_nodes()), (SHORT - 1, 1, 0));
    }
}
