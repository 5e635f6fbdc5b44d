//! JSON output. The file forms are defined beside the types that they hold.

use std::{io, time::Duration};

use crate::{OpSequence, Plan, Problem, plan::PlanFile};

/// Writes a plan as `memplan-plan/1`, or `/2` if it has pools, with the planning time if given.
///
/// # Errors
///
/// If the writer fails.
pub fn write_plan_json(out: impl io::Write, plan: &Plan, took: Option<Duration>) -> io::Result<()> {
    let mut file = PlanFile::from(plan.clone());
    file.seconds = took.map(|took| took.as_secs_f64());
    write_plan_file(out, &file)
}

/// Writes a plan in its JSON form, with all that the form states beside the plan.
///
/// # Errors
///
/// If the writer fails.
pub fn write_plan_file(out: impl io::Write, file: &PlanFile) -> io::Result<()> {
    write(out, file)
}

/// Writes a problem as `memplan-problem/1`, or `/2` if it is not plain.
///
/// # Errors
///
/// If the writer fails.
pub fn write_problem_json(out: impl io::Write, problem: &Problem) -> io::Result<()> {
    write(out, problem)
}

/// Writes an operator sequence as `memplan-sequence/1`, or as `/2` where that is needed.
///
/// # Errors
///
/// If the writer fails.
pub fn write_sequence_json(out: impl io::Write, sequence: &OpSequence) -> io::Result<()> {
    write(out, sequence)
}

fn write(mut out: impl io::Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)
}
