//! Projects lifetimes on several streams onto a chain of moments, each over at the next.
//!
//! The projection of a lifetime reaches from the last moment of the chain that is over when it begins to the first
//! moment at which it is over. If two projections are disjoint, a moment lies between the lifetimes, so one is over
//! before the other begins, and they need not be compared. If streams seldom wait for each other, most projections
//! are long.

use std::{cmp::Reverse, ops::Range};

use crate::{
    Step,
    bodies::{Chains, chains, happens_before},
    problem::constraints::{Clock, Clocks},
};

/// Chains of some clocks, by index, the longest first.
pub(crate) fn longest_chains(clocks: &Clocks) -> Vec<Vec<u32>> {
    let Chains { mut chains, .. } = chains(clocks);
    // The sort is stable, so chains of equal length stay in reverse order: the last one first.
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

    /// The longest chains of some clocks, at most `most` of them, the longest first.
    pub(crate) fn longest(clocks: &Clocks, most: usize) -> Vec<Self> {
        let clock = |at: u32| clocks.get(at as usize).into();
        let line = |chain: Vec<u32>| Self(chain.into_iter().map(clock).collect());
        longest_chains(clocks).into_iter().take(most).map(line).collect()
    }

    /// The projection of a lifetime, as a half-open range of positions on the chain; never empty.
    pub(crate) fn steps(&self, begin: &[Step], end: &[Step]) -> Range<i128> {
        let begun = self.0.partition_point(|moment| happens_before(moment, begin));
        let over = self.0.partition_point(|moment| !happens_before(end, moment));
        begun as i128..over as i128 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{TimedBox, concurrent};

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
            let life = |one: &TimedBox| line.steps(&one.begin, &one.end);
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
