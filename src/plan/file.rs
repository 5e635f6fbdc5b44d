//! The file form of a plan, `memplan-plan/1`.

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Plan, PlannedChunk, PlannedTensor, Step,
    file::{Places, is_zero},
    plan::{PlannedBody, PlannedLink, TensorPlace},
    planner::UnknownStrategy,
    sequence::SizeBasis,
};

const FORMAT: &str = "memplan-plan/1";

/// A plan in its JSON form. It is not checked and may be wrong in any way: verify it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PlanFile {
    /// Always `memplan-plan/1`.
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
    /// Total bytes with one buffer per chunk.
    pub naive_size: Bytes,
    /// Alignment in bytes.
    pub alignment: Bytes,
    /// Bytes added to every chunk; omitted if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub padding: Bytes,
    /// Number of steps.
    pub steps: Step,
    /// First step where the most bytes are alive.
    pub peak_step: Step,
    /// Planning time in seconds; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The chunks.
    pub chunks: Vec<ChunkEntry>,
    /// The tensors.
    #[serde(default)]
    pub tensors: Vec<TensorEntry>,
    /// The sizes of the shared objects in bytes, by id; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Bytes>,
    /// The steps of the input in the order in which they are to run; omitted if that is the order
    /// given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<usize>,
    /// The plans of the sequences that operators run; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<BodyEntry>,
}

/// The plan of a sequence that an operator runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BodyEntry {
    step: Step,
    body: usize,
    inputs: Bytes,
    plan: PlanFile,
}

/// A planned chunk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChunkEntry {
    id: u64,
    name: Box<str>,
    size: Bytes,
    begin: Step,
    end: Step,
    offset: Bytes,
    #[serde(default)]
    overwrites: Option<LinkEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<usize>,
}

/// An overwrite link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LinkEntry {
    chunk: u64,
    offset: Bytes,
}

/// A planned tensor: in a chunk, at an offset in the pool; or in a supplied tensor, at an offset in
/// it; or without bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TensorEntry {
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
#[non_exhaustive]
pub enum PlanFileError {
    /// The file has another format.
    #[error("the format is '{0}', expected '{FORMAT}'")]
    Format(String),
    /// The strategy is unknown.
    #[error(transparent)]
    Strategy(#[from] UnknownStrategy),
}

impl From<Plan> for PlanFile {
    fn from(plan: Plan) -> Self {
        let ids: Vec<u64> = plan.chunks.iter().map(|chunk| chunk.id).collect();
        // A plan may refer to a chunk that it does not list: that chunk gets an unused id.
        let unused = ids.iter().max().map_or(0, |id| id.saturating_add(1));
        let id = |chunk: usize| ids.get(chunk).copied().unwrap_or(unused);
        Self {
            format: FORMAT.to_owned(),
            strategy: plan.strategy.map(|strategy| strategy.to_string()),
            winner: plan.winner.map(|winner| winner.to_string()),
            pool_size: plan.pool_size,
            lower_bound: plan.lower_bound,
            proven_optimal: plan.proven_optimal,
            naive_size: plan.naive_size,
            alignment: plan.alignment,
            padding: plan.padding,
            steps: plan.steps,
            peak_step: plan.peak_step,
            seconds: None,
            chunks: plan
                .chunks
                .into_iter()
                .map(|chunk| ChunkEntry {
                    id: chunk.id,
                    name: chunk.name,
                    size: chunk.size,
                    begin: chunk.begin,
                    end: chunk.end,
                    offset: chunk.offset,
                    overwrites: chunk
                        .overwrites
                        .map(|link| LinkEntry { chunk: id(link.chunk), offset: link.offset }),
                    object: chunk.object,
                })
                .collect(),
            tensors: plan
                .tensors
                .into_iter()
                .map(|PlannedTensor { name, size, basis, place }| {
                    let (chunk, supplied, offset) = match place {
                        TensorPlace::Pool { chunk, offset } => (Some(id(chunk)), None, offset),
                        TensorPlace::Supplied { tensor, offset } => (None, Some(tensor), offset),
                        TensorPlace::Nowhere => (None, None, 0),
                    };
                    TensorEntry { name, chunk, supplied, offset, size, basis }
                })
                .collect(),
            objects: plan.objects,
            order: plan.order,
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
        if file.format != FORMAT {
            return Err(PlanFileError::Format(file.format));
        }
        // A missing chunk gets an index beyond the list, which `verify` reports.
        let places = Places::new(file.chunks.iter().map(|chunk| chunk.id));
        let find = |id: u64| places.find(id).unwrap_or(usize::MAX);
        let chunks = file
            .chunks
            .into_iter()
            .map(|chunk| PlannedChunk {
                id: chunk.id,
                name: chunk.name,
                size: chunk.size,
                begin: chunk.begin,
                end: chunk.end,
                offset: chunk.offset,
                overwrites: chunk
                    .overwrites
                    .map(|link| PlannedLink::new(find(link.chunk), link.offset)),
                object: chunk.object,
            })
            .collect();
        let tensors = file
            .tensors
            .into_iter()
            .map(|TensorEntry { name, chunk, supplied, offset, size, basis }| {
                let place = match (chunk, supplied) {
                    (Some(id), _) => TensorPlace::Pool { chunk: find(id), offset },
                    (None, Some(tensor)) => TensorPlace::Supplied { tensor, offset },
                    (None, None) => TensorPlace::Nowhere,
                };
                PlannedTensor { name, size, basis, place }
            })
            .collect();
        let bodies = file.bodies.into_iter().map(|BodyEntry { step, body, inputs, plan }| {
            Ok(PlannedBody { step, body, inputs, plan: plan.try_into()? })
        });
        let bodies = bodies.collect::<Result<_, PlanFileError>>()?;
        Ok(Self {
            strategy: file.strategy.map(|strategy| strategy.parse()).transpose()?,
            winner: file.winner.map(|winner| winner.parse()).transpose()?,
            pool_size: file.pool_size,
            lower_bound: file.lower_bound,
            proven_optimal: file.proven_optimal,
            claimed_bound: None,
            naive_size: file.naive_size,
            alignment: file.alignment,
            padding: file.padding,
            steps: file.steps,
            peak_step: file.peak_step,
            chunks,
            tensors,
            objects: file.objects,
            order: file.order,
            bodies,
        })
    }
}
