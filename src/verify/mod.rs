//! Checks plans from the definition of a right plan alone (the book, Lower bound and
//! verification); nothing here calls a planner or the lowering.
//!
//! A plan is right if
//!
//! 1. it has every chunk of its problem, and every tensor of its sequence, once, with their sizes
//!    and lifetimes, and nothing else;
//! 2. no two chunks that are alive in the same step share a byte, except that an overwriter may
//!    share the bytes of the chunk that it overwrites in the last step of that chunk. In the plan of a sequence, each
//!    byte lives until its own last reader;
//! 3. an overwriter lies exactly at its offset in the chunk that it overwrites, was allowed to, and
//!    every required overwrite is accepted; required views and gathered inputs lie where they must;
//! 4. every chunk that overwrites nothing lies at a multiple of the alignment;
//! 5. everything lies inside the pool, and the pool ends where the highest of those chunks does,
//!    rounded up to the alignment;
//! 6. shared objects, if it has any, lie one after another, each as large as its largest chunk;
//! 7. it has a right plan for each sequence that an operator runs, and the operator's workspace
//!    holds the pool of that plan behind a copy of the inputs.
//!
//! The plan's own figures must be right as well: its steps, the peak, and a lower bound that is
//! neither below the bytes alive nor above the pool. A bound above the bytes alive claims that
//! a search proved it; only [`Verifier::bytes_alive`] was checked.
//!
//! If the operators of a sequence run on several streams, two chunks are alive together unless the waits of
//! the operators guarantee that one is over before the other begins.
//!
//! For a sequence, only the places of the tensors are taken from the plan. The chunks, their sizes
//! and lifetimes, the overwrites, the bound and the peak are counted again from the operators, and
//! the plan must agree. An output may be written over an input only where that is declared, and
//! only if no other tensor of its operator is destroyed (rule d of lowering).
//!
//! In the plan of a sequence, each byte of a chunk is needed until the last operator that reads this byte: the reader
//! of a view reads the bytes that the view shows, and an operator that only passes on views in place reads what these
//! show. So an output may be written over some bytes of a chunk while others are still read, and several outputs over
//! different bytes. The plan may list windows: steps in which a chunk needs only some of its bytes, with these bytes. A
//! chunk lives until none of its bytes are needed, and at least until the last operator that shows some of it.
//!
//! A [constrained](crate::Problem::is_unconstrained) problem has more rules: a chunk lies in a pool that exists
//! and that it may use, at its pin, at its own alignment, below the capacity, outside the reserved bytes;
//! parts lie in their wholes; chunks joined by links lie in one buffer; chunks to be kept apart share no
//! byte. Two chunks then clash if both need the same address of a pool at the same time, unless it holds the same
//! byte of both, as with a part and its whole. With several streams, two chunks may need an address at the same time
//! unless one is over before the other begins. The size of every pool and the traffic are counted again; that
//! the traffic is the least possible is a claim of the search, which is not checked.
//!
//! [`execute`](fn@execute) checks the same in another way: it runs the operators on a shadow of the
//! memory, in which every byte is stamped with its writer.
//!
//! Verification takes O((n + k) log n) for n chunks and k violations; with several streams, k also counts the
//! pairs of parts and wholes that share bytes while both are needed.

mod addresses;
mod beside;
mod bodies;
mod captured;
mod chains;
mod clashes;
mod contents;
mod copies;
mod execute;
mod facts;
mod figures;
mod gathered;
mod joined;
mod places;
mod pools;
mod problem;
mod ranges;
mod required;
mod reserved;
mod same_bytes;
mod sequence;
mod shadow;
mod sharing;
mod sizes;
mod smaller;
mod stated;
mod streams;
mod sweep;
mod table;
mod verifier;
mod violation;
mod windows;

pub use smaller::{copied_views, verify_smaller};
pub use stated::Figure;
pub use verifier::Verifier;
pub use violation::Violation;

use std::collections::HashSet;

use crate::{
    Bytes, InputRef, OpSequence, Plan, Problem, TensorPlace,
    lower::LoweringOptions,
    sequence::Origin,
    verify::{figures::Counted, table::Links},
};

