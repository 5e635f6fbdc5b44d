//! ONNX models: graph, shapes and types; never the weights.
//!
//! [`read`] turns a model into an [`OpSequence`] in these passes:
//!
//! 1. `read`: the bytes are a protocol buffer that is whole and not nested too deep; the parser
//!    reads it; calls of the model's own functions become their bodies; each graph has names and an
//!    execution order;
//! 2. `infer`: shape and type of every tensor, declared, else inferred by the rules; folding
//!    computes the values that are known before the run; an operator whose sizes exclude each other is
//!    an error;
//! 3. `memory`: which outputs are views of an input, or may be written over one;
//! 4. `emit`: operators with sizes in bytes; `If`, `Loop` and `Scan` hold their bodies as sequences.
//!
//! Tensors that are the same in every run take no memory in the pool: initializers, constants, all that is
//! computed from them, and all that is computed from shapes. Operators that make only such tensors are left
//! out. Operators that must run after others without reading from them, such as random ones, declare that.
//!
//! ```
//! use memplan::import::{ImportOptions, onnx::{OnnxError, read}};
//!
//! let mut options = ImportOptions::default();
//! options.dims.insert("batch".to_owned(), 8.into());
//! let error = read(b"not a model", &options).unwrap_err();
//! assert!(matches!(error, OnnxError::NotOnnx { .. }));
//! ```

mod emit;
mod error;
mod infer;
mod inputs;
mod memory;
mod nodes;
pub(super) mod ops;
mod range;
mod read;
mod remedy;

pub use error::OnnxError;
pub use ops::operators;
use std::collections::{BTreeMap, BTreeSet};

use rten_onnx::onnx::{DataLocation, GraphProto, ModelProto, TensorProto};
use tracing::debug;

use crate::{
    Bytes, OpSequence,
    import::{ImportOptions, NotInPlace},
};
use nodes::Nodes;
use range::Impossible;
pub(crate) use read::wire::{Field, NODE, fields, graph_field, node_fields};
use read::{
    context::{Context, Unknown},
    functions::{Inlined, Opsets},
};

/// Reads an ONNX model. External data is not opened.
///
/// # Errors
///
/// If the bytes are not an ONNX model, the size of a tensor in bytes is unknown, or the graph is
/// not a valid sequence.
pub fn read(bytes: &[u8], options: &ImportOptions) -> Result<OpSequence, OnnxError> {
    read_with_nodes(bytes, options).map(|survey| survey.sequence)
}

/// Reads an ONNX model as [`read`] does, with the nodes of the file, so that they can be put into
/// another order.
///
/// # Errors
///
/// As [`read`].
pub fn read_with_nodes(bytes: &[u8], options: &ImportOptions) -> Result<Survey, OnnxError> {
    import(bytes, options, Unknown::Refused)
}

/// A model as a sequence, with facts that the sequence does not hold.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Survey {
    /// The operators.
    pub sequence: OpSequence,
    /// The outputs, by name, that are neither views nor request to be written over an input, with
    /// the reason.
    pub not_in_place: BTreeMap<Box<str>, &'static str>,
    /// The tensors whose size in bytes is unknown, by name. They have no bytes in the sequence, so
    /// a plan of it is meaningful only if there are none.
    pub unknown: BTreeSet<Box<str>>,
    /// A note on sizes in the given ranges with which the model cannot run, if there are any. A plan holds without
    /// them.
    pub impossible: Option<String>,
    /// The nodes of the file.
    pub(crate) nodes: Nodes,
    /// True if weights lie in other files, named relative to the model's own folder.
    pub has_external_data: bool,
}

impl Survey {
    /// The order of the file's nodes for an order of the steps of the sequence, for
    /// [`export::onnx::permuted`](crate::export::onnx::permuted).
    ///
    /// Nodes that are not operators of the sequence stay where they are, but a node that is now
    /// read earlier moves before its first reader, and one that must wait moves behind its
    /// predecessors. If the nodes of the file are in execution order, the order of the sequence
    /// changes nothing.
    #[must_use]
    pub fn node_order(&self, steps: &[usize]) -> Vec<usize> {
        self.nodes.order(steps)
    }

