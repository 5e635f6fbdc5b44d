//! Plans of problems that are not plain, checked offset by offset: pools, pins, alignments, links
//! and parts. Nothing here asks how the problem joined its chunks; only what it asks for is read
//! from it, and everything is derived again from the definition.

use std::collections::{HashMap, HashSet};

use crate::{
    Bytes, Plan, PlannedLink, Problem, Step,
    plan::PlannedPart,
    problem::{
        ChunkId,
        demands::{Demands, Pool, PoolId},
    },
    verify::{
        Field, Violation,
        clashes::{self, Need},
        problem::Matching,
        sizes, table,
    },
};

/// The bytes that a chunk has in its pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// The pool, by its index in the problem.
    pub(super) pool: usize,
    pub(super) low: Bytes,
    /// The byte after the last, padding included. It may be beyond 64 bits.
    pub(super) high: u128,
}

/// What a problem asks for, and what its plan says about it.
pub(super) struct Facts<'a> {
    pub(super) problem: &'a Problem,
    pub(super) demands: &'a Demands,
    pub(super) plan: &'a Plan,
    /// By chunk of the problem: its bytes, if it has any and lies in a pool that exists.
    pub(super) spots: Vec<Option<Spot>>,
    /// By chunk of the problem: the chunk that it overwrites, if the plan says so and may.
    pub(super) overwrites: Vec<Option<ChunkId>>,
}

/// Returns everything that is wrong with the places, the links and the figures of a plan.
pub(super) fn check(
    problem: &Problem,
    demands: &Demands,
    plan: &Plan,
    matching: &Matching,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let facts = Facts::of(problem, demands, plan, matching, &mut violations);
    facts.check_places(&mut violations);
    facts.check_parts(matching, &mut violations);
    facts.check_buffers(&mut violations);
    table::check_objects(plan, &mut violations);
    violations.extend(clashes::check(&facts));
    sizes::check(&facts, &mut violations);
    violations
}

/// The most bytes alive together with the links of a plan, or with those of its problem if they
/// need less.
pub(super) fn bytes_alive(
    problem: &Problem,
    demands: &Demands,
    plan: &Plan,
    matching: &Matching,
) -> Bytes {
    let facts = Facts::of(problem, demands, plan, matching, &mut Vec::new());
    Bytes::try_from(sizes::bytes_alive(&facts)).unwrap_or(Bytes::MAX)
}

impl<'a> Facts<'a> {
    fn of(
        problem: &'a Problem,
        demands: &'a Demands,
        plan: &'a Plan,
        matching: &Matching,
        violations: &mut Vec<Violation>,
    ) -> Self {
        let overwrites = vec![None; problem.len()];
        let mut facts = Self { problem, demands, plan, spots: Vec::new(), overwrites };
        let pools = facts.match_pools(violations);
        facts.spots = facts.find_spots(&pools, matching, violations);
        facts.overwrites = facts.find_overwrites(matching, violations);
        facts
    }

    pub(super) fn name(&self, chunk: ChunkId) -> String {
        self.problem.labels().name(chunk)
    }

