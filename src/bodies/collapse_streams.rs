//! Turns a problem on several streams into one on a single stream, if its boxes form an *interval order*.
//!
//! The *predecessors* of a box are the boxes that are over before it begins. If, of any two sets of predecessors,
//! one contains the other, "is over before" is an interval order, and each set becomes a step, the smallest set
//! first: a box begins in the step of its own set, and ends in the step of the first set that contains it. Then the
//! same pairs of boxes are alive together as before.
//!
//! One step after an overwriter begins, it alone has its bytes, and there the overwritten chunk ends. So the
//! overwriter begins in the last step of the overwritten chunk. If this gives other boxes than the steps above, or
//! makes other overwrites possible, the problem keeps its streams.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::{
    Step,
    bodies::{ClockTree, TimedBox, TimedBoxes, happens_before, wide_sum},
    budget::{Budget, Stop},
    problem::{
        ChunkId, Link, Problem, ProblemBuilder, Request,
        constraints::{ChunkConstraints, Clock, Constraints},
    },
    sets::distinct,
};

/// The most tree nodes that are visited. A problem that can be collapsed needs far fewer.
const MAX_WORK: usize = 100_000_000;

/// The work of adding a box to a tree, or of looking it up.
const WORK_PER_BOX: usize = 4;

/// [`Problem::is_no_interval_order`] samples this many chunks, and compares each with `LATER` chunks after it and
/// `EARLIER` chunks before it.
const SAMPLES: usize = 64;
const LATER: usize = 16;
const EARLIER: usize = 1024;

impl Problem {
    /// The same problem on one stream, or `None` if it has only one stream or its lifetimes cannot be written as ranges
    /// of steps without changing which chunks are alive together. All other constraints and the accepted overwrites
    /// stay the same, so a layout of either problem is a layout of the other.
    #[must_use]
    pub fn collapse_streams(&self) -> Option<Self> {
        self.linear().cloned()
    }

    /// As [`collapse_streams`](Self::collapse_streams), computed once and kept.
    pub(crate) fn linear(&self) -> Option<&Self> {
        Budget::unlimited(|budget| self.linear_within(budget))
    }

    /// As [`linear`](Self::linear), within a budget. A search that is stopped keeps nothing.
    pub(crate) fn linear_within(&self, budget: &mut Budget<'_>) -> Result<Option<&Self>, Stop> {
        if let Some(linear) = self.derived.linear.get() {
            return Ok(linear.as_ref());
        }
        let mut linear = None;
        if self.streams() > 1 && !self.is_no_interval_order() {
            budget.look()?;
            let boxes = in_steps(&self.all_boxes(), budget)?;
            let steps = boxes.as_ref().and_then(|boxes| self.on_one_stream(boxes));
            budget.look()?;
            let is_same = |linear: &Self| {
                let mut ids = self.ids();
                ids.all(|chunk| linear.link(chunk) == self.link(chunk))
                    && Some(linear.all_boxes()) == boxes
            };
            linear = steps.and_then(|steps| steps.finish().ok()).filter(is_same);
        }
        Ok(self.derived.linear.get_or_init(|| linear).as_ref())
    }

    /// The problem on one stream, with the lives that follow from these boxes there.
    fn on_one_stream(&self, boxes: &[TimedBoxes]) -> Option<ProblemBuilder> {
        let mut linear = Self::builder().alignment(self.alignment).padding(self.padding);
        let mut ends: Vec<Step> = vec![0; self.len()];
        let mut begins: Vec<Step> = vec![0; self.len()];
        for root in self.ids().filter(|&chunk| self.link(chunk).is_none()) {
            for chunk in self.chain(root) {
                let at = chunk.index();
                let old = self.link(chunk).map(|link| ends[link.overwritten.index()]);
                begins[at] = match old {
                    Some(end) => end.checked_sub(1)?,
                    None => boxes[at].first().map_or(0, |one| one.begin[0]),
                };
                ends[at] = boxes[at].last().map_or(begins[at] + 1, |one| one.end[0]);
            }
        }
        for (at, chunk) in self.chunks.iter().enumerate() {
            linear.chunk(begins[at]..ends[at], chunk.size);
        }
        linear.labels = self.labels.clone();
        self.all_constraints().copy_without_streams(&mut linear);
        // No layout may do without a required overwrite.
        let required: HashSet<(ChunkId, ChunkId)> = self
            .requests
            .iter()
            .filter(|r| r.required)
            .map(|r| (r.overwriter, r.overwritten))
            .collect();
        for overwriter in self.ids() {
            if let Some(Link { overwritten, offset, below }) = self.link(overwriter) {
                let required = required.contains(&(overwriter, overwritten));
                linear.request(Request { overwriter, overwritten, offset, below, required });
            }
        }
        Some(linear)
    }

