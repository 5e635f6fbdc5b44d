//! The buffers in the arena of a runtime, as its own planner sees them. This module finds those in
//! the head of TensorFlow Lite Micro's arena.

use std::collections::HashSet;

use crate::{
    Bytes, Step,
    baselines::tflite::{Record, RecordError, Records, cpu_arena, micro},
    import::{
        ImportOptions,
        tflite::{
            Runtime, TfliteError,
            model::{Model, OperatorAt, Tensor, tensor_place, wrong},
            ops::{self, Op},
            tail::Tail,
            walk::Event,
        },
    },
};

/// The buffers that a runtime places in its arena, in the order in which its planner gets them: tensors, then
/// scratch buffers. In TensorFlow Lite Micro they fill the head of the arena, which all subgraphs share; in
/// the interpreter these are the buffers of subgraph 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arena {
    /// The runtime.
    pub runtime: Runtime,
    /// The buffers.
    pub buffers: Vec<ArenaBuffer>,
    /// The number of tensors of all subgraphs, constants included: the length of an offline plan.
    pub tensors: usize,
    /// The number of subgraphs.
    pub subgraphs: usize,
    /// The bytes of the variables, which lie elsewhere: in the tail, or in the interpreter's second
    /// arena.
    pub variables: Bytes,
    /// The bytes of the tail of TensorFlow Lite Micro's arena in the release [`TAIL_RELEASE`]; `None` if it
    /// is not known: for other kernels and custom operators, and for the interpreter.
    ///
    /// [`TAIL_RELEASE`]: crate::import::tflite::TAIL_RELEASE
    pub tail: Option<Bytes>,
    /// The allocations of the model in the tail.
    pub(super) in_tail: Option<Tail>,
    /// For the interpreter, the bytes of constants that it widens once and keeps in its second arena.
    pub persistent: Bytes,
    /// For the interpreter, the bytes of tensors that lie on the heap, because their sizes are known only when
    /// their operators run, or because they are shapes.
    pub heap: Bytes,
    /// For the interpreter, the steps behind which it plans the rest of the arena anew, in a run: those of
    /// operators whose shapes it finds there.
    pub stops: Vec<Step>,
    /// The bytes of the arenas of called subgraphs, which the interpreter keeps apart.
    pub called: Bytes,
    /// The operators whose scratch memory is unknown, with their kinds. It counts as 0 bytes.
    pub unknown_scratch: Vec<String>,
}

/// A buffer in the arena.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaBuffer {
    /// The name of the tensor or scratch buffer in the operator sequence.
    pub name: Box<str>,
    /// Its place among the tensors of all subgraphs; `None` for scratch memory.
    pub tensor: Option<usize>,
    /// Its size in bytes; 0 for a scratch buffer that a kernel requests but does not need.
    pub size: Bytes,
    /// The first step of its lifetime. Step 0 belongs to unused tensors; the inputs of the model are live
    /// from step 1.
    pub first: Step,
    /// The last step of its lifetime.
    pub last: Step,
    /// The index of the buffer in whose memory the interpreter puts it; `None` if it has memory of
    /// its own.
    pub shares: Option<usize>,
    /// The operator that uses it as scratch memory.
    pub(super) operator: Option<OperatorAt>,
}

/// The steps from the first use to the last.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    first: Option<Step>,
    last: Step,
}

impl Life {
    fn begin(&mut self, step: Step) {
        self.first.get_or_insert(step);
        self.last = self.last.max(step);
    }

    fn reach(&mut self, step: Step) {
        self.last = self.last.max(step);
    }
}

/// The scratch buffers of every operator in bytes, by subgraph and place.
pub(super) struct Scratch {
    sizes: Vec<Vec<Vec<Bytes>>>,
    unknown: Vec<String>,
}

impl Scratch {
    pub(super) fn of(model: &Model, options: &ImportOptions) -> Result<Self, TfliteError> {
        check_stated(model, options)?;
        let mut unknown = Vec::new();
        let mut sizes = Vec::new();
        for (subgraph, of) in model.subgraphs.iter().enumerate() {
            let mut here = Vec::with_capacity(of.operators.len());
            for operator in 0..of.operators.len() {
                let at = OperatorAt { subgraph, operator };
                let op = Op::new(model, at);
                let kind = model.kind(op.operator);
                let stated = options.scratch.of(kind, subgraph, operator);
                here.push(match (stated, ops::find(&op)) {
                    (Some(stated), _) => stated.iter().copied().filter(|&size| size > 0).collect(),
                    // The interpreter has other kernels.
                    (None, _) if options.runtime == Runtime::Interpreter => Vec::new(),
                    (None, Some(row)) => {
                        row.scratch_of(&op, options.library, options.pointer_size.unwrap_or(4))?
                    }
                    (None, None) => {
                        if model.is_custom(op.operator) || kind.starts_with("BUILTIN_") {
                            unknown.push(format!("{} ({kind})", at.written()));
                        }
                        Vec::new()
                    }
                });
            }
            sizes.push(here);
        }
        Ok(Self { sizes, unknown })
    }

