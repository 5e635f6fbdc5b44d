//! Random problems that are small enough to solve, each made from a seed.

use memplan::{OpSequence, Operator, Output, Problem};

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

/// A chunk of [`staircases`].
pub struct Drawn {
    pub begin: u64,
    pub end: u64,
    pub size: u64,
    /// The chunk that it is written over, and the offset there.
    pub over: Option<(usize, u64)>,
}

/// Draws chains of up to a dozen chunks, each written over the whole or a part of the one before, of which some 40
/// are alive at once.
pub fn staircases(chunks: u64, seed: u64) -> Vec<Drawn> {
    let mut numbers = Numbers(seed);
    let mut drawn: Vec<Drawn> = Vec::new();
    while (drawn.len() as u64) < chunks {
        let (mut begin, mut size) = (numbers.below(chunks), 64 * (1 + numbers.below(400)));
        let mut over = None;
        loop {
            let end = begin + 2 + numbers.below(chunks / 10);
            drawn.push(Drawn { begin, end, size, over });
            if numbers.below(5) < 2 {
                break;
            }
            let (mut offset, units) = (0, size / 64);
            if numbers.below(3) == 0 {
                let fewer = 1 + numbers.below(units);
                (offset, size) = (64 * numbers.below(units - fewer + 1), 64 * fewer);
            }
            over = Some((drawn.len() - 1, offset));
            begin = end - 1;
        }
    }
    drawn
}

/// A sequence with one operator a step, whose tensors live and overwrite each other as drawn.
pub fn sequence_of(drawn: &[Drawn]) -> OpSequence {
    let mut sequence = OpSequence::builder();
    let name = |at: usize| format!("t{at}");
    let steps = drawn.iter().map(|chunk| chunk.end).max().unwrap_or(0);
    for step in 0..steps {
        let mut operator = Operator::new(format!("op{step}"));
        let read = drawn.iter().enumerate().filter(|(_, chunk)| chunk.end - 1 == step);
        operator = operator.inputs(read.map(|(at, _)| name(at)));
        for (at, chunk) in drawn.iter().enumerate().filter(|(_, chunk)| chunk.begin == step) {
            let output = Output::new(name(at), chunk.size);
            operator = operator.output(match chunk.over {
                Some((over, offset)) => output.overwrites_at(name(over), offset),
                None => output,
            });
        }
        sequence.operator(operator);
    }
    sequence.build().unwrap()
}
