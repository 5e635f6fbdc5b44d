//! Pinned items of a partial packing.
//!
//! Such an item is placed as all others are, and a branch ends where it comes to lie elsewhere than it is pinned, or is
//! buried. By itself, that is noticed late. If pins are *heeded*, no item may rest where a pinned one is still to come.

use crate::search::state::instance::Span;
use crate::search::state::skyline::{Skyline, UNPLACED};

impl Skyline<'_> {
    /// Returns whether some items are pinned.
    pub fn has_pins(&self) -> bool {
        !self.pins.is_empty()
    }

    /// Returns whether each pinned item over a section lies at its offset, or may do so later.
    pub fn pins_hold(&self, x: usize) -> bool {
        let holds = |&(id, offset): &(u32, u64)| match self.offsets[id as usize] {
            UNPLACED => self.floor[x] <= offset,
            placed => placed == offset,
        };
        self.pins.get(x).is_none_or(|pins| pins.iter().all(holds))
    }

    /// Keeps free the places of pinned items that are left, if there are any.
    pub fn reserve_pins(&mut self) {
        self.reserves_pins = self.has_pins();
    }

    /// Returns whether the places of pinned items that are left are kept free.
    pub fn reserves_pins(&self) -> bool {
        self.reserves_pins
    }

    /// Returns whether an item is pinned and its place is kept free.
    pub fn is_heeded(&self, id: u32) -> bool {
        self.reserves_pins && self.inst.pins[id as usize].is_some()
    }

    /// The places of pinned items left over a section, the lowest first, if they are kept free.
    pub fn kept_free(&self, x: usize) -> impl Iterator<Item = Span> {
        let pins = if self.reserves_pins { &self.pins[x][..] } else { &[] };
        let left = pins.iter().filter(|&&(id, _)| !self.is_placed(id));
        left.map(|&(id, low)| Span { low, high: low + self.inst.items[id as usize].size })
    }

    /// Returns whether an item that rests on a floor takes a place that is kept free, or lies elsewhere than it is
    /// pinned.
    pub fn takes_kept(&self, id: u32, floor: u64) -> bool {
        if !self.reserves_pins {
            return false;
        }
        if let Some(offset) = self.inst.pins[id as usize] {
            return offset != floor;
        }
        let item = &self.inst.items[id as usize];
        let meets = |kept: Span| kept.low < floor + item.size;
        item.sections().any(|x| self.kept_free(x).next().is_some_and(meets))
    }
}
