//! The plan: the result that a framework uses.
//!
//! The root of the crate has the types that every user of a plan meets: [`Plan`] with its chunks, tensors and bodies,
//! [`PlanError`](crate::PlanError), and [`Placement`](crate::Placement) with the memory of each step. This module has
//! what only some plans have.

mod accessors;
mod copies;
mod decisions;
pub(crate) mod error;
#[cfg(feature = "serde")]
mod file;
pub(crate) mod layout;
mod offsets;
pub(crate) mod placement;
pub(crate) mod planned;
mod pools;
mod runs;
#[cfg(any(feature = "serde", feature = "tflite"))]
mod runtime_memory;
mod scope;
pub(crate) mod step_memory;
mod windows;

pub(crate) use copies::{PlannedCopies, PlannedCopy};
#[cfg(feature = "serde")]
pub(crate) use file::PlanFile;
pub(crate) use layout::Layout;
pub(crate) use planned::{
    Plan, PlannedBody, PlannedChunk, PlannedLink, PlannedTensor, TensorPlace,
};
use pools::planned_pools;
pub use pools::{PlannedPart, PlannedPool};
#[cfg(any(feature = "serde", feature = "tflite"))]
pub use runtime_memory::ArenaEntry;
pub use scope::Scope;
pub(crate) use windows::PlannedWindow;

use std::{collections::BTreeMap, ops::Range};

use crate::{
    Bytes, InputRef, OpSequence, Problem, Step, Strategy,
    bound::PeakSet,
    lower::{Lowered, LoweredPlace, LoweringOptions},
    problem::{ChunkId, constraints::Place},
    sequence::{Origin, TensorId},
};

/// Replaces the workspace of bodies in a total with one buffer per chunk: each body has its own buffers.
pub(crate) fn unshared_size(naive_size: Bytes, bodies: &[PlannedBody]) -> Bytes {
    let mut bytes = naive_size;
    for bodies in bodies.chunk_by(|a, b| a.step == b.step) {
        bytes = bytes.saturating_sub(bodies.iter().map(PlannedBody::room).max().unwrap_or(0));
        let apart = bodies.iter().map(|body| body.inputs.saturating_add(body.plan.unshared_size()));
        bytes = apart.fold(bytes, Bytes::saturating_add);
    }
    bytes
}

impl Plan {
    /// The total in bytes with a buffer for each chunk of the graph and of the bodies of its operators.
    #[must_use]
    pub fn unshared_size(&self) -> Bytes {
        unshared_size(self.naive_size, &self.bodies)
    }

    /// Creates the plan of a lowered input with a layout.
    pub(crate) fn new(
        input: InputRef<'_>,
        lowered: &Lowered,
        strategy: Strategy,
        layout: &Layout,
    ) -> Self {
        let plan = Self::of_problem(&lowered.problem, strategy, layout);
        let sequence = input.sequence();
        let tensors = sequence.map(|sequence| planned_tensors(sequence, &lowered.places, layout));
        let dims = sequence.map(|sequence| sequence.dims().clone()).unwrap_or_default();
        let undeclared = sequence.map(OpSequence::undeclared).unwrap_or_default();
        let undeclared = undeclared.into_iter().map(Into::into).collect();
        let is_sorted = sequence.is_some_and(OpSequence::is_sorted);
        let plan =
            Self { tensors: tensors.unwrap_or_default(), dims, undeclared, is_sorted, ..plan };
        plan.without_runs(&lowered.problem, &lowered.runs)
    }

    fn of_problem(problem: &Problem, strategy: Strategy, layout: &Layout) -> Self {
        let labels = &problem.labels;
        let place = |chunk| Place::new(layout.pool(chunk), layout.offset(chunk));
        let chunks = problem
            .ids()
            .map(|id| {
                let chunk = problem.chunk(id);
                PlannedChunk {
                    id: labels.number(id),
                    name: labels.name(id).into(),
                    size: chunk.size,
                    begin: chunk.begin,
                    end: chunk.end,
                    pool: layout.pool(id).index(),
                    offset: layout.offset(id),
                    overwrites: problem.link_in(id, place).map(PlannedLink::of),
                    object: layout.object_of.get(id.index()).copied().flatten(),
                }
            })
            .collect();
        let plan = Self::of_peak_set(problem, chunks, layout.peak_set(problem));
        let lower_bound = plan.lower_bound.max(layout.lower_bound);
        Self {
            strategy: Some(strategy),
            winner: layout.winner,
            lower_bound,
            proven_optimal: layout.is_proven || plan.is_at_bound(lower_bound),
            objects: layout.objects.clone(),
            ..plan
        }
    }

