//! The figures of a plan whose problem is constrained, counted again: pools, traffic, bytes alive.
//!
//! The bytes alive are the bytes that chunks need at once, in cells of the alignment (the book, Lower bound and
//! verification). A byte that several chunks need counts once. Every plan with the same links needs at least this many
//! bytes, in all pools together.

use std::collections::BTreeMap;

use crate::{
    Bytes, Plan, Step,
    covered::{self, Covered},
    problem::{ChunkId, constraints::Pool},
    verify::{
        Figure, Violation,
        chains::ClockTreeSpace,
        clashes::Timed,
        facts::{Facts, Over, Spot},
        figures::{Sizes, short_of},
        joined::Joined,
    },
};

/// The most pairs of a chunk and a clock that are examined.
const MAX_PAIRS: usize = 4_000_000;

/// If the peak lists more chunks, only this many of them are compared with each other.
const MAX_AT_PEAK: usize = 1_000;

/// The size that a plan states for a pool of its problem.
pub(super) fn stated(plan: &Plan, pool: usize) -> Option<Bytes> {
    if plan.pools.is_empty() { Some(plan.pool_size) } else { Some(plan.pools.get(pool)?.size) }
}

pub(super) fn check(facts: &Facts<'_>, violations: &mut Vec<Violation>) {
    let Facts { plan, problem, constraints, .. } = *facts;
    check_pools(facts, violations);
    let traffic = facts.placed().map(|(chunk, spot)| {
        let bytes = constraints.of(chunk).traffic.unwrap_or(problem.chunk(chunk).size);
        u128::from(bytes) * u128::from(facts.pool(spot.pool).cost)
    });
    let traffic = traffic.fold(0, u128::saturating_add);
    if plan.traffic != traffic {
        violations.push(Violation::WrongTraffic { expected: traffic, found: plan.traffic });
    }
    let alignment = u128::from(facts.alignment());
    let sizes = problem.ids().map(|chunk| facts.padded(chunk).next_multiple_of(alignment));
    let naive_size: u128 = sizes.sum();
    let naive_size = Bytes::try_from(naive_size).unwrap_or(Bytes::MAX);
    for (figure, expected, found) in [
        (Figure::Steps, problem.steps(), plan.steps),
        (Figure::NaiveSize, naive_size, plan.naive_size),
    ] {
        if expected != found {
            violations.push(Violation::WrongFigure { figure, expected, found });
        }
    }
    check_bound(facts, violations);
    check_peak(facts, violations);
}

/// Checks the size of each pool, and their sum.
fn check_pools(facts: &Facts<'_>, violations: &mut Vec<Violation>) {
    let plan = facts.plan;
    let mut total: u128 = 0;
    for ((at, pool), size) in facts.constraints.pools.iter().enumerate().zip(pool_sizes(facts)) {
        let expected = Bytes::try_from(size).unwrap_or(Bytes::MAX);
        total += size;
        // A plan may omit the only pool.
        if let Some(found) = plan.pools.get(at).map(|pool| pool.size)
            && expected != found
        {
            let pool = pool.name.to_string();
            violations.push(Violation::WrongPoolSize { pool, expected, found });
        }
        if let Pool { capacity: Some(capacity), largest: Some(_), .. } = *pool
            && size > capacity.into()
        {
            let pool = pool.name.to_string();
            violations.push(Violation::PoolTooLarge { pool, size: expected, capacity });
        }
    }
    let (expected, found) = (Bytes::try_from(total).unwrap_or(Bytes::MAX), plan.pool_size);
    if expected != found {
        let figure = Figure::PoolSize;
        violations.push(Violation::WrongFigure { figure, expected, found });
    }
}

