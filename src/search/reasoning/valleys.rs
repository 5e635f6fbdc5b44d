//! Valleys: the places of the next body, and the conclusions that need no branching.
//!
//! An item that covers a section of a valley either lies wholly inside it, and may rest on its
//! floor, or crosses a bank, and lies no lower than the lower bank. So, over any section of any
//! valley, the next body is one of few, or there is waste on the floor. The search branches on
//! exactly that, over the section with the fewest ways to continue. This section need not be the lowest, and bodies
//! that do not affect each other are not tried in every order.
//!
//! Conclusions that need no branching:
//!
//! 1. Items that cross the banks must fit above the lower of them; otherwise there is no packing.
//! 2. If nothing inside the valley is left, the floor rises to the lower bank.
//! 3. If a single body may rest on the floor and any waste is too much, it is placed; if no body
//!    may, there is no packing.
//! 4. No item may fit wholly into waste: the same packing with the item there is as good, and
//!    lower. Of all packings, the search looks for the one with the least sum of offsets.
//!
//! 1 and 2 hold for a basin as well.

use std::ops::Range;

use crate::search::reasoning::{
    pivot::{BranchRule, Candidate, Pivot, Urgency},
    survey::{Survey, is_blocked, wasted_by},
    valley::{Valley, run_end, run_of, run_start},
};
use crate::search::{Stage, sizes::WORK_PER_NODE, state::skyline::Skyline};

/// The conclusions from a valley.
enum Conclusion {
    /// There is no packing.
    Contradiction,
    Nothing,
    /// Floors of these sections rose.
    Changed(Range<usize>),
}

/// A valley that led to no conclusion; valid until something in `left..right` changes.
#[derive(Clone, Copy)]
struct Seen {
    clock: u64,
    run_end: usize,
    left: usize,
    right: usize,
    pivot: Option<Pivot>,
}

pub struct Valleys<'a> {
    pub sky: Skyline<'a>,
    /// True if some items are pinned, or have true sizes beside rounded ones.
    is_checked: bool,
    pub rule: BranchRule,
    /// By section: the contradictions found there, in this and earlier rounds.
    faults: Vec<u64>,
    /// By the first section of a run.
    seen: Vec<Seen>,
    survey: Survey,
}

impl<'a> Valleys<'a> {
    pub fn new(sky: Skyline<'a>) -> Self {
        let sections = sky.inst.sections;
        let seen = Seen { clock: 0, run_end: usize::MAX, left: 0, right: 0, pivot: None };
        Self {
            is_checked: sky.inst.exact.is_some() || sky.has_pins(),
            sky,
            rule: BranchRule::Fewest,
            faults: vec![0; sections],
            seen: vec![seen; sections],
            survey: Survey::new(sections),
        }
    }

    /// The number of bodies examined so far; four sections of a staircase count as one.
    pub fn work(&self) -> u64 {
        self.survey.work()
    }

    /// Draws all conclusions from changes in some sections; returns false if there is no packing.
    pub fn settle(&mut self, changed: Range<usize>) -> bool {
        if !self.stands(changed.clone()) {
            return false;
        }
        let sections = self.sky.inst.sections;
        let mut x = run_start(&self.sky, changed.start.saturating_sub(1));
        let mut end = (changed.end + 1).min(sections);
        let mut climbed = false;
        loop {
            let conclusion = if x < end {
                if !self.sky.live(x) {
                    x += 1;
                    continue;
                }
                let run = x..run_end(&self.sky, x);
                x = run.end;
                self.examine(run)
            } else if climbed {
                return true;
            } else {
                climbed = true;
                self.examine_bank(changed.start)
            };
            match conclusion {
                Conclusion::Contradiction => return false,
                Conclusion::Nothing => {}
                Conclusion::Changed(range) => {
                    if !self.stands(range.clone()) {
                        return false;
                    }
                    x = run_start(&self.sky, range.start.saturating_sub(1));
                    end = end.max((range.end + 1).min(sections));
                }
            }
        }
    }

    /// Returns whether pins hold over some sections, and the items there fit with their true sizes.
    fn stands(&mut self, mut sections: Range<usize>) -> bool {
        if !self.is_checked {
            return true;
        }
        if !sections.clone().all(|x| self.sky.pins_hold(x)) {
            return false;
        }
        let full = sections.find(|&x| !self.sky.fits_exactly(x));
        if let Some(x) = full {
            self.faults[x] += 1;
        }
        full.is_none()
    }

