//! Placeholders in a model: names of dimensions that name nothing, and empty types.

use std::collections::BTreeMap;

use rten_onnx::onnx::{Dimension, GraphProto, ModelProto, TypeProto, ValueInfoProto};

/// Returns whether a dimension of this name has no name: it is a mark, such as `?`, that exporters write for
/// every size that they do not know.
fn is_mark(name: &str) -> bool {
    !name.chars().any(char::is_alphanumeric)
}

/// Words that stand for an unknown size if several dimensions have them, and for a name otherwise.
const WORDS: [&str; 6] = ["-1", "none", "null", "nan", "unknown", "dynamic"];

fn is_word(name: &str) -> bool {
    WORDS.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns whether some models have dimensions of this name that are not called so.
pub(crate) fn is_no_name(name: &str) -> bool {
    is_mark(name) || is_word(name)
}

/// Removes the names of dimensions that are none, so that two unknown sizes are two.
pub(crate) fn remove(model: &mut ModelProto) {
    let Some(graph) = model.graph.as_mut() else { return };
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    let names = graph.input.iter_mut().flat_map(dimensions).filter_map(|dim| dim.dim_param.clone());
    for name in names.filter(|name| is_word(name)) {
        *words.entry(name).or_default() += 1;
    }
    words.retain(|_, count| *count > 1);
    remove_from(graph, &words);
}

fn remove_from(graph: &mut GraphProto, words: &BTreeMap<String, usize>) {
    let values = graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info);
    for dim in values.flat_map(dimensions) {
        dim.dim_param =
            dim.dim_param.take().filter(|name| !is_mark(name) && !words.contains_key(name));
    }
    for body in bodies(graph) {
        remove_from(body, words);
    }
}

fn dimensions(value: &mut ValueInfoProto) -> impl Iterator<Item = &mut Dimension> {
    let tensor = value.r#type.as_mut().and_then(|of| of.tensor_type.as_mut());
    tensor.and_then(|tensor| tensor.shape.as_mut()).into_iter().flat_map(|shape| &mut shape.dim)
}

fn bodies(graph: &mut GraphProto) -> impl Iterator<Item = &mut GraphProto> {
    let attributes = graph.node.iter_mut().flat_map(|node| &mut node.attribute);
    attributes.filter_map(|attribute| attribute.g.as_mut())
}

/// Returns whether a type is one of those that the parser reads.
pub(crate) fn states_something(of: &TypeProto) -> bool {
    of.tensor_type.is_some() || of.sequence.is_some()
}

/// Removes the types of sub-graphs that state nothing. Exporters declare results of branches so.
pub(crate) fn remove_empty_types(graph: &mut GraphProto) {
    for body in bodies(graph) {
        let values = body.input.iter_mut().chain(&mut body.output).chain(&mut body.value_info);
        for value in values {
            value.r#type = value.r#type.take().filter(states_something);
        }
        remove_empty_types(body);
    }
}
