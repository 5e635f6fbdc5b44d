//! Lists of lists of small numbers, in one allocation.

/// Stands for no operator, or for no chunk.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Lists of small numbers, stored one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    pub(crate) fn new<I: IntoIterator<Item = u32>>(lists: impl IntoIterator<Item = I>) -> Self {
        let mut starts = vec![0];
        let mut items = Vec::new();
        for list in lists {
            items.extend(list);
            starts.push(narrow(items.len()));
        }
        Self { starts, items }
    }

    /// Returns, for each of `count` numbers, the lists that contain it, ascending.
    pub(crate) fn inverted(&self, count: usize) -> Self {
        let mut lists = vec![Vec::new(); count];
        for list in 0..self.len() {
            for &item in self.get(list) {
                lists[item as usize].push(narrow(list));
            }
        }
        Self::new(lists)
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    pub(crate) fn get(&self, list: usize) -> &[u32] {
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// The number of entries in all lists.
    pub(crate) fn entries(&self) -> usize {
        self.items.len()
    }
}

/// Converts an index to its stored form; sequences have fewer than 2^32 tensors, and no more
/// operators that matter.
#[inline]
pub(crate) fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
