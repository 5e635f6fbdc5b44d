//! Small random problems with pools, pins, holes, parts and streams, and a checker of their plans that goes
//! byte by byte and step by step. It reads the text of a problem and uses nothing of the library.

#![allow(dead_code, reason = "each target uses its own part")]

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The families of recorded problems.
pub const FAMILIES: [&str; 11] = [
    "plain",
    "alignment",
    "pins",
    "holes",
    "parts",
    "streams",
    "choices",
    "pools",
    "buffers",
    "all",
    "handmade",
];

/// The recorded cases of a file, without those that exclude chunks by choices.
pub fn recorded(file: &str) -> Vec<Value> {
    let text = super::shared(&format!("data/problem2/{file}.jsonl")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.contains("\"when\""));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Numbers that are the same in every run.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn at(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap()
    }
}

/// The text of a random problem. Many of them have no plan.
pub fn random_problem(dice: &mut Dice) -> Value {
    let streams = if dice.roll(4) == 0 { 2 + dice.roll(2) } else { 1 };
    let count = 2 + dice.at(5);
    let pools: Vec<Value> = (0..=dice.roll(5) / 3).map(|at| random_pool(dice, at)).collect();
    let mut chunks: Vec<Value> =
        (0..count).map(|id| random_chunk(dice, id, streams, pools.len())).collect();
    let size = |chunks: &[Value], at: usize| chunks[at]["size"].as_u64().unwrap();
    let mut parts: Vec<Value> = Vec::new();
    let mut overwrites: Vec<Value> = Vec::new();
    for at in 0..count {
        let other = dice.at(count);
        if other == at {
            continue;
        }
        if streams == 1 && dice.roll(5) == 0 {
            begin_at_the_end_of(&mut chunks, at, other, dice);
            let below = 1 + dice.roll(5);
            overwrites.push(json!({"chunk": at, "overwritten": other, "below": below}));
            continue;
        }
        let (small, room) = (size(&chunks, at), size(&chunks, other));
        if small > room {
            continue;
        }
        let offset = dice.roll(room - small + 1);
        match dice.roll(5) {
            0 | 1 => parts.push(json!({"chunk": at, "whole": other, "offset": offset})),
            2 | 3 => {
                let end = chunks[other]["end"].clone();
                if streams == 1 {
                    begin_at_the_end_of(&mut chunks, at, other, dice);
                } else {
                    let stream = dice.at(usize::try_from(streams).unwrap());
                    let mut begin: Vec<u64> = clock(&end);
                    begin[stream] = begin[stream].saturating_sub(1);
                    let mut after = begin.clone();
                    after[stream] += 1 + dice.roll(2);
                    chunks[at]["stream"] = stream.into();
                    chunks[at]["begin"] = begin.into();
                    chunks[at]["end"] = after.into();
                }
                let required = dice.roll(6) == 0;
                overwrites.push(json!({
                    "chunk": at, "overwritten": other, "offset": offset, "required": required
                }));
            }
            _ => {}
        }
    }
    let mut problem = json!({
        "format": "memplan-problem/2",
        "alignment": 1 << (dice.roll(6) / 3 * dice.roll(3)),
        "padding": dice.roll(4) / 3 * dice.roll(3),
        "pools": pools,
        "chunks": chunks,
        "parts": parts,
        "overwrites": overwrites,
    });
    if streams > 1 {
        problem["streams"] = streams.into();
    }
    if dice.roll(4) == 0 {
        let (a, b) = (dice.at(count), dice.at(count));
        problem["apart"] = json!([BTreeSet::from([a, b])]);
    }
    problem
}

/// Moves a chunk to the last step of another one.
fn begin_at_the_end_of(chunks: &mut [Value], at: usize, other: usize, dice: &mut Dice) {
    let begin = chunks[other]["end"].as_u64().unwrap() - 1;
    chunks[at]["begin"] = begin.into();
    chunks[at]["end"] = (begin + 1 + dice.roll(3)).into();
    chunks[at].as_object_mut().unwrap().remove("holes");
    chunks[at].as_object_mut().unwrap().remove("windows");
}

