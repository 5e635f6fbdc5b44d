//! A survey of one valley: what lies inside it, section by section, in one sweep.
//!
//! Here stand also the questions that a survey asks of the sky: what an odd body meets on its way,
//! how far a floor rises at least if nothing rests on it, and what would fit into waste.

use super::{
    skyline::{NONE, Skyline},
    valley::{Valley, Valleys},
};

/// What a survey says of one section of a valley.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    /// The sizes of all items inside the valley that cover the section.
    pub inside: u64,
    /// The smallest size of an item inside that ends here or to the left.
    small_left: u64,
    /// The smallest size of an item inside that begins here or to the right.
    small_right: u64,
    /// The distinct bodies that may rest on the floor.
    pub count: u32,
    /// Their numbers, xor-ed: the number, if there is one.
    pub which: u32,
}

const BLANK: Cell =
    Cell { inside: 0, small_left: u64::MAX, small_right: u64::MAX, count: 0, which: 0 };

/// A survey of one valley.
pub(super) struct Survey {
    /// By section; blank between uses.
    pub cells: Vec<Cell>,
    /// No item rests between the floor and this, except where it could rest on the floor.
    pub clear: u64,
    /// No unplaced odd part in the valley is thinner.
    thin: u64,
    /// An item would fit into waste.
    pub dominated: bool,
}

impl Survey {
    pub(super) fn new(sections: usize) -> Self {
        Self { cells: vec![BLANK; sections + 1], clear: u64::MAX, thin: u64::MAX, dominated: false }
    }
}

impl Valleys<'_> {
    /// How far the floor of a section of a valley rises at least if nothing rests on it.
    ///
    /// What comes next over the section rests on something: if it is an item, on a bank, on
    /// another item of the valley beside this section, or on something odd.
    pub(super) fn step_up(&self, v: Valley, x: usize) -> u64 {
        let survey = &self.survey;
        let right = if x + 1 < v.right { survey.cells[x + 1].small_right } else { u64::MAX };
        let up = self.waste(x, v.bank.min(survey.clear));
        let up = up.min(survey.cells[x].small_left).min(right);
        if self.sky.odd_rem[x] == 0 {
            return up.min(survey.thin);
        }
        let next = self.sky.odds[x].iter().filter_map(|&body| self.next_height(body, x, v.floor));
        next.fold(up.min(survey.thin), |up, height| up.min(height - v.floor))
    }

    /// What is wasted if the floor of a section rises so high; it stops at a reserved part.
    pub(super) fn waste(&self, x: usize, to: u64) -> u64 {
        let to = self.sky.reserved[x].last().map_or(to, |&(low, _)| to.min(low));
        to - self.sky.floor[x]
    }

    /// Fills the survey. In a basin that is no valley, every item inside may find a floor.
    pub(super) fn survey(&mut self, v: Valley, is_valley: bool) {
        let sky = &self.sky;
        let survey = &mut self.survey;
        let items = &sky.inst.items;
        survey.clear = u64::MAX;
        survey.thin = u64::MAX;
        survey.dominated = false;
        let plain = sky.inst.odds.is_empty();
        let mut work = 0;
        if !plain {
            let up = v.floor.next_multiple_of(sky.inst.align);
            if up > v.floor {
                survey.clear = up;
            }
            for x in v.left..v.right {
                if let Some(&(_, high)) = sky.reserved[x].last()
                    && high > v.floor
                {
                    survey.clear = survey.clear.min(high);
                }
            }
        }
        for x in v.left..v.right {
            let mut last = NONE;
            let mut id = sky.head[x];
            while id != NONE {
                let item = items[id as usize];
                let end = item.end as usize;
                if end > v.right {
                    break;
                }
                work += 1;
                let twin = last != NONE && items[last as usize] == item;
                last = id;
                id = sky.next[id as usize];
                let here = &mut survey.cells[x];
                here.inside = here.inside.wrapping_add(item.size);
                if twin {
                    let after = &mut survey.cells[end];
                    after.inside = after.inside.wrapping_sub(item.size);
                    continue;
                }
                survey.dominated |= fits_in_waste(sky, x, end, item.size);
                let rests = u32::from(plain || !is_valley || !blocked(sky, last, v.floor));
                here.small_right = here.small_right.min(item.size);
                here.count = here.count.wrapping_add(rests);
                here.which ^= last * rests;
                let after = &mut survey.cells[end];
                after.inside = after.inside.wrapping_sub(item.size);
                after.small_left = after.small_left.min(item.size);
                after.count = after.count.wrapping_sub(rests);
                after.which ^= last * rests;
            }
        }
        self.work += work + (v.right - v.left) as u64 / 4;
        let cells = &mut survey.cells[v.left..v.right];
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
        if !plain && is_valley {
            self.survey_odds(v);
        }
    }

    /// Adds the odd bodies to the counts.
    fn survey_odds(&mut self, v: Valley) {
        for x in v.left..v.right {
            if self.sky.odd_rem[x] == 0 {
                continue;
            }
            for &body in &self.sky.odds[x] {
                if self.sky.is_placed(body) {
                    continue;
                }
                self.work += 1;
                if let Some(part) = self.sky.inst.odd(body).part(x) {
                    self.survey.thin = self.survey.thin.min(part.high - part.low);
                }
                if self.rests_at(body, x, v.floor).is_some() {
                    self.survey.cells[x].count += 1;
                    self.survey.cells[x].which ^= body;
                }
            }
        }
    }

    pub(super) fn wipe(&mut self, v: Valley) {
        self.survey.cells[v.left..=v.right].fill(BLANK);
    }

    pub(super) fn is_blocked(&self, id: u32, floor: u64) -> bool {
        !self.sky.inst.odds.is_empty() && blocked(&self.sky, id, floor)
    }

    /// The offset at which an odd body lies on the floor of a section, if it can lie there.
    pub(super) fn rests_at(&self, body: u32, x: usize, floor: u64) -> Option<u64> {
        let (sky, odd) = (&self.sky, self.sky.inst.odd(body));
        let offset = floor.checked_sub(odd.part(x)?.low)?;
        if sky.is_placed(body) || !offset.is_multiple_of(sky.inst.align) {
            return None;
        }
        let mut looked = 0;
        let is_free = odd.parts.iter().all(|part| {
            let (low, high) = (offset + part.low, offset + part.high);
            high <= sky.limit
                && (part.first as usize..part.end as usize).all(|x| {
                    looked += 1;
                    low >= sky.floor[x] && sky.reserved[x].iter().all(|r| high <= r.0 || r.1 <= low)
                })
        });
        self.odd_work.update(|work| work + looked);
        is_free.then_some(offset)
    }

    /// The lowest height above `floor` at which an odd body's part over a section may lie.
    fn next_height(&self, body: u32, x: usize, floor: u64) -> Option<u64> {
        if self.sky.is_placed(body) {
            return None;
        }
        let low = self.sky.inst.odd(body).part(x)?.low;
        let from = (floor + 1).saturating_sub(low);
        Some(self.earliest(body, from) + low)
    }

    /// The lowest offset from `from` at which an odd body lies clear of everything placed.
    fn earliest(&self, body: u32, from: u64) -> u64 {
        let sky = &self.sky;
        let align = sky.inst.align;
        let mut offset = from.next_multiple_of(align);
        let parts = &sky.inst.odd(body).parts;
        let sections =
            || parts.iter().flat_map(|p| (p.first as usize..p.end as usize).map(move |x| (p, x)));
        for (part, x) in sections() {
            offset = offset.max(sky.floor[x].saturating_sub(part.low).next_multiple_of(align));
        }
        loop {
            let before = offset;
            let mut looked = 0;
            for (part, x) in sections() {
                looked += 1;
                for &(low, high) in sky.reserved[x].iter().rev() {
                    if low < offset + part.high && offset + part.low < high {
                        offset = (high - part.low).next_multiple_of(align);
                    }
                }
            }
            self.odd_work.update(|work| work + looked);
            if offset == before {
                return offset;
            }
        }
    }
}