/// The highest byte of each pool, rounded up to the alignment, but never above its capacity; of a
/// pool of buffers, the sum of that over its buffers.
fn pool_sizes(facts: &Facts<'_>) -> Vec<u128> {
    let mut tops: Vec<BTreeMap<Bytes, u128>> = vec![BTreeMap::new(); facts.constraints.pools.len()];
    for (_, Spot { pool, low, high }) in facts.placed() {
        let largest = facts.pool(pool).largest;
        let buffer = largest.map_or(0, |largest| low / largest);
        let below = u128::from(buffer) * u128::from(largest.unwrap_or(0));
        let top = tops[pool].entry(buffer).or_default();
        *top = (high - below).max(*top);
    }
    let size = |(pool, tops): (&Pool, &BTreeMap<Bytes, u128>)| -> u128 {
        let alignment = u128::from(pool.alignment.max(facts.alignment()));
        let limit = pool.largest.or(pool.capacity).map_or(u128::MAX, u128::from);
        tops.values().map(|top| top.next_multiple_of(alignment).min(limit)).sum()
    };
    facts.constraints.pools.iter().zip(&tops).map(size).collect()
}

/// Checks that the lower bound is not above what the plan reaches.
fn check_bound(facts: &Facts<'_>, violations: &mut Vec<Violation>) {
    let Plan { lower_bound, pool_size, proven_optimal, .. } = *facts.plan;
    if lower_bound > pool_size {
        violations.push(Violation::BoundAbovePool { lower_bound, pool_size });
    }
    if proven_optimal && facts.constraints.pools.len() == 1 && lower_bound != pool_size {
        violations.push(Violation::NotProven { lower_bound, pool_size });
    }
}

/// Checks the bytes alive: with one stream, the bound and the first step with the most of them; with several, that
/// the chunks listed as the peak are alive together.
fn check_peak(facts: &Facts<'_>, violations: &mut Vec<Violation>) {
    let Facts { plan, problem, constraints, .. } = *facts;
    if constraints.streams == 1 {
        if !plan.peak.is_empty() {
            violations.push(Violation::PeakOnOneStream);
        }
        let is_right = |(bytes, step): (u128, Step)| {
            [bytes <= plan.lower_bound.into(), step == plan.peak_step]
        };
        let of_plan = is_right(most_alive(facts, Links::OfPlan));
        if of_plan == [true; 2] {
            return;
        }
        // A plan may accept other requests than the problem does.
        let (bytes, step) = most_alive(facts, Links::OfProblem);
        let bytes = Bytes::try_from(bytes).unwrap_or(Bytes::MAX);
        let stated = [
            (Figure::LowerBound, bytes, plan.lower_bound),
            (Figure::PeakStep, step, plan.peak_step),
        ];
        let of_problem = is_right((bytes.into(), step));
        for ((figure, expected, found), (of_plan, of_problem)) in
            stated.into_iter().zip(of_plan.into_iter().zip(of_problem))
        {
            if !of_plan && !of_problem {
                violations.push(Violation::WrongFigure { figure, expected, found });
            }
        }
        return;
    }
    if plan.peak_step > 0 {
        let (figure, found) = (Figure::PeakStep, plan.peak_step);
        violations.push(Violation::WrongFigure { figure, expected: 0, found });
    }
    let mut peak: Vec<Timed<'_>> = Vec::new();
    for &at in plan.peak.iter().take(MAX_AT_PEAK) {
        let Some(planned) = plan.chunks.get(at) else {
            violations.push(Violation::NoSuchChunk { user: "the peak".to_owned() });
            continue;
        };
        let chunk = problem.ids().nth(at).filter(|&chunk| facts.name(chunk) == *planned.name);
        let chunk = chunk.and_then(|chunk| Timed::life(facts, chunk, facts.spot(chunk)?));
        let Some(new) = chunk else { continue };
        if let Some(old) = peak.iter().find(|old| !old.meets(&new)) {
            let (first, second) = (facts.name(old.chunk), facts.name(new.chunk));
            violations.push(Violation::NeverTogether { first, second });
        }
        peak.push(new);
    }
}

/// The source of the overwrites that are counted.
#[derive(Clone, Copy)]
enum Links {
    OfPlan,
    OfProblem,
}

impl Facts<'_> {
    /// The chunk that a chunk overwrites.
    fn over(&self, chunk: ChunkId, links: Links) -> Option<Over> {
        match links {
            Links::OfPlan => self.overwrites[chunk.index()],
            Links::OfProblem => {
                let link = self.problem.link(chunk)?;
                let distance = i128::from(link.offset) - i128::from(link.below);
                Some(Over { chunk: link.overwritten, distance })
            }
        }
    }
}

