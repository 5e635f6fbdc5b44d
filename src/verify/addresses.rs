//! Plans of constrained problems, checked offset by offset: pools, pins, alignments, parts and
//! buffers.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use crate::{
    Bytes, Plan, Problem, Step,
    plan::{PlannedPart, PlannedWindow},
    problem::{
        ChunkId,
        constraints::{ChunkConstraints, Constraints, PoolId},
    },
    verify::{
        Violation, clashes,
        facts::{Facts, Spot},
        joined::Joined,
        problem::Matching,
        reserved::Reserved,
        sizes, table,
    },
};

/// Returns everything that is wrong with the places, the links and the figures of a plan.
pub(super) fn check(
    problem: &Problem,
    constraints: &Constraints,
    plan: &Plan,
    matching: &Matching,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let facts = Facts::of(problem, constraints, plan, matching, &mut violations);
    facts.check_places(&mut violations);
    facts.check_parts(matching, &mut violations);
    facts.check_repeated(matching, &mut violations);
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
    constraints: &Constraints,
    plan: &Plan,
    matching: &Matching,
) -> Bytes {
    let facts = Facts::of(problem, constraints, plan, matching, &mut Vec::new());
    Bytes::try_from(sizes::bytes_alive(&facts)).unwrap_or(Bytes::MAX)
}

