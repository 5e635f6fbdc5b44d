//! Ranges of tasks as few nodes of a complete binary tree: the root is 1, the children of node i
//! are 2i and 2i + 1, task t is the leaf `leaves + t`.

/// The disjoint subtrees, O(log n), that make up the tasks from `first` to `last`.
pub(super) fn cover(leaves: usize, first: usize, last: usize) -> impl Iterator<Item = usize> {
    let (mut low, mut high) = (first + leaves, last + leaves + 1);
    let level = move || {
        if low >= high {
            return None;
        }
        let left = (low % 2 == 1).then_some(low);
        let right = (high % 2 == 1).then_some(high - 1);
        (low, high) = (low.div_ceil(2), high / 2);
        Some([left, right])
    };
    std::iter::from_fn(level).flatten().flatten()
}

/// The node and all subtrees that hold it, up to the root.
pub(super) fn ancestors(leaf: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(leaf), |&node| (node > 1).then_some(node / 2))
}
