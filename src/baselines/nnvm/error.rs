//! The ways in which a graph can be invalid.

/// A graph that cannot be planned. Nodes are named by their index in the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An input or a graph output refers to an entry that does not exist.
    #[error("there is no output {output} of node {node}")]
    UnknownEntry {
        /// The node it refers to.
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
    /// An in-place pair or an ignored input refers to an operand that the node does not have.
    #[error("node {node} refers to a missing input or output")]
    Operands {
        /// The node.
        node: usize,
    },
    /// An assign must have one output and two inputs, the first of them a variable of the same
    /// size.
    #[error("node {node} must assign an input to a variable of the same size")]
    Assign {
        /// The assign.
        node: usize,
    },
    /// The sum of the sizes up to this node exceeds 64 bits.
    #[error("the sizes up to node {node} do not fit in 64 bits")]
    SizeOverflow {
        /// The node.
        node: usize,
    },
}
