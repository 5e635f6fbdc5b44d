//! The skyline: a partial packing, seen from above.
//!
//! Over each section stands a *floor*; everything below it is settled, as bytes of placed bodies
//! or as waste. An item is placed only where it rests on equal floors, so nothing is ever hidden
//! below one. A part of a staircase may hang above the floor; it is then *reserved*: the sections
//! below it go on filling, and when the floor meets a reserved part, it jumps to its top.
//!
//! The *slack* of a section is what it can still waste. Placing changes no slack; only raising a
//! floor does. All changes are on a trail, so that a step back costs what the step cost.

use super::instance::{Instance, Item};

/// No body.
pub(super) const NONE: u32 = u32::MAX;

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
    /// The floor met a reserved part and stands at `high` now.
    Jump {
        section: u32,
        low: u64,
        high: u64,
        base: u64,
    },
}

pub(super) struct Skyline<'a> {
    pub inst: &'a Instance,
    /// Nothing may end higher.
    pub limit: u64,
    /// By section.
    pub floor: Vec<u64>,
    /// By section: the floor when something was last placed; from there to the floor is waste.
    pub base: Vec<u64>,
    /// By section: the sizes of all items yet to come.
    pub rem: Vec<u64>,
    /// By section: the sizes of odd parts that are not below the floor.
    pub above: Vec<u64>,
    /// By section: the odd parts yet to come.
    pub odd_rem: Vec<u32>,
    /// By boundary before a section: the items yet to come that cross it. Zero at both ends.
    pub cross: Vec<u32>,
    /// The same for odd bodies.
    pub odd_cross: Vec<u32>,
    /// By section: parts that hang above the floor, the lowest last.
    pub reserved: Vec<Vec<(u64, u64)>>,
    /// By section: the odd bodies that cover it, placed or not.
    pub odds: Vec<Vec<u32>>,
    /// By body: its offset, `u64::MAX` before it is placed.
    pub offset: Vec<u64>,
    /// By section: a hash of what begins there and is yet to come.
    pub begins: Vec<u64>,
    /// By section: when it last changed, undoing included.
    pub stamp: Vec<u64>,
    /// Counts changes.
    pub clock: u64,
    /// By section: the first item yet to come that begins there; by end, then size.
    pub head: Vec<u32>,
    /// By item: the next that begins in the same section.
    pub next: Vec<u32>,
    prev: Vec<u32>,
    /// By section: when it was hashed, and the two halves.
    hashes: Vec<(u64, u64, u64)>,
    /// Bases below placed items, for undoing.
    bases: Vec<u64>,
    trail: Vec<Undo>,
}

impl<'a> Skyline<'a> {
    pub(super) fn new(inst: &'a Instance, limit: u64) -> Self {
        let (sections, items) = (inst.sections, inst.items.len());
        let mut sky = Self {
            inst,
            limit,
            floor: vec![0; sections],
            base: vec![0; sections],
            rem: vec![0; sections],
            above: vec![0; sections],
            odd_rem: vec![0; sections],
            cross: vec![0; sections + 1],
            odd_cross: vec![0; sections + 1],
            reserved: vec![Vec::new(); sections],
            odds: vec![Vec::new(); sections],
            offset: vec![u64::MAX; inst.bodies()],
            begins: vec![0; sections],
            stamp: vec![0; sections],
            clock: 0,
            head: vec![NONE; sections],
            next: vec![NONE; items],
            prev: vec![NONE; items],
            hashes: vec![(0, 0, 0); sections],
            bases: Vec::new(),
            trail: Vec::new(),
        };
        let ids = 0..u32::try_from(items).unwrap_or(NONE);
        for (id, item) in ids.zip(&inst.items).rev() {
            sky.count_item(item, id, true);
            sky.next[id as usize] = sky.head[item.first as usize];
            sky.link(id);
        }
        for id in (0u32..).skip(items).take(inst.odds.len()) {
            sky.count_odd(id, true);
            for part in &inst.odd(id).parts {
                for x in part.first as usize..part.end as usize {
                    sky.above[x] += part.high - part.low;
                    sky.odds[x].push(id);
                }
            }
        }
        sky
    }

