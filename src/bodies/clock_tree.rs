//! A segment tree over pairs of clocks. It finds the boxes that may be alive together with another box.
//!
//! Each leaf holds a low and a high clock, and each node holds the least low and the greatest high clock below it,
//! stream by stream. For a box, the low clock is its begin followed by its end, and the high clock is its end followed
//! by its begin; so each node holds the least and the greatest begin and end below it.
//!
//! Boxes are placed chain by chain, in order of the sums of their begins. A search for
//! the boxes alive together with another one then takes O(log n) for each chain and for each box found: a box that is
//! over before another begins has the smaller sum, so within a chain, the boxes on one side are over or alive, and
//! those on the other side are alive or later, and every node that is not skipped contains a live box. If streams do
//! not wait for each other, all boxes below a node of another stream's chain are alive, and are reported as one node.

use std::ops::Range;

use crate::{
    Step,
    bodies::{
        TimedBox,
        chains::{Chains, chains},
        happens_before,
    },
    problem::constraints::Clocks,
    segment_tree::ancestors,
};

/// Pairs of clocks, by place.
pub(crate) struct ClockTree {
    streams: usize,
    /// The number of places, a power of two.
    leaves: usize,
    /// By node, as in a segment tree: the low clock, then the high one. A place without clocks has the latest
    /// low and the earliest high one.
    clocks: Vec<Step>,
}

impl ClockTree {
    /// Creates a tree of places without clocks.
    pub(crate) fn new(places: usize, streams: usize) -> Self {
        let leaves = places.next_power_of_two();
        let empty = [vec![Step::MAX; streams], vec![0; streams]].concat();
        Self { streams, leaves, clocks: empty.repeat(2 * leaves) }
    }

    /// Creates a tree of places without boxes.
    pub(crate) fn of_boxes(places: usize, streams: usize) -> Self {
        Self::new(places, 2 * streams)
    }

    /// Adds a box to a place.
    pub(crate) fn add_box(&mut self, place: usize, one: &TimedBox) {
        let (begin, end) = (&one.begin, &one.end);
        self.add(place, &[&**begin, end].concat(), &[&**end, begin].concat());
    }

    /// Adds clocks to a place.
    pub(crate) fn add(&mut self, place: usize, low: &[Step], high: &[Step]) {
        for node in self.nodes(place) {
            let at = node * 2 * self.streams;
            let (lows, highs) = self.clocks[at..at + 2 * self.streams].split_at_mut(self.streams);
            for (least, &low) in lows.iter_mut().zip(low) {
                *least = low.min(*least);
            }
            for (most, &high) in highs.iter_mut().zip(high) {
                *most = high.max(*most);
            }
        }
    }

    /// The nodes of a place, from its leaf to the root.
    pub(crate) fn nodes(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        ancestors(self.leaves + place)
    }

    /// An exclusive upper limit of node numbers.
    pub(crate) fn len(&self) -> usize {
        2 * self.leaves
    }

    /// Visits the nodes from the root down, in order of places. `enters` receives a node with its low and high clocks
    /// and returns whether to visit the nodes below it. Returns the number of nodes visited.
    pub(crate) fn visit(&self, mut enters: impl FnMut(usize, &[Step], &[Step]) -> bool) -> usize {
        let (mut node, mut visited) = (1, 0);
        loop {
            visited += 1;
            let at = node * 2 * self.streams;
            let (low, high) = self.clocks[at..at + 2 * self.streams].split_at(self.streams);
            if enters(node, low, high) && node < self.leaves {
                node *= 2;
                continue;
            }
            // The next node to the right that is not above this one.
            node += 1;
            node >>= node.trailing_zeros();
            if node == 1 {
                return visited;
            }
        }
    }

    /// Calls `meet` with the highest nodes all of whose boxes may be alive together with `own`; together they contain
    /// every such box. Returns the number of nodes visited.
    pub(crate) fn visit_meeting(&self, own: &TimedBox, mut meet: impl FnMut(usize)) -> usize {
        self.visit(|node, low, high| {
            let (begins, ends) = low.split_at(own.begin.len());
            let (last_ends, last_begins) = high.split_at(own.begin.len());
            if happens_before(last_ends, &own.begin) || happens_before(&own.end, begins) {
                return false;
            }
            let is_all =
                !happens_before(ends, &own.begin) && !happens_before(&own.end, last_begins);
            if is_all {
                meet(node);
            }
            !is_all
        })
    }

