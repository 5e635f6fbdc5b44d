//! Pinned items of a partial packing.
//!
//! A pinned item is placed like all others. A branch ends as soon as the item lies at another offset than its pin's,
//! or a floor rises above that offset before the item is placed.

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
}
