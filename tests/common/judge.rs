//! A checker of plans that goes byte by byte and step by step. It reads the text of a problem and uses
//! nothing of the library.

#![allow(dead_code, reason = "each target uses its own part")]

use std::collections::BTreeMap;

use serde_json::Value;

pub use super::asked::Judge;
use super::asked::{AskedPool, Request};

/// The chunk that another one is written over, and the distance from its start to that of the other.
pub type Over = (usize, i64);

/// The place of a chunk in a plan, with the index of the pool, and the chunk that it overwrites
/// there.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub pool: usize,
    pub offset: u64,
    pub overwrites: Option<Over>,
}

/// Returns whether a plan is right. Ids of chunks are their positions.
pub fn is_right(problem: &Value, spots: &[Spot]) -> bool {
    Judge::new(problem).all(spots)
}

impl Judge {
    pub fn size(&self, chunk: usize) -> u64 {
        self.chunks[chunk].size
    }

    pub fn padded(&self, chunk: usize) -> u64 {
        if self.size(chunk) == 0 { 0 } else { self.size(chunk) + self.padding }
    }

    pub fn all(&self, spots: &[Spot]) -> bool {
        (0..self.chunks.len()).all(|chunk| spots[chunk].pool < self.pools.len())
            && (0..self.chunks.len()).all(|chunk| self.is_well_placed(chunk, spots))
            && self.links(spots)
            && self.buffers(spots).is_some()
            && (0..self.chunks.len()).all(|y| (0..y).all(|x| self.get_along(x, y, spots)))
    }

