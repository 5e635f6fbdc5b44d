//! An audit of the addresses that a runtime gave to the tensors of a model.

use std::fmt::Write;

use crate::{
    OpSequence,
    import::{Addresses, Format, ImportError},
    report::{count, fit::wrapped, printable},
    verify::Violation,
};

/// Runs the operators of a sequence on a shadow of the memory, at the addresses that a runtime gave to their tensors.
/// Returns everything that is wrong, and a report of it and of what the addresses do not show.
///
/// The file has an address in bytes for each tensor, in JSON or CSV. Tensors without an address are not judged.
///
/// ```
/// use memplan::{OpSequence, Operator, Output, import::Format, report::audit};
///
/// let sequence = OpSequence::builder()
///     .operator(Operator::new("a").output(Output::new("x", 64)))
///     .operator(Operator::new("b").inputs(["x"]).output(Output::new("y", 64)))
///     .operator(Operator::new("c").inputs(["x", "y"]).output(Output::new("z", 64)))
///     .output("z")
///     .build()?;
/// let (faults, _) = audit(br#"{"x": 4096, "y": 4160, "z": "0x1080"}"#, Format::Json, &sequence)?;
/// assert_eq!(faults, []);
/// let (faults, report) = audit(br#"{"x": 4096, "y": 4120, "z": 8192}"#, Format::Json, &sequence)?;
/// assert!(faults[0].to_string().contains("'x'") && report.contains("violation"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the file does not state addresses, none is for a tensor of the sequence, or operators have bodies.
pub fn audit(
    file: &[u8],
    format: Format,
    sequence: &OpSequence,
) -> Result<(Vec<Violation>, String), ImportError> {
    let addresses = Addresses::read(file, format, sequence)?;
    let faults = addresses.faults(sequence);
    let report = report(&addresses, &faults);
    Ok((faults, report))
}

fn report(addresses: &Addresses, faults: &[Violation]) -> String {
    let mut text = String::new();
    for fault in faults {
        text.push_str(&printable(&fault.to_string()));
        text.push('\n');
    }
    let Addresses { plan, lowest, without, unknown, shared, workspaces } = addresses;
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
