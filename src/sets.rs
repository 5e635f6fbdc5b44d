//! Sets of operators or bodies as bits.

pub(crate) use crate::lists::{Lists, NOBODY, narrow};

pub(crate) fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

pub(crate) fn has(set: &[u64], item: u32) -> bool {
    set[item as usize / 64] >> (item % 64) & 1 == 1
}

pub(crate) fn insert(set: &mut [u64], item: u32) {
    set[item as usize / 64] |= 1 << (item % 64);
}

pub(crate) fn remove(set: &mut [u64], item: u32) {
    set[item as usize / 64] &= !(1 << (item % 64));
}

/// The set of all numbers below `count`.
pub(crate) fn full(count: usize) -> Vec<u64> {
    let mut set = vec![u64::MAX; words(count)];
    if let (Some(last), rest @ 1..) = (set.last_mut(), count % 64) {
        *last = (1 << rest) - 1;
    }
    set
}

/// The items of `set` that are not in `other`, ascending.
pub(crate) fn difference(set: &[u64], other: &[u64]) -> Vec<u32> {
    let mut items = Vec::new();
    for (at, (&word, &other)) in set.iter().zip(other).enumerate() {
        let mut word = word & !other;
        while word != 0 {
            items.push(narrow(at * 64) + word.trailing_zeros());
            word &= word - 1;
        }
    }
    items
}
