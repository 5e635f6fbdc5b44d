//! The file forms of a problem: `memplan-problem/1`, and `/2` if it is constrained.

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Step,
    file::{Places, is_zero},
    problem::{
        Chunk, ChunkId, Ids, Problem, ProblemBuilder, ProblemError, Request,
        constraints::{
            APART, ChunkConstraints, Clock, PART, Part, Place, Pool, PoolId, REQUEST, Window,
        },
        moment::Moment,
    },
};

const PLAIN: &str = "memplan-problem/1";
const FULL: &str = "memplan-problem/2";

/// A problem as it stands in a JSON file, not yet checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a problem")]
pub(crate) struct ProblemFile {
    /// `memplan-problem/1`, or `memplan-problem/2` if a key is used that only format 2 has.
    format: String,
    /// Alignment of roots in bytes; 1 if omitted.
    #[serde(default = "one")]
    alignment: Bytes,
    /// Bytes added to every chunk; 0 if omitted.
    #[serde(default)]
    padding: Bytes,
    /// Format 2: the number of streams; 1 if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    streams: Option<usize>,
    /// Format 2: the pools in order of preference; one without limits if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pools: Option<Vec<PoolEntry>>,
    /// The chunks.
    chunks: Vec<ChunkEntry>,
    /// The requests to overwrite, in order.
    #[serde(default)]
    overwrites: Vec<OverwriteEntry>,
    /// Format 2: chunks that lie inside others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<PartEntry>>,
    /// Format 2: groups of chunks, by id, that share no bytes of a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    apart: Option<Vec<Vec<u64>>>,
}

/// A pool in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a pool")]
struct PoolEntry {
    /// Its name; no two pools have the same.
    name: Box<str>,
    /// Its size limit in bytes; unlimited if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<Bytes>,
    /// Alignment of roots in bytes; 1 if omitted.
    #[serde(default = "one")]
    alignment: Bytes,
    /// The cost of a byte of traffic; 0 if omitted.
    #[serde(default, skip_serializing_if = "is_zero")]
    cost: u64,
    /// The address of the first byte; 0 if omitted.
    #[serde(default, skip_serializing_if = "is_zero")]
    base: Bytes,
    /// Ranges of bytes that no chunk may touch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reserved: Vec<[Bytes; 2]>,
    /// The size of the pool's buffers, if no chunk may cross their boundaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest: Option<Bytes>,
}

/// A chunk that lies inside another, in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a part")]
struct PartEntry {
    /// Id of the chunk inside.
    chunk: u64,
    /// Id of the chunk around it.
    whole: u64,
    /// Bytes from the whole's start.
    offset: Bytes,
    /// False if the chunk inside may lie elsewhere; `true` if omitted.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    required: bool,
}

/// A window in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a window")]
struct WindowEntry {
    /// First step.
    begin: Step,
    /// The step after the last.
    end: Step,
    /// First byte.
    low: Bytes,
    /// The byte after the last.
    high: Bytes,
}

/// A pin in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a pin")]
struct PinEntry {
    /// The name of the pool; may be omitted if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pool: Option<Box<str>>,
    /// Bytes from the start of the pool.
    offset: Bytes,
}

/// A chunk in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a chunk")]
struct ChunkEntry {
    /// An arbitrary number, unique in its file.
    id: u64,
    /// A name for messages and maps; may be omitted.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    name: Box<str>,
    /// First step.
    begin: Moment,
    /// Last reading step + 1.
    end: Moment,
    /// Its size in bytes.
    size: Bytes,
    /// Format 2: the stream of its producer; 0 if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<usize>,
    /// Format 2: the alignment of its offset in bytes; 1 if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alignment: Option<Bytes>,
    /// Format 2: the names of the pools that it may lie in; all if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pools: Option<Box<[Box<str>]>>,
    /// Format 2: the bytes that operators move to and from it; its size if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traffic: Option<Bytes>,
    /// Format 2: the steps in which it needs no bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holes: Option<Box<[[Step; 2]]>>,
    /// Format 2: the steps in which it needs some of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    windows: Option<Box<[WindowEntry]>>,
    /// Format 2: the place that it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pin: Option<Box<PinEntry>>,
}

/// A request to overwrite in a problem file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes an overwrite")]
struct OverwriteEntry {
    /// Id of the overwriter.
    chunk: u64,
    /// Id of the overwritten chunk.
    overwritten: u64,
    /// Bytes from the overwritten chunk's start; may be omitted if `below` is given.
    #[serde(default)]
    offset: Bytes,
    /// Format 2: the bytes by which the overwriter begins below the overwritten chunk.
    #[serde(default, skip_serializing_if = "is_zero")]
    below: Bytes,
    /// True if the overwrite must be accepted; `false` if omitted.
    #[serde(default)]
    required: bool,
}

