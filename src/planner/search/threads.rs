//! Several threads on one problem: a portfolio that shares what it finds.
//!
//! The time of one search has a heavy tail, and which order of trying is the lucky one is not known
//! beforehand. So every thread runs the whole search with other noise in its orders, and all write
//! the best packing and the best bound on one board; the search is over when the two meet. The
//! first thread never looks at the board but for that: it does what it would do alone, so that more
//! threads are never worse for the same nodes. Its end is the end of the others.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// What all threads have found, in units.
pub(super) struct Board {
    /// No pool is smaller.
    bound: AtomicU64,
    /// The size of the best packing known.
    best: AtomicU64,
    /// Its offsets, by body, if it was found here.
    offsets: Mutex<Option<Vec<u64>>>,
    /// The nodes of all threads but the first.
    helped: AtomicU64,
    over: AtomicBool,
}

impl Board {
    pub(super) fn new(bound: u64, best: u64) -> Self {
        Self {
            bound: AtomicU64::new(bound),
            best: AtomicU64::new(best),
            offsets: Mutex::new(None),
            helped: AtomicU64::new(0),
            over: AtomicBool::new(bound >= best),
        }
    }

    /// The best bound and the size of the best packing.
    pub(super) fn standing(&self) -> (u64, u64) {
        (self.bound.load(Ordering::Relaxed), self.best.load(Ordering::Relaxed))
    }

    /// Whether nothing is left to search.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Takes note of a packing.
    pub(super) fn packed(&self, size: u64, offsets: &[u64]) {
        let mut held = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        if size < self.best.load(Ordering::Relaxed) {
            *held = Some(offsets.to_vec());
            self.best.store(size, Ordering::Relaxed);
        }
        drop(held);
        self.compare();
    }

    /// Takes note of a bound.
    pub(super) fn refuted(&self, bound: u64) {
        self.bound.fetch_max(bound, Ordering::Relaxed);
        self.compare();
    }

    fn compare(&self) {
        let (bound, best) = self.standing();
        if bound >= best {
            self.end();
        }
    }

    /// Counts nodes of a thread that is not the first.
    pub(super) fn help(&self, nodes: u64) {
        self.helped.fetch_add(nodes, Ordering::Relaxed);
    }

    pub(super) fn helped(&self) -> u64 {
        self.helped.load(Ordering::Relaxed)
    }

    pub(super) fn into_offsets(self) -> Option<Vec<u64>> {
        self.offsets.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asked with the nodes so far, the bound and the best: whether to stop.
pub(super) type Stop<'a> = dyn FnMut(u64, (u64, u64)) -> bool + 'a;

/// Runs a search on several threads; gives the nodes of the first, which alone asks whether to
/// `stop`. No more threads run than the machine has cores for us: more would only be in the way.
pub(super) fn together(
    threads: usize,
    board: &Board,
    stop: &mut Stop<'_>,
    search: impl Fn(u64, &mut Stop<'_>) -> u64 + Sync,
) -> u64 {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads > 1 { threads.min(cores()) } else { 1 };
    thread::scope(|scope| {
        for number in (1u64..).take(threads - 1) {
            let search = &search;
            let other = move || {
                let mut before = 0;
                search(number, &mut |nodes, _| {
                    board.help(nodes - before);
                    before = nodes;
                    false
                });
            };
            // If the machine gives no thread, there is one less.
            let _ = thread::Builder::new().spawn_scoped(scope, other);
        }
        let nodes = search(0, stop);
        board.end();
        nodes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_packings_the_smaller_stays_and_of_equals_the_first() {
        let board = Board::new(3, 10);
        for (size, offsets) in [(12, [1]), (7, [2]), (9, [3]), (7, [4])] {
            board.packed(size, &offsets);
        }
        assert_eq!((board.standing(), board.is_over()), ((3, 7), false));
        board.refuted(7);
        assert_eq!((board.standing(), board.is_over()), ((7, 7), true));
        assert_eq!(board.into_offsets(), Some(vec![2]));
    }

    /// The nodes of all but the first are counted on the board.
    #[test]
    fn as_many_threads_search_as_are_asked_for_and_there_are_cores() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for (asked, run) in [(0, 1), (1, 1), (2, cores.min(2)), (usize::MAX, cores)] {
            let (board, searches) = (Board::new(0, 9), AtomicU64::new(0));
            let mut asked_to_stop = 0;
            let mut stop = |_, _| {
                asked_to_stop += 1;
                false
            };
            let nodes = together(asked, &board, &mut stop, |number, stop| {
                searches.fetch_add(1, Ordering::Relaxed);
                assert!(!stop(5, (0, 9)) && !stop(7 + number, (0, 9)));
                7 + number
            });
            let run = run as u64;
            assert_eq!((nodes, searches.into_inner(), asked_to_stop), (7, run, 2));
            assert_eq!(board.helped(), (1..run).map(|number| 7 + number).sum::<u64>());
            assert!(board.is_over());
        }
    }
}
