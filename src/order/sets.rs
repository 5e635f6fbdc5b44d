//! Sets of operators as bits, and lists of lists in one allocation.

/// Stands for no operator, or for no chunk.
pub(super) const NOBODY: u32 = u32::MAX;

/// Lists of small numbers, stored one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    pub(super) fn new<I: IntoIterator<Item = u32>>(lists: impl IntoIterator<Item = I>) -> Self {
        let mut starts = vec![0];
        let mut items = Vec::new();
        for list in lists {
            items.extend(list);
            starts.push(narrow(items.len()));
        }
        Self { starts, items }
    }

    /// Returns, for each of `count` numbers, the lists that contain it, ascending.
    pub(super) fn inverted(&self, count: usize) -> Self {
        let mut lists = vec![Vec::new(); count];
        for list in 0..self.len() {
            for &item in self.get(list) {
                lists[item as usize].push(narrow(list));
            }
        }
        Self::new(lists)
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn get(&self, list: usize) -> &[u32] {
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// The number of entries in all lists.
    pub(super) fn entries(&self) -> usize {
        self.items.len()
    }
}

/// Converts an index to its stored form; sequences have fewer than 2^32 tensors, and no more
/// operators that matter.
pub(super) fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

pub(super) fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

pub(super) fn has(set: &[u64], item: u32) -> bool {
    set[item as usize / 64] >> (item % 64) & 1 == 1
}

pub(super) fn insert(set: &mut [u64], item: u32) {
    set[item as usize / 64] |= 1 << (item % 64);
}

pub(super) fn remove(set: &mut [u64], item: u32) {
    set[item as usize / 64] &= !(1 << (item % 64));
}

/// The set of all numbers below `count`.
pub(super) fn full(count: usize) -> Vec<u64> {
    let mut set = vec![u64::MAX; words(count)];
    if let (Some(last), rest @ 1..) = (set.last_mut(), count % 64) {
        *last = (1 << rest) - 1;
    }
    set
}

/// The items of `set` that are not in `other`, ascending.
pub(super) fn difference(set: &[u64], other: &[u64]) -> Vec<u32> {
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
