//! No-goods: a table of states that no packing continues.
//!
//! The key is the fingerprint of a component of the problem: the bodies left and the room above
//! each section. Room is counted from the limit down, so that a no-good also holds in later rounds and
//! under other limits.

#![allow(clippy::cast_possible_truncation, reason = "a part of a hash is a hash")]

use crate::search::{sizes::MAX_KEPT, state::fingerprint::Fingerprint};

/// A set of fingerprints of limited size: a hash table in which a new key may overwrite an old one.
#[derive(Clone, Debug)]
pub struct Nogoods {
    /// The slots, a power of two, in groups of [`WAYS`]. A key lies in a slot of the group that its sum selects
    /// (set-associative). The default fingerprint marks an empty slot.
    slots: Vec<Fingerprint>,
    used: usize,
    /// The most slots.
    most: usize,
}

const WAYS: usize = 4;

impl Nogoods {
    /// Creates a table that is one of `tables`, so small that all of them together take no more memory than a single
    /// table may.
    pub fn one_of(tables: usize) -> Self {
        Self { slots: vec![Fingerprint::default(); 1 << 12], used: 0, most: MAX_KEPT / tables }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self { most: self.most, ..Self::one_of(1) };
    }

    pub fn contains(&self, key: Fingerprint) -> bool {
        self.places(key).any(|at| self.slots[at] == key)
    }

    pub fn insert(&mut self, key: Fingerprint) {
        if self.used * 4 > self.slots.len() && self.slots.len() * 2 <= self.most {
            self.grow();
        }
        self.put(key);
    }

    fn put(&mut self, key: Fingerprint) {
        let free = self.places(key).find(|&at| self.slots[at] == Fingerprint::default());
        self.used += usize::from(free.is_some());
        // If all slots of the group are taken, the other half of the key chooses the one to overwrite.
        let at = free.or_else(|| self.places(key).nth(key.xor as usize % WAYS));
        if let Some(at) = at {
            self.slots[at] = key;
        }
    }

    fn places(&self, key: Fingerprint) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        let start = key.sum as usize & mask & !(WAYS - 1);
        (0..WAYS).map(move |way| start + way)
    }

    fn grow(&mut self) {
        let empty = vec![Fingerprint::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, empty);
        self.used = 0;
        for key in old.into_iter().filter(|&key| key != Fingerprint::default()) {
            self.put(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::state::fingerprint::scramble;

    fn key(number: u64) -> Fingerprint {
        Fingerprint { sum: scramble(number), xor: scramble(!number) }
    }

    #[test]
    fn nearly_all_no_goods_are_remembered_and_nothing_else() {
        let mut nogoods = Nogoods::one_of(1);
        let least = nogoods.slots.len();
        for number in 0..50_000 {
            nogoods.insert(key(number));
            // The newest key is always in the table, which grows with what it holds.
            assert!(nogoods.contains(key(number)));
            let (slots, used) = (nogoods.slots.len(), nogoods.used);
            assert!(
                4 * used <= slots + 4 && (slots == least || slots <= 8 * used + 8),
                "{slots} slots, {used} used"
            );
        }
        let known = (0..50_000).filter(|&number| nogoods.contains(key(number))).count();
        assert!(known > 47_500, "{known} of 50000");
        let used = nogoods.slots.iter().filter(|&&slot| slot != Fingerprint::default()).count();
        assert_eq!([used, nogoods.used], [known; 2]);
        assert!(!(50_000..100_000).any(|number| nogoods.contains(key(number))));
    }

    #[test]
    fn many_tables_are_together_no_larger_than_one() {
        // A hundredth of the most slots, rounded down to a power of two.
        let mut nogoods = Nogoods::one_of(100);
        for number in 0..50_000 {
            nogoods.insert(key(number));
        }
        assert_eq!(nogoods.slots.len(), 1 << 15);
        nogoods.clear();
        assert_eq!((nogoods.used, nogoods.most), (0, MAX_KEPT / 100));
    }
}
