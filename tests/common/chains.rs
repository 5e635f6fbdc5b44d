//! Random problems that are small enough to solve, each made from a seed.

use memplan::Problem;

/// Pseudo-random numbers that are the same everywhere (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    /// Returns a number in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % bound
    }

    fn of(&mut self, choices: &[u64]) -> u64 {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

/// Creates up to `chains` chains of small chunks, some of them overwritten once or more.
pub fn random_chains(numbers: &mut Numbers, chains: u64) -> Problem {
    let most = 3 + numbers.below(7);
    random_chains_of(numbers, chains, most)
}

/// Creates chains as [`random_chains`] does, with chunks of up to `most` bytes.
pub fn random_chains_of(numbers: &mut Numbers, chains: u64, most: u64) -> Problem {
    let alignment = numbers.of(&[1, 1, 1, 2, 4]);
    let padding = numbers.of(&[0, 0, 0, 1]);
    let mut problem = Problem::builder().alignment(alignment).padding(padding);
    let links = numbers.below(3);
    let steps = 3 + numbers.below(8);
    for _ in 0..=numbers.below(chains) {
        let mut begin = numbers.below(steps);
        let mut end = begin + 1 + numbers.below(steps / 2 + 1);
        let mut size = 1 + numbers.below(most);
        let mut chunk = problem.chunk(begin..end, size);
        while numbers.below(3) < links {
            (begin, end) = (end - 1, end + numbers.below(3));
            let offset = numbers.below(size);
            size = 1 + numbers.below(size - offset);
            let overwriter = problem.chunk(begin..end.max(begin + 1), size);
            problem.overwrite(overwriter, chunk, offset);
            chunk = overwriter;
            end = end.max(begin + 1);
        }
    }
    problem.build().unwrap()
}
