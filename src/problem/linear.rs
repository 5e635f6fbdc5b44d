//! Streams whose boxes live as in one line of time.
//!
//! The boxes that are over before another one begins are its *predecessors*. If, of any two such sets, one
//! lies in the other, the sets in order of size are steps: a box begins in the step of its set, and ends
//! with the first set that has it. Then the same pairs of boxes are alive together as before.
//!
//! An overwriter has its bytes to itself one step after its begin, and there the overwritten chunk ends. So
//! its begin in steps is the last step of the overwritten chunk. Where the boxes of these chunks are not the
//! boxes in steps, or not the same overwrites are possible, the problem stays on its streams.

use std::collections::BTreeMap;

use crate::{
    Step,
    problem::{
        ChunkId, Problem, ProblemBuilder, Request,
        demands::{ChunkDemands, Clock, Demands, TimedBox, View, is_over},
    },
};

/// More pairs of a box and a moment are not compared.
const MOST_PAIRS: usize = 20_000_000;

impl Problem {
    /// The same problem in steps, if it runs on several streams and its boxes live as in one line of time.
    /// All other demands and the honoured overwrites are the same, and so are the pairs of boxes that are
    /// alive together. A layout of one is a layout of the other.
    #[must_use]
    pub fn linearized(&self) -> Option<Self> {
        let demands = self.demands().filter(|demands| demands.streams > 1)?;
        let boxes = in_steps(&self.all_boxes(demands))?;
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
        demands.copy_without_streams(&mut linear);
        for overwriter in self.ids() {
            if let Some(super::Link { overwritten, offset, below }) = self.link(overwriter) {
                let request = Request { overwriter, overwritten, offset, below, required: false };
                linear.request(request);
            }
        }
        let linear = linear.finish().ok()?;
        let plain = Demands::none(self.len());
        let is_same = self.ids().all(|chunk| linear.link(chunk) == self.link(chunk))
            && linear.all_boxes(linear.demands().unwrap_or(&plain)) == boxes;
        is_same.then_some(linear)
    }

    /// The boxes of every chunk.
    fn all_boxes(&self, demands: &Demands) -> Vec<Vec<TimedBox>> {
        let (alignment, padding) = (self.alignment, self.padding);
        let view = View { chunks: &self.chunks, demands, alignment, padding };
        self.ids().map(|chunk| view.boxes(chunk, self.link(chunk))).collect()
    }
}

impl Demands {
    /// Adds all demands but the streams to a problem with the same chunks, which stays plain if there are
    /// none.
    fn copy_without_streams(&self, problem: &mut ProblemBuilder) {
        if self.has_pools {
            problem.pools(self.pools.clone());
        }
        let plain = ChunkDemands::default();
        for (at, own) in self.chunks.iter().enumerate() {
            let own = ChunkDemands { stream: 0, ..own.clone() };
            if own != plain {
                problem.demand(ChunkId::from_index(at), own);
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

/// The same boxes in steps, if they live as in one line of time.
fn in_steps(boxes: &[Vec<TimedBox>]) -> Option<Vec<Vec<TimedBox>>> {
    let all = || boxes.iter().flatten();
    let mut begins: Vec<&[Step]> = all().map(|one| &*one.begin).collect();
    let count = begins.len();
    begins.sort_unstable();
    begins.dedup();
    if begins.len().saturating_mul(count) > MOST_PAIRS {
        return None;
    }
    let predecessors = |moment: &[Step]| all().filter(|one| is_over(&one.end, moment)).count();
    let mut moments: Vec<(usize, &[Step])> =
        begins.into_iter().map(|begin| (predecessors(begin), begin)).collect();
    moments.sort_unstable();
    // Moments with as many predecessors are one step, if the sets lie in each other.
    let mut steps: Vec<Step> = Vec::with_capacity(moments.len());
    for (at, &(count, _)) in moments.iter().enumerate() {
        let is_new = at == 0 || moments[at - 1].0 < count;
        steps.push(steps.last().map_or(0, |last| last + Step::from(is_new)));
    }
    let step_of: BTreeMap<&[Step], Step> =
        moments.iter().zip(&steps).map(|(&(_, moment), &step)| (moment, step)).collect();
    let last = steps.last().map_or(1, |last| last + 1);
    let in_steps = |one: &TimedBox| {
        let is_over = |&(_, moment): &(usize, &[Step])| is_over(&one.end, moment);
        let end = moments.iter().position(is_over).unwrap_or(moments.len());
        let is_nested = moments[end..].iter().all(is_over)
            && (end == 0 || end == moments.len() || steps[end - 1] < steps[end]);
        let begin: Clock = Box::new([*step_of.get(&*one.begin)?]);
        let end: Clock = Box::new([steps.get(end).copied().unwrap_or(last)]);
        (is_nested && begin < end).then(|| TimedBox { begin, end, bytes: one.bytes.clone() })
    };
    boxes.iter().map(|own| own.iter().map(in_steps).collect()).collect()
}
