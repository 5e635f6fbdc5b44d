//! The skyline: a partial packing, seen from above.
//!
//! Over each section stands a *floor*; everything below it is settled, as bytes of placed bodies
//! or as waste. An item is placed only where it rests on equal floors, so nothing is ever hidden
//! below one. A part of a staircase may hang above the floor; it is then *reserved*: the sections
//! below it continue to fill, and when the floor meets a reserved part, it jumps to its top.
//!
//! The *slack* of a section is the number of units that it can still waste. Placing a body changes no slack; only
//! raising a floor does. Every change is recorded on a trail, so that undoing a change takes no longer than making it.

use std::ops::Range;

use crate::search::state::{
    exact::ExactPacking,
    fingerprint::{Fingerprint, scramble},
    instance::{Instance, Item, Span},
    items_left::{ItemsFrom, ItemsLeft},
};

/// The offset of a body that is not placed.
const UNPLACED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
enum Undo {
    Place {
        item: u32,
    },
    Hang {
        body: u32,
    },
    Raise {
        section: u32,
        floor: u64,
        base: u64,
    },
    /// The floor met a reserved part and moved from its low end to its high end.
    Jump {
        section: u32,
        part: Span,
        base: u64,
    },
}

/// A partial packing. Bodies that are not placed are *left*.
pub struct Skyline<'a> {
    pub inst: &'a Instance,
    /// No body may end above this height.
    limit: u64,
    /// By section.
    floor: Vec<u64>,
    /// By section: the floor when something was last placed. All between this height and the floor is waste.
    base: Vec<u64>,
    /// By section: the sum of the sizes of the items that are left.
    items_left: Vec<u64>,
    /// By section: the sum of the sizes of the parts of staircases that are not below the floor.
    above: Vec<u64>,
    /// By section: the number of parts of staircases that are left.
    staircases_left: Vec<u32>,
    /// By boundary before a section: the items left that cross it. Zero at both ends.
    item_crossings: Vec<u32>,
    /// By boundary before a section: the staircases left that cross it. Zero at both ends.
    staircase_crossings: Vec<u32>,
    /// By section: the parts that hang above the floor, the lowest last.
    reserved: Vec<Vec<Span>>,
    /// By section: the staircases that cover it, placed or not.
    staircases: Vec<Vec<u32>>,
    /// By body.
    offsets: Vec<u64>,
    /// By section: a hash of the bodies left that begin there.
    begins: Vec<u64>,
    /// By section: when it last changed, undoing included.
    stamp: Vec<u64>,
    /// Counts changes.
    clock: u64,
    begin_here: ItemsLeft,
    /// By section: its fingerprint, and when that was taken.
    hashes: Vec<(Fingerprint, u64)>,
    /// By section: the pinned items that cover it, with their offsets, ascending; empty if no items are pinned. They
    /// are placed like all others, but a branch ends as soon as such an item lies at another offset, or a floor rises
    /// above its offset before it is placed.
    pins: Vec<Vec<(u32, u64)>>,
    /// Bases below placed items, for undoing.
    bases: Vec<u64>,
    trail: Vec<Undo>,
    /// The packing with true sizes, if sizes are rounded.
    exact: Option<ExactPacking<'a>>,
}

