//! A survey of one valley: the bodies inside it, section by section, in one sweep.

use std::cell;

use crate::search::{Stage, reasoning::valley::Valley, state::skyline::Skyline};

/// The result of a survey for one section of a valley.
#[derive(Clone, Copy)]
pub struct Cell {
    /// The sum of the sizes of the items inside the valley that cover the section.
    pub inside: u64,
    /// The smallest size of an item inside that ends here or to the left.
    small_left: u64,
    /// The smallest size of an item inside that begins here or to the right.
    small_right: u64,
    /// The number of distinct bodies that may rest on the floor.
    pub count: u32,
    /// The exclusive or of the numbers of these bodies: if there is only one, its number.
    pub which: u32,
}

const BLANK: Cell =
    Cell { inside: 0, small_left: u64::MAX, small_right: u64::MAX, count: 0, which: 0 };

/// A survey of one valley.
#[derive(Default)]
pub struct Survey {
    /// By section; blank between uses.
    pub cells: Vec<Cell>,
    /// Between the floor and this height, only items rest that could also rest on the floor.
    pub clear: u64,
    /// No part of a staircase left in the valley is smaller.
    thin: u64,
    /// True if an item would fit into waste.
    pub dominated: bool,
    /// Items and staircases examined, in all surveys.
    work: u64,
    /// The number of sections of staircases examined.
    pub examined: cell::Cell<u64>,
}

impl Survey {
    pub fn new(sections: usize) -> Self {
        Self { cells: vec![BLANK; sections + 1], ..Self::default() }
    }

    /// The number of bodies examined so far; four sections of a staircase count as one.
    pub fn work(&self) -> u64 {
        self.work + self.examined.get() / 4
    }

    /// Surveys a valley, or a basin that is not a valley. In such a basin, every item inside counts as one that may
    /// rest on the floor.
    pub fn fill(&mut self, sky: &Skyline<'_>, v: Valley, is_valley: bool) {
        let items = &sky.inst.items;
        self.clear = u64::MAX;
        self.thin = u64::MAX;
        self.dominated = false;
        let plain = sky.inst.staircases.is_empty();
        let has_waste = sky.inst.stages.has(Stage::Waste);
        // If the rounded size just fits, the true one may not.
        let spare = u64::from(sky.inst.exact.is_some());
        let mut work = 0;
        if !plain {
            let up = v.floor.next_multiple_of(sky.inst.align);
            if up > v.floor {
                self.clear = up;
            }
            for x in v.sections() {
                if let Some(part) = sky.lowest_reserved(x)
                    && part.high > v.floor
                {
                    self.clear = self.clear.min(part.high);
                }
            }
        }
        for x in v.sections() {
            let mut last = None;
            for id in sky.items_from(x) {
                let item = &items[id as usize];
                let end = item.end as usize;
                if end > v.right {
                    break;
                }
                work += 1;
                let is_same = last.replace(item) == Some(item);
                let here = &mut self.cells[x];
                here.inside = here.inside.wrapping_add(item.size);
                if is_same {
                    let after = &mut self.cells[end];
                    after.inside = after.inside.wrapping_sub(item.size);
                    continue;
                }
                self.dominated |= has_waste && fits_in_waste(sky, x, end, item.size + spare);
                let rests = u32::from(plain || !is_valley || !blocked(sky, id, v.floor));
                here.small_right = here.small_right.min(item.size);
                here.count = here.count.wrapping_add(rests);
                here.which ^= id * rests;
                let after = &mut self.cells[end];
                after.inside = after.inside.wrapping_sub(item.size);
                after.small_left = after.small_left.min(item.size);
                after.count = after.count.wrapping_sub(rests);
                after.which ^= id * rests;
            }
        }
        self.work += work + (v.right - v.left) as u64 / 4;
        self.accumulate(v);
        if !plain && is_valley {
            self.add_staircases(sky, v);
        }
    }

