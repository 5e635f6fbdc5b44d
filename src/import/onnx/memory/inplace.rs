//! Write dependencies: outputs that may be written over an input.
//!
//! An element-wise operator reads an element for the last time just before it writes the one at the
//! same place; a row-wise one reads a row before it overwrites the row. So its output may be
//! written over an operand of its own shape and width, unless another input reads the same memory
//! in another order: through a view at another offset, or broadcast from another shape. The caller
//! states whether the runtime's kernels work in this way.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use tracing::debug;

use crate::{
    Bytes,
    import::{
        Kernels, NotInPlace,
        onnx::{
            memory::onnxruntime,
            ops::{
                op::Op,
                row::{Domain, InPlace, Kernel, Operands, Row},
            },
            read::{element, fact::Fact},
        },
    },
};

/// The memory in which a tensor lies: the tensor that owns it, and the offset there in bytes.
pub(crate) type Place<'a> = (&'a str, Bytes);

/// An input. It is an operand if the kernel reads it in the order in which it writes.
#[derive(Clone, Copy)]
struct Input<'a, 'f> {
    name: &'a str,
    fact: &'f Fact,
    operand: bool,
}

/// The reason why most kernels of ONNX Runtime do not work in place.
pub(crate) const NOT_IN_ONNXRUNTIME: &str = "its kernel in ONNX Runtime does not work in place";

/// Returns the inputs that an output may be written over, if the kernels work as the caller states.
fn operands(op: &Op, row: Option<&Row>, kernels: &Kernels) -> Result<Operands, NotInPlace> {
    if kernels.is_onnxruntime() {
        return onnxruntime::operands(op).ok_or(NotInPlace::Kernel(NOT_IN_ONNXRUNTIME));
    }
    let over = row.map(|row| row.in_place);
    let named = if Domain::from_name(op.node.domain()).is_some() {
        kernels.named(op.node.kind())
    } else {
        kernels.named(&format!("{}/{}", op.node.domain(), op.node.kind()))
    };
    match (named.map(Kernel::of), over) {
        (Some(None), _) => Err(NotInPlace::Named),
        // The branches of a condition make its outputs before they have read the tensors from outside.
        (_, Some(InPlace::Never(why))) if row.is_some_and(Row::is_condition) => {
            Err(NotInPlace::Kernel(why))
        }
        (Some(Some(kernel)), Some(InPlace::Over(operands))) => Ok(Operands { kernel, ..operands }),
        (Some(Some(kernel)), _) => Ok(Operands::of_kernel(kernel)),
        (None, None) => Err(NotInPlace::Unknown),
        (None, Some(InPlace::Never(why))) => Err(NotInPlace::Kernel(why)),
        (None, Some(InPlace::Over(operands))) => {
            let least = operands.kernel.profile();
            if least <= kernels.profile() { Ok(operands) } else { Err(NotInPlace::Profile(least)) }
        }
    }
}

/// Returns the inputs that an output may be written over, best first, or the reason why there are
/// none. `place` returns the memory of an input.
pub(crate) fn requests<'a>(
    op: &Op<'a, '_>,
    row: Option<&Row>,
    (index, output): (usize, &Fact),
    kernels: &Kernels,
    place: impl Fn(&'a str) -> Place<'a>,
) -> Result<Vec<&'a str>, NotInPlace> {
    let operands = operands(op, row, kernels)?;
    if !operands.outputs.contains(&index) {
        return Err(NotInPlace::Shape);
    }
    let inputs: Vec<Input> = (0..op.inputs.len())
        .filter_map(|index| {
            let (name, fact) = (op.node.input(index)?, op.input(index)?);
            Some(Input { name, fact, operand: operands.may_lie_over(index) })
        })
        .collect();
    // The tensors whose memory is read in more than one order.
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
    let refusal = |name: &'a str| {
        if conflicts.contains(place(name).0) {
            return Some(NotInPlace::Aliased);
        }
        operands.unless.filter(|unless| (unless.when)(op)).map(|u| NotInPlace::Kernel(u.reason))
    };
    let mut requests = Vec::new();
    let mut first = None;
    for name in fitting {
        let Some(reason) = refusal(name) else {
            requests.push(name);
            continue;
        };
        debug!(
            target: "memplan::import",
            operator = op.node.label(),
            output = op.node.0.output[index],
            input = name,
            reason = %reason.reason(),
            "in-place request dropped",
        );
        first.get_or_insert(reason);
    }
    if requests.is_empty() { Err(first.unwrap_or(NotInPlace::Shape)) } else { Ok(requests) }
}

/// Returns whether two tensors have the same shape and elements of the same width.
fn same_layout(a: &Fact, b: &Fact) -> bool {
    let width = |fact: &Fact| fact.element.and_then(element::bits);
    a.sizes().is_some() && a.sizes() == b.sizes() && width(a) == width(b)
}
