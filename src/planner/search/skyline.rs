//! The skyline: what is placed, seen from above.

use super::instance::Instance;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
enum Undo {
    Place(u32, usize),
    Raise { section: u32, floor: u64 },
}

/// A maximal run of sections with one floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Valley {
    pub left: usize,
    pub right: usize,
    pub floor: u64,
    /// The lower of both banks.
    pub bank: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pivot {
    pub section: usize,
    pub branches: u32,
    pub key: u64,
    pub waste: Option<u64>,
    pub valley: Valley,
    pub score: u64,
}

enum Look {
    Dead,
    Same,
    Changed(usize, usize),
}

pub(super) struct Skyline<'a> {
    inst: &'a Instance,
    pub limit: u64,
    pub floor: Vec<u64>,
    pub rem: Vec<u64>,
    pub cross: Vec<u32>,
    head: Vec<u32>,
    next: Vec<u32>,
    prev: Vec<u32>,
    pub placed: Vec<u64>,
    pub unplaced: usize,
    zobrist: Vec<u64>,
    /// By section: what begins there and is not placed.
    pub left: Vec<u64>,
    trail: Vec<Undo>,
    pub base: Vec<u64>,
    bases: Vec<u64>,
    pub dom: bool,
    dominated: bool,
    // Scratch for one valley, all zero between uses.
    count: Vec<i32>,
    ids: Vec<u32>,
    inside: Vec<u64>,
    small_end: Vec<u64>,
    small_first: Vec<u64>,
    pub mode: u64,
    pub climb: u64,
    pub wmode: u64,
    pub weight: Vec<u64>,
    pub forced: u64,
    pub raises: u64,
    pub dead: [u64; 8],
}