/// Returns everything that is wrong with a plan; empty if it is right. A [`Verifier`] can require
/// more.
///
/// Tensors are matched by name; chunks of a problem are matched by id, or by name where the
/// problem's ids are texts. The plan of a problem may have a larger alignment and padding than the
/// problem, but not smaller ones. A sequence has neither.
///
/// ```
/// use memplan::{Plan, Planner, Problem, verify::verify};
///
/// let mut problem = Problem::builder();
/// problem.chunk(0..2, 10);
/// problem.chunk(1..3, 20);
/// let problem = problem.build()?;
/// assert_eq!(verify(&problem, &Planner::new().plan(&problem)?), []);
/// assert!(!verify(&problem, &Plan::from_offsets(&problem, &[0, 0])?).is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn verify<'i>(input: impl Into<InputRef<'i>>, plan: &Plan) -> Vec<Violation> {
    match input.into() {
        InputRef::Sequence(sequence) => of_sequence(sequence, plan),
        InputRef::Problem(problem) => of_problem(problem, plan),
    }
}

fn of_problem(problem: &Problem, plan: &Plan) -> Vec<Violation> {
    let mut violations = dangling(plan);
    violations.extend(copies::check(problem.into(), plan));
    let problem = &*problem::with_listed_parts(problem, plan);
    let problem = &*beside::asked(problem, plan, &mut violations);
    violations.extend(plan.tensors.iter().map(|tensor| {
        let name = format!("tensor {}", tensor.name);
        Violation::Unknown { name }
    }));
    violations.extend(placing(plan, Figure::Alignment, problem.alignment()));
    violations.extend(placing(plan, Figure::Padding, problem.padding()));
    let matching = problem::check(problem, plan, &mut violations);
    if let Some(constraints) = problem.constraints() {
        violations.extend(addresses::check(problem, constraints, plan, &matching));
        violations.extend(bodies::none(plan));
        return violations;
    }
    violations.extend(table::check(plan, Links::OfProblem));
    violations.extend(bodies::none(plan));
    if plan.alignment.is_power_of_two() {
        // A plan may accept other requests than the problem does.
        let counted =
            [Counted::of_problem(plan, problem), Counted::of_table(plan, problem.steps())];
        violations.extend(figures::check(plan, &counted));
    }
    violations
}

fn of_sequence(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut violations = dangling(plan);
    violations.extend(pools::check(sequence, plan));
    violations.extend(copies::check(sequence.into(), plan));
    let plan = &*pools::in_one(plan);
    violations.extend(table::check(plan, Links::OfSequence));
    if let Some(flat) = bodies::flatten(sequence, plan, of_sequence, &mut violations) {
        violations.extend(sequence::check(&flat, plan));
    }
    // A faulty tensor often has the same name as its faulty chunk.
    without_repeats(violations)
}

fn without_repeats(mut violations: Vec<Violation>) -> Vec<Violation> {
    let mut seen = HashSet::new();
    violations.retain(|violation| seen.insert(violation.clone()));
    violations
}

/// Checks that the alignment or the padding of a plan is what is required, or larger.
fn placing(plan: &Plan, figure: Figure, expected: Bytes) -> Option<Violation> {
    let found = match figure {
        Figure::Alignment => plan.alignment,
        _ => plan.padding,
    };
    (found < expected).then_some(Violation::WrongFigure { figure, expected, found })
}

