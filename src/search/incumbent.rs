//! The incumbent: the best packing and the best bound that a search has found, shared by its threads.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

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

    /// Returns whether the search has ended: bound and best have met, or [`end`](Self::end) was called.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Records a packing if it is smaller than the best.
    pub fn packed(&self, size: u64, offsets: &[u64]) {
        let mut held = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        let size = size.max(self.snapshot().bound);
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
        let Snapshot { bound, best } = self.snapshot();
        if bound >= best {
            self.end();
        }
    }

    /// Adds nodes of a thread other than the first to [`worker_nodes`](Self::worker_nodes).
    pub fn add_worker_nodes(&self, nodes: u64) {
        self.worker_nodes.fetch_add(nodes, Ordering::Relaxed);
    }

    pub fn worker_nodes(&self) -> u64 {
        self.worker_nodes.load(Ordering::Relaxed)
    }

    pub fn into_offsets(self) -> Option<Vec<u64>> {
        self.offsets.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
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
}
