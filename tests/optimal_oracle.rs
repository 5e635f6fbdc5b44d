//! The optimal planner is right: on small problems it equals a search so slow and simple that it
//! is right by sight, and what it calls proven is.

use memplan::{
    Problem, Strategy,
    planner::search::{Fit, Limits, Observer, conflict, fits, optimize},
    problem::{ChunkId, Segment},
};

/// Numbers that look random and are the same everywhere (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// A number in `0..bound`.
    fn below(&mut self, bound: u64) -> u64 {
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

/// Up to `chains` chains of small chunks; some overwritten, some more than once.
fn random_problem(numbers: &mut Numbers, chains: u64) -> Problem {
    let alignment = numbers.of(&[1, 1, 1, 2, 4]);
    let padding = numbers.of(&[0, 0, 0, 1]);
    let mut problem = Problem::builder().alignment(alignment).padding(padding);
    let links = numbers.below(3);
    let steps = 3 + numbers.below(8);
    let most = 1 + numbers.below(7);
    for _ in 0..=numbers.below(chains) {
        let mut begin = numbers.below(steps);
        let mut end = begin + 1 + numbers.below(steps / 2 + 1);
        let mut size = 1 + numbers.below(most + 2);
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

/// Tries every offset of every chain, those that touch most first; where a chain would share bytes
/// with one that lies already, the next offset to try is above it.
fn fits_somehow(problem: &Problem, limit: u64, chains: &[Chain]) -> bool {
    fn place(problem: &Problem, limit: u64, chains: &[&Chain], bases: &mut Vec<u64>) -> bool {
        let at = bases.len();
        let Some((root, segments)) = chains.get(at) else { return true };
        let mut base = 0;
        while problem.align_up(base + problem.padded_size(*root)) <= limit {
            let above = |other: usize| {
                chains[other]
                    .1
                    .iter()
                    .flat_map(move |b| segments.iter().map(move |a| (a, b)))
                    .filter(|(a, b)| a.begin < b.end && b.begin < a.end)
                    .map(|(a, b)| {
                        (base + a.low, base + a.high, bases[other] + b.low, bases[other] + b.high)
                    })
                    .filter(|&(low, high, other_low, other_high)| {
                        low < other_high && other_low < high
                    })
                    .map(|(low, _, _, other_high)| other_high - low)
                    .max()
            };
            if let Some(up) = (0..at).filter_map(above).max() {
                base = problem.align_up(base + up);
                continue;
            }
            bases.push(base);
            if place(problem, limit, chains, bases) {
                return true;
            }
            bases.pop();
            base += problem.alignment();
        }
        false
    }
    let mut order: Vec<&Chain> = chains.iter().collect();
    let area = |(_, segments): &Chain| -> u64 {
        segments.iter().map(|s| (s.end - s.begin) * (s.high - s.low)).sum()
    };
    order.sort_by_key(|chain| std::cmp::Reverse(area(chain)));
    place(problem, limit, &order, &mut Vec::new())
}

/// The smallest pool, from the bytes that are alive at once upwards.
fn smallest_pool(problem: &Problem, chains: &[Chain]) -> u64 {
    let alive = |step: u64| -> u64 {
        let segments = chains.iter().flat_map(|c| &c.1);
        segments.filter(|s| s.begin <= step && step < s.end).map(|s| s.high - s.low).sum()
    };
    let mut pool = problem.align_up((0..problem.steps()).map(alive).max().unwrap_or(0));
    while !fits_somehow(problem, pool, chains) {
        pool += problem.alignment();
    }
    pool
}

/// A root and its footprint.
type Chain = (ChunkId, Vec<Segment>);

fn chains(problem: &Problem) -> Vec<Chain> {
    problem.roots().map(|root| (root, problem.segments(root).collect())).collect()
}

/// Every rule of a right layout.
fn check(problem: &Problem, offsets: &[u64], pool: u64) {
    for chunk in problem.ids() {
        let offset = offsets[chunk.index()];
        match problem.link(chunk) {
            Some(link) => assert_eq!(offset, offsets[link.overwritten.index()] + link.offset),
            None => assert_eq!(offset % problem.alignment(), 0),
        }
        assert!(offset + problem.padded_size(chunk) <= pool);
    }
    let all: Vec<(ChunkId, Segment)> = chains(problem)
        .into_iter()
        .flat_map(|(root, segments)| segments.into_iter().map(move |s| (root, s)))
        .collect();
    let base = |root: ChunkId| offsets[root.index()];
    for (at, (root, a)) in all.iter().enumerate() {
        for (other, b) in all[..at].iter().filter(|(other, _)| other != root) {
            let apart = a.end <= b.begin
                || b.end <= a.begin
                || base(*root) + a.high <= base(*other) + b.low
                || base(*other) + b.high <= base(*root) + a.low;
            assert!(apart, "{a:?} and {b:?} share bytes");
        }
    }
}

fn compare(seed: u64, chains_at_most: u64) {
    let problem = random_problem(&mut Numbers(seed), chains_at_most);
    let chains = chains(&problem);
    let limits = Limits { nodes: 400_000, ..Limits::default() };
    let outcome = optimize(&problem, None, &limits, Observer::default());
    check(&problem, &outcome.layout.offsets, outcome.pool_size);
    assert!(outcome.proven_optimal, "seed {seed}: not proven\n{problem:?}");
    let smallest = smallest_pool(&problem, &chains);
    assert_eq!(outcome.pool_size, smallest, "seed {seed}\n{problem:?}");
    assert_eq!(outcome.lower_bound, smallest, "seed {seed}");
    let fit = |capacity| fits(&problem, capacity, &limits, Observer::default());
    match fit(smallest) {
        Fit::Yes(layout) => check(&problem, &layout.offsets, smallest),
        other => panic!("seed {seed}: {other:?} at {smallest}\n{problem:?}"),
    }
    if smallest > 0 {
        assert_eq!(fit(smallest - 1), Fit::No, "seed {seed}\n{problem:?}");
        let found = conflict(&problem, smallest - 1, &limits, Observer::default()).unwrap();
        assert!(found.irreducible, "seed {seed}");
        let set = found.roots;
        let of = |set: &[ChunkId]| {
            chains.iter().filter(|c| set.contains(&c.0)).cloned().collect::<Vec<_>>()
        };
        assert!(!fits_somehow(&problem, smallest - 1, &of(&set)), "seed {seed}");
        for left_out in 0..set.len() {
            let mut rest = set.clone();
            rest.remove(left_out);
            assert!(fits_somehow(&problem, smallest - 1, &of(&rest)), "seed {seed}");
        }
    }
}

/// How many cases: `MEMPLAN_CASES`, or ten thousand, or fewer without optimization.
fn cases() -> u64 {
    let number = std::env::var("MEMPLAN_CASES").ok().and_then(|n| n.parse().ok());
    number.unwrap_or(if cfg!(debug_assertions) { 500 } else { 10_000 })
}

#[test]
fn eight_chains_with_links_and_alignment_equal_the_oracle() {
    for seed in 0..cases() {
        compare(seed, 8);
    }
}

/// Stopped anywhere, with one thread or two, the search may not know; but what it says is true.
#[test]
fn what_is_called_proven_is() {
    let (mut known, mut unknown) = (0, 0);
    for seed in 0..cases() {
        let mut numbers = Numbers(seed + (1 << 32));
        let problem = random_problem(&mut numbers, 8);
        let smallest = smallest_pool(&problem, &chains(&problem));
        let most = 1 << numbers.below(10);
        for _ in 0..4 {
            let nodes = 1 + numbers.below(most);
            let threads = usize::from(numbers.below(4) == 0) + 1;
            let limits = Limits { nodes, threads, ..Limits::default() };
            let outcome = optimize(&problem, None, &limits, Observer::default());
            check(&problem, &outcome.layout.offsets, outcome.pool_size);
            let (lower_bound, pool_size) = (outcome.lower_bound, outcome.pool_size);
            assert!(lower_bound <= smallest && smallest <= pool_size, "seed {seed}, {nodes} nodes");
            assert_eq!(outcome.proven_optimal, lower_bound == pool_size, "seed {seed}");
            let capacity = numbers.below(smallest + 8);
            for capacity in [smallest.saturating_sub(1), smallest, capacity] {
                match fits(&problem, capacity, &limits, Observer::default()) {
                    Fit::Yes(layout) => check(&problem, &layout.offsets, capacity),
                    Fit::No => assert!(capacity < smallest, "seed {seed}, {nodes} nodes"),
                    Fit::Unknown => unknown += 1,
                }
                known += 1;
            }
        }
    }
    // Neither is the rule.
    assert!(unknown > 0 && unknown < known / 2, "{unknown} of {known}");
}

#[test]
fn the_strategy_plans_right() {
    for seed in 0..300 {
        let problem = random_problem(&mut Numbers(seed), 30);
        let layout = Strategy::Optimal.layout(&problem);
        check(&problem, &layout.offsets, layout.pool_size(&problem));
    }
}