fn one() -> Bytes {
    1
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
const fn is_yes(value: &bool) -> bool {
    *value
}

/// A list of these items; `None` if there are none.
fn unless_empty<T, L: FromIterator<T>>(items: impl Iterator<Item = T>) -> Option<L> {
    let mut items = items.peekable();
    items.peek().is_some().then(|| items.collect())
}

impl From<Problem> for ProblemFile {
    fn from(problem: Problem) -> Self {
        let constraints = problem.all_constraints();
        let number = |chunk: ChunkId| problem.number(chunk);
        let is_full = !problem.is_unconstrained() || !problem.optional_parts().is_empty();
        Self {
            format: if is_full { FULL } else { PLAIN }.to_owned(),
            alignment: problem.alignment(),
            padding: problem.padding(),
            streams: Some(problem.streams()).filter(|&streams| streams > 1),
            pools: constraints
                .has_pools
                .then(|| constraints.pools.iter().map(PoolEntry::of).collect()),
            chunks: problem.ids().map(|chunk| ChunkEntry::of(&problem, chunk)).collect(),
            overwrites: problem
                .requests()
                .iter()
                .map(|request| OverwriteEntry {
                    chunk: number(request.overwriter),
                    overwritten: number(request.overwritten),
                    offset: request.offset,
                    below: request.below,
                    required: request.required,
                })
                .collect(),
            parts: {
                let entry = |part: &Part, required| PartEntry {
                    chunk: number(part.part),
                    whole: number(part.whole),
                    offset: part.offset,
                    required,
                };
                let required = problem.parts().iter().map(|part| entry(part, true));
                let optional = problem.optional_parts().iter().map(|part| entry(part, false));
                unless_empty(required.chain(optional))
            },
            apart: unless_empty(
                constraints.apart.iter().map(|group| group.iter().map(|&c| number(c)).collect()),
            ),
        }
    }
}

impl PoolEntry {
    fn of(pool: &Pool) -> Self {
        Self {
            name: pool.name.clone(),
            capacity: pool.capacity,
            alignment: pool.alignment,
            cost: pool.cost,
            base: pool.base,
            reserved: pool.reserved.iter().map(|range| [range.start, range.end]).collect(),
            largest: pool.largest,
        }
    }
}

impl From<PoolEntry> for Pool {
    fn from(entry: PoolEntry) -> Self {
        let mut reserved: Vec<_> = entry.reserved.iter().map(|&[low, high]| low..high).collect();
        reserved.sort_by_key(|range| (range.start, range.end));
        Self {
            name: entry.name,
            capacity: entry.capacity,
            alignment: entry.alignment,
            cost: entry.cost,
            base: entry.base,
            reserved,
            largest: entry.largest,
        }
    }
}

impl ChunkEntry {
    fn of(problem: &Problem, chunk: ChunkId) -> Self {
        let (labels, constraints) = (&problem.labels, problem.all_constraints());
        let (of, life) = (constraints.of(chunk), constraints.lives.get(chunk.index()));
        let &Chunk { begin, end, size } = problem.chunk(chunk);
        let moment = |clock: &Clock| Moment::Clock(clock.to_vec());
        let pool_name = |pool: PoolId| constraints.pools[pool.index()].name.clone();
        Self {
            id: labels.number(chunk),
            // Text ids become names, because files of this format number their chunks.
            name: match labels.own_name(chunk) {
                Some(name) => name.into(),
                None if matches!(labels.ids, Ids::Texts(_)) => labels.id(chunk).into(),
                None => "".into(),
            },
            begin: life.map_or(Moment::Step(begin), |life| moment(&life.begin)),
            end: life.map_or(Moment::Step(end), |life| moment(&life.end)),
            size,
            stream: Some(of.stream).filter(|&stream| stream > 0),
            alignment: Some(of.alignment).filter(|&alignment| alignment > 1),
            pools: of.pools.as_ref().map(|pools| pools.iter().copied().map(pool_name).collect()),
            traffic: of.traffic,
            holes: unless_empty(of.holes.iter().map(|hole| [hole.start, hole.end])),
            windows: unless_empty(of.windows.iter().map(|window| WindowEntry {
                begin: window.steps.start,
                end: window.steps.end,
                low: window.bytes.start,
                high: window.bytes.end,
            })),
            pin: of.pin.map(|pin| {
                let pool = constraints.has_pools.then(|| pool_name(pin.pool));
                Box::new(PinEntry { pool, offset: pin.offset })
            }),
        }
    }

    /// The first key that only format 2 has.
    fn new_key(&self) -> Option<&'static str> {
        let keys = [
            ("stream", self.stream.is_some()),
            ("alignment", self.alignment.is_some()),
            ("pools", self.pools.is_some()),
            ("traffic", self.traffic.is_some()),
            ("holes", self.holes.is_some()),
            ("windows", self.windows.is_some()),
            ("pin", self.pin.is_some()),
            ("begin", matches!(self.begin, Moment::Clock(_))),
            ("end", matches!(self.end, Moment::Clock(_))),
        ];
        keys.into_iter().find_map(|(key, is_used)| is_used.then_some(key))
    }

    /// Adds the constraints of the entry to its chunk.
    fn constrain(
        self,
        problem: &mut ProblemBuilder,
        chunk: ChunkId,
        pools: &[Box<str>],
    ) -> Result<(), ProblemError> {
        let find = |name: &str| {
            let index = pools.iter().position(|pool| **pool == *name);
            let index = index.and_then(|index| u16::try_from(index).ok());
            index.map(PoolId).ok_or_else(|| ProblemError::UnknownPool { pool: name.to_owned() })
        };
        let constraints = ChunkConstraints {
            alignment: self.alignment.unwrap_or(1),
            holes: self.holes.iter().flatten().map(|&[begin, end]| begin..end).collect(),
            windows: self
                .windows
                .iter()
                .flatten()
                .map(|w| Window { steps: w.begin..w.end, bytes: w.low..w.high })
                .collect(),
            pools: match &self.pools {
                Some(names) => Some(names.iter().map(|n| find(n)).collect::<Result<_, _>>()?),
                None => None,
            },
            pin: match self.pin.as_deref() {
                None => None,
                Some(PinEntry { pool: None, .. }) if pools.len() > 1 => {
                    return Err(ProblemError::PinWithoutPool { chunk: self.display() });
                }
                Some(PinEntry { pool, offset }) => {
                    let pool = pool.as_deref().map_or(Ok(PoolId(0)), find)?;
                    Some(Place::new(pool, *offset))
                }
            },
            traffic: self.traffic,
            stream: self.stream.unwrap_or(0),
        };
        problem.constrain(chunk, constraints);
        Ok(())
    }

    fn display(&self) -> String {
        if self.name.is_empty() { self.id.to_string() } else { self.name.to_string() }
    }
}

