//! Splits clocks into chains, in each of which every clock is over at the next.
//!
//! The moments of one stream make a chain. The clocks are taken in order of their sums, in which no clock comes
//! before one that is over at it; each extends the chain whose last clock is the latest of those over at it. So
//! few chains are needed, about as many as there are streams, even if nothing names the stream of a clock.

use crate::{Step, problem::demands::is_over, steps::sort_by_step};

/// The chains for each stream at most. Clocks that fit none of so many belong to no chain.
const CHAINS_PER_STREAM: usize = 4;

/// Clocks in chains, by index.
pub(crate) struct Chains {
    pub(crate) chains: Vec<Vec<usize>>,
    /// Those in no chain, in order of their sums.
    pub(crate) rest: Vec<usize>,
}

/// The steps that are over on all streams, without a limit. Of two clocks, the one that is over at the other
/// has the smaller sum, unless they are equal.
pub(crate) fn wide_sum(clock: &[Step]) -> u128 {
    clock.iter().map(|&step| u128::from(step)).sum()
}

/// Clocks in order of their [sums](wide_sum), by index; those of one sum keep their order.
pub(crate) fn by_sum(clocks: &[&[Step]]) -> Vec<usize> {
    let narrow = |clock: &[Step]| Step::try_from(wide_sum(clock)).ok();
    let sums: Option<Vec<Step>> = clocks.iter().map(|clock| narrow(clock)).collect();
    let mut order: Vec<usize> = (0..clocks.len()).collect();
    if let Some(sums) = sums {
        let last = sums.iter().copied().max().unwrap_or(0);
        sort_by_step(&mut order, last, |&at| sums[at]);
    } else {
        order.sort_by_cached_key(|&at| wide_sum(clocks[at]));
    }
    order
}

/// Splits clocks into chains.
pub(crate) fn chains(clocks: &[&[Step]]) -> Chains {
    chains_in(clocks, &by_sum(clocks))
}

/// Splits clocks into chains, in order of their sums.
pub(crate) fn chains_in(clocks: &[&[Step]], order: &[usize]) -> Chains {
    let most = CHAINS_PER_STREAM * clocks.first().map_or(1, |clock| clock.len());
    let (mut chains, mut rest): (Vec<Vec<usize>>, _) = (Vec::new(), Vec::new());
    // By chain: the sum of its last clock, and that clock.
    let mut lasts: Vec<(u128, &[Step])> = Vec::new();
    for &at in order {
        let clock = clocks[at];
        let mut latest = None;
        for (one, &(sum, last)) in lasts.iter().enumerate() {
            if latest.is_none_or(|(most, _)| sum >= most) && is_over(last, clock) {
                latest = Some((sum, one));
            }
        }
        let new = (wide_sum(clock), clock);
        match latest {
            Some((_, one)) => {
                chains[one].push(at);
                lasts[one] = new;
            }
            None if chains.len() < most => {
                chains.push(vec![at]);
                lasts.push(new);
            }
            None => rest.push(at),
        }
    }
    Chains { chains, rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three streams in turn, each of which waits for another one now and then.
    #[test]
    fn the_moments_of_a_program_are_as_many_chains_as_streams() {
        for wait in [2, 5, 1000] {
            let mut last = vec![vec![0; 3]; 3];
            let mut clocks: Vec<Vec<Step>> = Vec::new();
            for at in 0..300 {
                let own = (at * at + at / 7) % 3;
                let mut clock = last[own].clone();
                if at % wait == 1 {
                    for (step, &seen) in clock.iter_mut().zip(&last[(own + 1) % 3]) {
                        *step = seen.max(*step);
                    }
                }
                clocks.push(clock.clone());
                clock[own] += 1;
                last[own] = clock;
            }
            let clocks: Vec<&[Step]> = clocks.iter().map(|clock| &clock[..]).collect();
            let Chains { chains, rest } = chains(&clocks);
            assert!(chains.len() <= 4 && rest.is_empty(), "{wait}: {} chains", chains.len());
        }
    }

    #[test]
    fn clocks_are_sorted_by_sums_of_more_than_64_bits() {
        let clocks: [&[Step]; 4] = [&[Step::MAX, 2], &[Step::MAX, 1], &[0, 7], &[1, 6]];
        assert_eq!(by_sum(&clocks), [2, 3, 1, 0]);
        assert_eq!(by_sum(&clocks[2..]), [0, 1]);
    }

    #[test]
    fn every_clock_is_in_one_chain_or_in_the_rest() {
        let mut alone = 0;
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut clocks = Vec::new();
            for _ in 0..random.int_in_range(1..=40)? {
                clocks.push([random.int_in_range(0..=20)?, random.int_in_range(0..=20)?]);
            }
            let clocks: Vec<&[Step]> = clocks.iter().map(|clock| &clock[..]).collect();
            let Chains { chains, rest } = chains(&clocks);
            for chain in &chains {
                assert!(chain.is_sorted_by(|&a, &b| is_over(clocks[a], clocks[b])), "{clocks:?}");
            }
            alone += rest.len();
            let mut all: Vec<usize> = chains.into_iter().chain([rest]).flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..clocks.len()).collect::<Vec<_>>());
            Ok(())
        };
        arbtest::arbtest(one).budget_ms(200);
        assert!(alone > 0);
    }
}