impl Facts<'_> {
    /// Checks pools, pins, alignments, capacities and reserved bytes.
    fn check_places(&self, violations: &mut Vec<Violation>) {
        let Plan { alignment, .. } = *self.plan;
        if !alignment.is_power_of_two() {
            violations.push(Violation::BadAlignment { alignment });
        }
        let reserved = self.constraints.pools.iter().map(|pool| Reserved::of(&pool.reserved));
        let reserved: Vec<Reserved> = reserved.collect();
        let mut is_part = vec![false; self.problem.len()];
        self.constraints.parts.iter().for_each(|part| is_part[part.part.index()] = true);
        for (chunk, spot) in self.placed() {
            let asked = self.constraints.of(chunk);
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
            if let Some((low, high)) = reserved[spot.pool].meets(offset, spot.high) {
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
        let asked: HashSet<(ChunkId, ChunkId, Bytes)> = self
            .constraints
            .parts
            .iter()
            .map(|part| (part.part, part.whole, part.offset))
            .collect();
        for &PlannedPart { chunk, whole, offset, low, size } in &self.plan.parts {
            for (one, other) in [(chunk, whole), (whole, chunk)] {
                if one >= self.plan.chunks.len() {
                    let user = self.plan.chunks.get(other);
                    let user = user.map_or("a part".to_owned(), |user| user.name.to_string());
                    violations.push(Violation::NoSuchChunk { user });
                }
            }
            let find = |at: usize| matching.chunks.get(at).copied().flatten();
            let (Some(part), Some(whole)) = (find(chunk), find(whole)) else { continue };
            let is_all = (low, size) == (0, self.problem.chunk(part).size);
            if !is_all || !asked.contains(&(part, whole, offset)) {
                let (part, whole) = (self.name(part), self.name(whole));
                violations.push(Violation::UnknownPart { part, whole, offset });
            } else if !listed.insert((part, whole)) {
                let name = format!("{} as a part of {}", self.name(part), self.name(whole));
                violations.push(Violation::Repeated { name });
            }
        }
        for part in &self.constraints.parts {
            let offset = part.offset;
            let (name, whole) = (self.name(part.part), self.name(part.whole));
            if !listed.contains(&(part.part, part.whole)) {
                let (part, whole) = (name.clone(), whole.clone());
                violations.push(Violation::MissingPart { part, whole, offset });
            }
            violations.extend(self.misplaced(
                part.part,
                part.whole,
                offset.into(),
                |expected, found| Violation::MisplacedPart { part: name, whole, expected, found },
            ));
        }
    }

    /// Checks the facts that a plan repeats from its problem for pictures: holes and windows, pins and
    /// reserved bytes. A plan may list more pins than the problem; those were given by the caller.
    fn check_repeated(&self, matching: &Matching, violations: &mut Vec<Violation>) {
        let find = |at: usize| matching.chunks.get(at).copied().flatten();
        let mut listed: HashMap<ChunkId, Vec<PlannedWindow>> = HashMap::new();
        for window in &self.plan.windows {
            match find(window.chunk) {
                Some(chunk) => listed.entry(chunk).or_default().push(*window),
                None => violations.push(Violation::NoSuchChunk { user: "a window".to_owned() }),
            }
        }
        let mut pinned = HashSet::new();
        for &at in &self.plan.pinned {
            match find(at) {
                Some(chunk) if pinned.insert(chunk) => {}
                Some(chunk) => {
                    let name = format!("the pin of {}", self.name(chunk));
                    violations.push(Violation::Repeated { name });
                }
                None => violations.push(Violation::NoSuchChunk { user: "a pin".to_owned() }),
            }
        }
        for (at, chunk) in self.problem.ids().enumerate() {
            let ChunkConstraints { holes, windows: asked, pin, .. } = self.constraints.of(chunk);
            if pin.is_some() && !pinned.contains(&chunk) && matching.planned[at].is_some() {
                violations.push(Violation::MissingPin { chunk: self.name(chunk) });
            }
            let mut windows = listed.remove(&chunk).unwrap_or_default();
            if matching.planned[at].is_none() || holes.len() + asked.len() + windows.len() == 0 {
                continue;
            }
            let holes = holes.iter().map(|hole| (hole.start, hole.end, 0, 0));
            let asked = asked.iter().map(|window| {
                (window.steps.start, window.steps.end, window.bytes.start, window.bytes.end)
            });
            let mut asked: Vec<(Step, Step, Bytes, Bytes)> = holes.chain(asked).collect();
            asked.sort_unstable();
            windows.sort_unstable();
            if !windows.iter().map(|w| (w.begin, w.end, w.low, w.high)).eq(asked) {
                violations.push(Violation::OtherWindows { chunk: self.name(chunk) });
            }
        }
        self.check_reserved(violations);
    }

    /// Checks that the plan lists the reserved bytes of the pools that it lists.
    fn check_reserved(&self, violations: &mut Vec<Violation>) {
        // By pool and range: how often the problem reserves it, less how often the plan lists it.
        let mut missing: BTreeMap<(usize, Bytes, Bytes), i64> = BTreeMap::new();
        let named: HashMap<&str, usize> =
            self.plan.pools.iter().enumerate().map(|(at, pool)| (&*pool.name, at)).collect();
        for pool in &self.constraints.pools {
            let Some(&at) = named.get(&*pool.name) else { continue };
            for range in &pool.reserved {
                *missing.entry((at, range.start, range.end)).or_default() += 1;
            }
        }
        for &(pool, Range { start, end }) in &self.plan.reserved {
            if pool < self.plan.pools.len() {
                *missing.entry((pool, start, end)).or_default() -= 1;
            }
        }
        for ((pool, low, high), count) in missing {
            let pool = self.plan.pools[pool].name.to_string();
            match count {
                1.. => violations.push(Violation::MissingReserve { pool, low, high }),
                0 => {}
                _ => violations.push(Violation::UnknownReserve { pool, low, high }),
            }
        }
    }

    /// Checks that chunks joined by links lie in one buffer of a pool that consists of buffers.
    fn check_buffers(&self, violations: &mut Vec<Violation>) {
        if self.constraints.pools.iter().all(|pool| pool.largest.is_none()) {
            return;
        }
        let mut joined = Joined::new(self.problem.len());
        self.constraints.parts.iter().for_each(|part| joined.join(part.part, part.whole));
        for (chunk, over) in self.problem.ids().zip(&self.overwrites) {
            if let Some(over) = over {
                joined.join(chunk, over.chunk);
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
}
