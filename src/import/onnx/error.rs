//! Errors in ONNX models.

use std::fmt::Write as _;

use crate::{
    SequenceError,
    import::{OpenSize, onnx::read::placeholders::is_no_name},
    printable::printable,
    sequence::DimRange,
};

/// An ONNX model that cannot be read, or not without more options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The bytes are not an ONNX model.
    #[error("this is not an ONNX model, or a damaged one: {reason}")]
    NotOnnx {
        /// The fault and its place.
        reason: String,
    },
    /// Graphs or types are nested too deep.
    #[error("the model nests deeper than {limit} levels; flatten its sub-graphs")]
    TooDeep {
        /// The number of levels that are read.
        limit: usize,
    },
    /// An order that omits a node or names one twice.
    #[error("the order does not name each of the {nodes} nodes once")]
    NotAPermutation {
        /// The number of nodes.
        nodes: usize,
    },
    /// A symbolic size is given that no tensor of the model has.
    #[error("no dimension of the model is called '{name}'; {}{}", known_dims(known), no_name(name))]
    UnknownDim {
        /// The name given.
        name: String,
        /// The names in the model.
        known: Vec<String>,
    },
    /// A range is given for a size that the model finds at run time.
    #[error(
        "the model itself finds the size '{name}' in each run, so it has only a largest size; give --dim {name}={most}"
    )]
    RangeFound {
        /// The name of the dimension.
        name: String,
        /// The largest size in the range.
        most: u64,
    },
    /// A size is given that does not follow from the others, by which the model defines it.
    #[error(
        "the size '{name}' follows from the others and is {size}, but --dim gives {given}; omit it, or give other sizes"
    )]
    RelatedSize {
        /// The name of the dimension.
        name: String,
        /// The size that follows.
        size: u64,
        /// The sizes given.
        given: DimRange,
    },
    /// There are more shapes than can be checked.
    #[error(
        "the ranges of sizes allow more than {most} shapes, too many to check each for this model; narrow a range, or give a size exactly"
    )]
    TooManyShapes {
        /// The largest number of shapes for this model.
        most: usize,
    },
    /// The model cannot be read with some of the sizes.
    #[error("with {sizes}: {error}; narrow the range to the sizes for which the model is valid")]
    WithSizes {
        /// The sizes, such as `batch=3`; sizes that are not among them make no difference.
        sizes: String,
        /// The error.
        error: Box<OnnxError>,
    },
    /// The model runs other operators with other sizes.
    #[error(
        "with {sizes}, {what}, unlike with {largest}, so no plan holds for both; plan each of them by itself, or narrow the range"
    )]
    OtherOperators {
        /// The sizes, such as `batch=3`.
        sizes: String,
        /// The largest sizes.
        largest: String,
        /// The difference.
        what: String,
    },
    /// Two sizes of an operator exclude each other, so that no runtime can run it.
    #[error("operator {operator} cannot run: {sizes}; {rule}{remedy}")]
    Conflict {
        /// The operator.
        operator: String,
        /// Both sizes, with their places.
        sizes: String,
        /// The rule that they break.
        rule: &'static str,
        /// The difference of the two sizes, the first subtracted from the second.
        difference: i64,
        /// The remedy, after a semicolon; empty if there is none.
        remedy: String,
    },
    /// A shape is given for a tensor that the model does not have.
    #[error(
        "no input of the model, and no output of an operator, is called '{name}'; {}",
        list_inputs(inputs)
    )]
    UnknownTensor {
        /// The name given.
        name: String,
        /// The names of the model's inputs.
        inputs: Vec<String>,
    },
    /// Scratch memory is given for an operator that the model does not have.
    #[error(
        "no operator of the model has the name or the type '{name}', for which scratch memory is stated"
    )]
    UnknownOperator {
        /// The name given.
        name: String,
    },
    /// An element type is given that ONNX does not have, or that is not the tensor's.
    #[error("the element type given for '{tensor}' is {given}, but {why}")]
    GivenType {
        /// The tensor.
        tensor: String,
        /// The type given.
        given: String,
        /// The reason why it is wrong.
        why: String,
    },
    /// A value is given that the tensor cannot have.
    #[error("the value given for '{tensor}' is {given}, but {why}")]
    GivenValue {
        /// The tensor.
        tensor: String,
        /// The value given.
        given: String,
        /// The reason why it is wrong.
        why: String,
    },
    /// A cache is given that cannot be updated in its memory.
    #[error("{input}={next} is no state: {why}")]
    State {
        /// The input of the model.
        input: String,
        /// The tensor that is to be made in its memory.
        next: String,
        /// The reason why it cannot be.
        why: String,
    },
    /// A shape is given that the tensor cannot have.
    #[error("the shape given for '{tensor}' is {given}, but the model has {known}")]
    GivenShape {
        /// The tensor.
        tensor: String,
        /// The shape given.
        given: String,
        /// The known shape.
        known: String,
    },
    /// Sizes are known only at run time and have no known bound.
    #[error("{}", open_sizes(open))]
    OpenSizes {
        /// All of these sizes.
        open: Vec<OpenSize>,
    },
    /// A tensor's declared shape or element type differs from the inferred one.
    #[error(
        "the model declares tensor '{tensor}', {maker}, with {property} {declared}, but its inputs give {inferred}{}; run shape inference again, or choose: --trust-inference uses the second, --trust-declared the first",
        other_tensors(*others)
    )]
    Differs {
        /// The tensor.
        tensor: String,
        /// The origin of the tensor.
        maker: String,
        /// The property that differs, such as `shape`.
        property: &'static str,
        /// The shape or type that the model declares.
        declared: String,
        /// The one that follows from its inputs.
        inferred: String,
        /// The number of other tensors with such a difference.
        others: usize,
    },
    /// A tensor's element type is unknown.
    #[error(
        "the element type of tensor '{tensor}', {maker}, is unknown; give it with {}",
        option("--type", &format!("{tensor}=float"))
    )]
    UnknownType {
        /// The tensor.
        tensor: String,
        /// The origin of the tensor.
        maker: String,
    },
    /// A tensor's type has no fixed size in bytes.
    #[error(
        "tensor '{tensor}', {maker}, is {what}, which has no fixed size; only dense tensors of numbers can be planned: remove that part from the model"
    )]
    NotPlannable {
        /// The tensor.
        tensor: String,
        /// The origin of the tensor.
        maker: String,
        /// The type, such as `a sequence`.
        what: String,
    },
    /// The number or the sizes of the tensors in a sequence are unknown.
    #[error(
        "the sequence '{tensor}', {maker}, cannot be planned: {reason}; a sequence is planned if the number and the sizes of its tensors are known"
    )]
    UnknownSequence {
        /// The sequence.
        tensor: String,
        /// The origin of the sequence.
        maker: String,
        /// The reason.
        reason: String,
    },
    /// A tensor has more bytes than 64 bits can count.
    #[error("tensor '{tensor}' of shape {shape} has 2^64 bytes or more")]
    TooLarge {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: String,
    },
    /// A part of ONNX is not supported.
    #[error("{what} is not supported; {remedy}")]
    Unsupported {
        /// The unsupported part, with its operator if it belongs to one.
        what: String,
        /// The remedy.
        remedy: String,
    },
    /// A graph is not a valid operator sequence.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
}

