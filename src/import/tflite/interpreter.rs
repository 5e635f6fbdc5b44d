//! The arena of TensorFlow Lite's interpreter, by the rules of its own planner: which outputs share
//! the memory of an input, and how long each tensor lives.
//!
//! Source: TensorFlow Lite, `arena_planner` (2017 to 2026). Each subgraph has an arena of its own.

use std::collections::BTreeSet;

use crate::{
    Bytes, Step,
    import::tflite::{
        Runtime, TfliteError,
        arena::{Arena, ArenaBuffer, Names, Scratch, planned_size, step_name},
        model::{Apart, Model, OperatorAt, Subgraph, wrong},
        walk::Event,
    },
};

/// The input whose memory an output takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) input: usize,
    /// The first tensor in that memory.
    root: usize,
    /// True if the output is a view: it has the bytes of the input.
    pub(super) is_view: bool,
}

/// The rules of the interpreter for a kernel that may share memory.
struct Kernel {
    kind: &'static str,
    /// The number of leading inputs that may be shared.
    inputs: usize,
    is_view: bool,
}

impl Kernel {
    const fn over(kind: &'static str, inputs: usize) -> Self {
        Self { kind, inputs, is_view: false }
    }

    const fn view(kind: &'static str) -> Self {
        Self { kind, inputs: 1, is_view: true }
    }
}

const KERNELS: &[Kernel] = &[
    Kernel::over("ADD", 2),
    Kernel::over("DIV", 2),
    Kernel::over("DYNAMIC_UPDATE_SLICE", 1),
    Kernel::over("MUL", 2),
    Kernel::over("SOFTMAX", 1),
    Kernel::over("SUB", 2),
    Kernel::view("BITCAST"),
    Kernel::view("EXPAND_DIMS"),
    Kernel::view("RESHAPE"),
    Kernel::view("SQUEEZE"),
];

/// An output of at most this many bytes is never written over an input.
const SCALAR: Bytes = 4;

/// The tensors of a subgraph that take the memory of another one, by place.
pub(super) fn shares(model: &Model, subgraph: &Subgraph) -> Vec<Option<Share>> {
    let mut shares: Vec<Option<Share>> = vec![None; subgraph.tensors.len()];
    let uses = uses(subgraph);
    let kept = |tensors: &[usize]| tensors.iter().copied().collect::<BTreeSet<usize>>();
    let (inputs, outputs) = (kept(&subgraph.inputs), kept(&subgraph.outputs));
    for operator in &subgraph.operators {
        let kind = model.kind(operator);
        let kernel = KERNELS.iter().find(|kernel| kernel.kind == kind);
        let kernel = kernel.filter(|_| !model.is_custom(operator));
        let (Some(kernel), Some(&output)) = (kernel, operator.outputs.first()) else { continue };
        let made = &subgraph.tensors[output];
        let fits = |input: usize| {
            let read = &subgraph.tensors[input];
            let is_last = uses[input] <= 1 && made.bytes > Some(SCALAR);
            read.is_planned()
                && made.is_planned()
                && read.bytes == made.bytes
                && (kernel.is_view || is_last)
                && !inputs.contains(&input)
                && !outputs.contains(&output)
        };
        let mut candidates = operator.inputs.iter().take(kernel.inputs).flatten().copied();
        let Some(input) = candidates.find(|&input| fits(input)) else { continue };
        let root = shares[input].map_or(input, |share| share.root);
        // The interpreter tries no other inputs.
        if kernel.is_view || uses[root] <= 1 {
            shares[output] = Some(Share { input, root, is_view: kernel.is_view });
        }
    }
    shares
}

