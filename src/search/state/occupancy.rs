//! Occupancy: the bytes taken over each run of steps, for first packings of 10^5 bodies and more.
//!
//! It is a segment tree over time; its leaves are the runs of steps between two begins. A segment
//! is stored at the fewest nodes that make up its lifetime. Each node keeps the bytes of the segments
//! stored at it, and the bytes of all segments stored at it or below, so O(log n) nodes determine
//! whether bytes are free over a lifetime. In a good packing these bytes form a few runs without
//! holes, however many bodies they come from.

use std::ops::Range;

use crate::{
    Bytes, Step,
    problem::{Problem, Segment},
    search::interval_set::IntervalSet,
    segment_tree::{above, cover},
    sets::distinct,
};

/// A node of the tree over time.
#[derive(Clone, Default)]
struct Node {
    /// The bytes taken during all of its steps, by segments that lie on it.
    whole: IntervalSet,
    /// The bytes taken in some of its steps, by segments that lie on it or below it.
    some: IntervalSet,
}

/// The bytes that are taken.
pub struct Occupancy {
    /// The steps at which anything begins, ascending.
    begins: Vec<Step>,
    /// The nodes of a segment tree over `begins`.
    nodes: Vec<Node>,
    /// The number of runs examined.
    pub work: u64,
}

impl Occupancy {
    /// Creates an occupancy without taken bytes for segments that begin at these steps.
    pub fn new(begins: impl Iterator<Item = Step>) -> Self {
        let begins = distinct(begins);
        let nodes = vec![Node::default(); 2 * begins.len().next_power_of_two()];
        Self { begins, nodes, work: 0 }
    }

    pub fn clear(&mut self) {
        self.work = 0;
        for node in &mut self.nodes {
            node.whole.0.clear();
            node.some.0.clear();
        }
    }

    /// Takes the bytes of a body that lies at `base`.
    pub fn take(&mut self, segments: &[Segment], base: Bytes) {
        let leaves = self.nodes.len() / 2;
        for segment in segments {
            let (low, high) = (base + segment.low, base + segment.high);
            let places = self.places(segment);
            for node in cover(leaves, places.clone()) {
                self.nodes[node].whole.add(low, high);
                self.nodes[node].some.add(low, high);
            }
            for node in above(leaves, places) {
                self.nodes[node].some.add(low, high);
            }
        }
    }

    /// The lowest aligned offset at which a body is clear of all that is taken.
    pub fn lowest(&mut self, segments: &[Segment], problem: &Problem) -> Bytes {
        let lowest = self.lowest_from(segments, 0, |offset| Some(problem.align_up(offset)));
        lowest.unwrap_or(Bytes::MAX)
    }

    /// The lowest offset from `base` on at which a body is clear of all that is taken. `base` must be allowed.
    /// `round_up` raises an offset to the next allowed one, and returns `None` if there is none; then so does this
    /// function.
    pub fn lowest_from(
        &mut self,
        segments: &[Segment],
        mut base: Bytes,
        round_up: impl Fn(Bytes) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let around = segments
            .iter()
            .flat_map(|segment| self.runs_around(segment).map(move |runs| (segment, &runs.0[..])));
        let mut around: Vec<(&Segment, &[(Bytes, Bytes)])> = around.collect();
        around.retain(|(_, runs)| !runs.is_empty());
        let mut work = 0;
        // Each segment in turn lifts the base over the next runs that it meets, until none meets any.
        let (mut turn, mut content) = (0, 0);
        while content < around.len() {
            let (segment, runs) = &mut around[turn];
            while let Some((&(low, high), above)) = runs.split_first() {
                if base + segment.high <= low {
                    break;
                }
                if base + segment.low < high {
                    base = round_up(high - segment.low)?;
                    content = 0;
                }
                *runs = above;
                work += 1;
            }
            work += 1;
            content += 1;
            turn = if turn + 1 < around.len() { turn + 1 } else { 0 };
        }
        self.work += work;
        Some(base)
    }

    /// The lowest offset at which a body lies above all that is taken during its life.
    pub fn top_over(&self, segments: &[Segment]) -> Bytes {
        let tops = segments.iter().flat_map(|segment| {
            self.runs_around(segment).map(|runs| runs.top().saturating_sub(segment.low))
        });
        tops.max().unwrap_or(0)
    }

    /// The bytes taken in a segment's life.
    fn runs_around(&self, segment: &Segment) -> impl Iterator<Item = &IntervalSet> {
        let leaves = self.nodes.len() / 2;
        let places = self.places(segment);
        let some = cover(leaves, places.clone()).map(|node| &self.nodes[node].some);
        some.chain(above(leaves, places).map(|node| &self.nodes[node].whole))
    }

    /// The leaves of a segment's life.
    fn places(&self, segment: &Segment) -> Range<usize> {
        let place = |step: Step| self.begins.partition_point(|&begin| begin < step);
        place(segment.begin)..place(segment.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{search::samples::random_problem, seeds::times};

    #[test]
    fn the_lowest_free_offset_is_found() {
        times(1000, |random| {
            let problem = random_problem(random)?;
            let bodies: Vec<Vec<Segment>> =
                problem.roots().map(|root| problem.segments(root).collect()).collect();
            let mut taken = Occupancy::new(bodies.iter().flatten().map(|segment| segment.begin));
            // The second time, nothing is left of the first.
            for _ in 0..2 {
                let mut laid: Vec<(&Segment, Bytes)> = Vec::new();
                for segments in &bodies {
                    let is_free = |&base: &Bytes| {
                        segments.iter().all(|new| {
                            laid.iter().all(|&(old, at)| {
                                new.end <= old.begin
                                    || old.end <= new.begin
                                    || base + new.high <= at + old.low
                                    || at + old.high <= base + new.low
                            })
                        })
                    };
                    let mut bases = (0..).map(|turn| turn * problem.alignment());
                    let base = bases.find(is_free).unwrap();
                    assert_eq!(taken.lowest(segments, &problem), base, "{problem:#?}");
                    let together = segments.iter().flat_map(|new| {
                        let is_meeting = |old: &Segment| new.begin < old.end && old.begin < new.end;
                        let old = laid.iter().filter(move |(old, _)| is_meeting(old));
                        old.map(|&(old, at)| (at + old.high).saturating_sub(new.low))
                    });
                    assert_eq!(taken.top_over(segments), together.max().unwrap_or(0));
                    taken.take(segments, base);
                    laid.extend(segments.iter().map(|segment| (segment, base)));
                }
                taken.clear();
            }
            Ok(())
        });
    }

    /// The work counts every run and every node with runs, as often as it is examined.
    #[test]
    fn the_work_counts_every_run_that_is_examined() {
        let chunk = crate::problem::ChunkId::from_index(0);
        let segment = |begin, end, low, high| Segment { chunk, begin, end, low, high };
        let mut problem = Problem::builder();
        problem.chunk(0..4, 10);
        let problem = problem.build().unwrap();
        let mut taken = Occupancy::new([0, 1, 2].into_iter());
        assert_eq!((taken.lowest(&[segment(0, 4, 0, 2)], &problem), taken.work), (0, 0));
        taken.take(&[segment(0, 4, 0, 2)], 0);
        taken.take(&[segment(1, 2, 0, 2)], 2);
        assert_eq!((taken.lowest(&[segment(0, 4, 0, 2)], &problem), taken.work), (4, 7));
        taken.clear();
        assert_eq!(taken.work, 0);
    }
}
