//! Finds a better plan of a small problem than a given one, or proves that there is none, by trying all places
//! of its bodies. Whether two bodies get along is for the judge to say.
//!
//! Placing a body removes the places of the others that do not get along with it, and those with which the plan
//! would not be better. The body with the fewest places left comes next.

use std::collections::BTreeMap;

use serde_json::Value;

use super::judge::{Judge, Over, Spot};

/// The most places that are compared with others.
const MAX_COMPARED: u64 = 100_000;

/// There are too many places to try.
#[derive(Debug)]
pub struct TooMany;

/// The traffic, then the sizes of the pools from the last to the first.
pub type Objective = Vec<u128>;

/// Returns a plan with a lower objective than `limit`, or any plan without one; `None` if no plan has one. `links`
/// has the chunks that others are written over.
pub fn better_plan(
    judge: &Judge,
    links: &[Option<Over>],
    limit: Option<&[u128]>,
) -> Result<Option<Vec<Spot>>, TooMany> {
    let mut every = EveryPlace::new(judge, links, limit);
    if every.has_two_places() || every.needs_more_than_the_limit() {
        return Ok(None);
    }
    let all: Vec<Vec<bool>> =
        every.bodies.iter().map(|body| vec![true; body.places.len()]).collect();
    let is_found = every.place(&all, &mut vec![None; every.bodies.len()])?;
    if !is_found {
        return Ok(None);
    }
    assert!(judge.all(&every.spots), "{:?}", every.spots);
    Ok(Some(every.spots))
}

/// The objective of a plan.
pub fn objective(judge: &Judge, spots: &[Spot]) -> Objective {
    let used = (0..spots.len()).filter(|&chunk| judge.size(chunk) > 0);
    let cost = |chunk: usize| {
        let bytes = u128::from(judge.chunks[chunk].traffic);
        bytes * u128::from(judge.pools[spots[chunk].pool].cost)
    };
    let sizes = judge.buffers(spots).unwrap_or_default();
    let sizes = sizes.iter().rev().map(|&size| u128::from(size));
    std::iter::once(used.map(cost).sum()).chain(sizes).collect()
}

/// Chunks that move as one.
struct Body {
    /// The chunks, and their distances from the lowest one.
    members: Vec<(usize, u64)>,
    places: Vec<Place>,
}

/// A place that a body may have if it is alone.
#[derive(Clone, Copy)]
struct Place {
    pool: usize,
    offset: u64,
    /// The buffer of the pool, and the end of the body in it.
    buffer: u64,
    end: u64,
    traffic: u128,
}

struct EveryPlace<'a> {
    judge: &'a Judge,
    bodies: Vec<Body>,
    spots: Vec<Spot>,
    compared: u64,
    limit: Option<Objective>,
    /// By two bodies: the distances between them that were looked at, and whether they get along.
    pairs: BTreeMap<(usize, usize, i64), bool>,
}

impl<'a> EveryPlace<'a> {
    fn new(judge: &'a Judge, links: &[Option<Over>], limit: Option<&[u128]>) -> Self {
        let spots = links.iter().map(|&overwrites| Spot { pool: 0, offset: 0, overwrites });
        let mut every = Self {
            judge,
            bodies: Vec::new(),
            spots: spots.collect(),
            compared: 0,
            limit: limit.map(<[u128]>::to_vec),
            pairs: BTreeMap::new(),
        };
        let mut is_seen = vec![false; links.len()];
        for chunk in 0..links.len() {
            if !is_seen[chunk] && judge.size(chunk) > 0 {
                let members = every.body_of(chunk);
                for &(member, _) in &members {
                    is_seen[member] = true;
                }
                every.bodies.push(Body { members, places: Vec::new() });
            }
        }
        let top = every.top();
        for at in 0..every.bodies.len() {
            every.bodies[at].places = every.places(at, top);
        }
        every
    }

    /// The distances that parts and links give, from one chunk to another.
    fn distances(&self) -> Vec<(usize, usize, i64)> {
        let parts = self.judge.parts.iter().map(|&(a, b, by)| (a, b, by.cast_signed()));
        let overs = self.spots.iter().enumerate().filter_map(|(a, spot)| {
            let (b, by) = spot.overwrites?;
            Some((a, b, by))
        });
        parts.chain(overs).collect()
    }

