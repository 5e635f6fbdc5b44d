//! The figures that a plan states, counted again: its steps, the size of one buffer per chunk, the
//! bytes alive and the step with the most of them (the book, Lower bound and verification).
//!
//! A lower bound may be above the bytes alive if a search proved it, but never below; a plan is
//! proven the smallest only if the bound meets the pool. Only a search could check a bound above
//! the bytes alive.

use std::ops::Range;

use crate::{
    Bytes, Plan, Problem, Step,
    boxes::{Boxes, PlacedBox},
    covered::{self, Covered},
    verify::{Figure, Violation},
};

/// The correct figures of a plan.
pub(super) struct Counted {
    steps: Step,
    naive_size: u128,
    alive: u128,
    peak_step: Step,
}

/// The bytes and steps that a chunk has to itself. The lowest byte may count from its root.
pub(super) struct Life {
    pub(super) begin: Step,
    pub(super) end: Step,
    pub(super) low: u128,
    /// The size without padding.
    pub(super) size: Bytes,
    /// The bytes that it has to itself already in the step before `begin`, because the overwritten chunk does not need
    /// them then.
    pub(super) outside: Vec<Span>,
    /// The bytes that it needs from one step to another, if it does not need all of them from `begin` to `end`.
    pub(super) ranges: Vec<(Step, Step, Span)>,
}

/// A range of addresses, counted from the same origin as [`Life::low`].
#[derive(Clone, Copy)]
pub(super) struct Span {
    low: u128,
    high: u128,
}

impl From<Range<Bytes>> for Span {
    fn from(bytes: Range<Bytes>) -> Self {
        Self { low: bytes.start.into(), high: bytes.end.into() }
    }
}

impl Counted {
    /// Counts from the chunks that the plan lists, with its own overwrite links.
    pub(super) fn of_table(plan: &Plan, steps: Step) -> Self {
        let lives = plan.chunks.iter().map(|chunk| {
            let base = covered::base(chunk.pool);
            let span = |bytes: Range<Bytes>| {
                let Span { low, high } = bytes.into();
                Span { low: base + low, high: base + high }
            };
            Life {
                begin: plan.own_begin(chunk),
                end: chunk.end,
                low: base + u128::from(chunk.offset),
                size: chunk.size,
                outside: plan.outside(chunk).map(span).collect(),
                ranges: Vec::new(),
            }
        });
        Self::of_lives(plan, steps, lives)
    }

    /// Counts from the chunks that the plan of a sequence lists, with its own windows and links.
    pub(super) fn of_boxes(plan: &Plan, steps: Step) -> Self {
        let boxes = Boxes::of(plan);
        if boxes.are_simple() {
            return Self::of_table(plan, steps);
        }
        let lives = plan.chunks.iter().enumerate().map(|(at, chunk)| {
            let base = covered::base(chunk.pool);
            let ranges = boxes.of_chunk(at).map(|PlacedBox { begin, end, low, high }| {
                let Span { low, high } = (low..high).into();
                (begin, end, Span { low: base + low, high: base + high })
            });
            let low = base + u128::from(chunk.offset);
            let ranges = ranges.collect();
            Life { begin: 0, end: 0, low, size: chunk.size, outside: Vec::new(), ranges }
        });
        Self::of_lives(plan, steps, lives)
    }

    /// Counts from the chunks of the problem, with the links that it accepts.
    pub(super) fn of_problem(plan: &Plan, problem: &Problem) -> Self {
        let lives = problem.ids().map(|id| {
            let chunk = problem.chunk(id);
            let link = problem.link(id);
            Life {
                begin: link.map_or(chunk.begin, |link| problem.chunk(link.overwritten).end),
                end: chunk.end,
                low: problem.place_in_chain(id).1.into(),
                size: chunk.size,
                // Only constrained problems have overwriters that extend beyond the
                // overwritten chunk.
                outside: Vec::new(),
                ranges: Vec::new(),
            }
        });
        Self::of_lives(plan, problem.steps(), lives)
    }

    pub(super) fn of_lives(plan: &Plan, steps: Step, lives: impl Iterator<Item = Life>) -> Self {
        let alignment = u128::from(plan.alignment);
        let mut naive_size = 0;
        let mut needs: Vec<(Step, Step, Span)> = Vec::new();
        for Life { begin, end, low, size, outside, ranges } in lives.filter(|life| life.size > 0) {
            let bytes = u128::from(size) + u128::from(plan.padding);
            naive_size += bytes.next_multiple_of(alignment);
            if begin < end && ranges.is_empty() {
                needs.push((begin, end, Span { low, high: low + bytes }));
            }
            needs.extend(ranges.into_iter().filter(|(begin, end, _)| begin < end));
            needs.extend(outside.into_iter().map(|span| (begin.saturating_sub(1), begin, span)));
        }
        let sizes = Sizes { alignment, cut_off: cut_off(plan) };
        let (alive, peak_step) =
            if plan.parts.is_empty() { sum(&needs, sizes) } else { cover(&needs, sizes) };
        Self { steps, naive_size, alive, peak_step }
    }

    /// Removes the bytes alive and the peak step: with several streams, no step has the most bytes alive.
    pub(super) fn without_peak(self) -> Self {
        Self { alive: 0, peak_step: 0, ..self }
    }

    pub(super) fn bytes_alive(&self) -> Bytes {
        Bytes::try_from(self.alive).unwrap_or(Bytes::MAX)
    }
}

