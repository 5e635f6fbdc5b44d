//! Sizes that the inputs of a model leave open. What follows from them is not asked for; but sizes that stay
//! unknown whatever the inputs are can be given with the same command.

use std::collections::{HashMap, HashSet};

use rten_onnx::onnx::GraphProto;

use crate::import::{
    ImportOptions, OpenSize,
    onnx::{
        OnnxError, Reader,
        infer::{INPUT, UNKNOWN_OPERATOR},
        read::node::Node,
    },
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
        let Err(error) = reader.read(&options) else { return error_of(open) };
        let OnnxError::OpenSizes { open: asked } = with_deciding(reader.graph, error) else {
            return error_of(open);
        };
        unavoidable = Some(match unavoidable {
            None => asked.into_iter().filter(is_independent).collect(),
            Some(known) => known.into_iter().filter(|size| asked.contains(size)).collect(),
        });
    }
    open.extend(unavoidable.into_iter().flatten().filter(|size| size.maker != INPUT));
    error_of(open)
}

/// Returns whether a size may be open whatever the inputs are. A shape of which nothing is known mostly follows from
/// sizes that were only tried, unless memplan does not know its operator or a value decides it.
fn is_independent(size: &OpenSize) -> bool {
    size.axis.is_some() || !size.deciding.is_empty() || size.reason.starts_with(UNKNOWN_OPERATOR)
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

/// Names the inputs of the model whose value decides the shape of an open tensor: it is made by an `If` or in one of
/// its branches, and the condition follows from them alone. Each `If` is named once.
pub(super) fn with_deciding(graph: &GraphProto, error: OnnxError) -> OnnxError {
    let OnnxError::OpenSizes { open } = error else { return error };
    let mut made = Vec::new();
    collect(graph, None, &mut made);
    let branches: HashMap<&str, Node> = made
        .iter()
        .filter_map(|&(node, around)| Some((node, around.or_else(|| if_node(node))?)))
        .flat_map(|(node, condition)| node.outputs().map(move |(_, name)| (name, condition)))
        .collect();
    let nodes: Vec<Node> = made.iter().map(|&(node, _)| node).collect();
    let mut asked: Vec<OpenSize> = Vec::new();
    for mut size in open {
        let branch = branches.get(&*size.tensor).filter(|_| size.maker != INPUT);
        let condition = branch.and_then(|node| node.input(0));
        let deciding = condition.and_then(|name| deciding(graph, &nodes, name));
        if let (Some(deciding), Some(branch)) = (deciding.filter(|names| !names.is_empty()), branch)
        {
            if asked.iter().any(|known| known.deciding == deciding) {
                continue;
            }
            let names: Vec<String> = deciding.iter().map(|name| format!("'{name}'")).collect();
            size.reason = format!("the value of {} decides which branch runs", names.join(" and "));
            branch.outputs().next().map_or("", |(_, name)| name).clone_into(&mut size.tensor);
            size.maker = format!("made by operator {}", branch.label());
            (size.axis, size.dim, size.shape) = (None, None, None);
            size.deciding = deciding;
        }
        asked.push(size);
    }
    OnnxError::OpenSizes { open: asked }
}

/// The node, if it is an `If`.
fn if_node(node: Node<'_>) -> Option<Node<'_>> {
    Some(node).filter(|node| node.kind() == "If")
}

/// Collects all nodes, each with the outermost `If` around it.
fn collect<'a>(
    graph: &'a GraphProto,
    around: Option<Node<'a>>,
    made: &mut Vec<(Node<'a>, Option<Node<'a>>)>,
) {
    for node in graph.node.iter().map(Node) {
        made.push((node, around));
        let around = around.or_else(|| if_node(node));
        node.bodies().for_each(|body| collect(body, around, made));
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
