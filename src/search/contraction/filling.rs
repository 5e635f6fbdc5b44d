//! A rectangle that a few items fill without a gap.

use crate::{
    search::{effort::UNIT, state::instance::Item},
    sets::distinct,
};

/// Fills a rectangle with a few items, always on the lowest floor.
pub(super) struct Filling<'a> {
    items: &'a [Item],
    /// The sections at which items begin or end.
    boundaries: Vec<u32>,
    /// The floors between neighbouring boundaries.
    floors: Vec<u64>,
    height: u64,
    /// By item, if it is placed.
    offsets: Vec<Option<u64>>,
    placings: u64,
}

impl<'a> Filling<'a> {
    /// The rectangle that the items fill, and their offsets above it; `None` if none is found.
    pub(super) fn of(items: &'a [Item]) -> Option<(Item, Vec<u64>)> {
        let boundaries = distinct(items.iter().flat_map(|i| [i.first, i.end]));
        let (&first, &end) = boundaries.first().zip(boundaries.last())?;
        let at_first = items.iter().filter(|item| item.first == first);
        let height = at_first.map(|item| item.size).sum();
        let floors = vec![0; boundaries.len() - 1];
        let offsets = vec![None; items.len()];
        let mut filling = Self { items, boundaries, floors, height, offsets, placings: 0 };
        if !filling.fill() {
            return None;
        }
        let offsets: Option<Vec<u64>> = filling.offsets.into_iter().collect();
        Some((Item { first, end, size: height }, offsets?))
    }

    fn fill(&mut self) -> bool {
        let lowest = self.floors.iter().enumerate().min_by_key(|&(_, floor)| floor);
        let Some((at, &floor)) = lowest else { return true };
        if floor == self.height {
            return true;
        }
        for (number, &Item { first, end, size }) in self.items.iter().enumerate() {
            let begins = first == self.boundaries[at];
            if !begins || self.offsets[number].is_some() || floor + size > self.height {
                continue;
            }
            let covered = at..self.boundaries.partition_point(|&boundary| boundary < end);
            if self.floors[covered.clone()].iter().any(|&other| other != floor) {
                continue;
            }
            self.placings += 1;
            if self.placings > UNIT {
                return false;
            }
            self.floors[covered.clone()].fill(floor + size);
            self.offsets[number] = Some(floor);
            if self.fill() {
                return true;
            }
            self.floors[covered].fill(floor);
            self.offsets[number] = None;
        }
        false
    }
}
