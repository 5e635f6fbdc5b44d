//! What the text of a problem asks, read without the library.

use std::collections::BTreeSet;

use serde_json::Value;

use super::judge::Over;

/// A chunk as the text of the problem has it.
pub struct AskedChunk {
    pub size: u64,
    pub begin: Vec<u64>,
    pub end: Vec<u64>,
    pub stream: usize,
    pub alignment: u64,
    pub pools: Option<Vec<usize>>,
    pub pin: Option<(Option<usize>, u64)>,
    pub holes: Vec<(u64, u64)>,
    /// The steps and the bytes of each.
    pub windows: Vec<[u64; 4]>,
    pub traffic: u64,
    /// For each byte, the chunks and bytes that it may be.
    pub names: Vec<BTreeSet<(usize, u64)>>,
    /// The chunks that parts join with this one.
    pub family: BTreeSet<usize>,
}

pub struct AskedPool {
    pub capacity: Option<u64>,
    pub alignment: u64,
    pub cost: u64,
    pub reserved: Vec<(u64, u64)>,
    pub largest: Option<u64>,
}

/// Everything that the text of a problem asks.
pub struct Judge {
    pub chunks: Vec<AskedChunk>,
    pub pools: Vec<AskedPool>,
    pub alignment: u64,
    pub padding: u64,
    pub parts: Vec<(usize, usize, u64)>,
    pub requests: Vec<Request>,
    pub apart: Vec<BTreeSet<usize>>,
}

/// A chunk that may be written over another one, or must be.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub new: usize,
    pub over: Over,
    pub required: bool,
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
        let asked = |(at, chunk): (usize, &Value)| AskedChunk {
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
        let request = |r: &Value| {
            let below = number(&r["below"], 0).cast_signed();
            let distance = number(&r["offset"], 0).cast_signed() - below;
            let over = (position(&r["overwritten"]), distance);
            Request { new: position(&r["chunk"]), over, required: r["required"] == true }
        };
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
            requests: list(&problem["overwrites"]).iter().map(request).collect(),
            apart: list(&problem["apart"]).iter().map(group).collect(),
            parts,
        }
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
