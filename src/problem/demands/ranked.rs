//! Clocks as small numbers, and how far each of them has come along a chain.
//!
//! On each stream, the steps of all clocks are numbered in their order. A table for each stream tells at which
//! moment of a chain a step is over, so that no moments are compared: a clock is over at the first moment at
//! which its steps of all streams are.

use crate::Step;

/// A table of all steps of a stream pays for at most this many steps per clock.
const STEPS_PER_CLOCK: usize = 4;

/// Clocks with a number of 32 bits for each stream, in the same order as the steps.
pub(crate) struct RankedClocks {
    streams: usize,
    /// By stream: how many numbers there are.
    counts: Vec<usize>,
    /// The numbers, clock by clock.
    ranks: Vec<u32>,
}

impl RankedClocks {
    /// Numbers the steps of some clocks, fewer than 2^32.
    pub(crate) fn of(clocks: &[&[Step]]) -> Self {
        let streams = clocks.first().map_or(0, |clock| clock.len());
        let mut ranked =
            Self { streams, counts: Vec::new(), ranks: vec![0; streams * clocks.len()] };
        for stream in 0..streams {
            let steps: Vec<Step> = clocks.iter().map(|clock| clock[stream]).collect();
            let rank_of = Numbers::of(&steps);
            let ranks = ranked.ranks[stream..].iter_mut().step_by(streams);
            for (rank, step) in ranks.zip(steps) {
                *rank = rank_of.get(step);
            }
            ranked.counts.push(rank_of.count());
        }
        ranked
    }

    /// The numbers of a clock.
    pub(crate) fn get(&self, at: usize) -> &[u32] {
        &self.ranks[at * self.streams..][..self.streams]
    }
}

/// The steps of a stream and their numbers.
enum Numbers {
    /// By step: how many different ones are before.
    Table(Vec<u32>),
    /// The steps in order, each once.
    Sorted(Vec<Step>),
}

impl Numbers {
    fn of(steps: &[Step]) -> Self {
        let last = steps.iter().copied().max().and_then(|last| usize::try_from(last).ok());
        if let Some(last) = last.filter(|last| last / STEPS_PER_CLOCK < steps.len()) {
            let mut before = vec![0; last + 2];
            for &step in steps {
                before[index(step) + 1] = 1;
            }
            for at in 1..before.len() {
                before[at] += before[at - 1];
            }
            return Self::Table(before);
        }
        let mut sorted = steps.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        Self::Sorted(sorted)
    }

    fn get(&self, step: Step) -> u32 {
        match self {
            Self::Table(before) => before[index(step)],
            Self::Sorted(steps) => {
                let before = steps.partition_point(|&other| other < step);
                u32::try_from(before).unwrap_or(u32::MAX)
            }
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Table(before) => before.last().map_or(0, |&count| count as usize),
            Self::Sorted(steps) => steps.len(),
        }
    }
}

fn index(step: Step) -> usize {
    usize::try_from(step).unwrap_or(usize::MAX)
}

/// How far clocks have come along a chain of moments.
pub(crate) struct Along {
    /// By stream and number of a step: the first moment of the chain at which the step is over, or the number of
    /// moments if there is none.
    first: Vec<Vec<u32>>,
}

impl Along {
    /// Prepares for a chain of some of the clocks. Of other lists, a moment is the latest step so far of each stream.
    pub(crate) fn chain(clocks: &RankedClocks, chain: &[usize]) -> Self {
        let of_stream = |(stream, &count): (usize, &usize)| {
            let mut first = Vec::with_capacity(count + 1);
            for (moment, &at) in (0..).zip(chain) {
                let rank = clocks.get(at)[stream] as usize;
                first.resize(first.len().max(rank + 1), moment);
            }
            first.resize(count + 1, u32::try_from(chain.len()).unwrap_or(u32::MAX));
            first
        };
        Self { first: clocks.counts.iter().enumerate().map(of_stream).collect() }
    }

    /// The first moment of the chain at which a clock is over, or the number of moments if there is none.
    pub(crate) fn over_at(&self, clock: &[u32]) -> u32 {
        let firsts = self.first.iter().zip(clock).map(|(first, &rank)| first[rank as usize]);
        firsts.fold(0, u32::max)
    }

    /// The number of moments of the chain that are over at a clock.
    pub(crate) fn before(&self, clock: &[u32]) -> u32 {
        let firsts = self.first.iter().zip(clock).map(|(first, &rank)| first[rank as usize + 1]);
        firsts.fold(u32::MAX, u32::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::demands::{is_over, line::longest_chains};

    #[test]
    fn clocks_come_as_far_along_a_chain_as_comparing_all_moments_shows() {
        let mut found = 0;
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let streams = random.int_in_range(1..=3)?;
            // Steps that are far apart are sorted, and have no table.
            let far = *random.choose(&[1, 1 << 60])?;
            let mut clocks: Vec<Vec<Step>> = Vec::new();
            for _ in 0..random.int_in_range(1..=20)? {
                let clock = (0..streams).map(|_| Ok(random.int_in_range(0..=9)? * far));
                clocks.push(clock.collect::<arbitrary::Result<_>>()?);
            }
            let clocks: Vec<&[Step]> = clocks.iter().map(|clock| &clock[..]).collect();
            let ranked = RankedClocks::of(&clocks);
            let chains = longest_chains(&clocks[..clocks.len().div_ceil(2)]);
            for chain in &chains {
                let along = Along::chain(&ranked, chain);
                for (at, clock) in clocks.iter().enumerate() {
                    let over = chain.iter().filter(|&&moment| !is_over(clock, clocks[moment]));
                    let before = chain.iter().filter(|&&moment| is_over(clocks[moment], clock));
                    let expected = [over.count(), before.count()];
                    let own = ranked.get(at);
                    let is = [along.over_at(own), along.before(own)].map(|count| count as usize);
                    assert_eq!(is, expected, "{clocks:?}, {chain:?}, {clock:?}");
                    found += expected[0];
                }
            }
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(200);
        assert!(found > 0);
    }
}
