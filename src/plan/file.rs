//! The file forms of a plan: `memplan-plan/1`, and `/2` if its problem is constrained.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Plan, PlanError, PlannedChunk, PlannedTensor, Step,
    file::{Places, is_zero},
    plan::{
        ArenaEntry, PlannedBody, PlannedCopies, PlannedLink, PlannedPart, PlannedPool,
        PlannedWindow, Scope, TensorPlace,
    },
    sequence::{DimRange, SizeBasis},
};

const PLAIN: &str = "memplan-plan/1";
const FULL: &str = "memplan-plan/2";

/// A plan in its JSON form. It is not checked and may be wrong in any way: verify it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a plan")]
pub(crate) struct PlanFile {
    /// `memplan-plan/1`, or `memplan-plan/2` if there are pools.
    pub format: String,
    /// Name of the strategy; `null` or omitted if it is unknown.
    #[serde(default)]
    pub strategy: Option<String>,
    /// Name of the strategy that won; omitted if only one was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// Bytes to reserve.
    pub pool_size: Bytes,
    /// Bytes that every plan needs.
    pub lower_bound: Bytes,
    /// True if no smaller pool exists.
    #[serde(default)]
    pub proven_optimal: bool,
    /// Name of the scope of `lower_bound` and `proven_optimal`; `these_choices` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Total bytes with one buffer per chunk.
    pub naive_size: Bytes,
    /// Alignment in bytes.
    pub alignment: Bytes,
    /// Bytes added to every chunk; omitted if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub padding: Bytes,
    /// Number of steps.
    pub steps: Step,
    /// First step where the most bytes are alive; `null` with several streams.
    pub peak_step: Option<Step>,
    /// Format 2: the ids of chunks that are alive together and take the most bytes, if there are several
    /// streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peak: Vec<u64>,
    /// Format 2: the pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pools: Vec<PoolEntry>,
    /// Format 2: the cost of the traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<u128>,
    /// Format 2: the cost of the traffic, then the sizes of the pools, the last pool first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objective: Vec<u128>,
    /// Planning time in seconds; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The arena of the runtime that a model is for; omitted for other inputs. A plan that is read
    /// does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arena: Option<ArenaEntry>,
    /// The chunks.
    chunks: Vec<ChunkEntry>,
    /// Format 2: chunks that lie inside others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartEntry>,
    /// Format 2: steps in which chunks need only some of their bytes, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    windows: Vec<WindowEntry>,
    /// The copies that make the pool smaller, or that a required overwrite needs; omitted if there are none.
    #[serde(default, skip_serializing_if = "PlannedCopies::is_empty")]
    pub copies: PlannedCopies,
    /// Format 2: the ids of the chunks whose places the problem gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<u64>,
    /// The tensors.
    #[serde(default)]
    tensors: Vec<TensorEntry>,
    /// The sizes of the shared objects in bytes, by id; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Bytes>,
    /// The steps of the input in the order in which they are to run; omitted if that is the order
    /// given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<usize>,
    /// The dimensions whose sizes may differ from run to run, by name: the smallest and the largest size that
    /// the plan holds for; omitted if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dims: BTreeMap<Box<str>, DimRange>,
    /// The names that operators read although no operator produces them and they were not declared; they count as
    /// weights. Omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<Box<str>>,
    /// True if the operators were not given in execution order: steps count in the sorted order;
    /// omitted otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sorted: bool,
    /// The plans of the sequences that operators run; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<BodyEntry>,
}

