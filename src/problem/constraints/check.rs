//! Checks of the constraints before chunks are joined into bodies.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    Bytes, Step,
    bodies::{
        boxes::{View, concurrent, happens_before},
        bytes::Family,
    },
    problem::{
        Chunk, ChunkId, Labels, ProblemError,
        constraints::{ChunkConstraints, Constraints, Life, Part, Pool},
    },
};

/// The places that can name a chunk, for errors.
pub(crate) const REQUEST: &str = "an overwrite request";
pub(crate) const PART: &str = "a part";
pub(crate) const APART: &str = "a list of chunks kept apart";

/// The most pools; real devices have far fewer memories.
const MAX_POOLS: usize = 256;

/// Checks everything about constraints that does not depend on how chunks are joined.
pub(crate) fn check(view: View<'_>, labels: &Labels) -> Result<(), ProblemError> {
    let constraints = view.constraints;
    check_pools(constraints, view.alignment)?;
    for (index, chunk) in view.chunks.iter().enumerate() {
        let name = || labels.name(ChunkId::from_index(index));
        check_chunk(constraints, index, chunk, &name)?;
    }
    for chunk in constraints.apart.iter().flatten() {
        known(view.chunks, *chunk, APART)?;
    }
    check_parts(view, labels)
}

/// Checks that a chunk exists.
pub(crate) fn known(
    chunks: &[Chunk],
    chunk: ChunkId,
    user: &'static str,
) -> Result<(), ProblemError> {
    if chunk.index() < chunks.len() {
        return Ok(());
    }
    Err(ProblemError::UnknownChunk { user, id: u64::from(chunk.0) })
}

fn check_pools(constraints: &Constraints, alignment: u64) -> Result<(), ProblemError> {
    if constraints.pools.is_empty() {
        return Err(ProblemError::NoPools { chunk: None });
    }
    if constraints.pools.len() > MAX_POOLS {
        return Err(ProblemError::TooManyPools { pools: constraints.pools.len(), most: MAX_POOLS });
    }
    let mut names = BTreeSet::new();
    for pool in &constraints.pools {
        let name = || pool.name.to_string();
        if pool.name.is_empty() {
            return Err(ProblemError::UnnamedPool);
        }
        if !names.insert(&pool.name) {
            return Err(ProblemError::DuplicatePool { pool: name() });
        }
        if !pool.alignment.is_power_of_two() {
            return Err(ProblemError::Alignment { alignment: pool.alignment });
        }
        if pool.reserved.iter().any(Range::is_empty) {
            return Err(ProblemError::EmptyReserve { pool: name() });
        }
        let unit = pool.root_alignment(alignment);
        let is_right =
            |largest: u64| largest > 0 && largest.is_multiple_of(unit) && pool.reserved.is_empty();
        if let Pool { largest: Some(largest), .. } = *pool
            && !is_right(largest)
        {
            return Err(ProblemError::Largest { pool: name(), largest, alignment: unit });
        }
    }
    Ok(())
}

fn check_chunk(
    constraints: &Constraints,
    index: usize,
    chunk: &Chunk,
    name: &dyn Fn() -> String,
) -> Result<(), ProblemError> {
    let ChunkConstraints { alignment, pools, pin, stream, .. } =
        constraints.of(ChunkId::from_index(index));
    if !alignment.is_power_of_two() {
        return Err(ProblemError::Alignment { alignment: *alignment });
    }
    let (streams, life) = (constraints.streams, constraints.lives.get(index));
    let is_right = |life: &Life| [life.begin.len(), life.end.len()] == [streams; 2];
    if *stream >= streams || !life.map_or(streams == 1, is_right) {
        return Err(ProblemError::Streams { chunk: name(), streams });
    }
    if let Some(life) = life
        && (!happens_before(&life.begin, &life.end) || life.begin == life.end)
    {
        let reason = format!(
            "it begins at {:?} and ends at {:?}; no stream may end before it begins, and at least one must end later",
            life.begin, life.end
        );
        return Err(ProblemError::EmptyLifetime { chunk: name(), reason });
    }
    check_pauses(constraints, index, chunk, name)?;
    let exists = |pool: usize| pool < constraints.pools.len();
    if let Some(pools) = pools {
        if pools.is_empty() {
            return Err(ProblemError::NoPools { chunk: Some(name()) });
        }
        if let Some(pool) = pools.iter().find(|pool| !exists(pool.index())) {
            return Err(ProblemError::UnknownPool { pool: pool.index().to_string() });
        }
    }
    if let Some(pin) = pin {
        if chunk.size == 0 {
            return Err(ProblemError::PinnedEmpty { chunk: name() });
        }
        if !exists(pin.pool.index()) {
            return Err(ProblemError::UnknownPool { pool: pin.pool.index().to_string() });
        }
    }
    Ok(())
}

