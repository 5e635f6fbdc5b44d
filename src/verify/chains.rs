//! Finds bytes on several streams that are needed at the same time.
//!
//! A sweep over the addresses keeps the items whose bytes include the current address, in *chains*: of any two items
//! of a chain, one is over before the other begins. In this order, the items that meet a new one are neighbours,
//! around its place in the chain, so they are found without examining the others. In a right plan, nearly all
//! items form one chain. The time is O(n log n), plus the number of pairs that meet.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    ops::Range,
};

use crate::Step;

/// Bytes that are needed from one clock to another.
pub(super) trait ClockTreeSpace {
    fn bytes(&self) -> Range<u128>;

    /// The clock from which the bytes are needed.
    fn begins(&self) -> impl Iterator<Item = Step>;

    /// The clock from which they are no longer needed.
    fn ends(&self) -> impl Iterator<Item = Step>;

    fn is_over_at(&self, clock: impl Iterator<Item = Step>) -> bool {
        self.ends().zip(clock).all(|(end, at)| end <= at)
    }

    fn is_over_before(&self, other: &Self) -> bool {
        self.is_over_at(other.begins())
    }

    /// Returns whether neither is over before the other begins.
    fn meets(&self, other: &Self) -> bool {
        !self.is_over_before(other) && !other.is_over_before(self)
    }
}

/// The sum of a clock, and the index of an item. If an item is over before another begins, its sum is
/// smaller.
type Key = (u128, usize);

/// The items whose bytes include the present address.
struct Open<'a, T> {
    items: &'a [T],
    chains: Vec<BTreeSet<Key>>,
    /// Items that do not end after they begin, on at least one stream. The sums of their clocks do not order them.
    loose: BTreeSet<usize>,
    /// By item: its chain and its key there.
    places: Vec<Option<(usize, Key)>>,
    /// The ends of the items in order.
    ends: BinaryHeap<Reverse<Key>>,
}

impl<'a, T: ClockTreeSpace> Open<'a, T> {
    fn new(items: &'a [T]) -> Self {
        Self {
            items,
            chains: Vec::new(),
            loose: BTreeSet::new(),
            places: Vec::with_capacity(items.len()),
            ends: BinaryHeap::new(),
        }
    }

    /// Removes the items that end at this address or below.
    fn close(&mut self, address: u128) {
        while let Some(&Reverse((end, item))) = self.ends.peek()
            && end <= address
        {
            self.ends.pop();
            match self.places[item] {
                Some((chain, key)) => self.chains[chain].remove(&key),
                None => self.loose.remove(&item),
            };
        }
    }

    /// Adds the next item and returns those that it meets, in order.
    fn add(&mut self, item: usize) -> Vec<usize> {
        let items = self.items;
        let new = &items[item];
        let meets = |&other: &usize| items[other].meets(new);
        let is_life = new.begins().zip(new.ends()).all(|(begin, end)| begin <= end)
            && !new.is_over_before(new);
        let sum: u128 = new.begins().map(u128::from).sum();
        let key = (sum, item);
        let mut met: Vec<usize> = self.loose.iter().copied().filter(meets).collect();
        let mut free = None;
        for (at, chain) in self.chains.iter().enumerate() {
            let before = met.len();
            if is_life {
                let earlier = chain.range(..key).rev().map(|&(_, other)| other);
                met.extend(earlier.take_while(|&other| !items[other].is_over_before(new)));
                let later = chain.range(key..).map(|&(_, other)| other);
                met.extend(later.take_while(|&other| !new.is_over_before(&items[other])));
            } else {
                met.extend(chain.iter().map(|&(_, other)| other).filter(meets));
            }
            if met.len() == before && free.is_none() {
                free = Some(at);
            }
        }
        self.ends.push(Reverse((new.bytes().end, item)));
        if is_life {
            let chain = free.unwrap_or(self.chains.len());
            self.chains.resize_with(self.chains.len().max(chain + 1), BTreeSet::new);
            self.chains[chain].insert(key);
            self.places.push(Some((chain, key)));
        } else {
            self.loose.insert(item);
            self.places.push(None);
        }
        met.sort_unstable();
        met
    }
}

/// Visits all pairs of items that share bytes and meet, until `visit` returns false. Items come in the
/// order of their lowest bytes; each visits those before it in this order. Returns whether all were
/// visited.
pub(super) fn each_meeting<T: ClockTreeSpace>(
    items: &[T],
    mut visit: impl FnMut(&T, &T) -> bool,
) -> bool {
    let mut open = Open::new(items);
    for (at, new) in items.iter().enumerate() {
        open.close(new.bytes().start);
        if !open.add(at).into_iter().all(|old| visit(&items[old], new)) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    struct Item {
        bytes: Range<u128>,
        begin: Vec<Step>,
        end: Vec<Step>,
    }

    impl ClockTreeSpace for Item {
        fn bytes(&self) -> Range<u128> {
            self.bytes.clone()
        }

        fn begins(&self) -> impl Iterator<Item = Step> {
            self.begin.iter().copied()
        }

        fn ends(&self) -> impl Iterator<Item = Step> {
            self.end.iter().copied()
        }
    }

    /// Compares every pair.
    fn all_pairs(items: &[Item]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (y, new) in items.iter().enumerate() {
            for (x, old) in items[..y].iter().enumerate() {
                if old.bytes.end > new.bytes.start && old.meets(new) {
                    found.push((x, y));
                }
            }
        }
        found
    }

    #[test]
    fn the_pairs_that_meet_are_those_of_comparing_all() {
        let (mut met, mut chained) = (0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let streams = random.int_in_range(1..=3)?;
            let most = random.int_in_range(2..=20)?;
            let mut items = Vec::new();
            for _ in 0..random.int_in_range(2..=14)? {
                let low: u128 = random.int_in_range(0..=6)?;
                let mut begin = Vec::new();
                let mut end = Vec::new();
                let is_loose = random.ratio(1, 12)?;
                for _ in 0..streams {
                    let at: Step = random.int_in_range(0..=most)?;
                    begin.push(at + Step::from(is_loose));
                    end.push(at + random.int_in_range(0..=2)?);
                }
                items.push(Item { bytes: low..low + random.int_in_range(1..=4)?, begin, end });
            }
            items.sort_by_key(|item| item.bytes.start);
            let index = |one: &Item| items.iter().position(|item| std::ptr::eq(item, one));
            let mut found = Vec::new();
            each_meeting(&items, |old, new| {
                found.push((index(old).unwrap(), index(new).unwrap()));
                true
            });
            assert_eq!(found, all_pairs(&items));
            met += found.len();
            chained += usize::from(found.is_empty());
            Ok(())
        };
        times(1500, one);
        assert!(met > 0 && chained > 0, "{met} pairs, {chained} without");
    }
}