    /// Creates a plan from the places of the chunks alone. They may be wrong, and there may be more
    /// or fewer than in the problem.
    pub(crate) fn of_chunks(problem: &Problem, chunks: Vec<PlannedChunk>) -> Self {
        Self::of_peak_set(problem, chunks, problem.peak_set())
    }

    /// As [`of_chunks`](Self::of_chunks), with this peak set as the lower bound.
    fn of_peak_set(problem: &Problem, chunks: Vec<PlannedChunk>, peak_set: &PeakSet) -> Self {
        let &PeakSet { bytes: lower_bound, step: peak_step, chunks: ref peak } = peak_set;
        let padding = problem.padding();
        let pools = planned_pools(problem, &chunks);
        let pool_size = if problem.is_unconstrained() {
            chunks
                .iter()
                .filter(|chunk| chunk.size > 0 && chunk.overwrites.is_none())
                .map(|root| problem.align_up(root.offset + root.size + padding))
                .max()
                .unwrap_or(0)
        } else {
            pools.iter().map(|pool| pool.size).fold(0, Bytes::saturating_add)
        };
        let plan = Self {
            strategy: None,
            winner: None,
            pool_size,
            lower_bound,
            proven_optimal: false,
            scope: Scope::of(problem.into(), LoweringOptions::default()),
            content_bound: None,
            claimed_bound: None,
            naive_size: problem.naive_size(),
            alignment: problem.alignment(),
            padding: problem.padding(),
            steps: problem.steps(),
            peak_step,
            peak: peak.iter().copied().map(ChunkId::index).collect(),
            chunks,
            tensors: Vec::new(),
            objects: Vec::new(),
            order: Vec::new(),
            bodies: Vec::new(),
            pools,
            parts: Vec::new(),
            windows: Vec::new(),
            pinned: Vec::new(),
            reserved: Vec::new(),
            copies: PlannedCopies::default(),
            traffic: 0,
            dims: BTreeMap::new(),
            undeclared: Vec::new(),
            is_sorted: false,
        };
        let proven_optimal = plan.is_at_bound(lower_bound);
        Self { proven_optimal, ..plan }.with_constraints(problem)
    }

    /// Returns whether a lower bound of the pool's size proves that the plan is optimal. In several
    /// pools, the traffic and the order of the pools matter before the sum of the sizes.
    fn is_at_bound(&self, bound: Bytes) -> bool {
        self.pools.len() < 2 && self.pool_size == bound
    }

    /// Replaces the lower bound by the number of bytes of its problem that are alive at one step, and repeats what the
    /// problem constrains. If the plan states another bound, that becomes the [claimed bound](Plan::claimed_bound),
    /// because only a search could confirm it.
    pub(crate) fn with_counted_bound(self, problem: &Problem) -> Self {
        let &PeakSet { bytes: lower_bound, step: peak_step, chunks: ref peak } = problem.peak_set();
        let counted = Self {
            lower_bound,
            proven_optimal: self.is_at_bound(lower_bound),
            claimed_bound: (self.lower_bound != lower_bound).then_some(self.lower_bound),
            peak_step,
            peak: peak.iter().copied().map(ChunkId::index).collect(),
            ..self
        };
        counted.with_windows(problem)
    }

    /// Replaces the [order](Plan::order) that the plan states, and nothing else. Use it to write a plan for a model
    /// whose file does not list operators in execution order: there, the order refers to positions in the file.
    #[must_use]
    pub fn with_order(self, order: Vec<usize>) -> Self {
        Self { order, ..self }
    }

