//! What can be wrong with an ONNX model.

use std::fmt::Write as _;

use crate::{PlanError, SequenceError, report::printable};

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
    /// A tensor that a shape is given for, and that the model does not have.
    #[error("no input of the model, and no output of an operator, is called '{name}'")]
    UnknownTensor {
        /// The name given.
        name: String,
    },
    /// A shape that is given for a tensor and that it cannot have.
    #[error("the shape given for '{tensor}' is {given}, but the model has {known}")]
    GivenShape {
        /// The tensor.
        tensor: String,
        /// The shape given.
        given: String,
        /// What is known of it.
        known: String,
    },
    /// Sizes that only the run knows, and of which it is not known how large they can be.
    #[error("{}", open_sizes(open))]
    OpenSizes {
        /// All that are open.
        open: Vec<OpenSize>,
    },
    /// A tensor that the model declares with another shape than it has.
    #[error(
        "the model declares tensor '{tensor}', {maker}, with shape {declared}, but its inputs give {inferred}{}; run shape inference again, or choose: --trust-inference uses the second, --trust-declared the first",
        other_tensors(*others)
    )]
    Differs {
        /// The tensor.
        tensor: String,
        /// Who makes it.
        maker: String,
        /// The shape that the model declares.
        declared: String,
        /// The shape that follows from its inputs.
        inferred: String,
        /// How many more tensors are declared wrongly.
        others: usize,
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
        "tensor '{tensor}', {maker}, is {what}, which has no fixed size; only dense tensors of numbers can be planned: remove that part from the model"
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

/// A size that only the run knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenSize {
    /// The tensor.
    pub tensor: String,
    /// Who makes it.
    pub maker: String,
    /// Which of its dimensions, from 0; `None` if not even their number is known.
    pub axis: Option<usize>,
    /// The name that the model gives the size.
    pub dim: Option<String>,
    /// What is known of the shape.
    pub shape: Option<Vec<Option<u64>>>,
    /// Why it is not known.
    pub reason: String,
}

impl OpenSize {
    /// Whether the shape of the tensor must be given: the size has no name.
    fn needs_shape(&self) -> bool {
        self.dim.is_none()
    }
}

/// The list of open sizes, and the words of a command line that give them all.
fn open_sizes(open: &[OpenSize]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut shapes: Vec<String> = Vec::new();
    let mut tensors: Vec<&str> = Vec::new();
    for size in open {
        if let Some(name) = size.dim.as_deref().filter(|name| !names.contains(name)) {
            names.push(name);
        }
        if size.needs_shape() && !tensors.contains(&size.tensor.as_str()) {
            tensors.push(&size.tensor);
            shapes.push(shape_to_give(&size.tensor, open));
        }
    }
    let mut words = Vec::new();
    if !names.is_empty() {
        let names: Vec<String> = names.iter().map(|name| format!("{name}=N")).collect();
        words.push(format!("--dim {}", quoted(&names.join(","))));
    }
    words.extend(shapes.iter().map(|shape| format!("--shape {}", quoted(shape))));
    let count = names.len() + tensors.len();
    let what = if count == 1 { "a size is".to_owned() } else { format!("{count} sizes are") };
    let mut text = format!(
        "{what} not known before the run; give the most that each N can be, with\n  {}\nor the same for all, with --dim-default N",
        words.join(" ")
    );
    for size in open {
        let OpenSize { tensor, maker, axis, dim, reason, .. } = size;
        let [tensor, maker, reason] = [tensor, maker, reason].map(|words| printable(words));
        let name = dim.as_ref().map_or_else(String::new, |dim| format!("{}, ", printable(dim)));
        let which = axis.map_or("the shape".to_owned(), |axis| format!("dimension {axis}"));
        let _ = write!(text, "\n  {name}{which} of '{tensor}', {maker}: {reason}");
    }
    text
}

/// `y=Nx4`: a shape with what is known of it.
fn shape_to_give(tensor: &str, open: &[OpenSize]) -> String {
    let of_tensor = || open.iter().filter(|size| size.tensor == tensor);
    let named = |axis: usize| of_tensor().any(|s| s.axis == Some(axis) && s.dim.is_some());
    let Some(shape) = of_tensor().find_map(|size| size.shape.as_ref()) else {
        return format!("{tensor}=NxN...");
    };
    let dims: Vec<String> = (0..)
        .zip(shape)
        .map(|(axis, dim)| match dim {
            Some(size) => size.to_string(),
            None if named(axis) => "?".to_owned(),
            None => "N".to_owned(),
        })
        .collect();
    format!("{tensor}={}", dims.join("x"))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-=,./:?".contains(c);
    let word = printable(word);
    if word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn other_tensors(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => " (and so for 1 more tensor)".to_owned(),
        others => format!(" (and so for {others} more tensors)"),
    }
}

fn known_dims(known: &[String]) -> String {
    if known.is_empty() {
        "all its dimensions are fixed".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    }
}
