//! Write dependencies: outputs that may be written over an input.
//!
//! An element-wise operator reads an element for the last time just before it writes the one at
//! the same place. So its output may be written over any input of its own shape and width, unless
//! another input reads the same memory in another order: through a view at another offset, or
//! broadcast from another shape.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use tracing::debug;

use crate::{
    Bytes,
    import::onnx::{infer::elementwise, read::fact::Fact, read::op::Op, read::types},
};

/// The memory in which a tensor lies: whose it is, and where in it.
pub(crate) type Place<'a> = (&'a str, Bytes);

/// The inputs that the first output may be written over, best first. `place` says in whose memory
/// an input lies. What only looks as if it could be written over is told.
pub(crate) fn requests<'a>(
    op: &Op<'a, '_>,
    output: &Fact,
    place: impl Fn(&'a str) -> Place<'a>,
) -> Vec<&'a str> {
    let kind = op.node.kind();
    let aligned = elementwise::UNARY.contains(&kind) || elementwise::NARY.contains(&kind);
    let scaled = kind == "BatchNormalization";
    if !op.node.is_known() || !(aligned || scaled) {
        return Vec::new();
    }
    let inputs: Vec<(&'a str, &Fact)> = (0..op.inputs.len())
        .filter_map(|index| Some((op.node.input(index)?, op.input(index)?)))
        .collect();
    // Who reads the same memory, in the same order or not.
    let mut readers: HashMap<&str, (Place, &Fact)> = HashMap::new();
    let mut conflicts: HashSet<&str> = HashSet::new();
    for &(name, fact) in &inputs {
        let memory = place(name);
        let &mut (first, first_fact) = match readers.entry(memory.0) {
            Entry::Occupied(reader) => reader.into_mut(),
            Entry::Vacant(reader) => {
                reader.insert((memory, fact));
                continue;
            }
        };
        if !(aligned && memory == first && same_layout(fact, first_fact)) {
            conflicts.insert(memory.0);
        }
    }
    let candidates = if scaled { 1 } else { inputs.len() };
    let mut seen = HashSet::new();
    let fitting = inputs
        .iter()
        .take(candidates)
        .filter(|(_, fact)| !fact.constant && same_layout(fact, output))
        .map(|&(name, _)| name)
        .filter(|name| seen.insert(*name));
    let safe = |name: &&'a str| {
        let reason = if conflicts.contains(place(name).0) {
            "another input reads the same memory in another order"
        } else if scaled && trains(op) {
            "the operator trains, and reads its input again for the statistics"
        } else {
            return true;
        };
        debug!(
            target: "memplan::import",
            operator = op.node.label(),
            output = op.node.outputs().next().map(|(_, name)| name),
            input = *name,
            reason,
            "in-place request dropped",
        );
        false
    };
    fitting.filter(safe).collect()
}

/// The same shape, and elements of the same width.
fn same_layout(a: &Fact, b: &Fact) -> bool {
    let width = |fact: &Fact| fact.element.and_then(types::bits);
    a.sizes().is_some() && a.sizes() == b.sizes() && width(a) == width(b)
}

/// Before this opset a `BatchNormalization` trains unless it says that it is a test.
const TRAINS_UNLESS_TEST: i64 = 7;

/// Whether a `BatchNormalization` trains: it says so, or it gives statistics.
fn trains(op: &Op) -> bool {
    let flag = |name: &str| op.node.int(name).unwrap_or(0) != 0;
    flag("training_mode")
        || op.node.outputs().count() > 1
        || (op.opset < TRAINS_UNLESS_TEST && !flag("is_test"))
}
