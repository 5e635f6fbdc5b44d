//! Compares a plan with its operator sequence. The contents are counted from the operators. The
//! size, lifetime and link of every chunk follow from its content, and the bound and the peak
//! follow from all contents; the plan must agree.

use std::{collections::HashSet, ops::Range};

use crate::{
    Bytes, OpSequence, Plan, Step,
    boxes::PlacedBox,
    plan::PlannedPart,
    verify::{
        Figure, Violation,
        contents::{self, Content, Contents},
        figures::{self, Counted, Life, Span},
        gathered::joined,
        places::{self, Memory, Places, Workspace},
        ranges::{self, Need},
        required, streams,
        sweep::{Rectangle, overlaps},
        windows,
    },
};

pub(super) fn check(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut checker = Checker::new(sequence, plan);
    checker.check_chunks();
    checker.check_links();
    checker.check_parts();
    checker.check_windows();
    checker.check_overlaps();
    checker.check_streams();
    checker.check_figures();
    checker.violations
}

/// Checks the places of the tensors alone, without the chunks and figures of the plan.
pub(super) fn check_bytes(sequence: &OpSequence, plan: &Plan) -> Vec<Violation> {
    let mut checker = Checker::new(sequence, plan);
    checker.check_overlaps();
    checker.check_streams();
    checker.violations
}

struct Checker<'a> {
    sequence: &'a OpSequence,
    plan: &'a Plan,
    places: Places,
    contents: Contents,
    workspaces: Vec<Workspace>,
    violations: Vec<Violation>,
}

impl<'a> Checker<'a> {
    fn new(sequence: &'a OpSequence, plan: &'a Plan) -> Self {
        let mut violations = Vec::new();
        let places = places::of_tensors(sequence, plan, &mut violations);
        required::check(sequence, &places.of, &mut violations);
        let contents = contents::count(sequence, plan, &places, &mut violations);
        let workspaces = places::workspaces(sequence, plan, &places, &mut violations);
        Self { sequence, plan, places, contents, workspaces, violations }
    }

