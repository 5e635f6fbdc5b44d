//! Sizes that the inputs of a model leave open. What follows from them is not asked for; but sizes that stay
//! unknown whatever the inputs are can be given with the same command.

use std::collections::{HashMap, HashSet};

use rten_onnx::onnx::GraphProto;

use crate::import::{
    ImportOptions,
    onnx::{OnnxError, OpenSize, Reader, infer::INPUT, read::node::Node},
};

/// Sizes to try for the open ones: a model that is asked for a size with each of them is asked for it always.
/// They are large, so that no window is larger than its input.
const TRIED: [u64; 2] = [1 << 10, 96_000];

/// Adds the sizes that stay open whatever the sizes of the inputs are.
pub(super) fn with_unavoidable(
    reader: &Reader,
    options: &ImportOptions,
    error: OnnxError,
) -> OnnxError {
    let OnnxError::OpenSizes { mut open } = error else { return error };
    let mut unavoidable: Option<Vec<OpenSize>> = None;
    for size in TRIED {
        let Some(options) = with_inputs(options, &open, size) else { return error_of(open) };
        let Err(OnnxError::OpenSizes { open: asked }) = reader.read(&options) else {
            return error_of(open);
        };
        let same = |a: &OpenSize, b: &OpenSize| (&a.tensor, a.axis) == (&b.tensor, b.axis);
        unavoidable = Some(match unavoidable {
            None => asked,
            Some(known) => known.into_iter().filter(|a| asked.iter().any(|b| same(a, b))).collect(),
        });
    }
    open.extend(unavoidable.into_iter().flatten().filter(|size| size.maker != INPUT));
    error_of(open)
}

fn error_of(open: Vec<OpenSize>) -> OnnxError {
    OnnxError::OpenSizes { open }
}

/// The options with a size for everything that the inputs leave open; `None` if an input may have any number of
/// dimensions.
fn with_inputs(options: &ImportOptions, open: &[OpenSize], size: u64) -> Option<ImportOptions> {
    let mut options = options.clone();
    for OpenSize { tensor, axis, dim, shape, .. } in open {
        let axis = (*axis)?;
        if let Some(name) = dim {
            options.dims.insert(name.clone(), size.into());
            continue;
        }
        let shape = options
            .shapes
            .entry(tensor.clone())
            .or_insert_with(|| vec![None; shape.as_ref().map_or(axis + 1, Vec::len)]);
        *shape.get_mut(axis)? = Some(size);
    }
    Some(options)
}

/// Names the inputs of the model whose value decides the shape of an open tensor: it is made by an `If`, and the
/// condition follows from them alone.
pub(super) fn with_deciding(graph: &GraphProto, error: OnnxError) -> OnnxError {
    let OnnxError::OpenSizes { mut open } = error else { return error };
    let mut nodes = Vec::new();
    collect(graph, &mut nodes);
    for size in &mut open {
        let made = |node: &&Node| node.kind() == "If" && node.0.output.contains(&size.tensor);
        let Some(condition) = nodes.iter().find(made).and_then(|node| node.input(0)) else {
            continue;
        };
        size.deciding = deciding(graph, &nodes, condition).unwrap_or_default();
        if !size.deciding.is_empty() {
            let names: Vec<String> = size.deciding.iter().map(|name| format!("'{name}'")).collect();
            size.reason = format!("the value of {} decides which branch runs", names.join(" and "));
        }
    }
    OnnxError::OpenSizes { open }
}

fn collect<'a>(graph: &'a GraphProto, nodes: &mut Vec<Node<'a>>) {
    for node in graph.node.iter().map(Node) {
        nodes.push(node);
        node.bodies().for_each(|body| collect(body, nodes));
    }
}

/// The largest number of inputs to ask for.
const MAX_DECIDING: usize = 3;

/// The inputs that a tensor follows from; `None` if there are many, or if an operator depends on more than its
/// inputs.
fn deciding(graph: &GraphProto, nodes: &[Node], condition: &str) -> Option<Vec<String>> {
    let makers: HashMap<&str, &Node> =
        nodes.iter().flat_map(|node| node.outputs().map(move |(_, name)| (name, node))).collect();
    let is_input = |name: &str| graph.input.iter().any(|value| value.name.as_deref() == Some(name));
    let (mut found, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![condition]);
    while let Some(name) = next.pop() {
        if !seen.insert(name) {
            continue;
        }
        match makers.get(name) {
            // The shape of a tensor is not its value.
            Some(node) if matches!(node.kind(), "Shape" | "Size") => {}
            Some(node) if node.bodies().next().is_some() => return None,
            Some(node) => next.extend(node.inputs()),
            None if is_input(name) => found.push(name.to_owned()),
            None => {}
        }
    }
    found.sort_unstable();
    (found.len() <= MAX_DECIDING).then_some(found)
}
