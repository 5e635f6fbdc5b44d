//! Small random problems with pools, pins, holes, parts and streams, as texts.

#![allow(dead_code, reason = "each target uses its own part")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

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

/// How often the problems of a run have a feature: never, now and then, often.
struct Mix {
    pools: u64,
    limits: u64,
    pins: u64,
    pauses: u64,
    parts: u64,
    overwrites: u64,
    required: u64,
    alignments: u64,
    apart: u64,
}

impl Mix {
    fn random(dice: &mut Dice) -> Self {
        let mut one = || [0, 1, 1, 3][dice.at(4)];
        Self {
            pools: one(),
            limits: one(),
            pins: one(),
            pauses: one(),
            parts: one(),
            overwrites: one(),
            required: one(),
            alignments: one(),
            apart: one(),
        }
    }
}

impl Dice {
    /// Returns true in some of twelve cases.
    fn is(&mut self, twelfths: u64) -> bool {
        self.roll(12) < twelfths
    }
}

/// The text of a random problem of a few chunks, rarely of up to 15. Many of them have no plan.
pub fn random_problem(dice: &mut Dice) -> Value {
    let mix = Mix::random(dice);
    let streams = if dice.roll(4) == 0 { 2 + dice.roll(2) } else { 1 };
    let count = if dice.roll(8) == 0 { 7 + dice.at(9) } else { 2 + dice.at(5) };
    let names = 1 + usize::from(dice.is(2 * mix.pools)) + usize::from(dice.is(mix.pools));
    let pools: Vec<Value> = (0..names).map(|at| random_pool(dice, &mix, at)).collect();
    let is_named = names > 1 || dice.roll(4) > 0;
    let names = if is_named { names } else { 0 };
    let mut chunks: Vec<Value> =
        (0..count).map(|id| random_chunk(dice, &mix, id, (streams, names))).collect();
    let size = |chunks: &[Value], at: usize| chunks[at]["size"].as_u64().unwrap();
    // No chunk is a part of itself.
    let is_descending = dice.roll(2) == 0;
    let mut parts: Vec<Value> = Vec::new();
    let mut overwrites: Vec<Value> = Vec::new();
    for turn in 0..2 * count {
        let (at, other) = (turn % count, dice.at(count));
        if other == at {
            continue;
        }
        let (small, room) = (size(&chunks, at), size(&chunks, other));
        if dice.is(mix.parts) && small <= room && small > 0 && (at < other) == is_descending {
            let offset = dice.roll(room - small + 1);
            let is_new =
                |part: &Value| (&part["chunk"], &part["whole"]) != (&at.into(), &other.into());
            if parts.iter().all(is_new) {
                parts.push(json!({"chunk": at, "whole": other, "offset": offset}));
            }
        } else if dice.is(2 * mix.overwrites) {
            if dice.roll(6) > 0 {
                begin_at_the_end_of(&mut chunks, at, other, streams, dice);
            }
            let mut request = json!({"chunk": at, "overwritten": other});
            if small > room || dice.roll(5) == 0 {
                request["below"] = (1 + dice.roll(5)).into();
            } else {
                request["offset"] = dice.roll(room - small + 1).into();
            }
            if dice.is(mix.required) {
                request["required"] = true.into();
            }
            overwrites.push(request);
        }
    }
    if streams == 1 {
        for chunk in &mut chunks {
            if dice.is(2 * mix.pauses) {
                pause(dice, chunk);
            }
        }
    }
    let mut problem = json!({
        "format": "memplan-problem/2",
        "alignment": 1 << if dice.is(mix.alignments) { dice.roll(3) } else { 0 },
        "padding": if dice.is(mix.alignments) { dice.roll(3) } else { 0 },
        "pools": pools,
        "chunks": chunks,
        "parts": parts,
        "overwrites": overwrites,
    });
    if streams > 1 {
        problem["streams"] = streams.into();
    }
    if !is_named {
        problem.as_object_mut().unwrap().remove("pools");
    }
    if dice.is(mix.apart) {
        let group: BTreeSet<usize> = (0..2 + dice.at(2)).map(|_| dice.at(count)).collect();
        problem["apart"] = json!([group]);
    }
    problem
}

/// A condition in a problem: the branches take their steps one after the other, and their results are parts of
/// the output, which begins when both are over. Each branch may make its result in place.
pub fn random_branches(dice: &mut Dice) -> Value {
    let mix = Mix::random(dice);
    let count = 1 + dice.at(5) / 3;
    let pools: Vec<Value> = (0..count).map(|at| random_pool(dice, &mix, at)).collect();
    let size = 1 + dice.roll(8);
    let (mut chunks, mut parts, mut overwrites) = (Vec::new(), Vec::new(), Vec::new());
    let mut start = 1;
    for branch in 0..2 {
        let end = start + 2 + dice.roll(2);
        let begin = start + 1;
        let (made, room) = (1 + dice.roll(size), 1 + dice.roll(8));
        let over = begin + 1 + dice.roll(end - begin);
        chunks.push(json!({"id": 2 * branch, "begin": start, "end": over.min(end), "size": room}));
        chunks.push(json!({"id": 2 * branch + 1, "begin": begin, "end": end, "size": made}));
        let offset = dice.roll(size - made + 1);
        parts.push(json!({"chunk": 2 * branch + 1, "whole": 4, "offset": offset}));
        if made <= room && dice.roll(2) == 0 {
            let offset = dice.roll(room - made + 1);
            let request =
                json!({"chunk": 2 * branch + 1, "overwritten": 2 * branch, "offset": offset});
            overwrites.push(request);
        }
        start = end;
    }
    chunks.push(json!({"id": 4, "begin": start, "end": start + 1 + dice.roll(2), "size": size}));
    // A chunk that is alive before, throughout or after the branches.
    let begin = dice.roll(start + 2);
    let end = begin + 1 + dice.roll(start + 1);
    chunks.push(json!({"id": 5, "begin": begin, "end": end, "size": 1 + dice.roll(8)}));
    json!({
        "format": "memplan-problem/2",
        "alignment": 1 << (dice.roll(6) / 3 * dice.roll(3)),
        "padding": 0,
        "pools": pools,
        "chunks": chunks,
        "parts": parts,
        "overwrites": overwrites,
    })
}

