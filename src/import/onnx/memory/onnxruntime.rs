//! The views and in-place kernels of ONNX Runtime on the CPU, and its order of execution.
//!
//! Its kernels declare which outputs alias an input and which may. `tests/onnx_backend/pattern.py` measures that: in a
//! second run, the runtime allocates one block for all tensors, whose size shows what shares memory.

use std::collections::{BTreeSet, HashMap};

use rten_onnx::onnx::GraphProto;

use crate::import::onnx::{
    ops::{
        op::Op,
        row::{Domain, Kernel, Operands},
    },
    read::{node::Node, scope},
};

/// The operators whose first output is always a view of their first input.
const VIEWS: &[&str] = &["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"];

/// The operators whose first output may be written over their first input.
const OVER_FIRST: &[&str] = &[
    "Cast",
    "Celu",
    "Clip",
    "Elu",
    "HardSigmoid",
    "LeakyRelu",
    "LogSoftmax",
    "Relu",
    "Scatter",
    "ScatterElements",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "TensorScatter",
    "ThresholdedRelu",
    "Trilu",
];

/// The operators of the runtime's own domains whose output may be written over an input, with that input: the one
/// that a convolution adds.
const OVER_OTHERS: &[(Domain, &str, &[usize])] = &[
    (Domain::Microsoft, "FusedConv", &[3]),
    (Domain::Microsoft, "Trilu", &[0]),
    (Domain::Nchwc, "Conv", &[3]),
];

/// The reason why outputs of a graph share no memory.
pub(crate) const APART: &str = "ONNX Runtime allocates the outputs of the model apart";

/// Returns whether the first output is a view of the first input.
pub(crate) fn is_view(node: Node) -> bool {
    Domain::from_name(node.domain()) == Some(Domain::Onnx) && VIEWS.contains(&node.kind())
}

/// The outputs that may be written over inputs.
pub(crate) fn operands(op: &Op) -> Option<Operands> {
    let (domain, kind) = (Domain::from_name(op.node.domain())?, op.node.kind());
    let inputs: &[usize] = match domain {
        Domain::Onnx if OVER_FIRST.contains(&kind) => &[0],
        _ => OVER_OTHERS.iter().find(|&&(of, name, _)| of == domain && name == kind)?.2,
    };
    let kernel = Kernel::Elementwise;
    Some(Operands { kernel, outputs: &[0], inputs: Some(inputs), unless: None })
}

/// The places of the nodes in the order in which the runtime executes them: depth-first from the nodes that nothing
/// reads, the last of them first, and of what a node reads, what is last in the file first.
pub(crate) fn order(graph: &GraphProto) -> Vec<usize> {
    let nodes = || graph.node.iter().map(Node).enumerate();
    let makers: HashMap<&str, usize> = nodes()
        .flat_map(|(place, node)| node.outputs().map(move |(_, name)| (name, place)))
        .collect();
    let read_by = |node: Node| -> BTreeSet<usize> {
        let names = node.inputs().chain(scope::captured(node));
        names.filter_map(|name| makers.get(name).copied()).collect()
    };
    let reads: Vec<BTreeSet<usize>> = nodes().map(|(_, node)| read_by(node)).collect();
    let mut is_read = vec![false; reads.len()];
    reads.iter().flatten().for_each(|&maker| is_read[maker] = true);
    // Nodes; true if all that they read is in the order.
    let leaves = (0..reads.len()).filter(|&node| !is_read[node]);
    let mut stack: Vec<(usize, bool)> = leaves.map(|node| (node, false)).collect();
    let mut is_entered = vec![false; reads.len()];
    let has_outputs = |node: usize| Node(&graph.node[node]).outputs().next().is_some();
    let mut order = Vec::with_capacity(reads.len());
    while let Some((node, is_ready)) = stack.pop() {
        if is_ready {
            // A node without outputs computes nothing.
            order.extend(Some(node).filter(|&node| has_outputs(node)));
        } else if !std::mem::replace(&mut is_entered[node], true) {
            stack.push((node, true));
            stack.extend(reads[node].iter().map(|&maker| (maker, false)));
        }
    }
    order
}