    pub(super) fn at(&self, at: OperatorAt) -> &[Bytes] {
        &self.sizes[at.subgraph][at.operator]
    }
}

/// Checks that every operator that a file of scratch sizes names exists.
fn check_stated(model: &Model, options: &ImportOptions) -> Result<(), TfliteError> {
    for (subgraph, operator) in options.scratch.places() {
        let of = model.subgraphs.get(subgraph).map_or(0, |subgraph| subgraph.operators.len());
        if operator >= of {
            let place = format!("subgraph {subgraph}, operator {operator}");
            let reason = "sizes of scratch memory are given for it, but it does not exist";
            return Err(wrong(place, reason));
        }
    }
    let kinds: HashSet<&str> = model
        .subgraphs
        .iter()
        .flat_map(|subgraph| &subgraph.operators)
        .map(|operator| model.kind(operator))
        .collect();
    match options.scratch.kinds().find(|kind| !kinds.contains(kind)) {
        Some(kind) => {
            let reason =
                "sizes of scratch memory are given for it, but no operator is of this kind";
            Err(wrong(format!("kind '{kind}'"), reason))
        }
        None => Ok(()),
    }
}

/// The names of all tensors and scratch buffers, each used once.
pub(super) struct Names {
    used: HashSet<Box<str>>,
    tensors: Vec<Box<str>>,
}

impl Names {
    pub(super) fn of(model: &Model) -> Self {
        let mut names = Self { used: HashSet::new(), tensors: Vec::new() };
        for (subgraph, at, tensor) in model.tensors() {
            let own = match (subgraph, &*tensor.name) {
                (0, "") => format!("tensor {at}"),
                (0, name) => name.to_owned(),
                (_, "") => format!("{subgraph}: tensor {at}"),
                (_, name) => format!("{subgraph}: {name}"),
            };
            let name = names.unique(own, at);
            names.tensors.push(name);
        }
        names
    }

    /// Returns a name that is not used yet: this one, or this one followed by a number.
    fn unique(&mut self, mut name: String, number: usize) -> Box<str> {
        while self.used.contains(&*name) {
            name = format!("{name} #{number}");
        }
        let name: Box<str> = name.into();
        self.used.insert(name.clone());
        name
    }

    /// The name of a tensor, by its place among those of all subgraphs.
    pub(super) fn tensor(&self, tensor: usize) -> &str {
        &self.tensors[tensor]
    }

    pub(super) fn scratch(&mut self, operator: &str, index: usize) -> Box<str> {
        self.unique(format!("{operator} scratch {index}"), index)
    }
}

impl Arena {
    /// Returns the bytes that the buffers take when the runtime's own planner places them.
    ///
    /// # Errors
    ///
    /// If the sum of the sizes exceeds 64 bits, or a tensor is read before it is made.
    pub fn own_size(&self) -> Result<Bytes, RecordError> {
        let alignment = self.runtime.alignment();
        let records = |from: Step| {
            let owners = self.buffers.iter().filter(|buffer| buffer.shares.is_none());
            let record = |buffer: &ArenaBuffer| Record {
                size: buffer.size,
                first: buffer.first - from,
                last: buffer.last - from,
            };
            Records::new(owners.map(record).collect())
        };
        let placed = match self.runtime {
            Runtime::Micro => micro::offsets(&records(0)?, alignment)?,
            Runtime::Interpreter => {
                let last = self.buffers.iter().map(|buffer| buffer.last).max().unwrap_or(1);
                let owners = self.buffers.iter().filter(|buffer| buffer.shares.is_none());
                let stage = |first: Step| self.stops.partition_point(|&stop| stop < first);
                let stages: Vec<usize> = owners.map(|buffer| stage(buffer.first)).collect();
                cpu_arena::offsets_in_stages(&records(1)?, &stages, last - 1, alignment)?
            }
        };
        let overflow = RecordError::SizeOverflow { record: 0 };
        placed.total.checked_next_multiple_of(alignment).ok_or(overflow)
    }

    /// Returns the bytes of the tail if several models share one arena, as interpreters with one
    /// `MicroAllocator` do: the allocator's structures once, and below them what each model allocates. The
    /// models are loaded in this order. `None` if the tail of one of them is not known.
    #[must_use]
    pub fn shared_tail(arenas: &[&Self]) -> Option<Bytes> {
        let tails: Option<Vec<&Tail>> = arenas.iter().map(|arena| arena.in_tail.as_ref()).collect();
        tails.map(Tail::size)
    }

