//! The length of a union of ranges that are added and removed, for verification.

use crate::{
    segment_tree::{ancestors, cover},
    sets::distinct,
};

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
        let ends = distinct(ends);
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
        let place = |address: u128| self.ends.partition_point(|&end| end < address);
        let places = place(low)..place(high);
        for node in cover(self.leaves, places.clone()) {
            self.nodes[node].0 += count;
            self.update(node);
        }
        for place in [places.start, places.end - 1] {
            ancestors(self.leaves + place).skip(1).for_each(|node| self.update(node));
        }
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
