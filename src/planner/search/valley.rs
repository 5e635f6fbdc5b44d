//! Valleys: where the next body goes, and what follows of itself.
//!
//! A *valley* is a run of sections with one floor between higher banks. An item that covers one
//! of its sections either lies wholly inside it, and may rest on its floor, or crosses a bank, and
//! lies no lower than the lower bank. So, over any section of any valley, the next body is one of
//! few, or there is waste on the floor. The search branches on exactly that, over the section with
//! the fewest ways to go on; it need not be the lowest, and independent places are never permuted.
//!
//! Conclusions that need no branching:
//!
//! 1. What crosses the banks must fit above the lower of them (or all is lost).
//! 2. Where nothing inside the valley remains, the floor rises to the lower bank.
//! 3. Where one item remains and any waste is too much, it is placed.
//! 4. No item may fit wholly into waste: the same packing with the item there is as good, and
//!    lower. Of all packings, the search looks for the one with the least sum of offsets.
//!
//! 1 and 2 hold for a *basin* too, the widest range around a run that is nowhere higher.

use std::cell::Cell;

use super::{
    skyline::{NONE, Skyline},
    survey::Survey,
};

/// Basins of more sections are not looked at: it costs more than it saves.
const WIDE: usize = 64;

/// As if every section had been at fault that often before.
const FAULTLESS: u64 = 300;

#[derive(Clone, Copy, Debug)]
pub(super) struct Valley {
    pub left: usize,
    pub right: usize,
    pub floor: u64,
    /// The lower of the two banks; `u64::MAX` if nothing crosses either.
    pub bank: u64,
}

/// Where to branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pivot {
    pub valley: Valley,
    pub section: usize,
    /// How far the floor rises if nothing rests on it, if the section can waste that.
    pub waste: Option<u64>,
    key: (u64, u64),
}

/// How sections are compared for branching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Taste {
    /// The fewest branches.
    #[default]
    Few,
    /// The same, but waste counts half.
    WasteHalf,
    /// The same, but waste counts three times.
    WasteThrice,
    /// Branches divided by how often the section was at fault.
    Fault,
}

/// What a look at a valley was good for.
enum Look {
    Dead,
    Quiet,
    Changed(usize, usize),
}

/// A quiet look, good until something in `left - 1..=right` changes.
#[derive(Clone, Copy)]
struct Seen {
    clock: u64,
    run_right: usize,
    left: usize,
    right: usize,
    pivot: Option<Pivot>,
}

pub(super) struct Valleys<'a> {
    pub sky: Skyline<'a>,
    pub taste: Taste,
    /// By section: how often all was lost there, in this and earlier rounds.
    pub faults: Vec<u64>,
    /// Items looked at.
    pub work: u64,
    /// Sections of odd bodies looked at.
    pub odd_work: Cell<u64>,
    seen: Vec<Seen>,
    pub(super) survey: Survey,
}

impl<'a> Valleys<'a> {
    pub(super) fn new(sky: Skyline<'a>) -> Self {
        let sections = sky.inst.sections;
        let seen = Seen { clock: 0, run_right: usize::MAX, left: 0, right: 0, pivot: None };
        Self {
            sky,
            taste: Taste::Few,
            faults: vec![0; sections],
            work: 0,
            odd_work: Cell::new(0),
            seen: vec![seen; sections],
            survey: Survey::new(sections),
        }
    }

    /// Bodies looked at so far, a few sections of an odd one as one.
    pub(super) fn work(&self) -> u64 {
        self.work + self.odd_work.get() / 4
    }

    /// Draws all conclusions from changes in the sections `a..b`. False: all is lost.
    pub(super) fn settle(&mut self, a: usize, b: usize) -> bool {
        let sections = self.sky.inst.sections;
        let mut x = self.run_start(a.saturating_sub(1));
        let mut end = (b + 1).min(sections);
        let mut climbed = false;
        loop {
            let look = if x < end {
                if !self.sky.live(x) {
                    x += 1;
                    continue;
                }
                let right = self.run_end(x);
                let look = self.look(x, right);
                x = right;
                look
            } else if climbed {
                return true;
            } else {
                climbed = true;
                self.look_around(a)
            };
            match look {
                Look::Dead => return false,
                Look::Quiet => {}
                Look::Changed(a, b) => {
                    x = self.run_start(a.saturating_sub(1));
                    end = end.max((b + 1).min(sections));
                }
            }
        }
    }

