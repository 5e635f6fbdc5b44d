//! ONNX models: the nodes of the main graph in another order or twice, and nothing else touched.
//!
//! The file is cut into its nodes and the bytes between them, and put together again in the new order. So
//! every node keeps its bytes, and weights, external data and fields that memplan does not know stay
//! unchanged. So do models with copies of nodes ([`expanded`]).

mod copies;

pub use copies::expanded;

use crate::import::onnx::{OnnxError, node_fields};

/// Returns the model with the nodes of its main graph in another order: `order` lists their places
/// in the file in the order in which they are to stand. [`Survey::node_order`] returns an execution
/// order; this function does not check that another order can run.
///
/// ```no_run
/// use memplan::{Planner, export, import::{ImportOptions, onnx}, order::default_limits};
///
/// let model = std::fs::read("model.onnx")?;
/// let survey = onnx::read_with_nodes(&model, &ImportOptions::default())?;
/// let found = Planner::new().plan_reordered(&survey.sequence, default_limits())?;
/// let nodes = survey.node_order(&found.change.order);
/// std::fs::write("reordered.onnx", export::onnx::permuted(&model, &nodes)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the bytes are not an ONNX model, the graph is stored in several pieces, or `order` does not
/// name every node once.
///
/// [`Survey::node_order`]: crate::import::onnx::Survey::node_order
pub fn permuted(model: &[u8], order: &[usize]) -> Result<Vec<u8>, OnnxError> {
    let fields = node_fields(model)?;
    let nodes = fields.len();
    let mut seen = vec![false; nodes];
    let is_new =
        |&node: &usize| seen.get_mut(node).is_some_and(|seen| !std::mem::replace(seen, true));
    if order.len() != nodes || !order.iter().all(is_new) {
        return Err(OnnxError::NotAPermutation { nodes });
    }
    let mut permuted = Vec::with_capacity(model.len());
    let mut end = 0;
    for (place, &node) in fields.iter().zip(order) {
        permuted.extend_from_slice(&model[end..place.start]);
        permuted.extend_from_slice(&model[fields[node].clone()]);
        end = place.end;
    }
    permuted.extend_from_slice(&model[end..]);
    Ok(permuted)
}
