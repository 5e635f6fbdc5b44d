//! The bytes taken on several streams, for first packings of 10^5 bodies and more.
//!
//! A tree over clocks finds the boxes that lie here and are alive together with a new one. Each excludes a
//! range of offsets; the lowest offset outside all of them is free.

use crate::{
    Bytes,
    planner::statement::Statement,
    problem::demands::{ClockTree, TimedBox, is_over},
};

/// The boxes that lie in a pool.
pub(super) struct InClocks<'a> {
    statement: &'a Statement<'a>,
    tree: ClockTree,
    /// By place in the tree: a box, and the offset of its body.
    boxes: Vec<Option<(&'a TimedBox, Bytes)>>,
}

impl<'a> InClocks<'a> {
    pub(super) fn new(statement: &'a Statement<'a>) -> Self {
        let count = statement.boxes.iter().map(Vec::len).sum();
        let tree = ClockTree::new(count, statement.streams());
        Self { statement, tree, boxes: vec![None; count] }
    }

    /// Takes the bytes of a body that lies at an offset.
    pub(super) fn take(&mut self, body: usize, offset: Bytes) {
        for (one, &place) in self.statement.boxes[body].iter().zip(&self.statement.ranks[body]) {
            self.tree.add(place, &one.begin, &one.end);
            self.boxes[place] = Some((one, offset));
        }
    }

    /// The lowest offset from `offset` on at which boxes are clear of all that is taken. `lift` raises an
    /// offset to the next allowed one; `None` if there is none.
    pub(super) fn lowest_from(
        &self,
        boxes: &[TimedBox],
        mut offset: Bytes,
        lift: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        // The first offset that clashes, and the first above it that does not.
        let mut ranges: Vec<(Bytes, Bytes)> = Vec::new();
        for own in boxes {
            let enters =
                |begin: &[_], end: &[_]| !is_over(end, &own.begin) && !is_over(&own.end, begin);
            self.tree.visit(enters, |place| {
                let Some((other, base)) = self.boxes[place] else { return };
                let (low, high) = (base + other.bytes.start, base + other.bytes.end);
                if high > own.bytes.start {
                    let first = low.saturating_add(1).saturating_sub(own.bytes.end);
                    ranges.push((first, high - own.bytes.start));
                }
            });
        }
        ranges.sort_unstable();
        for (low, high) in ranges {
            if low <= offset && offset < high {
                offset = lift(high)?;
            }
        }
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Problem, demands::concurrent};

    #[test]
    fn the_lowest_free_offset_is_found() {
        let mut lifted = 0;
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut problem = Problem::builder();
            problem.streams(2);
            for _ in 0..random.int_in_range(1..=10)? {
                let chunk = problem.chunk(0..1, random.int_in_range(1..=6)?);
                let begin = [random.int_in_range(0..=5)?, random.int_in_range(0..=5)?];
                let (more, beside) = (random.int_in_range(1..=3)?, random.int_in_range(0..=2)?);
                let end = [begin[0] + more, begin[1] + beside];
                problem.clocks(chunk, begin.into(), end.into(), 0);
            }
            let problem = problem.build().unwrap();
            let statement = Statement::of(&problem);
            let mut taken = InClocks::new(&statement);
            let mut laid: Vec<(&TimedBox, Bytes)> = Vec::new();
            for (body, boxes) in statement.boxes.iter().enumerate() {
                let is_free = |&base: &Bytes| {
                    boxes.iter().all(|new| {
                        laid.iter().all(|&(old, at)| {
                            !concurrent(new, old)
                                || base + new.bytes.end <= at + old.bytes.start
                                || at + old.bytes.end <= base + new.bytes.start
                        })
                    })
                };
                let from = random.int_in_range(0..=3)?;
                let expected = (from..).step_by(2).find(is_free);
                let lift = |offset: Bytes| Some(offset + (offset - from) % 2);
                assert_eq!(taken.lowest_from(boxes, from, lift), expected, "{problem:?}");
                lifted += u32::from(expected > Some(from));
                let base = expected.unwrap();
                taken.take(body, base);
                laid.extend(boxes.iter().map(|one| (one, base)));
            }
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(200);
        assert!(lifted > 0, "{lifted}");
    }
}
