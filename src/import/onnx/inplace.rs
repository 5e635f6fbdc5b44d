//! Write dependencies: outputs that may be written over an input.
//!
//! An element-wise operator reads an element for the last time just before it writes the one at
//! the same place. So its output may be written over any input of its own shape and width, unless
//! another input reads the same memory in another order: through a view at another offset, or
//! broadcast from another shape.

use crate::{
    Bytes,
    import::onnx::{elementwise, fact::Fact, op::Op, types},
};

/// The memory in which a tensor lies: whose it is, and where in it.
pub(super) type Place<'a> = (&'a str, Bytes);

/// The inputs that the first output may be written over, best first. `place` says in whose memory
/// an input lies.
pub(super) fn requests<'a>(
    op: &Op<'a, '_>,
    output: &Fact,
    place: impl Fn(&'a str) -> Place<'a>,
) -> Vec<&'a str> {
    let kind = op.node.kind();
    let aligned = elementwise::UNARY.contains(&kind) || elementwise::NARY.contains(&kind);
    let scaled = kind == "BatchNormalization" && !trains(op);
    if !op.node.is_known() || !(aligned || scaled) {
        return Vec::new();
    }
    let inputs: Vec<(&'a str, &Fact)> = (0..op.inputs.len())
        .filter_map(|index| Some((op.node.input(index)?, op.input(index)?)))
        .collect();
    let candidates = if scaled { 1 } else { inputs.len() };
    let mut requests: Vec<&'a str> = Vec::new();
    for (index, &(name, fact)) in inputs.iter().enumerate().take(candidates) {
        let memory = place(name);
        let conflicts = inputs.iter().enumerate().any(|(other, &(other_name, other_fact))| {
            let other_memory = place(other_name);
            let same_elements = aligned && other_memory == memory && same_layout(fact, other_fact);
            other != index && other_memory.0 == memory.0 && !same_elements
        });
        if !fact.constant && same_layout(fact, output) && !conflicts && !requests.contains(&name) {
            requests.push(name);
        }
    }
    requests
}

/// The same shape, and elements of the same width.
fn same_layout(a: &Fact, b: &Fact) -> bool {
    let width = |fact: &Fact| fact.element.and_then(types::bits);
    a.sizes().is_some() && a.sizes() == b.sizes() && width(a) == width(b)
}

/// Whether a `BatchNormalization` trains: it says so, or it gives statistics.
fn trains(op: &Op) -> bool {
    op.node.int("training_mode").unwrap_or(0) != 0 || op.node.outputs().count() > 1
}
