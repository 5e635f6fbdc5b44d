//! Is a plan right? Checked from the definition of a right plan alone (spec 6); nothing here calls
//! a planner or the lowering.
//!
//! A plan is right if
//!
//! 1. it has every chunk of its problem, and every tensor of its sequence, once, with their sizes
//!    and lifetimes, and nothing else;
//! 2. no two chunks that are alive in the same step share a byte, except that an overwriter may
//!    share the bytes of the chunk that it overwrites in the last step of that chunk;
//! 3. an overwriter lies exactly at its offset in the chunk that it overwrites, was allowed to, and
//!    every required overwrite is honoured;
//! 4. every chunk that overwrites nothing lies at a multiple of the alignment;
//! 5. everything lies inside the pool, and the pool ends where the highest of those chunks does,
//!    rounded up to the alignment.
//!
//! What the plan says of itself must be so, too: its steps, the bound, the peak.
//!
//! For a sequence the same is asked of tensors, with their lifetimes counted from the operators
//! anew: a view lies inside its input, and whatever it reads is there until its last reader.
//!
//! [`execute_sequence`] asks the same in another way: it runs the operators on a shadow of the
//! memory, in which every byte knows whose it is.
//!
//! Takes O((n + k) log n) for n chunks and k violations.

mod execute;
mod figures;
mod places;
mod problem;
mod sequence;
mod sweep;
mod table;
mod violation;

pub use violation::{Field, Figure, Violation};

use std::collections::HashSet;

use crate::{Bytes, OpSequence, Plan, Problem, Step, TensorPlace, verify::figures::Counted};

/// Everything that is wrong with a plan for a problem; empty if it is right. Chunks are matched by
/// id, or by name where the ids of the problem are texts. The plan may keep to a larger alignment and
/// padding than the problem, not to smaller ones: [`Problem::with_alignment`] asks for others.
#[must_use]
pub fn verify_problem(problem: &Problem, plan: &Plan) -> Vec<Violation> {
    let mut violations = loose_ends(plan);
    violations.extend(verify_placing(plan, problem.alignment(), problem.padding()));
    violations.extend(problem::check(problem, plan));
    violations.extend(table::check(plan));
    if plan.alignment.is_power_of_two() {
        // A plan may honour other links than the problem does, as long as they were asked for.
        let counted =
            [Counted::of_problem(plan, problem), Counted::of_table(plan, problem.steps())];
        violations.extend(figures::check(plan, &counted));
    }
    violations
}

/// Everything that is wrong with a plan for an operator sequence; empty if it is right. Tensors are
/// matched by name.
#[must_use]
pub fn verify_sequence(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = loose_ends(plan);
    violations.extend(table::check(plan));
    violations.extend(sequence::check(sequence, plan));
    if plan.alignment.is_power_of_two() {
        let steps = sequence.operators().len() as Step;
        violations.extend(figures::check(plan, &[Counted::of_table(plan, steps)]));
    }
    // A fault of a tensor is often one of its chunk, of the same name.
    let mut seen = HashSet::new();
    violations.retain(|violation| seen.insert(violation.clone()));
    violations
}

/// Whether a plan keeps to an alignment and a padding, or to larger ones. A sequence has none of its
/// own, and [`verify_sequence`] asks only for those that the plan states.
#[must_use]
pub fn verify_placing(plan: &Plan, alignment: Bytes, padding: Bytes) -> Vec<Violation> {
    let asked =
        [(Figure::Alignment, alignment, plan.alignment), (Figure::Padding, padding, plan.padding)];
    asked
        .into_iter()
        .filter(|&(_, expected, found)| found < expected)
        .map(|(figure, expected, found)| Violation::WrongFigure { figure, expected, found })
        .collect()
}

/// Runs the operators on a shadow of the memory, with every tensor where the plan says, and tells
/// what they would find wrong: a byte that is read and is no longer the tensor's, an output written
/// over an input without leave, an update beside its variable. Empty if all goes well.
///
/// Nothing is asked but operators and offsets of tensors; lifetimes, chunks and links, which
/// [`verify_sequence`] checks, do not count. A plan without tensors cannot be run.
///
/// ```
/// use memplan::{OpSequence, Operator, Output, Planner, verify::execute_sequence};
///
/// let mut sequence = OpSequence::builder();
/// sequence
///     .operator(Operator::new("conv").output(Output::new("x", 64)))
///     .operator(Operator::new("pool").inputs(["x"]).output(Output::new("y", 16)))
///     .operator(Operator::new("add").inputs(["x", "y"]).output(Output::new("z", 64)))
///     .output("z");
/// let sequence = sequence.build()?;
/// assert_eq!(execute_sequence(&sequence, &Planner::new().plan(&sequence)?), []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn execute_sequence(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = loose_ends(plan);
    violations.extend(execute::run(sequence, plan));
    violations
}

/// Chunks and tensors that name a chunk which the plan does not list. The checks that follow take
/// them as naming none.
fn loose_ends(plan: &Plan) -> Vec<Violation> {
    let overwriters =
        plan.chunks.iter().filter_map(|chunk| Some((&chunk.name, chunk.overwrites?.0)));
    let tensors = plan.tensors.iter().filter_map(|tensor| match tensor.place {
        TensorPlace::Pool { chunk, .. } => Some((&tensor.name, chunk)),
        TensorPlace::Supplied { .. } | TensorPlace::Nowhere => None,
    });
    overwriters
        .chain(tensors)
        .filter(|&(_, chunk)| chunk >= plan.chunks.len())
        .map(|(user, _)| Violation::NoSuchChunk { user: user.to_string() })
        .collect()
}