/// Checks that inputs and weights of at least one byte lie in the pool if `options` put them there.
/// Otherwise they may lie inside and outside.
fn supplied(sequence: &OpSequence, plan: &Plan, options: LoweringOptions) -> Vec<Violation> {
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
/// The chunks count as the plan lists them; those of a sequence with their windows.
fn bytes_alive(plan: &Plan, links: Links) -> Bytes {
    if !plan.alignment.is_power_of_two() {
        return 0;
    }
    let counted = match links {
        Links::OfProblem => Counted::of_table(plan, plan.steps),
        Links::OfSequence => Counted::of_boxes(plan, plan.steps),
    };
    counted.bytes_alive()
}

/// The most bytes alive at one step of a constrained problem, with its pools, holes, windows
/// and parts; `None` if it is unconstrained.
fn bytes_needed(problem: &Problem, plan: &Plan) -> Option<Bytes> {
    let problem = &*beside::asked(problem, plan, &mut Vec::new());
    let constraints = problem.constraints()?;
    let matching = problem::check(problem, plan, &mut Vec::new());
    Some(addresses::bytes_alive(problem, constraints, plan, &matching))
}

/// Runs the operators on a shadow of the memory, with every tensor where the plan puts it, and
/// returns everything that goes wrong: a byte that is read after another tensor was written there,
/// an output written over an input without permission, an update outside its variable. The list is empty if the
/// plan works. If operators run on several streams, this is also a race detector: it reports any two operators that may
/// run at the same time and use the same bytes, at least one of them to write.
///
/// Only operators and the offsets of tensors matter here; [`verify`] checks lifetimes, chunks and
/// links. A plan without tensors cannot be run, nor can a problem.
///
/// ```
/// use memplan::{OpSequence, Operator, Output, Planner, verify::execute};
///
/// let mut sequence = OpSequence::builder();
/// sequence
///     .operator(Operator::new("conv").output(Output::new("x", 64)))
///     .operator(Operator::new("pool").inputs(["x"]).output(Output::new("y", 16)))
///     .operator(Operator::new("add").inputs(["x", "y"]).output(Output::new("z", 64)))
///     .output("z");
/// let sequence = sequence.build()?;
/// assert_eq!(execute(&sequence, &Planner::new().plan(&sequence)?), []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn execute<'i>(input: impl Into<InputRef<'i>>, plan: &Plan) -> Vec<Violation> {
    match input.into() {
        InputRef::Sequence(sequence) => execution(sequence, plan),
        InputRef::Problem(_) => vec![Violation::NothingToRun],
    }
}

fn execution(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    execute_with_waits(sequence, plan, &sequence.waits())
}

/// Runs the operators as [`execute`](fn@execute) does, for a runtime that waits for other operators than
/// [`OpSequence::waits`] lists: `waits` has, by step, the operators that must be over before one begins, in
/// addition to those before it on its stream. Two operators that may then run at the same time and use the
/// same bytes, at least one of them to write, are a [`Race`](Violation::Race). If there are no races, every
/// run gives the same bytes. A wait for an operator that comes later in the sequence is ignored.
///
/// ```
/// use memplan::{OpSequence, Operator, Output, Planner, verify::execute_with_waits};
///
/// let sequence = OpSequence::builder()
///     .operator(Operator::new("a").output(Output::new("x", 64)))
///     .operator(Operator::new("b").on_stream(1).inputs(["x"]).output(Output::new("y", 64)))
///     .output("y")
///     .build()?;
/// let plan = Planner::new().plan(&sequence)?;
/// assert_eq!(execute_with_waits(&sequence, &plan, &sequence.waits()), []);
/// // Without waits, `b` may read `x` while `a` writes it.
/// assert_eq!(execute_with_waits(&sequence, &plan, &[]).len(), 1);
/// # Ok::<(), memplan::PlanError>(())
/// ```
#[must_use]
pub fn execute_with_waits(
    sequence: &OpSequence,
    plan: &Plan,
    waits: &[Vec<usize>],
) -> Vec<Violation> {
    let plan = &*pools::in_one(plan);
    let mut violations = dangling(plan);
    if let Some(flat) = bodies::flatten(sequence, plan, execution, &mut violations) {
        violations.extend(execute::run(&flat, plan, waits));
    }
    violations
}

/// Finds chunks and tensors that refer to a chunk that the plan does not list. Later checks ignore
/// such references.
fn dangling(plan: &Plan) -> Vec<Violation> {
    let overwriters =
        plan.chunks.iter().filter_map(|chunk| Some((&chunk.name, chunk.overwrites?.chunk)));
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
