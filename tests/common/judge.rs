//! A checker of plans that goes byte by byte and step by step. It reads the text of a problem and uses
//! nothing of the library.

#![allow(dead_code, reason = "each target uses its own part")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The place of a chunk in a plan, with the index of the pool, and the chunk that it overwrites
/// there.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub pool: usize,
    pub offset: u64,
    pub overwrites: Option<usize>,
}

/// Returns whether a plan is right. Ids of chunks are their positions.
pub fn is_right(problem: &Value, spots: &[Spot]) -> bool {
    Judge::new(problem).all(spots)
}

/// A chunk as the text of the problem has it.
struct Asked {
    size: u64,
    begin: Vec<u64>,
    end: Vec<u64>,
    stream: usize,
    alignment: u64,
    pools: Option<Vec<usize>>,
    pin: Option<(Option<usize>, u64)>,
    holes: Vec<(u64, u64)>,
    /// The steps and the bytes of each.
    windows: Vec<[u64; 4]>,
    traffic: u64,
    /// For each byte, the chunks and bytes that it may be.
    names: Vec<BTreeSet<(usize, u64)>>,
    /// The chunks that parts join with this one.
    family: BTreeSet<usize>,
}

struct AskedPool {
    capacity: Option<u64>,
    alignment: u64,
    cost: u64,
    reserved: Vec<(u64, u64)>,
    largest: Option<u64>,
}

pub struct Judge {
    chunks: Vec<Asked>,
    pools: Vec<AskedPool>,
    alignment: u64,
    padding: u64,
    parts: Vec<(usize, usize, u64)>,
    /// The pairs of chunks of which the first must be written over the second.
    required: Vec<(usize, usize)>,
    apart: Vec<BTreeSet<usize>>,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], |list| list)
}

fn number(value: &Value, default: u64) -> u64 {
    value.as_u64().unwrap_or(default)
}

fn range(value: &Value) -> (u64, u64) {
    (number(&value[0], 0), number(&value[1], 0))
}

fn clock(value: &Value) -> Vec<u64> {
    match value.as_u64() {
        Some(step) => vec![step],
        None => list(value).iter().map(|at| at.as_u64().unwrap()).collect(),
    }
}

impl Judge {
    pub fn new(problem: &Value) -> Self {
        let chunks = list(&problem["chunks"]);
        let pools = list(&problem["pools"]);
        let position = |id: &Value| chunks.iter().position(|chunk| chunk["id"] == *id).unwrap();
        let pool_of =
            |name: &Value| pools.iter().position(|pool| pool["name"] == *name).unwrap_or(0);
        let parts = list(&problem["parts"]).iter().map(|part| {
            (position(&part["chunk"]), position(&part["whole"]), number(&part["offset"], 0))
        });
        let parts: Vec<_> = parts.collect();
        let size = |chunk: usize| number(&chunks[chunk]["size"], 0);
        let asked = |(at, chunk): (usize, &Value)| Asked {
            size: size(at),
            begin: clock(&chunk["begin"]),
            end: clock(&chunk["end"]),
            stream: usize::try_from(number(&chunk["stream"], 0)).unwrap(),
            alignment: number(&chunk["alignment"], 1),
            pools: chunk["pools"].as_array().map(|names| names.iter().map(pool_of).collect()),
            pin: chunk["pin"]
                .as_object()
                .map(|pin| (pin.get("pool").map(pool_of), number(&pin["offset"], 0))),
            holes: list(&chunk["holes"]).iter().map(range).collect(),
            windows: list(&chunk["windows"])
                .iter()
                .map(|w| ["begin", "end", "low", "high"].map(|key| number(&w[key], 0)))
                .collect(),
            traffic: number(&chunk["traffic"], size(at)),
            names: (0..size(at)).map(|byte| names(&parts, &size, at, byte)).collect(),
            family: family(&parts, chunks.len(), at),
        };
        let pool = |pool: &Value| AskedPool {
            capacity: pool["capacity"].as_u64(),
            alignment: number(&pool["alignment"], 1),
            cost: number(&pool["cost"], 0),
            reserved: list(&pool["reserved"]).iter().map(range).collect(),
            largest: pool["largest"].as_u64(),
        };
        let required = list(&problem["overwrites"]).iter().filter(|r| r["required"] == true);
        let pair = |r: &Value| (position(&r["chunk"]), position(&r["overwritten"]));
        let group = |group: &Value| list(group).iter().map(position).collect();
        Self {
            chunks: chunks.iter().enumerate().map(asked).collect(),
            pools: if pools.is_empty() {
                vec![pool(&Value::Null)]
            } else {
                pools.iter().map(pool).collect()
            },
            alignment: number(&problem["alignment"], 1),
            padding: number(&problem["padding"], 0),
            required: required.map(pair).filter(|&(new, _)| size(new) > 0).collect(),
            apart: list(&problem["apart"]).iter().map(group).collect(),
            parts,
        }
    }