    /// The order in which the steps of the sequence run if the file's nodes run in this order. It may differ from
    /// the order given to [`node_order`](Self::node_order), because a call of a function is one node but several
    /// operators.
    #[must_use]
    pub fn step_order(&self, nodes: &[usize]) -> Vec<usize> {
        self.nodes.steps(nodes)
    }
}

/// Reads an ONNX model together with the reasons why outputs are not written over inputs. Sizes may
/// remain unknown.
///
/// # Errors
///
/// If the bytes are not an ONNX model, the graph is invalid, or its declarations contradict it.
pub fn survey(bytes: &[u8], options: &ImportOptions) -> Result<Survey, OnnxError> {
    import(bytes, options, Unknown::Kept)
}

fn import(bytes: &[u8], options: &ImportOptions, unknown: Unknown) -> Result<Survey, OnnxError> {
    let mut model = parse(bytes)?;
    read::optionals::unwrap(bytes, &mut model)?;
    read::placeholders::remove(&mut model);
    let mut nodes = model.graph.as_ref().map(Nodes::new).unwrap_or_default();
    let Inlined { opsets, file_places } = read::functions::inline(bytes, &mut model)?;
    let no_graph = || OnnxError::NotOnnx { reason: "it holds no graph".to_owned() };
    let graph = model.graph.as_ref().ok_or_else(no_graph)?;
    let reader = Reader { model: &model, graph, opsets: &opsets, unknown };
    let Reading { sequence, not_in_place, unknown, places, with_state, impossible, .. } =
        range::read(&reader, options).map_err(|error| inputs::with_deciding(graph, error))?;
    let file_place = |&place: &usize| file_places[place];
    let with_state: Vec<usize> = with_state.iter().map(file_place).collect();
    nodes.finish(places.iter().map(file_place).collect(), &with_state);
    debug!(
        target: "memplan::import",
        nodes = graph.node.len(),
        operators = sequence.operators().len(),
        tensors = sequence.tensors().len(),
        "read an ONNX model",
    );
    let is_external = |tensor: &TensorProto| tensor.data_location == Some(DataLocation::EXTERNAL);
    let has_external_data = graph.initializer.iter().any(is_external);
    let impossible = impossible.map(|impossible| impossible.to_string());
    Ok(Survey { sequence, not_in_place, unknown, impossible, nodes, has_external_data })
}

/// A model that is parsed and can be read with several options.
struct Reader<'m> {
    model: &'m ModelProto,
    graph: &'m GraphProto,
    opsets: &'m Opsets,
    unknown: Unknown,
}

/// The model as its options make it.
struct Reading {
    sequence: OpSequence,
    not_in_place: BTreeMap<Box<str>, &'static str>,
    unknown: BTreeSet<Box<str>>,
    /// By step: the place of its node in the graph.
    places: Vec<usize>,
    /// The places of nodes with a state.
    with_state: Vec<usize>,
    /// The sizes of the outputs of the nodes that do not run, because they are known before the run.
    known: Vec<(Box<str>, Bytes)>,
    impossible: Option<Impossible>,
}

impl Reader<'_> {
    fn read(&self, options: &ImportOptions) -> Result<Reading, OnnxError> {
        let context = Context::new(self, options)?;
        context.check_related()?;
        let inputs = infer::graph_inputs(self.graph, &context)?;
        if !context.keeps_unknown() {
            context
                .findings
                .check_open()
                .map_err(|error| inputs::with_unavoidable(self, options, error))?;
        }
        let sequenced = emit::sequence(self.graph, &context, inputs, None, emit::Returns::new())?;
        let owned = |(name, why): (&str, NotInPlace)| (name.into(), why.reason());
        Ok(Reading {
            sequence: sequenced.sequence,
            not_in_place: sequenced.not_in_place.into_iter().map(owned).collect(),
            unknown: sequenced.unknown.into_iter().map(Into::into).collect(),
            places: sequenced.places,
            with_state: sequenced.with_state,
            known: sequenced.known.into_iter().map(|(name, size)| (name.into(), size)).collect(),
            impossible: None,
        })
    }
}

fn parse(bytes: &[u8]) -> Result<ModelProto, OnnxError> {
    read::wire::check(bytes)?;
    ModelProto::parse_buf(bytes).map_err(|error| OnnxError::NotOnnx { reason: error.to_string() })
}