impl<'a> Skyline<'a> {
    pub fn new(inst: &'a Instance, limit: u64) -> Self {
        let (sections, items) = (inst.sections, inst.items.len());
        let mut sky = Self {
            inst,
            limit,
            floor: vec![0; sections],
            base: vec![0; sections],
            items_left: vec![0; sections],
            above: vec![0; sections],
            staircases_left: vec![0; sections],
            item_crossings: vec![0; sections + 1],
            staircase_crossings: vec![0; sections + 1],
            reserved: vec![Vec::new(); sections],
            staircases: vec![Vec::new(); sections],
            offsets: vec![UNPLACED; inst.bodies()],
            begins: vec![0; sections],
            stamp: vec![0; sections],
            clock: 0,
            begin_here: ItemsLeft::new(&inst.items, sections),
            hashes: vec![Default::default(); sections],
            pins: vec![Vec::new(); if inst.pins.is_empty() { 0 } else { sections }],
            bases: Vec::new(),
            trail: Vec::new(),
            exact: (inst.exact.as_ref())
                .map(|exact| ExactPacking::new(exact, &inst.items, sections)),
        };
        let ids = 0..u32::try_from(items).unwrap_or(u32::MAX);
        for (id, item) in ids.zip(&inst.items) {
            sky.count_item(item, id, true);
            if let Some(&Some(offset)) = inst.pins.get(id as usize) {
                sky.pins[item.sections()].iter_mut().for_each(|pins| pins.push((id, offset)));
            }
        }
        for pins in &mut sky.pins {
            pins.sort_unstable_by_key(|&(_, offset)| offset);
        }
        for id in (0u32..).skip(items).take(inst.staircases.len()) {
            sky.count_staircase(id, true);
            for part in &inst.staircase(id).parts {
                for x in part.sections() {
                    sky.above[x] += part.high - part.low;
                    sky.staircases[x].push(id);
                }
            }
        }
        sky
    }

    /// Undoes everything and starts again under another limit, with all immovable bodies placed.
    /// If sizes are rounded, the limit is one of true sizes.
    pub fn reset(&mut self, limit: u64) {
        self.undo(0);
        self.limit = match &mut self.exact {
            Some(exact) => self.inst.bound() + exact.set_limit(limit).div_ceil(self.inst.unit),
            None => limit,
        };
        for fixed in &self.inst.fixed {
            self.hang(fixed.body, fixed.offset);
        }
        self.clock += 1;
        self.stamp.fill(self.clock);
    }

    /// The height that nothing may exceed.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The floor of a section.
    pub fn floor(&self, x: usize) -> u64 {
        self.floor[x]
    }

    /// The bytes of waste just below the floor of a section.
    pub fn waste(&self, x: usize) -> u64 {
        self.floor[x] - self.base[x]
    }

    /// The waste that is just below the floor of all these sections.
    pub fn common_waste(&self, sections: Range<usize>) -> Span {
        let low = self.base[sections.clone()].iter().max().map_or(0, |&low| low);
        let high = self.floor[sections].iter().min().map_or(0, |&high| high);
        Span { low, high }
    }

    /// The sum of the sizes of the items left over a section.
    pub fn items_left(&self, x: usize) -> u64 {
        self.items_left[x]
    }

    /// Returns whether a staircase is left over a section.
    pub fn has_staircases(&self, x: usize) -> bool {
        self.staircases_left[x] > 0
    }

    /// The staircases that cover a section, placed or not.
    pub fn staircases(&self, x: usize) -> &[u32] {
        &self.staircases[x]
    }

    /// The parts that hang above the floor of a section, the lowest last.
    pub fn reserved(&self, x: usize) -> &[Span] {
        &self.reserved[x]
    }

    /// The lowest part that hangs above the floor of a section.
    pub fn lowest_reserved(&self, x: usize) -> Option<Span> {
        self.reserved[x].last().copied()
    }

    /// Returns whether an item left crosses the boundary before a section.
    pub fn item_crosses(&self, x: usize) -> bool {
        self.item_crossings[x] > 0
    }

    /// Returns whether any body left crosses the boundary before a section.
    pub fn body_crosses(&self, x: usize) -> bool {
        self.item_crossings[x] + self.staircase_crossings[x] > 0
    }