    /// The best of some sections to branch on; `None` if no bodies are left over them.
    pub fn pivot(&mut self, sections: Range<usize>) -> Option<Pivot> {
        let mut best: Option<Pivot> = None;
        let mut x = sections.start;
        while x < sections.end {
            if !self.sky.live(x) {
                x += 1;
                continue;
            }
            let run = x..run_end(&self.sky, x);
            x = run.end;
            if let Some(pivot) = self.pivot_of_run(run)
                && best.is_none_or(|best| pivot.urgency < best.urgency)
            {
                best = Some(pivot);
            }
        }
        best
    }

    /// The bodies that may rest on the floor at a pivot, each with its offset.
    pub fn candidates(&self, pivot: &Pivot, into: &mut Vec<Candidate>) {
        let (sky, section) = (&self.sky, pivot.section);
        let Valley { left, right, floor, .. } = pivot.valley;
        for x in left..=section {
            let mut last = None;
            for body in sky.items_from(x) {
                let item = &sky.inst.items[body as usize];
                if item.end as usize > right {
                    break;
                }
                let is_same = last.replace(item) == Some(item);
                if !is_same && item.end as usize > section && !is_blocked(sky, body, floor) {
                    into.push(Candidate { body, offset: floor });
                }
            }
        }
        if sky.has_staircases(section) {
            for &body in sky.staircases(section) {
                if let Some(offset) = self.survey.offset_on_floor(sky, body, section, floor) {
                    into.push(Candidate { body, offset });
                }
            }
        }
    }

    /// Places a body that may rest on a floor; returns its sections.
    pub fn put(&mut self, Candidate { body, offset }: Candidate) -> Range<usize> {
        if self.sky.inst.is_staircase(body) {
            self.sky.hang(body, offset);
            self.sky.inst.staircase(body).sections()
        } else {
            self.sky.place(body);
            self.sky.inst.items[body as usize].sections()
        }
    }

    fn pivot_of_run(&mut self, run: Range<usize>) -> Option<Pivot> {
        if self.is_seen(&run) {
            return self.seen[run.start].pivot;
        }
        let v = Valley::around(&self.sky, run.clone());
        if v.sections() != run {
            return None;
        }
        self.survey.fill(&self.sky, v, true);
        let pivot = self.best_section(v);
        self.survey.wipe(v);
        self.remember(v, &run, pivot);
        pivot
    }

    /// The best section of a valley that was surveyed.
    fn best_section(&self, v: Valley) -> Option<Pivot> {
        let Self { sky, survey, .. } = self;
        let mut best: Option<Pivot> = None;
        for section in v.sections().filter(|&x| sky.live(x)) {
            let up = survey.step_up(sky, v, section);
            let waste = (up <= sky.slack(section)).then_some(up);
            let bodies = survey.cells[section].count;
            let cost = self.rule.cost(bodies, waste.is_some(), self.faults[section]);
            let urgency = Urgency { cost, emptiness: u64::MAX - sky.items_left(section) };
            if best.is_none_or(|best| urgency < best.urgency) {
                best = Some(Pivot { valley: v, section, waste, urgency });
            }
        }
        best
    }

    fn is_seen(&self, run: &Range<usize>) -> bool {
        let seen = &self.seen[run.start];
        seen.run_end == run.end && self.sky.is_unchanged(seen.left..seen.right, seen.clock)
    }

    fn remember(&mut self, v: Valley, run: &Range<usize>, pivot: Option<Pivot>) {
        if v.sections().any(|x| self.sky.has_staircases(x)) {
            // The pivot also depends on sections outside, which other parts of a staircase cover.
            self.seen[run.start].run_end = usize::MAX;
            return;
        }
        self.seen[run.start] = Seen {
            clock: self.sky.clock(),
            run_end: run.end,
            left: v.left.saturating_sub(1),
            right: (v.right + 1).min(self.sky.inst.sections),
            pivot,
        };
    }