/// Moves a chunk to the last step of another one.
fn begin_at_the_end_of(
    chunks: &mut [Value],
    at: usize,
    other: usize,
    streams: u64,
    dice: &mut Dice,
) {
    if streams > 1 {
        let stream = dice.at(usize::try_from(streams).unwrap());
        let mut begin: Vec<u64> = clock(&chunks[other]["end"]);
        begin[stream] = begin[stream].saturating_sub(1);
        let mut after = begin.clone();
        after[stream] += 1 + dice.roll(2);
        chunks[at]["stream"] = stream.into();
        chunks[at]["begin"] = begin.into();
        chunks[at]["end"] = after.into();
        return;
    }
    let begin = chunks[other]["end"].as_u64().unwrap() - 1;
    chunks[at]["begin"] = begin.into();
    chunks[at]["end"] = (begin + 1 + dice.roll(3)).into();
}

fn random_pool(dice: &mut Dice, mix: &Mix, at: usize) -> Value {
    let mut pool = json!({"name": format!("p{at}"), "cost": dice.roll(3)});
    if dice.is(2 * mix.alignments) {
        pool["alignment"] = (1 << dice.roll(3)).into();
    }
    if !dice.is(3 * mix.limits) {
        return pool;
    }
    match dice.roll(4) {
        0 | 1 => pool["capacity"] = (6 + dice.roll(22)).into(),
        2 => {
            let low = dice.roll(10);
            pool["reserved"] = json!([[low, low + 1 + dice.roll(4)]]);
        }
        _ => {
            pool["largest"] = (8 * (1 + dice.roll(2))).into();
            if dice.roll(3) == 0 {
                pool["capacity"] = (8 * (1 + dice.roll(5))).into();
            }
        }
    }
    pool
}

/// A chunk of a program on some streams, with some pools, or with one that has no name.
fn random_chunk(dice: &mut Dice, mix: &Mix, id: usize, (streams, pools): (u64, usize)) -> Value {
    let size = if dice.roll(12) == 0 { 0 } else { 1 + dice.roll(8) };
    let mut chunk = json!({"id": id, "name": format!("c{id}"), "size": size});
    if streams == 1 {
        let begin = dice.roll(6);
        (chunk["begin"], chunk["end"]) = (begin.into(), (begin + 1 + dice.roll(5)).into());
    } else {
        let begin: Vec<u64> = (0..streams).map(|_| dice.roll(4)).collect();
        let stream = dice.at(usize::try_from(streams).unwrap());
        let mut end: Vec<u64> = begin.iter().map(|at| at + dice.roll(3)).collect();
        end[stream] = end[stream].max(begin[stream] + 1);
        chunk["stream"] = stream.into();
        (chunk["begin"], chunk["end"]) = (begin.into(), end.into());
    }
    if dice.is(2 * mix.alignments) {
        chunk["alignment"] = (1 << dice.roll(3)).into();
    }
    if pools > 0 && dice.is(2 * mix.pools) {
        chunk["pools"] = json!([format!("p{}", dice.at(pools))]);
    }
    if dice.is(2 * mix.pins) && size > 0 {
        // Often the same place as another pin has.
        let offset = if dice.roll(2) == 0 { 4 } else { dice.roll(12) };
        chunk["pin"] = json!({"offset": offset});
        if pools > 0 {
            chunk["pin"]["pool"] = format!("p{}", dice.at(pools)).into();
        }
    }
    if dice.roll(4) == 0 {
        chunk["traffic"] = dice.roll(40).into();
    }
    chunk
}

/// Lets a chunk need none or only some of its bytes in up to three runs of steps, also the first and the last, but
/// not nothing at all.
fn pause(dice: &mut Dice, chunk: &mut Value) {
    let [begin, end, size] = ["begin", "end", "size"].map(|key| chunk[key].as_u64().unwrap());
    if size == 0 {
        return;
    }
    let (mut holes, mut windows) = (Vec::new(), Vec::new());
    let (mut at, mut paused) = (begin, 0);
    while at < end && holes.len() + windows.len() < 3 {
        let from = at + dice.roll(end - at);
        let to = from + 1 + dice.roll(end - from);
        at = to;
        let low = dice.roll(size);
        if dice.roll(2) == 0 && paused + to - from < end - begin {
            holes.push(json!([from, to]));
            paused += to - from;
        } else {
            let high = low + 1 + dice.roll(size - low);
            windows.push(json!({"begin": from, "end": to, "low": low, "high": high}));
        }
    }
    (chunk["holes"], chunk["windows"]) = (holes.into(), windows.into());
}

fn clock(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect()
}
