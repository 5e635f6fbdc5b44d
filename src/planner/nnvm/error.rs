//! What can be wrong with a graph.

/// A graph that cannot be planned. Nodes are named by their place in the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An input or an output of the graph is an entry that no node has.
    #[error("there is no output {output} of node {node}")]
    UnknownEntry {
        /// The node of that entry.
        node: usize,
        /// The output of that node.
        output: usize,
    },
    /// A node depends on itself.
    #[error("node {node} depends on itself")]
    Cycle {
        /// A node on the cycle.
        node: usize,
    },
    /// A node says that it works in place, or ignores an input, but has no such input or output.
    #[error("node {node} refers to a missing input or output")]
    Operands {
        /// The node.
        node: usize,
    },
    /// An assign has not one output and two inputs, the first of them a variable of the same size.
    #[error("node {node} assigns, but not an input to a variable of its size")]
    Assign {
        /// The assign.
        node: usize,
    },
    /// The sizes up to this node do not add up in 64 bits.
    #[error("with node {node} the sizes no longer fit in 64 bits")]
    SizeOverflow {
        /// The node.
        node: usize,
    },
}
