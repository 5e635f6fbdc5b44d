//! Streams whose chunks live as in one line of time.
//!
//! The chunks that are over before another begins are its *predecessors*. If, of any two such sets, one
//! lies in the other, the sets in order of size are steps: a chunk begins in the step of its set, and ends
//! with the first set that has it. Then the same pairs of chunks are alive together as before, and every
//! planner of plain problems may plan them.

use std::collections::BTreeMap;

use crate::{
    Step,
    problem::{Problem, demands::is_over},
};

/// More pairs of a chunk and a moment are not looked at.
const MOST_PAIRS: usize = 20_000_000;

impl Problem {
    /// The same chunks in steps, if they run on several streams, ask for nothing else, overwrite nothing,
    /// and live as in one line of time. A plan of these is one of this problem.
    #[must_use]
    pub fn linearized(&self) -> Option<Self> {
        let demands = self.demands()?;
        let is_only_streams = demands.streams > 1
            && !demands.has_pools
            && demands.parts.is_empty()
            && demands.apart.is_empty()
            && demands
                .chunks
                .iter()
                .all(|own| own.alignment == 1 && own.pin.is_none() && own.pools.is_none());
        if !is_only_streams || self.has_links() {
            return None;
        }
        let mut begins: Vec<&[Step]> = demands.lives.iter().map(|life| &*life.begin).collect();
        begins.sort_unstable();
        begins.dedup();
        if begins.len().saturating_mul(self.len()) > MOST_PAIRS {
            return None;
        }
        let is_before = |chunk: usize, moment: &[Step]| is_over(&demands.lives[chunk].end, moment);
        let predecessors =
            |moment: &[Step]| (0..self.len()).filter(|&chunk| is_before(chunk, moment)).count();
        let mut moments: Vec<(usize, &[Step])> =
            begins.into_iter().map(|begin| (predecessors(begin), begin)).collect();
        moments.sort_unstable();
        // Moments with as many predecessors are one step, if the sets lie in each other.
        let mut steps: Vec<Step> = Vec::with_capacity(moments.len());
        for (at, &(count, _)) in moments.iter().enumerate() {
            let is_new = at == 0 || moments[at - 1].0 < count;
            steps.push(steps.last().map_or(0, |last| last + Step::from(is_new)));
        }
        let begin_of: BTreeMap<&[Step], Step> =
            moments.iter().zip(&steps).map(|(&(_, moment), &step)| (moment, step)).collect();
        let last = steps.last().map_or(1, |last| last + 1);
        let mut linear = Self::builder().alignment(self.alignment).padding(self.padding);
        for (chunk, life) in demands.lives.iter().enumerate() {
            let first = moments.iter().position(|(_, moment)| is_before(chunk, moment));
            let end = first.unwrap_or(moments.len());
            let is_nested = moments[end..].iter().all(|(_, moment)| is_before(chunk, moment))
                && (end == 0 || end == moments.len() || steps[end - 1] < steps[end]);
            let begin = *begin_of.get(&*life.begin)?;
            let end = steps.get(end).copied().unwrap_or(last);
            if !is_nested || begin >= end {
                return None;
            }
            linear.chunk(begin..end, self.chunks[chunk].size);
        }
        linear.finish().ok()
    }
}
