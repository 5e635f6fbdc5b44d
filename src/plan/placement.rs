//! A plan with its sequence: where an executor finds the memory of each step.

use std::ops::Range;

use crate::{
    Bytes, OpSequence, Plan, PlanError, Step, TensorPlace,
    sequence::{Origin, TensorId},
};

/// The places of a sequence's tensors and workspaces, by [`TensorId`] and by step. Made by
/// [`Plan::placement`]; every query takes O(1), and [`memory`](Self::memory) returns slices.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    pub(super) sequence: &'a OpSequence,
    pub(super) pool_size: Bytes,
    /// The place of each tensor, by [`TensorId`].
    tensors: Vec<RuntimePlace>,
    /// The workspace of each step.
    workspaces: Vec<Option<Range<Bytes>>>,
}

/// The place of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuntimePlace {
    /// In these bytes of the pool.
    Pool(Range<Bytes>),
    /// In the memory of a supplied tensor: its own, or that of the tensor that it is a view of.
    Supplied {
        /// The input or weight.
        tensor: TensorId,
        /// The offset in bytes from its start.
        offset: Bytes,
    },
    /// The tensor has no bytes.
    Nowhere,
}

impl Plan {
    /// Finds every tensor and workspace of the sequence that this is a plan of. Takes O(n); keep
    /// the result for the whole run.
    ///
    /// # Errors
    ///
    /// If the plan has several pools, lacks a tensor or a workspace, or places one with too few bytes or outside the
    /// pool. Overlaps are not checked here but by [`verify`](mod@crate::verify).
    pub fn placement<'a>(&self, sequence: &'a OpSequence) -> Result<Placement<'a>, PlanError> {
        if self.pools.len() > 1 {
            return Err(PlanError::SeveralPools);
        }
        let pool_size = self.pool_size;
        let mut placed: Vec<Option<RuntimePlace>> = vec![None; sequence.tensors().len()];
        let find = |name: &str| {
            let unknown = || PlanError::UnknownTensor { tensor: name.to_owned() };
            sequence.tensor_id(name).ok_or_else(unknown)
        };
        for planned in &self.tensors {
            let id = find(&planned.name)?;
            let size = sequence.tensor(id).size.unwrap_or(planned.size);
            if size != planned.size {
                let (name, found) = (planned.name.to_string(), planned.size);
                return Err(PlanError::SizeDiffers { name, size, found });
            }
            placed[id.index()] = Some(match &planned.place {
                TensorPlace::Pool { offset, .. } => {
                    RuntimePlace::Pool(in_pool(pool_size, *offset, size, || {
                        planned.name.to_string()
                    })?)
                }
                TensorPlace::Supplied { tensor, offset } => {
                    RuntimePlace::Supplied { tensor: find(tensor)?, offset: *offset }
                }
                TensorPlace::Nowhere => RuntimePlace::Nowhere,
            });
        }
        let mut tensors = Vec::with_capacity(placed.len());
        for (at, (tensor, place)) in sequence.tensors().iter().zip(placed).enumerate() {
            let size = tensor.size.unwrap_or(0);
            let produced = matches!(tensor.origin, Origin::Output { .. });
            tensors.push(match place {
                None | Some(RuntimePlace::Nowhere) if produced && size > 0 => {
                    let name = tensor.name.to_string();
                    return Err(PlanError::SizeDiffers { name, size, found: 0 });
                }
                None if produced => RuntimePlace::Nowhere,
                None => RuntimePlace::Supplied { tensor: TensorId::from_index(at), offset: 0 },
                Some(place) => place,
            });
        }
        let workspaces = self.workspace_ranges(sequence)?;
        Ok(Placement { sequence, pool_size, tensors, workspaces })
    }

    fn workspace_ranges(
        &self,
        sequence: &OpSequence,
    ) -> Result<Vec<Option<Range<Bytes>>>, PlanError> {
        let mut needed: Vec<Bytes> = vec![0; sequence.operators().len()];
        for body in &self.bodies {
            let step = usize::try_from(body.step).ok().and_then(|step| needed.get_mut(step));
            if let Some(room) = step {
                *room = body.room().max(*room);
            }
        }
        for (room, operator) in needed.iter_mut().zip(sequence.operators()) {
            *room = room.saturating_add(operator.workspace);
        }
        needed
            .into_iter()
            .zip(self.workspaces(sequence))
            .enumerate()
            .map(|(step, (size, at))| {
                let name = || format!("the workspace of {}", sequence.operator_name(step));
                let chunk = at.map(|at| &self.chunks[at]);
                match chunk {
                    _ if size == 0 => Ok(None),
                    Some(chunk) if chunk.size >= size => {
                        in_pool(self.pool_size, chunk.offset, size, name).map(Some)
                    }
                    _ => {
                        let found = chunk.map_or(0, |chunk| chunk.size);
                        Err(PlanError::SizeDiffers { name: name(), size, found })
                    }
                }
            })
            .collect()
    }

    /// The workspaces of the operators of a sequence that this is a plan of, by their places in
    /// [`Plan::chunks`]; `None` for an operator that needs none. A workspace holds the largest of the operator's
    /// [bodies](crate::PlannedBody), and after it the bytes that the operator requests for itself.
    #[must_use]
    pub fn workspaces(&self, sequence: &OpSequence) -> Vec<Option<usize>> {
        let mut holds_tensor = vec![false; self.chunks.len()];
        for tensor in &self.tensors {
            if let TensorPlace::Pool { chunk, .. } = tensor.place
                && let Some(holds) = holds_tensor.get_mut(chunk)
            {
                *holds = true;
            }
        }
        let mut workspaces = vec![None; sequence.operators().len()];
        for (at, chunk) in self.chunks.iter().enumerate().filter(|&(at, _)| !holds_tensor[at]) {
            let step = usize::try_from(chunk.begin).ok().and_then(|step| workspaces.get_mut(step));
            if let Some(step) = step {
                *step = Some(at);
            }
        }
        workspaces
    }

    /// The chunk of a step's workspace. This searches the plan; a [`placement`](Self::placement)
    /// finds the workspace in O(1).
    #[must_use]
    pub fn workspace(&self, step: Step) -> Option<&crate::PlannedChunk> {
        let holds = |at: usize| {
            let in_it = |place: &TensorPlace| matches!(place, TensorPlace::Pool { chunk, .. } if *chunk == at);
            self.tensors.iter().any(|tensor| in_it(&tensor.place))
        };
        let mut chunks = self.chunks.iter().enumerate();
        let found = chunks.find(|&(at, chunk)| chunk.begin == step && !holds(at));
        found.map(|(_, chunk)| chunk).filter(|_| !self.tensors.is_empty())
    }
}