fn check_pauses(
    constraints: &Constraints,
    index: usize,
    chunk: &Chunk,
    name: &dyn Fn() -> String,
) -> Result<(), ProblemError> {
    let ChunkConstraints { holes, windows, .. } = constraints.of(ChunkId::from_index(index));
    if holes.is_empty() && windows.is_empty() {
        return Ok(());
    }
    if constraints.streams > 1 {
        return Err(ProblemError::HoleInStreams { chunk: name() });
    }
    let mut pauses: Vec<&Range<Step>> =
        holes.iter().chain(windows.iter().map(|window| &window.steps)).collect();
    pauses.sort_by_key(|steps| (steps.start, steps.end));
    for steps in &pauses {
        if steps.is_empty() || steps.start < chunk.begin || steps.end > chunk.end {
            let (begin, end) = (steps.start, steps.end);
            return Err(ProblemError::HoleOutside { chunk: name(), begin, end });
        }
    }
    if pauses.windows(2).any(|pair| pair[1].start < pair[0].end) {
        return Err(ProblemError::HolesOverlap { chunk: name() });
    }
    for window in windows {
        if window.bytes.is_empty() || window.bytes.end > chunk.size {
            let (low, high) = (window.bytes.start, window.bytes.end);
            return Err(ProblemError::Window { chunk: name(), low, high, size: chunk.size });
        }
    }
    let paused: Step = holes.iter().map(|hole| hole.end - hole.start).sum();
    if paused == chunk.end - chunk.begin {
        let Chunk { begin, end, .. } = *chunk;
        let reason = format!("its holes leave nothing of [{begin}, {end})");
        return Err(ProblemError::EmptyLifetime { chunk: name(), reason });
    }
    Ok(())
}

/// Checks that parts are named once, have bytes and lie inside their wholes, and that no chunk is a part of itself.
fn family(parts: &[Part], chunks: &[Chunk], labels: &Labels) -> Result<Family, ProblemError> {
    let mut seen = BTreeSet::new();
    for part in parts {
        known(chunks, part.part, PART)?;
        known(chunks, part.whole, PART)?;
        let name = labels.name(part.part);
        let whole = labels.name(part.whole);
        let size = |chunk: ChunkId| chunks[chunk.index()].size;
        if part.part == part.whole {
            return Err(ProblemError::PartOfItself { chunk: name });
        }
        if size(part.part) == 0 || size(part.whole) == 0 {
            return Err(ProblemError::EmptyPart { part: name, whole });
        }
        if part.offset.checked_add(size(part.part)).is_none_or(|end| end > size(part.whole)) {
            return Err(ProblemError::PartDoesNotFit { part: name, whole, offset: part.offset });
        }
        if !seen.insert((part.part, part.whole)) {
            return Err(ProblemError::PartTwice { part: name, whole });
        }
    }
    let family = Family::new(chunks, parts);
    match family.circle() {
        Some(chunk) => Err(ProblemError::PartOfItself { chunk: labels.name(chunk) }),
        None => Ok(family),
    }
}

/// Checks optional parts. A part must be alive when its whole begins, because it may have to be copied then. The parts
/// of one whole may not overlap, because the whole holds all of them.
pub(crate) fn check_optional_parts(
    parts: &[Part],
    chunks: &[Chunk],
    lives: &[Life],
    labels: &Labels,
) -> Result<(), ProblemError> {
    if parts.is_empty() {
        return Ok(());
    }
    family(parts, chunks, labels)?;
    for Part { part, whole, .. } in parts {
        let [part, whole] = [part.index(), whole.index()];
        let is_read = match (lives.get(part), lives.get(whole)) {
            (Some(part), Some(whole)) => {
                !happens_before(&part.end, &whole.begin) && !happens_before(&whole.end, &part.begin)
            }
            _ => (chunks[part].begin..chunks[part].end).contains(&chunks[whole].begin),
        };
        if !is_read {
            let [part, whole] = [part, whole].map(|chunk| labels.name(ChunkId::from_index(chunk)));
            return Err(ProblemError::OptionalPartNotAlive { part, whole });
        }
    }
    let mut sorted: Vec<&Part> = parts.iter().collect();
    sorted.sort_unstable_by_key(|part| (part.whole, part.offset));
    for pair in sorted.windows(2).filter(|pair| pair[0].whole == pair[1].whole) {
        if pair[0].offset + chunks[pair[0].part.index()].size > pair[1].offset {
            let [first, second] = [pair[0], pair[1]].map(|part| labels.name(part.part));
            let whole = labels.name(pair[0].whole);
            return Err(ProblemError::OptionalPartsOverlap { first, second, whole });
        }
    }
    Ok(())
}

/// Checks the required parts, and that parts that are alive together hold the same values in the bytes that they
/// share.
fn check_parts(view: View<'_>, labels: &Labels) -> Result<(), ProblemError> {
    let family = family(&view.constraints.parts, view.chunks, labels)?;
    let size = |chunk: ChunkId| view.chunks[chunk.index()].size;
    let together = |x: ChunkId, y: ChunkId| {
        let others = view.boxes(y, None);
        view.boxes(x, None).iter().any(|p| others.iter().any(|q| concurrent(p, q)))
    };
    for whole in (0..view.chunks.len()).map(ChunkId::from_index) {
        let mut open: Vec<(ChunkId, Bytes)> = Vec::new();
        for &(y, low) in family.parts(whole) {
            open.retain(|&(x, at_x)| at_x + size(x) > low);
            for &(x, at_x) in &open {
                let count = (at_x + size(x)).min(low + size(y)) - low;
                if together(x, y) && !family.same((x, low - at_x), (y, 0), count, &size) {
                    let (first, second) = (labels.name(x), labels.name(y));
                    let whole = labels.name(whole);
                    return Err(ProblemError::PartsOverlap { first, second, whole });
                }
            }
            open.push((y, low));
        }
    }
    Ok(())
}
