//! Buffers that another planner has placed, with lifetimes: which of them are one chunk, and which are written over
//! another.

use std::collections::HashMap;

use crate::{
    Bytes, Problem, Step,
    import::{Format, ImportError, recording::Recording},
};

/// A buffer.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) name: String,
    /// The line of code or the operator that made it.
    pub(super) line: String,
    /// Its bytes, from the start of all allocations.
    pub(super) low: Bytes,
    pub(super) high: Bytes,
    /// The steps in which it is alive, half-open.
    pub(super) begin: Step,
    pub(super) end: Step,
}

/// A memory in which a compiler has placed buffers.
pub(super) struct Memory {
    pub(super) format: Format,
    pub(super) name: String,
    /// The bytes that the compiler reserves.
    pub(super) size: Bytes,
    pub(super) steps: Step,
    /// The largest alignment that is assumed from offsets, in bytes.
    pub(super) max_alignment: Bytes,
}

impl Memory {
    /// Makes chunks of the buffers.
    pub(super) fn finish(self, buffers: Vec<Buffer>) -> Result<Recording, ImportError> {
        let offsets = buffers.iter().map(|buffer| buffer.low).chain([self.max_alignment]);
        let alignment = 1 << offsets.map(Bytes::trailing_zeros).min().unwrap_or(0);
        let merged = Merged::of(buffers);
        let mut problem = Problem::builder().alignment(alignment);
        let mut line_names: Vec<Box<str>> = Vec::new();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let (mut chunks, mut lines) = (Vec::new(), Vec::new());
        for buffer in &merged.buffers {
            let (life, size) = (buffer.begin..buffer.end, buffer.high - buffer.low);
            chunks.push(problem.named_chunk(buffer.name.as_str(), life, size));
            lines.push(*numbers.entry(&buffer.line).or_insert_with(|| {
                line_names.push(buffer.line.as_str().into());
                u32::try_from(line_names.len() - 1).unwrap_or(u32::MAX)
            }));
        }
        for &(new, old) in &merged.overwrites {
            let distance = merged.buffers[new].low - merged.buffers[old].low;
            problem.overwrite(chunks[new], chunks[old], distance);
        }
        problem.at_least_steps(self.steps);
        let problem = problem.finish()?;
        Ok(Recording {
            problem,
            format: self.format,
            device: self.name,
            others: Vec::new(),
            events: self.steps,
            begun_before: 0,
            left: 0,
            lost: 0,
            streams: 0,
            reserved: Some(self.size),
            span: Some(self.size),
            touched: Some(self.size),
            offsets: merged.buffers.iter().map(|buffer| buffer.low).collect(),
            lines,
            line_names,
            delegates: 0,
            outside: Vec::new(),
        })
    }
}

/// Buffers that share bytes for more than a step are one; those that meet in a step overwrite each other.
struct Merged {
    buffers: Vec<Buffer>,
    /// The buffer that is written, and the one that it is written over.
    overwrites: Vec<(usize, usize)>,
}

impl Merged {
    fn of(mut buffers: Vec<Buffer>) -> Self {
        loop {
            buffers.retain(|buffer| buffer.low < buffer.high);
            buffers.sort_by(|a, b| {
                (a.begin, a.end, a.low, &a.name).cmp(&(b.begin, b.end, b.low, &b.name))
            });
            let mut overwrites = Vec::new();
            let mut alive: Vec<usize> = Vec::new();
            let mut into: Vec<usize> = (0..buffers.len()).collect();
            for new in 0..buffers.len() {
                let Buffer { low, high, begin, .. } = buffers[new];
                alive.retain(|&old| buffers[old].end > begin);
                for &old in &alive {
                    let other = &buffers[old];
                    if other.high <= low || high <= other.low {
                        continue;
                    }
                    let is_inside = other.low <= low && high <= other.high;
                    if is_inside && other.end == begin + 1 && other.begin < begin {
                        overwrites.push((new, old));
                    } else {
                        into[new] = into[new].min(into[old]);
                    }
                }
                alive.push(new);
            }
            if into.iter().enumerate().all(|(at, &into)| at == into) {
                return Self { buffers, overwrites };
            }
            buffers = union(buffers, &into);
        }
    }
}

/// Joins each buffer with the one that it belongs to, which is before it.
fn union(buffers: Vec<Buffer>, into: &[usize]) -> Vec<Buffer> {
    let mut joined: Vec<Buffer> = Vec::new();
    let mut place = Vec::with_capacity(buffers.len());
    for (buffer, (at, &into)) in buffers.into_iter().zip(into.iter().enumerate()) {
        if into == at {
            place.push(joined.len());
            joined.push(buffer);
        } else {
            place.push(place[into]);
            let own = &mut joined[place[into]];
            (own.low, own.high) = (own.low.min(buffer.low), own.high.max(buffer.high));
            (own.begin, own.end) = (own.begin.min(buffer.begin), own.end.max(buffer.end));
        }
    }
    joined
}