impl OpenSize {
    /// Returns whether the tensor's whole shape must be given, because the size has no name.
    fn needs_shape(&self) -> bool {
        self.dim.is_none()
    }
}

/// Lists the open sizes, with the command-line options that set all of them.
fn open_sizes(open: &[OpenSize]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut shapes: Vec<String> = Vec::new();
    let mut tensors: Vec<&str> = Vec::new();
    let mut values: Vec<&str> = Vec::new();
    let mut most_letters = 0;
    for size in open {
        if let Some(name) = size.dim.as_deref().filter(|name| !names.contains(name)) {
            names.push(name);
        }
        for name in &size.deciding {
            if !values.contains(&name.as_str()) {
                values.push(name);
            }
        }
        if size.needs_shape()
            && size.deciding.is_empty()
            && !tensors.contains(&size.tensor.as_str())
        {
            tensors.push(&size.tensor);
            let (shape, letters) = shape_to_give(&size.tensor, open);
            shapes.push(shape);
            most_letters = most_letters.max(letters);
        }
    }
    let mut words = Vec::new();
    if !names.is_empty() {
        let names: Vec<String> = names.iter().map(|name| format!("{name}=N")).collect();
        words.push(option("--dim", &names.join(",")));
    }
    words.extend(shapes.iter().map(|shape| option("--shape", shape)));
    words.extend(values.iter().map(|name| option("--value", &format!("{name}=V"))));
    let count = names.len() + open.iter().filter(|size| size.needs_shape()).count();
    let what = if count == 1 { "a size is".to_owned() } else { format!("{count} sizes are") };
    let letters = match most_letters {
        0 | 1 => "each N".to_owned(),
        most => format!("each of {}", LETTERS[..most].join(", ")),
    };
    let give = match (names.is_empty() && tensors.is_empty(), values.is_empty()) {
        (true, _) => "give the value V of the input, with".to_owned(),
        (false, true) => format!("give the upper bound of {letters}, with"),
        (false, false) => format!("give the upper bound of {letters} and each value V, with"),
    };
    let mut text = format!("{what} not known before the run; {give}\n  {}", words.join(" "));
    if count > 1 && open.iter().all(|size| size.axis.is_some()) {
        text.push_str("\nor give some of them, and one size for all others with --dim-default N");
    } else if shapes.iter().any(|shape| shape.ends_with("=SHAPE")) {
        text.push_str("\nSHAPE is the largest size of each dimension, such as 1x128x768");
    }
    for size in open {
        let OpenSize { tensor, maker, axis, dim, reason, .. } = size;
        let [tensor, maker, reason] = [tensor, maker, reason].map(|words| printable(words));
        let name = dim.as_ref().map_or_else(String::new, |dim| format!("{}, ", printable(dim)));
        let which = axis.map_or("the shape".to_owned(), |axis| format!("dimension {axis}"));
        let _ = write!(text, "\n  {name}{which} of '{tensor}', {maker}: {reason}");
    }
    text
}