    /// Finds a tensor by name; searches the list.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&PlannedTensor> {
        self.tensors.iter().find(|tensor| &*tensor.name == name)
    }

    /// The offset of a tensor in the pool in bytes, if it lies there; searches the list.
    #[must_use]
    pub fn offset(&self, name: &str) -> Option<Bytes> {
        match self.tensor(name)?.place {
            TensorPlace::Pool { offset, .. } => Some(offset),
            TensorPlace::Supplied { .. } | TensorPlace::Nowhere => None,
        }
    }

    /// The name of the strategy, or `unknown`.
    #[must_use]
    pub fn strategy_name(&self) -> &'static str {
        self.strategy.map_or("unknown", Strategy::name)
    }

    /// The pool size divided by the lower bound; 1 is optimal.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn ratio(&self) -> f64 {
        match self.lower_bound {
            0 => 1.0,
            bound => self.pool_size as f64 / bound as f64,
        }
    }

    /// The first step in which a chunk does not share its bytes with the chunk that it overwrites. An overwriter begins
    /// in the last step of the overwritten chunk and shares the bytes in that step; it has them alone from the next
    /// step.
    #[must_use]
    pub fn own_begin(&self, chunk: &PlannedChunk) -> Step {
        let overwritten = chunk.overwrites.and_then(|link| self.chunks.get(link.chunk));
        let begin = |old: &PlannedChunk| old.end.min(chunk.begin.saturating_add(1));
        overwritten.map_or(chunk.begin, begin)
    }

    /// The bytes of an overwriter outside the chunk that it overwrites, if it begins below that chunk. They belong to
    /// the overwriter alone one step before [`own_begin`](Self::own_begin).
    pub fn outside(&self, chunk: &PlannedChunk) -> impl Iterator<Item = Range<Bytes>> + use<> {
        let link = chunk.overwrites.filter(|link| link.below > 0);
        let old = link.and_then(|link| self.chunks.get(link.chunk));
        let (low, high) = (chunk.offset, self.end_of(chunk));
        let outside = old.map(|old| [low..high.min(old.offset), low.max(self.end_of(old))..high]);
        outside.into_iter().flatten().filter(|bytes| !bytes.is_empty())
    }

    /// The end of a chunk in the pool in bytes, padding included.
    #[must_use]
    pub fn end_of(&self, chunk: &PlannedChunk) -> Bytes {
        let padding = if chunk.size > 0 { self.padding } else { 0 };
        chunk.offset.saturating_add(chunk.size).saturating_add(padding)
    }

    /// The offset of a chunk of the planned problem, in bytes.
    ///
    /// # Panics
    ///
    /// If the id belongs to another problem with more chunks.
    #[must_use]
    pub fn chunk_offset(&self, chunk: ChunkId) -> Bytes {
        self.chunks[chunk.index()].offset
    }
}

/// Returns the supplied tensors that lie in the pool, followed by the outputs of the operators.
fn planned_tensors(
    sequence: &OpSequence,
    places: &[LoweredPlace],
    layout: &Layout,
) -> Vec<PlannedTensor> {
    let produced = sequence.operators().iter().flat_map(|operator| &operator.outputs);
    let in_pool = |place: &LoweredPlace| matches!(place, LoweredPlace::Chunk { .. });
    let supplied = (0..).map(TensorId).zip(places).filter_map(|(id, place)| {
        let supplied = !matches!(sequence.tensor(id).origin, Origin::Output { .. });
        (supplied && in_pool(place)).then_some(id)
    });
    supplied
        .chain(produced.copied())
        .map(|id| {
            let tensor = sequence.tensor(id);
            let place = match places[id.index()] {
                LoweredPlace::Chunk { chunk, offset } => TensorPlace::Pool {
                    chunk: chunk.index(),
                    offset: layout.offset(chunk) + offset,
                },
                LoweredPlace::Supplied { tensor, offset } => {
                    TensorPlace::Supplied { tensor: sequence.tensor(tensor).name.clone(), offset }
                }
                LoweredPlace::Nowhere => TensorPlace::Nowhere,
            };
            PlannedTensor {
                name: tensor.name.clone(),
                size: tensor.size.unwrap_or(0),
                basis: tensor.basis,
                place,
            }
        })
        .collect()
}
