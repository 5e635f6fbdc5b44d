//! An audit of the addresses that a runtime gave to the tensors of a model.

use std::fmt::Write;

use crate::{
    import::Addresses,
    report::{count, fit::wrapped, printable},
    verify::Violation,
};

/// Reports everything that is wrong with the addresses of a run, and what they do not show.
#[must_use]
pub fn audit(addresses: &Addresses, faults: &[Violation]) -> String {
    let mut text = String::new();
    for fault in faults {
        text.push_str(&printable(&fault.to_string()));
        text.push('\n');
    }
    let Addresses { plan, lowest, without, unknown, shared, workspaces, .. } = addresses;
    if faults.is_empty() {
        let tensors = count(plan.tensors.len() as u64, "tensor");
        text.push_str(&wrapped(
            &format!(
                "correct: no operator overwrites what is still needed, of {tensors} from address {lowest:#x} on"
            ),
            2,
        ));
    } else {
        let faults = count(faults.len() as u64, "violation");
        let _ = writeln!(text, "wrong: {faults}; bytes count from address {lowest:#x}");
    }
    let unseen = [
        (without.len(), "tensor", "without an address"),
        (*workspaces, "workspace", "of operators"),
        (*shared, "weight", "in the bytes of another one"),
        (*unknown, "name", "in the file without a tensor that has bytes"),
    ];
    for (number, what, why) in unseen.into_iter().filter(|(number, ..)| *number > 0) {
        let _ = writeln!(text, "not seen: {} {why}", count(number as u64, what));
    }
    text
}
