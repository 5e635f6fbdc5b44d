//! Finds all pairs of rectangles of steps and bytes that overlap.
//!
//! A first sweep over the steps decides whether there are overlaps. In a right plan, no two live rectangles overlap, so
//! an arriving rectangle is compared only with the next one below and the next one above. If these overlap, a second
//! sweep finds all overlaps: it keeps the live rectangles in a tournament tree, ordered by their lowest byte, in which
//! each inner node stores the highest end in its subtree. Each arriving rectangle queries those that begin below its
//! end and end above its start, in O(log n) per result.

use std::collections::BTreeMap;

use crate::{Bytes, Step, verify::Violation};

/// The steps and bytes that a chunk or tensor occupies.
#[derive(Clone, Debug)]
pub(super) struct Rectangle<T> {
    /// The chunk or tensor.
    pub(super) owner: T,
    pub(super) begin: Step,
    pub(super) end: Step,
    pub(super) low: Bytes,
    pub(super) high: Bytes,
}

/// The number of overlaps after which no more are listed: a plan with all offsets 0 has
/// quadratically many.
pub(super) const OVERLAP_LIMIT: usize = 10_000;

/// Returns every overlapping pair as a violation, up to a limit, except pairs that may share the bytes
/// that both have.
pub(super) fn overlaps<T>(
    rectangles: &[Rectangle<T>],
    name: impl Fn(&T) -> String,
    may_share: impl Fn(&Rectangle<T>, &Rectangle<T>) -> bool,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let complete = each_overlap(rectangles, |old, new| {
        if may_share(old, new) {
            return true;
        }
        if found.len() == OVERLAP_LIMIT {
            return false;
        }
        found.push(Violation::Overlap {
            first: name(&old.owner),
            second: name(&new.owner),
            step: new.begin,
            low: old.low.max(new.low),
            high: old.high.min(new.high),
        });
        true
    });
    if !complete {
        found.push(Violation::MoreOverlaps { limit: OVERLAP_LIMIT });
    }
    found
}

/// Visits every overlapping pair, first the one that begins earlier, until `visit` returns false.
/// Returns whether it visited all of them.
pub(super) fn each_overlap<T>(
    rectangles: &[Rectangle<T>],
    mut visit: impl FnMut(&Rectangle<T>, &Rectangle<T>) -> bool,
) -> bool {
    if are_disjoint(rectangles) {
        return true;
    }
    let mut by_low: Vec<&Rectangle<T>> =
        rectangles.iter().filter(|r| r.begin < r.end && r.low < r.high).collect();
    by_low.sort_by_key(|r| r.low);
    let lows: Vec<Bytes> = by_low.iter().map(|r| r.low).collect();
    let mut begins: Vec<usize> = (0..by_low.len()).collect();
    begins.sort_by_key(|&at| by_low[at].begin);
    let mut ends: Vec<usize> = (0..by_low.len()).collect();
    ends.sort_by_key(|&at| by_low[at].end);
    let mut ends = ends.into_iter().peekable();
    let mut live = Tournament::new(by_low.len());
    for at in begins {
        let new = by_low[at];
        while let Some(ended) = ends.next_if(|&ended| by_low[ended].end <= new.begin) {
            live.set(ended, 0);
        }
        let reach = lows.partition_point(|&low| low < new.high);
        if !live.each_above(reach, new.low, |other| visit(by_low[other], new)) {
            return false;
        }
        live.set(at, new.high);
    }
    true
}

