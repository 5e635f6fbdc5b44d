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
    import::onnx::{
        ops::{
            op::Op,
            row::{InPlace, Kernel, Row},
        },
        read::{element, fact::Fact},
    },
};

/// The memory in which a tensor lies: whose it is, and where in it.
pub(crate) type Place<'a> = (&'a str, Bytes);

/// An input, and whether the kernel reads it in the order in which it writes.
#[derive(Clone, Copy)]
struct Input<'a, 'f> {
    name: &'a str,
    fact: &'f Fact,
    operand: bool,
}

/// The inputs that an output may be written over, best first. `place` says in whose memory
/// an input lies. What only looks as if it could be written over is told.
pub(crate) fn requests<'a>(
    op: &Op<'a, '_>,
    row: Option<&Row>,
    index: usize,
    output: &Fact,
    place: impl Fn(&'a str) -> Place<'a>,
) -> Vec<&'a str> {
    let Some(InPlace::Over(operands)) = row.map(|row| row.in_place) else { return Vec::new() };
    if operands.kernel != Kernel::Elementwise || !operands.outputs.contains(&index) {
        return Vec::new();
    }
    let inputs: Vec<Input> = (0..op.inputs.len())
        .filter_map(|index| {
            let (name, fact) = (op.node.input(index)?, op.input(index)?);
            Some(Input { name, fact, operand: operands.may_lie_over(index) })
        })
        .collect();
    // Whose memory is read in more than one order.
    let mut readers: HashMap<&str, (Place, Input)> = HashMap::new();
    let mut conflicts: HashSet<&str> = HashSet::new();
    for &input in &inputs {
        let memory = place(input.name);
        let &mut (first_memory, first) = match readers.entry(memory.0) {
            Entry::Occupied(reader) => reader.into_mut(),
            Entry::Vacant(reader) => {
                reader.insert((memory, input));
                continue;
            }
        };
        let same_order = memory == first_memory && same_layout(input.fact, first.fact);
        if !(input.operand && first.operand && same_order) {
            conflicts.insert(memory.0);
        }
    }
    let mut seen = HashSet::new();
    let fitting = inputs
        .iter()
        .filter(|input| input.operand && !input.fact.constant && same_layout(input.fact, output))
        .map(|input| input.name)
        .filter(|name| seen.insert(*name));
    let safe = |name: &&'a str| {
        let reason = if conflicts.contains(place(name).0) {
            "another input reads the same memory in another order"
        } else if let Some(unless) = operands.unless
            && (unless.when)(op)
        {
            unless.reason
        } else {
            return true;
        };
        debug!(
            target: "memplan::import",
            operator = op.node.label(),
            output = op.node.0.output[index],
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
    let width = |fact: &Fact| fact.element.and_then(element::bits);
    a.sizes().is_some() && a.sizes() == b.sizes() && width(a) == width(b)
}