    /// The section of `a..b` to branch on, if anything is yet to come there.
    pub(super) fn pivot(&mut self, a: usize, b: usize) -> Option<Pivot> {
        let mut best: Option<Pivot> = None;
        let mut x = a;
        while x < b {
            if !self.sky.live(x) {
                x += 1;
                continue;
            }
            let right = self.run_end(x);
            if let Some(pivot) = self.pivot_of_run(x, right)
                && best.is_none_or(|best| pivot.key < best.key)
            {
                best = Some(pivot);
            }
            x = right;
        }
        best
    }

    fn pivot_of_run(&mut self, x: usize, right: usize) -> Option<Pivot> {
        if self.is_seen(x, right) {
            return self.seen[x].pivot;
        }
        let valley = self.basin(x, right);
        if (valley.left, valley.right) != (x, right) {
            return None;
        }
        self.survey(valley, true);
        let pivot = self.best_section(valley);
        self.wipe(valley);
        self.remember(valley, (x, right), pivot);
        pivot
    }

    /// The bodies that may rest on the floor at the pivot, each with its offset.
    pub(super) fn candidates(&self, pivot: &Pivot, into: &mut Vec<(u32, u64)>) {
        let Pivot { valley, section, .. } = *pivot;
        let items = &self.sky.inst.items;
        for x in valley.left..=section {
            let mut last = NONE;
            let mut id = self.sky.head[x];
            while id != NONE && items[id as usize].end as usize <= valley.right {
                let item = items[id as usize];
                let twin = last != NONE && items[last as usize] == item;
                if !twin && item.end as usize > section && !self.is_blocked(id, valley.floor) {
                    into.push((id, valley.floor));
                }
                last = id;
                id = self.sky.next[id as usize];
            }
        }
        if self.sky.odd_rem[section] > 0 {
            for &body in &self.sky.odds[section] {
                if let Some(offset) = self.rests_at(body, section, valley.floor) {
                    into.push((body, offset));
                }
            }
        }
    }

    fn run_start(&self, mut x: usize) -> usize {
        let sky = &self.sky;
        while sky.cross[x] > 0 && sky.floor[x - 1] == sky.floor[x] {
            x -= 1;
        }
        x
    }

    fn run_end(&self, mut x: usize) -> usize {
        let sky = &self.sky;
        x += 1;
        while sky.cross[x] > 0 && sky.floor[x - 1] == sky.floor[x] {
            x += 1;
        }
        x
    }

    /// The widest range around a run that is nowhere higher; the run itself, if it is a valley.
    fn basin(&self, mut left: usize, mut right: usize) -> Valley {
        let sky = &self.sky;
        let floor = sky.floor[left];
        while sky.cross[left] > 0 && sky.floor[left - 1] <= floor {
            left -= 1;
        }
        while sky.cross[right] > 0 && sky.floor[right] <= floor {
            right += 1;
        }
        let before = if sky.cross[left] == 0 { u64::MAX } else { sky.floor[left - 1] };
        let after = if sky.cross[right] == 0 { u64::MAX } else { sky.floor[right] };
        Valley { left, right, floor, bank: before.min(after) }
    }

    fn is_seen(&self, x: usize, right: usize) -> bool {
        let seen = &self.seen[x];
        seen.run_right == right
            && self.sky.stamp[seen.left..seen.right].iter().all(|&stamp| stamp <= seen.clock)
    }

    fn remember(&mut self, v: Valley, run: (usize, usize), pivot: Option<Pivot>) {
        if self.sky.odd_rem[v.left..v.right].iter().any(|&odd| odd > 0) {
            // What far parts of an odd body meet counts, too.
            self.seen[run.0].run_right = usize::MAX;
            return;
        }
        self.seen[run.0] = Seen {
            clock: self.sky.clock,
            run_right: run.1,
            left: v.left.saturating_sub(1),
            right: (v.right + 1).min(self.sky.inst.sections),
            pivot,
        };
    }

