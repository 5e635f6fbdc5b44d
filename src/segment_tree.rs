//! A segment tree: each range of places consists of few nodes of a binary tree.
//!
//! The root is node 1, the children of node `i` are `2 * i` and `2 * i + 1`, and place `p` is the
//! leaf `leaves + p`. A range of n places is made up of O(log n) disjoint subtrees, so values kept
//! per node are changed and queried in that time.

use std::{iter, ops::Range};

/// The disjoint subtrees that make up some places.
pub(crate) fn cover(leaves: usize, places: Range<usize>) -> Cover {
    Cover { low: leaves + places.start, high: leaves + places.end, right: None }
}

/// The nodes of a range, level by level from the leaves up.
pub(crate) struct Cover {
    low: usize,
    high: usize,
    /// The right of two nodes on one level.
    right: Option<usize>,
}

impl Iterator for Cover {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            if let Some(right) = self.right.take() {
                return Some(right);
            }
            if self.low >= self.high {
                return None;
            }
            let left = (self.low % 2 == 1).then_some(self.low);
            self.right = (self.high % 2 == 1).then_some(self.high - 1);
            (self.low, self.high) = (self.low.div_ceil(2), self.high / 2);
            if left.is_some() {
                return left;
            }
        }
    }
}

/// A node and all nodes above it, up to the root.
pub(crate) fn ancestors(node: usize) -> impl Iterator<Item = usize> {
    iter::successors(Some(node), |&node| (node > 1).then_some(node / 2))
}

/// The nodes above the first and the last of some places, each once. The number of leaves is a power of
/// two.
pub(crate) fn above(leaves: usize, places: Range<usize>) -> impl Iterator<Item = usize> {
    let up = |place: usize| ancestors(leaves + place).skip(1);
    let (first, last) = (places.start, places.end - 1);
    let right = up(last).zip(up(first)).take_while(|(right, left)| right != left);
    up(first).chain(right.map(|(right, _)| right))
}

/// Finds the largest value of any range of places. For the smallest, use
/// [`Reverse`](std::cmp::Reverse) values.
pub(crate) struct Maxima<T> {
    nodes: Vec<T>,
}

impl<T: Ord + Copy> Maxima<T> {
    pub(crate) fn of(values: &[T]) -> Self {
        // Node 0 and the inner nodes are overwritten or never read.
        let mut nodes = [values, values].concat();
        for node in (1..values.len()).rev() {
            nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
        }
        Self { nodes }
    }

    /// The largest value of some places; `None` if there is no place.
    pub(crate) fn largest(&self, places: Range<usize>) -> Option<T> {
        cover(self.nodes.len() / 2, places).map(|node| self.nodes[node]).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree has eight leaves, 8 to 15.
    #[test]
    fn a_range_of_places_has_few_nodes_and_each_of_those_above_once() {
        for first in 0..8usize {
            for last in first..8 {
                let nodes: Vec<usize> = cover(8, first..last + 1).collect();
                let leaves = |node: usize| {
                    let level = node.ilog2();
                    (node << (3 - level))..((node + 1) << (3 - level))
                };
                let mut covered: Vec<usize> = nodes.iter().flat_map(|&node| leaves(node)).collect();
                covered.sort_unstable();
                assert_eq!(covered, (8 + first..=8 + last).collect::<Vec<_>>());
                assert!(!nodes.iter().any(|node| nodes.contains(&(node ^ 1))), "{nodes:?}");
                let mut parents: Vec<usize> = above(8, first..last + 1).collect();
                parents.sort_unstable();
                let is_above = |&node: &usize| {
                    [8 + first, 8 + last].iter().any(|leaf| leaves(node).contains(leaf))
                };
                assert_eq!(parents, (1..8).filter(is_above).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_largest_value_of_every_range_is_found_for_any_number_of_places() {
        let values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];
        for places in 1..values.len() {
            let maxima = Maxima::of(&values[..places]);
            for first in 0..places {
                for last in first..places {
                    let expected = values[first..=last].iter().max().copied();
                    assert_eq!(maxima.largest(first..last + 1), expected);
                }
            }
        }
    }
}
