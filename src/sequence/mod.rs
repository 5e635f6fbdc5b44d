//! The operator sequence: the input that a framework supplies.
//!
//! It lists operators in execution order, each with input and output tensors by name. An output is *fresh*
//! memory, or *reads* an input (it is a view of it), or *overwrites* one (it may, or must, be written over
//! it), or *gathers* several (it holds copies of them). An [`OpSequence`] is checked when it is built, from
//! [operators](crate::Operator) with [outputs](crate::Output); [`SequenceError`] says what is wrong.
//!
//! ```
//! use memplan::{OpSequence, Operator, Output};
//!
//! let sequence = OpSequence::builder()
//!     .input("x", 4096)
//!     .operator(Operator::new("conv").inputs(["x"]).output(Output::new("a", 8192)))
//!     .operator(Operator::new("relu").inputs(["a"]).output(Output::new("b", 8192).overwrites("a")))
//!     .operator(Operator::new("flatten").inputs(["b"]).output(Output::new("y", 8192).reads("b")))
//!     .output("y")
//!     .build()?;
//! assert_eq!(sequence.operators().len(), 3);
//! # Ok::<(), memplan::SequenceError>(())
//! ```

mod after;
mod bodies;
mod builder;
mod captured;
mod check;
mod control;
mod cost;
pub(crate) mod declare;
mod dims;
pub(crate) mod error;
#[cfg(feature = "serde")]
mod file;
mod given;
mod order;
mod precedence;
mod streams;
mod ties;
mod used_tensors;
mod uses;
#[cfg(feature = "onnx")]
pub(crate) mod widen;

pub use builder::SequenceBuilder;
pub(crate) use declare::TensorType;
pub use declare::{Dependency, Gather, Overwrite, SizeBasis};
pub use dims::DimRange;
pub(crate) use error::SequenceError;
#[cfg(feature = "serde")]
pub(crate) use file::SequenceFile;
pub(crate) use ties::Tie;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::Bytes;

/// The index of a tensor in its [`OpSequence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub u32);

impl TensorId {
    /// The id as an index into a table with an entry per tensor.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("a sequence has fewer than 2^32 tensors"))
    }
}

/// The origin of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Supplied from outside for this run.
    Input,
    /// Supplied from outside, the same in every run.
    Weight,
    /// Produced by an operator.
    Output {
        /// The step of the operator.
        step: usize,
        /// The way in which the tensor's memory depends on the operator's inputs.
        dependency: Dependency<TensorId>,
    },
}

/// A value with a size in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tensor {
    /// Its name, unique in the sequence.
    pub name: Box<str>,
    /// Its size in bytes; `None` only for a weight of unknown size.
    pub size: Option<Bytes>,
    /// The basis of its size.
    pub basis: SizeBasis,
    /// Its element type and shape, if they are known.
    pub(crate) elements: Option<TensorType>,
    /// Its origin.
    pub origin: Origin,
}

impl Tensor {
    /// The type of its elements, if it is known, by its name in `NumPy` if it has one there, such as `float32`.
    #[must_use]
    pub fn dtype(&self) -> Option<&str> {
        self.elements.as_ref().map(|of| &*of.dtype)
    }

    /// The elements along each dimension, if they are known; the largest shape if it differs from run to run.
    #[must_use]
    pub fn shape(&self) -> Option<&[u64]> {
        self.elements.as_ref().map(|of| &*of.shape)
    }

    /// The tensor that it may be a view of, and the offset there in bytes.
    pub(crate) const fn viewed(&self) -> Option<(TensorId, Bytes)> {
        match self.origin {
            Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. } => {
                Some((input, offset))
            }
            _ => None,
        }
    }

    /// The step of the operator that produces it, if any does.
    pub(crate) const fn producer(&self) -> Option<usize> {
        match self.origin {
            Origin::Output { step, .. } => Some(step),
            Origin::Input | Origin::Weight => None,
        }
    }
}

