//! Runs, valleys and basins: the places where bodies can rest.
//!
//! A *run* is a range of neighbouring sections with one floor. It is a *valley* if on either side
//! there is a higher floor, a *bank*, or a boundary that no item left crosses. A *basin* is the
//! widest range around a run that is nowhere higher.

use std::ops::Range;

use crate::search::state::skyline::Skyline;

/// A valley, or a basin around a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Valley {
    pub left: usize,
    pub right: usize,
    pub floor: u64,
    /// The lower of the two banks; `u64::MAX` if nothing crosses either.
    pub bank: u64,
}

impl Valley {
    /// The basin around a run, which is the run itself if that is a valley.
    pub fn around(sky: &Skyline<'_>, run: Range<usize>) -> Self {
        let Range { start: mut left, end: mut right } = run;
        let floor = sky.floor(left);
        while sky.item_crosses(left) && sky.floor(left - 1) <= floor {
            left -= 1;
        }
        while sky.item_crosses(right) && sky.floor(right) <= floor {
            right += 1;
        }
        let before = if sky.item_crosses(left) { sky.floor(left - 1) } else { u64::MAX };
        let after = if sky.item_crosses(right) { sky.floor(right) } else { u64::MAX };
        Self { left, right, floor, bank: before.min(after) }
    }

    pub fn sections(&self) -> Range<usize> {
        self.left..self.right
    }
}

/// The first section of the run of a section.
pub fn run_start(sky: &Skyline<'_>, mut x: usize) -> usize {
    while sky.item_crosses(x) && sky.floor(x - 1) == sky.floor(x) {
        x -= 1;
    }
    x
}

/// The end of the run of a section.
pub fn run_end(sky: &Skyline<'_>, mut x: usize) -> usize {
    x += 1;
    while sky.item_crosses(x) && sky.floor(x - 1) == sky.floor(x) {
        x += 1;
    }
    x
}

/// The run of a section.
pub fn run_of(sky: &Skyline<'_>, x: usize) -> Range<usize> {
    run_start(sky, x)..run_end(sky, x)
}
