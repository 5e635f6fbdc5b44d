//! The bytes of a pool that pins and reserved ranges leave free at one moment.

use std::ops::Range;

use crate::{
    Bytes,
    segment_tree::{ancestors, cover},
    sets::distinct,
};

/// Counts the free bytes below any address while ranges are taken and released. A segment tree over
/// the addresses where ranges begin and end, as for the area of a union of rectangles.
pub(super) struct FreeBytes {
    /// The ends of all ranges, ascending, from 0; above the last one everything is free.
    addresses: Vec<Bytes>,
    /// By node, the root at 1: the number of taken ranges that cover all of it, not counting those that
    /// cover all of its parent.
    covers: Vec<u32>,
    /// By node: the bytes that no range within it covers.
    free: Vec<Bytes>,
    leaves: usize,
}

impl FreeBytes {
    /// Creates a tree in which all addresses are free. Ranges may begin and end only at `ends`.
    pub(super) fn new(ends: impl Iterator<Item = Bytes>) -> Self {
        let addresses = distinct(ends.chain([0]));
        let leaves = (addresses.len() - 1).next_power_of_two();
        let mut tree =
            Self { addresses, covers: vec![0; 2 * leaves], free: vec![0; 2 * leaves], leaves };
        for (leaf, pair) in tree.addresses.windows(2).enumerate() {
            tree.free[leaves + leaf] = pair[1] - pair[0];
        }
        for node in (1..leaves).rev() {
            tree.free[node] = tree.free[2 * node] + tree.free[2 * node + 1];
        }
        tree
    }

    /// Takes a range.
    pub(super) fn take(&mut self, range: &Range<Bytes>) {
        self.change(range, |covers| covers + 1);
    }

    /// Releases a range that was taken.
    pub(super) fn release(&mut self, range: &Range<Bytes>) {
        self.change(range, |covers| covers - 1);
    }

    fn change(&mut self, range: &Range<Bytes>, count: impl Fn(u32) -> u32) {
        let place = |address| self.addresses.partition_point(|&at| at < address);
        for covered in cover(self.leaves, place(range.start)..place(range.end)) {
            self.covers[covered] = count(self.covers[covered]);
            for node in ancestors(covered) {
                self.free[node] = match self.covers[node] {
                    0 if node < self.leaves => self.free[2 * node] + self.free[2 * node + 1],
                    // A leaf of a range is between two addresses.
                    0 => {
                        self.addresses[node - self.leaves + 1] - self.addresses[node - self.leaves]
                    }
                    _ => 0,
                };
            }
        }
    }

    /// The lowest address below which this many bytes are free; 0 for 0 bytes.
    pub(super) fn height(&self, mut bytes: Bytes) -> Bytes {
        if bytes == 0 {
            return 0;
        }
        if bytes > self.free[1] {
            let last = self.addresses.last().copied().unwrap_or(0);
            return last.saturating_add(bytes - self.free[1]);
        }
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.free[node] < bytes {
                bytes -= self.free[node];
                node += 1;
            }
        }
        self.addresses[node - self.leaves] + bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_those_of_counting_bytes() {
        let ranges = [3..5_u64, 5..9, 12..20, 0..1];
        for taken in 0..16_u32 {
            let mut tree = FreeBytes::new(ranges.iter().flat_map(|range| [range.start, range.end]));
            let is_taken = |at: usize| taken >> at & 1 == 1;
            // Take all, then give back those that are not taken.
            for range in &ranges {
                tree.take(range);
            }
            for (_, range) in ranges.iter().enumerate().filter(|&(at, _)| !is_taken(at)) {
                tree.release(range);
            }
            let is_free = |address: u64| {
                !ranges
                    .iter()
                    .enumerate()
                    .any(|(at, range)| is_taken(at) && range.contains(&address))
            };
            let free: Vec<u64> = (0..40).filter(|&address| is_free(address)).collect();
            for (bytes, last) in (1..20).zip(&free) {
                assert_eq!(tree.height(bytes), last + 1, "{taken} {bytes}");
            }
            assert_eq!(tree.height(0), 0);
        }
    }
}