/// The most bytes alive together with the links of the plan, or with those of its problem if they
/// need less.
pub(super) fn bytes_alive(facts: &Facts<'_>) -> u128 {
    if facts.constraints.streams > 1 {
        return heaviest_cut(facts);
    }
    most_alive(facts, Links::OfPlan).0.min(most_alive(facts, Links::OfProblem).0)
}

/// The most bytes alive in one step of the only stream, and the first such step.
fn most_alive(facts: &Facts<'_>, links: Links) -> (u128, Step) {
    let alignment = u128::from(facts.alignment());
    let whole = facts.constraints.pools.iter().filter(|pool| pool.largest.is_none());
    let capacities = whole.filter_map(|pool| pool.capacity);
    let cut_off = capacities.map(|bytes| short_of(bytes, facts.alignment())).sum();
    let sizes = Sizes { alignment, cut_off };
    // Without an alignment, every byte is a cell.
    let is_celled = alignment > 1;
    let has_cells =
        if is_celled { has_cells(facts, links) } else { vec![false; facts.problem.len()] };
    let places: Vec<u128> = match links {
        Links::OfPlan => facts
            .spots
            .iter()
            .map(|spot| spot.map_or(0, |spot| covered::base(spot.pool) + u128::from(spot.low)))
            .collect(),
        Links::OfProblem => one_after_another(facts),
    };
    let mut changes: Vec<Change> = Vec::new();
    for chunk in facts.problem.ids().filter(|chunk| facts.padded(*chunk) > 0) {
        if matches!(links, Links::OfPlan) && facts.spot(chunk).is_none() {
            continue;
        }
        let (place, has_cells) = (places[chunk.index()], has_cells[chunk.index()]);
        for need in facts.needs(chunk, facts.over(chunk, links)) {
            let (low, high) = (place + need.low, place + need.high);
            let change = Change { step: need.begin, count: 1, low, high, has_cells };
            changes.push(change);
            changes.push(Change { step: need.end, count: -1, ..change });
        }
    }
    changes.sort_unstable_by_key(|change| change.step);
    let cell = |at: u128| at.next_multiple_of(alignment);
    let cells = |change: &Change| (cell(change.low), cell(change.high));
    let mut plain = Covered::new(changes.iter().flat_map(|change| [change.low, change.high]));
    let with_cells = changes.iter().filter(|change| change.has_cells);
    let mut aligned_bytes = Covered::new(with_cells.map(cells).flat_map(|(low, high)| [low, high]));
    let mut most = (0, 0);
    for now in changes.chunk_by(|a, b| a.step == b.step) {
        for change in now {
            plain.add(change.low, change.high, change.count);
            if change.has_cells {
                let (low, high) = cells(change);
                aligned_bytes.add(low, high, change.count);
            }
        }
        let cells = if is_celled { aligned_bytes.length() } else { plain.length() };
        let alive = sizes.alive(plain.length(), cells);
        if alive > most.0 {
            most = (alive, now[0].step);
        }
    }
    most
}

/// The begin or end of a need.
#[derive(Clone, Copy)]
struct Change {
    step: Step,
    count: i64,
    low: u128,
    high: u128,
    has_cells: bool,
}

/// By chunk: whether it is aligned: a root, or a chunk with such an alignment of its own.
fn aligned(facts: &Facts<'_>, links: Links) -> Vec<bool> {
    let mut is_root: Vec<bool> =
        facts.problem.ids().map(|chunk| facts.over(chunk, links).is_none()).collect();
    facts.constraints.parts.iter().for_each(|part| is_root[part.part.index()] = false);
    let own = |chunk| facts.constraints.of(chunk).alignment >= facts.alignment();
    facts.problem.ids().zip(is_root).map(|(chunk, is_root)| is_root || own(chunk)).collect()
}

