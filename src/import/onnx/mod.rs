//! ONNX models: graph, shapes and types; never the weights.
//!
//! [`read`] makes an [`OpSequence`] of a model in these passes:
//!
//! 1. `read`: the bytes are a protocol buffer that is whole and not nested too deep; the parser
//!    reads it; calls of the model's own functions become their bodies; each graph has names and an
//!    execution order;
//! 2. `infer`: shape and type of every tensor, declared, else inferred by the rules; folding
//!    computes the values that are known before the run;
//! 3. `memory`: which outputs are views of an input, or may be written over one;
//! 4. `emit`: operators with sizes in bytes; the bodies of `If`, `Loop` and `Scan` become workspace.
//!
//! Tensors that are the same in every run take no memory in the pool: initializers, constants, all
//! that is computed from them, and all that is computed from shapes. Operators that make only such
//! tensors are left out.
//!
//! ```
//! use memplan::import::{ImportOptions, onnx::{OnnxError, read}};
//!
//! let mut options = ImportOptions::default();
//! options.dims.insert("batch".to_owned(), 8);
//! let error = read(b"not a model", &options).unwrap_err();
//! assert!(matches!(error, OnnxError::NotOnnx { .. }));
//! ```

mod emit;
mod error;
mod infer;
mod memory;
mod ops;
mod read;

pub use error::OnnxError;
pub use ops::{KnownOperator, operators};
use rten_onnx::onnx::ModelProto;
use tracing::debug;

use crate::{OpSequence, import::ImportOptions};

/// Reads an ONNX model. External data is not opened.
///
/// # Errors
///
/// If the bytes are no ONNX model, or the size of a tensor in bytes cannot be known, or the graph
/// makes no sense as a sequence.
pub fn read(bytes: &[u8], options: &ImportOptions) -> Result<OpSequence, OnnxError> {
    let mut model = parse(bytes)?;
    let opsets = read::functions::inline(bytes, &mut model)?;
    let no_graph = || OnnxError::NotOnnx { reason: "it holds no graph".to_owned() };
    let graph = model.graph.as_ref().ok_or_else(no_graph)?;
    let context = read::model::Context::new(&model, graph, &opsets, options)?;
    let inputs = graph.input.iter().map(|value| context.declared(value)).collect();
    let sequence = emit::sequence(graph, &context, inputs, None)?.sequence;
    debug!(
        target: "memplan::import",
        nodes = graph.node.len(),
        operators = sequence.operators().len(),
        tensors = sequence.tensors().len(),
        "read an ONNX model",
    );
    Ok(sequence)
}

fn parse(bytes: &[u8]) -> Result<ModelProto, OnnxError> {
    read::wire::check(bytes)?;
    ModelProto::parse_buf(bytes).map_err(|error| OnnxError::NotOnnx { reason: error.to_string() })
}
