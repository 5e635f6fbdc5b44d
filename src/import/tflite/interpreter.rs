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
        model::{Model, OperatorAt, Subgraph, wrong},
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
        Ok(main)
    }
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
    for (index, life) in lives(subgraph, &shares).into_iter().enumerate() {
        let tensor = &subgraph.tensors[index];
        let (Some((first, last)), true) = (life, tensor.is_planned()) else { continue };
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
        called: 0,
        unknown_scratch: Vec::new(),
    })
}
