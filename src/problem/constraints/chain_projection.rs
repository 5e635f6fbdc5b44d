//! A line of moments on several streams, each over at the next.
//!
//! A life lasts from the last of these moments that is over when it begins to the first at which it is over. Of
//! two lives with nothing in common on the line, one is over before the other begins, as a moment lies
//! between them. So the line tells which lives need not be compared. Where streams seldom wait for each other,
//! most lives are long on it.

use std::{cmp::Reverse, ops::Range};

use crate::{
    Step,
    problem::constraints::{Chains, Clock, Clocks, chains, happens_before},
};

/// Chains of some clocks, by index, the longest first.
pub(crate) fn longest_chains(clocks: &Clocks) -> Vec<Vec<u32>> {
    let Chains { mut chains, .. } = chains(clocks);
    // Of chains of one length, the last one comes first.
    chains.reverse();
    chains.sort_by_key(|chain| Reverse(chain.len()));
    chains
}

/// Moments, each over at the next.
pub(crate) struct ChainProjection(Vec<Clock>);

impl ChainProjection {
    /// The longest chain of some clocks.
    pub(crate) fn of(clocks: &Clocks) -> Self {
        Self::longest(clocks, 1).pop().unwrap_or(Self(Vec::new()))
    }

    /// The longest chains of some clocks, no more than this many, the longest first.
    pub(super) fn longest(clocks: &Clocks, most: usize) -> Vec<Self> {
        let clock = |at: u32| clocks.get(at as usize).into();
        let line = |chain: Vec<u32>| Self(chain.into_iter().map(clock).collect());
        longest_chains(clocks).into_iter().take(most).map(line).collect()
    }

    /// A life on the line.
    pub(crate) fn life(&self, begin: &[Step], end: &[Step]) -> Range<usize> {
        let begun = self.0.partition_point(|moment| happens_before(moment, begin));
        begun..self.0.partition_point(|moment| !happens_before(end, moment)) + 1
    }

    /// A life on the line, for an index by lives.
    pub(super) fn steps(&self, begin: &[Step], end: &[Step]) -> Range<i128> {
        let life = self.life(begin, end);
        life.start as i128..life.end as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::constraints::{TimedBox, concurrent};

    #[test]
    fn lives_with_nothing_in_common_are_not_concurrent() {
        let (mut found, mut others) = (0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut all = Vec::new();
            for _ in 0..random.int_in_range(2..=20)? {
                let begin: Step = random.int_in_range(0..=20)?;
                let begin = [begin, (begin + random.int_in_range(0..=5)?).saturating_sub(3)];
                let more = [random.int_in_range(1..=3)?, random.int_in_range(0..=2)?];
                let end = [begin[0] + more[0], begin[1] + more[1]].into();
                all.push(TimedBox { begin: begin.into(), end, bytes: 0..1 });
            }
            let begins: Clocks = all.iter().map(|one| &*one.begin).collect();
            let line = ChainProjection::of(&begins);
            let life = |one: &TimedBox| line.life(&one.begin, &one.end);
            for (p, q) in all.iter().flat_map(|p| all.iter().map(move |q| (p, q))) {
                let (first, second) = (life(p), life(q));
                let is_apart = first.end <= second.start || second.end <= first.start;
                assert!(!is_apart || !concurrent(p, q), "{all:?}: {p:?}, {q:?}");
                found += u32::from(is_apart);
                others += u32::from(!is_apart && !concurrent(p, q));
            }
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(200);
        assert!(found > others, "{found} found, {others} others");
    }
}