    fn body_of(&self, chunk: usize) -> Vec<(usize, u64)> {
        let mut found = BTreeMap::from([(chunk, 0)]);
        let mut open = vec![chunk];
        while let Some(from) = open.pop() {
            for (inner, outer, by) in self.distances() {
                let (next, at) = match from {
                    from if from == inner => (outer, found[&from] - by),
                    from if from == outer => (inner, found[&from] + by),
                    _ => continue,
                };
                found.entry(next).or_insert_with(|| {
                    open.push(next);
                    at
                });
            }
        }
        let low = found.values().copied().min().unwrap_or(0);
        found.into_iter().map(|(chunk, at)| (chunk, (at - low).cast_unsigned())).collect()
    }

    /// Returns whether links or parts would put a chunk at two places, or members of a body disturb each other.
    fn has_two_places(&mut self) -> bool {
        for at in 0..self.bodies.len() {
            let origin = Place { pool: 0, offset: 0, buffer: 0, end: 0, traffic: 0 };
            self.put(at, origin);
            let members = &self.bodies[at].members;
            let clash = members.iter().any(|&(x, _)| {
                members.iter().any(|&(y, _)| x < y && !self.judge.get_along(x, y, &self.spots))
            });
            if clash {
                return true;
            }
        }
        let is_right = |&(inner, outer, by): &(usize, usize, i64)| {
            self.judge.size(inner) == 0
                || self.spots[outer].offset.checked_add_signed(by) == Some(self.spots[inner].offset)
        };
        !self.distances().iter().all(is_right)
    }

    /// An offset that no body needs: below it there is room for all of them one above the other.
    fn top(&self) -> u64 {
        let judge = self.judge;
        let pool_alignment = judge.pools.iter().map(|pool| pool.alignment).max().unwrap_or(1);
        let aligned =
            |chunk: usize| judge.chunks[chunk].alignment.max(judge.alignment).max(pool_alignment);
        let rows = self.bodies.iter().map(|body| {
            let end = body.members.iter().map(|&(at, low)| low + judge.padded(at)).max();
            let rounding = body.members.iter().map(|&(at, _)| aligned(at)).max();
            end.unwrap_or(0) + rounding.unwrap_or(0)
        });
        let fixed = judge.pools.iter().flat_map(|pool| {
            let reserved = pool.reserved.iter().map(|&(_, high)| high);
            reserved.chain(pool.largest.map(|bytes| bytes * self.bodies.len() as u64))
        });
        let pins = judge.chunks.iter().filter_map(|chunk| chunk.pin.map(|(_, offset)| offset));
        rows.sum::<u64>() + fixed.max().unwrap_or(0) + pins.max().unwrap_or(0)
    }

    fn places(&mut self, body: usize, top: u64) -> Vec<Place> {
        let judge = self.judge;
        let members = self.bodies[body].members.clone();
        let extent = members.iter().map(|&(at, low)| low + judge.padded(at)).max().unwrap_or(0);
        let traffic: u128 =
            members.iter().map(|&(at, _)| u128::from(judge.chunks[at].traffic)).sum();
        let mut places = Vec::new();
        for (pool, of) in judge.pools.iter().enumerate() {
            let traffic = u128::from(of.cost) * traffic;
            for offset in 0..top {
                let end = offset + extent;
                let buffer = of.largest.map_or(0, |largest| offset / largest);
                let place = Place {
                    pool,
                    offset,
                    buffer,
                    end: end - buffer * of.largest.unwrap_or(0),
                    traffic,
                };
                self.put(body, place);
                let is_in_buffer = of.largest.is_none_or(|largest| place.end <= largest);
                let is_placed = |&(at, _): &(usize, u64)| judge.is_well_placed(at, &self.spots);
                if is_in_buffer && members.iter().all(is_placed) {
                    places.push(place);
                }
            }
        }
        places
    }

    fn put(&mut self, body: usize, place: Place) {
        for &(chunk, distance) in &self.bodies[body].members {
            self.spots[chunk].pool = place.pool;
            self.spots[chunk].offset = place.offset + distance;
        }
    }

    /// Returns whether one step of the only stream needs as many bytes as the size to beat of the only pool.
    fn needs_more_than_the_limit(&mut self) -> bool {
        let (judge, [_, limit]) = (self.judge, self.limit.as_deref().unwrap_or_default()) else {
            return false;
        };
        let limit = *limit;
        if judge.chunks.iter().any(|chunk| chunk.begin.len() > 1) {
            return false;
        }
        for at in 0..self.bodies.len() {
            self.put(at, Place { pool: 0, offset: 0, buffer: 0, end: 0, traffic: 0 });
        }
        let needed = |step: u64, body: &Body| {
            let members = || body.members.iter().copied();
            let end = members().map(|(at, low)| low + judge.padded(at)).max().unwrap_or(0);
            let is_needed = |byte: &u64| {
                members().any(|(chunk, low)| {
                    let of_chunk = byte.checked_sub(low);
                    of_chunk.is_some_and(|byte| judge.needs(chunk, byte, step, &self.spots))
                })
            };
            (0..end).filter(is_needed).count() as u128
        };
        let steps = judge.chunks.iter().map(|chunk| chunk.end[0]).max().unwrap_or(0);
        (0..steps)
            .any(|step| self.bodies.iter().map(|body| needed(step, body)).sum::<u128>() >= limit)
    }