    /// Looks at a run and the basin around it.
    fn look(&mut self, x: usize, right: usize) -> Look {
        if self.is_seen(x, right) {
            return Look::Quiet;
        }
        let basin = self.basin(x, right);
        let is_valley = (basin.left, basin.right) == (x, right);
        if !is_valley && (basin.bank == u64::MAX || basin.right - basin.left > WIDE) {
            return Look::Quiet;
        }
        self.survey(basin, is_valley);
        let look = self.conclude(basin, is_valley);
        if let Look::Quiet = look {
            let pivot = if is_valley { self.best_section(basin) } else { None };
            self.wipe(basin);
            self.remember(basin, (x, right), pivot);
        } else {
            self.wipe(basin);
        }
        look
    }

    /// Looks at the basin that the lower bank belongs to.
    fn look_around(&mut self, a: usize) -> Look {
        let v = self.basin(self.run_start(a), self.run_end(a));
        if v.bank == u64::MAX {
            return Look::Quiet;
        }
        let sky = &self.sky;
        let bank = if sky.cross[v.left] > 0 && sky.floor[v.left - 1] == v.bank {
            v.left - 1
        } else {
            v.right
        };
        self.look(self.run_start(bank), self.run_end(bank))
    }

    /// Conclusions 1 to 4, after a survey.
    fn conclude(&mut self, v: Valley, is_valley: bool) -> Look {
        if self.survey.dominated {
            return Look::Dead;
        }
        let limit = self.sky.limit;
        let rise = if is_valley { v.bank.min(self.survey.clear) } else { v.bank };
        let (mut force, mut raise) = (None, None);
        for x in v.left..v.right {
            let crossing = self.sky.rem[x] - self.survey.cells[x].inside;
            if crossing > limit.saturating_sub(v.bank) {
                self.faults[x] += 1;
                return Look::Dead;
            }
            let odd = self.sky.odd_rem[x] > 0;
            match self.survey.cells[x].count {
                0 if !odd && self.sky.rem[x] > 0 && rise > self.sky.floor[x] => {
                    if self.waste(x, rise) > self.sky.slack(x) {
                        self.faults[x] += 1;
                        return Look::Dead;
                    }
                    raise = Some((raise.map_or(x, |(first, _)| first), x + 1));
                }
                0 if odd && is_valley && self.step_up(v, x) > self.sky.slack(x) => {
                    self.faults[x] += 1;
                    return Look::Dead;
                }
                1 if is_valley && force.is_none() && self.step_up(v, x) > self.sky.slack(x) => {
                    force = Some((self.survey.cells[x].which, x));
                }
                _ => {}
            }
        }
        if let Some((first, end)) = raise {
            for x in first..end {
                let sky = &mut self.sky;
                if self.survey.cells[x].count == 0
                    && sky.odd_rem[x] == 0
                    && sky.rem[x] > 0
                    && rise > sky.floor[x]
                {
                    sky.raise(x, rise);
                }
            }
            return Look::Changed(first, end);
        }
        let Some((body, x)) = force else { return Look::Quiet };
        let offset = if self.sky.inst.is_odd(body) {
            self.rests_at(body, x, v.floor)
        } else {
            Some(v.floor)
        };
        let (first, end) = self.put(body, offset.unwrap_or(v.floor));
        Look::Changed(first, end)
    }

    /// Places a body that may rest on a floor; gives its sections.
    pub(super) fn put(&mut self, body: u32, offset: u64) -> (usize, usize) {
        if self.sky.inst.is_odd(body) {
            let odd = self.sky.inst.odd(body);
            self.sky.hang(body, offset);
            (odd.first(), odd.end())
        } else {
            let item = self.sky.inst.items[body as usize];
            self.sky.place(body);
            (item.first as usize, item.end as usize)
        }
    }

