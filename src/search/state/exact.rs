//! True sizes beside rounded ones.
//!
//! With rounded sizes, the search meets few different floors. In parallel, every item is placed with its true
//! size, as low as the items before it allow, and a branch ends as soon as the true sizes exceed the true
//! limit. So every packing that is found is valid for the true sizes; but if none is found, there may still be one.

use crate::Bytes;
use crate::search::state::instance::{ExactSizes, Item};

/// A partial packing with true sizes. Bodies that are not placed are *left*.
pub struct ExactPacking<'a> {
    exact: &'a ExactSizes,
    /// The largest sum of sizes over a section.
    bound: Bytes,
    /// Nothing may end higher.
    limit: Bytes,
    /// By section.
    floor: Vec<Bytes>,
    /// By section: the sum of the sizes of the items that are left.
    left: Vec<Bytes>,
    /// By item.
    offsets: Vec<Bytes>,
    /// The floors below placed items, for undoing.
    below: Vec<Bytes>,
}

impl<'a> ExactPacking<'a> {
    pub fn new(exact: &'a ExactSizes, items: &[Item], sections: usize) -> Self {
        let mut left = vec![0; sections];
        for (item, size) in items.iter().zip(&exact.sizes) {
            for sum in &mut left[item.sections()] {
                *sum += size;
            }
        }
        let offsets = vec![0; items.len()];
        let bound = left.iter().copied().max().unwrap_or(0);
        Self { exact, bound, limit: 0, floor: vec![0; sections], left, offsets, below: Vec::new() }
    }

    /// Sets the limit; returns by how much it exceeds the bound.
    pub fn set_limit(&mut self, limit: Bytes) -> Bytes {
        self.limit = limit;
        limit.saturating_sub(self.bound)
    }

    /// The offset of each item; meaningless for items that are not placed.
    pub fn offsets(&self) -> &[Bytes] {
        &self.offsets
    }

    /// Places an item on the highest floor of its sections.
    pub fn place(&mut self, id: u32, item: &Item) {
        let size = self.exact.sizes[id as usize];
        let floors = &mut self.floor[item.sections()];
        let offset = floors.iter().copied().max().unwrap_or(0);
        self.below.extend_from_slice(floors);
        floors.fill(offset + size);
        for sum in &mut self.left[item.sections()] {
            *sum -= size;
        }
        self.offsets[id as usize] = offset;
    }

    /// Takes back the item that was placed last.
    pub fn take_back(&mut self, id: u32, item: &Item) {
        let size = self.exact.sizes[id as usize];
        let from = self.below.len() - item.sections().len();
        self.floor[item.sections()].copy_from_slice(&self.below[from..]);
        self.below.truncate(from);
        for sum in &mut self.left[item.sections()] {
            *sum += size;
        }
    }

    /// Returns whether the items over a section fit under the limit if nothing more is wasted.
    pub fn fits(&self, x: usize) -> bool {
        self.floor[x] + self.left[x] <= self.limit
    }

    /// The room above the floor of a section.
    pub fn room(&self, x: usize) -> Bytes {
        self.limit.saturating_sub(self.floor[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    /// Items rest on those placed before them, and taking them back restores every floor.
    #[test]
    fn items_rest_on_the_highest_floor_below_them() {
        const LIMIT: Bytes = 20;
        times(1000, |random| {
            let (mut items, mut sizes) = (Vec::new(), Vec::new());
            for _ in 0..random.int_in_range(1..=8)? {
                let first = random.int_in_range(0..=6)?;
                items.push(Item { first, end: first + random.int_in_range(1..=4)?, size: 1 });
                sizes.push(random.int_in_range(1..=9)?);
            }
            let exact = ExactSizes { sizes, alignment: 1 };
            let mut packing = ExactPacking::new(&exact, &items, 10);
            let over = |x| {
                let over =
                    items.iter().zip(&exact.sizes).filter(|(i, _)| i.sections().contains(&x));
                over.map(|(_, size)| size).sum::<Bytes>()
            };
            let bound = (0..10).map(over).max().unwrap_or(0);
            assert_eq!(packing.set_limit(LIMIT), LIMIT.saturating_sub(bound));
            let mut before = Vec::new();
            for (id, item) in items.iter().enumerate() {
                before.push((packing.floor.clone(), packing.left.clone()));
                packing.place(u32::try_from(id).unwrap(), item);
                let placed = items.iter().zip(packing.offsets()).zip(&exact.sizes).take(id);
                let below = placed.filter(|((i, _), _)| i.first < item.end && item.first < i.end);
                let floor = below.map(|((_, offset), size)| offset + size).max().unwrap_or(0);
                assert_eq!(packing.offsets()[id], floor);
                let top = floor + exact.sizes[id];
                for x in item.sections() {
                    assert_eq!(packing.room(x), LIMIT.saturating_sub(top));
                    let left: Bytes = (items.iter().zip(&exact.sizes).skip(id + 1))
                        .filter(|(i, _)| i.sections().contains(&x))
                        .map(|(_, size)| size)
                        .sum();
                    assert_eq!(packing.fits(x), top + left <= LIMIT);
                }
            }
            for (id, item) in items.iter().enumerate().rev() {
                packing.take_back(u32::try_from(id).unwrap(), item);
                assert_eq!(before.pop(), Some((packing.floor.clone(), packing.left.clone())));
            }
            Ok(())
        });
    }
}
