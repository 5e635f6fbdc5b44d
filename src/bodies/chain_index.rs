//! Finds the first moment of a chain at which a clock is over, by table lookup.
//!
//! One table for each stream holds, for each step, the first moment of the chain at which the step is over. The clock
//! is over at the latest of the moments that the tables give for its entries, so no moments are compared.

use crate::bodies::Lifetimes;

/// Tables that find the moments of a chain at which clocks are over.
pub(crate) struct ChainIndex {
    /// By stream and number of a step: the first moment of the chain at which the step is over, or the number of
    /// moments if there is none.
    first: Vec<Vec<u32>>,
}

impl ChainIndex {
    /// Builds the tables for a chain of some of the begins. If the list is not a chain, each moment is replaced by the
    /// latest step so far of each stream.
    pub(crate) fn begins(
        lives: &Lifetimes,
        chain: &(impl ExactSizeIterator<Item = u32> + Clone),
    ) -> Self {
        let len = u32::try_from(chain.len()).unwrap_or(u32::MAX);
        let of_stream = |(stream, &limit): (usize, &usize)| {
            let mut first = Vec::with_capacity(limit + 1);
            for (moment, at) in (0..).zip(chain.clone()) {
                let number = lives.begin(at as usize)[stream] as usize;
                first.resize(first.len().max(number + 1), moment);
            }
            first.resize(limit + 1, len);
            first
        };
        Self { first: lives.limits().iter().enumerate().map(of_stream).collect() }
    }

    /// The first moment of the chain at which a clock is over, or the number of moments if there is none.
    pub(crate) fn over_at(&self, clock: &[u32]) -> u32 {
        let firsts = self.first.iter().zip(clock).map(|(first, &number)| first[number as usize]);
        firsts.fold(0, u32::max)
    }

    /// The number of moments of the chain that are over at a clock.
    pub(crate) fn before(&self, clock: &[u32]) -> u32 {
        let firsts =
            self.first.iter().zip(clock).map(|(first, &number)| first[number as usize + 1]);
        firsts.fold(u32::MAX, u32::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bodies::{chain_projection::longest_chains, happens_before, lifetimes::tests::ten_lives},
        problem::constraints::Clocks,
        seeds::times,
    };

    #[test]
    fn clocks_come_as_far_along_a_chain_as_comparing_all_moments_shows() {
        let mut found = 0;
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let streams = random.int_in_range(1..=3)?;
            let (all, lives) = ten_lives(random, streams, 1)?;
            let begins: Clocks = all.iter().map(|[begin, _]| &begin[..]).collect();
            for chain in &longest_chains(&begins) {
                let along = ChainIndex::begins(&lives, &chain.iter().copied());
                for clock in (0..lives.len()).flat_map(|at| [lives.begin(at), lives.end(at)]) {
                    let moments = || chain.iter().map(|&moment| lives.begin(moment as usize));
                    let over = moments().filter(|moment| !happens_before(clock, moment));
                    let before = moments().filter(|moment| happens_before(moment, clock));
                    let expected = [over.count(), before.count()];
                    let is =
                        [along.over_at(clock), along.before(clock)].map(|count| count as usize);
                    assert_eq!(is, expected, "{lives:?}, {chain:?}, {clock:?}");
                    found += expected[0];
                }
            }
            Ok(())
        };
        times(1000, one);
        assert!(found > 0);
    }
}
