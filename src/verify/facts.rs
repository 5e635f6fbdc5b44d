//! The constraints of a problem, and the places that a plan gives: every chunk with its bytes in its pool, and
//! the overwrites that the plan accepts and may accept. Only the constraints are read from the problem, not how
//! it joined its chunks.

use std::collections::{HashMap, HashSet};

use crate::{
    Bytes, Plan, PlannedLink, Problem, Step,
    problem::{
        ChunkId,
        constraints::{Constraints, Pool},
    },
    verify::{Figure, Violation, problem::Matching, table},
};

/// The place of a chunk in its pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// The pool, by its index in the problem.
    pub(super) pool: usize,
    pub(super) low: Bytes,
    /// The byte after the last, padding included. It may be beyond 64 bits.
    pub(super) high: u128,
}

/// The chunk that an overwriter overwrites.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    pub(super) chunk: ChunkId,
    /// The bytes from its start to that of the overwriter; below 0 if the overwriter begins below it.
    pub(super) distance: i128,
}

/// Bytes, from the start of a chunk, that it needs in some steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) begin: Step,
    pub(super) end: Step,
    pub(super) low: u128,
    pub(super) high: u128,
}

/// The constraints of a problem, and the places that its plan gives.
pub(super) struct Facts<'a> {
    pub(super) problem: &'a Problem,
    pub(super) constraints: &'a Constraints,
    pub(super) plan: &'a Plan,
    /// By chunk of the problem: its bytes, if it has any and lies in a pool that exists.
    pub(super) spots: Vec<Option<Spot>>,
    /// By chunk of the problem: the chunk that it overwrites, if the plan says so and the problem
    /// allows it.
    pub(super) overwrites: Vec<Option<Over>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(
        problem: &'a Problem,
        constraints: &'a Constraints,
        plan: &'a Plan,
        matching: &Matching,
        violations: &mut Vec<Violation>,
    ) -> Self {
        let overwrites = vec![None; problem.len()];
        let mut facts = Self { problem, constraints, plan, spots: Vec::new(), overwrites };
        let pools = facts.match_pools(violations);
        facts.spots = facts.find_spots(&pools, matching, violations);
        facts.overwrites = facts.find_overwrites(matching, violations);
        facts
    }

    pub(super) fn name(&self, chunk: ChunkId) -> String {
        self.problem.name(chunk)
    }

    pub(super) fn pool(&self, pool: usize) -> &'a Pool {
        &self.constraints.pools[pool]
    }

    pub(super) fn pool_name(&self, pool: usize) -> String {
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
        match self.constraints.lives.get(chunk.index()) {
            Some(life) => &life.begin,
            None => std::slice::from_ref(&self.problem.chunk(chunk).begin),
        }
    }

    /// The moment from which no operator reads a chunk any more.
    pub(super) fn end(&self, chunk: ChunkId) -> &[Step] {
        match self.constraints.lives.get(chunk.index()) {
            Some(life) => &life.end,
            None => std::slice::from_ref(&self.problem.chunk(chunk).end),
        }
    }

    /// Finds the pool of the problem for each pool of the plan. They must be the same, in the same order.
    fn match_pools(&self, violations: &mut Vec<Violation>) -> Vec<Option<usize>> {
        if self.plan.pools.is_empty() && self.constraints.pools.len() == 1 {
            return vec![Some(0)];
        }
        let named: HashMap<&str, usize> =
            self.constraints.pools.iter().enumerate().map(|(at, pool)| (&*pool.name, at)).collect();
        let mut is_listed = vec![false; self.constraints.pools.len()];
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
            let Pool { capacity, alignment, cost, largest, .. } = *self.pool(pool);
            if capacity != planned.capacity {
                violations.push(Violation::WrongCapacity {
                    pool: text(),
                    expected: capacity,
                    found: planned.capacity,
                });
            }
            let buffers = [largest, planned.largest].map(Option::unwrap_or_default);
            for (field, expected, found) in [
                (Figure::Cost, cost, planned.cost),
                (Figure::PoolAlignment, alignment, planned.alignment),
                (Figure::Largest, buffers[0], buffers[1]),
            ] {
                if expected != found {
                    let name = format!("pool {}", planned.name);
                    violations.push(Violation::Changed { name, field, expected, found });
                }
            }
        }
        for (pool, _) in self.constraints.pools.iter().zip(is_listed).filter(|(_, listed)| !listed)
        {
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
    ) -> Vec<Option<Over>> {
        let requested: HashSet<(ChunkId, ChunkId, Bytes, Bytes)> = self
            .problem
            .requests()
            .iter()
            .map(|r| (r.overwriter, r.overwritten, r.offset, r.below))
            .collect();
        let mut accepted: Vec<Option<Over>> = vec![None; self.problem.len()];
        let mut overwriters: Vec<Option<ChunkId>> = vec![None; self.problem.len()];
        for (planned, new) in self.plan.chunks.iter().zip(&matching.chunks) {
            let Some(PlannedLink { chunk: old, offset, below }) = planned.overwrites else {
                continue;
            };
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
            let end = offset.checked_add(size(new));
            if below == 0 && end.is_none_or(|end| end > size(old)) {
                let (overwriter, overwritten) = (overwriter.clone(), overwritten.clone());
                violations.push(Violation::OverwriteTooLarge { overwriter, overwritten });
            }
            if !self.is_last_reader(new, old) {
                violations.push(self.out_of_time(new, old));
            }
            let distance = i128::from(offset) - i128::from(below);
            violations.extend(self.misplaced(new, old, distance, |expected, found| {
                Violation::Misplaced { overwriter, overwritten, expected, found }
            }));
            if before == violations.len() && requested.contains(&(new, old, offset, below)) {
                accepted[new.index()] = Some(Over { chunk: old, distance });
            }
        }
        if let Some(chunk) = table::cycle(self.plan) {
            violations.push(Violation::OverwriteCycle { chunk });
        }
        accepted
    }

    /// Rule a: the overwriter's operator is the last one that reads the overwritten chunk; every other reader is over
    /// before the operator begins, and so is whatever is over before the overwritten chunk begins.
    fn is_last_reader(&self, new: ChunkId, old: ChunkId) -> bool {
        let stream = self.constraints.of(new).stream;
        let mut ends = self.begin(new).iter().zip(self.end(old)).enumerate();
        let mut begins = self.begin(old).iter().zip(self.begin(new));
        self.padded(old) > 0
            && begins.all(|(old, new)| old <= new)
            && ends.all(
                |(at, (&begin, &end))| {
                    if at == stream { begin.checked_add(1) == Some(end) } else { end <= begin }
                },
            )
    }

    fn out_of_time(&self, new: ChunkId, old: ChunkId) -> Violation {
        let (overwriter, overwritten) = (self.name(new), self.name(old));
        if self.constraints.streams > 1 {
            return Violation::OverwriteUnordered { overwriter, overwritten };
        }
        let (begin, end) = (self.problem.chunk(new).begin, self.problem.chunk(old).end);
        let last = end.saturating_sub(1);
        Violation::OverwriteOutOfTime { overwriter, overwritten, begin, last }
    }

    /// Returns a violation if a chunk does not lie at a distance from the start of another one.
    pub(super) fn misplaced(
        &self,
        inner: ChunkId,
        outer: ChunkId,
        distance: i128,
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
        let expected = i128::from(around.low) + distance;
        let stated = expected.clamp(0, Bytes::MAX.into()).cast_unsigned();
        (expected != i128::from(inside.low))
            .then(|| violation(Bytes::try_from(stated).unwrap_or(Bytes::MAX), inside.low))
    }

    /// With one stream: the bytes that a chunk needs, in time order. In its first step, an overwriter shares the bytes
    /// that the overwritten chunk still needs; all its other bytes belong to it alone from the start.
    pub(super) fn needs(&self, chunk: ChunkId, over: Option<Over>) -> Vec<Need> {
        let all = self.all_needs(chunk);
        let Some(over) = over else { return all };
        let first = self.problem.chunk(chunk).begin;
        let later = first.saturating_add(1);
        let of_new = |byte: u128| (byte.cast_signed() - over.distance).max(0).cast_unsigned();
        let mut of_old = self.all_needs(over.chunk).into_iter();
        // A chunk needs one run of bytes in a step, or none.
        let shared = of_old.find(|need| need.begin <= first && first < need.end);
        let (low, high) = shared.map_or((0, 0), |need| (of_new(need.low), of_new(need.high)));
        let apart = |need: Need| {
            let end = if need.begin <= first { later } else { need.begin };
            let in_first = Need { end, ..need };
            [
                Need { high: need.high.min(low), ..in_first },
                Need { low: need.low.max(high), ..in_first },
                Need { begin: end, ..need },
            ]
        };
        let needs = all.into_iter().flat_map(apart);
        needs.filter(|need| need.begin < need.end && need.low < need.high).collect()
    }

    /// The bytes that a chunk needs, whatever it overwrites.
    fn all_needs(&self, chunk: ChunkId) -> Vec<Need> {
        let all = self.padded(chunk);
        let asked = self.constraints.of(chunk);
        let life = self.problem.chunk(chunk);
        let padding = u128::from(self.plan.padding);
        // The bytes that the chunk needs instead of all.
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
        needs.retain(|need| need.begin < need.end && need.low < need.high);
        needs
    }
}