    /// Looks at a sample for two begins each of which has a predecessor that the other lacks; then the boxes form no
    /// interval order. Most problems that cannot be collapsed are found this way.
    fn is_no_interval_order(&self) -> bool {
        // Without a link, a box is the life of its chunk.
        let life = |at: usize| {
            let is_whole =
                self.chunks[at].size > 0 && self.links.get(ChunkId::from_index(at)).is_none();
            self.all_constraints().lives.get(at).filter(|_| is_whole)
        };
        let is_apart = |a: &Clock, b: &Clock| !happens_before(a, b) && !happens_before(b, a);
        (0..self.len()).step_by(self.len().div_ceil(SAMPLES).max(1)).any(|at| {
            let Some(first) = life(at) else { return false };
            let near = (at + 1..self.len()).take(LATER);
            let mut near = near.filter_map(|other| Some((other, &life(other)?.begin)));
            let Some((from, second)) = near.find(|(_, begin)| is_apart(&first.begin, begin)) else {
                return false;
            };
            let (mut of_first, mut of_second) = (false, false);
            for end in
                (from.saturating_sub(EARLIER)..from).rev().filter_map(life).map(|life| &life.end)
            {
                let (in_first, in_second) =
                    (happens_before(end, &first.begin), happens_before(end, second));
                of_first |= in_first && !in_second;
                of_second |= in_second && !in_first;
                if of_first && of_second {
                    return true;
                }
            }
            false
        })
    }

    /// The chunks that need bytes in a step, with one stream.
    pub(crate) fn alive_at(&self, step: Step) -> impl Iterator<Item = ChunkId> {
        let is_alive = move |boxes: &TimedBoxes| boxes.iter().any(|one| one.is_alive_at(&[step]));
        let boxes = self.ids().zip(self.all_boxes());
        boxes.filter(move |(_, boxes)| is_alive(boxes)).map(|(chunk, _)| chunk)
    }

    /// The boxes of every chunk.
    fn all_boxes(&self) -> Vec<TimedBoxes> {
        let view = self.view();
        self.ids().map(|chunk| view.boxes(chunk, self.link(chunk))).collect()
    }
}

impl Constraints {
    /// Adds all constraints but the streams to a problem with the same chunks, which stays unconstrained if there are
    /// none.
    fn copy_without_streams(&self, problem: &mut ProblemBuilder) {
        if self.has_pools {
            problem.pools(self.pools.clone());
        }
        let plain = ChunkConstraints::default();
        for (at, own) in self.own.iter().enumerate() {
            let own = ChunkConstraints { stream: 0, ..own.clone() };
            if own != plain {
                problem.constrain(ChunkId::from_index(at), own);
            }
        }
        for part in &self.parts {
            problem.part(part.part, part.whole, part.offset);
        }
        for group in &self.apart {
            problem.apart(group.clone());
        }
    }
}

