//! A graph of operators and variables, as NNVM sees it. Its types mirror those of NNVM, which no
//! longer changes, so that a graph can be written as a literal.

use crate::{Bytes, baselines::nnvm::GraphError};

/// An output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeEntry {
    /// The node, by its index in the list.
    pub node: usize,
    /// The output of that node.
    pub output: usize,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Supplies an input or a weight from outside. Its output is not planned.
    Variable,
    /// Computes its outputs element by element, with or without broadcasting.
    Broadcast,
    /// Computes its outputs in any other way.
    Operator,
    /// Writes its second input to its first, a variable, which is also its output.
    Assign,
}

/// Permits an output to take the storage of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// The input.
    pub input: usize,
    /// The output.
    pub output: usize,
    /// True if the output is the unchanged input.
    pub identity: bool,
}

/// The size and type of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    /// The number of elements.
    pub elements: u64,
    /// The size in bytes.
    pub bytes: Bytes,
    /// The element type, as an arbitrary number.
    pub element_type: u32,
    /// True if it has memory of its own, supplied from outside.
    pub external: bool,
}

/// An operator or a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its role.
    pub kind: NodeKind,
    /// The entries that it reads.
    pub inputs: Vec<NodeEntry>,
    /// The tensors that it produces.
    pub outputs: Vec<Tensor>,
    /// The in-place pairs that it permits, tried in this order.
    pub in_place: Vec<InPlace>,
    /// The indices of inputs of which it needs only the shape.
    pub ignored_inputs: Vec<usize>,
    /// The device that it runs on, as an arbitrary number.
    pub device: u32,
}

impl Node {
    /// Creates a node of a kind, with no inputs or outputs.
    #[must_use]
    pub fn new(kind: NodeKind) -> Self {
        Self {
            kind,
            inputs: Vec::new(),
            outputs: Vec::new(),
            in_place: Vec::new(),
            ignored_inputs: Vec::new(),
            device: 0,
        }
    }

    /// The inputs whose contents the node reads, with their indices.
    pub(super) fn read_inputs(&self) -> impl Iterator<Item = (usize, NodeEntry)> + '_ {
        let inputs = self.inputs.iter().copied().enumerate();
        inputs.filter(|(at, _)| !self.ignored_inputs.contains(at))
    }

    pub(super) fn is_variable(&self) -> bool {
        self.kind == NodeKind::Variable
    }
}

/// A checked graph with its execution order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Node>,
    outputs: Vec<NodeEntry>,
    /// The nodes that the outputs need, each after its inputs.
    order: Vec<usize>,
}

impl Graph {
    /// Checks nodes and outputs and finds the execution order: depth-first from the outputs, inputs
    /// first and in order. Nodes that no output needs are omitted.
    ///
    /// # Errors
    ///
    /// If an entry, or an operand of an in-place pair or an ignored input, does not exist; if the
    /// graph has a cycle or an invalid assign; or if the sum of the sizes exceeds 64 bits.
    pub fn new(nodes: Vec<Node>, outputs: Vec<NodeEntry>) -> Result<Self, GraphError> {
        let has = |entry: &&NodeEntry| {
            nodes.get(entry.node).is_some_and(|node| entry.output < node.outputs.len())
        };
        let mut used = nodes.iter().flat_map(|node| &node.inputs).chain(&outputs);
        if let Some(&NodeEntry { node, output }) = used.find(|entry| !has(entry)) {
            return Err(GraphError::UnknownEntry { node, output });
        }
        let mut sum: Bytes = 0;
        for (index, node) in nodes.iter().enumerate() {
            let known =
                |pair: &InPlace| pair.input < node.inputs.len() && pair.output < node.outputs.len();
            let ignored = |&input: &usize| input < node.inputs.len();
            if !node.in_place.iter().all(known) || !node.ignored_inputs.iter().all(ignored) {
                return Err(GraphError::Operands { node: index });
            }
            for tensor in &node.outputs {
                let overflow = GraphError::SizeOverflow { node: index };
                sum = sum.checked_add(tensor.bytes).ok_or(overflow)?;
            }
            if node.kind == NodeKind::Assign && !is_assign(&nodes, node) {
                return Err(GraphError::Assign { node: index });
            }
        }
        let order = post_order(&nodes, &outputs)?;
        Ok(Self { nodes, outputs, order })
    }

    /// The nodes, in the order given.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The outputs of the graph.
    #[must_use]
    pub fn outputs(&self) -> &[NodeEntry] {
        &self.outputs
    }

    /// The nodes that are executed, by index, each after its inputs.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    pub(super) fn tensor(&self, entry: NodeEntry) -> &Tensor {
        &self.nodes[entry.node].outputs[entry.output]
    }
}

fn is_assign(nodes: &[Node], node: &Node) -> bool {
    let &[left, _] = &*node.inputs else { return false };
    let &[output] = &*node.outputs else { return false };
    nodes[left.node].is_variable() && nodes[left.node].outputs[left.output].bytes == output.bytes
}

fn post_order(nodes: &[Node], outputs: &[NodeEntry]) -> Result<Vec<usize>, GraphError> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Unseen,
        Open,
        Done,
    }
    let mut states = vec![State::Unseen; nodes.len()];
    let mut order = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for output in outputs {
        if states[output.node] == State::Unseen {
            states[output.node] = State::Open;
            open.push((output.node, 0));
        }
        while let Some((node, next)) = open.last_mut() {
            let Some(input) = nodes[*node].inputs.get(*next) else {
                states[*node] = State::Done;
                order.push(*node);
                open.pop();
                continue;
            };
            *next += 1;
            match states[input.node] {
                State::Unseen => {
                    states[input.node] = State::Open;
                    open.push((input.node, 0));
                }
                State::Open => return Err(GraphError::Cycle { node: input.node }),
                State::Done => {}
            }
        }
    }
    Ok(order)
}
