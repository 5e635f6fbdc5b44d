//! The first pass: a place in a chunk for every tensor (the book, Lowering).

use crate::{
    Bytes, SequenceError, Step,
    lower::{LoweringOptions, bytes::SplitChunks},
    problem::ChunkId,
    sequence::{Dependency, OpSequence, Origin, Tensor, TensorId},
};

/// A chunk while it is lowered.
#[derive(Clone, Debug)]
pub(super) struct DraftChunk {
    pub(super) size: Bytes,
    /// Lifetimes are empty, `begin == end`, until the walk over the steps.
    pub(super) begin: Step,
    pub(super) end: Step,
    /// The supplied tensor whose memory this is, if it lies outside the pool.
    pub(super) outside: Option<TensorId>,
    /// True if a graph output lies in it.
    pub(super) output: bool,
    /// The state of a variable that it holds.
    pub(super) variable: Variable,
    pub(super) source: Source,
}

/// The state of a variable in a chunk, which outlives the sequence. A required update moves the
/// state of the bytes that it writes to the overwriter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    No,
    /// In the pool: it must survive to the end.
    Pool,
    /// In the caller's memory.
    Outside,
}

impl DraftChunk {
    /// Returns whether its content must survive to the end of the sequence.
    pub(super) fn kept(&self) -> bool {
        self.output || self.variable == Variable::Pool
    }

    /// The tensor that it was made for.
    pub(super) fn tensor(&self) -> Option<TensorId> {
        match self.source {
            Source::Tensor(tensor) => Some(tensor),
            Source::Workspace(_) | Source::Run { .. } => None,
        }
    }

    /// Returns whether its runs may have lifetimes of their own. The state of a variable in the pool survives as a
    /// whole.
    pub(super) fn can_be_split(&self) -> bool {
        self.tensor().is_some() && self.variable != Variable::Pool && self.size < Bytes::MAX
    }
}

/// The tensor, the operator's workspace or the run of bytes that a chunk was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Tensor(TensorId),
    Workspace(usize),
    /// Bytes of the chunk of a tensor.
    Run {
        tensor: TensorId,
        low: Bytes,
        high: Bytes,
    },
}

/// The chunks made so far, and the places of tensors in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) chunks: Vec<DraftChunk>,
    /// The chunk of each tensor and the offset in it; `None` for tensors without bytes.
    pub(super) tensors: Vec<Option<(ChunkId, Bytes)>>,
    /// The chunk of each operator's workspace.
    pub(super) workspaces: Vec<Option<ChunkId>>,
    /// The chunks that consist of runs.
    pub(super) runs: SplitChunks,
}

impl Places {
    fn add(&mut self, size: Bytes, outside: Option<TensorId>, source: Source) -> ChunkId {
        let id = ChunkId::from_index(self.chunks.len());
        self.chunks.push(DraftChunk {
            size,
            begin: 0,
            end: 0,
            outside,
            output: false,
            variable: Variable::No,
            source,
        });
        id
    }

    /// Moves the state of a variable to the chunk of a required update. In the pool it must cover
    /// the whole variable, because the rest of an overwritten chunk is freed.
    fn move_state(&mut self, overwriter: ChunkId, origin: &Origin) {
        let Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } = origin else {
            return;
        };
        for overwrite in overwrites.iter().filter(|overwrite| overwrite.required) {
            let Some((overwritten, _)) = self.tensors[overwrite.input.index()] else {
                continue;
            };
            let old = &mut self.chunks[overwritten.index()];
            let (variable, whole) = (old.variable, old.size);
            let new = &mut self.chunks[overwriter.index()];
            let is_whole = new.size == whole;
            if variable == Variable::Outside || is_whole {
                new.variable = variable;
            }
            if is_whole {
                self.chunks[overwritten.index()].variable = Variable::No;
            }
        }
    }

    /// Returns whether a view lies in the chunk of its input.
    pub(super) fn is_view(&self, view: TensorId, input: TensorId) -> bool {
        let [view, input] = [view, input].map(|tensor| self.tensors[tensor.index()]);
        view.zip(input).is_some_and(|((a, _), (b, _))| a == b)
    }

    /// The names of the chunks: those of their tensors and workspaces.
    pub(super) fn names(&self, sequence: &OpSequence) -> Vec<Box<str>> {
        let mut workspaces = sequence.workspace_names();
        let sources = self.chunks.iter().map(|chunk| chunk.source);
        sources
            .map(|source| match source {
                Source::Tensor(tensor) => sequence.tensor(tensor).name.clone(),
                Source::Run { tensor, low, high } => {
                    format!("{}[{low}..{high}]", sequence.tensor(tensor).name).into()
                }
                Source::Workspace(step) => workspaces[step].take().unwrap_or_default(),
            })
            .collect()
    }
}

