//! The tail of TensorFlow Lite Micro's arena: what the runtime and its kernels allocate for as long as the
//! model is loaded, one allocation below the other, from the end of the arena.

use std::collections::BTreeMap;

use crate::{
    Bytes,
    import::{
        ImportOptions,
        tflite::{
            ALIGNMENT, KernelLibrary,
            arena::Scratch,
            model::{Model, OperatorAt, Tensor},
            ops::{self, Op},
        },
    },
};

/// The release of the package `tflite-micro` for Python whose tail is predicted: 64 bits, reference kernels.
pub const TAIL_RELEASE: &str = "0.dev20261023182759";

/// Sizes of the runtime's structures in bytes.
mod size {
    use crate::Bytes;

    /// Those that exist before a model is read, once for all models of an arena: the allocators and the planner.
    pub(super) const ALLOCATORS: Bytes = 448;
    pub(super) const OPTIONS_ALLOCATOR: Bytes = 16;
    pub(super) const SUBGRAPH: Bytes = 24;
    pub(super) const EVALUATED_TENSOR: Bytes = 24;
    pub(super) const NODE: Bytes = 64;
    pub(super) const SCRATCH_HANDLE: Bytes = 8;
    pub(super) const POINTER: Bytes = 8;
    /// A tensor that the application reads or writes.
    pub(super) const TENSOR: Bytes = 64;
    pub(super) const QUANTIZATION: Bytes = 24;
    pub(super) const VARIABLES: Bytes = 16;
    pub(super) const VARIABLE: Bytes = 40;
}

/// The allocations of a model in the tail, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    allocations: Vec<Allocation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allocation {
    bytes: Bytes,
    alignment: Bytes,
}

impl Tail {
    /// The bytes of the tail of an arena in which these models are loaded, one after the other. What a model
    /// leaves unused for alignment depends on where those before it end.
    pub(super) fn size<'a>(models: impl IntoIterator<Item = &'a Self>) -> Bytes {
        let allocations = models.into_iter().flat_map(|model| &model.allocations);
        allocations.fold(size::ALLOCATORS, |used, of| {
            let end = used.saturating_add(of.bytes);
            end.checked_next_multiple_of(of.alignment).unwrap_or(Bytes::MAX)
        })
    }

    fn allocate(&mut self, bytes: Bytes, alignment: Bytes) {
        self.allocations.push(Allocation { bytes, alignment });
    }

    /// A request of a kernel.
    fn request(&mut self, bytes: Bytes) {
        self.allocate(bytes, ALIGNMENT);
    }

    /// The tensors that the application reads or writes, with pointers to them.
    fn visible(&mut self, tensors: &[Tensor], list: &[usize]) {
        self.request(size::POINTER.saturating_mul(list.len() as u64));
        for &tensor in list {
            self.allocate(size::TENSOR, 8);
            let scales = tensors[tensor].scales as u64;
            if scales > 0 {
                self.allocate(size::QUANTIZATION, 8);
                self.allocate(4 + 4 * scales, 4);
            }
        }
    }
}

/// The tail of a model; `None` if the kernels are not the reference kernels, or one of them is not known.
pub(super) fn tail(model: &Model, scratch: &Scratch, options: &ImportOptions) -> Option<Tail> {
    if options.library != KernelLibrary::Reference {
        return None;
    }
    let places = || {
        model.subgraphs.iter().enumerate().flat_map(|(subgraph, of)| {
            (0..of.operators.len()).map(move |operator| OperatorAt { subgraph, operator })
        })
    };
    let mut operators = Vec::new();
    for at in places() {
        let op = Op::new(model, at);
        if ops::unsupported(&op).is_some() {
            return None;
        }
        operators.push((ops::persistent(&op)?, op));
    }
    let mut tail = Tail::default();
    let handles = handles(&operators)?;
    let names: std::collections::BTreeSet<&String> = handles.values().collect();
    if !names.is_empty() {
        tail.request(size::VARIABLES);
        tail.request(size::VARIABLE.saturating_mul(names.len() as u64));
    }
    tail.allocate(size::OPTIONS_ALLOCATOR, 8);
    tail.allocate(size::SUBGRAPH.saturating_mul(model.subgraphs.len() as u64), 8);
    for subgraph in &model.subgraphs {
        tail.allocate(size::EVALUATED_TENSOR.saturating_mul(subgraph.tensors.len() as u64), 8);
    }
    for subgraph in &model.subgraphs {
        tail.allocate(size::NODE.saturating_mul(subgraph.operators.len() as u64), 8);
    }
    for (of, _) in &operators {
        tail.allocate(of.options.0, of.options.1);
    }
    for (of, _) in operators.iter().filter(|(of, _)| of.state > 0) {
        tail.request(of.state);
    }
    let mut stored = std::collections::BTreeSet::new();
    for (of, op) in &operators {
        of.tables.iter().for_each(|&table| tail.request(table));
        if model.kind(op.operator) == "ASSIGN_VARIABLE" {
            let handle = op.operator.inputs.first().copied().flatten()?;
            if stored.insert(handles.get(&(op.at.subgraph, handle))) {
                tail.request(op.input(1)?.bytes?);
            }
        }
    }
    let handles: usize = places().map(|at| scratch.at(at).len()).sum();
    tail.allocate(size::SCRATCH_HANDLE.saturating_mul(handles as u64), 8);
    for (.., tensor) in model.tensors().filter(|(.., tensor)| tensor.is_variable) {
        tail.request(tensor.bytes?);
    }
    let main = model.subgraphs.first()?;
    tail.visible(&main.tensors, &main.inputs);
    tail.visible(&main.tensors, &main.outputs);
    Some(tail)
}

/// The names of variables, by the subgraph and tensor of their handles.
fn handles(operators: &[(ops::Persistent, Op)]) -> Option<BTreeMap<(usize, usize), String>> {
    let mut names = BTreeMap::new();
    for (_, op) in operators {
        if op.model.kind(op.operator) == "VAR_HANDLE" {
            let name = op.operator.option_text(1).ok()?;
            names.insert((op.at.subgraph, *op.operator.outputs.first()?), name);
        }
    }
    Some(names)
}