    fn name(&self, tensor: usize) -> &'a str {
        &self.sequence.tensors()[tensor].name
    }

    /// The contents in the pool, each with the tensor that was written.
    fn in_pool(&self) -> impl Iterator<Item = (usize, &Content)> {
        let contents = self.contents.of.iter().enumerate();
        contents.filter_map(|(at, content)| Some((at, content.as_ref()?))).filter(pool_only)
    }

    /// The chunk of a content, if the plan lists it.
    fn chunk_of(&self, tensor: usize) -> Option<usize> {
        self.places.chunks[tensor].filter(|&chunk| chunk < self.plan.chunks.len())
    }

    /// Checks rule 1 for chunks: each chunk holds exactly one content or one workspace, and lives as long as that is
    /// needed.
    fn check_chunks(&mut self) {
        let mut found = Vec::new();
        let mut ids = HashSet::with_capacity(self.plan.chunks.len());
        for chunk in self.plan.chunks.iter().filter(|chunk| !ids.insert(chunk.id)) {
            found.push(Violation::Repeated { name: format!("chunk {}", chunk.id) });
        }
        let mut holds: Vec<Option<&str>> = vec![None; self.plan.chunks.len()];
        for (tensor, content) in self.in_pool() {
            let Some(chunk) = self.chunk_of(tensor) else { continue };
            let name = self.name(tensor);
            if let Some(first) = holds[chunk].replace(name) {
                found.push(Violation::SharedChunk {
                    chunk: self.plan.chunks[chunk].name.to_string(),
                    first: first.to_owned(),
                    second: name.to_owned(),
                });
                continue;
            }
            let size = self.sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX);
            self.compare(chunk, name, [size, content.written, content.end], &mut found);
        }
        for workspace in &self.workspaces {
            let (step, chunk) = (workspace.step as Step, workspace.chunk);
            holds[chunk] = Some(&workspace.name);
            let size = self.sequence.operators()[workspace.step].workspace;
            self.compare(chunk, &workspace.name, [size, step, step + 1], &mut found);
        }
        for (chunk, _) in self.plan.chunks.iter().zip(&holds).filter(|(_, holds)| holds.is_none()) {
            found.push(Violation::EmptyChunk { chunk: chunk.name.to_string() });
        }
        // A view lies in the chunk of what it shows.
        for tensor in 0..self.sequence.tensors().len() {
            let shown = self.contents.shown[tensor];
            if shown != tensor && self.places.chunks[tensor] != self.places.chunks[shown] {
                found.push(Violation::WrongChunk {
                    tensor: self.name(tensor).to_owned(),
                    shown: self.name(shown).to_owned(),
                });
            }
        }
        drop(holds);
        self.violations.extend(found);
    }

    /// Compares the name, size, begin and end of a chunk with those of its content.
    fn compare(
        &self,
        chunk: usize,
        name: &str,
        expected: [u64; 3],
        violations: &mut Vec<Violation>,
    ) {
        let chunk = &self.plan.chunks[chunk];
        // A chunk without a name is named by its id.
        if *chunk.name != *name && !name.is_empty() {
            let (chunk, holds) = (chunk.name.to_string(), name.to_owned());
            violations.push(Violation::Misnamed { chunk, holds });
        }
        let found = [chunk.size, chunk.begin, chunk.end];
        let fields = [Figure::Size, Figure::Begin, Figure::End];
        for ((field, expected), found) in fields.into_iter().zip(expected).zip(found) {
            if expected != found {
                let name = name.to_owned();
                violations.push(Violation::Changed { name, field, expected, found });
            }
        }
    }

    /// Checks that a chunk overwrites another exactly if its content does.
    fn check_links(&mut self) {
        let mut overwritten: Vec<Option<usize>> = vec![None; self.plan.chunks.len()];
        for (tensor, content) in self.in_pool() {
            if let (Some(chunk), Some(old)) = (self.chunk_of(tensor), content.overwrites) {
                overwritten[chunk] = self.chunk_of(old);
            }
        }
        let name = |chunk: usize| self.plan.chunks[chunk].name.to_string();
        for (chunk, &expected) in overwritten.iter().enumerate() {
            let stated = self.plan.chunks[chunk].overwrites.map(|link| link.chunk);
            let stated = stated.filter(|&old| old < self.plan.chunks.len());
            if let (Some(old), true) = (stated, stated != expected) {
                let (overwriter, overwritten) = (name(chunk), name(old));
                self.violations.push(Violation::OverwriteNotRequested { overwriter, overwritten });
            }
            if let (Some(old), None) = (expected, stated) {
                let (overwriter, overwritten) = (name(chunk), name(old));
                self.violations.push(Violation::LinkMissing { overwriter, overwritten });
            }
        }
    }

    /// Checks rule 2 for contents and workspaces, in the pool and in supplied tensors.
    fn check_overlaps(&mut self) {
        let mut found = Vec::new();
        let mut rectangles: Vec<(Memory, Rectangle<Owner<'_>>)> = Vec::new();
        for (at, content) in self.contents.of.iter().enumerate() {
            let Some(content) = content else { continue };
            let &Content { memory, written, begin, low, .. } = content;
            let owner =
                Owner { name: self.name(at), content: Some(at), overwritten: None, beside: None };
            found.extend(self.destroys(at, content));
            if let Some(old) =
                content.overwrites.filter(|&old| self.contents.gathered.is_shared(old))
            {
                // The overwriter must not be written over contents that share bytes with the overwritten one and are
                // still needed in that step, even if the overwriter is not read later.
                let owner = Owner { overwritten: Some(old), ..owner.clone() };
                let size = self.sequence.tensors()[at].size.unwrap_or(Bytes::MAX);
                // Its padding is not written.
                let (end, high) = (written + 1, low.saturating_add(size));
                rectangles.push((memory, Rectangle { owner, begin: written, end, low, high }));
            }
            rectangles.extend(self.contents.outside(content).into_iter().map(|bytes| {
                let owner = Owner { beside: content.overwrites, ..owner.clone() };
                let (low, high) = (bytes.start, bytes.end);
                (memory, Rectangle { owner, begin: written, end: begin, low, high })
            }));
            rectangles.extend(self.contents.needs(at).map(|Need { low, high, end }| {
                (memory, Rectangle { owner: owner.clone(), begin, end, low, high })
            }));
        }
        rectangles.extend(self.workspaces.iter().map(|workspace| {
            let begin = workspace.step as Step;
            let (low, high) = (workspace.interval.low, workspace.interval.high);
            let owner =
                Owner { name: &workspace.name, content: None, overwritten: None, beside: None };
            (workspace.interval.memory, Rectangle { owner, begin, end: begin + 1, low, high })
        }));
        rectangles.sort_by_key(|(memory, _)| *memory);
        for alike in rectangles.chunk_by(|a, b| a.0 == b.0).filter(|alike| alike.len() > 1) {
            let alike: Vec<_> = alike.iter().map(|(_, one)| one.clone()).collect();
            found.extend(overlaps(
                &alike,
                |owner| owner.name.to_owned(),
                |x, y| self.may_share(x, y),
            ));
        }
        self.violations.extend(found);
    }

    /// Finds bytes of an overwritten content that are read after its overwriter is written, even if no operator reads
    /// the overwriter.
    fn destroys(&self, at: usize, content: &Content) -> Option<Violation> {
        let old = content.overwrites?;
        let interval = |tensor: usize| {
            let size = self.sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX);
            self.places.of[tensor].interval(size)
        };
        // Writing destroys no padding.
        let lost = interval(at)?.common(&interval(old)?)?;
        let steps = self.sequence.operators().len() as Step;
        let is_kept = |&tensor: &usize| {
            self.contents.shown[tensor] == old
                && interval(tensor).is_some_and(|bytes| bytes.common(&lost).is_some())
        };
        if content.written + 1 == steps && self.contents.kept.iter().any(is_kept) {
            let (overwriter, overwritten) = (self.name(at).to_owned(), self.name(old).to_owned());
            return Some(Violation::OverwriteOfKept { overwriter, overwritten });
        }
        let is_lost = |need: &Need| {
            let shares = lost.low.max(need.low) < lost.high.min(need.high);
            shares && need.end > content.written + 1
        };
        self.contents.needs(old).find(is_lost).map(|need| Violation::OverwriteOutOfTime {
            overwriter: self.name(at).to_owned(),
            overwritten: self.name(old).to_owned(),
            begin: content.written,
            last: need.end - 1,
        })
    }

    /// Returns whether two contents have the same bytes where they overlap.
    fn may_share(&self, x: &Rectangle<Owner<'_>>, y: &Rectangle<Owner<'_>>) -> bool {
        let real = |one: &Rectangle<Owner<'_>>| {
            let content = one.owner.content?;
            let size = self.sequence.tensors()[content].size.unwrap_or(Bytes::MAX);
            let end = self.contents.of[content].as_ref()?.low.saturating_add(size);
            Some((content, one.low, one.high.min(end)))
        };
        let gathered = &self.contents.gathered;
        // The operator is the last that needs it, and rule d says which of its inputs it may destroy.
        let is_over = |other: usize, new: &Rectangle<Owner<'_>>, end: Step| {
            let of = self.contents.of[other].as_ref();
            of.is_some_and(|of| of.written < new.begin && end <= new.end && !of.kept)
        };
        // Another content that shares no bytes with the overwritten one cannot lie there in that step.
        let is_harmless = |new: &Rectangle<Owner<'_>>, other: &Rectangle<Owner<'_>>| {
            let (owner, end) = (&new.owner, other.end);
            let other = other.owner.content;
            let related = |old: usize| other.is_some_and(|other| gathered.related(old, other));
            let is_same = owner.content == other || owner.overwritten == other;
            owner.overwritten.is_some_and(|old| {
                is_same || !related(old) || other.is_some_and(|other| is_over(other, new, end))
            })
        };
        let is_written = x.owner.overwritten.is_some() || y.owner.overwritten.is_some();
        // Padding may overlap that of a relative of the overwritten content, as that content may.
        let is_beside = |new: &Rectangle<Owner<'_>>, other: &Rectangle<Owner<'_>>| {
            let relatives = new.owner.beside.zip(other.owner.content);
            relatives.is_some_and(|(old, other)| gathered.related(old, other))
        };
        real(x).zip(real(y)).is_some_and(|(of_x, of_y)| {
            // Writing destroys no padding.
            let is_padding = (is_written || is_beside(x, y) || is_beside(y, x))
                && of_x.1.max(of_y.1) >= of_x.2.min(of_y.2);
            is_padding || is_harmless(x, y) || is_harmless(y, x) || gathered.may_share(of_x, of_y)
        })
    }

    /// Checks that the plan lists a part exactly where an output has an input in its place: a framework does not copy
    /// what is listed.
    fn check_parts(&mut self) {
        let mut listed: HashSet<PlannedPart> = joined(self.plan.parts.clone()).collect();
        let mut found = Vec::new();
        for (whole, content) in self.in_pool() {
            let parts =
                self.contents.gathered.from(whole).iter().filter_map(|&(interval, part)| {
                    let inside = self.contents.of[part].as_ref()?;
                    let low = interval.low.checked_sub(inside.low)?;
                    let offset = interval.low - content.low;
                    let size = interval.high - interval.low;
                    let (chunk, whole) = (self.chunk_of(part)?, self.chunk_of(whole)?);
                    Some(PlannedPart { chunk, whole, offset, low, size })
                });
            for part in joined(parts.collect()).filter(|part| !listed.remove(part)) {
                let name = |chunk: usize| self.plan.chunks[chunk].name.to_string();
                let (offset, part, whole) = (part.offset, name(part.chunk), name(part.whole));
                found.push(Violation::MissingPart { part, whole, offset });
            }
        }
        let name = |chunk: usize| {
            self.plan
                .chunks
                .get(chunk)
                .map_or_else(|| chunk.to_string(), |one| one.name.to_string())
        };
        let mut unknown: Vec<_> = listed.into_iter().collect();
        unknown.sort_unstable();
        found.extend(unknown.into_iter().map(|part| Violation::UnknownPart {
            part: name(part.chunk),
            whole: name(part.whole),
            offset: part.offset,
        }));
        self.violations.extend(found);
    }

    /// Checks rule 2 for operators that may run at the same time. All other checks assume that the operators
    /// run one by one in the order of the list.
    fn check_streams(&mut self) {
        if self.sequence.streams() > 1 {
            let Self { sequence, plan, places, contents, workspaces, .. } = self;
            let found = streams::check(sequence, plan, contents, places, workspaces);
            self.violations.extend(found);
        }
    }

    /// Checks the windows that the plan lists.
    fn check_windows(&mut self) {
        if self.plan.windows.is_empty() {
            return;
        }
        let mut held: Vec<Vec<PlacedBox>> = vec![Vec::new(); self.plan.chunks.len()];
        for (tensor, content) in self.in_pool() {
            let Some(chunk) = self.chunk_of(tensor) else { continue };
            let size = self.sequence.tensors()[tensor].size.unwrap_or(Bytes::MAX);
            let mut need = |steps: Range<Step>, bytes: Range<Bytes>| {
                let (low, high) = (bytes.start - content.low, (bytes.end - content.low).min(size));
                held[chunk].push(PlacedBox { begin: steps.start, end: steps.end, low, high });
            };
            for bytes in self.contents.outside(content) {
                need(content.written..content.begin, bytes);
            }
            for Need { low, high, end } in self.contents.needs(tensor) {
                need(content.begin..end, low..high);
            }
        }
        for workspace in &self.workspaces {
            let (begin, high) =
                (workspace.step as Step, workspace.interval.high - workspace.interval.low);
            held[workspace.chunk].push(PlacedBox { begin, end: begin + 1, low: 0, high });
        }
        windows::check(self.plan, |chunk| held[chunk].clone(), &mut self.violations);
    }

    /// The lifetimes of the contents and workspaces. With `is_by_byte`, each byte counts until it is no longer needed;
    /// otherwise, all bytes of a content count until none is needed.
    fn lives(&self, is_by_byte: bool) -> impl Iterator<Item = Life> {
        let contents = self.in_pool().map(move |(tensor, content)| {
            let &Content { begin, end, low, high, .. } = content;
            let mut outside = Vec::new();
            let mut ranges = Vec::new();
            if is_by_byte {
                outside.extend(self.contents.outside(content).into_iter().map(Span::from));
                let needs = self.contents.needs(tensor).filter(|_| self.contents.is_split(tensor));
                ranges.extend(needs.map(|need| (begin, need.end, (need.low..need.high).into())));
            } else if let Some(old) =
                content.overwrites.and_then(|old| self.contents.of[old].as_ref())
            {
                let left = ranges::outside(low..high, std::iter::once(old.low..old.high));
                outside.extend(left.into_iter().map(Span::from));
            }
            let size = self.sequence.tensors()[tensor].size.unwrap_or(0);
            Life { begin, end, low: low.into(), size, outside, ranges }
        });
        let workspaces = self.workspaces.iter().map(|workspace| Life {
            begin: workspace.step as Step,
            end: workspace.step as Step + 1,
            low: workspace.interval.low.into(),
            size: workspace.interval.high - workspace.interval.low,
            outside: Vec::new(),
            ranges: Vec::new(),
        });
        contents.chain(workspaces)
    }

    fn check_figures(&mut self) {
        if self.plan.alignment.is_power_of_two() {
            // An input in the pool needs its bytes for one step, even if no operator runs.
            let least = Step::from(!self.plan.chunks.is_empty());
            let steps = least.max(self.sequence.operators().len() as Step);
            let mut counted = vec![Counted::of_lives(self.plan, steps, self.lives(true))];
            if self.contents.has_ranges() {
                counted.push(Counted::of_lives(self.plan, steps, self.lives(false)));
                counted.push(Counted::of_boxes(self.plan, steps));
            }
            let has_step = self.sequence.streams() == 1;
            if !has_step {
                counted = counted.into_iter().map(Counted::without_peak).collect();
            }
            let found = figures::check_together(self.plan, &counted);
            self.violations.extend(found);
            if has_step && !self.plan.peak.is_empty() {
                self.violations.push(Violation::PeakOnOneStream);
            }
        }
    }
}

/// A content, or a workspace.
#[derive(Clone)]
struct Owner<'a> {
    name: &'a str,
    content: Option<usize>,
    /// The content that it is written over, if this is the step in which it is written.
    overwritten: Option<usize>,
    /// The content that it is written over, for bytes that this one does not need in that step.
    beside: Option<usize>,
}

fn pool_only((_, content): &(usize, &Content)) -> bool {
    content.memory == Memory::Pool
}
