//! Effort: the unit of a search's work, and the outcomes of a search that is limited by it.

use crate::{Limits, search::sizes::WORK_PER_NODE};

/// The nodes of the shortest round.
pub const UNIT: u64 = 1000;

/// The nodes that tell whether a search is easy.
pub const PROBE: u64 = 64;

/// The nodes of a short search: most that succeed at all do so with fewer. A search on several threads begins with as
/// many on one, because threads cost time to start, and share the machine's memory.
pub const SHORT: u64 = 5 * UNIT;

/// After this many failures, or rounds that find nothing, a search tries something else.
pub const PATIENCE: u64 = 6;

/// By default, ejection has nodes on top of the effort: as many as this many first attempts take, up to a limit.
pub const ON_TOP: u64 = 25;

/// The most nodes of ejection on top of the effort.
pub const MAX_ON_TOP: u64 = 3_200_000;

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is placed.
    Packed,
    /// There is no packing.
    Refuted,
    /// The budget is spent.
    NodeLimit,
}

/// The nodes that a search counts: a node that examines many bodies or pairs counts for several.
pub fn weigh(nodes: u64, work: u64) -> u64 {
    nodes + work / WORK_PER_NODE as u64
}

/// The nodes that ejection may spend on top of the default effort, if a first attempt takes `share` nodes: at most
/// `most`, multiplied when the search repeats with more effort. 0 if the caller gave an effort.
pub fn on_top(share: u64, most: u64, limits: &Limits) -> u64 {
    let nodes = share.saturating_mul(ON_TOP).min(most).saturating_mul(limits.times);
    if limits.is_default() { nodes } else { 0 }
}

/// Luby's sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..., from 1 (Luby, Sinclair, Zuckerman 1993).
pub fn luby(mut i: u64) -> u64 {
    loop {
        let power = (i + 1).next_power_of_two();
        if power == i + 1 {
            return power / 2;
        }
        i -= power / 2 - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_the_lengths_of_lubys_sequence() {
        let lengths: Vec<u64> = (1..=31).map(luby).collect();
        let half = [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8];
        assert_eq!(lengths, [&half[..], &half[..], &[16]].concat());
    }

    #[test]
    fn every_sixty_four_bodies_examined_count_as_a_node() {
        assert_eq!([weigh(5, 0), weigh(5, 63), weigh(5, 64), weigh(5, 640)], [5, 5, 6, 15]);
    }
}
