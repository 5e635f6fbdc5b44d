//! JSON output. The file forms are defined beside the types that they hold.

use std::{io, time::Duration};

use crate::{
    OpSequence, Plan, Problem,
    plan::{ArenaEntry, PlanFile},
    printable::is_control,
};

/// Writes a plan as `memplan-plan/1`, or `/2` if it has pools, with the planning time if given.
///
/// # Errors
///
/// If the writer fails.
pub fn write_plan_json(out: impl io::Write, plan: &Plan, took: Option<Duration>) -> io::Result<()> {
    write_plan_file(out, plan.clone(), took, None)
}

/// As [`write_plan_json`], with the memory that the runtime of the model takes.
///
/// # Errors
///
/// If the writer fails.
pub fn write_plan_file(
    out: impl io::Write,
    plan: Plan,
    took: Option<Duration>,
    arena: Option<ArenaEntry>,
) -> io::Result<()> {
    let mut file = PlanFile::from(plan);
    file.seconds = took.map(|took| took.as_secs_f64());
    file.arena = arena;
    write_json(out, &file)
}

/// Writes a problem as `memplan-problem/1`, or `/2` if it is constrained.
///
/// # Errors
///
/// If the writer fails.
pub fn write_problem_json(out: impl io::Write, problem: &Problem) -> io::Result<()> {
    write_json(out, problem)
}

/// Writes an operator sequence as `memplan-sequence/1`, or as `/2` where that is needed.
///
/// # Errors
///
/// If the writer fails.
pub fn write_sequence_json(out: impl io::Write, sequence: &OpSequence) -> io::Result<()> {
    write_json(out, sequence)
}

/// Writes a value as JSON in lines. Control characters and others that a terminal does not show are
/// escaped, so that a name cannot pretend to be another one; a reader gets the same text back.
///
/// ```
/// let mut out = Vec::new();
/// memplan::report::write_json(&mut out, &"a\u{202e}b\u{1b}\u{9b}\u{e0001}\u{e9}")?;
/// assert_eq!(String::from_utf8(out)?, "\"a\\u202eb\\u001b\\u009b\\udb40\\udc01\u{e9}\"\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the writer fails.
pub fn write_json(mut out: impl io::Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(Escaping(&mut out), value)?;
    writeln!(out)
}

/// Escapes what a terminal does not show. Outside of strings, JSON in lines has line feeds only.
struct Escaping<W>(W);

impl<W: io::Write> io::Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Most pieces are a few bytes of ASCII.
        if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
            return self.0.write(bytes);
        }
        // Names arrive in pieces of whole characters.
        let Ok(mut rest) = str::from_utf8(bytes) else { return self.0.write(bytes) };
        while let Some(at) = rest.find(|character| is_control(character) && character != '\n') {
            let (shown, escaped) = rest.split_at(at);
            self.0.write_all(shown.as_bytes())?;
            let mut escaped = escaped.chars();
            for unit in escaped.next().unwrap_or_default().encode_utf16(&mut [0; 2]) {
                write!(self.0, "\\u{unit:04x}")?;
            }
            rest = escaped.as_str();
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
