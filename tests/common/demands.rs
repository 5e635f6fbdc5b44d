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
        if dice.roll(5) == 0 {
            begin_at_the_end_of(&mut chunks, at, other, streams, dice);
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
                begin_at_the_end_of(&mut chunks, at, other, streams, dice);
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

/// A condition in a problem: the branches take their steps one after the other, and their results are parts of
/// the output, which begins when both are over. Each branch may make its result in place.
pub fn random_branches(dice: &mut Dice) -> Value {
    let pools: Vec<Value> = (0..=dice.roll(5) / 3).map(|at| random_pool(dice, at)).collect();
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

fn clock(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect()
}