    /// Sets the allocations of the model in the tail.
    pub(super) fn set_tail(&mut self, tail: Option<Tail>) {
        self.tail = tail.as_ref().map(|tail| Tail::size([tail]));
        self.in_tail = tail;
    }

    pub(super) fn of(
        model: &Model,
        events: &[Event],
        scratch: &Scratch,
        names: &mut Names,
    ) -> Result<Self, TfliteError> {
        let (lives, spans) = lives(model, events);
        let mut buffers = Vec::new();
        for ((index, (subgraph, at, tensor)), life) in model.tensors().enumerate().zip(&lives) {
            if !tensor.is_planned() {
                continue;
            }
            let size = planned_size(subgraph, at, tensor)?;
            let Life { first, last } = *life;
            let name = names.tensor(index).into();
            let first = first.unwrap_or(0);
            let tensor = Some(index);
            let (shares, operator) = (None, None);
            buffers.push(ArenaBuffer { name, tensor, size, first, last, shares, operator });
        }
        for (subgraph, of) in model.subgraphs.iter().enumerate() {
            for (operator, kind) in of.operators.iter().map(|of| model.kind(of)).enumerate() {
                let at = OperatorAt { subgraph, operator };
                let Life { first, last } = spans[subgraph][operator];
                let Some(first) = first else {
                    if scratch.at(at).is_empty() {
                        continue;
                    }
                    // The runtime then reserves it for steps that it never sets.
                    let reason = "it needs scratch memory, but no operator calls its subgraph";
                    return Err(wrong(model.operator_place(at), reason));
                };
                for (index, &size) in scratch.at(at).iter().enumerate() {
                    let name = names.scratch(&step_name(kind, at), index);
                    let (tensor, shares, operator) = (None, None, Some(at));
                    buffers.push(ArenaBuffer { name, tensor, size, first, last, shares, operator });
                }
            }
        }
        let variables = model.tensors().filter(|(.., tensor)| tensor.is_variable);
        let variables = variables.map(|(.., tensor)| tensor.bytes.unwrap_or(0));
        Ok(Self {
            runtime: Runtime::Micro,
            buffers,
            tensors: model.tensor_count(),
            subgraphs: model.subgraphs.len(),
            variables: variables.fold(0, Bytes::saturating_add),
            tail: None,
            in_tail: None,
            persistent: 0,
            heap: 0,
            stops: Vec::new(),
            called: 0,
            unknown_scratch: scratch.unknown.clone(),
        })
    }
}

/// The bytes of a tensor that the runtime places.
pub(super) fn planned_size(
    subgraph: usize,
    at: usize,
    tensor: &Tensor,
) -> Result<Bytes, TfliteError> {
    tensor.bytes.ok_or_else(|| TfliteError::Unsupported {
        place: tensor_place(subgraph, at, &tensor.name),
        what: format!("its elements, {}, have no size in bytes", tensor.element.name()),
        remedy: "memplan plans tensors of numbers; remove strings from the model",
    })
}

/// The name of an operator's step.
pub(super) fn step_name(kind: &str, at: OperatorAt) -> String {
    format!("{kind} {}", at.written())
}

/// The lifetimes of all tensors, and the steps of all operators by subgraph and place.
fn lives(model: &Model, events: &[Event]) -> (Vec<Life>, Vec<Vec<Life>>) {
    let mut tensors = vec![Life::default(); model.tensor_count()];
    let mut spans: Vec<Vec<Life>> = model
        .subgraphs
        .iter()
        .map(|subgraph| vec![Life::default(); subgraph.operators.len()])
        .collect();
    let mut step: Step = 0;
    for event in events {
        match *event {
            Event::Enter(call) => {
                step += 1;
                let subgraph = &model.subgraphs[call.subgraph];
                for &input in &subgraph.inputs {
                    tensors[subgraph.first_tensor + input].begin(step);
                }
            }
            Event::Operator(at) => {
                step += 1;
                spans[at.subgraph][at.operator].begin(step);
                let first = model.subgraphs[at.subgraph].first_tensor;
                for &output in &model.operator(at).outputs {
                    tensors[first + output].begin(step);
                }
                for &input in model.operator(at).inputs.iter().flatten() {
                    tensors[first + input].reach(step);
                }
            }
            Event::Leave(call) => {
                let subgraph = &model.subgraphs[call.subgraph];
                for &output in &subgraph.outputs {
                    tensors[subgraph.first_tensor + output].begin(step);
                }
                let Some(at) = call.caller.filter(|_| call.is_last) else { continue };
                spans[at.subgraph][at.operator].reach(step);
                let first = model.subgraphs[at.subgraph].first_tensor;
                let operator = model.operator(at);
                for &tensor in operator.inputs.iter().flatten().chain(&operator.outputs) {
                    tensors[first + tensor].reach(step);
                }
            }
        }
    }
    (tensors, spans)
}