fn random_pool(dice: &mut Dice, at: u64) -> Value {
    let mut pool = json!({"name": format!("p{at}"), "cost": dice.roll(3)});
    if dice.roll(3) == 0 {
        pool["alignment"] = (1 << dice.roll(3)).into();
    }
    match dice.roll(6) {
        0 | 1 => pool["capacity"] = (8 + dice.roll(20)).into(),
        2 => {
            let low = dice.roll(10);
            pool["reserved"] = json!([[low, low + 1 + dice.roll(4)]]);
        }
        3 => pool["largest"] = (8 * (1 + dice.roll(2))).into(),
        _ => {}
    }
    pool
}

fn random_chunk(dice: &mut Dice, id: usize, streams: u64, pools: usize) -> Value {
    let size = dice.roll(9);
    let mut chunk = json!({"id": id, "name": format!("c{id}"), "size": size});
    if streams == 1 {
        let begin = dice.roll(5);
        let end = begin + 1 + dice.roll(5);
        (chunk["begin"], chunk["end"]) = (begin.into(), end.into());
        if dice.roll(4) == 0 && end - begin > 1 {
            let from = begin + dice.roll(end - begin - 1);
            let to = from + 1;
            if dice.roll(2) == 0 {
                chunk["holes"] = json!([[from, to]]);
            } else if size > 1 {
                let low = dice.roll(size);
                let high = low + 1 + dice.roll(size - low);
                chunk["windows"] = json!([{"begin": from, "end": to, "low": low, "high": high}]);
            }
        }
    } else {
        let begin: Vec<u64> = (0..streams).map(|_| dice.roll(4)).collect();
        let stream = dice.at(usize::try_from(streams).unwrap());
        let mut end: Vec<u64> = begin.iter().map(|at| at + dice.roll(3)).collect();
        end[stream] = end[stream].max(begin[stream] + 1);
        chunk["stream"] = stream.into();
        (chunk["begin"], chunk["end"]) = (begin.into(), end.into());
    }
    if dice.roll(4) == 0 {
        chunk["alignment"] = (1 << dice.roll(3)).into();
    }
    if dice.roll(5) == 0 {
        chunk["pools"] = json!([format!("p{}", dice.at(pools))]);
    }
    if dice.roll(7) == 0 && size > 0 {
        let pool = format!("p{}", dice.at(pools));
        chunk["pin"] = json!({"pool": pool, "offset": dice.roll(12)});
    }
    if dice.roll(4) == 0 {
        chunk["traffic"] = dice.roll(40).into();
    }
    chunk
}

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
    let judge = Judge::new(problem);
    judge.all(spots)
}

struct Judge<'a> {
    problem: &'a Value,
    chunks: &'a [Value],
    pools: Vec<Value>,
    alignment: u64,
    padding: u64,
    parts: Vec<(usize, usize, u64)>,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], |list| list)
}

