//! The copies that a plan lists: outputs that could have shared memory with an input.

use std::collections::HashSet;

use crate::{
    Bytes, InputRef, OpSequence, Plan,
    plan::PlannedCopy,
    problem::ChunkId,
    sequence::{Dependency, Origin, TensorId},
    verify::Violation,
};

/// Finds listed copies that the input does not have, with that size, as a view, a gathered input or an optional part.
/// The number of bytes that the plan claims to save by copies is not checked.
pub(super) fn check(input: InputRef<'_>, plan: &Plan) -> Vec<Violation> {
    let parts: HashSet<(String, String, Bytes)> = match input {
        InputRef::Problem(problem) if !plan.copies.list.is_empty() => {
            let name = |chunk: ChunkId| problem.name(chunk);
            let parts = problem.optional_parts().iter();
            parts
                .map(|one| (name(one.whole), name(one.part), problem.chunk(one.part).size))
                .collect()
        }
        _ => HashSet::new(),
    };
    let is_copy = |copy: &PlannedCopy| match input {
        InputRef::Sequence(sequence) => is_copy(sequence, copy),
        InputRef::Problem(_) => {
            parts.contains(&(copy.output.to_string(), copy.input.to_string(), copy.size))
        }
    };
    let wrong = plan.copies.list.iter().filter(|copy| !is_copy(copy));
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