    /// Places the bodies that have no place yet, each at one of those left. Returns whether it did.
    fn place(
        &mut self,
        left: &[Vec<bool>],
        placed: &mut Vec<Option<usize>>,
    ) -> Result<bool, TooMany> {
        let open = (0..self.bodies.len()).filter(|&body| placed[body].is_none());
        let count = |body: &usize| left[*body].iter().filter(|left| **left).count();
        let Some(next) = open.min_by_key(count) else { return Ok(self.is_better(placed)) };
        for at in (0..left[next].len()).filter(|&at| left[next][at]) {
            if self.compared > MAX_COMPARED {
                return Err(TooMany);
            }
            placed[next] = Some(at);
            self.put(next, self.bodies[next].places[at]);
            if self.is_better(placed)
                && let Some(left) = self.left_beside(next, left, placed)
                && self.place(&left, placed)?
            {
                return Ok(true);
            }
            placed[next] = None;
        }
        Ok(false)
    }

    /// The places that are left for the others; `None` if a body has none.
    fn left_beside(
        &mut self,
        new: usize,
        left: &[Vec<bool>],
        placed: &mut [Option<usize>],
    ) -> Option<Vec<Vec<bool>>> {
        let mut beside = left.to_vec();
        for body in 0..self.bodies.len() {
            if placed[body].is_some() {
                continue;
            }
            for at in 0..left[body].len() {
                if !left[body][at] {
                    continue;
                }
                self.compared += 1;
                placed[body] = Some(at);
                beside[body][at] =
                    self.is_better(placed) && self.get_along((body, at), new, placed);
                placed[body] = None;
            }
            if !beside[body].contains(&true) {
                return None;
            }
        }
        Some(beside)
    }

    /// Returns whether a body at one of its places gets along with another one.
    fn get_along(
        &mut self,
        (body, at): (usize, usize),
        other: usize,
        placed: &[Option<usize>],
    ) -> bool {
        let place = self.bodies[body].places[at];
        let Some(beside) = placed[other].map(|at| self.bodies[other].places[at]) else {
            return true;
        };
        if place.pool != beside.pool {
            return true;
        }
        let difference = place.offset.cast_signed() - beside.offset.cast_signed();
        if let Some(&known) = self.pairs.get(&(body, other, difference)) {
            return known;
        }
        self.put(body, place);
        let members = |body: usize| self.bodies[body].members.iter().map(|&(chunk, _)| chunk);
        let is_right =
            members(body).all(|x| members(other).all(|y| self.judge.get_along(x, y, &self.spots)));
        self.pairs.insert((body, other, difference), is_right);
        is_right
    }

    /// Returns whether the objective is below the limit, with the bodies that have a place there and all others
    /// as cheap as they can be.
    fn is_better(&self, placed: &[Option<usize>]) -> bool {
        let judge = self.judge;
        let mut traffic = 0;
        let mut tops: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); judge.pools.len()];
        for (body, at) in self.bodies.iter().zip(placed) {
            let Some(at) = *at else {
                traffic += body.places.iter().map(|place| place.traffic).min().unwrap_or(0);
                continue;
            };
            let Place { pool, buffer, end, traffic: cost, .. } = body.places[at];
            traffic += cost;
            let top = tops[pool].entry(buffer).or_default();
            *top = end.max(*top);
        }
        let mut objective = vec![traffic];
        for (pool, tops) in judge.pools.iter().zip(&tops).rev() {
            let alignment = pool.alignment.max(judge.alignment);
            let size: u64 = tops.values().map(|top| top.next_multiple_of(alignment)).sum();
            objective.push(match (pool.largest, pool.capacity) {
                (Some(_), Some(capacity)) if size > capacity => return false,
                (None, Some(capacity)) => size.min(capacity).into(),
                _ => size.into(),
            });
        }
        self.limit.as_ref().is_none_or(|limit| objective < *limit)
    }
}
