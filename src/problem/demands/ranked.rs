//! Clocks as small numbers, and how far each of them has come along a chain.
//!
//! On each stream, the steps of all clocks are numbered in their order. A table for each stream tells at which
//! moment of a chain a step is over, so that no moments are compared: a clock is over at the first moment at
//! which its steps of all streams are.

use crate::{Step, problem::demands::Clocks};

/// A step is its own number if there are at most this many steps per clock.
const STEPS_PER_CLOCK: usize = 4;

/// Clocks with a number of 32 bits for each stream, in the same order as the steps.
pub(crate) struct RankedClocks {
    streams: usize,
    /// By stream: no number is so large.
    limits: Vec<usize>,
    /// The numbers, clock by clock.
    ranks: Vec<u32>,
}

impl RankedClocks {
    /// Numbers the steps of the clocks of some lists, one after the other, fewer than 2^32.
    pub(crate) fn of<const LISTS: usize>(lists: [&Clocks; LISTS]) -> Self {
        let streams = lists.first().map_or(1, |clocks| clocks.streams());
        let clocks = || lists.into_iter().flat_map(Clocks::iter);
        let count: usize = lists.into_iter().map(Clocks::len).sum();
        let mut lasts: Vec<Step> = vec![0; streams];
        for clock in clocks() {
            for (last, &step) in lasts.iter_mut().zip(clock) {
                *last = step.max(*last);
            }
        }
        let of_stream = |(stream, last)| Numbers::of(last, count, clocks().map(|one| one[stream]));
        let numbers: Vec<Numbers> = lasts.into_iter().enumerate().map(of_stream).collect();
        let mut ranks = Vec::with_capacity(streams * count);
        for clock in clocks() {
            ranks.extend(numbers.iter().zip(clock).map(|(numbers, &step)| numbers.get(step)));
        }
        Self { streams, limits: numbers.iter().map(Numbers::limit).collect(), ranks }
    }

    /// The numbers of a clock.
    pub(crate) fn get(&self, at: usize) -> &[u32] {
        &self.ranks[at * self.streams..][..self.streams]
    }
}

/// The numbers of the steps of a stream.
enum Numbers {
    /// The steps, up to the last one.
    Steps(Step),
    /// The places of the steps in their order, each once.
    Places(Vec<Step>),
}

impl Numbers {
    fn of(last: Step, count: usize, steps: impl Iterator<Item = Step>) -> Self {
        if u32::try_from(last).is_ok() && index(last) / STEPS_PER_CLOCK < count {
            return Self::Steps(last);
        }
        let mut sorted: Vec<Step> = steps.collect();
        sorted.sort_unstable();
        sorted.dedup();
        Self::Places(sorted)
    }

    fn get(&self, step: Step) -> u32 {
        let number = match self {
            Self::Steps(_) => u32::try_from(step),
            Self::Places(steps) => u32::try_from(steps.partition_point(|&other| other < step)),
        };
        number.unwrap_or(u32::MAX)
    }

    fn limit(&self) -> usize {
        match self {
            Self::Steps(last) => index(*last) + 1,
            Self::Places(steps) => steps.len(),
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
    pub(crate) fn chain(clocks: &RankedClocks, chain: &[u32]) -> Self {
        let of_stream = |(stream, &limit): (usize, &usize)| {
            let mut first = Vec::with_capacity(limit + 1);
            for (moment, &at) in (0..).zip(chain) {
                let rank = clocks.get(at as usize)[stream] as usize;
                first.resize(first.len().max(rank + 1), moment);
            }
            first.resize(limit + 1, u32::try_from(chain.len()).unwrap_or(u32::MAX));
            first
        };
        Self { first: clocks.limits.iter().enumerate().map(of_stream).collect() }
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
            let clocks: Clocks = clocks.iter().map(|clock| &clock[..]).collect();
            let ranked = RankedClocks::of([&clocks]);
            let chains = longest_chains(&clocks.iter().take(clocks.len().div_ceil(2)).collect());
            for chain in &chains {
                let along = Along::chain(&ranked, chain);
                for (at, clock) in clocks.iter().enumerate() {
                    let moments = || chain.iter().map(|&moment| clocks.get(moment as usize));
                    let over = moments().filter(|moment| !is_over(clock, moment));
                    let before = moments().filter(|moment| is_over(moment, clock));
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