impl<'a> Skyline<'a> {
    pub(super) fn new(inst: &'a Instance, limit: u64) -> Self {
        let (m, n) = (inst.sections, inst.items.len());
        let mut s = Self {
            inst,
            limit,
            floor: vec![0; m],
            rem: vec![0; m],
            cross: vec![0; m + 1],
            head: vec![NONE; m],
            next: vec![NONE; n],
            prev: vec![NONE; n],
            placed: vec![u64::MAX; n],
            unplaced: n,
            zobrist: (0..n as u64).map(|i| super::tree::mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1)).collect(),
            left: vec![0; m],
            trail: Vec::new(),
            base: vec![0; m],
            bases: Vec::new(),
            dom: false,
            dominated: false,
            count: vec![0; m + 1],
            ids: vec![0; m + 1],
            inside: vec![0; m + 1],
            small_end: vec![u64::MAX; m + 1],
            small_first: vec![u64::MAX; m + 1],
            mode: 0,
            climb: 0,
            wmode: 0,
            weight: vec![0; m],
            forced: 0,
            raises: 0,
            dead: [0; 8],
        };
        for (id, item) in inst.items.iter().enumerate().rev() {
            let first = item.first as usize;
            s.left[first] ^= s.zobrist[id];
            let id = id as u32;
            let old = s.head[first];
            s.next[id as usize] = old;
            if old != NONE {
                s.prev[old as usize] = id;
            }
            s.head[first] = id;
            for x in first..item.end as usize {
                s.rem[x] += item.size;
            }
            for x in first + 1..item.end as usize {
                s.cross[x] += 1;
            }
        }
        s
    }

    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            match self.trail.pop() {
                Some(Undo::Place(id, at)) => self.unplace(id, at),
                Some(Undo::Raise { section, floor }) => self.floor[section as usize] = floor,
                None => {}
            }
        }
    }

    /// Places an item at the floor of its sections, which are all equal.
    pub(super) fn place(&mut self, id: u32) {
        let item = self.inst.items[id as usize];
        let (a, b) = (item.first as usize, item.end as usize);
        self.placed[id as usize] = self.floor[a];
        let at = self.bases.len();
        self.bases.extend_from_slice(&self.base[a..b]);
        for x in a..b {
            self.floor[x] += item.size;
            self.base[x] = self.floor[x];
            self.rem[x] -= item.size;
        }
        for x in a + 1..b {
            self.cross[x] -= 1;
        }
        let (p, n) = (self.prev[id as usize], self.next[id as usize]);
        if p == NONE {
            self.head[a] = n;
        } else {
            self.next[p as usize] = n;
        }
        if n != NONE {
            self.prev[n as usize] = p;
        }
        self.left[a] ^= self.zobrist[id as usize];
        self.unplaced -= 1;
        self.trail.push(Undo::Place(id, at));
    }

    fn unplace(&mut self, id: u32, at: usize) {
        let item = self.inst.items[id as usize];
        let (a, b) = (item.first as usize, item.end as usize);
        self.placed[id as usize] = u64::MAX;
        for x in a..b {
            self.floor[x] -= item.size;
            self.rem[x] += item.size;
        }
        self.base[a..b].copy_from_slice(&self.bases[at..]);
        self.bases.truncate(at);
        for x in a + 1..b {
            self.cross[x] += 1;
        }
        let (p, n) = (self.prev[id as usize], self.next[id as usize]);
        if p == NONE {
            self.head[a] = id;
        } else {
            self.next[p as usize] = id;
        }
        if n != NONE {
            self.prev[n as usize] = id;
        }
        self.left[a] ^= self.zobrist[id as usize];
        self.unplaced += 1;
    }

    pub(super) fn raise(&mut self, section: usize, to: u64) {
        self.trail.push(Undo::Raise { section: section as u32, floor: self.floor[section] });
        self.floor[section] = to;
        self.raises += 1;
    }

    fn run_start(&self, mut x: usize) -> usize {
        while self.cross[x] > 0 && self.floor[x - 1] == self.floor[x] {
            x -= 1;
        }
        x
    }

    fn run_end(&self, mut x: usize) -> usize {
        x += 1;
        while self.cross[x] > 0 && self.floor[x - 1] == self.floor[x] {
            x += 1;
        }
        x
    }

    /// The valley that is the run from `left`, if both banks are higher.
    fn valley(&self, left: usize, right: usize) -> Option<Valley> {
        let floor = self.floor[left];
        let l = if self.cross[left] == 0 { u64::MAX } else { self.floor[left - 1] };
        let r = if self.cross[right] == 0 { u64::MAX } else { self.floor[right] };
        (l > floor && r > floor).then(|| Valley { left, right, floor, bank: l.min(r) })
    }

    /// The widest range around the run `left..right` that is nowhere higher.
    fn basin(&self, left: usize, right: usize) -> Valley {
        let floor = self.floor[left];
        let (mut l, mut r) = (left, right);
        while self.cross[l] > 0 && self.floor[l - 1] <= floor {
            l -= 1;
        }
        while self.cross[r] > 0 && self.floor[r] <= floor {
            r += 1;
        }
        let lb = if self.cross[l] == 0 { u64::MAX } else { self.floor[l - 1] };
        let rb = if self.cross[r] == 0 { u64::MAX } else { self.floor[r] };
        Valley { left: l, right: r, floor, bank: lb.min(rb) }
    }

    /// Draws all conclusions from a change in `a..b`. False: nothing fits any more.
    pub(super) fn settle(&mut self, a: usize, b: usize) -> bool {
        let m = self.inst.sections;
        let mut x = self.run_start(a.saturating_sub(1));
        let mut end = (b + 1).min(m);
        let mut levels = 0;
        loop {
        while x < end {
            if self.rem[x] == 0 {
                x += 1;
                continue;
            }
            let right = self.run_end(x);
            let look = if let Some(valley) = self.valley(x, right) {
                self.inspect(valley)
            } else if self.climb > 0 {
                let v = self.basin(x, right);
                self.inspect_basin(v)
            } else { Look::Same };
                match look {
                    Look::Dead => return false,
                    Look::Changed(a, b) => {
                        x = self.run_start(a.saturating_sub(1));
                        end = end.max((b + 1).min(m));
                        continue;
                    }
                    Look::Same => {}
                }
            x = right;
        }
        // Climb.
        if levels + 1 >= self.climb { return true; }
        levels += 1;
        let at = a.min(m - 1);
        let mut v = self.basin(self.run_start(at), self.run_end(at));
        let mut again = false;
        for _ in 1..self.climb {
            if v.bank == u64::MAX { break; }
            let side = if self.cross[v.left] > 0 && self.floor[v.left - 1] == v.bank { v.left - 1 } else { v.right };
            v = self.basin(self.run_start(side), self.run_end(side));
            match self.inspect_basin(v) {
                Look::Dead => return false,
                Look::Changed(a, b) => {
                        x = self.run_start(a.saturating_sub(1));
                        end = (b + 1).min(m);
                        again = true;
                        break;
                }
                Look::Same => {}
            }
        }
        if !again { return true; }
        }
    }

    fn inspect_basin(&mut self, v: Valley) -> Look {
        if v.bank == u64::MAX { return Look::Same; }
        self.survey(v);
        if self.dominated {
            self.dominated = false;
            self.dead[2] += 1;
            self.wipe(v);
            return Look::Dead;
        }
        let mut look = Look::Same;
        let mut raised = (usize::MAX, 0);
        for x in v.left..v.right {
            let crossing = self.rem[x] - self.inside[x];
            if crossing > 0 && (v.bank > self.limit || crossing > self.limit - v.bank) {
                self.dead[1] += 1;
                self.weight[x] += 1;
                look = Look::Dead;
                break;
            }
            if self.count[x] == 0 && self.rem[x] > 0 {
                raised = (raised.0.min(x), x + 1);
            }
        }
        if let Look::Same = look {
            if raised.0 != usize::MAX {
                for x in raised.0..raised.1 {
                    if self.count[x] == 0 && self.rem[x] > 0 {
                        self.raise(x, v.bank);
                    }
                }
                look = Look::Changed(raised.0, raised.1);
            }
        }
        self.wipe(v);
        look
    }

    /// Fills the scratch with what lies wholly inside a valley.
    fn survey(&mut self, v: Valley) {
        for x in v.left..v.right {
            let mut id = self.head[x];
            let mut last = NONE;
            while id != NONE {
                let item = &self.inst.items[id as usize];
                let e = item.end as usize;
                if e > v.right {
                    break;
                }
                if self.dom && item.size <= self.floor[x] - self.base[x] && item.size <= self.floor[e - 1] - self.base[e - 1] {
                    let mut low = 0;
                    let mut high = u64::MAX;
                    for y in x..e {
                        low = low.max(self.base[y]);
                        high = high.min(self.floor[y]);
                    }
                    if low + item.size <= high {
                        self.dominated = true;
                    }
                }
                self.inside[x] = self.inside[x].wrapping_add(item.size);
                self.inside[e] = self.inside[e].wrapping_sub(item.size);
                let twin = last != NONE && {
                    let l = &self.inst.items[last as usize];
                    l.end == item.end && l.size == item.size
                };
                if !twin {
                    self.count[x] += 1;
                    self.count[e] -= 1;
                    self.ids[x] ^= id;
                    self.ids[e] ^= id;
                    self.small_end[e] = self.small_end[e].min(item.size);
                    self.small_first[x] = self.small_first[x].min(item.size);
                }
                last = id;
                id = self.next[id as usize];
            }
        }
        // Running sums, left to right; smallest item that ends by x / begins after x.
        for x in v.left + 1..v.right {
            self.inside[x] = self.inside[x].wrapping_add(self.inside[x - 1]);
            self.count[x] += self.count[x - 1];
            self.ids[x] ^= self.ids[x - 1];
            self.small_end[x] = self.small_end[x].min(self.small_end[x - 1]);
        }
        for x in (v.left..v.right - 1).rev() {
            self.small_first[x] = self.small_first[x].min(self.small_first[x + 1]);
        }
    }

    fn wipe(&mut self, v: Valley) {
        for x in v.left..=v.right {
            self.inside[x] = 0;
            self.count[x] = 0;
            self.ids[x] = 0;
            self.small_end[x] = u64::MAX;
            self.small_first[x] = u64::MAX;
        }
    }

    /// How far the floor of a section rises at least if nothing rests on it.
    fn step_up(&self, v: Valley, x: usize) -> u64 {
        let before = self.small_end[x];
        let after = if x + 1 < v.right { self.small_first[x + 1] } else { u64::MAX };
        (v.bank - v.floor).min(before).min(after)
    }

    fn slack(&self, x: usize) -> u64 {
        self.limit - self.floor[x] - self.rem[x]
    }

    fn inspect(&mut self, v: Valley) -> Look {
        self.survey(v);
        if self.dominated {
            self.dominated = false;
            self.dead[2] += 1;
            self.wipe(v);
            return Look::Dead;
        }
        let mut look = Look::Same;
        let mut force = NONE;
        let mut raised = (usize::MAX, 0);
        for x in v.left..v.right {
            let crossing = self.rem[x] - self.inside[x];
            if crossing > 0 && (v.bank > self.limit || crossing > self.limit - v.bank) {
                self.dead[0] += 1;
                self.weight[x] += 1;
                look = Look::Dead;
                break;
            }
            if self.count[x] == 0 {
                raised = (raised.0.min(x), x + 1);
            } else if self.count[x] == 1 && force == NONE && self.step_up(v, x) > self.slack(x) {
                force = self.ids[x];
            }
        }
        if let Look::Same = look {
            if raised.0 != usize::MAX {
                for x in raised.0..raised.1 {
                    if self.count[x] == 0 {
                        self.raise(x, v.bank);
                    }
                }
                look = Look::Changed(raised.0, raised.1);
            } else if force != NONE {
                self.forced += 1;
                let item = self.inst.items[force as usize];
                look = Look::Changed(item.first as usize, item.end as usize);
                self.place(force);
            }
        }
        self.wipe(v);
        look
    }

    fn score(&self, v: Valley, y: usize, _branches: u32) -> u64 {
        match self.mode {
            0 => v.floor,
            1 => 0,
            2 => self.slack(y),
            3 => (v.right - v.left) as u64,
            4 => u64::MAX - self.rem[y],
            5 => v.bank.min(self.limit) - v.floor,
            6 => u64::MAX - (v.bank.min(self.limit) - v.floor),
            7 => u64::MAX - v.floor,
            _ => v.floor * 4096 + (v.right - v.left) as u64,
        }
    }

    /// The section of `a..b` with the fewest ways to go on.
    pub(super) fn pivot(&mut self, a: usize, b: usize) -> Option<Pivot> {
        let mut best: Option<Pivot> = None;
        let mut x = a;
        while x < b {
            if self.rem[x] == 0 {
                x += 1;
                continue;
            }
            let right = self.run_end(x);
            if let Some(v) = self.valley(x, right) {
                self.survey(v);
                for y in v.left..v.right {
                    let up = self.step_up(v, y);
                    let waste = (up <= self.slack(y)).then_some(up);
                    let branches = self.count[y] as u32 + u32::from(waste.is_some());
                    let score = self.score(v, y, branches);
                    let key = match self.wmode {
                        0 => u64::from(branches) << 32,
                        1 => (u64::from(branches) << 40) / (16 + self.weight[y]),
                        2 => (u64::from(branches) << 40) / (1000 + self.weight[y]),
                        3 => (u64::from(branches) << 40) / (1 + self.weight[y]),
                        4 => (u64::from(branches) << 32) + u64::from(branches * branches) * (1<<20) ,
                        5 => (u64::from(branches) << 32) - if waste.is_some() { 1 << 31 } else { 0 },
                        6 => (u64::from(branches) << 32) + if waste.is_some() { 1 << 31 } else { 0 },
                        _ => (u64::from(branches) << 32) + if waste.is_some() { 1 << 33 } else { 0 },
                    };
                    let better = best.is_none_or(|p| (key, score) < (p.key, p.score));
                    if better {
                        best = Some(Pivot { key, section: y, branches, waste, valley: v, score });
                    }
                }
                self.wipe(v);
            }
            x = right;
        }
        best
    }

    /// The distinct items that may rest on a section of a valley.
    pub(super) fn candidates(&self, v: Valley, section: usize, into: &mut Vec<u32>) {
        for x in v.left..=section {
            let mut id = self.head[x];
            let mut last = NONE;
            while id != NONE {
                let item = &self.inst.items[id as usize];
                if item.end as usize > v.right {
                    break;
                }
                let twin = last != NONE && {
                    let l = &self.inst.items[last as usize];
                    l.end == item.end && l.size == item.size
                };
                if !twin && item.end as usize > section {
                    into.push(id);
                }
                last = id;
                id = self.next[id as usize];
            }
        }
    }

    pub(super) fn has(&self, id: u32) -> bool {
        self.placed[id as usize] == u64::MAX
    }
}
