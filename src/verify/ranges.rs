//! The bytes of a content that are needed for different times: the bytes that a view shows may be read for longer than
//! the others.

use std::{collections::BinaryHeap, ops::Range};

use crate::{Bytes, Step};

/// Bytes of a content, and the step after the last in which they are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) low: Bytes,
    /// The byte after the last.
    pub(super) high: Bytes,
    pub(super) end: Step,
}

/// Splits bytes that are all needed until `end` into ranges, ascending, by the reads of some of them. Neighbouring
/// ranges have different ends.
pub(super) fn split(bytes: &Range<Bytes>, end: Step, mut reads: Vec<Need>) -> Vec<Need> {
    for read in &mut reads {
        (read.low, read.high) = (read.low.max(bytes.start), read.high.min(bytes.end));
    }
    reads.retain(|read| read.low < read.high && read.end > end);
    reads.sort_unstable_by_key(|read| read.low);
    let mut bounds: Vec<Bytes> = reads.iter().flat_map(|read| [read.low, read.high]).collect();
    bounds.extend([bytes.start, bytes.end]);
    bounds.sort_unstable();
    bounds.dedup();
    // For each read that has begun: the step until which it needs its bytes, and the byte after its last one.
    let mut open: BinaryHeap<(Step, Bytes)> = BinaryHeap::new();
    let mut reads = reads.into_iter().peekable();
    let mut needs: Vec<Need> = Vec::new();
    for pair in bounds.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        while let Some(read) = reads.next_if(|read| read.low <= low) {
            open.push((read.end, read.high));
        }
        while open.peek().is_some_and(|&(_, high)| high <= low) {
            open.pop();
        }
        let end = open.peek().map_or(end, |&(end, _)| end);
        match needs.last_mut() {
            Some(last) if last.end == end => last.high = high,
            _ => needs.push(Need { low, high, end }),
        }
    }
    needs
}

/// The bytes that are in none of some ranges, which ascend.
pub(super) fn outside(
    bytes: Range<Bytes>,
    ranges: impl Iterator<Item = Range<Bytes>>,
) -> Vec<Range<Bytes>> {
    let mut left = Vec::new();
    let mut low = bytes.start;
    for range in ranges {
        if low < range.start.min(bytes.end) {
            left.push(low..range.start.min(bytes.end));
        }
        low = low.max(range.end);
    }
    if low < bytes.end {
        left.push(low..bytes.end);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    /// Compares with every byte on its own.
    #[test]
    fn each_byte_is_needed_until_its_own_last_read() {
        times(1000, |random| {
            let low = random.int_in_range(0..=3)?;
            let bytes = low..low + random.int_in_range(1..=12)?;
            let end = random.int_in_range(0..=4)?;
            let mut reads = Vec::new();
            for _ in 0..random.int_in_range(0..=6)? {
                let low = random.int_in_range(0..=14)?;
                let high = low + random.int_in_range(0..=8)?;
                reads.push(Need { low, high, end: random.int_in_range(0..=8)? });
            }
            let needs = split(&bytes, end, reads.clone());
            assert_eq!((needs[0].low, needs[needs.len() - 1].high), (bytes.start, bytes.end));
            assert!(
                needs.windows(2).all(|two| two[0].high == two[1].low && two[0].end != two[1].end)
            );
            for byte in bytes.clone() {
                let has = |need: &&Need| need.low <= byte && byte < need.high;
                let expected = reads.iter().filter(has).map(|read| read.end).fold(end, Step::max);
                assert_eq!(
                    needs.iter().find(has).map(|need| need.end),
                    Some(expected),
                    "{reads:?}"
                );
            }
            let late: Vec<_> = needs.iter().filter(|need| need.end > 4).collect();
            let left = outside(bytes.clone(), late.iter().map(|need| need.low..need.high));
            for byte in 0..30 {
                let is_left = left.iter().any(|range| range.contains(&byte));
                let is_late = late.iter().any(|need| need.low <= byte && byte < need.high);
                assert_eq!(is_left, bytes.contains(&byte) && !is_late, "{late:?}");
            }
            Ok(())
        });
    }
}
