//! Pools and pins that the caller gives to the planner, for an input that lists none itself.

use crate::{
    Bytes, InputRef, OpSequence, PlanError, Problem,
    lower::{Lowered, LoweredPlace},
    problem::{
        ChunkId,
        constraints::{Pool, PoolId},
    },
    sequence::TensorId,
    sets::distinct,
};

/// The memories of a device, and what must lie where.
#[derive(Clone, Debug, Default)]
pub(super) struct Memories {
    pub(super) pools: Vec<Pool>,
    pub(super) pins: Vec<Pin>,
}

/// A tensor or chunk with a fixed place.
#[derive(Clone, Debug)]
pub(super) struct Pin {
    pub(super) name: Box<str>,
    /// Its pool; may be empty if there is one.
    pub(super) pool: Box<str>,
    pub(super) offset: Bytes,
}

impl Memories {
    /// Adds the constraints to a lowered input.
    pub(super) fn constrain(
        &self,
        input: InputRef<'_>,
        lowered: Lowered,
    ) -> Result<Lowered, PlanError> {
        let Self { pools, pins } = self;
        if pools.is_empty() && pins.is_empty() {
            return Ok(lowered);
        }
        let Lowered { problem, places, refused, runs, copied } = lowered;
        if problem.all_constraints().has_pools && !pools.is_empty() {
            return Err(PlanError::PoolsTwice);
        }
        if let Some(pool) = pools.iter().find(|pool| pool.alignment > 1)
            && input.sequence().is_some()
        {
            return Err(PlanError::PoolOfProblem { pool: pool.name.to_string() });
        }
        let listed = if pools.is_empty() {
            problem.constraints().map_or(Vec::new(), |constraints| constraints.pools.clone())
        } else {
            pools.clone()
        };
        let pinned = pins.iter().map(|pin| {
            let (chunk, at) = find(&pin.name, input, &problem, &places)?;
            let pool = match &*pin.pool {
                "" if listed.len() < 2 => Some(0),
                name => listed.iter().position(|pool| &*pool.name == name),
            };
            let names = || match &*listed {
                [] => "not listed".to_owned(),
                listed => listed.iter().map(|pool| &*pool.name).collect::<Vec<_>>().join(", "),
            };
            let unknown = || PlanError::UnknownPool { pool: pin.pool.to_string(), pools: names() };
            let pool = PoolId::from_index(pool.ok_or_else(unknown)?);
            let below = || PlanError::PinBelow { name: pin.name.to_string(), offset: at };
            Ok((chunk, pool, pin.offset.checked_sub(at).ok_or_else(below)?))
        });
        let pinned = pinned.collect::<Result<Vec<_>, PlanError>>()?;
        let is_pinned = |chunk: ChunkId| problem.all_constraints().of(chunk).pin.is_some();
        if let Some((chunk, ..)) = pinned.iter().find(|(chunk, ..)| is_pinned(*chunk)) {
            return Err(PlanError::PinnedTwice { name: problem.name(*chunk) });
        }
        if let Some(pair) = distinct(pinned.clone()).windows(2).find(|pair| pair[0].0 == pair[1].0)
        {
            return Err(PlanError::PinsDiffer { name: problem.name(pair[0].0) });
        }
        let traffic = input.sequence().map(|sequence| traffic(sequence, &places, problem.len()));
        let mut builder = problem.into_builder();
        if !pools.is_empty() {
            builder.pools(pools.clone());
        }
        for (chunk, bytes) in traffic.into_iter().flatten().enumerate() {
            builder.traffic(ChunkId::from_index(chunk), bytes);
        }
        for (chunk, pool, offset) in pinned {
            builder.pin(chunk, pool, offset);
        }
        Ok(Lowered { problem: builder.finish()?, places, refused, runs, copied })
    }
}

/// Finds a tensor, or a chunk of a problem, and its place in its chunk.
fn find(
    name: &str,
    input: InputRef<'_>,
    problem: &Problem,
    places: &[LoweredPlace],
) -> Result<(ChunkId, Bytes), PlanError> {
    let unknown = || PlanError::UnknownName { name: name.to_owned() };
    let Some(sequence) = input.sequence() else {
        let mut chunks = problem.ids().filter(|&chunk| problem.name(chunk) == name);
        let chunk = chunks.next().ok_or_else(unknown)?;
        let is_only = chunks.next().is_none();
        let shared = || PlanError::SharedName { name: name.to_owned() };
        return is_only.then_some((chunk, 0)).ok_or_else(shared);
    };
    let place = places[sequence.tensor_id(name).ok_or_else(unknown)?.index()];
    place.chunk().ok_or_else(|| PlanError::NotInPool { name: name.to_owned() })
}

/// The bytes that operators write to and read from each chunk: a tensor counts once when it is written,
/// unless it is a view, and once for each operator that reads it.
fn traffic(sequence: &OpSequence, places: &[LoweredPlace], chunks: usize) -> Vec<Bytes> {
    let mut bytes: Vec<Bytes> = vec![0; chunks];
    let mut add = |tensor: TensorId| {
        if let Some((chunk, _)) = places[tensor.index()].chunk() {
            let sum = &mut bytes[chunk.index()];
            *sum = sum.saturating_add(sequence.tensor(tensor).size.unwrap_or(0));
        }
    };
    for operator in sequence.operators() {
        distinct(operator.inputs.iter().copied()).into_iter().for_each(&mut add);
        for &output in &operator.outputs {
            if !is_view(sequence, places, output) {
                add(output);
            }
        }
    }
    bytes
}

/// Returns whether an output lies where the input lies that it is a view of, so that nothing is written.
fn is_view(sequence: &OpSequence, places: &[LoweredPlace], output: TensorId) -> bool {
    let Some((input, _)) = sequence.tensor(output).viewed() else { return false };
    let chunk = |tensor: TensorId| Some(places[tensor.index()].chunk()?.0);
    chunk(output) == chunk(input)
}
