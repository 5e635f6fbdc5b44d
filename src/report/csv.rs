//! CSV output in MiniMalloc's canonical form: half-open lifetimes, ids as in the input.

use std::io;

use crate::{
    Plan, Problem,
    problem::{ChunkId, Labels},
};

/// Writes `id,lower,upper,size,offset`. The ids are written as in `labels`, the labels of the input
/// if it was a problem; without labels they are numbers.
///
/// # Errors
///
/// If the writer fails.
pub fn write_plan_csv(out: impl io::Write, plan: &Plan, labels: Option<&Labels>) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["id", "lower", "upper", "size", "offset"]).map_err(as_io)?;
    for (at, chunk) in plan.chunks.iter().enumerate() {
        let id = labels.map_or_else(|| chunk.id.to_string(), |l| l.id(ChunkId::from_index(at)));
        let numbers = [chunk.begin, chunk.end, chunk.size, chunk.offset].map(|n| n.to_string());
        writer.write_record(std::iter::once(id).chain(numbers)).map_err(as_io)?;
    }
    writer.flush()
}

/// Writes `id,lower,upper,size`, and `alignment` unless it is 1. This format has no place for
/// overwrite links and padding.
///
/// # Errors
///
/// If the writer fails.
pub fn write_problem_csv(out: impl io::Write, problem: &Problem) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let alignment = (problem.alignment() > 1).then(|| problem.alignment().to_string());
    let heading = alignment.as_ref().map(|_| "alignment");
    let headings = ["id", "lower", "upper", "size"].into_iter().chain(heading);
    writer.write_record(headings).map_err(as_io)?;
    for id in problem.ids() {
        let chunk = problem.chunk(id);
        let numbers = [chunk.begin, chunk.end, chunk.size].map(|n| n.to_string());
        let fields = std::iter::once(problem.labels().id(id)).chain(numbers);
        writer.write_record(fields.chain(alignment.clone())).map_err(as_io)?;
    }
    writer.flush()
}

/// Returns the writer's own error, which shows whether a pipe is closed or a disk is full.
fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