fn number(value: &Value, default: u64) -> u64 {
    value.as_u64().unwrap_or(default)
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn clock(value: &Value) -> Vec<u64> {
    match value.as_u64() {
        Some(step) => vec![step],
        None => list(value).iter().map(|at| at.as_u64().unwrap()).collect(),
    }
}

impl<'a> Judge<'a> {
    fn new(problem: &'a Value) -> Self {
        let mut pools = list(&problem["pools"]).to_vec();
        if pools.is_empty() {
            pools.push(json!({"name": "pool"}));
        }
        let chunks = list(&problem["chunks"]);
        let position = |id: &Value| chunks.iter().position(|chunk| chunk["id"] == *id).unwrap();
        let parts = list(&problem["parts"]).iter().map(|part| {
            (position(&part["chunk"]), position(&part["whole"]), number(&part["offset"], 0))
        });
        Self {
            problem,
            chunks,
            pools,
            alignment: number(&problem["alignment"], 1),
            padding: number(&problem["padding"], 0),
            parts: parts.collect(),
        }
    }

    fn position(&self, id: &Value) -> usize {
        self.chunks.iter().position(|chunk| chunk["id"] == *id).unwrap()
    }

    fn size(&self, chunk: usize) -> u64 {
        number(&self.chunks[chunk]["size"], 0)
    }

    fn padded(&self, chunk: usize) -> u64 {
        if self.size(chunk) == 0 { 0 } else { self.size(chunk) + self.padding }
    }

    fn all(&self, spots: &[Spot]) -> bool {
        (0..self.chunks.len()).all(|chunk| spots[chunk].pool < self.pools.len())
            && (0..self.chunks.len()).all(|chunk| self.is_well_placed(chunk, spots))
            && self.links(spots)
            && self.buffers(spots)
            && (0..self.chunks.len()).all(|y| (0..y).all(|x| self.get_along(x, y, spots)))
    }

    fn is_well_placed(&self, chunk: usize, spots: &[Spot]) -> bool {
        let Spot { pool, offset, overwrites } = spots[chunk];
        let asked = &self.chunks[chunk];
        let pool = &self.pools[pool];
        if self.size(chunk) == 0 {
            return true;
        }
        let bytes: Vec<u64> = (offset..offset + self.padded(chunk)).collect();
        let is_part = self.parts.iter().any(|&(part, _, _)| part == chunk);
        let is_root = overwrites.is_none() && !is_part;
        let mut alignment = number(&asked["alignment"], 1);
        if is_root {
            alignment = alignment.max(self.alignment).max(number(&pool["alignment"], 1));
        }
        let pinned = asked["pin"].as_object().is_none_or(|pin: &Map<String, Value>| {
            pin.get("pool").is_none_or(|name| *name == pool["name"]) && pin["offset"] == offset
        });
        let is_reserved = |byte: &u64| {
            let ranges = list(&pool["reserved"]).iter();
            { ranges }.any(|r| number(&r[0], 0) <= *byte && *byte < number(&r[1], 0))
        };
        let is_allowed =
            asked["pools"].is_null() || list(&asked["pools"]).iter().any(|p| *p == pool["name"]);
        let capacity = if pool["largest"].is_null() { pool["capacity"].as_u64() } else { None };
        is_allowed
            && offset.is_multiple_of(alignment)
            && pinned
            && !bytes.iter().any(is_reserved)
            && capacity.is_none_or(|limit| bytes.iter().all(|byte| *byte < limit))
    }

    fn links(&self, spots: &[Spot]) -> bool {
        let inside = |inner: usize, outer: usize, offset: u64| {
            spots[inner].pool == spots[outer].pool
                && spots[inner].offset == spots[outer].offset + offset
        };
        let required = list(&self.problem["overwrites"]).iter().all(|request| {
            let (new, old) =
                (self.position(&request["chunk"]), self.position(&request["overwritten"]));
            request["required"] != true || self.size(new) == 0 || spots[new].overwrites == Some(old)
        });
        required && self.parts.iter().all(|&(part, whole, offset)| inside(part, whole, offset))
    }

    fn buffers(&self, spots: &[Spot]) -> bool {
        let mut group: Vec<usize> = (0..self.chunks.len()).collect();
        let links = (0..group.len()).filter_map(|at| Some((at, spots[at].overwrites?)));
        for (a, b) in links.chain(self.parts.iter().map(|&(part, whole, _)| (part, whole))) {
            let (from, to) = (group[a], group[b]);
            group.iter_mut().filter(|at| **at == from).for_each(|at| *at = to);
        }
        (0..self.pools.len()).all(|pool| {
            let Some(largest) = self.pools[pool]["largest"].as_u64() else { return true };
            let here = |chunk: &usize| spots[*chunk].pool == pool && self.size(*chunk) > 0;
            let buffer_of = |byte: u64| byte / largest;
            let mut tops = std::collections::BTreeMap::new();
            for chunk in (0..group.len()).filter(here) {
                let end = spots[chunk].offset + self.padded(chunk);
                let top: &mut u64 = tops.entry(buffer_of(spots[chunk].offset)).or_default();
                *top = (*top).max(end - buffer_of(spots[chunk].offset) * largest);
                let mates = (0..group.len()).filter(here).filter(|at| group[*at] == group[chunk]);
                let mut bytes =
                    mates.flat_map(|at| spots[at].offset..spots[at].offset + self.padded(at));
                if bytes.any(|byte| buffer_of(byte) != buffer_of(spots[chunk].offset)) {
                    return false;
                }
            }
            let alignment = number(&self.pools[pool]["alignment"], 1).max(self.alignment);
            let size: u64 = tops.values().map(|top| top.next_multiple_of(alignment)).sum();
            self.pools[pool]["capacity"].as_u64().is_none_or(|limit| size <= limit)
        })
    }

    /// Returns whether two chunks do not disturb each other, byte by byte and, with one stream,
    /// step by step.
    fn get_along(&self, x: usize, y: usize, spots: &[Spot]) -> bool {
        let (a, b) = (spots[x], spots[y]);
        if a.pool != b.pool || self.size(x) == 0 || self.size(y) == 0 {
            return true;
        }
        let of_x: BTreeSet<u64> = (a.offset..a.offset + self.padded(x)).collect();
        let shared: Vec<u64> =
            (b.offset..b.offset + self.padded(y)).filter(|byte| of_x.contains(byte)).collect();
        let is_in = |group: &Value, at: usize| list(group).iter().any(|id| self.position(id) == at);
        if !shared.is_empty()
            && list(&self.problem["apart"]).iter().any(|g| is_in(g, x) && is_in(g, y))
        {
            return false;
        }
        let agree = |byte: u64| self.agree(x, byte - a.offset, y, byte - b.offset);
        if self.problem["streams"].as_u64().unwrap_or(1) > 1 {
            return shared.is_empty() || !self.meet(x, y, spots) || shared.into_iter().all(agree);
        }
        let last = self.chunks.iter().map(|chunk| number(&chunk["end"], 0)).max().unwrap_or(0);
        (0..last).all(|step| {
            shared.iter().all(|&byte| {
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
        let begins = number(&self.chunks[new]["begin"], 0) == step;
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
        let (begin, end) = (number(&asked["begin"], 0), number(&asked["end"], 0));
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
        if list(&asked["holes"]).iter().any(|h| number(&h[0], 0) <= step && step < number(&h[1], 0))
        {
            return false;
        }
        let window = list(&asked["windows"])
            .iter()
            .find(|w| number(&w["begin"], 0) <= step && step < number(&w["end"], 0));
        window.is_none_or(|w| {
            number(&w["low"], 0) <= byte && byte < number(&w["high"], 0) + self.padding
        })
    }

    fn meet(&self, x: usize, y: usize, spots: &[Spot]) -> bool {
        let life = |chunk: usize| {
            let mut begin = clock(&self.chunks[chunk]["begin"]);
            let end = clock(&self.chunks[chunk]["end"]);
            if spots[chunk].overwrites.is_some() {
                begin[usize::try_from(number(&self.chunks[chunk]["stream"], 0)).unwrap()] += 1;
            }
            (begin, end)
        };
        let ((begin_x, end_x), (begin_y, end_y)) = (life(x), life(y));
        let before = |end: &[u64], begin: &[u64]| end.iter().zip(begin).all(|(e, b)| e <= b);
        let is_empty = begin_x == end_x || begin_y == end_y;
        !is_empty && !before(&end_x, &begin_y) && !before(&end_y, &begin_x)
    }

    /// Returns whether two bytes may lie at the same place.
    fn agree(&self, x: usize, byte_x: u64, y: usize, byte_y: u64) -> bool {
        if byte_x >= self.size(x) || byte_y >= self.size(y) {
            return self.is_related(x, y);
        }
        let (of_x, of_y) = (self.names(x, byte_x), self.names(y, byte_y));
        of_x.is_subset(&of_y) || of_y.is_subset(&of_x)
    }

    fn names(&self, chunk: usize, byte: u64) -> BTreeSet<(usize, u64)> {
        let mut names = BTreeSet::new();
        for &(part, whole, offset) in &self.parts {
            if whole == chunk && offset <= byte && byte < offset + self.size(part) {
                names.extend(self.names(part, byte - offset));
            }
        }
        if names.is_empty() {
            names.insert((chunk, byte));
        }
        names
    }

    fn is_related(&self, x: usize, y: usize) -> bool {
        let mut family = BTreeSet::from([x]);
        for _ in 0..self.chunks.len() {
            for &(part, whole, _) in &self.parts {
                if family.contains(&part) || family.contains(&whole) {
                    family.extend([part, whole]);
                }
            }
        }
        family.contains(&y)
    }
}

/// Positions of chunks that links of the problem's text and of a plan join, for each chunk.
pub fn bodies(problem: &Value, spots: &[Spot]) -> Vec<Vec<usize>> {
    let judge = Judge::new(problem);
    let mut group: Vec<usize> = (0..spots.len()).collect();
    let links = (0..spots.len()).filter_map(|at| Some((at, spots[at].overwrites?)));
    for (a, b) in links.chain(judge.parts.iter().map(|&(part, whole, _)| (part, whole))) {
        let (from, to) = (group[a], group[b]);
        group.iter_mut().filter(|at| **at == from).for_each(|at| *at = to);
    }
    (0..spots.len())
        .map(|at| (0..spots.len()).filter(|&other| group[other] == group[at]).collect())
        .collect()
}
