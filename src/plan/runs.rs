//! Chunks whose bytes are needed for different times. A plan lists such a chunk once, with windows.

use std::collections::BTreeMap;

use crate::{
    Bytes, Plan, PlannedLink, Problem, Step,
    lower::ByteRun,
    plan::{PlannedPart, PlannedWindow, TensorPlace},
};

impl Plan {
    /// Replaces the runs of bytes of each chunk by the chunk itself and its windows.
    pub(super) fn without_runs(mut self, problem: &Problem, runs: &[ByteRun]) -> Self {
        if runs.is_empty() {
            return self;
        }
        // By chunk: the whole that it is a run of, and its first byte there.
        let mut whole_of: Vec<Option<(usize, Bytes)>> = vec![None; self.chunks.len()];
        let mut runs_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &ByteRun { run, whole, low } in runs {
            whole_of[run.index()] = Some((whole.index(), low));
            runs_of.entry(whole.index()).or_default().push(run.index());
        }
        for (&whole, runs) in &runs_of {
            let ends = runs.iter().map(|&run| self.chunks[run].end);
            self.chunks[whole].end = ends.max().unwrap_or(0).max(self.chunks[whole].end);
        }
        let windows = runs_of.iter().flat_map(|(&whole, runs)| self.narrowed(whole, runs));
        let windows: Vec<PlannedWindow> = windows.collect();
        let sizes = runs.iter().map(|one| problem.align_up(problem.padded_size(one.run)));
        self.naive_size -= sizes.sum::<Bytes>();
        // The places of the chunks that stay.
        let mut stay = 0;
        let places: Vec<usize> = whole_of
            .iter()
            .map(|whole| {
                stay += usize::from(whole.is_none());
                stay.saturating_sub(1)
            })
            .collect();
        let place = |chunk: usize| places[whole_of[chunk].map_or(chunk, |(whole, _)| whole)];
        for chunk in &mut self.chunks {
            chunk.overwrites = chunk.overwrites.map(|PlannedLink { chunk: old, offset, below }| {
                let low = whole_of[old].map_or(0, |(_, low)| low);
                PlannedLink { chunk: place(old), offset: offset + low, below }
            });
        }
        for tensor in &mut self.tensors {
            if let TensorPlace::Pool { chunk, .. } = &mut tensor.place {
                *chunk = place(*chunk);
            }
        }
        self.without_parts_of_runs(&whole_of);
        for part in &mut self.parts {
            (part.chunk, part.whole) = (place(part.chunk), place(part.whole));
        }
        for chunk in self.peak.iter_mut().chain(&mut self.pinned) {
            *chunk = place(*chunk);
        }
        self.peak.dedup();
        // Those of a whole chunk only let its runs be overwritten.
        self.windows.retain(|window| !runs_of.contains_key(&window.chunk));
        self.windows.extend(windows);
        for window in &mut self.windows {
            window.chunk = place(window.chunk);
        }
        self.windows.sort_unstable();
        let mut is_run = whole_of.iter().map(Option::is_some);
        self.chunks.retain(|_| is_run.next() == Some(false));
        self.number();
        self
    }

    /// Removes the parts that only tie runs to their own chunk. A run inside a chunk that begins later becomes a part
    /// of the run's whole chunk, because the later chunk gathers it; adjacent parts are merged.
    fn without_parts_of_runs(&mut self, whole_of: &[Option<(usize, Bytes)>]) {
        let mut parts: Vec<PlannedPart> = Vec::with_capacity(self.parts.len());
        for mut part in std::mem::take(&mut self.parts) {
            if let Some((chunk, low)) = whole_of[part.chunk] {
                (part.chunk, part.low) = (chunk, low);
            }
            let made = |chunk: usize| (self.chunks[chunk].begin, chunk);
            if whole_of[part.whole].is_none() && made(part.chunk) < made(part.whole) {
                parts.push(part);
            }
        }
        self.parts = joined(parts);
    }

    /// The windows of a chunk that consists of runs: the bytes that are needed in steps in which not all are.
    fn narrowed(&self, whole: usize, runs: &[usize]) -> Vec<PlannedWindow> {
        let start = self.chunks[whole].offset;
        let low = |run: usize| self.chunks[run].offset - start;
        let first_end = runs.iter().map(|&run| self.chunks[run].end).min().unwrap_or(0);
        // Bytes that are in no run are only written.
        let size: Bytes = runs.iter().map(|&run| self.chunks[run].size).sum();
        let is_all = size == self.chunks[whole].size;
        let first_end = if is_all { first_end } else { self.chunks[whole].begin + 1 };
        let mut windows = Vec::new();
        for &run in runs {
            let (begin, end) = (first_end, self.chunks[run].end);
            if begin < end {
                let high = low(run) + self.chunks[run].size;
                windows.push(PlannedWindow { chunk: whole, begin, end, low: low(run), high });
            }
        }
        // In each step, adjacent runs become one window.
        merged(&windows)
    }

    /// Numbers the chunks in their order.
    fn number(&mut self) {
        for (id, chunk) in (0..).zip(&mut self.chunks) {
            chunk.id = id;
        }
    }
}

/// Joins parts of one chunk that lie beside each other in the chunk and in its whole. Others keep their order.
fn joined(parts: Vec<PlannedPart>) -> Vec<PlannedPart> {
    let mut all: Vec<PlannedPart> = Vec::with_capacity(parts.len());
    for part in parts {
        let end = |one: &PlannedPart| (one.low + one.size, one.offset + one.size);
        let is_next = |last: &&mut PlannedPart| {
            (last.chunk, last.whole) == (part.chunk, part.whole)
                && end(last) == (part.low, part.offset)
        };
        match all.last_mut().filter(is_next) {
            Some(last) => last.size += part.size,
            None => all.push(part),
        }
    }
    all
}

/// Joins windows that lie beside each other for as long as both last.
fn merged(windows: &[PlannedWindow]) -> Vec<PlannedWindow> {
    let mut ends: Vec<Step> = windows.iter().flat_map(|one| [one.begin, one.end]).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut all: Vec<PlannedWindow> = Vec::new();
    for steps in ends.windows(2) {
        let (begin, end) = (steps[0], steps[1]);
        let mut now: Vec<PlannedWindow> = Vec::new();
        for one in windows.iter().filter(|one| one.begin <= begin && end <= one.end) {
            match now.last_mut() {
                Some(last) if last.high == one.low => last.high = one.high,
                _ => now.push(PlannedWindow { begin, end, ..*one }),
            }
        }
        for one in now {
            let bytes = (one.low, one.high);
            match all.iter_mut().find(|last| last.end == begin && (last.low, last.high) == bytes) {
                Some(last) => last.end = end,
                None => all.push(one),
            }
        }
    }
    all
}