    /// Examines a run and the basin around it.
    fn examine(&mut self, run: Range<usize>) -> Conclusion {
        if self.is_seen(&run) {
            return Conclusion::Nothing;
        }
        let basin = Valley::around(&self.sky, run.clone());
        let is_valley = basin.sections() == run;
        let has_basins = self.sky.inst.stages.has(Stage::Basins);
        // Examining a wider basin costs more than it saves.
        if !is_valley
            && (!has_basins || basin.bank == u64::MAX || basin.right - basin.left > WORK_PER_NODE)
        {
            return Conclusion::Nothing;
        }
        self.survey.fill(&self.sky, basin, is_valley);
        let conclusion = self.conclude(basin, is_valley);
        if let Conclusion::Nothing = conclusion {
            let pivot = if is_valley { self.best_section(basin) } else { None };
            self.survey.wipe(basin);
            self.remember(basin, &run, pivot);
        } else {
            self.survey.wipe(basin);
        }
        conclusion
    }

    /// Examines the basin of the run that forms the lower bank of a section's basin.
    fn examine_bank(&mut self, x: usize) -> Conclusion {
        let sky = &self.sky;
        let v = Valley::around(sky, run_of(sky, x));
        if v.bank == u64::MAX {
            return Conclusion::Nothing;
        }
        let is_left = sky.item_crosses(v.left) && sky.floor(v.left - 1) == v.bank;
        self.examine(run_of(sky, if is_left { v.left - 1 } else { v.right }))
    }

    /// Draws the first conclusion that a survey allows.
    fn conclude(&mut self, v: Valley, is_valley: bool) -> Conclusion {
        if self.survey.dominated {
            return Conclusion::Contradiction; // 4
        }
        let rise = if is_valley { v.bank.min(self.survey.clear) } else { v.bank };
        let (mut forced, mut rising) = (None, None);
        for x in v.sections() {
            let stands = self.crossing_fits(v, x)
                && if self.rises(x, rise) {
                    let first = rising.map_or(x, |Range { start, .. }: Range<usize>| start);
                    rising = Some(first..x + 1);
                    wasted_by(&self.sky, x, rise) <= self.sky.slack(x)
                } else {
                    !is_valley || self.can_continue(v, x, &mut forced)
                };
            if !stands {
                self.faults[x] += 1;
                return Conclusion::Contradiction;
            }
        }
        match (rising, forced) {
            (Some(sections), _) => self.raise(sections, rise),
            (None, Some(x)) => self.put_forced(v, x),
            (None, None) => Conclusion::Nothing,
        }
    }

    /// Conclusion 1: returns whether the items over a section that cross the banks fit above the lower one.
    fn crossing_fits(&self, v: Valley, x: usize) -> bool {
        let crossing = self.sky.items_left(x) - self.survey.cells[x].inside;
        crossing <= self.sky.limit().saturating_sub(v.bank)
    }

    /// Conclusion 2: returns whether nothing can rest on a section's floor, so that it rises.
    fn rises(&self, x: usize, to: u64) -> bool {
        let sky = &self.sky;
        self.survey.cells[x].count == 0
            && !sky.has_staircases(x)
            && sky.items_left(x) > 0
            && to > sky.floor(x)
    }

    /// Conclusion 2: raises the floors that rise.
    fn raise(&mut self, sections: Range<usize>, to: u64) -> Conclusion {
        for x in sections.clone() {
            if self.rises(x, to) {
                self.sky.raise(x, to);
            }
        }
        Conclusion::Changed(sections)
    }

    /// Conclusion 3: returns whether a body or waste can rest on a section's floor. The first section
    /// where only one body does is `forced`.
    fn can_continue(&self, v: Valley, x: usize, forced: &mut Option<usize>) -> bool {
        let wastes_too_much = || self.survey.step_up(&self.sky, v, x) > self.sky.slack(x);
        match self.survey.cells[x].count {
            0 => !self.sky.has_staircases(x) || !wastes_too_much(),
            1 => {
                if forced.is_none() && wastes_too_much() {
                    *forced = Some(x);
                }
                true
            }
            _ => true,
        }
    }

    /// Conclusion 3: places the only body that may rest on a section's floor.
    fn put_forced(&mut self, v: Valley, x: usize) -> Conclusion {
        let body = self.survey.cells[x].which;
        let is_staircase = self.sky.inst.is_staircase(body);
        let resting =
            is_staircase.then(|| self.survey.offset_on_floor(&self.sky, body, x, v.floor));
        let offset = resting.flatten().unwrap_or(v.floor);
        Conclusion::Changed(self.put(Candidate { body, offset }))
    }
}

#[cfg(test)]
mod tests;