/// An operator of a checked sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorNode {
    /// Its name; need not be unique, may be empty.
    pub name: Box<str>,
    /// Its kind, such as `Conv`; may be empty.
    pub kind: Box<str>,
    /// The tensors it reads.
    pub inputs: Vec<TensorId>,
    /// The tensors it produces.
    pub outputs: Vec<TensorId>,
    /// The steps of the operators that it is declared to run after, ascending and without repeats.
    pub after: Vec<usize>,
    /// The stream that it runs on; see [`Operator::on_stream`](crate::Operator::on_stream).
    pub stream: usize,
    /// Bytes of scratch memory that it needs while it runs.
    pub workspace: Bytes,
    /// The cost of running it once, in any unit; see [`Operator::cost`](crate::Operator::cost).
    pub cost: u64,
    /// True if it must not run twice; see [`Operator::once`](crate::Operator::once).
    pub once: bool,
    /// The sequences that it runs, one at a time; see [`Operator::body`](crate::Operator::body).
    pub bodies: Vec<OpSequence>,
    /// True if it runs bodies that are planned, whose pools lie in its workspace.
    pub(crate) runs_bodies: bool,
}

/// A checked operator sequence, in execution order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "SequenceFile", into = "SequenceFile")
)]
pub struct OpSequence {
    /// Every operator comes after the producers of its inputs and the operators that it must run
    /// after.
    operators: Vec<OperatorNode>,
    /// Names are unique. Outputs name their operator in `operators`.
    tensors: Vec<Tensor>,
    /// Tensors that must survive the whole sequence; no repeats.
    outputs: Vec<TensorId>,
    /// The tensors by name; a function of `tensors`.
    ids: HashMap<Box<str>, TensorId>,
    /// The levels of bodies within bodies: 0 if no operator has a body.
    depth: usize,
    /// The tensors that bodies update, ascending, if workspace has taken the place of these bodies.
    updated_in_bodies: Vec<TensorId>,
    /// The sizes of dimensions for which the sequence is valid, by name; empty if all sizes are fixed.
    dims: BTreeMap<Box<str>, DimRange>,
    given: given::Given,
}

impl OpSequence {
    /// Starts an empty sequence.
    #[must_use]
    pub fn builder() -> SequenceBuilder {
        SequenceBuilder::default()
    }

    /// The operators in execution order; the index is the step.
    #[must_use]
    pub fn operators(&self) -> &[OperatorNode] {
        &self.operators
    }

    /// All tensors, by [`TensorId`].
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// One tensor.
    ///
    /// # Panics
    ///
    /// If the id belongs to another sequence with more tensors.
    #[must_use]
    pub fn tensor(&self, tensor: TensorId) -> &Tensor {
        &self.tensors[tensor.index()]
    }

    /// The id of a tensor, by its name.
    #[must_use]
    pub fn tensor_id(&self, name: &str) -> Option<TensorId> {
        self.ids.get(name).copied()
    }

    /// The names of the workspaces, by step: `conv.workspace` for the workspace of `conv`. If a tensor or an
    /// earlier workspace already has that name, the step is appended, so that names are unique. `None` for
    /// an operator without workspace.
    #[must_use]
    pub fn workspace_names(&self) -> Vec<Option<Box<str>>> {
        let mut given: HashSet<Box<str>> = HashSet::new();
        let mut names = Vec::with_capacity(self.operators.len());
        for (step, operator) in self.operators.iter().enumerate() {
            names.push((operator.workspace > 0).then(|| {
                let mut name: Box<str> = format!("{}.workspace", self.operator_name(step)).into();
                while self.ids.contains_key(&name) || !given.insert(name.clone()) {
                    name = format!("{name}.{step}").into();
                }
                name
            }));
        }
        names
    }

    /// The graph outputs, which live to the end of the sequence.
    #[must_use]
    pub fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// The dimensions whose sizes may differ from run to run, by name. Every tensor has its size at the largest
    /// dimensions, and all views, overwrites and gathers are valid for all sizes in the ranges.
    #[must_use]
    pub const fn dims(&self) -> &BTreeMap<Box<str>, DimRange> {
        &self.dims
    }

    /// Returns true if an output gathers inputs.
    #[must_use]
    pub fn has_gathers(&self) -> bool {
        self.gathers().next().is_some()
    }

    /// The gathered inputs of all outputs.
    pub(crate) fn gathers(&self) -> impl Iterator<Item = &Gather<TensorId>> {
        self.tensors.iter().flat_map(|tensor| match &tensor.origin {
            Origin::Output { dependency: Dependency::Gathers(gathers), .. } => &gathers[..],
            _ => &[],
        })
    }

    /// The name of an operator in messages: its own or, without one, its kind and step.
    ///
    /// # Panics
    ///
    /// If the sequence has no such step.
    #[must_use]
    pub fn operator_name(&self, step: usize) -> String {
        let operator = &self.operators[step];
        declare::display_name(&operator.name, &operator.kind, step)
    }
}
