//! The problem in the form that the search works on: time cut into sections, and bodies that cover them.
//!
//! A section stands for a run of steps whose set of live chunks is contained in that of no other section. The
//! set of every step is contained in that of some section, so bodies that fit in all sections fit in all
//! steps. Sizes are counted in units, the greatest common divisor of all sizes and offsets, so that the
//! search moves in the largest possible steps.
//!
//! A chain that is one rectangle is an [`Item`]; a chain of several [`Part`]s is a [`Staircase`], and so
//! is a body that cannot move.

mod with_pins;

use std::ops::Range;

use crate::{
    Bytes, Step,
    budget::{Budget, Stop},
    monitor::Monitor,
    problem::{ChunkId, Problem, Segment},
    search::{Without, sizes::WORK_PER_NODE},
};
pub use with_pins::Pinned;

/// A range of heights, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub low: u64,
    pub high: u64,
}

impl Span {
    /// Returns whether the two have no height in common.
    pub fn is_clear_of(self, other: Self) -> bool {
        self.high <= other.low || other.high <= self.low
    }
}

/// A rectangle to place: a range of sections times a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The first section.
    pub first: u32,
    /// The section after the last.
    pub end: u32,
    /// In units.
    pub size: u64,
}

impl Item {
    /// The smallest rectangle around the parts of a body, from its offset up.
    pub fn around(parts: &[Part]) -> Self {
        Self {
            first: parts.first().map_or(0, |part| part.first),
            end: parts.last().map_or(0, |part| part.end),
            size: parts.iter().map(|part| part.high).max().unwrap_or(0),
        }
    }

    pub fn sections(&self) -> Range<usize> {
        self.first as usize..self.end as usize
    }

    /// The only part of a body that is this item.
    pub fn part(self) -> Part {
        let Self { first, end, size } = self;
        Part { first, end, low: 0, high: size }
    }

    /// The same item with time reversed, among this many sections.
    fn mirrored(self, sections: usize) -> Self {
        let mirror = |section| u32::try_from(sections).unwrap_or(u32::MAX) - section;
        Self { first: mirror(self.end), end: mirror(self.first), ..self }
    }
}

/// Returns whether more bytes are alive in the first tenth of the sections than in the last.
///
/// Time has no direction for a packing, but ties are broken towards the first section, and on hard problems that
/// makes a difference. So items are searched in one of the two directions, whichever way time runs: some hard public
/// problems take far fewer nodes if the emptier end comes first, and none takes many more.
fn begins_fuller<'a>(items: impl IntoIterator<Item = &'a Item>, sections: usize) -> bool {
    let edge = sections.div_ceil(10);
    let (mut first, mut last) = (0_u128, 0_u128);
    for item in items {
        let Range { start, end } = item.sections();
        let bytes = |sections: usize| u128::from(item.size) * sections as u128;
        first += bytes(end.min(edge).saturating_sub(start));
        last += bytes(end.saturating_sub(start.max(sections - edge)));
    }
    first > last
}

/// One rectangle of a body: sections times units above the body's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub first: u32,
    pub end: u32,
    pub low: u64,
    pub high: u64,
}

impl Part {
    pub fn sections(&self) -> Range<usize> {
        self.first as usize..self.end as usize
    }

    /// The place of the part if its body lies at `offset`.
    pub fn at(&self, offset: u64) -> Span {
        Span { low: offset + self.low, high: offset + self.high }
    }
}

/// A body that is more than a rectangle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staircase {
    /// In time order; no two share a section.
    pub parts: Vec<Part>,
}

impl Staircase {
    /// The sections from the first part to the last.
    pub fn sections(&self) -> Range<usize> {
        Item::around(&self.parts).sections()
    }

    /// The end of its highest part.
    pub fn top(&self) -> u64 {
        Item::around(&self.parts).size
    }

    /// The part that covers a section.
    pub fn part(&self, section: usize) -> Option<&Part> {
        let at = self.parts.partition_point(|part| part.end as usize <= section);
        self.parts.get(at).filter(|part| part.first as usize <= section)
    }
}

/// A packing problem. Bodies are numbered: the items first, then the staircases.
#[derive(Clone, Default, Debug)]
pub struct Instance {
    /// By first section, then end, then size: equal items are neighbours.
    pub items: Vec<Item>,
    pub staircases: Vec<Staircase>,
    /// The number of sections.
    pub sections: usize,
    /// The size of a unit in bytes.
    pub unit: Bytes,
    /// Offsets are multiples of this, in units.
    pub align: u64,
    /// The root of each body.
    pub roots: Vec<ChunkId>,
    /// The bodies that cannot move, all of them staircases; but see [`pins`](Self::pins).
    pub fixed: Vec<Fixed>,
    /// By item: the only offset that it may have; empty if all may have any.
    pub pins: Vec<Option<u64>>,
    /// True sizes to keep beside rounded ones. Limits and packings are then in bytes, not in units.
    pub exact: Option<ExactSizes>,
    /// The same problem with pinned items in the place of fixed rectangles, if [`with_pins`](Self::with_pins) adds it.
    pub pinned: Option<Box<Pinned>>,
    /// The stages that are switched off.
    pub stages: Without,
}