/// By chunk: whether it or a chunk that it is joined to is aligned, so that its position within the cells of the
/// alignment is the same in every plan.
fn has_cells(facts: &Facts<'_>, links: Links) -> Vec<bool> {
    let count = facts.problem.len();
    let mut joined = Joined::new(count);
    facts.constraints.parts.iter().for_each(|part| joined.join(part.part, part.whole));
    for chunk in facts.problem.ids() {
        if let Some(over) = facts.over(chunk, links) {
            joined.join(chunk, over.chunk);
        }
    }
    let mut has_cells = vec![false; count];
    for (chunk, _) in
        aligned(facts, links).into_iter().enumerate().filter(|(_, is_aligned)| *is_aligned)
    {
        has_cells[joined.find(chunk)] = true;
    }
    (0..count).map(|chunk| has_cells[joined.find(chunk)]).collect()
}

/// Gives each chunk an address. Chunks that the problem's links and parts join lie at their distances, and all others
/// lie one after another, so that only joined chunks share bytes.
fn one_after_another(facts: &Facts<'_>) -> Vec<u128> {
    let count = facts.problem.len();
    let mut near: Vec<Vec<(usize, i128)>> = vec![Vec::new(); count];
    let mut join = |inner: ChunkId, outer: ChunkId, distance: i128| {
        near[outer.index()].push((inner.index(), distance));
        near[inner.index()].push((outer.index(), -distance));
    };
    facts.constraints.parts.iter().for_each(|part| join(part.part, part.whole, part.offset.into()));
    for chunk in facts.problem.ids() {
        if let Some(link) = facts.problem.link(chunk) {
            let distance = i128::from(link.offset) - i128::from(link.below);
            join(chunk, link.overwritten, distance);
        }
    }
    let is_aligned = aligned(facts, Links::OfProblem);
    let alignment = i128::from(facts.alignment());
    let mut places: Vec<Option<i128>> = vec![None; count];
    let mut end: i128 = 0;
    for first in 0..count {
        if places[first].is_some() {
            continue;
        }
        places[first] = Some(0);
        let mut body = vec![(first, 0)];
        let mut next = 0;
        while let Some(&(chunk, at)) = body.get(next) {
            next += 1;
            for &(other, distance) in &near[chunk] {
                if places[other].is_none() {
                    places[other] = Some(0);
                    body.push((other, at + distance));
                }
            }
        }
        let padded = |chunk| facts.padded(ChunkId::from_index(chunk)).cast_signed();
        let low = body.iter().map(|&(_, at)| at).min().unwrap_or(0);
        let high = body.iter().map(|&(chunk, at)| at + padded(chunk)).max().unwrap_or(0);
        // All aligned chunks of a body are aligned at once.
        let root = body.iter().find(|(chunk, _)| is_aligned[*chunk]).map_or(low, |&(_, at)| at);
        let start = end + (low - root - end).rem_euclid(alignment);
        for (chunk, at) in body {
            places[chunk] = Some(start + at - low);
        }
        end = start + high - low;
    }
    places.into_iter().map(|place| place.unwrap_or(0).cast_unsigned()).collect()
}

/// The most bytes alive at one of many clocks at which a chunk begins.
fn heaviest_cut(facts: &Facts<'_>) -> u128 {
    let timed: Vec<Timed<'_>> =
        facts.placed().flat_map(|(chunk, spot)| Timed::all(facts, chunk, spot)).collect();
    let cuts = (MAX_PAIRS / timed.len().max(1)).max(1);
    let weigh = |cut: &Timed<'_>| {
        let is_alive = |one: &&Timed<'_>| {
            one.begins().zip(cut.begins()).all(|(begin, at)| begin <= at)
                && !one.is_over_at(cut.begins())
        };
        let bytes = |one: &Timed<'_>| (one.spot.pool, one.bytes.start, one.bytes.end);
        let mut bytes: Vec<(usize, u128, u128)> =
            timed.iter().filter(is_alive).map(bytes).collect();
        bytes.sort_unstable();
        let mut total = 0;
        let mut top = (0, 0);
        for (pool, low, high) in bytes {
            if top.0 != pool {
                top = (pool, 0);
            }
            total += high.saturating_sub(low.max(top.1));
            top.1 = top.1.max(high);
        }
        total
    };
    timed.iter().step_by(timed.len().div_ceil(cuts).max(1)).map(weigh).max().unwrap_or(0)
}