    /// The items left that begin in a section, by end, then size.
    pub fn items_from(&self, x: usize) -> ItemsFrom<'_> {
        self.begin_here.from(x)
    }

    /// Returns whether a body is left over a section.
    pub fn live(&self, x: usize) -> bool {
        self.items_left[x] > 0 || self.staircases_left[x] > 0
    }

    /// The amount that a section can still waste. If it were negative, there would be no packing.
    pub fn slack(&self, x: usize) -> u64 {
        self.limit - self.floor[x] - self.items_left[x] - self.above[x]
    }

    /// Returns whether the bodies over a section fit under the limit if nothing more is wasted.
    pub fn fits(&self, x: usize) -> bool {
        self.floor[x] + self.items_left[x] + self.above[x] <= self.limit
    }

    /// Returns whether the items over a section fit with their true sizes.
    pub fn fits_exactly(&self, x: usize) -> bool {
        self.exact.as_ref().is_none_or(|exact| exact.fits(x))
    }

    pub fn is_placed(&self, body: u32) -> bool {
        self.offsets[body as usize] != UNPLACED
    }

    /// The offset of each body, with its true size; meaningless for bodies that are not placed.
    pub fn offsets(&self) -> &[u64] {
        self.exact.as_ref().map_or(&self.offsets, ExactPacking::offsets)
    }

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

    /// The number of changes so far, undoing included.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Returns whether nothing in these sections has changed since `clock`.
    pub fn is_unchanged(&self, sections: Range<usize>, clock: u64) -> bool {
        self.stamp[sections].iter().all(|&stamp| stamp <= clock)
    }

    /// The present length of the trail, to which [`undo`](Self::undo) can go back.
    pub fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Places an item on the floors of its sections, which are equal.
    pub fn place(&mut self, id: u32) {
        let item = self.inst.items[id as usize];
        let sections = item.sections();
        self.offsets[id as usize] = self.floor[sections.start];
        self.bases.extend_from_slice(&self.base[sections.clone()]);
        for x in sections.clone() {
            self.floor[x] += item.size;
            self.base[x] = self.floor[x];
        }
        self.count_item(&item, id, false);
        self.begin_here.take_out(id, item.first);
        self.trail.push(Undo::Place { item: id });
        if let Some(exact) = &mut self.exact {
            exact.place(id, &item);
        }
        for x in sections {
            self.jump(x);
        }
    }

    /// Places a staircase at an offset, whether it rests on a floor or hangs above it.
    pub fn hang(&mut self, body: u32, offset: u64) {
        self.offsets[body as usize] = offset;
        let inst = self.inst;
        let staircase = inst.staircase(body);
        for part in &staircase.parts {
            let span = part.at(offset);
            for x in part.sections() {
                let at = self.reserved[x].partition_point(|r| r.low > span.low);
                self.reserved[x].insert(at, span);
            }
        }
        self.count_staircase(body, false);
        self.trail.push(Undo::Hang { body });
        for x in staircase.sections() {
            self.jump(x);
        }
    }

    /// Raises a floor to a height, or to the lowest reserved part below that. The bytes in between
    /// are wasted.
    pub fn raise(&mut self, x: usize, to: u64) {
        let to = self.lowest_reserved(x).map_or(to, |part| to.min(part.low));
        self.trail.push(Undo::Raise {
            section: u32::try_from(x).unwrap_or(u32::MAX),
            floor: self.floor[x],
            base: self.base[x],
        });
        self.floor[x] = to;
        self.touch(x..x + 1);
        self.jump(x);
    }

    /// Moves the floor of a section that was touched past the reserved parts that it meets.
    fn jump(&mut self, x: usize) {
        while let Some(&part) = self.reserved[x].last() {
            if part.low != self.floor[x] {
                break;
            }
            self.reserved[x].pop();
            let section = u32::try_from(x).unwrap_or(u32::MAX);
            self.trail.push(Undo::Jump { section, part, base: self.base[x] });
            self.above[x] -= part.high - part.low;
            self.floor[x] = part.high;
            self.base[x] = part.high;
        }
    }

    /// Undoes all changes since a mark.
    pub fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            match self.trail.pop() {
                Some(Undo::Place { item }) => self.take_back(item),
                Some(Undo::Hang { body }) => self.take_down(body),
                Some(Undo::Raise { section, floor, base }) => {
                    let x = section as usize;
                    self.floor[x] = floor;
                    self.base[x] = base;
                    self.touch(x..x + 1);
                }
                Some(Undo::Jump { section, part, base }) => {
                    let x = section as usize;
                    self.reserved[x].push(part);
                    self.above[x] += part.high - part.low;
                    self.floor[x] = part.low;
                    self.base[x] = base;
                }
                None => {}
            }
        }
    }

    fn take_back(&mut self, id: u32) {
        let item = self.inst.items[id as usize];
        let sections = item.sections();
        self.offsets[id as usize] = UNPLACED;
        if let Some(exact) = &mut self.exact {
            exact.take_back(id, &item);
        }
        for x in sections.clone() {
            self.floor[x] -= item.size;
        }
        let from = self.bases.len() - sections.len();
        self.base[sections].copy_from_slice(&self.bases[from..]);
        self.bases.truncate(from);
        self.count_item(&item, id, true);
        self.begin_here.put_back(id, item.first);
    }

    fn take_down(&mut self, body: u32) {
        let offset = self.offsets[body as usize];
        self.offsets[body as usize] = UNPLACED;
        for part in &self.inst.staircase(body).parts {
            for x in part.sections() {
                let low = offset + part.low;
                let at = self.reserved[x].partition_point(|r| r.low > low);
                self.reserved[x].remove(at);
            }
        }
        self.count_staircase(body, true);
    }

    fn touch(&mut self, sections: Range<usize>) {
        self.clock += 1;
        self.stamp[sections].fill(self.clock);
    }

    /// Counts an item as left, or as placed.
    fn count_item(&mut self, item: &Item, id: u32, left: bool) {
        let Range { start, end } = item.sections();
        for size in &mut self.items_left[start..end] {
            *size = if left { *size + item.size } else { *size - item.size };
        }
        for crossings in &mut self.item_crossings[start + 1..end] {
            *crossings = if left { *crossings + 1 } else { *crossings - 1 };
        }
        self.begins[start] ^= scramble(u64::from(id) + 1);
        self.touch(start..end);
    }

    /// Counts a staircase as left, or as placed.
    fn count_staircase(&mut self, body: u32, left: bool) {
        let staircase = self.inst.staircase(body);
        let Range { start, end } = staircase.sections();
        for part in &staircase.parts {
            for count in &mut self.staircases_left[part.sections()] {
                *count = if left { *count + 1 } else { *count - 1 };
            }
        }
        for crossings in &mut self.staircase_crossings[start + 1..end] {
            *crossings = if left { *crossings + 1 } else { *crossings - 1 };
        }
        self.begins[start] ^= scramble(u64::from(body) + 1);
        self.touch(start..end);
    }

    /// The fingerprint of a component: the bodies left and the room for them. It depends neither on
    /// other sections nor, if the room is the same, on the limit.
    pub fn fingerprint(&mut self, sections: Range<usize>) -> Fingerprint {
        let mut all = Fingerprint::default();
        if self.has_pins() {
            // The offsets of pins count from the bottom, but the room from the top.
            let sum = scramble(self.limit + 1);
            all = Fingerprint { sum, xor: scramble(sum) };
        }
        for x in sections {
            let (mut fingerprint, taken) = self.hashes[x];
            if taken < self.stamp[x] {
                fingerprint = self.fingerprint_of_section(x);
                self.hashes[x] = (fingerprint, self.clock);
            }
            all = all.and(fingerprint);
        }
        all
    }

    fn fingerprint_of_section(&self, x: usize) -> Fingerprint {
        let mut h = scramble((self.limit - self.floor[x]) ^ scramble(x as u64 + 1));
        if let Some(exact) = &self.exact {
            h = scramble(h ^ exact.room(x));
        }
        if self.base[x] < self.floor[x] {
            h = scramble(h ^ (self.limit - self.base[x]));
        }
        for part in &self.reserved[x] {
            h = scramble(scramble(h ^ (self.limit - part.low)) ^ (self.limit - part.high));
        }
        let sum = scramble(h ^ self.begins[x].rotate_left(23));
        Fingerprint { sum, xor: scramble(sum ^ h.rotate_left(17)) }
    }
}

#[cfg(test)]
mod tests;