/// The plan of a sequence that an operator runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a body")]
struct BodyEntry {
    step: Step,
    body: usize,
    inputs: Bytes,
    plan: PlanFile,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a pool")]
struct PoolEntry {
    name: Box<str>,
    size: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<Bytes>,
    /// The alignment of roots in the pool; omitted if it is 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    alignment: Bytes,
    #[serde(default, skip_serializing_if = "is_zero")]
    cost: u64,
    /// Half-open ranges of bytes that no chunk may touch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reserved: Vec<[Bytes; 2]>,
    /// The size of the pool's buffers, if no chunk may cross their boundaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest: Option<Bytes>,
}

const fn one() -> Bytes {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
const fn is_one(bytes: &Bytes) -> bool {
    *bytes == 1
}

/// A chunk that lies inside another, or the bytes `[low, low + size)` of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a part")]
struct PartEntry {
    chunk: u64,
    whole: u64,
    offset: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    low: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Bytes>,
}

/// Steps in which a chunk needs only the bytes `[low, high)` from its start; none in a hole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a window")]
struct WindowEntry {
    chunk: u64,
    begin: Step,
    end: Step,
    low: Bytes,
    high: Bytes,
}

impl TensorEntry {
    fn new(tensor: PlannedTensor, id: impl Fn(usize) -> u64) -> Self {
        let PlannedTensor { name, size, basis, place } = tensor;
        let (chunk, supplied, offset) = match place {
            TensorPlace::Pool { chunk, offset } => (Some(id(chunk)), None, offset),
            TensorPlace::Supplied { tensor, offset } => (None, Some(tensor), offset),
            TensorPlace::Nowhere => (None, None, 0),
        };
        Self { name, chunk, supplied, offset, size, basis }
    }

    fn planned(self, find: impl Fn(u64) -> usize) -> PlannedTensor {
        let Self { name, chunk, supplied, offset, size, basis } = self;
        let place = match (chunk, supplied) {
            (Some(id), _) => TensorPlace::Pool { chunk: find(id), offset },
            (None, Some(tensor)) => TensorPlace::Supplied { tensor, offset },
            (None, None) => TensorPlace::Nowhere,
        };
        PlannedTensor { name, size, basis, place }
    }
}

impl WindowEntry {
    fn new(window: PlannedWindow, id: impl Fn(usize) -> u64) -> Self {
        let PlannedWindow { chunk, begin, end, low, high } = window;
        Self { chunk: id(chunk), begin, end, low, high }
    }

    fn planned(self, find: impl Fn(u64) -> usize) -> PlannedWindow {
        let Self { chunk, begin, end, low, high } = self;
        PlannedWindow { chunk: find(chunk), begin, end, low, high }
    }
}

/// A planned chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a chunk")]
struct ChunkEntry {
    id: u64,
    name: Box<str>,
    size: Bytes,
    begin: Step,
    end: Step,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pool: Option<Box<str>>,
    offset: Bytes,
    #[serde(default)]
    overwrites: Option<LinkEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<usize>,
}

impl ChunkEntry {
    fn is_below(&self) -> bool {
        self.overwrites.as_ref().is_some_and(|link| link.below > 0)
    }
}

/// An overwrite link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes an overwrite")]
struct LinkEntry {
    chunk: u64,
    #[serde(default)]
    offset: Bytes,
    #[serde(default, skip_serializing_if = "is_zero")]
    below: Bytes,
}

/// A planned tensor: in a chunk, at an offset in the pool; or in a supplied tensor, at an offset in
/// it; or without bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a tensor")]
struct TensorEntry {
    name: Box<str>,
    #[serde(default)]
    chunk: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    supplied: Option<Box<str>>,
    offset: Bytes,
    size: Bytes,
    #[serde(default, skip_serializing_if = "SizeBasis::is_exact")]
    basis: SizeBasis,
}

/// An invalid plan file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlanFileError {
    /// The file has another format.
    #[error("the format is '{0}', expected '{PLAIN}' or '{FULL}'")]
    Format(String),
    /// A field of format 2 in a file of format 1.
    #[error("'{0}' belongs to format '{FULL}', and this is '{PLAIN}'")]
    Field(&'static str),
    /// A file of format 2 without pools.
    #[error("format '{FULL}' lists the pools, and this file has none")]
    NoPools,
    /// A chunk in a pool that the plan does not list.
    #[error("chunk '{chunk}' lies in pool '{pool}', which the plan does not list")]
    UnknownPool {
        /// The chunk.
        chunk: String,
        /// The name of the pool.
        pool: String,
    },
    /// A chunk without a pool in a plan with several.
    #[error("chunk '{0}' does not state in which of the pools it lies")]
    NoPool(String),
    /// An objective that does not consist of the traffic and the sizes of the pools.
    #[error("the objective is not the traffic, followed by the sizes of the pools from the last")]
    Objective,
    /// The strategy is unknown.
    #[error(transparent)]
    Strategy(#[from] PlanError),
}

impl From<Plan> for PlanFile {
    fn from(plan: Plan) -> Self {
        let ids: Vec<u64> = plan.chunks.iter().map(|chunk| chunk.id).collect();
        // A plan may refer to a chunk that it does not list: that chunk gets an unused id.
        let unused = ids.iter().max().map_or(0, |id| id.saturating_add(1));
        let id = |chunk: usize| ids.get(chunk).copied().unwrap_or(unused);
        let has_pools = !plan.pools.is_empty();
        let objective = if has_pools { plan.objective() } else { Vec::new() };
        let names: Vec<Box<str>> = plan.pools.iter().map(|pool| pool.name.clone()).collect();
        // With one pool, chunks need not name it.
        let pool_of = |pool: usize| if names.len() > 1 { names.get(pool).cloned() } else { None };
        Self {
            format: if has_pools { FULL } else { PLAIN }.to_owned(),
            peak: plan.peak.iter().map(|&chunk| id(chunk)).collect(),
            pools: plan
                .pools
                .into_iter()
                .enumerate()
                .map(|(at, PlannedPool { name, size, capacity, alignment, cost, largest })| {
                    PoolEntry {
                        name,
                        size,
                        capacity,
                        alignment,
                        cost,
                        reserved: plan
                            .reserved
                            .iter()
                            .filter(|&&(pool, _)| pool == at)
                            .map(|(_, bytes)| [bytes.start, bytes.end])
                            .collect(),
                        largest,
                    }
                })
                .collect(),
            traffic: has_pools.then_some(plan.traffic),
            objective,
            parts: plan
                .parts
                .into_iter()
                .map(|PlannedPart { chunk, whole, offset, low, size }| {
                    let all = plan.chunks.get(chunk).map_or(size, |chunk| chunk.size);
                    let is_all = (low, size) == (0, all);
                    let [low, size] = [low, size].map(|bytes| (!is_all).then_some(bytes));
                    PartEntry { chunk: id(chunk), whole: id(whole), offset, low, size }
                })
                .collect(),
            windows: plan.windows.into_iter().map(|window| WindowEntry::new(window, id)).collect(),
            pinned: plan.pinned.into_iter().map(id).collect(),
            strategy: plan.strategy.map(|strategy| strategy.to_string()),
            winner: plan.winner.map(|winner| winner.to_string()),
            pool_size: plan.pool_size,
            lower_bound: plan.lower_bound,
            proven_optimal: plan.proven_optimal,
            scope: Some(plan.scope),
            naive_size: plan.naive_size,
            alignment: plan.alignment,
            padding: plan.padding,
            steps: plan.steps,
            peak_step: plan.peak.is_empty().then_some(plan.peak_step),
            seconds: None,
            arena: None,
            chunks: plan
                .chunks
                .into_iter()
                .map(|chunk| ChunkEntry {
                    id: chunk.id,
                    name: chunk.name,
                    size: chunk.size,
                    begin: chunk.begin,
                    end: chunk.end,
                    pool: pool_of(chunk.pool),
                    offset: chunk.offset,
                    overwrites: chunk.overwrites.map(|PlannedLink { chunk, offset, below }| {
                        LinkEntry { chunk: id(chunk), offset, below }
                    }),
                    object: chunk.object,
                })
                .collect(),
            tensors: plan.tensors.into_iter().map(|tensor| TensorEntry::new(tensor, id)).collect(),
            objects: plan.objects,
            order: plan.order,
            dims: plan.dims,
            undeclared: plan.undeclared,
            copies: plan.copies,
            sorted: plan.is_sorted,
            bodies: plan
                .bodies
                .into_iter()
                .map(|PlannedBody { step, body, inputs, plan }| BodyEntry {
                    step,
                    body,
                    inputs,
                    plan: plan.into(),
                })
                .collect(),
        }
    }
}

impl TryFrom<PlanFile> for Plan {
    type Error = PlanFileError;

    fn try_from(file: PlanFile) -> Result<Self, PlanFileError> {
        let strategy = |name: Option<String>| name.map(|name| name.parse()).transpose();
        file.check_format()?;
        let pool_of = |chunk: &ChunkEntry| match &chunk.pool {
            None if file.pools.len() > 1 => Err(PlanFileError::NoPool(chunk.name.to_string())),
            None => Ok(0),
            Some(name) => file.pools.iter().position(|pool| pool.name == *name).ok_or_else(|| {
                let (chunk, pool) = (chunk.name.to_string(), name.to_string());
                PlanFileError::UnknownPool { chunk, pool }
            }),
        };
        let pools: Vec<usize> = file.chunks.iter().map(pool_of).collect::<Result<_, _>>()?;
        // A missing chunk gets an index beyond the list, which `verify` reports.
        let places = Places::new(file.chunks.iter().map(|chunk| chunk.id));
        let find = |id: u64| places.find(id).unwrap_or(usize::MAX);
        let chunks: Vec<PlannedChunk> = file
            .chunks
            .into_iter()
            .zip(pools)
            .map(|(chunk, pool)| PlannedChunk {
                id: chunk.id,
                name: chunk.name,
                size: chunk.size,
                begin: chunk.begin,
                end: chunk.end,
                pool,
                offset: chunk.offset,
                overwrites: chunk.overwrites.map(|LinkEntry { chunk, offset, below }| {
                    PlannedLink { chunk: find(chunk), offset, below }
                }),
                object: chunk.object,
            })
            .collect();
        let tensors = file.tensors.into_iter().map(|tensor| tensor.planned(find)).collect();
        let bodies = file.bodies.into_iter().map(|BodyEntry { step, body, inputs, plan }| {
            Ok(PlannedBody { step, body, inputs, plan: plan.try_into()? })
        });
        let bodies = bodies.collect::<Result<_, PlanFileError>>()?;
        let part = |part: PartEntry| {
            let chunk = find(part.chunk);
            let all = chunks.get(chunk).map_or(0, |chunk| chunk.size);
            let (low, size) = (part.low.unwrap_or(0), part.size.unwrap_or(all));
            PlannedPart { chunk, whole: find(part.whole), offset: part.offset, low, size }
        };
        let parts: Vec<PlannedPart> = file.parts.into_iter().map(part).collect();
        let reserved = file.pools.iter().enumerate().flat_map(|(pool, entry)| {
            entry.reserved.iter().map(move |&[low, high]| (pool, low..high))
        });
        let reserved: Vec<(usize, Range<Bytes>)> = reserved.collect();
        let pools = file.pools.into_iter().map(|pool| PlannedPool {
            name: pool.name,
            size: pool.size,
            capacity: pool.capacity,
            alignment: pool.alignment,
            cost: pool.cost,
            largest: pool.largest,
        });
        let windows = file.windows.into_iter().map(|window| window.planned(find));
        let mut windows: Vec<PlannedWindow> = windows.collect();
        windows.sort_unstable();
        let mut pinned: Vec<usize> = file.pinned.into_iter().map(find).collect();
        pinned.sort_unstable();
        let plan = Self {
            strategy: strategy(file.strategy)?,
            winner: strategy(file.winner)?,
            pool_size: file.pool_size,
            lower_bound: file.lower_bound,
            proven_optimal: file.proven_optimal,
            scope: file.scope.unwrap_or(Scope::TheseChoices),
            content_bound: None,
            claimed_bound: None,
            naive_size: file.naive_size,
            alignment: file.alignment,
            padding: file.padding,
            steps: file.steps,
            peak_step: file.peak_step.unwrap_or(0),
            peak: file.peak.into_iter().map(find).collect(),
            chunks,
            tensors,
            objects: file.objects,
            order: file.order,
            bodies,
            pools: pools.collect(),
            parts,
            windows,
            pinned,
            reserved,
            traffic: file.traffic.unwrap_or(0),
            dims: file.dims,
            undeclared: file.undeclared,
            copies: file.copies,
            is_sorted: file.sorted,
        };
        if !plan.pools.is_empty() && plan.objective() != file.objective {
            return Err(PlanFileError::Objective);
        }
        Ok(plan)
    }
}

impl PlanFile {
    /// Checks the format, and that no field belongs to another one.
    fn check_format(&self) -> Result<(), PlanFileError> {
        match &*self.format {
            FULL if self.pools.is_empty() => return Err(PlanFileError::NoPools),
            FULL => return Ok(()),
            PLAIN => {}
            _ => return Err(PlanFileError::Format(self.format.clone())),
        }
        let fields = [
            (self.peak_step.is_none(), "peak_step: null"),
            (!self.peak.is_empty(), "peak"),
            (!self.pools.is_empty(), "pools"),
            (!self.parts.is_empty(), "parts"),
            (!self.windows.is_empty(), "windows"),
            (!self.pinned.is_empty(), "pinned"),
            (self.traffic.is_some(), "traffic"),
            (!self.objective.is_empty(), "objective"),
            (self.chunks.iter().any(|chunk| chunk.pool.is_some()), "pool"),
            (self.chunks.iter().any(ChunkEntry::is_below), "below"),
        ];
        match fields.into_iter().find(|(is_used, _)| *is_used) {
            Some((_, field)) => Err(PlanFileError::Field(field)),
            None => Ok(()),
        }
    }
}