/// The inputs that decide the shape of the first output. If one of them is not a constant, the output lies on
/// the heap.
const SHAPES: &[(&[&str], &[usize])] = &[
    (&["BROADCAST_TO", "EXPAND_DIMS", "MEAN", "ONE_HOT", "PAD", "PADV2", "MIRROR_PAD"], &[1]),
    (&["REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"], &[1]),
    (&["RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "RFFT2D", "SPARSE_TO_DENSE"], &[1]),
    (&["ARG_MAX", "ARG_MIN", "TILE", "TOPK_V2", "TRANSPOSE"], &[1]),
    (&["BATCH_TO_SPACE_ND", "SLICE", "SPACE_TO_BATCH_ND"], &[1, 2]),
    (&["STRIDED_SLICE"], &[1, 2, 3]),
    (&["CONV_3D_TRANSPOSE", "FILL", "SPLIT", "TRANSPOSE_CONV"], &[0]),
    (&["NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND"], &[2]),
    (&["RANGE"], &[0, 1, 2]),
    (&["SPLIT_V"], &[1, 2]),
];

/// Kernels that compute their result before the run if all inputs are known then. It lies on the heap. Converters
/// leave none with constants alone.
const AT_PREPARE: &[&str] = &[
    "BROADCAST_ARGS",
    "CONCATENATION",
    "GATHER",
    "MUL",
    "RANGE",
    "REDUCE_PROD",
    "RESHAPE",
    "STRIDED_SLICE",
];

/// Finds the tensors that the interpreter keeps beside its arenas: constants that are widened once, and
/// tensors whose sizes it finds only when their operators run. Shapes, and what follows from them alone, are
/// computed before the run, on the heap.
pub(super) fn set_apart(model: &mut Model) {
    for at in 0..model.subgraphs.len() {
        let mut known = BTreeSet::new();
        for operator in 0..model.subgraphs[at].operators.len() {
            let of = model.operator(OperatorAt { subgraph: at, operator });
            let tensors = &model.subgraphs[at].tensors;
            let is_fixed = |input: usize| match of.inputs.get(input).copied().flatten() {
                None => true,
                Some(place) => {
                    let input = &tensors[place];
                    input.is_constant
                        || input.bytes == Some(0)
                        || input.apart == Some(Apart::Persistent)
                        || known.contains(&place)
                }
            };
            let mut read = of.inputs.iter().flatten();
            let is_known =
                read.any(|input| known.contains(input)) && (0..of.inputs.len()).all(is_fixed);
            let is_shown = || {
                let (input, output) = (of.inputs.first().copied().flatten(), of.outputs.first());
                input.zip(output.copied()).is_some_and(|(input, output)| {
                    tensors[input].is_planned()
                        && tensors[input].bytes == tensors[output].bytes
                        && !model.subgraphs[at].inputs.contains(&input)
                        && !model.subgraphs[at].outputs.contains(&output)
                })
            };
            let kind = if model.is_custom(of) { "" } else { model.kind(of) };
            let apart = match kind {
                "DENSIFY" | "DEQUANTIZE" => is_fixed(0).then_some(Apart::Persistent),
                "RANK" | "SHAPE" | "UNIQUE" | "WHERE" => Some(Apart::Heap),
                kind if is_known && AT_PREPARE.contains(&kind) => Some(Apart::Heap),
                // The bytes are those of the input, whatever the shape is.
                "RESHAPE" if is_shown() => None,
                _ => {
                    let deciding = SHAPES.iter().find(|(kinds, _)| kinds.contains(&kind));
                    let places = deciding.map_or(&[][..], |(_, places)| places);
                    places.iter().any(|&place| !is_fixed(place)).then_some(Apart::Heap)
                }
            };
            let is_before_run =
                matches!(kind, "RANK" | "SHAPE") || is_known && AT_PREPARE.contains(&kind);
            let stops = match kind {
                "RESHAPE" => !is_before_run && !is_fixed(1),
                _ => !is_before_run && apart == Some(Apart::Heap),
            };
            if is_before_run {
                known.extend(of.outputs.iter().copied());
            }
            let outputs = of.outputs.clone();
            if stops {
                model.subgraphs[at].stops.push(operator);
            }
            for output in outputs {
                let tensor = &mut model.subgraphs[at].tensors[output];
                tensor.apart = apart.filter(|_| !tensor.is_constant && !tensor.is_variable);
            }
        }
    }
}

/// The number of uses of each tensor. Inputs, outputs and variables have one more, by the graph.
fn uses(subgraph: &Subgraph) -> Vec<usize> {
    let mut uses = vec![0; subgraph.tensors.len()];
    let read = subgraph.operators.iter().flat_map(|operator| operator.inputs.iter().flatten());
    for &tensor in read.chain(&subgraph.inputs).chain(&subgraph.outputs) {
        uses[tensor] += 1;
    }
    for (uses, tensor) in uses.iter_mut().zip(&subgraph.tensors) {
        *uses += usize::from(tensor.is_variable);
    }
    uses
}

/// The steps of each tensor, from its first to its last: step 1 for the inputs and the first operator. Inputs
/// and outputs of the graph, and unread tensors, are kept until the step after the last operator.
fn lives(subgraph: &Subgraph, shares: &[Option<Share>]) -> Vec<Option<(Step, Step)>> {
    let end = subgraph.operators.len() as Step + 1;
    let root = |tensor: usize| shares[tensor].map_or(tensor, |share| share.root);
    let mut lives = vec![None; subgraph.tensors.len()];
    for &input in &subgraph.inputs {
        lives[input] = Some((1, end));
    }
    for (step, operator) in (1..).zip(&subgraph.operators) {
        for &output in &operator.outputs {
            lives[output].get_or_insert((step, end));
        }
    }
    let mut last = vec![end; subgraph.tensors.len()];
    for (step, operator) in (1..).zip(&subgraph.operators) {
        for &input in operator.inputs.iter().flatten() {
            last[root(input)] = step;
        }
    }
    for &kept in subgraph.inputs.iter().chain(&subgraph.outputs) {
        last[root(kept)] = end;
    }
    for (tensor, life) in lives.iter_mut().enumerate() {
        if let Some((_, end)) = life {
            *end = last[root(tensor)];
        }
    }
    lives
}

impl Arena {
    /// The arena of subgraph 0, with the arenas of those that it calls.
    pub(super) fn of_interpreter(
        model: &Model,
        events: &[Event],
        scratch: &Scratch,
        names: &mut Names,
    ) -> Result<Self, TfliteError> {
        let called = events.iter().filter_map(|event| match event {
            Event::Enter(call) => call.caller.map(|_| call.subgraph),
            _ => None,
        });
        let called: BTreeSet<usize> = called.collect();
        let arena =
            |subgraph: usize, names: &mut Names| of_subgraph(model, subgraph, scratch, names);
        let mut main = arena(0, names)?;
        for subgraph in called {
            let other = arena(subgraph, names)?;
            let own = other.own_size();
            let own =
                own.map_err(|error| wrong(format!("subgraph {subgraph}"), error.to_string()))?;
            main.called = main.called.saturating_add(own);
        }
        let variables = model.tensors().filter(|(.., tensor)| tensor.is_variable);
        let variables = variables.map(|(.., tensor)| tensor.bytes.unwrap_or(0));
        main.variables = variables.fold(0, Bytes::saturating_add);
        let apart = |place: Apart, alignment: Bytes| {
            let tensors = model.tensors().filter(|(.., tensor)| tensor.apart == Some(place));
            let bytes = tensors
                .filter_map(|(.., tensor)| tensor.bytes?.checked_next_multiple_of(alignment));
            bytes.fold(0, Bytes::saturating_add)
        };
        main.persistent = apart(Apart::Persistent, Runtime::Interpreter.alignment());
        main.heap = apart(Apart::Heap, 1);
        Ok(main)
    }
}

/// The tensors that the interpreter places in the arena, and then puts on the heap. Before the run, a RESHAPE to a shape
/// that is not known has an output as large as its input; if that input lies on the heap, the kernel copies it there.
fn reserved(model: &Model, subgraph: &Subgraph) -> BTreeSet<usize> {
    let on_heap = |tensor: usize| subgraph.tensors[tensor].apart == Some(Apart::Heap);
    let stops = subgraph.stops.iter().map(|&stop| &subgraph.operators[stop]);
    let reshapes = stops.filter(|of| !model.is_custom(of) && model.kind(of) == "RESHAPE");
    let outputs = reshapes.filter_map(|of| {
        let (input, output) = (of.inputs.first().copied().flatten()?, *of.outputs.first()?);
        let same = subgraph.tensors[input].bytes == subgraph.tensors[output].bytes;
        (same && on_heap(input) && on_heap(output)).then_some(output)
    });
    outputs.collect()
}

fn of_subgraph(
    model: &Model,
    at: usize,
    scratch: &Scratch,
    names: &mut Names,
) -> Result<Arena, TfliteError> {
    let subgraph = &model.subgraphs[at];
    let shares = shares(model, subgraph);
    let mut buffers: Vec<ArenaBuffer> = Vec::new();
    let mut places = vec![None; subgraph.tensors.len()];
    let reserved = reserved(model, subgraph);
    for (index, life) in lives(subgraph, &shares).into_iter().enumerate() {
        let tensor = &subgraph.tensors[index];
        let is_placed = tensor.is_planned() || reserved.contains(&index);
        let (Some((first, last)), true) = (life, is_placed) else { continue };
        places[index] = Some(buffers.len());
        buffers.push(ArenaBuffer {
            name: names.tensor(subgraph.first_tensor + index).into(),
            tensor: Some(subgraph.first_tensor + index),
            size: planned_size(at, index, tensor)?,
            first,
            last,
            shares: None,
            operator: None,
        });
    }
    for (index, share) in shares.iter().enumerate() {
        if let (Some(share), Some(place)) = (share, places[index]) {
            buffers[place].shares = places[share.root];
        }
    }
    for (operator, of) in subgraph.operators.iter().enumerate() {
        let at = OperatorAt { subgraph: at, operator };
        for (index, &size) in scratch.at(at).iter().enumerate() {
            let step = operator as Step + 1;
            buffers.push(ArenaBuffer {
                name: names.scratch(&step_name(model.kind(of), at), index),
                tensor: None,
                size,
                first: step,
                last: step,
                shares: None,
                operator: Some(at),
            });
        }
    }
    Ok(Arena {
        runtime: Runtime::Interpreter,
        buffers,
        tensors: model.tensor_count(),
        subgraphs: model.subgraphs.len(),
        variables: 0,
        tail: None,
        in_tail: None,
        persistent: 0,
        heap: 0,
        stops: subgraph.stops.iter().map(|&stop| stop as Step + 1).collect(),
        called: 0,
        unknown_scratch: Vec::new(),
    })
}
