//! The length of a union of ranges that are added and removed, for verification.

/// The first address of a pool when all pools are laid out one after another. Addresses in one pool
/// are below 2^66, and no plan has 2^32 pools.
pub(crate) fn base(pool: usize) -> u128 {
    (pool as u128 % (1 << 32)) << 66
}

/// The bytes that at least one of many ranges covers: a segment tree over the ends of the ranges.
pub(crate) struct Covered {
    ends: Vec<u128>,
    /// By node: the number of ranges that cover all of it but not all of its parent, and the bytes
    /// covered.
    nodes: Vec<(i64, u128)>,
    leaves: usize,
}

impl Covered {
    pub(crate) fn new(ends: impl Iterator<Item = u128>) -> Self {
        let mut ends: Vec<u128> = ends.collect();
        ends.sort_unstable();
        ends.dedup();
        let leaves = ends.len().max(1).next_power_of_two();
        Self { nodes: vec![(0, 0); 2 * leaves], ends, leaves }
    }

    pub(crate) fn length(&self) -> u128 {
        self.nodes[1].1
    }

    /// Adds a range `count` times; a negative count removes it.
    pub(crate) fn add(&mut self, low: u128, high: u128, count: i64) {
        if low >= high {
            return;
        }
        let low = self.ends.partition_point(|&end| end < low);
        let high = self.ends.partition_point(|&end| end < high);
        let (mut left, mut right) = (low + self.leaves, high + self.leaves);
        while left < right {
            if left % 2 == 1 {
                self.change(left, count);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                self.change(right, count);
            }
            (left, right) = (left / 2, right / 2);
        }
        for leaf in [low + self.leaves, high + self.leaves - 1] {
            let mut node = leaf / 2;
            while node > 0 {
                self.update(node);
                node /= 2;
            }
        }
    }

    fn change(&mut self, node: usize, count: i64) {
        self.nodes[node].0 += count;
        self.update(node);
    }

    fn update(&mut self, node: usize) {
        let bytes = if self.nodes[node].0 > 0 {
            self.width(node)
        } else if node < self.leaves {
            self.nodes[2 * node].1 + self.nodes[2 * node + 1].1
        } else {
            0
        };
        self.nodes[node].1 = bytes;
    }

    /// The number of bytes that a node spans.
    fn width(&self, node: usize) -> u128 {
        let height = self.leaves.ilog2() - node.ilog2();
        let first = (node << height) - self.leaves;
        let end = |at: usize| self.ends.get(at).or(self.ends.last()).copied().unwrap_or(0);
        end(first + (1 << height)) - end(first)
    }
}