    /// Forgets everything and starts under another limit.
    pub(super) fn reset(&mut self, limit: u64) {
        self.undo(0);
        self.limit = limit;
        self.clock += 1;
        self.stamp.fill(self.clock);
    }

    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Whether something is yet to come over a section.
    pub(super) fn live(&self, x: usize) -> bool {
        self.rem[x] > 0 || self.odd_rem[x] > 0
    }

    /// What a section can still waste; all is lost if even that is negative.
    pub(super) fn slack(&self, x: usize) -> u64 {
        self.limit - self.floor[x] - self.rem[x] - self.above[x]
    }

    /// Whether every section's load fits at all.
    pub(super) fn loads_fit(&self) -> bool {
        (0..self.inst.sections).all(|x| self.rem[x] + self.above[x] <= self.limit)
    }

    pub(super) fn is_placed(&self, body: u32) -> bool {
        self.offset[body as usize] != u64::MAX
    }

    /// Places an item on its sections' floors, which are equal.
    pub(super) fn place(&mut self, id: u32) {
        let item = self.inst.items[id as usize];
        let sections = item.first as usize..item.end as usize;
        self.offset[id as usize] = self.floor[sections.start];
        self.bases.extend_from_slice(&self.base[sections.clone()]);
        for x in sections.clone() {
            self.floor[x] += item.size;
            self.base[x] = self.floor[x];
        }
        self.count_item(&item, id, false);
        self.unlink(id);
        self.trail.push(Undo::Place { item: id });
        for x in sections {
            self.jump(x);
        }
    }

    /// Places an odd body, resting or hanging.
    pub(super) fn hang(&mut self, body: u32, offset: u64) {
        self.offset[body as usize] = offset;
        let inst = self.inst;
        let odd = inst.odd(body);
        for part in &odd.parts {
            for x in part.first as usize..part.end as usize {
                let low = offset + part.low;
                let at = self.reserved[x].partition_point(|r| r.0 > low);
                self.reserved[x].insert(at, (low, offset + part.high));
            }
        }
        self.count_odd(body, false);
        self.trail.push(Undo::Hang { body });
        for x in odd.first()..odd.end() {
            self.jump(x);
        }
    }

    /// Raises a floor: nothing is placed between the old one and the new, or a reserved part.
    pub(super) fn raise(&mut self, x: usize, to: u64) {
        let to = self.reserved[x].last().map_or(to, |&(low, _)| to.min(low));
        self.trail.push(Undo::Raise {
            section: u32::try_from(x).unwrap_or(NONE),
            floor: self.floor[x],
            base: self.base[x],
        });
        self.floor[x] = to;
        self.touch(x..x + 1);
        self.jump(x);
    }

    /// Lets the floor of a section jump over the reserved parts that it meets.
    fn jump(&mut self, x: usize) {
        while let Some(&(low, high)) = self.reserved[x].last() {
            if low != self.floor[x] {
                break;
            }
            self.reserved[x].pop();
            let section = u32::try_from(x).unwrap_or(NONE);
            self.trail.push(Undo::Jump { section, low, high, base: self.base[x] });
            self.above[x] -= high - low;
            self.floor[x] = high;
            self.base[x] = high;
            self.touch(x..x + 1);
        }
    }

