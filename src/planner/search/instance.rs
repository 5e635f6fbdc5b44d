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
        let at = self.parts.partition_point(|part| part.end as usize <= section);
        self.parts.get(at).filter(|part| part.first as usize <= section)
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

#[cfg(test)]
pub(super) mod tests {
    use arbitrary::{Result, Unstructured};

    use super::*;

    /// A few chunks, some overwritten, some more than once; sometimes aligned and padded.
    pub(in crate::planner::search) fn random_problem(
        random: &mut Unstructured<'_>,
    ) -> Result<Problem> {
        let alignment = *random.choose(&[1, 1, 2, 4])?;
        let padding = *random.choose(&[0, 0, 1])?;
        let mut problem = Problem::builder().alignment(alignment).padding(padding);
        for _ in 0..random.int_in_range(0..=9)? {
            let mut begin = random.int_in_range(0..=11)?;
            let mut end = begin + random.int_in_range(1..=5)?;
            let mut size: u64 = random.int_in_range(1..=9)?;
            let mut chunk = problem.chunk(begin..end, size);
            for _ in 0..random.int_in_range(0..=2)? {
                (begin, end) = (end - 1, end + random.int_in_range(0..=3)?);
                let offset = random.int_in_range(0..=size - 1)?;
                size = random.int_in_range(1..=size - offset)?;
                let overwriter = problem.chunk(begin..end, size);
                problem.overwrite(overwriter, chunk, offset);
                chunk = overwriter;
            }
        }
        Ok(problem.build().unwrap())
    }

    pub(in crate::planner::search) fn instance(problem: &Problem) -> Instance {
        Instance::new(problem, &problem.roots().collect::<Vec<_>>())
    }

    /// The parts of all bodies over a section, by root.
    fn over_section(inst: &Instance, section: u32) -> Vec<(ChunkId, Part)> {
        let whole = |&Item { first, end, size }| vec![Part { first, end, low: 0, high: size }];
        let bodies = inst.items.iter().map(whole).chain(inst.odds.iter().map(|o| o.parts.clone()));
        let mut over: Vec<(ChunkId, Part)> = inst
            .roots
            .iter()
            .zip(bodies)
            .flat_map(|(&root, parts)| parts.into_iter().map(move |part| (root, part)))
            .filter(|(_, part)| (part.first..part.end).contains(&section))
            .collect();
        over.sort_unstable_by_key(|&(root, _)| root);
        over
    }

    /// What each chain occupies in a step, from its root's offset.
    fn over_step(problem: &Problem, step: Step) -> Vec<(ChunkId, Bytes, Bytes)> {
        let all =
            || problem.roots().flat_map(|root| problem.segments(root).map(move |s| (root, s)));
        let ragged = all().any(|(_, s)| s.low % problem.alignment() != 0);
        let high = |high| if ragged { high } else { problem.align_up(high) };
        let mut over: Vec<(ChunkId, Bytes, Bytes)> = all()
            .filter(|(_, s)| (s.begin..s.end).contains(&step))
            .map(|(root, s)| (root, s.low, high(s.high)))
            .collect();
        over.sort_unstable();
        over
    }

    /// What is alive in a section is so in some step, and no step has more.
    #[test]
    fn sections_are_the_fullest_steps() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            assert_eq!(inst.bodies(), problem.roots().count());
            assert_eq!(inst.unit * inst.align % problem.alignment(), 0);
            let steps: Vec<_> = (0..40).map(|step| over_step(&problem, step)).collect();
            let sections: Vec<Vec<(ChunkId, Part)>> =
                (0u32..).take(inst.sections).map(|at| over_section(&inst, at)).collect();
            for (at, section) in sections.iter().enumerate() {
                let has = |other: &Vec<_>| section.iter().all(|part| other.contains(part));
                assert!((0..at).chain(at + 1..inst.sections).all(|o| !has(&sections[o])));
            }
            let bytes =
                |&(root, part): &(_, Part)| (root, part.low * inst.unit, part.high * inst.unit);
            let sections: Vec<Vec<_>> =
                sections.iter().map(|section| section.iter().map(bytes).collect()).collect();
            assert!(sections.iter().all(|section| steps.contains(section)), "{problem:#?}");
            for step in steps.iter().filter(|step| !step.is_empty()) {
                let has = |section: &Vec<_>| step.iter().all(|part| section.contains(part));
                assert!(sections.iter().any(has), "{step:?} of {problem:#?}");
            }
            let most = steps.iter().map(|step| step.iter().map(|(_, l, h)| h - l).sum::<u64>());
            let most = problem.align_up(most.max().unwrap_or(0));
            assert_eq!(inst.bound() * inst.unit, most, "{problem:#?}");
            Ok(())
        });
    }

    /// No step of the search is smaller than it has to be.
    #[test]
    fn the_unit_divides_all_sizes_and_no_larger_one_does() {
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let numbers: Vec<u64> = (0u32..)
                .take(inst.sections)
                .flat_map(|section| over_section(&inst, section))
                .flat_map(|(_, part)| [part.low, part.high])
                .chain((inst.align > 1 && inst.bodies() > 0).then_some(inst.align))
                .collect();
            let common = |by: u64| numbers.iter().all(|number| number.is_multiple_of(by));
            assert!(numbers.is_empty() || !(2..=40).any(common), "{numbers:?} of {problem:#?}");
            Ok(())
        });
    }

    #[test]
    fn an_odd_body_is_over_the_sections_of_its_parts() {
        let part = |first, end| Part { first, end, low: 0, high: 1 };
        let odd = Odd { parts: vec![part(3, 5), part(5, 6)] };
        assert_eq!((odd.first(), odd.end()), (3, 6));
        let parts = (2..7).map(|section| odd.part(section).map(|part| part.first));
        assert_eq!(parts.collect::<Vec<_>>(), [None, Some(3), Some(3), Some(5), None]);
    }

    /// A chain that keeps its bytes is an item; one whose bytes change is not.
    #[test]
    fn staircases_are_odd() {
        let mut problem = Problem::builder();
        let plain = problem.chunk(0..4, 6);
        let whole = problem.chunk(0..2, 4);
        let same = problem.chunk(1..4, 4);
        let large = problem.chunk(0..3, 8);
        let small = problem.chunk(2..4, 2);
        problem.overwrite(same, whole, 0).overwrite(small, large, 6);
        // A section of its own for each of the two steps of the staircase.
        problem.chunk(0..1, 2);
        problem.chunk(3..4, 2);
        let problem = problem.build().unwrap();
        let inst = instance(&problem);
        assert_eq!(inst.roots.iter().position(|&root| root == large), Some(inst.items.len()));
        assert_eq!((inst.odds.len(), inst.unit, inst.sections), (1, 2, 2));
        let odd = inst.odd(4);
        assert_eq!((odd.first(), odd.end()), (0, 2));
        let low = |section| odd.part(section).map(|part| (part.low, part.high));
        assert_eq!([low(0), low(1), low(2)], [Some((0, 4)), Some((3, 4)), None]);
        assert_eq!([3, 4].map(|body| inst.is_odd(body)), [false, true]);
        for root in [plain, whole] {
            assert!(inst.roots[..4].contains(&root));
        }
    }
}