/// The same boxes in steps; `None` if they form no interval order.
///
/// The latest ends of a box's predecessors, stream by stream, form a moment with the same predecessors. One set of
/// predecessors contains another if the other's moment is over at its own. So the boxes form an interval order if these
/// moments can be sorted so that each is over at the next; these are the steps.
fn in_steps(
    boxes: &[TimedBoxes],
    budget: &mut Budget<'_>,
) -> Result<Option<Vec<TimedBoxes>>, Stop> {
    let all = || boxes.iter().flatten();
    let mut begins: Vec<&[Step]> = distinct(all().map(|one| &*one.begin));
    let mut ends: Vec<&[Step]> = distinct(all().map(|one| &*one.end));
    ends.sort_by_key(|end| wide_sum(end));
    let streams = ends.first().map_or(1, |end| end.len());
    let mut tree = ClockTree::new(ends.len(), streams);
    for (place, end) in ends.into_iter().enumerate() {
        budget.spend(WORK_PER_BOX)?;
        tree.add(place, end, end);
    }
    // In order of time, two concurrent moments usually turn up early.
    begins.sort_by_key(|begin| wide_sum(begin));
    let mut work = 0;
    let mut moments: BTreeSet<(u128, Clock)> = BTreeSet::new();
    let mut moment_of: BTreeMap<&[Step], Clock> = BTreeMap::new();
    for begin in begins {
        let moment = latest(&tree, begin, &mut work);
        budget.spend(WORK_PER_BOX)?;
        if work > MAX_WORK {
            return Ok(None);
        }
        let key = (wide_sum(&moment), moment);
        let below = moments.range(..&key).next_back();
        let above = moments.range(&key..).next();
        if below.is_some_and(|(_, below)| !happens_before(below, &key.1))
            || above.is_some_and(|(_, above)| !happens_before(&key.1, above))
        {
            return Ok(None);
        }
        moment_of.insert(begin, key.1.clone());
        moments.insert(key);
    }
    let moments: Vec<Clock> = moments.into_iter().map(|(_, moment)| moment).collect();
    let first = |clock: &[Step]| {
        let step = moments.partition_point(|moment| !happens_before(clock, moment));
        step as Step
    };
    let in_steps = |one: &TimedBox| {
        let begin: Clock = [first(moment_of.get(&*one.begin)?)].into();
        let end: Clock = [first(&one.end)].into();
        (begin < end).then(|| TimedBox { begin, end, bytes: one.bytes.clone() })
    };
    let mut all = Vec::with_capacity(boxes.len());
    for own in boxes {
        budget.spend(WORK_PER_BOX)?;
        let Some(own) = own.iter().map(in_steps).collect() else { return Ok(None) };
        all.push(own);
    }
    Ok(Some(all))
}

/// The latest, stream by stream, of the ends in a tree that are over at a moment.
fn latest(tree: &ClockTree, moment: &[Step], work: &mut usize) -> Clock {
    let mut latest: Clock = vec![0; moment.len()].into();
    *work += tree.visit(|_, low, high| {
        let is_all = happens_before(high, moment);
        if is_all {
            latest.merge(high, Step::max);
        }
        !is_all && happens_before(low, moment)
    });
    latest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

    #[test]
    fn boxes_of_problems_with_two_lines_are_not_in_one_line() {
        let (mut two, mut none) = (0, 0);
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let streams = random.int_in_range(2..=3)?;
            let mut problem = Problem::builder();
            problem.streams(streams);
            for at in 0..random.int_in_range(2..=20)? {
                let (mut begin, mut end) = (Vec::new(), Vec::new());
                for _ in 0..streams {
                    begin.push(at + random.int_in_range(0..=3)?);
                    end.push(begin[begin.len() - 1] + random.int_in_range(1..=4)?);
                }
                let chunk = problem.chunk(0..1, random.int_in_range(0..=9)?);
                problem.clocks(chunk, begin, end, 0);
                if at > 0 && random.ratio(1, 4)? {
                    let before = ChunkId::from_index(chunk.index() - 1);
                    problem.overlap(chunk, before, 1);
                }
            }
            let Ok(problem) = problem.build() else { return Ok(()) };
            let has_two = problem.is_no_interval_order();
            let in_one = in_steps(&problem.all_boxes(), &mut Budget::default()).unwrap();
            assert!(!has_two || in_one.is_none(), "{problem:?}");
            two += u32::from(has_two);
            none += u32::from(in_one.is_none());
            Ok(())
        };
        times(1500, one);
        // It finds most of them.
        assert!(two > 0 && 2 * two > none, "{two} of {none}");
    }

    /// Wherever the search for one line of time is stopped, it finds nothing, and the next search finds it.
    #[test]
    fn a_search_that_is_stopped_keeps_nothing() {
        let mut problem = Problem::builder();
        problem.streams(2);
        for at in 0..10_000 {
            let chunk = problem.chunk(0..1, 8);
            problem.clocks(chunk, [at, at], [at + 2, at + 2], 0);
        }
        let problem = problem.build().unwrap();
        let mut stops = 0;
        loop {
            let mut budget = Budget::of_looks(stops);
            match problem.linear_within(&mut budget) {
                Ok(linear) => break assert!(linear.is_some()),
                Err(stop) => assert_eq!(stop, Stop::OutOfWork, "{stops}"),
            }
            stops += 1;
        }
        assert!(stops >= 8, "{stops}");
        assert!(problem.linear_within(&mut Budget::of_looks(0)).unwrap().is_some());
    }
}