    pub(super) fn pool(&self, pool: usize) -> &'a Pool {
        &self.demands.pools[pool]
    }

    fn pool_name(&self, pool: usize) -> String {
        self.pool(pool).name.to_string()
    }

    pub(super) fn spot(&self, chunk: ChunkId) -> Option<Spot> {
        self.spots[chunk.index()]
    }

    /// The chunks with bytes that lie in a pool that exists.
    pub(super) fn placed(&self) -> impl Iterator<Item = (ChunkId, Spot)> + '_ {
        self.problem.ids().filter_map(|chunk| Some((chunk, self.spot(chunk)?)))
    }

    /// The bytes to reserve for a chunk.
    pub(super) fn padded(&self, chunk: ChunkId) -> u128 {
        match self.problem.chunk(chunk).size {
            0 => 0,
            size => u128::from(size) + u128::from(self.plan.padding),
        }
    }

    /// The alignment that the plan keeps to; that of the problem if it is not a power of two.
    pub(super) fn alignment(&self) -> Bytes {
        let Plan { alignment, .. } = *self.plan;
        if alignment.is_power_of_two() { alignment } else { self.problem.alignment() }
    }

    /// The moment at which the producer of a chunk begins: for each stream, its steps that are over.
    pub(super) fn begin(&self, chunk: ChunkId) -> &[Step] {
        match self.demands.lives.get(chunk.index()) {
            Some(life) => &life.begin,
            None => std::slice::from_ref(&self.problem.chunk(chunk).begin),
        }
    }

    /// The moment from which nobody reads a chunk any more.
    pub(super) fn end(&self, chunk: ChunkId) -> &[Step] {
        match self.demands.lives.get(chunk.index()) {
            Some(life) => &life.end,
            None => std::slice::from_ref(&self.problem.chunk(chunk).end),
        }
    }

    /// Finds the pool of the problem for each pool of the plan. They must be the same, in one order.
    fn match_pools(&self, violations: &mut Vec<Violation>) -> Vec<Option<usize>> {
        if self.plan.pools.is_empty() && self.demands.pools.len() == 1 {
            return vec![Some(0)];
        }
        let named: HashMap<&str, usize> =
            self.demands.pools.iter().enumerate().map(|(at, pool)| (&*pool.name, at)).collect();
        let mut is_listed = vec![false; self.demands.pools.len()];
        let mut found = Vec::with_capacity(self.plan.pools.len());
        for (at, planned) in self.plan.pools.iter().enumerate() {
            let pool = named.get(&*planned.name).copied();
            found.push(pool);
            let text = || planned.name.to_string();
            let Some(pool) = pool else {
                violations.push(Violation::Unknown { name: format!("pool '{}'", planned.name) });
                continue;
            };
            if std::mem::replace(&mut is_listed[pool], true) {
                violations.push(Violation::Repeated { name: format!("pool '{}'", planned.name) });
            } else if pool != at {
                violations.push(Violation::PoolOutOfOrder { pool: text() });
            }
            let Pool { capacity, cost, .. } = *self.pool(pool);
            if capacity != planned.capacity {
                violations.push(Violation::WrongCapacity {
                    pool: text(),
                    expected: capacity,
                    found: planned.capacity,
                });
            }
            if cost != planned.cost {
                violations.push(Violation::Changed {
                    name: format!("pool {}", planned.name),
                    field: Field::Cost,
                    expected: cost,
                    found: planned.cost,
                });
            }
        }
        for (pool, _) in self.demands.pools.iter().zip(is_listed).filter(|(_, listed)| !listed) {
            violations.push(Violation::Missing { name: format!("pool '{}'", pool.name) });
        }
        found
    }

    fn find_spots(
        &self,
        pools: &[Option<usize>],
        matching: &Matching,
        violations: &mut Vec<Violation>,
    ) -> Vec<Option<Spot>> {
        let spot = |chunk: ChunkId| {
            let planned = &self.plan.chunks[matching.planned[chunk.index()]?];
            let Some(pool) = pools.get(planned.pool).copied().flatten() else {
                let named = self.plan.pools.get(planned.pool);
                let pool = named.map_or_else(|| planned.pool.to_string(), |p| p.name.to_string());
                violations.push(Violation::NoSuchPool { chunk: self.name(chunk), pool });
                return None;
            };
            let (low, size) = (planned.offset, self.padded(chunk));
            (size > 0).then(|| Spot { pool, low, high: u128::from(low) + size })
        };
        self.problem.ids().map(spot).collect()
    }

    /// Checks that overwriters lie where their links put them and were allowed to overwrite.
    fn find_overwrites(
        &self,
        matching: &Matching,
        violations: &mut Vec<Violation>,
    ) -> Vec<Option<ChunkId>> {
        let requested: HashSet<(ChunkId, ChunkId, Bytes)> = self
            .problem
            .requests()
            .iter()
            .map(|request| (request.overwriter, request.overwritten, request.offset))
            .collect();
        let mut honoured: Vec<Option<ChunkId>> = vec![None; self.problem.len()];
        let mut overwriters: Vec<Option<ChunkId>> = vec![None; self.problem.len()];
        for (planned, new) in self.plan.chunks.iter().zip(&matching.chunks) {
            let Some(PlannedLink { chunk: old, offset, .. }) = planned.overwrites else { continue };
            let old = matching.chunks.get(old).copied().flatten();
            let (Some(new), Some(old)) = (*new, old) else { continue };
            if self.padded(new) == 0 {
                continue;
            }
            let before = violations.len();
            let (overwriter, overwritten) = (self.name(new), self.name(old));
            if let Some(first) = overwriters[old.index()].replace(new) {
                let (first, second) = (self.name(first), overwriter.clone());
                let overwritten = overwritten.clone();
                violations.push(Violation::OverwrittenTwice { overwritten, first, second });
            }
            let size = |chunk| self.problem.chunk(chunk).size;
            if offset.checked_add(size(new)).is_none_or(|end| end > size(old)) {
                let (overwriter, overwritten) = (overwriter.clone(), overwritten.clone());
                violations.push(Violation::OverwriteTooLarge { overwriter, overwritten });
            }
            if !self.is_last_reader(new, old) {
                violations.push(self.out_of_time(new, old));
            }
            violations.extend(self.misplaced(new, old, offset, |expected, found| {
                Violation::Misplaced { overwriter, overwritten, expected, found }
            }));
            if before == violations.len() && requested.contains(&(new, old, offset)) {
                honoured[new.index()] = Some(old);
            }
        }
        if let Some(chunk) = table::cycle(self.plan) {
            violations.push(Violation::OverwriteCycle { chunk });
        }
        honoured
    }

    /// Rule a: the overwriter's operator is the last one that reads the overwritten chunk, and every
    /// other reader is over before it begins.
    fn is_last_reader(&self, new: ChunkId, old: ChunkId) -> bool {
        let stream = self.demands.chunks[new.index()].stream;
        let mut ends = self.begin(new).iter().zip(self.end(old)).enumerate();
        self.padded(old) > 0
            && ends.all(
                |(at, (&begin, &end))| {
                    if at == stream { begin.checked_add(1) == Some(end) } else { end <= begin }
                },
            )
    }

    fn out_of_time(&self, new: ChunkId, old: ChunkId) -> Violation {
        let (overwriter, overwritten) = (self.name(new), self.name(old));
        if self.demands.streams > 1 {
            return Violation::OverwriteUnordered { overwriter, overwritten };
        }
        let (begin, end) = (self.problem.chunk(new).begin, self.problem.chunk(old).end);
        let last = end.saturating_sub(1);
        Violation::OverwriteOutOfTime { overwriter, overwritten, begin, last }
    }

    /// Returns a violation if a chunk does not lie at an offset in another one.
    fn misplaced(
        &self,
        inner: ChunkId,
        outer: ChunkId,
        offset: Bytes,
        violation: impl FnOnce(Bytes, Bytes) -> Violation,
    ) -> Option<Violation> {
        let (inside, around) = (self.spot(inner)?, self.spot(outer)?);
        if inside.pool != around.pool {
            return Some(Violation::TornApart {
                chunk: self.name(inner),
                other: self.name(outer),
                pool: self.pool_name(inside.pool),
                expected: self.pool_name(around.pool),
            });
        }
        let expected = around.low.checked_add(offset);
        (expected != Some(inside.low))
            .then(|| violation(expected.unwrap_or(Bytes::MAX), inside.low))
    }

    /// Checks pools, pins, alignments, capacities and reserved bytes.
    fn check_places(&self, violations: &mut Vec<Violation>) {
        let Plan { alignment, .. } = *self.plan;
        if !alignment.is_power_of_two() {
            violations.push(Violation::BadAlignment { alignment });
        }
        let reserved: Vec<Reserved> = self.demands.pools.iter().map(Reserved::of).collect();
        let mut is_part = vec![false; self.problem.len()];
        self.demands.parts.iter().for_each(|part| is_part[part.part.index()] = true);
        for (chunk, spot) in self.placed() {
            let asked = &self.demands.chunks[chunk.index()];
            let pool = self.pool(spot.pool);
            let (name, offset) = (|| self.name(chunk), spot.low);
            let of_pool = || pool.name.to_string();
            let size = Bytes::try_from(self.padded(chunk)).unwrap_or(Bytes::MAX);
            let is_allowed = |pools: &Vec<PoolId>| pools.iter().any(|p| p.index() == spot.pool);
            if !asked.pools.as_ref().is_none_or(is_allowed) {
                violations.push(Violation::WrongPool { chunk: name(), pool: of_pool() });
            }
            let is_root = !is_part[chunk.index()] && self.overwrites[chunk.index()].is_none();
            let of_root = if is_root { pool.alignment.max(self.alignment()) } else { 1 };
            let alignment = asked.alignment.max(of_root);
            if offset % alignment != 0 {
                violations.push(Violation::Misaligned { chunk: name(), offset, alignment });
            }
            if let Some(pin) = asked.pin
                && (pin.pool.index(), pin.offset) != (spot.pool, offset)
            {
                violations.push(Violation::NotPinned {
                    chunk: name(),
                    pool: of_pool(),
                    offset,
                    expected_pool: self.pool_name(pin.pool.index()),
                    expected: pin.offset,
                });
            }
            if let Some((low, high)) = reserved[spot.pool].meets(spot) {
                let (chunk, pool) = (name(), of_pool());
                violations.push(Violation::InReserved { chunk, pool, offset, size, low, high });
            }
            let is_one = pool.largest.is_none();
            let capacity = pool.capacity.filter(|&limit| is_one && spot.high > limit.into());
            let pool_size = sizes::stated(self.plan, spot.pool).filter(|_| is_one);
            let pool_size = pool_size.unwrap_or(Bytes::MAX);
            if let Some(capacity) = capacity {
                let (chunk, pool) = (name(), of_pool());
                violations.push(Violation::OutsideCapacity { chunk, pool, offset, size, capacity });
            } else if spot.high > pool_size.into() {
                let chunk = name();
                violations.push(Violation::OutsideThePool { chunk, offset, size, pool_size });
            }
        }
    }

    /// Checks that the plan lists the parts of the problem, and that they lie at their places.
    fn check_parts(&self, matching: &Matching, violations: &mut Vec<Violation>) {
        let mut listed = HashSet::new();
        let asked: HashSet<(ChunkId, ChunkId, Bytes)> =
            self.demands.parts.iter().map(|part| (part.part, part.whole, part.offset)).collect();
        for &PlannedPart { chunk, whole, offset } in &self.plan.parts {
            for (one, other) in [(chunk, whole), (whole, chunk)] {
                if one >= self.plan.chunks.len() {
                    let user = self.plan.chunks.get(other);
                    let user = user.map_or("a part".to_owned(), |user| user.name.to_string());
                    violations.push(Violation::NoSuchChunk { user });
                }
            }
            let find = |at: usize| matching.chunks.get(at).copied().flatten();
            let (Some(part), Some(whole)) = (find(chunk), find(whole)) else { continue };
            if !asked.contains(&(part, whole, offset)) {
                let (part, whole) = (self.name(part), self.name(whole));
                violations.push(Violation::UnknownPart { part, whole, offset });
            } else if !listed.insert((part, whole)) {
                let name = format!("{} as a part of {}", self.name(part), self.name(whole));
                violations.push(Violation::Repeated { name });
            }
        }
        for part in &self.demands.parts {
            let offset = part.offset;
            let (name, whole) = (self.name(part.part), self.name(part.whole));
            if !listed.contains(&(part.part, part.whole)) {
                let (part, whole) = (name.clone(), whole.clone());
                violations.push(Violation::MissingPart { part, whole, offset });
            }
            violations.extend(self.misplaced(part.part, part.whole, offset, |expected, found| {
                Violation::MisplacedPart { part: name, whole, expected, found }
            }));
        }
    }

    /// Checks that chunks joined by links lie in one buffer of a pool that consists of buffers.
    fn check_buffers(&self, violations: &mut Vec<Violation>) {
        if self.demands.pools.iter().all(|pool| pool.largest.is_none()) {
            return;
        }
        let mut joined = Joined::new(self.problem.len());
        self.demands.parts.iter().for_each(|part| joined.join(part.part, part.whole));
        for (chunk, overwritten) in self.problem.ids().zip(&self.overwrites) {
            if let Some(overwritten) = *overwritten {
                joined.join(chunk, overwritten);
            }
        }
        // The first chunk of each group in each pool, and the bytes of all of them.
        let mut groups: HashMap<(usize, usize), usize> = HashMap::new();
        let mut extents: Vec<(ChunkId, Spot)> = Vec::new();
        for (chunk, spot) in
            self.placed().filter(|(_, spot)| self.pool(spot.pool).largest.is_some())
        {
            let group = (joined.find(chunk.index()), spot.pool);
            let at = *groups.entry(group).or_insert(extents.len());
            match extents.get_mut(at) {
                None => extents.push((chunk, spot)),
                Some((_, extent)) => {
                    extent.low = extent.low.min(spot.low);
                    extent.high = extent.high.max(spot.high);
                }
            }
        }
        for (chunk, Spot { pool, low, high }) in extents {
            let Some(largest) = self.pool(pool).largest else { continue };
            if u128::from(low / largest) != (high - 1) / u128::from(largest) {
                violations.push(Violation::AcrossBuffers {
                    chunk: self.name(chunk),
                    pool: self.pool_name(pool),
                    low,
                    high: Bytes::try_from(high).unwrap_or(Bytes::MAX),
                    largest,
                });
            }
        }
    }

    /// What a chunk needs in time order, with one stream. An overwriter has its bytes for itself only
    /// from the step after its first.
    pub(super) fn needs(&self, chunk: ChunkId, is_overwriter: bool) -> Vec<Need> {
        let all = self.padded(chunk);
        let asked = &self.demands.chunks[chunk.index()];
        let life = self.problem.chunk(chunk);
        let begin = if is_overwriter { life.begin + 1 } else { life.begin };
        let padding = u128::from(self.plan.padding);
        // What the chunk needs instead of all of its bytes.
        let mut pauses: Vec<Need> = asked
            .holes
            .iter()
            .map(|hole| Need { begin: hole.start, end: hole.end, low: 0, high: 0 })
            .collect();
        pauses.extend(asked.windows.iter().map(|window| Need {
            begin: window.steps.start,
            end: window.steps.end,
            low: window.bytes.start.into(),
            high: u128::from(window.bytes.end) + padding,
        }));
        pauses.sort_by_key(|pause| pause.begin);
        let mut needs = Vec::with_capacity(2 * pauses.len() + 1);
        let mut from = life.begin;
        for pause in pauses {
            needs.push(Need { begin: from, end: pause.begin, low: 0, high: all });
            needs.push(pause);
            from = pause.end;
        }
        needs.push(Need { begin: from, end: life.end, low: 0, high: all });
        let late = |need: Need| Need { begin: need.begin.max(begin), ..need };
        needs
            .into_iter()
            .map(late)
            .filter(|need| need.begin < need.end && need.low < need.high)
            .collect()
    }
}