/// Whether something odd keeps an item off a floor.
fn blocked(sky: &Skyline<'_>, id: u32, floor: u64) -> bool {
    let item = sky.inst.items[id as usize];
    !floor.is_multiple_of(sky.inst.align)
        || sky.reserved[item.first as usize..item.end as usize]
            .iter()
            .any(|reserved| reserved.last().is_some_and(|&(low, _)| low < floor + item.size))
}

/// Whether an item would fit into waste just below the floors.
fn fits_in_waste(sky: &Skyline<'_>, first: usize, end: usize, size: u64) -> bool {
    if size > sky.floor[first] - sky.base[first] || size > sky.floor[end - 1] - sky.base[end - 1] {
        return false;
    }
    let low = sky.base[first..end].iter().max().map_or(0, |&low| low);
    let high = sky.floor[first..end].iter().min().map_or(0, |&high| high);
    low.next_multiple_of(sky.inst.align) + size <= high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::search::{
        instance::tests::{instance, random_problem},
        valley::tests::random_sky,
    };

    #[test]
    fn an_odd_body_lies_as_low_as_it_can() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let valleys = Valleys::new(random_sky(random, &inst)?);
            let sky = &valleys.sky;
            for body in (0u32..).take(inst.bodies()).skip(inst.items.len()) {
                let parts = &inst.odd(body).parts;
                let is_free = |&offset: &u64| {
                    parts.iter().all(|part| {
                        (part.first as usize..part.end as usize).all(|x| {
                            let (low, high) = (offset + part.low, offset + part.high);
                            let clear = |r: &(u64, u64)| high <= r.0 || r.1 <= low;
                            sky.floor[x] <= low && sky.reserved[x].iter().all(clear)
                        })
                    })
                };
                let from = random.int_in_range(0..=20)?;
                let aligned = |offset: &u64| offset.is_multiple_of(inst.align);
                let earliest = |from: u64| (from..1000).filter(aligned).find(is_free).unwrap();
                assert_eq!(valleys.earliest(body, from), earliest(from), "{inst:?}");
                for part in parts {
                    let x = part.first as usize;
                    let floor = sky.floor[x];
                    let above = (!sky.is_placed(body))
                        .then(|| earliest((floor + 1).saturating_sub(part.low)) + part.low);
                    assert_eq!(valleys.next_height(body, x, floor), above);
                    assert!(above.is_none_or(|above| above > floor));
                }
            }
            Ok(())
        })
        .budget_ms(200);
    }

    /// A floor stops at what hangs above it, wherever it was to rise to.
    #[test]
    fn waste_ends_where_something_hangs() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let valleys = Valleys::new(random_sky(random, &inst)?);
            let sky = &valleys.sky;
            for x in 0..inst.sections {
                let to = sky.floor[x] + random.int_in_range(0..=9)?;
                let is_taken = |at: &u64| sky.reserved[x].iter().any(|r| (r.0..r.1).contains(at));
                let waste = (sky.floor[x]..to).take_while(|at| !is_taken(at)).count();
                assert_eq!(valleys.waste(x, to), waste as u64);
            }
            Ok(())
        });
    }
}