impl TryFrom<ProblemFile> for Problem {
    type Error = ProblemError;

    fn try_from(file: ProblemFile) -> Result<Self, ProblemError> {
        let is_plain = match &*file.format {
            PLAIN => true,
            FULL => false,
            _ => return Err(ProblemError::Format { found: file.format, expected: PLAIN }),
        };
        if is_plain && let Some(key) = file.new_key() {
            return Err(ProblemError::UnknownKey { key, format: FULL });
        }
        if u32::try_from(file.chunks.len()).is_err() {
            return Err(ProblemError::TooManyChunks);
        }
        let mut problem = Problem::builder();
        let streams = file.streams.unwrap_or(1);
        let mut pools: Vec<Box<str>> = vec!["pool".into()];
        if !is_plain {
            if streams != 1 {
                problem.streams(streams);
            }
            if let Some(entries) = file.pools {
                pools = entries.iter().map(|entry| entry.name.clone()).collect();
                problem.pools(entries.into_iter().map(Pool::from).collect());
            }
        }
        let numbers: Vec<u64> = file.chunks.iter().map(|chunk| chunk.id).collect();
        let named = file.chunks.iter().any(|chunk| !chunk.name.is_empty());
        for entry in file.chunks {
            let [begin, end] = [&entry.begin, &entry.end].map(Moment::steps);
            if [begin.len(), end.len()] != [streams; 2] {
                return Err(ProblemError::Streams { chunk: entry.display(), streams });
            }
            let steps = if streams == 1 { begin[0]..end[0] } else { 0..0 };
            let chunk = if named {
                problem.named_chunk(entry.name.clone(), steps, entry.size)
            } else {
                problem.chunk(steps, entry.size)
            };
            if streams != 1 {
                problem.clocks(chunk, begin, end, entry.stream.unwrap_or(0));
            }
            if !is_plain {
                entry.constrain(&mut problem, chunk, &pools)?;
            }
        }
        let places = Places::new(numbers.iter().copied());
        let find = |id: u64, user: &'static str| {
            let found = places.find(id).map(ChunkId::from_index);
            found.ok_or(ProblemError::UnknownChunk { user, id })
        };
        for entry in file.parts.iter().flatten() {
            let [chunk, whole] = [find(entry.chunk, PART)?, find(entry.whole, PART)?];
            if entry.required {
                problem.part(chunk, whole, entry.offset);
            } else {
                problem.optional_part(chunk, whole, entry.offset);
            }
        }
        for group in file.apart.iter().flatten() {
            problem.apart(group.iter().map(|&id| find(id, APART)).collect::<Result<Vec<_>, _>>()?);
        }
        for entry in &file.overwrites {
            problem.request(Request {
                overwriter: find(entry.chunk, REQUEST)?,
                overwritten: find(entry.overwritten, REQUEST)?,
                offset: entry.offset,
                below: entry.below,
                required: entry.required,
            });
        }
        problem.with_ids(numbers);
        problem.alignment(file.alignment).padding(file.padding).finish()
    }
}

impl ProblemFile {
    /// The first key that only format 2 has.
    fn new_key(&self) -> Option<&'static str> {
        let keys = [
            ("streams", self.streams.is_some()),
            ("pools", self.pools.is_some()),
            ("parts", self.parts.is_some()),
            ("apart", self.apart.is_some()),
            ("below", self.overwrites.iter().any(|entry| entry.below > 0)),
        ];
        let of_file = keys.into_iter().find_map(|(key, is_used)| is_used.then_some(key));
        of_file.or_else(|| self.chunks.iter().find_map(ChunkEntry::new_key))
    }
}
