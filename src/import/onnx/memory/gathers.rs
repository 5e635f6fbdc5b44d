//! Concatenations whose inputs could lie in the output from the beginning.

use crate::{
    Bytes,
    import::onnx::{
        ops::{op::Op, row::Row},
        read::{
            element,
            fact::{Fact, count},
        },
    },
};

/// Returns the inputs that the first output holds one after another, with their places in it in bytes. Along
/// the outermost dimension that is not 1, each input is one run of bytes. An input whose size is known only
/// at run time ends the list, because the places of those after it are unknown.
pub(crate) fn gathers(op: &Op, row: Option<&Row>, output: &Fact) -> Vec<(usize, Bytes)> {
    if !row.is_some_and(|row| row.gathers) {
        return Vec::new();
    }
    let mut places = Vec::new();
    let mut bits = 0_u64;
    for index in 0..op.inputs.len() {
        let Some(input) = op.input(index) else { return Vec::new() };
        let (Some(kind), Some(largest)) = (input.element, input.largest()) else {
            return Vec::new();
        };
        let Ok(axis) = op.axis(1, largest.len()) else { return Vec::new() };
        let is_run = largest[..axis].iter().all(|&size| size == 1);
        if !is_run || Some(kind) != output.element || !bits.is_multiple_of(8) {
            return Vec::new();
        }
        places.push((index, bits / 8));
        let more = count(&largest).zip(element::bits(kind));
        let end = more.and_then(|(count, each)| bits.checked_add(count.checked_mul(each)?));
        let (Some(end), false) = (end, input.is_open()) else { break };
        bits = end;
    }
    let fits = |&(index, at): &(usize, Bytes)| {
        let end = op.input(index).and_then(Fact::bytes).and_then(|size| at.checked_add(size));
        end.is_some_and(|end| Some(end) <= output.bytes())
    };
    if places.iter().all(fits) { places } else { Vec::new() }
}
