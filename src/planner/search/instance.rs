//! What the search needs of a problem: sections of time, and items that cover them.

use crate::{Bytes, problem::ChunkId};

/// A rectangle to place: a range of sections times a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    /// The first section.
    pub first: u32,
    /// The section after the last.
    pub end: u32,
    /// In units.
    pub size: u64,
    /// The root of the chain that it stands for.
    pub root: ChunkId,
}

/// A packing problem with time cut into sections.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub items: Vec<Item>,
    pub sections: usize,
    /// Bytes per unit: a common divisor of all sizes.
    pub unit: Bytes,
}

impl Instance {
    pub(super) fn new(boxes: &[(u64, u64, u64, ChunkId)]) -> Self {
        let mut events: Vec<(u64, bool)> = Vec::new();
        for &(begin, end, _, _) in boxes {
            events.push((begin, true));
            events.push((end, false));
        }
        // Ends before begins at one step.
        events.sort_unstable();
        events.dedup();
        // A section closes at an end that follows a begin: only those hold a maximal set.
        let mut closes: Vec<u64> = Vec::new();
        let mut opened = false;
        for &(step, begins) in &events {
            if begins {
                opened = true;
            } else if opened {
                closes.push(step);
                opened = false;
            }
        }
        let unit = boxes.iter().fold(0, |unit, b| gcd(unit, b.2)).max(1);
        let section = |step: u64| u32::try_from(closes.partition_point(|&c| c <= step)).unwrap_or(u32::MAX);
        // Section k ends at closes[k]; an item [begin, end) covers those with begin < closes[k] <= end.
        let mut items: Vec<Item> = boxes
            .iter()
            .map(|&(begin, end, size, root)| Item { first: section(begin), end: section(end), size: size / unit, root })
            .collect();
        items.sort_unstable_by_key(|i| (i.first, i.end, i.size, i.root));
        Self { items, sections: closes.len(), unit }
    }

    pub(super) fn bound(&self) -> u64 {
        let mut live = vec![0i128; self.sections + 1];
        for i in &self.items {
            live[i.first as usize] += i128::from(i.size);
            live[i.end as usize] -= i128::from(i.size);
        }
        let mut sum = 0;
        let mut best = 0;
        for l in live {
            sum += l;
            best = best.max(sum);
        }
        u64::try_from(best).unwrap_or(u64::MAX)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
