//! CSV output in MiniMalloc's canonical form: half-open lifetimes, ids as in the input.

use std::{io, ops::Range};

use crate::{
    Plan, Problem, Step,
    problem::{
        ChunkId,
        constraints::{ChunkConstraints, Feature},
    },
};

/// Writes `id,lower,upper,size,offset`. If the input was a problem, ids are written as there, and times on
/// several streams as clocks such as `1:0:3`; otherwise ids are numbers, and times are steps. This format has
/// no place for pools, nor for the buffers of a pool.
///
/// # Errors
///
/// If the writer fails.
pub fn write_plan_csv(
    out: impl io::Write,
    plan: &Plan,
    problem: Option<&Problem>,
) -> io::Result<()> {
    let mut writer = writer(out);
    writer.write_record(["id", "lower", "upper", "size", "offset"]).map_err(as_io)?;
    for (at, chunk) in plan.chunks.iter().enumerate() {
        let in_problem = |problem: &Problem| problem.id(ChunkId::from_index(at));
        let id = problem.map_or_else(|| chunk.id.to_string(), in_problem);
        let [begin, end] = times(problem, at, chunk.begin..chunk.end);
        let [size, offset] = [chunk.size, chunk.offset].map(|bytes| bytes.to_string());
        writer.write_record([id, begin, end, size, offset]).map_err(as_io)?;
    }
    writer.flush()
}

/// Writes `id,lower,upper,size`, and those of the columns `alignment`, `gaps` and `offset` that the problem needs. On
/// several streams, times are clocks such as `1:0:3`. This format cannot express overwrite links, padding, or the
/// features that [`not_in_csv`] finds.
///
/// # Errors
///
/// If the writer fails.
pub fn write_problem_csv(out: impl io::Write, problem: &Problem) -> io::Result<()> {
    let mut writer = writer(out);
    let constraints = &problem.all_constraints().own;
    let pool = problem.pools().iter().map(|pool| pool.alignment).max();
    let common = problem.alignment().max(pool.unwrap_or(1));
    let optional = [
        ("alignment", common > 1 || constraints.iter().any(|of| of.alignment > 1)),
        ("gaps", constraints.iter().any(|of| !of.is_whole())),
        ("offset", constraints.iter().any(|of| of.pin.is_some())),
    ];
    let headings = optional.iter().filter(|(_, is_needed)| *is_needed).map(|(heading, _)| *heading);
    let headings = ["id", "lower", "upper", "size"].into_iter().chain(headings);
    writer.write_record(headings).map_err(as_io)?;
    for id in problem.ids() {
        let chunk = problem.chunk(id);
        let times = times(Some(problem), id.index(), chunk.begin..chunk.end);
        let own = constraints.get(id.index());
        let alignment = own.map_or(common, |own| own.alignment.max(common));
        let pin = own.and_then(|own| own.pin).map(|pin| pin.offset.to_string());
        let values =
            [alignment.to_string(), own.map(gaps).unwrap_or_default(), pin.unwrap_or_default()];
        let values = values.into_iter().zip(&optional).filter(|(_, (_, is_needed))| *is_needed);
        let fields = std::iter::once(problem.id(id)).chain(times);
        let fields = fields.chain([chunk.size.to_string()]).chain(values.map(|(value, _)| value));
        writer.write_record(fields).map_err(as_io)?;
    }
    writer.flush()
}

/// The first feature of a problem that CSV cannot express. Overwrite links and optional parts, which a plan may do
/// without, do not count.
#[must_use]
pub fn not_in_csv(problem: &Problem) -> Option<Feature> {
    let constraints = problem.all_constraints();
    let mut pools = constraints.pools.iter();
    [
        (constraints.pools.len() > 1, Feature::Pools),
        (pools.clone().any(|pool| pool.capacity.is_some()), Feature::Capacity),
        (pools.clone().any(|pool| !pool.reserved.is_empty()), Feature::Reserved),
        (pools.any(|pool| pool.largest.is_some()), Feature::Largest),
        (!constraints.parts.is_empty(), Feature::Parts),
        (!constraints.apart.is_empty(), Feature::Apart),
    ]
    .into_iter()
    .find_map(|(is_used, feature)| is_used.then_some(feature))
}

/// The lifetime of a chunk in steps or, if the problem runs on several streams, in clocks.
fn times(problem: Option<&Problem>, chunk: usize, steps: Range<Step>) -> [String; 2] {
    match problem.and_then(|problem| problem.all_constraints().lives.get(chunk)) {
        Some(life) => [clock(&life.begin), clock(&life.end)],
        None => [steps.start.to_string(), steps.end.to_string()],
    }
}

fn clock(clock: &[Step]) -> String {
    let steps: Vec<String> = clock.iter().map(Step::to_string).collect();
    steps.join(":")
}

/// The holes and windows of a chunk in the order of their steps, such as `7-8 9-10@1:17`.
fn gaps(of: &ChunkConstraints) -> String {
    let holes = of.holes.iter().map(|hole| (hole, None));
    let windows = of.windows.iter().map(|window| (&window.steps, Some(&window.bytes)));
    let mut gaps: Vec<_> = holes.chain(windows).collect();
    gaps.sort_by_key(|(steps, _)| steps.start);
    let text = gaps.iter().map(|(steps, bytes)| match bytes {
        Some(bytes) => format!("{}-{}@{}:{}", steps.start, steps.end, bytes.start, bytes.end),
        None => format!("{}-{}", steps.start, steps.end),
    });
    text.collect::<Vec<_>>().join(" ")
}

/// Ids that begin like a comment are quoted.
fn writer<W: io::Write>(out: W) -> csv::Writer<W> {
    csv::WriterBuilder::new().comment(Some(b'#')).from_writer(out)
}

/// Returns the writer's own error, which shows whether a pipe is closed or a disk is full.
fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
