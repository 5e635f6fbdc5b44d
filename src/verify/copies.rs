//! The copies that a plan lists: outputs that could have shared memory with an input.

use crate::{
    OpSequence, Plan,
    plan::PlannedCopy,
    sequence::{Dependency, Origin, TensorId},
    verify::Violation,
};

/// Finds copies of what is no view and no gathered input, or of another size. What they save is a claim.
pub(super) fn check(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let wrong = plan.copies.list.iter().filter(|copy| !is_copy(sequence, copy));
    wrong
        .map(|copy| {
            let name =
                format!("a copy of {} B from '{}' to '{}'", copy.size, copy.input, copy.output);
            Violation::Unknown { name }
        })
        .collect()
}

fn is_copy(sequence: &OpSequence, copy: &PlannedCopy) -> bool {
    let Some(output) = sequence.tensor_id(&copy.output) else { return false };
    let Origin::Output { dependency, .. } = &sequence.tensor(output).origin else { return false };
    let is = |tensor: TensorId, size: TensorId| {
        *sequence.tensor(tensor).name == *copy.input
            && sequence.tensor(size).size == Some(copy.size)
    };
    match dependency {
        Dependency::Reads { input, .. } => is(*input, output),
        Dependency::Gathers(gathers) => gathers.iter().any(|one| is(one.input, one.input)),
        Dependency::Fresh | Dependency::Overwrites(_) => false,
    }
}