    /// The places below a node.
    pub(crate) fn places(&self, node: usize) -> Range<usize> {
        let below = self.leaves / (1 << node.ilog2());
        let first = node * below - self.leaves;
        first..first + below
    }
}

/// By box: its place in a [`ClockTree`]. Places follow the chains of begins, each in order of time.
pub(crate) fn ranks(boxes: &[TimedBox]) -> Vec<usize> {
    let begins: Clocks = boxes.iter().map(|one| &*one.begin).collect();
    let Chains { chains, rest } = chains(&begins);
    let mut places = vec![0; begins.len()];
    for (place, at) in chains.into_iter().flatten().chain(rest).enumerate() {
        places[at as usize] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bodies::concurrent, seeds::times};

    fn boxed(begin: Vec<Step>, end: Vec<Step>) -> TimedBox {
        TimedBox { begin: begin.into(), end: end.into(), bytes: 0..1 }
    }

    /// A tree with places for all boxes and the first ones in it.
    fn tree_of(boxes: &[TimedBox], ranks: &[usize], added: usize) -> ClockTree {
        let mut tree = ClockTree::new(boxes.len(), boxes[0].begin.len());
        for (one, &rank) in boxes.iter().zip(ranks).take(added) {
            tree.add(rank, &one.begin, &one.end);
        }
        tree
    }

    /// The ranks of the boxes that are alive together with one, and the number of nodes examined.
    fn alive(tree: &ClockTree, own: &TimedBox) -> (Vec<usize>, usize) {
        let mut found = Vec::new();
        let work = tree.visit(|node, begin, end| {
            let enters = !happens_before(end, &own.begin) && !happens_before(&own.end, begin);
            if enters && node >= tree.leaves {
                found.push(node - tree.leaves);
            }
            enters
        });
        (found, work)
    }

    #[test]
    fn the_boxes_alive_together_are_those_of_comparing_all() {
        let mut found = 0;
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let streams = random.int_in_range(1..=3)?;
            let mut boxes = Vec::new();
            for _ in 0..random.int_in_range(1..=12)? {
                let (mut begin, mut end) = (Vec::new(), Vec::new());
                for _ in 0..streams {
                    begin.push(random.int_in_range(0..=9)?);
                    end.push(begin[begin.len() - 1] + random.int_in_range(0..=3)?);
                }
                boxes.push(boxed(begin, end));
            }
            let ranks = ranks(&boxes);
            let added = random.int_in_range(1..=boxes.len())?;
            for added in [boxes.len(), added] {
                let tree = tree_of(&boxes, &ranks, added);
                for own in &boxes {
                    let together = boxes.iter().zip(&ranks).take(added);
                    let together = together.filter(|(one, _)| concurrent(one, own));
                    let mut expected: Vec<usize> = together.map(|(_, &rank)| rank).collect();
                    expected.sort_unstable();
                    assert_eq!(alive(&tree, own).0, expected, "{boxes:?}");
                    found += expected.len();
                }
            }
            Ok(())
        };
        times(1000, one);
        assert!(found > 0, "{found}");
    }

    /// Four streams in turn, each of which waits for the one before it now and then.
    #[test]
    fn few_nodes_are_examined_for_each_box_that_is_alive() {
        let mut last = vec![vec![0; 4]; 4];
        let mut boxes: Vec<TimedBox> = Vec::new();
        for at in 0..4096 {
            let (own, other) = (at % 4, (at + 3) % 4);
            let mut clock = last[own].clone();
            if at % 3 == 0 {
                for (step, &seen) in clock.iter_mut().zip(&last[other]) {
                    *step = seen.max(*step);
                }
            }
            let begin = clock.clone();
            clock[own] += 1;
            last[own].clone_from(&clock);
            clock[own] += Step::from(at % 64 == 0) * 100;
            boxes.push(boxed(begin, clock));
        }
        let ranks = ranks(&boxes);
        let tree = tree_of(&boxes, &ranks, boxes.len());
        let (mut all, mut examined) = (0, 0);
        for own in &boxes {
            let (found, work) = alive(&tree, own);
            all += found.len();
            examined += work;
        }
        // Twelve levels, and two nodes on each.
        assert!(examined < 24 * (all + boxes.len()), "{examined} for {all}");
        assert!(all < 100 * boxes.len(), "{all}");
    }
}