fn in_pool(
    pool_size: Bytes,
    offset: Bytes,
    size: Bytes,
    name: impl Fn() -> String,
) -> Result<Range<Bytes>, PlanError> {
    match offset.checked_add(size).filter(|&end| end <= pool_size) {
        Some(end) => Ok(offset..end),
        None => Err(PlanError::OutsideThePool { name: name(), pool_size }),
    }
}

impl Placement<'_> {
    pub(super) fn tensor(&self, id: TensorId) -> &RuntimePlace {
        &self.tensors[id.index()]
    }

    /// The range of bytes in the pool that a tensor of the sequence takes; `None` if it lies outside the pool or has no
    /// bytes.
    ///
    /// # Panics
    ///
    /// If the id belongs to another sequence with more tensors.
    #[must_use]
    pub fn bytes(&self, id: TensorId) -> Option<Range<Bytes>> {
        match self.tensor(id) {
            RuntimePlace::Pool(bytes) => Some(bytes.clone()),
            RuntimePlace::Supplied { .. } | RuntimePlace::Nowhere => None,
        }
    }

    /// The input or weight in whose memory a tensor lies, and the offset from its start in bytes: the tensor itself, or
    /// the one that it is a view of. `None` if the tensor lies in the pool or has no bytes.
    ///
    /// # Panics
    ///
    /// If the id belongs to another sequence with more tensors.
    #[must_use]
    pub fn supplied(&self, id: TensorId) -> Option<(TensorId, Bytes)> {
        match *self.tensor(id) {
            RuntimePlace::Supplied { tensor, offset } => Some((tensor, offset)),
            RuntimePlace::Pool(_) | RuntimePlace::Nowhere => None,
        }
    }

    /// The range of bytes in the pool that is the workspace of a step; `None` if the step needs none.
    #[must_use]
    pub fn workspace(&self, step: usize) -> Option<Range<Bytes>> {
        self.workspaces.get(step).cloned().flatten()
    }
}