/// The sizes that pools may have.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) alignment: u128,
    /// The bytes by which the capacities fall short of multiples of the alignment: a pool may end there.
    pub(super) cut_off: u128,
}

impl Sizes {
    /// The bytes alive in a step that needs `plain` bytes, which lie in `aligned_bytes` bytes of alignment cells.
    pub(super) fn alive(self, plain: u128, aligned_bytes: u128) -> u128 {
        let plain = if self.cut_off == 0 { plain.next_multiple_of(self.alignment) } else { plain };
        plain.max(aligned_bytes.saturating_sub(self.cut_off))
    }
}

/// The bytes by which the capacities of a plan's pools fall short of multiples of its alignment. Pools of buffers
/// are cut off at every buffer, which is a multiple.
fn cut_off(plan: &Plan) -> u128 {
    let whole = plan.pools.iter().filter(|pool| pool.largest.is_none());
    whole.filter_map(|pool| pool.capacity).map(|bytes| short_of(bytes, plan.alignment)).sum()
}

/// The bytes from a capacity to the next multiple of an alignment.
pub(super) fn short_of(capacity: Bytes, alignment: Bytes) -> u128 {
    let capacity = u128::from(capacity);
    capacity.next_multiple_of(alignment.into()) - capacity
}

/// The most bytes needed in one step, and the first such step. No byte is needed twice.
fn sum(needs: &[(Step, Step, Span)], sizes: Sizes) -> (u128, Step) {
    let alignment = sizes.alignment;
    // The step, and the bytes and cells of the alignment that begin there or, if negative, end.
    let mut changes: Vec<(Step, i128, i128)> = Vec::with_capacity(2 * needs.len());
    for &(begin, end, Span { low, high }) in needs {
        let bytes = (high - low).cast_signed();
        let cells = high.next_multiple_of(alignment) - low.next_multiple_of(alignment);
        let cells = cells.cast_signed();
        changes.extend([(begin, bytes, cells), (end, -bytes, -cells)]);
    }
    changes.sort_unstable();
    let (mut alive, mut peak_step) = (0, 0);
    let (mut plain, mut aligned_bytes) = (0_i128, 0_i128);
    for now in changes.chunk_by(|a, b| a.0 == b.0) {
        for (_, bytes, cells) in now {
            (plain, aligned_bytes) = (plain + bytes, aligned_bytes + cells);
        }
        let needed = sizes.alive(plain.cast_unsigned(), aligned_bytes.cast_unsigned());
        if needed > alive {
            (alive, peak_step) = (needed, now[0].0);
        }
    }
    (alive, peak_step)
}

/// As [`sum`], but bytes that a part and its whole both need count once. The spans are addresses.
fn cover(needs: &[(Step, Step, Span)], sizes: Sizes) -> (u128, Step) {
    let mut changes: Vec<(Step, Span, i64)> = Vec::with_capacity(2 * needs.len());
    for &(begin, end, span) in needs {
        changes.extend([(begin, span, 1), (end, span, -1)]);
    }
    changes.sort_unstable_by_key(|&(step, ..)| step);
    let cell = |at: u128| at.next_multiple_of(sizes.alignment);
    let spans = || changes.iter().map(|&(_, span, _)| span);
    let mut plain = Covered::new(spans().flat_map(|span| [span.low, span.high]));
    let mut aligned_bytes =
        Covered::new(spans().flat_map(|span| [cell(span.low), cell(span.high)]));
    let (mut alive, mut peak_step) = (0, 0);
    for now in changes.chunk_by(|a, b| a.0 == b.0) {
        for &(_, Span { low, high }, count) in now {
            plain.add(low, high, count);
            aligned_bytes.add(cell(low), cell(high), count);
        }
        let needed = sizes.alive(plain.length(), aligned_bytes.length());
        if needed > alive {
            (alive, peak_step) = (needed, now[0].0);
        }
    }
    (alive, peak_step)
}

/// Checks that all figures agree with the same count. If they do not, returns the violations against the count that
/// agrees with the most figures.
pub(super) fn check_together(plan: &Plan, counted: &[Counted]) -> Vec<Violation> {
    let checks = counted.iter().map(|one| check(plan, std::slice::from_ref(one)));
    checks.min_by_key(Vec::len).unwrap_or_default()
}

/// Checks that every figure agrees with one of the counts, not necessarily the same one for all figures.
pub(super) fn check(plan: &Plan, counted: &[Counted]) -> Vec<Violation> {
    type Count = fn(&Counted) -> u128;
    let counts: [(Figure, u64, Count); 4] = [
        (Figure::Steps, plan.steps, |counted| counted.steps.into()),
        (Figure::PeakStep, plan.peak_step, |counted| counted.peak_step.into()),
        (Figure::NaiveSize, plan.naive_size, |counted| counted.naive_size),
        (Figure::LowerBound, plan.lower_bound, |counted| counted.alive),
    ];
    let mut violations = Vec::new();
    for (figure, found, count) in counts {
        let right = |counted| match figure {
            Figure::LowerBound => count(counted) <= found.into(),
            _ => count(counted) == found.into(),
        };
        if let Some(first) = counted.first().filter(|_| !counted.iter().any(right)) {
            let expected = u64::try_from(count(first)).unwrap_or(u64::MAX);
            violations.push(Violation::WrongFigure { figure, expected, found });
        }
    }
    let Plan { lower_bound, pool_size, .. } = *plan;
    if plan.proven_optimal && pool_size != lower_bound {
        violations.push(Violation::NotProven { lower_bound, pool_size });
    }
    violations
}