    fn size(&self, chunk: usize) -> u64 {
        self.chunks[chunk].size
    }

    fn padded(&self, chunk: usize) -> u64 {
        if self.size(chunk) == 0 { 0 } else { self.size(chunk) + self.padding }
    }

    fn all(&self, spots: &[Spot]) -> bool {
        (0..self.chunks.len()).all(|chunk| spots[chunk].pool < self.pools.len())
            && (0..self.chunks.len()).all(|chunk| self.is_well_placed(chunk, spots))
            && self.links(spots)
            && self.buffers(spots).is_some()
            && (0..self.chunks.len()).all(|y| (0..y).all(|x| self.get_along(x, y, spots)))
    }

    fn is_well_placed(&self, chunk: usize, spots: &[Spot]) -> bool {
        let Spot { pool: at, offset, overwrites } = spots[chunk];
        let asked = &self.chunks[chunk];
        let pool = &self.pools[at];
        if asked.size == 0 {
            return true;
        }
        let mut bytes = offset..offset + self.padded(chunk);
        let is_part = self.parts.iter().any(|&(part, _, _)| part == chunk);
        let is_root = overwrites.is_none() && !is_part;
        let mut alignment = asked.alignment;
        if is_root {
            alignment = alignment.max(self.alignment).max(pool.alignment);
        }
        let pinned =
            asked.pin.is_none_or(|(pool, pin)| pool.is_none_or(|pool| pool == at) && pin == offset);
        let is_reserved =
            |byte: u64| pool.reserved.iter().any(|&(low, high)| low <= byte && byte < high);
        let is_allowed = asked.pools.as_ref().is_none_or(|pools| pools.contains(&at));
        let limit = if pool.largest.is_none() { pool.capacity } else { None };
        is_allowed
            && offset.is_multiple_of(alignment)
            && pinned
            && bytes.all(|byte| !is_reserved(byte) && limit.is_none_or(|limit| byte < limit))
    }

    fn links(&self, spots: &[Spot]) -> bool {
        let inside = |inner: usize, outer: usize, offset: u64| {
            spots[inner].pool == spots[outer].pool
                && spots[inner].offset == spots[outer].offset + offset
        };
        self.required.iter().all(|&(new, old)| spots[new].overwrites == Some(old))
            && self.parts.iter().all(|&(part, whole, offset)| inside(part, whole, offset))
    }

    /// Returns the sizes of the pools, or nothing if a body crosses the boundary of a buffer or the
    /// buffers exceed the capacity.
    fn buffers(&self, spots: &[Spot]) -> Option<Vec<u64>> {
        let group = self.groups(spots);
        let size_of = |pool: usize| {
            let AskedPool { largest, capacity, alignment, .. } = self.pools[pool];
            let here = |chunk: &usize| spots[*chunk].pool == pool && self.size(*chunk) > 0;
            let buffer_of = |byte: u64| largest.map_or(0, |largest| byte / largest);
            let mut tops = BTreeMap::new();
            for chunk in (0..group.len()).filter(here) {
                let buffer = buffer_of(spots[chunk].offset);
                let end = spots[chunk].offset + self.padded(chunk);
                let top: &mut u64 = tops.entry(buffer).or_default();
                *top = (*top).max(end - buffer * largest.unwrap_or(0));
                let mates = (0..group.len()).filter(here).filter(|at| group[*at] == group[chunk]);
                let mut bytes =
                    mates.flat_map(|at| spots[at].offset..spots[at].offset + self.padded(at));
                if bytes.any(|byte| buffer_of(byte) != buffer) {
                    return None;
                }
            }
            let alignment = alignment.max(self.alignment);
            let size: u64 = tops.values().map(|top| top.next_multiple_of(alignment)).sum();
            match (largest, capacity) {
                (Some(_), Some(limit)) if size > limit => None,
                (None, Some(limit)) => Some(size.min(limit)),
                _ => Some(size),
            }
        };
        (0..self.pools.len()).map(size_of).collect()
    }