/// Walks over the operators in order: supplied tensors first, then each operator's outputs, then
/// its workspace.
pub(super) fn place(
    sequence: &OpSequence,
    options: LoweringOptions,
) -> Result<Places, SequenceError> {
    let mut places = Places { tensors: vec![None; sequence.tensors().len()], ..Places::default() };
    for (index, tensor) in sequence.tensors().iter().enumerate() {
        place_supplied(&mut places, TensorId::from_index(index), tensor, options)?;
    }
    let is_updated = if options.views { Vec::new() } else { views_with_updates(sequence) };
    let is_kept = |view: TensorId| options.views || is_updated[view.index()];
    for (step, operator) in sequence.operators().iter().enumerate() {
        if !operator.bodies.is_empty() {
            let operator = sequence.operator_name(step);
            return Err(SequenceError::BodyNotPlanned { operator });
        }
        for &output in &operator.outputs {
            let tensor = sequence.tensor(output);
            let size = tensor.size.unwrap_or(0);
            let viewed = match &tensor.origin {
                Origin::Output {
                    dependency: Dependency::Reads { input, offset, required },
                    ..
                } if *required || is_kept(output) => {
                    places.tensors[input.index()].map(|(chunk, base)| (chunk, base + offset))
                }
                _ => None,
            };
            places.tensors[output.index()] = match (size, viewed) {
                (0, _) => None,
                (_, Some(place)) => Some(place),
                (_, None) => {
                    let chunk = places.add(size, None, Source::Tensor(output));
                    places.move_state(chunk, &tensor.origin);
                    Some((chunk, 0))
                }
            };
        }
        let workspace = (operator.workspace > 0)
            .then(|| places.add(operator.workspace, None, Source::Workspace(step)));
        places.workspaces.push(workspace);
    }
    for &output in sequence.outputs() {
        if let Some((chunk, _)) = places.tensors[output.index()] {
            places.chunks[chunk.index()].output = true;
        }
    }
    Ok(places)
}

/// By tensor: true for a view between a required update and the tensor whose memory it updates. If such a view were a
/// copy, the copy would be updated instead of the tensor.
pub(super) fn views_with_updates(sequence: &OpSequence) -> Vec<bool> {
    let mut is_updated = vec![false; sequence.tensors().len()];
    for tensor in sequence.updates_of_bodies() {
        is_updated[tensor.index()] = true;
    }
    let operators = sequence.operators().iter().rev();
    for &output in operators.flat_map(|operator| operator.outputs.iter().rev()) {
        let tensor = sequence.tensor(output);
        let Origin::Output { dependency, .. } = &tensor.origin else { continue };
        match dependency {
            // A view of this one may be updated; then it stays a view as well.
            Dependency::Reads { input, .. } if is_updated[output.index()] => {
                is_updated[input.index()] = true;
            }
            Dependency::Overwrites(overwrites) if tensor.size != Some(0) => {
                for overwrite in overwrites.iter().filter(|overwrite| overwrite.required) {
                    is_updated[overwrite.input.index()] = true;
                }
            }
            _ => {}
        }
    }
    is_updated
}

/// Makes chunks for inputs and weights. Most lie outside the pool, and so do their views and
/// overwriters.
fn place_supplied(
    places: &mut Places,
    id: TensorId,
    tensor: &Tensor,
    options: LoweringOptions,
) -> Result<(), SequenceError> {
    let in_pool = match tensor.origin {
        Origin::Input => options.inputs_in_pool,
        Origin::Weight => options.weights_in_pool,
        Origin::Output { .. } => return Ok(()),
    };
    let size = match tensor.size {
        Some(0) => return Ok(()),
        Some(size) => size,
        None if in_pool => {
            return Err(SequenceError::WeightWithoutSize { tensor: tensor.name.to_string() });
        }
        // A chunk of unknown size outside the pool is large enough for any view.
        None => Bytes::MAX,
    };
    let chunk = places.add(size, (!in_pool).then_some(id), Source::Tensor(id));
    places.chunks[chunk.index()].variable = match tensor.origin {
        _ if !in_pool => Variable::Outside,
        Origin::Weight => Variable::Pool,
        Origin::Input | Origin::Output { .. } => Variable::No,
    };
    places.tensors[id.index()] = Some((chunk, 0));
    Ok(())
}