    pub fn is_well_placed(&self, chunk: usize, spots: &[Spot]) -> bool {
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

    /// Returns whether every part lies in its whole, and chunks are written over others where that is asked
    /// for, and only there.
    pub fn links(&self, spots: &[Spot]) -> bool {
        let inside = |inner: usize, (outer, distance): Over| {
            let moved = spots[outer].offset.checked_add_signed(distance);
            spots[inner].pool == spots[outer].pool && Some(spots[inner].offset) == moved
        };
        let part = |&(part, whole, offset): &(usize, usize, u64)| {
            inside(part, (whole, offset.cast_signed()))
        };
        let is_right = |new: usize| {
            let Some(over) = spots[new].overwrites else { return true };
            let is_asked = self.requests.iter().any(|r| (r.new, r.over) == (new, over));
            is_asked
                && (self.size(new) == 0
                    || inside(new, over)
                        && self.is_last_reader(new, over.0)
                        && !overwritten(new, spots).contains(&new))
        };
        let mut olds: Vec<usize> = (0..spots.len())
            .filter(|&new| self.size(new) > 0)
            .filter_map(|new| Some(spots[new].overwrites?.0))
            .collect();
        olds.sort_unstable();
        self.requests.iter().all(|request| self.is_met(request, spots))
            && self.parts.iter().all(part)
            && (0..spots.len()).all(is_right)
            && olds.windows(2).all(|pair| pair[0] != pair[1])
    }

    pub fn is_met(&self, request: &Request, spots: &[Spot]) -> bool {
        let is_taken = spots[request.new].overwrites == Some(request.over);
        is_taken || !request.required || self.size(request.new) == 0
    }

    /// Returns whether the step in which a chunk is written is the last one of another chunk, which has begun
    /// before or begins with it.
    pub fn is_last_reader(&self, new: usize, old: usize) -> bool {
        let [new, old] = [new, old].map(|chunk| &self.chunks[chunk]);
        old.size > 0
            && new.begin.iter().enumerate().all(|(stream, &at)| {
                let end = old.end[stream];
                let is_last = if stream == new.stream { end == at + 1 } else { end <= at };
                is_last && old.begin[stream] <= at
            })
    }

    /// Returns the sizes of the pools, or nothing if a body crosses the boundary of a buffer or the
    /// buffers exceed the capacity.
    pub fn buffers(&self, spots: &[Spot]) -> Option<Vec<u64>> {
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
    pub fn groups(&self, spots: &[Spot]) -> Vec<usize> {
        let mut group: Vec<usize> = (0..spots.len()).collect();
        let links = (0..spots.len()).filter_map(|at| Some((at, spots[at].overwrites?.0)));
        for (a, b) in links.chain(self.parts.iter().map(|&(part, whole, _)| (part, whole))) {
            let (from, to) = (group[a], group[b]);
            group.iter_mut().filter(|at| **at == from).for_each(|at| *at = to);
        }
        group
    }

    /// Returns whether two chunks do not disturb each other, byte by byte and, with one stream,
    /// step by step.
    pub fn get_along(&self, x: usize, y: usize, spots: &[Spot]) -> bool {
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
                let written = self.destroys((x, of_x), step, spots, (y, of_y))
                    || self.destroys((y, of_y), step, spots, (x, of_x));
                !both && !written || agree(byte)
            })
        })
    }

    /// Returns whether a chunk is written over a byte of a part or a whole of the chunk that it overwrites,
    /// in a step in which that part or whole still needs it.
    pub fn destroys(
        &self,
        (new, byte): (usize, u64),
        step: u64,
        spots: &[Spot],
        (other, of_other): (usize, u64),
    ) -> bool {
        let Some((old, _)) = spots[new].overwrites else { return false };
        let begins = self.chunks[new].begin[0] == step;
        let is_real = byte < self.size(new) && of_other < self.size(other);
        begins
            && is_real
            && other != old
            && self.is_related(old, other)
            && self.needs(other, of_other, step, spots)
    }

    /// Returns whether a chunk needs a byte in a step, and does not share it with the chunk that it overwrites:
    /// in its first step, an overwriter shares the bytes that the other chunk needs then.
    pub fn needs(&self, chunk: usize, byte: u64, step: u64, spots: &[Spot]) -> bool {
        let is_shared = |old: usize| {
            let of_old = (spots[chunk].offset + byte).checked_sub(spots[old].offset);
            of_old.is_some_and(|of_old| self.asks(old, of_old, step))
        };
        let is_first = step == self.chunks[chunk].begin[0];
        let old = spots[chunk].overwrites.filter(|_| is_first);
        self.asks(chunk, byte, step) && !old.is_some_and(|(old, _)| is_shared(old))
    }

    /// Returns whether a chunk needs a byte in a step, with one stream.
    pub fn asks(&self, chunk: usize, byte: u64, step: u64) -> bool {
        let asked = &self.chunks[chunk];
        let is_in = |&(from, to): &(u64, u64)| from <= step && step < to;
        let is_alive = is_in(&(asked.begin[0], asked.end[0])) && byte < self.padded(chunk);
        let window = asked.windows.iter().find(|[from, to, ..]| is_in(&(*from, *to)));
        is_alive
            && !asked.holes.iter().any(is_in)
            && window.is_none_or(|&[_, _, low, high]| low <= byte && byte < high + self.padding)
    }

    /// Returns whether two chunks on several streams may need a byte of the pool at the same time.
    pub fn meet(&self, x: usize, y: usize, byte: u64, spots: &[Spot]) -> bool {
        let life = |chunk: usize, other: usize| {
            let asked = &self.chunks[chunk];
            let mut begin = asked.begin.clone();
            if self.shares(chunk, other, byte, spots) {
                begin[asked.stream] += 1;
            }
            (begin, &asked.end)
        };
        let ((begin_x, end_x), (begin_y, end_y)) = (life(x, y), life(y, x));
        let before = |end: &[u64], begin: &[u64]| end.iter().zip(begin).all(|(e, b)| e <= b);
        let is_empty = begin_x == *end_x || begin_y == *end_y;
        !is_empty && !before(end_x, &begin_y) && !before(end_y, &begin_x)
    }

    /// Returns whether, in its first step, an overwriter shares a byte of the pool with another chunk: the one
    /// that it overwrites; one that that chunk overwrites in the same step; or a relative of it, which has the
    /// same byte, unless it is destroyed.
    pub fn shares(&self, new: usize, other: usize, byte: u64, spots: &[Spot]) -> bool {
        let Some((old, _)) = spots[new].overwrites else { return false };
        let of = |chunk: usize| byte.wrapping_sub(spots[chunk].offset);
        if of(old) >= self.padded(old) {
            return false;
        }
        let is_real = of(new) < self.size(new) && of(other) < self.size(other);
        // The clocks of others differ where they are not a program's.
        let made = |chunk: usize| {
            let asked = &self.chunks[chunk];
            (asked.stream, asked.begin[asked.stream])
        };
        let olds = overwritten(new, spots);
        let together = olds.iter().take_while(|&&old| made(old) == made(new)).count();
        olds[..olds.len().min(together + 1)].contains(&other)
            || self.is_related(old, other) && !is_real
    }

    /// Returns whether two bytes may lie at the same place.
    pub fn agree(&self, x: usize, byte_x: u64, y: usize, byte_y: u64) -> bool {
        if byte_x >= self.size(x) || byte_y >= self.size(y) {
            return self.is_related(x, y);
        }
        let names =
            |chunk: usize, byte: u64| &self.chunks[chunk].names[usize::try_from(byte).unwrap()];
        let (of_x, of_y) = (names(x, byte_x), names(y, byte_y));
        of_x.is_subset(of_y) || of_y.is_subset(of_x)
    }

    pub fn is_related(&self, x: usize, y: usize) -> bool {
        self.chunks[x].family.contains(&y)
    }
}

/// The chunks that a chunk is written over, by itself or through others, the newest first.
fn overwritten(new: usize, spots: &[Spot]) -> Vec<usize> {
    let over = |&chunk: &usize| Some(spots[chunk].overwrites?.0);
    std::iter::successors(over(&new), over).take(spots.len()).collect()
}

/// Positions of chunks that links of the problem's text and of a plan join, for each chunk.
pub fn bodies(problem: &Value, spots: &[Spot]) -> Vec<Vec<usize>> {
    let group = Judge::new(problem).groups(spots);
    (0..spots.len())
        .map(|at| (0..spots.len()).filter(|&other| group[other] == group[at]).collect())
        .collect()
}