/// Stand-ins for the open sizes of a tensor.
const LETTERS: [&str; 6] = ["N", "M", "K", "L", "P", "Q"];

/// Formats a shape with its known sizes, such as `y=Nx4`; returns the number of different letters, too.
fn shape_to_give(tensor: &str, open: &[OpenSize]) -> (String, usize) {
    let of_tensor = || open.iter().filter(|size| size.tensor == tensor);
    let named = |axis: usize| of_tensor().any(|s| s.axis == Some(axis) && s.dim.is_some());
    let Some(shape) = of_tensor().find_map(|size| size.shape.as_ref()) else {
        return (format!("{tensor}=SHAPE"), 0);
    };
    let mut letters = 0;
    let mut dims: Vec<String> = Vec::with_capacity(shape.len());
    for (axis, dim) in shape.iter().enumerate() {
        dims.push(match dim {
            Some(size) => size.to_string(),
            None if named(axis) => "?".to_owned(),
            None => {
                letters = (letters + 1).min(LETTERS.len());
                LETTERS[letters - 1].to_owned()
            }
        });
    }
    (format!("{tensor}={}", dims.join("x")), letters)
}

/// An option with its value, as a shell and the command take it.
fn option(name: &str, value: &str) -> String {
    let joint = if value.starts_with('-') { '=' } else { ' ' };
    format!("{name}{joint}{}", quoted(value))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-=,./:".contains(c);
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

/// The reason why a mark, such as `?`, cannot be given a size.
fn no_name(name: &str) -> &'static str {
    if is_no_name(name) {
        "; it is no name: each dimension that is marked so has a size of its own, so give shapes with --shape"
    } else {
        ""
    }
}

/// The most inputs that an error lists.
const LISTED: usize = 8;

fn list_inputs(inputs: &[String]) -> String {
    let listed = inputs.iter().take(LISTED).map(|name| format!("'{name}'"));
    let listed = listed.collect::<Vec<_>>().join(", ");
    match inputs.len() {
        0 => "the model has no inputs".to_owned(),
        count @ ..=LISTED => {
            format!("its {} {listed}", if count == 1 { "input is" } else { "inputs are" })
        }
        count => format!("its inputs are {listed} and {} more", count - LISTED),
    }
}

fn known_dims(known: &[String]) -> String {
    if known.is_empty() {
        "all its dimensions are fixed".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    }
}
