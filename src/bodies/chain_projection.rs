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