/// A body that cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    pub body: u32,
    /// Its offset, in units.
    pub offset: u64,
}

/// The true sizes of an instance whose sizes are rounded.
#[derive(Clone, Debug)]
pub struct ExactSizes {
    /// By item; multiples of the alignment.
    pub sizes: Vec<Bytes>,
    pub alignment: Bytes,
}

/// A body in bytes and steps, from which an instance is made.
#[derive(Clone, Debug)]
pub struct Outline {
    pub root: ChunkId,
    /// In time order; no two share a step.
    pub segments: Vec<Segment>,
    /// Its offset, if it cannot move; a multiple of the alignment.
    pub fixed: Option<Bytes>,
}

impl Instance {
    /// Creates the instance of some chains, with the stages that the monitor has.
    ///
    /// # Errors
    ///
    /// If the monitor stops it first; a million chains take a while.
    pub fn new(problem: &Problem, roots: &[ChunkId], monitor: &Monitor<'_>) -> Result<Self, Stop> {
        let inst = Self::rounded_within(problem, roots, 1, &mut monitor.budget())?;
        Ok(inst.without(monitor.without()))
    }

    /// Creates the instance with all sizes and inner offsets rounded to the nearest multiple of `grain` bytes, sizes to
    /// at least one grain. Its packings need not be packings of the problem.
    pub fn rounded(problem: &Problem, roots: &[ChunkId], grain: Bytes) -> Self {
        Budget::unlimited(|budget| Self::rounded_within(problem, roots, grain, budget))
    }

    fn rounded_within(
        problem: &Problem,
        roots: &[ChunkId],
        grain: Bytes,
        budget: &mut Budget<'_>,
    ) -> Result<Self, Stop> {
        let mut bodies: Vec<Outline> = Vec::new();
        for &root in roots {
            budget.spend(WORK_PER_NODE)?;
            bodies.push(Outline { root, segments: rectangles(problem, root), fixed: None });
        }
        let alignment = problem.alignment();
        let ragged = bodies.iter().flat_map(|b| &b.segments).any(|s| s.low % alignment != 0);
        if !ragged {
            // Everything above a segment begins at a multiple of the alignment.
            for segment in bodies.iter_mut().flat_map(|b| &mut b.segments) {
                segment.high = problem.align_up(segment.high);
            }
        }
        if grain > 1 {
            let round = |bytes: Bytes| bytes.saturating_add(grain / 2) / grain * grain;
            for segment in bodies.iter_mut().flat_map(|b| &mut b.segments) {
                segment.low = round(segment.low);
                segment.high = round(segment.high).max(segment.low + grain);
            }
        }
        Self::of_outlines_within(&bodies, alignment, ragged, budget)
    }

    /// The same problem with some stages switched off.
    pub fn without(self, stages: Without) -> Self {
        Self { stages, ..self }
    }

    /// The same problem with other items and staircases, each of these with its offset if it cannot move, over other
    /// sections.
    pub fn with_bodies(
        &self,
        items: Vec<(Item, ChunkId)>,
        staircases: Vec<(Staircase, ChunkId, Option<u64>)>,
        sections: usize,
    ) -> Self {
        let numbers = (0u32..).skip(items.len()).zip(&staircases);
        let fixed =
            numbers.filter_map(|(body, &(.., offset))| Some(Fixed { body, offset: offset? }));
        let fixed = fixed.collect();
        let (items, mut roots): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        roots.extend(staircases.iter().map(|&(_, root, _)| root));
        let staircases = staircases.into_iter().map(|(staircase, ..)| staircase).collect();
        let Self { unit, align, stages, .. } = *self;
        Self { items, staircases, sections, unit, align, roots, fixed, stages, ..Self::default() }
    }

    /// Keeps true sizes beside the rounded ones of an instance without staircases, so that its
    /// packings are packings of the problem. Not all packings of the problem are packings of it.
    pub fn with_exact_sizes(mut self, problem: &Problem) -> Self {
        let size = |&root| rectangles(problem, root).iter().map(|s| s.high).max().unwrap_or(0);
        let sizes = self.roots.iter().map(|root| problem.align_up(size(root))).collect();
        self.exact = Some(ExactSizes { sizes, alignment: problem.alignment() });
        self
    }

    /// The size of an item, in the unit of limits and packings.
    pub fn size(&self, item: usize) -> u64 {
        self.exact.as_ref().map_or(self.items[item].size, |exact| exact.sizes[item])
    }

    /// Limits are multiples of this.
    pub fn step(&self) -> u64 {
        self.exact.as_ref().map_or(self.align, |exact| exact.alignment)
    }

    /// Creates the instance of some bodies. Their offsets and the offsets of their parts are multiples of the alignment.
    pub fn of_outlines(bodies: &[Outline], alignment: Bytes) -> Self {
        Budget::unlimited(|budget| Self::of_outlines_within(bodies, alignment, false, budget))
    }