    /// For each chunk, a number that is the same for all that links and parts join with it.
    fn groups(&self, spots: &[Spot]) -> Vec<usize> {
        let mut group: Vec<usize> = (0..spots.len()).collect();
        let links = (0..spots.len()).filter_map(|at| Some((at, spots[at].overwrites?)));
        for (a, b) in links.chain(self.parts.iter().map(|&(part, whole, _)| (part, whole))) {
            let (from, to) = (group[a], group[b]);
            group.iter_mut().filter(|at| **at == from).for_each(|at| *at = to);
        }
        group
    }

    /// Returns whether two chunks do not disturb each other, byte by byte and, with one stream,
    /// step by step.
    fn get_along(&self, x: usize, y: usize, spots: &[Spot]) -> bool {
        let (a, b) = (spots[x], spots[y]);
        if a.pool != b.pool || self.size(x) == 0 || self.size(y) == 0 {
            return true;
        }
        let end = (a.offset + self.padded(x)).min(b.offset + self.padded(y));
        let mut shared = a.offset.max(b.offset)..end;
        if !shared.is_empty() && self.apart.iter().any(|g| g.contains(&x) && g.contains(&y)) {
            return false;
        }
        let agree = |byte: u64| self.agree(x, byte - a.offset, y, byte - b.offset);
        if self.chunks[x].begin.len() > 1 {
            return shared.all(|byte| agree(byte) || !self.meet(x, y, byte, spots));
        }
        let begin = self.chunks[x].begin[0].max(self.chunks[y].begin[0]);
        let end = self.chunks[x].end[0].min(self.chunks[y].end[0]);
        (begin..end).all(|step| {
            shared.clone().all(|byte| {
                let (of_x, of_y) = (byte - a.offset, byte - b.offset);
                let both = self.needs(x, of_x, step, spots) && self.needs(y, of_y, step, spots);
                let written = self.destroys(x, of_x, step, spots, (y, of_y))
                    || self.destroys(y, of_y, step, spots, (x, of_x));
                !both && !written || agree(byte)
            })
        })
    }

    /// Returns whether a chunk is written over a byte of a part or a whole of the chunk that it overwrites,
    /// in a step in which that part or whole still needs it.
    fn destroys(
        &self,
        new: usize,
        byte: u64,
        step: u64,
        spots: &[Spot],
        (other, of_other): (usize, u64),
    ) -> bool {
        let Some(old) = spots[new].overwrites else { return false };
        let begins = self.chunks[new].begin[0] == step;
        let is_real = byte < self.size(new) && of_other < self.size(other);
        begins
            && is_real
            && other != old
            && self.is_related(old, other)
            && self.needs(other, of_other, step, spots)
    }

    /// Returns whether a chunk needs a byte in a step.
    fn needs(&self, chunk: usize, byte: u64, step: u64, spots: &[Spot]) -> bool {
        let asked = &self.chunks[chunk];
        let (begin, end) = (asked.begin[0], asked.end[0]);
        if step < begin || step >= end {
            return false;
        }
        // In its first step, an overwriter shares the bytes of the other chunk.
        if let (Some(old), true) = (spots[chunk].overwrites, step == begin) {
            let at = spots[chunk].offset + byte;
            if spots[old].offset <= at && at < spots[old].offset + self.padded(old) {
                return false;
            }
        }
        if asked.holes.iter().any(|&(from, to)| from <= step && step < to) {
            return false;
        }
        let window = asked.windows.iter().find(|[from, to, ..]| *from <= step && step < *to);
        window.is_none_or(|&[_, _, low, high]| low <= byte && byte < high + self.padding)
    }

    /// Returns whether two chunks on several streams may need a byte of the pool at the same time.
    fn meet(&self, x: usize, y: usize, byte: u64, spots: &[Spot]) -> bool {
        let life = |chunk: usize| {
            let asked = &self.chunks[chunk];
            let mut begin = asked.begin.clone();
            // In its first step, an overwriter shares the bytes of the other chunk.
            if let Some(old) = spots[chunk].overwrites
                && (spots[old].offset..spots[old].offset + self.padded(old)).contains(&byte)
            {
                begin[asked.stream] += 1;
            }
            (begin, &asked.end)
        };
        let ((begin_x, end_x), (begin_y, end_y)) = (life(x), life(y));
        let before = |end: &[u64], begin: &[u64]| end.iter().zip(begin).all(|(e, b)| e <= b);
        let is_empty = begin_x == *end_x || begin_y == *end_y;
        !is_empty && !before(end_x, &begin_y) && !before(end_y, &begin_x)
    }

