//! Checks plans from the definition of a right plan alone (the book, Lower bound and
//! verification); nothing here calls a planner or the lowering.
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
//! 6. shared objects, if it has any, lie one after another, each as large as its largest chunk.
//!
//! The plan's own figures must be right as well: its steps, the peak, and a lower bound that is
//! neither below the bytes alive nor above the pool. A bound above the bytes alive claims that
//! a search proved it; only [`bytes_alive`] was checked.
//!
//! For a sequence, only the places of the tensors are taken from the plan. The chunks, their sizes
//! and lifetimes, the overwrites, the bound and the peak are counted again from the operators, and
//! the plan must agree. An output may be written over an input only where that is declared, and
//! only if no other tensor of its operator is destroyed (rule d of lowering).
//!
//! [`execute_sequence`] checks the same in another way: it runs the operators on a shadow of the
//! memory, in which every byte is stamped with its writer.
//!
//! Verification takes O((n + k) log n) for n chunks and k violations.

mod contents;
mod execute;
mod figures;
mod places;
mod problem;
mod sequence;
mod sharing;
mod sweep;
mod table;
mod violation;

pub use violation::{Field, Figure, Violation};

use std::collections::HashSet;

use crate::{
    Bytes, OpSequence, Plan, Problem, TensorPlace, lower::LoweringOptions, sequence::Origin,
    verify::figures::Counted,
};

/// Returns everything that is wrong with a plan for a problem; empty if it is right. Chunks are
/// matched by id, or by name where the problem's ids are texts. The plan may have a larger
/// alignment and padding than the problem, but not smaller ones; use [`Problem::with_alignment`] to
/// require others.
#[must_use]
pub fn verify_problem(problem: &Problem, plan: &Plan) -> Vec<Violation> {
    let mut violations = loose_ends(plan);
    violations.extend(verify_placing(plan, problem.alignment(), problem.padding()));
    violations.extend(problem::check(problem, plan));
    violations.extend(table::check(plan));
    if plan.alignment.is_power_of_two() {
        // A plan may honour other requests than the problem does.
        let counted =
            [Counted::of_problem(plan, problem), Counted::of_table(plan, problem.steps())];
        violations.extend(figures::check(plan, &counted));
    }
    violations
}

/// Returns everything that is wrong with a plan for an operator sequence; empty if it is right.
/// Tensors are matched by name.
#[must_use]
pub fn verify_sequence(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = loose_ends(plan);
    violations.extend(table::check(plan));
    violations.extend(sequence::check(sequence, plan));
    // A faulty tensor often has the same name as its faulty chunk.
    let mut seen = HashSet::new();
    violations.retain(|violation| seen.insert(violation.clone()));
    violations
}

/// Checks that a plan has at least an alignment and a padding. A sequence has neither, so
/// [`verify_sequence`] requires only those that the plan states.
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

/// Checks that inputs and weights of at least one byte lie in the pool if `options` put them there.
/// [`verify_sequence`] accepts them inside and outside.
#[must_use]
pub fn verify_supplied(
    sequence: &OpSequence,
    plan: &Plan,
    options: LoweringOptions,
) -> Vec<Violation> {
    let in_pool = plan.tensors.iter().filter(|t| matches!(t.place, TensorPlace::Pool { .. }));
    let in_pool: HashSet<&str> = in_pool.map(|tensor| &*tensor.name).collect();
    let asked = sequence.tensors().iter().filter(|tensor| match tensor.origin {
        Origin::Input => options.inputs_in_pool,
        Origin::Weight => options.weights_in_pool,
        Origin::Output { .. } => false,
    });
    asked
        .filter(|tensor| tensor.size != Some(0) && !in_pool.contains(&*tensor.name))
        .map(|tensor| Violation::NotInPool { tensor: tensor.name.to_string() })
        .collect()
}

/// The most bytes alive at one step, which every pool needs for the chunks and links of this plan.
/// The chunks count as the plan lists them, so verify the plan first. A
/// [`lower_bound`](Plan::lower_bound) above this claims that a search proved it; only a search can
/// check that.
///
/// ```
/// use memplan::{Planner, Problem, verify::{bytes_alive, verify_problem}};
///
/// let mut problem = Problem::builder();
/// problem.chunk(0..2, 10);
/// problem.chunk(1..3, 20);
/// let problem = problem.build()?;
/// let plan = Planner::new().plan(&problem)?;
/// assert_eq!(verify_problem(&problem, &plan), []);
/// assert_eq!(bytes_alive(&plan), 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn bytes_alive(plan: &Plan) -> Bytes {
    if !plan.alignment.is_power_of_two() {
        return 0;
    }
    Counted::of_table(plan, plan.steps).bytes_alive()
}

/// Runs the operators on a shadow of the memory, with every tensor where the plan puts it, and
/// returns everything that goes wrong: a byte that is read after another tensor was written there,
/// an output written over an input without permission, an update outside its variable. Empty if the
/// plan works.
///
/// Only operators and the offsets of tensors matter here; [`verify_sequence`] checks lifetimes,
/// chunks and links. A plan without tensors cannot be run.
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

/// Finds chunks and tensors that refer to a chunk that the plan does not list. Later checks ignore
/// such references.
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
