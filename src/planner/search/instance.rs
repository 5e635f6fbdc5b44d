//! What the search needs of a problem: time cut into sections, and bodies that cover them.
//!
//! A section is a run of steps with one set of chunks that is contained in no other section's: what
//! fits there fits in all the steps between, so no others are kept. Sizes are counted in units, a
//! common divisor of everything, so that a step of the search is as long as it can be.
//!
//! A chain that is one rectangle is an [`Item`]; a staircase is an [`Odd`] body of several
//! [`Part`]s.

use crate::{
    Bytes, Step,
    problem::{ChunkId, Problem, Segment},
};

/// A rectangle to place: a range of sections times a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// The first section.
    pub first: u32,
    /// The section after the last.
    pub end: u32,
    /// In units.
    pub size: u64,
}

/// One rectangle of a body: sections times units above the body's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub first: u32,
    pub end: u32,
    pub low: u64,
    pub high: u64,
}

/// A body that is more than a rectangle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Odd {
    /// In time; they share no section.
    pub parts: Vec<Part>,
}

impl Odd {
    pub(super) fn first(&self) -> usize {
        self.parts.first().map_or(0, |part| part.first as usize)
    }

    pub(super) fn end(&self) -> usize {
        self.parts.last().map_or(0, |part| part.end as usize)
    }

    /// The part that covers a section.
    pub(super) fn part(&self, section: usize) -> Option<&Part> {
        self.parts.iter().find(|p| (p.first as usize..p.end as usize).contains(&section))
    }
}

/// A packing problem. Bodies are numbered: the items first, then the odd ones.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// By first section, then end, then size: twins are neighbours.
    pub items: Vec<Item>,
    pub odds: Vec<Odd>,
    /// The number of sections.
    pub sections: usize,
    /// Bytes per unit.
    pub unit: Bytes,
    /// Offsets are multiples of this, in units.
    pub align: u64,
    /// The root of each body.
    pub roots: Vec<ChunkId>,
}

impl Instance {
    pub(super) fn new(problem: &Problem, roots: &[ChunkId]) -> Self {
        let mut bodies: Vec<(ChunkId, Vec<Segment>)> =
            roots.iter().map(|&root| (root, rectangles(problem, root))).collect();
        let alignment = problem.alignment();
        let ragged = bodies.iter().flat_map(|b| &b.1).any(|s| s.low % alignment != 0);
        if !ragged {
            // Everything above a segment begins at a multiple of the alignment.
            for segment in bodies.iter_mut().flat_map(|b| &mut b.1) {
                segment.high = problem.align_up(segment.high);
            }
        }
        let closes = closes(&bodies);
        let unit = bodies
            .iter()
            .flat_map(|b| &b.1)
            .flat_map(|s| [s.low, s.high])
            .fold(alignment * u64::from(ragged), gcd)
            .max(1);
        // Section k ends at closes[k], and holds what begins before and ends no earlier.
        let section =
            |step| u32::try_from(closes.partition_point(|&c| c <= step)).unwrap_or(u32::MAX);
        let part = |s: &Segment| Part {
            first: section(s.begin),
            end: section(s.end),
            low: s.low / unit,
            high: s.high / unit,
        };
        let (mut items, mut odds) = (Vec::new(), Vec::new());
        for (root, segments) in &bodies {
            let mut parts: Vec<Part> = segments.iter().map(part).collect();
            parts.retain(|p| p.first < p.end);
            match parts[..] {
                [Part { first, end, low: 0, high: size }] => {
                    items.push((Item { first, end, size }, *root));
                }
                _ => odds.push((Odd { parts }, *root)),
            }
        }
        items.sort_by_key(|&(i, root)| (i.first, i.end, i.size, root));
        let roots = items.iter().map(|i| i.1).chain(odds.iter().map(|o| o.1)).collect();
        Self {
            items: items.into_iter().map(|i| i.0).collect(),
            odds: odds.into_iter().map(|o| o.0).collect(),
            sections: closes.len(),
            unit,
            align: (alignment / unit).max(1),
            roots,
        }
    }

    /// The number of bodies.
    pub(super) fn bodies(&self) -> usize {
        self.items.len() + self.odds.len()
    }

    pub(super) fn odd(&self, body: u32) -> &Odd {
        &self.odds[body as usize - self.items.len()]
    }

    pub(super) fn is_odd(&self, body: u32) -> bool {
        body as usize >= self.items.len()
    }

    /// The largest sum of sizes over a section, a multiple of the alignment.
    pub(super) fn bound(&self) -> u64 {
        let mut change = vec![0i128; self.sections + 1];
        let mut add = |first: u32, end: u32, size: u64| {
            change[first as usize] += i128::from(size);
            change[end as usize] -= i128::from(size);
        };
        for i in &self.items {
            add(i.first, i.end, i.size);
        }
        for p in self.odds.iter().flat_map(|o| &o.parts) {
            add(p.first, p.end, p.high - p.low);
        }
        let mut live = 0;
        let most = change.into_iter().map(|c| {
            live += c;
            live
        });
        u64::try_from(most.max().unwrap_or(0)).unwrap_or(u64::MAX).next_multiple_of(self.align)
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

/// The steps at which sections end: a section closes at an end that follows a begin.
fn closes(bodies: &[(ChunkId, Vec<Segment>)]) -> Vec<Step> {
    let segments = || bodies.iter().flat_map(|b| &b.1);
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