    /// Returns whether two bytes may lie at the same place.
    fn agree(&self, x: usize, byte_x: u64, y: usize, byte_y: u64) -> bool {
        if byte_x >= self.size(x) || byte_y >= self.size(y) {
            return self.is_related(x, y);
        }
        let names =
            |chunk: usize, byte: u64| &self.chunks[chunk].names[usize::try_from(byte).unwrap()];
        let (of_x, of_y) = (names(x, byte_x), names(y, byte_y));
        of_x.is_subset(of_y) || of_y.is_subset(of_x)
    }

    fn is_related(&self, x: usize, y: usize) -> bool {
        self.chunks[x].family.contains(&y)
    }
}

fn names(
    parts: &[(usize, usize, u64)],
    size: &impl Fn(usize) -> u64,
    chunk: usize,
    byte: u64,
) -> BTreeSet<(usize, u64)> {
    let mut found = BTreeSet::new();
    for &(part, whole, offset) in parts {
        if whole == chunk && offset <= byte && byte < offset + size(part) && part != chunk {
            found.extend(names(parts, size, part, byte - offset));
        }
    }
    if found.is_empty() {
        found.insert((chunk, byte));
    }
    found
}

fn family(parts: &[(usize, usize, u64)], chunks: usize, of: usize) -> BTreeSet<usize> {
    let mut family = BTreeSet::from([of]);
    for _ in 0..chunks {
        for &(part, whole, _) in parts {
            if family.contains(&part) || family.contains(&whole) {
                family.extend([part, whole]);
            }
        }
    }
    family
}

/// Positions of chunks that links of the problem's text and of a plan join, for each chunk.
pub fn bodies(problem: &Value, spots: &[Spot]) -> Vec<Vec<usize>> {
    let group = Judge::new(problem).groups(spots);
    (0..spots.len())
        .map(|at| (0..spots.len()).filter(|&other| group[other] == group[at]).collect())
        .collect()
}

/// The least objective of all places of the bodies that is below `found`: the traffic, then the sizes of
/// the pools from the last to the first. `links` has the chunk that each one is written over, and the
/// distance between the two. Returns an error after 200 000 places.
pub fn least_of_all_places(
    problem: &Value,
    links: &[Option<(usize, i64)>],
    found: Option<&[u128]>,
) -> Result<Option<Vec<u128>>, TooMany> {
    let judge = Judge::new(problem);
    let mut every = EveryPlace::new(&judge, links, found.map(<[u128]>::to_vec));
    every.place(0)?;
    Ok(every.better)
}

/// There are too many places to try.
#[derive(Debug)]
pub struct TooMany;

/// A body of chunks and their distances from its lowest one.
struct Body(Vec<(usize, u64)>);

struct EveryPlace<'a> {
    judge: &'a Judge,
    bodies: Vec<Body>,
    spots: Vec<Spot>,
    /// The first offset at which no place can be better than another one below it.
    top: u64,
    tried: u64,
    /// The objective to beat.
    limit: Option<Vec<u128>>,
    better: Option<Vec<u128>>,
    /// By two bodies, the distances of those that were looked at, and whether they get along.
    pairs: BTreeMap<(usize, usize, i64), bool>,
}

