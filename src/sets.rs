//! Sets of operators or bodies as bits, sorted sets and ranges, and disjoint sets.

use std::ops::Range;

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

/// The items in ascending order, each once.
pub(crate) fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// Sorts ranges and merges those that overlap or touch.
pub(crate) fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let is_one = next.start <= last.end;
        last.end = if is_one { last.end.max(next.end) } else { last.end };
        is_one
    });
    ranges
}

/// The representative of a disjoint set: a union-find lookup with path halving, so that long chains shorten quickly. At
/// first, each item is its own parent.
pub(crate) fn find(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

/// Joins the disjoint sets of two items. Returns their representatives before that; the first one now represents both.
pub(crate) fn join(parents: &mut [usize], a: usize, b: usize) -> (usize, usize) {
    let (a, b) = (find(parents, a), find(parents, b));
    parents[b] = a;
    (a, b)
}