    /// The same within a budget. `ragged` is true if the offsets of some parts are no multiples of the alignment.
    fn of_outlines_within(
        bodies: &[Outline],
        alignment: Bytes,
        ragged: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Self, Stop> {
        let closes = closes(bodies);
        let offsets = bodies.iter().filter_map(|body| body.fixed);
        let unit = bodies
            .iter()
            .flat_map(|b| &b.segments)
            .flat_map(|s| [s.low, s.high])
            .chain(offsets)
            .fold(alignment * u64::from(ragged), gcd)
            .max(1);
        // Section k ends at closes[k]. It holds the segments that begin before this step and do not end earlier.
        let section =
            |step| u32::try_from(closes.partition_point(|&c| c <= step)).unwrap_or(u32::MAX);
        let part = |s: &Segment| Part {
            first: section(s.begin),
            end: section(s.end),
            low: s.low / unit,
            high: s.high / unit,
        };
        let (mut items, mut staircases) = (Vec::new(), Vec::new());
        for Outline { root, segments, fixed } in bodies {
            budget.spend(WORK_PER_NODE)?;
            let mut parts: Vec<Part> = segments.iter().map(part).collect();
            parts.retain(|p| p.first < p.end);
            let offset = fixed.map(|fixed| fixed / unit);
            match parts[..] {
                [Part { first, end, low: 0, high: size }] if offset.is_none() => {
                    items.push((Item { first, end, size }, *root));
                }
                _ => staircases.push((Staircase { parts }, *root, offset)),
            }
        }
        if staircases.is_empty() && begins_fuller(items.iter().map(|(item, _)| item), closes.len())
        {
            for (item, _) in &mut items {
                *item = item.mirrored(closes.len());
            }
        }
        items.sort_unstable();
        let align = (alignment / unit).max(1);
        let empty = Self { unit, align, ..Self::default() };
        Ok(empty.with_bodies(items, staircases, closes.len()))
    }

    /// The distance from the offset of a body to its top.
    pub fn height(&self, body: u32) -> u64 {
        if self.is_staircase(body) { self.staircase(body).top() } else { self.size(body as usize) }
    }

    /// The height of a packing with these offsets, a multiple of [`step`](Self::step).
    pub fn height_of(&self, offsets: &[u64]) -> u64 {
        let tops = (0..).zip(offsets).map(|(body, offset)| offset + self.height(body));
        tops.max().unwrap_or(0).next_multiple_of(self.step())
    }

    /// The number of bodies.
    pub fn bodies(&self) -> usize {
        self.items.len() + self.staircases.len()
    }

    /// The number of sections that a body covers, added up over all bodies.
    pub fn covered(&self) -> usize {
        self.all_parts().map(|part| part.sections().len()).sum()
    }

    /// The parts of each body.
    pub fn parts(&self) -> impl Iterator<Item = Vec<Part>> {
        let items = self.items.iter().map(|item| vec![item.part()]);
        items.chain(self.staircases.iter().map(|staircase| staircase.parts.clone()))
    }

    /// The parts of all bodies.
    pub fn all_parts(&self) -> impl Iterator<Item = Part> {
        let items = self.items.iter().map(|item| item.part());
        items.chain(self.staircases.iter().flat_map(|staircase| &staircase.parts).copied())
    }

    pub fn staircase(&self, body: u32) -> &Staircase {
        &self.staircases[body as usize - self.items.len()]
    }

    pub fn is_staircase(&self, body: u32) -> bool {
        body as usize >= self.items.len()
    }

    /// The sum of sizes over each section.
    pub fn live(&self) -> Vec<u64> {
        let mut change = vec![0i128; self.sections + 1];
        for Part { first, end, low, high } in self.all_parts() {
            change[first as usize] += i128::from(high - low);
            change[end as usize] -= i128::from(high - low);
        }
        let mut live = 0;
        let sums = change.into_iter().take(self.sections).map(|change| {
            live += change;
            u64::try_from(live).unwrap_or(u64::MAX)
        });
        sums.collect()
    }

    /// The largest sum of sizes over a section, a multiple of the alignment.
    pub fn bound(&self) -> u64 {
        self.live().into_iter().max().unwrap_or(0).next_multiple_of(self.align)
    }
}

/// The segments of a chain; neighbours with the same bytes become one.
fn rectangles(problem: &Problem, root: ChunkId) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for segment in problem.segments(root) {
        match segments.last_mut() {
            Some(last)
                if (last.end, last.low, last.high)
                    == (segment.begin, segment.low, segment.high) =>
            {
                last.end = segment.end;
            }
            _ => segments.push(segment),
        }
    }
    segments
}

/// The steps at which sections end: a section closes at the first end of a segment after a begin.
fn closes(bodies: &[Outline]) -> Vec<Step> {
    let segments = || bodies.iter().flat_map(|b| &b.segments);
    // At one step, ends (false) come before begins (true).
    let mut events: Vec<(Step, bool)> =
        segments().map(|s| (s.begin, true)).chain(segments().map(|s| (s.end, false))).collect();
    events.sort_unstable();
    let mut closes = Vec::new();
    let mut opened = false;
    for (step, begins) in events {
        if !begins && opened {
            closes.push(step);
        }
        opened = begins;
    }
    closes
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