impl<'a> EveryPlace<'a> {
    fn new(judge: &'a Judge, links: &[Option<(usize, i64)>], limit: Option<Vec<u128>>) -> Self {
        let spot = |link: &Option<(usize, i64)>| Spot {
            pool: 0,
            offset: 0,
            overwrites: link.map(|(old, _)| old),
        };
        let spots: Vec<Spot> = links.iter().map(spot).collect();
        let mut distance: Vec<Option<i64>> = vec![None; links.len()];
        let mut bodies = Vec::new();
        for chunk in 0..links.len() {
            if distance[chunk].is_some() || judge.size(chunk) == 0 {
                continue;
            }
            let mut members = vec![chunk];
            distance[chunk] = Some(0);
            let mut next = 0;
            while let Some(&from) = members.get(next) {
                next += 1;
                let own = distance[from].unwrap();
                let parts =
                    judge.parts.iter().map(|&(a, b, by)| (a, b, i64::try_from(by).unwrap()));
                let overs =
                    links.iter().enumerate().filter_map(|(a, link)| link.map(|(b, by)| (a, b, by)));
                for (inner, outer, by) in parts.chain(overs) {
                    let reached = match from {
                        from if from == inner => (outer, own - by),
                        from if from == outer => (inner, own + by),
                        _ => continue,
                    };
                    if distance[reached.0].is_none() {
                        distance[reached.0] = Some(reached.1);
                        members.push(reached.0);
                    }
                }
            }
            let low = members.iter().map(|&at| distance[at].unwrap()).min().unwrap();
            let of = |at: usize| (at, u64::try_from(distance[at].unwrap() - low).unwrap());
            bodies.push(Body(members.into_iter().map(of).collect()));
        }
        // Large bodies first, since they leave the fewest places.
        let bytes = |body: &Body| body.0.iter().map(|&(at, _)| judge.padded(at)).sum::<u64>();
        bodies.sort_by_key(|body| std::cmp::Reverse(bytes(body)));
        let of_pools = judge.pools.iter().map(|pool| pool.alignment).max().unwrap_or(1);
        let aligned = |chunk: &Asked| chunk.alignment.max(judge.alignment).max(of_pools);
        let all = bodies.iter().map(bytes).sum::<u64>();
        let rounding: u64 = judge.chunks.iter().map(aligned).sum();
        let pools = judge.pools.iter();
        let fixed = pools.flat_map(|pool| {
            let reserved = pool.reserved.iter().map(|&(_, high)| high);
            reserved.chain(pool.largest.map(|bytes| bytes * bodies.len() as u64))
        });
        let pins = judge.chunks.iter().filter_map(|chunk| chunk.pin.map(|(_, offset)| offset));
        let top = all + rounding + fixed.max().unwrap_or(0) + pins.max().unwrap_or(0);
        Self { judge, bodies, spots, top, tried: 0, limit, better: None, pairs: BTreeMap::new() }
    }

    /// Tries all places of the bodies from this one on.
    fn place(&mut self, body: usize) -> Result<(), TooMany> {
        let judge = self.judge;
        if body == self.bodies.len() {
            if let Some(objective) = self.objective(body) {
                self.limit = Some(objective.clone());
                self.better = Some(objective);
            }
            return Ok(());
        }
        for pool in 0..judge.pools.len() {
            for offset in 0..self.top {
                self.tried += 1;
                if self.tried > 200_000 {
                    return Err(TooMany);
                }
                self.put(body, pool, offset);
                let members = &self.bodies[body].0;
                if !members.iter().all(|&(chunk, _)| judge.is_well_placed(chunk, &self.spots)) {
                    continue;
                }
                if (0..body).all(|other| self.get_along(other, body))
                    && self.objective(body + 1).is_some()
                {
                    self.place(body + 1)?;
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, body: usize, pool: usize, offset: u64) {
        for &(chunk, distance) in &self.bodies[body].0 {
            self.spots[chunk].pool = pool;
            self.spots[chunk].offset = offset + distance;
        }
    }

    fn get_along(&mut self, a: usize, b: usize) -> bool {
        let first = |body: usize| self.spots[self.bodies[body].0[0].0];
        let (of_a, of_b) = (first(a), first(b));
        if of_a.pool != of_b.pool {
            return true;
        }
        let difference = i64::try_from(of_b.offset).unwrap() - i64::try_from(of_a.offset).unwrap();
        let (judge, spots, bodies) = (self.judge, &self.spots, &self.bodies);
        let all = || {
            let members = |body: usize| bodies[body].0.iter().map(|&(chunk, _)| chunk);
            members(a).all(|x| members(b).all(|y| judge.get_along(x, y, spots)))
        };
        *self.pairs.entry((a, b, difference)).or_insert_with(all)
    }

    /// The objective with only the first bodies placed and the rest as cheap as they can be; nothing if it
    /// is not below the limit.
    fn objective(&self, placed: usize) -> Option<Vec<u128>> {
        let judge = self.judge;
        let mut traffic = 0;
        let mut spots = self.spots.clone();
        for (at, body) in self.bodies.iter().enumerate() {
            let costs: Vec<u64> = judge.pools.iter().map(|pool| pool.cost).collect();
            let cheapest = *costs.iter().min().unwrap();
            for &(chunk, _) in &body.0 {
                let cost = if at < placed { costs[spots[chunk].pool] } else { cheapest };
                traffic += u128::from(cost) * u128::from(judge.chunks[chunk].traffic);
                if at >= placed {
                    // It lies in no pool yet.
                    spots[chunk].pool = judge.pools.len();
                }
            }
        }
        let sizes = judge.buffers(&spots)?;
        let sizes = sizes.iter().rev().map(|&size| u128::from(size));
        let objective: Vec<u128> = std::iter::once(traffic).chain(sizes).collect();
        self.limit.as_ref().is_none_or(|limit| objective < *limit).then_some(objective)
    }
}