    fn best_section(&self, v: Valley) -> Option<Pivot> {
        let mut best: Option<Pivot> = None;
        for x in (v.left..v.right).filter(|&x| self.sky.live(x)) {
            let up = self.step_up(v, x);
            let waste = (up <= self.sky.slack(x)).then_some(up);
            let count = u64::from(self.survey.cells[x].count) << 1;
            let wasting = u64::from(waste.is_some());
            let cost = match self.taste {
                Taste::Few => count + 2 * wasting,
                Taste::WasteHalf => count + wasting,
                Taste::WasteThrice => count + 6 * wasting,
                Taste::Fault => ((count + 2 * wasting) << 40) / (FAULTLESS + self.faults[x]),
            };
            let key = (cost, u64::MAX - self.sky.rem[x]);
            if best.is_none_or(|best| key < best.key) {
                best = Some(Pivot { valley: v, section: x, waste, key });
            }
        }
        best
    }
}

#[cfg(test)]
pub(super) mod tests {
    use arbitrary::{Result, Unstructured};

    use super::*;
    use crate::planner::search::{
        instance::{
            Instance,
            tests::{instance, random_problem},
        },
        skyline::tests::{apply, random_change},
    };

    /// A sky on which something was placed here and there.
    pub(in crate::planner::search) fn random_sky<'a>(
        random: &mut Unstructured<'_>,
        inst: &'a Instance,
    ) -> Result<Skyline<'a>> {
        let mut sky = Skyline::new(inst, inst.bound() + random.int_in_range(0..=20)?);
        for _ in 0..random.int_in_range(0..=12)? {
            let limit = sky.limit;
            if let Some(change) = random_change(random, &sky)? {
                let mark = sky.mark();
                apply(&mut sky, change);
                let fits = |x| sky.floor[x] + sky.rem[x] + sky.above[x] <= limit;
                if !(0..inst.sections).all(fits) {
                    sky.undo(mark);
                }
            }
        }
        Ok(sky)
    }

    /// Where a body may lie so that it rests on the floor of a section, found by trying.
    fn rests(sky: &Skyline<'_>, v: Valley, body: u32, x: usize) -> Option<u64> {
        let inst = sky.inst;
        let (parts, low) = if inst.is_odd(body) {
            let odd = inst.odd(body);
            let parts: Vec<_> = odd.parts.iter().map(|p| (p.first, p.end, p.low, p.high)).collect();
            (parts, odd.part(x)?.low)
        } else {
            let item = inst.items[body as usize];
            let inside = v.left <= item.first as usize && item.end as usize <= v.right;
            let covers = (item.first as usize..item.end as usize).contains(&x);
            (vec![(item.first, item.end, 0, item.size)], (inside && covers).then_some(0)?)
        };
        let offset = v.floor.checked_sub(low)?;
        let is_free = parts.iter().all(|&(first, end, low, high)| {
            (first as usize..end as usize).all(|x| {
                let clear = |r: &(u64, u64)| offset + high <= r.0 || r.1 <= offset + low;
                sky.floor[x] <= offset + low && sky.reserved[x].iter().all(clear)
            }) && (!inst.is_odd(body) || offset + high <= sky.limit)
        });
        let stands = is_free && offset.is_multiple_of(inst.align) && !sky.is_placed(body);
        stands.then_some(offset)
    }

    #[test]
    fn a_survey_tells_what_lies_inside_a_valley_and_what_may_rest_on_its_floor() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let mut valleys = Valleys::new(random_sky(random, &inst)?);
            let mut x = 0;
            while x < inst.sections {
                let right = valleys.run_end(x);
                assert!((x..right).all(|at| valleys.run_start(at) == x || at > x));
                let v = valleys.basin(x, right);
                assert!(v.left <= x && right <= v.right);
                let sky = &valleys.sky;
                assert!((v.left..v.right).all(|at| sky.floor[at] <= v.floor));
                if (v.left, v.right) == (x, right) && sky.live(x) {
                    valleys.survey(v, true);
                    check(&mut valleys, v);
                }
                x = right;
            }
            Ok(())
        })
        .budget_ms(400);
    }

    /// What was seen before counts only while nothing has changed there.
    #[test]
    fn the_section_to_branch_on_does_not_depend_on_the_past() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let limit = inst.bound() + random.int_in_range(0..=20)?;
            let mut valleys = Valleys::new(Skyline::new(&inst, limit));
            let mut changes = Vec::new();
            for _ in 0..random.int_in_range(0..=20)? {
                let back =
                    if changes.is_empty() { 0 } else { random.choose_index(changes.len())? };
                if random.ratio(1, 4)? && !changes.is_empty() {
                    let (mark, _) = changes[back];
                    valleys.sky.undo(mark);
                    changes.truncate(back);
                } else if let Some(change) = random_change(random, &valleys.sky)? {
                    let mark = valleys.sky.mark();
                    apply(&mut valleys.sky, change);
                    let sky = &valleys.sky;
                    let fits = |x| sky.floor[x] + sky.rem[x] + sky.above[x] <= limit;
                    if !(0..inst.sections).all(fits) {
                        valleys.sky.undo(mark);
                        continue;
                    }
                    changes.push((mark, change));
                }
                let mut fresh = Valleys::new(Skyline::new(&inst, limit));
                for &(_, change) in &changes {
                    apply(&mut fresh.sky, change);
                }
                let told = |pivot: Option<Pivot>| pivot.map(|p| (p.section, p.waste, p.key));
                let pivot = told(fresh.pivot(0, inst.sections));
                assert_eq!(told(valleys.pivot(0, inst.sections)), pivot, "{changes:?} of {inst:?}");
                let live = (0..inst.sections).any(|x| fresh.sky.live(x));
                assert!(live || pivot.is_none());
            }
            Ok(())
        })
        .budget_ms(400);
    }

    fn check(valleys: &mut Valleys<'_>, v: Valley) {
        let inst = valleys.sky.inst;
        let bodies = || (0u32..).take(inst.bodies());
        let is_first_twin = |body: u32| {
            inst.is_odd(body)
                || !bodies().take(body as usize).any(|other| {
                    !valleys.sky.is_placed(other)
                        && inst.items[other as usize] == inst.items[body as usize]
                })
        };
        for x in v.left..v.right {
            let sky = &valleys.sky;
            let covers = |first: u32, end: u32| (first as usize..end as usize).contains(&x);
            let inside = |body: &u32| {
                inst.items.get(*body as usize).is_some_and(|i| {
                    covers(i.first, i.end)
                        && v.left <= i.first as usize
                        && i.end as usize <= v.right
                        && !sky.is_placed(*body)
                })
            };
            let sizes: u64 = bodies().filter(inside).map(|b| inst.items[b as usize].size).sum();
            let mut resting: Vec<(u32, u64)> = bodies()
                .filter(|&body| is_first_twin(body))
                .filter_map(|body| Some((body, rests(sky, v, body, x)?)))
                .collect();
            let cell = valleys.survey.cells[x];
            assert_eq!((cell.inside, cell.count as usize), (sizes, resting.len()), "{inst:?}");
            assert!(resting.len() != 1 || cell.which == resting[0].0);
            let pivot = Pivot { valley: v, section: x, waste: None, key: (0, 0) };
            let mut candidates = Vec::new();
            valleys.candidates(&pivot, &mut candidates);
            candidates.sort_unstable();
            resting.sort_unstable();
            assert_eq!(candidates, resting);
        }
        let sky = &valleys.sky;
        let in_waste = |body: u32| {
            let item = inst.items[body as usize];
            let over = item.first as usize..item.end as usize;
            let low = sky.base[over.clone()].iter().max().unwrap().next_multiple_of(inst.align);
            let inside = v.left <= over.start && over.end <= v.right;
            inside
                && !sky.is_placed(body)
                && low + item.size <= *sky.floor[over].iter().min().unwrap()
        };
        let dominated = bodies().take(inst.items.len()).any(in_waste);
        assert_eq!(valleys.survey.dominated, dominated);
        valleys.wipe(v);
        assert!(valleys.survey.cells.iter().all(|cell| (cell.inside, cell.count) == (0, 0)));
    }
}