/// Returns whether no two rectangles overlap.
fn are_disjoint<T>(rectangles: &[Rectangle<T>]) -> bool {
    /// The times and bytes of a rectangle.
    #[derive(Clone, Copy, Default)]
    struct Sides {
        begin: Step,
        end: Step,
        low: Bytes,
        high: Bytes,
    }
    let mut all: Vec<Sides> = rectangles
        .iter()
        .map(|&Rectangle { begin, end, low, high, .. }| Sides { begin, end, low, high })
        .filter(|sides| sides.begin < sides.end && sides.low < sides.high)
        .collect();
    let mut ends: Vec<(Step, Bytes)> = all.iter().map(|sides| (sides.end, sides.low)).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    all.sort_unstable_by_key(|sides| sides.begin);
    let mut live: BTreeMap<Bytes, Bytes> = BTreeMap::new();
    for Sides { begin, low, high, .. } in all {
        while let Some((_, low)) = ends.next_if(|&(end, _)| end <= begin) {
            live.remove(&low);
        }
        let below = live.range(..=low).next_back();
        let above = live.range(low..).next();
        if below.is_some_and(|(_, &end)| end > low) || above.is_some_and(|(&start, _)| start < high)
        {
            return false;
        }
        live.insert(low, high);
    }
    true
}

/// A complete binary tree of maxima over a fixed number of slots.
struct Tournament {
    /// `nodes[1]` is the root and `nodes[leaves + i]` is slot i; each inner node is the maximum of
    /// its two children.
    nodes: Vec<Bytes>,
    leaves: usize,
}

impl Tournament {
    fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two();
        Self { nodes: vec![0; 2 * leaves], leaves }
    }

    fn set(&mut self, place: usize, value: Bytes) {
        let mut node = self.leaves + place;
        self.nodes[node] = value;
        while node > 1 {
            node /= 2;
            let highest = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
            if self.nodes[node] == highest {
                break;
            }
            self.nodes[node] = highest;
        }
    }

    /// Visits the slots below `reach` whose value is above `floor`, in order, until `visit` returns
    /// false. Returns whether it visited all of them.
    fn each_above(&self, reach: usize, floor: Bytes, mut visit: impl FnMut(usize) -> bool) -> bool {
        // The nodes to visit, with their first slot and number of slots.
        let mut open = vec![(1, 0, self.leaves)];
        while let Some((node, first, width)) = open.pop() {
            if first >= reach || self.nodes[node] <= floor {
                continue;
            }
            if width == 1 {
                if !visit(first) {
                    return false;
                }
                continue;
            }
            let half = width / 2;
            open.push((2 * node + 1, first + half, half));
            open.push((2 * node, first, half));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    /// Few steps and bytes, so that some sets of rectangles overlap and others do not.
    #[test]
    fn overlaps_are_the_same_as_by_comparing_all_pairs() {
        let (mut disjoint, mut overlapping) = (0, 0);
        times(1000, |random| {
            let most = *random.choose(&[4, 12, 60])?;
            let mut rectangles = Vec::new();
            for owner in 0..random.int_in_range(0..=8)? {
                let mut range = || {
                    let start = random.int_in_range(0..=most)?;
                    Ok((start, start + random.int_in_range(0..=3)?))
                };
                let ((begin, end), (low, high)) = (range()?, range()?);
                rectangles.push(Rectangle { owner, begin, end, low, high });
            }
            let mut found = Vec::new();
            each_overlap(&rectangles, |old, new| {
                found.push((old.owner.min(new.owner), old.owner.max(new.owner)));
                true
            });
            found.sort_unstable();
            let meet = |p: &Rectangle<usize>, q: &Rectangle<usize>| {
                p.begin.max(q.begin) < p.end.min(q.end) && p.low.max(q.low) < p.high.min(q.high)
            };
            let pairs = rectangles.iter().flat_map(|p| rectangles.iter().map(move |q| (p, q)));
            let pairs = pairs.filter(|(p, q)| p.owner < q.owner && meet(p, q));
            let expected: Vec<_> = pairs.map(|(p, q)| (p.owner, q.owner)).collect();
            assert_eq!(found, expected, "{rectangles:?}");
            assert_eq!(are_disjoint(&rectangles), expected.is_empty(), "{rectangles:?}");
            disjoint += u32::from(expected.is_empty());
            overlapping += u32::from(!expected.is_empty());
            Ok(())
        });
        assert!(disjoint.min(overlapping) > 20, "{disjoint} disjoint, {overlapping} overlapping");
    }
}
