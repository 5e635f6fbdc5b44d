//! What was refuted: a table of states from which nothing leads to a packing.
//!
//! The key is a hash of a component of the problem: the bodies yet to come and the room above each
//! section. It is 128 bits wide and stands for the state itself: that two states of one search share a
//! key is far less likely than a fault of the machine. Room is counted from the limit down, so that
//! a refutation serves later rounds and other limits, too.

#![allow(clippy::cast_possible_truncation, reason = "a part of a hash is a hash")]

/// A set of keys that forgets when it is full.
#[derive(Clone, Debug)]
pub(super) struct Refuted {
    /// A power of two of slots; a key lies in one of [`WAYS`] from where its first half points.
    /// (0, 0) is an empty slot.
    slots: Vec<(u64, u64)>,
    used: usize,
}

const WAYS: usize = 4;
const MOST: usize = 1 << 22;

impl Refuted {
    pub(super) fn new() -> Self {
        Self { slots: vec![(0, 0); 1 << 12], used: 0 }
    }

    pub(super) fn contains(&self, key: (u64, u64)) -> bool {
        self.places(key).any(|at| self.slots[at] == key)
    }

    pub(super) fn insert(&mut self, key: (u64, u64)) {
        if self.used * 2 > self.slots.len() && self.slots.len() < MOST {
            self.grow();
        }
        self.put(key);
    }

    fn put(&mut self, key: (u64, u64)) {
        let free = self.places(key).find(|&at| self.slots[at] == (0, 0));
        self.used += usize::from(free.is_some());
        // When all are taken, another part of the hash says which one goes.
        let at = free.or_else(|| self.places(key).nth(key.1 as usize % WAYS));
        if let Some(at) = at {
            self.slots[at] = key;
        }
    }

    fn places(&self, key: (u64, u64)) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        let start = key.0 as usize & mask & !(WAYS - 1);
        (0..WAYS).map(move |way| start + way)
    }

    fn grow(&mut self) {
        let empty = vec![(0, 0); self.slots.len() * 4];
        let old = std::mem::replace(&mut self.slots, empty);
        self.used = 0;
        for key in old.into_iter().filter(|&key| key != (0, 0)) {
            self.put(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::search::skyline::scramble;

    fn key(number: u64) -> (u64, u64) {
        (scramble(number), scramble(!number))
    }

    #[test]
    fn nearly_all_that_was_refuted_is_remembered_and_nothing_else() {
        let mut refuted = Refuted::new();
        for number in 0..50_000 {
            refuted.insert(key(number));
            // The newest is there, whoever had to go for it.
            assert!(refuted.contains(key(number)));
        }
        let known = (0..50_000).filter(|&number| refuted.contains(key(number))).count();
        assert!(known > 47_500, "{known} of 50000");
        assert_eq!(refuted.slots.iter().filter(|&&slot| slot != (0, 0)).count(), known);
        assert!(!(50_000..100_000).any(|number| refuted.contains(key(number))));
    }

    #[test]
    fn the_table_grows_with_what_it_holds() {
        let mut refuted = Refuted::new();
        let least = refuted.slots.len();
        for number in 0..50_000 {
            refuted.insert(key(number));
            let (slots, used) = (refuted.slots.len(), refuted.used);
            assert!(
                2 * used <= slots + 2 && (slots == least || slots <= 8 * used + 8),
                "{slots} slots, {used} used"
            );
        }
        let used = refuted.slots.iter().filter(|&&slot| slot != (0, 0)).count();
        assert_eq!(refuted.used, used);
    }
}
