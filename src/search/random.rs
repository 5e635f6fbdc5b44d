//! Pseudo-random numbers: the same for the same seed on every machine.

use crate::search::state::fingerprint::scramble;

/// A sequence of pseudo-random numbers.
#[derive(Clone, Debug, Default)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(scramble(seed))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        let random = u128::from(scramble(self.0)) * end as u128;
        usize::try_from(random >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of ten numbers comes up about as often as the others.
    #[test]
    fn all_numbers_below_the_end_are_equally_likely() {
        let mut random = Random::new(1);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            counts[random.below(10)] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
