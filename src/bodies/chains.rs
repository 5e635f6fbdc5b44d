//! Splits clocks into chains, in each of which every clock is over at the next.
//!
//! The moments of one stream form a chain. Clocks are visited in order of their sums, so that each clock comes after
//! all clocks that are over at it. Each clock extends the chain whose last clock is the latest among those over at it.
//! So about as many chains as streams are needed, even though the stream of a clock is not known.

use crate::{
    Step,
    bodies::{Lifetimes, happens_before},
    problem::constraints::Clocks,
    steps::{indices, order_by_step},
};

/// The most chains for each stream. Clocks that extend none of these belong to no chain.
const CHAINS_PER_STREAM: usize = 4;

/// Clocks in chains, by index.
pub(crate) struct Chains {
    pub(crate) chains: Vec<Vec<u32>>,
    /// The clocks in no chain, in order of their sums.
    pub(crate) rest: Vec<u32>,
}

/// The sum of a clock's entries, in 128 bits so that it cannot overflow. If one of two different clocks is over at
/// the other, it has the smaller sum.
pub(crate) fn wide_sum<S: Copy + Into<u128>>(clock: &[S]) -> u128 {
    clock.iter().map(|&step| step.into()).sum()
}

/// The indices of clocks, sorted by their [sums](wide_sum); clocks with equal sums keep their order. At most 2^32 - 1
/// clocks.
pub(crate) fn by_sum<'a, S: Copy + Into<u128> + 'a>(
    clocks: impl ExactSizeIterator<Item = &'a [S]> + Clone,
) -> Vec<u32> {
    let mut is_narrow = true;
    let mut narrow = |clock: &[S]| {
        let sum = Step::try_from(wide_sum(clock));
        is_narrow &= sum.is_ok();
        sum.unwrap_or(Step::MAX)
    };
    let sums: Vec<Step> = clocks.clone().map(&mut narrow).collect();
    if is_narrow {
        return order_by_step(&sums);
    }
    let sums: Vec<u128> = clocks.map(wide_sum).collect();
    let mut order: Vec<u32> = indices(sums.len()).collect();
    order.sort_by_key(|&at| sums[at as usize]);
    order
}

/// Splits clocks into chains.
pub(crate) fn chains(clocks: &Clocks) -> Chains {
    let order = by_sum(clocks.iter());
    let in_order = order.iter().map(|&at| clocks.get(at as usize));
    collect(order.iter().copied().zip(in_chains(in_order, clocks.streams())))
}

/// Splits the begins of lives that are in order of their sums into chains.
pub(crate) fn chains_of_begins(lives: &Lifetimes) -> Chains {
    debug_assert!(lives.begins().map(wide_sum).is_sorted());
    collect((0..).zip(in_chains(lives.begins(), lives.streams())))
}

fn collect(clocks: impl Iterator<Item = (u32, Option<usize>)>) -> Chains {
    let (mut chains, mut rest): (Vec<Vec<u32>>, _) = (Vec::new(), Vec::new());
    for (at, chain) in clocks {
        match chain {
            Some(chain) if chain == chains.len() => chains.push(vec![at]),
            Some(chain) => chains[chain].push(at),
            None => rest.push(at),
        }
    }
    Chains { chains, rest }
}

/// By clock: the number of its chain, or `None`. Expects the clocks in order of their sums. Chains are numbered in the
/// order in which they begin.
pub(crate) fn in_chains<'a, S: Copy + Ord + Into<u128> + 'a>(
    clocks: impl Iterator<Item = &'a [S]>,
    streams: usize,
) -> impl Iterator<Item = Option<usize>> {
    let most = CHAINS_PER_STREAM * streams;
    // By chain: the sum of its last clock, and that clock.
    let mut lasts: Vec<(u128, &[S])> = Vec::new();
    clocks.map(move |clock| {
        let mut latest = None;
        for (one, &(sum, last)) in lasts.iter().enumerate() {
            if latest.is_none_or(|(most, _)| sum >= most) && happens_before(last, clock) {
                latest = Some((sum, one));
            }
        }
        let new = (wide_sum(clock), clock);
        if let Some((_, one)) = latest {
            lasts[one] = new;
            return Some(one);
        }
        if lasts.len() < most {
            lasts.push(new);
            return Some(lasts.len() - 1);
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::times;

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
            let clocks: Clocks = clocks.iter().map(|clock| &clock[..]).collect();
            let Chains { chains, rest } = chains(&clocks);
            assert!(chains.len() <= 4 && rest.is_empty(), "{wait}: {} chains", chains.len());
        }
    }

    #[test]
    fn clocks_are_sorted_by_sums_of_more_than_64_bits() {
        let clocks: [&[Step]; 4] = [&[Step::MAX, 2], &[Step::MAX, 1], &[0, 7], &[1, 6]];
        let order = |clocks: &[&[Step]]| by_sum(clocks.iter().copied());
        assert_eq!(order(&clocks), [2, 3, 1, 0]);
        assert_eq!(order(&clocks[2..]), [0, 1]);
    }

    #[test]
    fn every_clock_is_in_one_chain_or_in_the_rest() {
        let mut alone = 0;
        let one = |random: &mut arbitrary::Unstructured<'_>| {
            let mut clocks = Vec::new();
            for _ in 0..random.int_in_range(1..=40)? {
                clocks.push([random.int_in_range(0..=20)?, random.int_in_range(0..=20)?]);
            }
            let clocks: Clocks = clocks.iter().map(|clock| &clock[..]).collect();
            let Chains { chains, rest } = chains(&clocks);
            let clock = |at: u32| clocks.get(at as usize);
            for chain in &chains {
                assert!(
                    chain.is_sorted_by(|&a, &b| happens_before(clock(a), clock(b))),
                    "{clocks:?}"
                );
            }
            alone += rest.len();
            let mut all: Vec<u32> = chains.into_iter().chain([rest]).flatten().collect();
            all.sort_unstable();
            assert_eq!(all, indices(clocks.len()).collect::<Vec<_>>());
            Ok(())
        };
        times(1000, one);
        assert!(alone > 0);
    }
}
