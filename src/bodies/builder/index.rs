//! An index of chunks or boxes by bytes and by lifetime. It finds those that may share bytes with another one while
//! both are alive, without comparing all of them.

use std::{collections::BTreeSet, ops::Range};

/// The chunks of a body, or its boxes, by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    bytes: Ranges,
    steps: Ranges,
}

impl Index {
    pub(crate) fn add(&mut self, one: usize, bytes: Range<i128>, steps: Range<i128>) {
        self.bytes.add(one, bytes);
        self.steps.add(one, steps);
    }

    /// The entries that share bytes with `bytes` and are alive in some of `steps`, and a few others.
    pub(crate) fn near(&self, bytes: &Range<i128>, steps: &Range<i128>) -> Vec<usize> {
        shorter(self.bytes.near(bytes), self.steps.near(steps))
    }
}

/// An index of ranges. Ranges whose lengths have the same binary logarithm are sorted by their starts, so those
/// that overlap a given range lie side by side.
#[derive(Clone, Debug, Default)]
struct Ranges {
    /// By binary logarithm of the length.
    by_length: BTreeSet<(u32, i128, usize)>,
    /// Bit by bit: the logarithms that occur.
    logarithms: u128,
}

impl Ranges {
    fn add(&mut self, one: usize, range: Range<i128>) {
        let log = (range.end - range.start).max(1).ilog2();
        self.by_length.insert((log, range.start, one));
        self.logarithms |= 1 << log;
    }

    /// The entries whose ranges overlap this one, and a few others.
    fn near(&self, range: &Range<i128>) -> impl Iterator<Item = usize> {
        let (low, high) = (range.start, range.end);
        let logarithms = (0..u128::BITS).filter(|log| self.logarithms >> log & 1 == 1);
        let near = move |log| (log, low - (2_i128 << log), 0)..(log, high, 0);
        logarithms.flat_map(move |log| self.by_length.range(near(log))).map(|&(.., one)| one)
    }
}

/// The elements of the shorter of two iterators. Reads about as many elements of the longer one.
fn shorter<T>(mut a: impl Iterator<Item = T>, mut b: impl Iterator<Item = T>) -> Vec<T> {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    loop {
        match a.next() {
            Some(one) => of_a.push(one),
            None => return of_a,
        }
        match b.next() {
            Some(one) => of_b.push(one),
            None => return of_b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    #[test]
    fn all_that_share_a_number_are_found_and_few_others() {
        let (mut found, mut others) = (0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut ranges = Ranges::default();
            let mut all = Vec::new();
            for at in 0..random.int_in_range(1..=40)? {
                let start = random.int_in_range(-60..=60_i128)?;
                let longest = 1 << random.int_in_range(0..=6)?;
                let end = start + random.int_in_range(1..=longest)?;
                ranges.add(at, start..end);
                all.push((start, end));
            }
            let low = random.int_in_range(-70..=70_i128)?;
            let high = low + random.int_in_range(1..=30)?;
            let near: BTreeSet<usize> = ranges.near(&(low..high)).collect();
            for (one, &(start, end)) in all.iter().enumerate() {
                let shares = start < high && low < end;
                assert!(!shares || near.contains(&one), "{all:?}: {low}..{high}");
                (found, others) = (found + u32::from(shares), others + u32::from(!shares));
                others -= u32::from(!shares && !near.contains(&one));
            }
            Ok(())
        };
        times(1000, one);
        assert!(found > others, "{found} found, {others} others");
    }

    #[test]
    fn the_shorter_sequence_is_read_and_not_much_of_the_longer() {
        let mut read = 0;
        let long = (0..1000).inspect(|_| read += 1);
        assert_eq!(shorter(long, [7, 8, 9].into_iter()), [7, 8, 9]);
        assert_eq!(read, 4);
        assert_eq!(shorter([5].into_iter(), 0..9), [5]);
    }
}