    pub(super) fn undo(&mut self, mark: usize) {
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
                Some(Undo::Jump { section, low, high, base }) => {
                    let x = section as usize;
                    self.reserved[x].push((low, high));
                    self.above[x] += high - low;
                    self.floor[x] = low;
                    self.base[x] = base;
                    self.touch(x..x + 1);
                }
                None => {}
            }
        }
    }

    fn take_back(&mut self, id: u32) {
        let item = self.inst.items[id as usize];
        let sections = item.first as usize..item.end as usize;
        self.offset[id as usize] = u64::MAX;
        for x in sections.clone() {
            self.floor[x] -= item.size;
        }
        let from = self.bases.len() - sections.len();
        self.base[sections].copy_from_slice(&self.bases[from..]);
        self.bases.truncate(from);
        self.count_item(&item, id, true);
        self.link(id);
    }

    fn take_down(&mut self, body: u32) {
        let offset = self.offset[body as usize];
        self.offset[body as usize] = u64::MAX;
        for part in &self.inst.odd(body).parts {
            for x in part.first as usize..part.end as usize {
                let low = offset + part.low;
                let at = self.reserved[x].partition_point(|r| r.0 > low);
                self.reserved[x].remove(at);
            }
        }
        self.count_odd(body, true);
    }

    fn touch(&mut self, sections: std::ops::Range<usize>) {
        self.clock += 1;
        self.stamp[sections].fill(self.clock);
    }

    /// Counts an item as yet to come, or no more.
    fn count_item(&mut self, item: &Item, id: u32, coming: bool) {
        let (a, b) = (item.first as usize, item.end as usize);
        for rem in &mut self.rem[a..b] {
            *rem = if coming { *rem + item.size } else { *rem - item.size };
        }
        for cross in &mut self.cross[a + 1..b] {
            *cross = if coming { *cross + 1 } else { *cross - 1 };
        }
        self.begins[a] ^= scramble(u64::from(id) + 1);
        self.touch(a..b);
    }

    fn count_odd(&mut self, body: u32, coming: bool) {
        let odd = self.inst.odd(body);
        let (a, b) = (odd.first(), odd.end());
        for part in &odd.parts {
            for count in &mut self.odd_rem[part.first as usize..part.end as usize] {
                *count = if coming { *count + 1 } else { *count - 1 };
            }
        }
        for cross in &mut self.odd_cross[a + 1..b] {
            *cross = if coming { *cross + 1 } else { *cross - 1 };
        }
        self.begins[a] ^= scramble(u64::from(body) + 1);
        self.touch(a..b);
    }

    /// Takes an item out of its list; it remembers its place.
    fn unlink(&mut self, id: u32) {
        let (prev, next) = (self.prev[id as usize], self.next[id as usize]);
        match prev {
            NONE => self.head[self.inst.items[id as usize].first as usize] = next,
            prev => self.next[prev as usize] = next,
        }
        if next != NONE {
            self.prev[next as usize] = prev;
        }
    }

    /// Puts back the item that was taken out last.
    fn link(&mut self, id: u32) {
        let first = self.inst.items[id as usize].first as usize;
        let (prev, next) = (self.prev[id as usize], self.next[id as usize]);
        match prev {
            NONE => self.head[first] = id,
            prev => self.next[prev as usize] = id,
        }
        if next != NONE {
            self.prev[next as usize] = id;
        }
    }

    /// A hash of a component: what is yet to come, and the room that it has. Independent of
    /// everything outside, and of the limit if the room is the same.
    pub(super) fn hash(&mut self, left: usize, right: usize) -> (u64, u64) {
        let (mut a, mut b) = (scramble(((left as u64) << 32) | right as u64), 0);
        for x in left..right {
            if self.hashes[x].0 < self.stamp[x] {
                self.hashes[x] = self.hash_section(x);
            }
            let (_, c, d) = self.hashes[x];
            a = c.wrapping_add(a);
            b ^= d;
        }
        (a, b)
    }

    fn hash_section(&self, x: usize) -> (u64, u64, u64) {
        let mut h = scramble((self.limit - self.floor[x]) ^ scramble(x as u64 + 1));
        if self.base[x] < self.floor[x] {
            h = scramble(h ^ (self.limit - self.base[x]));
        }
        for &(low, high) in &self.reserved[x] {
            h = scramble(scramble(h ^ (self.limit - low)) ^ (self.limit - high));
        }
        let c = scramble(h ^ self.begins[x].rotate_left(23));
        (self.clock, c, scramble(c ^ h.rotate_left(17)))
    }
}

/// A bijection of 64 bits that leaves no pattern.
pub(super) fn scramble(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
