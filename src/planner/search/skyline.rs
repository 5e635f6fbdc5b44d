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

    /// Lets the floor of a section that was touched jump over the reserved parts that it meets.
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
        let (mut a, mut b) = (0u64, 0);
        for x in left..right {
            if self.hashes[x].0 < self.stamp[x] {
                self.hashes[x] = self.hash_section(x);
            }
            let (_, c, d) = self.hashes[x];
            a = a.wrapping_add(c);
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

#[cfg(test)]
pub(super) mod tests {
    use arbitrary::{Result, Unstructured};

    use super::*;
    use crate::planner::search::instance::tests::{instance, random_problem};

    /// A change of the sky.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::planner::search) enum Change {
        Place(u32),
        Hang(u32, u64),
        Raise(usize, u64),
    }

    pub(in crate::planner::search) fn apply(sky: &mut Skyline<'_>, change: Change) {
        match change {
            Change::Place(item) => sky.place(item),
            Change::Hang(body, offset) => sky.hang(body, offset),
            Change::Raise(x, to) => sky.raise(x, to),
        }
    }

    fn top(sky: &Skyline<'_>, x: usize) -> u64 {
        sky.reserved[x].last().map_or(u64::MAX, |reserved| reserved.0)
    }

    /// Some change that is allowed, if the first choice is.
    pub(in crate::planner::search) fn random_change(
        random: &mut Unstructured<'_>,
        sky: &Skyline<'_>,
    ) -> Result<Option<Change>> {
        let inst = sky.inst;
        if random.ratio(1, 4)? {
            let x = random.choose_index(inst.sections)?;
            let to = sky.floor[x] + random.int_in_range(1..=3)?;
            return Ok(
                (sky.live(x) && to <= sky.floor[x] + sky.slack(x)).then_some(Change::Raise(x, to))
            );
        }
        let body = random.choose_index(inst.bodies())?;
        let id = u32::try_from(body).unwrap();
        if sky.is_placed(id) {
            return Ok(None);
        }
        if let Some(item) = inst.items.get(body) {
            let mut over = item.first as usize..item.end as usize;
            let floor = sky.floor[over.start];
            let rests = over.all(|x| sky.floor[x] == floor && floor + item.size <= top(sky, x));
            return Ok(rests.then_some(Change::Place(id)));
        }
        let offset = random.int_in_range(0..=20)?;
        let is_free = inst.odd(id).parts.iter().all(|part| {
            let (low, high) = (offset + part.low, offset + part.high);
            (part.first as usize..part.end as usize).all(|x| {
                sky.floor[x] <= low && sky.reserved[x].iter().all(|r| high <= r.0 || r.1 <= low)
            })
        });
        Ok(is_free.then_some(Change::Hang(id, offset)))
    }

    /// What is counted is what is there to count.
    fn check(sky: &Skyline<'_>) {
        let inst = sky.inst;
        let coming = |body: &usize| sky.offset[*body] == u64::MAX;
        let items = || (0..inst.items.len()).filter(coming).map(|i| (i, inst.items[i]));
        let odds = || (0..inst.odds.len()).map(|odd| (odd + inst.items.len(), &inst.odds[odd]));
        for x in 0..inst.sections {
            let covers = |first: u32, end: u32| (first as usize..end as usize).contains(&x);
            let parts = || {
                odds()
                    .flat_map(|(body, odd)| odd.parts.iter().map(move |part| (body, part)))
                    .filter(|(_, part)| covers(part.first, part.end))
            };
            let rem: u64 =
                items().filter(|(_, i)| covers(i.first, i.end)).map(|(_, i)| i.size).sum();
            assert_eq!(sky.rem[x], rem);
            assert_eq!(sky.odd_rem[x] as usize, parts().filter(|(body, _)| coming(body)).count());
            assert_eq!(sky.live(x), rem > 0 || sky.odd_rem[x] > 0);
            let mut reserved: Vec<(u64, u64)> = parts()
                .filter(|(body, _)| !coming(body))
                .map(|(body, part)| (sky.offset[body] + part.low, sky.offset[body] + part.high))
                .filter(|part| part.0 >= sky.floor[x])
                .collect();
            reserved.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(sky.reserved[x], reserved);
            assert!(top(sky, x) > sky.floor[x] && sky.base[x] <= sky.floor[x]);
            let above: u64 =
                parts().filter(|(body, _)| coming(body)).map(|(_, p)| p.high - p.low).sum();
            let above = above + reserved.iter().map(|part| part.1 - part.0).sum::<u64>();
            assert_eq!(sky.above[x], above);
            assert_eq!(sky.slack(x), sky.limit - sky.floor[x] - rem - above);
            let mut listed = Vec::new();
            let mut id = sky.head[x];
            while id != NONE {
                listed.push(id as usize);
                id = sky.next[id as usize];
            }
            let begins = items().filter(|(_, i)| i.first as usize == x).map(|(id, _)| id);
            assert_eq!(listed, begins.collect::<Vec<_>>());
        }
        for x in 0..=inst.sections {
            let crosses = |first: usize, end: usize| first < x && x < end;
            let items = items().filter(|(_, i)| crosses(i.first as usize, i.end as usize)).count();
            let odds =
                odds().filter(|(b, odd)| coming(b) && crosses(odd.first(), odd.end())).count();
            assert_eq!((sky.cross[x] as usize, sky.odd_cross[x] as usize), (items, odds));
        }
    }

    /// All that a search may look at.
    fn state(sky: &mut Skyline<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
        let hashes: Vec<(u64, u64)> = (0..sky.inst.sections).map(|x| sky.hash(x, x + 1)).collect();
        (sky.floor.clone(), sky.base.clone(), sky.reserved.clone(), sky.offset.clone(), hashes)
    }

    #[test]
    fn the_sky_counts_right_and_goes_back_to_what_it_was() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            if inst.sections == 0 {
                return Ok(());
            }
            let limit = 100;
            let mut sky = Skyline::new(&inst, limit);
            check(&sky);
            let mut past = Vec::new();
            let mut changes: Vec<Change> = Vec::new();
            for _ in 0..random.int_in_range(0..=30)? {
                if random.ratio(1, 8)? && !past.is_empty() {
                    let back = random.choose_index(past.len())?;
                    let (mark, was) = past.swap_remove(back);
                    past.truncate(back);
                    changes.truncate(back);
                    sky.undo(mark);
                    assert_eq!(state(&mut sky), was);
                } else if let Some(change) = random_change(random, &sky)? {
                    past.push((sky.mark(), state(&mut sky)));
                    changes.push(change);
                    apply(&mut sky, change);
                    assert_ne!(state(&mut sky), past.last().unwrap().1);
                }
                check(&sky);
            }
            // Whatever came and went between, and under another limit before.
            let mut fresh = Skyline::new(&inst, limit + 1);
            let start = state(&mut fresh);
            for &change in &changes {
                apply(&mut fresh, change);
            }
            fresh.reset(limit);
            assert_ne!(state(&mut fresh), start);
            for &change in &changes {
                apply(&mut fresh, change);
            }
            assert_eq!(state(&mut fresh), state(&mut sky));
            let (left, right) = (random.choose_index(inst.sections)?, inst.sections);
            assert_eq!(fresh.hash(left, right), sky.hash(left, right));
            assert!(left == 0 || fresh.hash(left, right) != fresh.hash(0, right));
            Ok(())
        })
        .budget_ms(300);
    }

    #[test]
    fn a_floor_is_raised_no_higher_than_to_what_hangs_above_it() {
        let mut problem = crate::Problem::builder();
        let whole = problem.chunk(0..2, 6);
        let part = problem.chunk(1..3, 2);
        problem.overwrite(part, whole, 4);
        problem.chunk(0..1, 1);
        problem.chunk(2..3, 1);
        let problem = problem.build().unwrap();
        let inst = instance(&problem);
        let mut sky = Skyline::new(&inst, 8);
        assert_eq!((inst.sections, inst.items.len(), inst.odds.len()), (2, 2, 1));
        assert!(sky.loads_fit());
        sky.hang(2, 0);
        assert_eq!((&sky.floor[..], &sky.reserved[1][..]), (&[6, 0][..], &[(4, 6)][..]));
        sky.raise(1, 3);
        assert_eq!((sky.floor[1], sky.base[1]), (3, 0));
        // Beyond the part that hangs there: the floor meets it and stands on it.
        sky.raise(1, 5);
        assert_eq!((sky.floor[1], sky.base[1], sky.above[1]), (6, 6, 0));
        assert!(sky.reserved[1].is_empty());
        sky.reset(7);
        assert!(sky.loads_fit());
        sky.reset(6);
        assert!(!sky.loads_fit());
    }

    /// The hash of a component is that of its own room and bodies.
    #[test]
    fn a_hash_does_not_see_what_is_outside() {
        let mut problem = crate::Problem::builder();
        problem.chunk(0..1, 2);
        problem.chunk(0..1, 3);
        problem.chunk(1..2, 5);
        let problem = problem.build().unwrap();
        let inst = instance(&problem);
        let mut sky = Skyline::new(&inst, 9);
        let (left, right) = (sky.hash(0, 1), sky.hash(1, 2));
        sky.place(0);
        assert_eq!(sky.hash(1, 2), right);
        assert_ne!(sky.hash(0, 1), left);
        // The same room under another limit.
        sky.reset(7);
        let room_of_seven = sky.hash(0, 1);
        sky.reset(9);
        assert_ne!(sky.hash(0, 1), room_of_seven);
    }

    /// A hash stands for the state: the room below the limit, and what is yet to come. Whatever differs
    /// makes another hash, in both halves; the limit alone does not.
    #[test]
    fn a_hash_tells_all_rooms_apart_and_nothing_else() {
        let mut problem = crate::Problem::builder();
        for body in 0..4 {
            let whole = problem.chunk(0..2, 8 + body);
            let part = problem.chunk(1..3, 3);
            problem.overwrite(part, whole, body);
        }
        problem.chunk(0..1, 5);
        problem.chunk(2..3, 5);
        let problem = problem.build().unwrap();
        let inst = instance(&problem);
        assert_eq!((inst.sections, inst.items.len(), inst.odds.len()), (2, 2, 4));
        let hashes = |limit: u64, more: u64| {
            let mut told = std::collections::BTreeMap::new();
            let mut sky = Skyline::new(&inst, 0);
            for (floor, waste, hangs) in (0..20).flat_map(|floor| {
                (0..20).flat_map(move |waste| (0..20).map(move |hangs| (floor, waste, hangs)))
            }) {
                sky.reset(limit + more);
                // All that was raised above the floor is waste.
                for x in 0..2 {
                    sky.raise(x, floor + waste + more);
                }
                sky.base.fill(floor + more);
                let body = u32::try_from(2 + hangs % 4).unwrap();
                sky.hang(body, floor + waste + more + hangs);
                let mut state = vec![u64::from(body)];
                for x in 0..2 {
                    // Bases were changed behind its back.
                    sky.hashes[x].0 = 0;
                    let room = |height: u64| limit + more - height;
                    state.extend([room(sky.floor[x]), room(sky.base[x])]);
                    state.extend(sky.reserved[x].iter().flat_map(|r| [room(r.0), room(r.1)]));
                }
                told.insert(state, sky.hash(0, 2));
            }
            told
        };
        let (low, high) = (hashes(500, 0), hashes(500, 7));
        assert!(low == high && low.len() > 7000, "{} states", low.len());
        for half in [|hash: &(u64, u64)| hash.0, |hash: &(u64, u64)| hash.1] {
            let different: std::collections::BTreeSet<u64> = low.values().map(half).collect();
            assert_eq!(different.len(), low.len());
            // Each bit is set in about half of them.
            for bit in 0..64 {
                let set = different.iter().filter(|&&hash| hash >> bit & 1 == 1).count();
                let percent = 100 * set / low.len();
                assert!((45..55).contains(&percent), "bit {bit}: {percent} %");
            }
        }
    }

    /// The outputs of the generator splitmix64 (Steele, Lea, Flood 2014) for the seed 0.
    #[test]
    fn scrambling_is_a_step_of_splitmix64() {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let outputs = [0, 1, 2].map(|at| scramble(step.wrapping_mul(at)));
        assert_eq!(outputs, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }
}
