//! On small problems the optimal planner equals a slow, simple search that is obviously right,
//! and everything that it claims to have proven is true.

use crate::{
    chains::{Numbers, random_chains, random_chains_of},
    common::problems::{Segment, footprint},
};
use memplan::{
    Problem,
    problem::ChunkId,
    search::{self, Fit, Limits, Observer, conflict, fits, optimize},
};

/// Tries every offset of every chain, those with the most conflicts first; where a chain would
/// share bytes with one that is already placed, the next offset to try is above that one.
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
    problem.roots().map(|root| (root, footprint(problem, root))).collect()
}

/// The smallest pool, whatever the sizes: in a packing of least offsets, the chains have an order
/// in which each lies at 0 or directly above an earlier one, rounded up to the alignment. All such
/// packings are tried.
fn smallest_by_touching(problem: &Problem, chains: &[Chain]) -> u64 {
    fn place(problem: &Problem, chains: &[Chain], bases: &mut [Option<u64>], best: &mut u64) {
        let ends = chains.iter().zip(&*bases).filter_map(|((root, _), base)| {
            Some(problem.align_up((*base)? + problem.padded_size(*root)))
        });
        let pool = ends.max().unwrap_or(0);
        if pool >= *best {
            return;
        }
        if bases.iter().all(Option::is_some) {
            *best = pool;
            return;
        }
        for at in 0..chains.len() {
            if bases[at].is_some() {
                continue;
            }
            let meeting = || {
                let placed = chains.iter().zip(&*bases).filter_map(|(c, base)| Some((c, (*base)?)));
                placed.flat_map(|((_, segments), base)| {
                    let pairs =
                        segments.iter().flat_map(|b| chains[at].1.iter().map(move |a| (a, b)));
                    pairs
                        .filter(|(a, b)| a.begin < b.end && b.begin < a.end)
                        .map(move |(a, b)| (a.low, a.high, base + b.low, base + b.high))
                })
            };
            let on = |(low, _, _, below): (u64, u64, u64, u64)| {
                Some(problem.align_up(below.checked_sub(low)?))
            };
            let mut bases_to_try: Vec<u64> = meeting().filter_map(on).chain([0]).collect();
            bases_to_try.sort_unstable();
            bases_to_try.dedup();
            bases_to_try.retain(|base| {
                meeting().all(|(low, high, from, to)| base + high <= from || to <= base + low)
            });
            for base in bases_to_try {
                bases[at] = Some(base);
                place(problem, chains, bases, best);
                bases[at] = None;
            }
        }
    }
    let mut best = u64::MAX;
    place(problem, chains, &mut vec![None; chains.len()], &mut best);
    best
}

/// Checks every rule of a right layout.
fn check(problem: &Problem, offsets: &[u64], pool: u64) {
    for chunk in problem.ids() {
        let offset = offsets[chunk.index()];
        match problem.overwritten(chunk) {
            Some((old, distance)) => {
                assert_eq!(i128::from(offset), i128::from(offsets[old.index()]) + distance);
            }
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
    let problem = random_chains(&mut Numbers(seed), chains_at_most);
    let chains = chains(&problem);
    let limits = Limits::default().nodes(400_000);
    let outcome = optimize(&problem, &limits, Observer::default());
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

/// The number of cases: `MEMPLAN_CASES`, or ten thousand, or fewer without optimization.
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

/// The sizes have no common divisor, so no step of the search is large.
#[test]
fn chains_of_a_million_bytes_equal_another_oracle() {
    for seed in 0..cases() / 10 {
        let mut numbers = Numbers(seed + (1 << 33));
        let small = random_chains(&mut numbers, 4);
        let chains_of_small = chains(&small);
        let smallest = smallest_by_touching(&small, &chains_of_small);
        assert_eq!(smallest, smallest_pool(&small, &chains_of_small), "seed {seed}");
        let problem = random_chains_of(&mut numbers, 8, 1_000_000);
        let smallest = smallest_by_touching(&problem, &chains(&problem));
        let outcome = optimize(&problem, &Limits::default(), Observer::default());
        check(&problem, &outcome.layout.offsets, outcome.pool_size);
        let (pool, bound) = (outcome.pool_size, outcome.lower_bound);
        assert_eq!(
            (pool, bound, true),
            (smallest, smallest, outcome.proven_optimal),
            "seed {seed}"
        );
        let fit = |capacity| fits(&problem, capacity, &Limits::default(), Observer::default());
        assert!(matches!(fit(smallest), Fit::Yes(_)), "seed {seed}");
        assert_eq!(fit(smallest - 1), Fit::No, "seed {seed}");
    }
}

/// A search that is stopped anywhere, with one thread or two, may leave the question open, but its
/// claims are true.
#[test]
fn every_claimed_proof_is_true() {
    let (mut known, mut unknown) = (0, 0);
    for seed in 0..cases() {
        let mut numbers = Numbers(seed + (1 << 32));
        let problem = random_chains(&mut numbers, 8);
        let smallest = smallest_pool(&problem, &chains(&problem));
        let most = 1 << numbers.below(10);
        for _ in 0..4 {
            let nodes = 1 + numbers.below(most);
            let threads = usize::from(numbers.below(4) == 0) + 1;
            let limits = Limits::default().nodes(nodes).threads(threads);
            let outcome = optimize(&problem, &limits, Observer::default());
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
    // Some questions stay open, but most are answered.
    assert!(unknown > 0 && unknown < known / 2, "{unknown} of {known}");
}

#[test]
fn the_strategy_plans_right() {
    for seed in 0..300 {
        let problem = random_chains(&mut Numbers(seed), 30);
        let layout = search::layout(&problem, &Limits::default(), Observer::default());
        check(&problem, &layout.offsets, layout.pool_size(&problem));
    }
}