    /// Sums up the changes at each section.
    fn accumulate(&mut self, v: Valley) {
        let cells = &mut self.cells[v.sections()];
        let mut before = cells[0];
        for cell in &mut cells[1..] {
            cell.inside = cell.inside.wrapping_add(before.inside);
            cell.count = cell.count.wrapping_add(before.count);
            cell.which ^= before.which;
            cell.small_left = cell.small_left.min(before.small_left);
            before = *cell;
        }
        let mut small = u64::MAX;
        for cell in cells.iter_mut().rev() {
            small = small.min(cell.small_right);
            cell.small_right = small;
        }
    }

    /// Counts the staircases that may rest on the floor.
    fn add_staircases(&mut self, sky: &Skyline<'_>, v: Valley) {
        for x in v.sections() {
            if !sky.has_staircases(x) {
                continue;
            }
            for &body in sky.staircases(x) {
                if sky.is_placed(body) {
                    continue;
                }
                self.work += 1;
                if let Some(part) = sky.inst.staircase(body).part(x) {
                    self.thin = self.thin.min(part.high - part.low);
                }
                if self.offset_on_floor(sky, body, x, v.floor).is_some() {
                    self.cells[x].count += 1;
                    self.cells[x].which ^= body;
                }
            }
        }
    }

    /// Makes a survey blank again.
    pub fn wipe(&mut self, v: Valley) {
        self.cells[v.left..=v.right].fill(BLANK);
    }

    /// The least rise of the floor of a section of a valley if nothing rests on it.
    ///
    /// The next body over the section rests on something: an item rests on a bank, on another item
    /// of the valley beside this section, or on a staircase.
    pub fn step_up(&self, sky: &Skyline<'_>, v: Valley, x: usize) -> u64 {
        let right = if x + 1 < v.right { self.cells[x + 1].small_right } else { u64::MAX };
        let up = wasted_by(sky, x, v.bank.min(self.clear));
        let up = up.min(self.cells[x].small_left).min(right).min(self.thin);
        if !sky.has_staircases(x) {
            return up;
        }
        let bodies = sky.staircases(x).iter();
        let heights = bodies.filter_map(|&body| self.next_height(sky, body, x, v.floor));
        heights.fold(up, |up, height| up.min(height - v.floor))
    }
}

/// The waste if the floor of a section rises to a height or, below that, to the lowest reserved
/// part.
pub fn wasted_by(sky: &Skyline<'_>, x: usize, to: u64) -> u64 {
    sky.lowest_reserved(x).map_or(to, |part| to.min(part.low)) - sky.floor(x)
}

/// Returns whether a staircase or the alignment keeps an item off a floor.
pub fn is_blocked(sky: &Skyline<'_>, id: u32, floor: u64) -> bool {
    !sky.inst.staircases.is_empty() && blocked(sky, id, floor)
}

fn blocked(sky: &Skyline<'_>, id: u32, floor: u64) -> bool {
    let item = sky.inst.items[id as usize];
    let meets = |x| sky.lowest_reserved(x).is_some_and(|part| part.low < floor + item.size);
    !floor.is_multiple_of(sky.inst.align) || item.sections().any(meets)
}

/// Returns whether an item would fit into the waste just below the floors.
fn fits_in_waste(sky: &Skyline<'_>, first: usize, end: usize, size: u64) -> bool {
    if size > sky.waste(first) || size > sky.waste(end - 1) {
        return false;
    }
    let waste = sky.common_waste(first..end);
    waste.low.next_multiple_of(sky.inst.align) + size <= waste.high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        search::samples::{instance, random_problem, random_sky},
        seeds::times,
    };

    #[test]
    fn a_rising_floor_stops_at_a_reserved_part() {
        times(600, |random| {
            let inst = instance(&random_problem(random)?);
            let sky = random_sky(random, &inst)?;
            for x in 0..inst.sections {
                let to = sky.floor(x) + random.int_in_range(0..=9)?;
                let is_taken =
                    |at: &u64| sky.reserved(x).iter().any(|r| (r.low..r.high).contains(at));
                let waste = (sky.floor(x)..to).take_while(|at| !is_taken(at)).count();
                assert_eq!(wasted_by(&sky, x, to), waste as u64);
            }
            Ok(())
        });
    }
}
