//! XLA's buffer assignment: the text of allocations with the values in them, and the live range of each value.
//!
//! Parameters, constants and thread-local buffers are not in the problem. Values in the same bytes whose live ranges
//! share one step may be written over each other; values that share more are one chunk.

use std::collections::{BTreeMap, HashMap};

use super::{
    Recording,
    buffers::{Buffer, Memory},
    choose,
};
use crate::{
    Bytes, Step,
    import::{Format, ImportError},
    problem::align_up,
};

/// The largest alignment that is assumed from offsets, in bytes.
const MAX_ALIGNMENT: Bytes = 256;
const REMEDY: &str = " in memory that XLA places; see the book, Recordings";

/// The allocations of one memory space.
#[derive(Debug, Default)]
struct Space {
    size: Bytes,
    buffers: Vec<Buffer>,
}

/// The part of the text that a line of four spaces belongs to.
#[derive(Clone, Copy)]
enum Section {
    Instructions,
    Ranges,
    Other,
}

/// The place of an allocation.
enum Allocation {
    /// A memory space and the first byte in it.
    Inside(u64, Bytes),
    /// In memory that is not in the problem.
    Outside,
}

#[derive(Debug, Default)]
struct Text {
    spaces: BTreeMap<u64, Space>,
    outside: BTreeMap<&'static str, Bytes>,
    ranges: HashMap<String, (Step, Step)>,
    instructions: Step,
}

pub(super) fn read(bytes: &[u8], device: Option<&str>) -> Result<Recording, ImportError> {
    let text = Text::read(bytes)?;
    if text.ranges.is_empty() {
        return Err(ImportError::NoLiveRanges);
    }
    let last = text.ranges.values().map(|range| range.1).max().unwrap_or(0) + 1;
    let spaces = text.spaces.into_iter();
    let spaces = spaces.map(|(at, space)| (format!("memory space {at}"), space.size.into(), space));
    let (Space { size, mut buffers }, name, others) = choose(spaces.collect(), device, REMEDY)?;
    for buffer in &mut buffers {
        // A value without a live range counts as alive all the time.
        let range = text.ranges.get(&buffer.name).copied().unwrap_or((0, last));
        (buffer.begin, buffer.end) = (range.0, range.1.saturating_add(1));
    }
    let memory =
        Memory { format: Format::Xla, name, size, steps: last, max_alignment: MAX_ALIGNMENT };
    let mut recording = memory.finish(buffers)?;
    recording.events = text.instructions;
    recording.others = others;
    let outside = text.outside.into_iter();
    recording.outside = outside.map(|(kind, bytes)| (kind.to_owned(), bytes)).collect();
    Ok(recording)
}

impl Text {
    fn read(bytes: &[u8]) -> Result<Self, ImportError> {
        let mut text = Self::default();
        // The memory space of the allocation whose values follow, and its first byte; none for memory outside.
        let mut place: Option<(u64, Bytes)> = None;
        let mut section = Section::Other;
        for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            let wrong = |what: &str| ImportError::Xla { line: number, what: what.to_owned() };
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            if let Some(rest) = line.strip_prefix("allocation ") {
                place = match text.allocation(rest).ok_or_else(|| wrong(ALLOCATION))? {
                    Allocation::Inside(space, start) => Some((space, start)),
                    Allocation::Outside => None,
                };
            } else if let Some(rest) = line.trim_start().strip_prefix("value: <") {
                let Some((space, start)) = place else { continue };
                let buffer = value(rest, start).ok_or_else(|| wrong(VALUE))?;
                text.spaces.entry(space).or_default().buffers.push(buffer);
            } else if line.trim() == "BufferLiveRange:" {
                section = Section::Ranges;
            } else if line.trim() == "InstructionSequence:" {
                section = Section::Instructions;
            } else if let Some(rest) = line.strip_prefix("    ") {
                match section {
                    Section::Ranges => {
                        let (name, range) = live_range(rest).ok_or_else(|| wrong(RANGE))?;
                        text.ranges.insert(name.to_owned(), range);
                    }
                    Section::Instructions => text.instructions += 1,
                    Section::Other => {}
                }
            } else {
                section = Section::Other;
            }
        }
        Ok(text)
    }

    /// Reads a line such as `3: size 400, color 1, preallocated-temp:`, behind `allocation `.
    fn allocation(&mut self, rest: &str) -> Option<Allocation> {
        let (_, rest) = rest.split_once(": size ")?;
        let (size, kind) = rest.split_once([',', ':'])?;
        let size: Bytes = size.parse().ok()?;
        let outside =
            if kind.trim_start().starts_with("parameter ") || kind.contains(", parameter ") {
                Some("parameters")
            } else {
                let kind = kind.trim().trim_end_matches(':');
                [("constant", "constants"), ("thread-local", "thread-local buffers")]
                    .into_iter()
                    .find_map(|(ending, name)| kind.ends_with(ending).then_some(name))
            };
        if let Some(name) = outside {
            let sum = self.outside.entry(name).or_default();
            *sum = sum.checked_add(size)?;
            return Some(Allocation::Outside);
        }
        let color = kind.split_once("color ").map(|(_, rest)| rest.split([',', ':']).next());
        let space = color.map_or(Some(0), |color| color?.trim().parse().ok())?;
        let own = self.spaces.entry(space).or_default();
        let start = align_up(own.size.checked_add(MAX_ALIGNMENT)? - MAX_ALIGNMENT, MAX_ALIGNMENT);
        own.size = start.checked_add(size)?;
        Some(Allocation::Inside(space, start))
    }
}

const ALLOCATION: &str =
    "expected an allocation such as 'allocation 3: size 400, preallocated-temp:'";
const VALUE: &str =
    "expected a value such as 'value: <12 dot.5 @0> (size=400,offset=0): f32[100]{0}'";
const RANGE: &str = "expected a live range such as 'dot.5{}:2-7'";

/// Reads a value behind `value: <`.
fn value(rest: &str, start: Bytes) -> Option<Buffer> {
    let (head, rest) = rest.split_once("> (size=")?;
    let (_, name) = head.split_once(' ')?;
    let (name, _) = name.rsplit_once(" @")?;
    let name = name.trim_end_matches(" (phi)");
    let name = name.strip_suffix("{}").unwrap_or(name).to_owned();
    let (size, rest) = rest.split_once(",offset=")?;
    let (offset, _) = rest.split_once(')')?;
    let low = start.checked_add(offset.parse().ok()?)?;
    let high = low.checked_add(size.parse().ok()?)?;
    let line = name.clone();
    Some(Buffer { name, line, low, high, begin: 0, end: 0 })
}

/// Reads a line such as `dot.5{}:2-7`.
fn live_range(line: &str) -> Option<(&str, (Step, Step))> {
    let (name, range) = line.rsplit_once(':')?;
    let (begin, end) = range.split_once('-')?;
    let (begin, end) = (begin.parse().ok()?, end.parse().ok()?);
    let name = name.strip_suffix("{}").unwrap_or(name);
    (begin <= end && end < Step::MAX - 1).then_some((name, (begin, end)))
}