/// The reserved ranges of a pool by their begins, each with the one among them and those before that
/// ends last.
struct Reserved(Vec<(Bytes, (Bytes, Bytes))>);

impl Reserved {
    fn of(pool: &Pool) -> Self {
        let mut ranges: Vec<(Bytes, Bytes)> =
            pool.reserved.iter().map(|range| (range.start, range.end)).collect();
        ranges.sort_unstable();
        let mut last = (0, 0);
        let ranges = ranges.into_iter().map(|range| {
            if range.1 > last.1 {
                last = range;
            }
            (range.0, last)
        });
        Self(ranges.collect())
    }

    /// Returns a range that shares bytes with a chunk.
    fn meets(&self, spot: Spot) -> Option<(Bytes, Bytes)> {
        let begun = self.0.partition_point(|&(begin, _)| u128::from(begin) < spot.high);
        let &(_, range) = self.0.get(begun.checked_sub(1)?)?;
        (range.1 > spot.low).then_some(range)
    }
}

/// Groups of joined chunks.
pub(super) struct Joined(Vec<usize>);

impl Joined {
    pub(super) fn new(chunks: usize) -> Self {
        Self((0..chunks).collect())
    }

    pub(super) fn find(&mut self, mut chunk: usize) -> usize {
        while self.0[chunk] != chunk {
            self.0[chunk] = self.0[self.0[chunk]];
            chunk = self.0[chunk];
        }
        chunk
    }

    pub(super) fn join(&mut self, a: ChunkId, b: ChunkId) {
        let (a, b) = (self.find(a.index()), self.find(b.index()));
        self.0[b] = a;
    }
}
