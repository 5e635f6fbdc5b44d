//! Several threads on one problem: a portfolio that shares what it finds.
//!
//! The time of one search has a heavy tail, and the best branching order is not known beforehand. So every
//! thread runs the whole search with its own noise in the orders, and all record the best packing and the
//! best bound on one incumbent; the search ends when the two meet. That is all that the first thread reads from
//! the incumbent: otherwise it searches as it would alone, so that more threads are never worse for the same
//! nodes. When it ends, the others end.

use std::thread;

use crate::search::{control::meter::Meter, effort::SHORT, incumbent::Incumbent, sizes::PAUSE};

/// Runs a search on several threads, the first with a given meter and each other with as many nodes; returns the nodes
/// of the first. The others start once the search has turned out to be long. There are never more threads than cores
/// for this process: more would only slow each other down.
pub fn together(
    threads: usize,
    incumbent: &Incumbent,
    meter: &mut Meter<'_>,
    search: impl Fn(u64, &mut Meter<'_>) -> u64 + Sync,
) -> u64 {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads > 1 { threads.min(cores()) } else { 1 };
    let (search, last) = (&search, meter.left(0));
    thread::scope(|scope| {
        let mut others = (1u64..).take(threads - 1);
        let mut first = |nodes| {
            if nodes >= SHORT {
                for number in others.by_ref() {
                    let search = move || {
                        search(number, &mut Meter::new(&mut count(incumbent)).part(0, last))
                    };
                    // If the system refuses a thread, the others go on without it.
                    let _ = thread::Builder::new().spawn_scoped(scope, search);
                }
            }
            meter.is_over(nodes)
        };
        let nodes = search(0, &mut Meter::new(&mut first).part(0, last));
        incumbent.end();
        nodes
    })
}

/// The caller of a thread other than the first, which adds its nodes to the incumbent.
fn count(incumbent: &Incumbent) -> impl FnMut(u64) -> bool {
    let (mut counted, mut next) = (0, 0);
    move |nodes| {
        if nodes >= next {
            incumbent.add_worker_nodes(nodes - counted);
            (counted, next) = (nodes, nodes + PAUSE);
        }
        incumbent.is_over()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// The incumbent counts the nodes of all threads but the first.
    #[test]
    fn no_more_threads_search_than_requested_and_than_there_are_cores() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for (asked, length, run) in [
            (0, SHORT, 1),
            (1, SHORT, 1),
            // A short search has one thread.
            (2, SHORT - 1, 1),
            (2, SHORT, cores.min(2)),
            (usize::MAX, SHORT, cores),
        ] {
            let (incumbent, searches) = (Incumbent::new(0, 9), AtomicU64::new(0));
            let mut calls = 0;
            let mut caller = |_| {
                calls += 1;
                false
            };
            let mut meter = Meter::new(&mut caller);
            let nodes = together(asked, &incumbent, &mut meter, |number, meter| {
                searches.fetch_add(1, Ordering::Relaxed);
                for nodes in [5, length + number] {
                    // The first thread may be at its end.
                    assert!(!meter.is_over(nodes) || number > 0);
                }
                length + number
            });
            let run = run as u64;
            assert_eq!((nodes, searches.into_inner(), calls), (length, run, 2));
            assert_eq!(
                incumbent.worker_nodes(),
                (1..run).map(|number| length + number).sum::<u64>()
            );
            assert!(incumbent.is_over());
        }
    }
}
