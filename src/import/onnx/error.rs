//! What can be wrong with an ONNX model.

use crate::{PlanError, SequenceError};

/// An ONNX model that cannot be read, or not without more help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// Bytes that are no ONNX model.
    #[error("this is not an ONNX model, or a damaged one: {reason}")]
    NotOnnx {
        /// What is wrong, and where.
        reason: String,
    },
    /// A model with graphs or types inside each other beyond any sense.
    #[error("the model nests deeper than {limit} levels; flatten its sub-graphs")]
    TooDeep {
        /// The number of levels that are read.
        limit: usize,
    },
    /// A symbolic size that no tensor of the model has.
    #[error("no dimension of the model is called '{name}'; {}", known_dims(known))]
    UnknownDim {
        /// The name given.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A graph input whose size is not known.
    #[error("the shape of input '{tensor}' is {shape}: {remedy}")]
    UnknownInputShape {
        /// The input.
        tensor: String,
        /// Its shape, as the model says it.
        shape: String,
        /// What to do.
        remedy: String,
    },
    /// A tensor whose shape is neither declared nor can be inferred.
    #[error(
        "the shape of tensor '{tensor}', made by operator {operator}, is unknown: {reason}; {remedy}"
    )]
    UnknownShape {
        /// The tensor.
        tensor: String,
        /// The operator that makes it, with its type.
        operator: String,
        /// Why it cannot be inferred.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// A tensor whose element type is not known.
    #[error(
        "the element type of tensor '{tensor}', {maker}, is unknown; declare it in the model's value_info, as shape inference does where it can"
    )]
    UnknownType {
        /// The tensor.
        tensor: String,
        /// Who makes it.
        maker: String,
    },
    /// A tensor of a type without a fixed size in bytes.
    #[error(
        "tensor '{tensor}', {maker}, is {what}, which has no fixed size; only dense tensors of numbers can be planned: cut that part off the model"
    )]
    NotPlannable {
        /// The tensor.
        tensor: String,
        /// Who makes it.
        maker: String,
        /// What it is, such as `a sequence`.
        what: String,
    },
    /// A tensor with more bytes than 64 bits can count.
    #[error("tensor '{tensor}' of shape {shape} has 2^64 bytes or more")]
    TooLarge {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: String,
    },
    /// A part of ONNX that is not supported.
    #[error("{what} is not supported; {remedy}")]
    Unsupported {
        /// What, naming the operator if it belongs to one.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A graph that makes no sense as an operator sequence.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// A sub-graph that cannot be planned.
    #[error("the body of operator {operator} cannot be planned: {source}")]
    Body {
        /// The operator that holds the sub-graph.
        operator: String,
        /// Why.
        source: Box<PlanError>,
    },
}

fn known_dims(known: &[String]) -> String {
    if known.is_empty() {
        "all its dimensions are fixed".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    }
}
