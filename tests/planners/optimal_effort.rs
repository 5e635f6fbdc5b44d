//! A table pins the pool, lower bound and nodes that a given effort reaches on problems of many kinds, so
//! that no change that makes the search slower, or a pool larger, goes unnoticed. `SNAPSHOTS=overwrite cargo
//! test --test planners optimal_effort` rewrites it; then check the rows that became worse.

use std::{fmt::Write, fs, ops::Range, path::Path};

use crate::{
    chains::{Numbers, random_chains},
    hard, tilings,
    tilings::{Tile, guillotine, pinwheel},
};
use memplan::{
    Bytes, Problem,
    search::{Fit, Limits, Observer, conflict, fits, optimize},
};

/// A problem of plain chunks.
fn plain(chunks: impl IntoIterator<Item = (u64, u64, Bytes)>) -> Problem {
    let mut problem = Problem::builder();
    for (begin, end, size) in chunks {
        problem.chunk(begin..end, size);
    }
    problem.build().unwrap()
}

fn tiled(tiles: &[Tile]) -> Problem {
    let mut problem = Problem::builder();
    tilings::declare(&mut problem, tiles);
    problem.build().unwrap()
}

/// Tilings with more and more staircases.
fn stepped() -> impl Iterator<Item = Problem> {
    let tilings = (1..7).flat_map(|seed| [guillotine(50, seed), pinwheel(33, seed)]);
    tilings.flat_map(|tiles| {
        [1000, 10, 4, 2].map(|one_in| {
            let mut problem = Problem::builder();
            tilings::declare_stepped(&mut problem, &tiles, one_in);
            problem.build().unwrap()
        })
    })
}

/// Chains whose chunks overwrite the upper or the lower part of the one before.
fn staircases(chains: u64) -> Problem {
    let mut problem = Problem::builder().alignment(8).padding(3);
    for at in 0..chains {
        let (mut end, mut size) = (at % 17 + 3 + at % 4, 200 + at * 7919 % 900);
        let mut chunk = problem.chunk(at % 17..end, size);
        for down in 0..at % 5 {
            let (over, offset) = if down % 2 == at % 2 { (0, size / 3) } else { (size / 3, 0) };
            let begin = end - 1;
            (end, size) = (end + 1 + down, size - over - offset);
            let next = problem.chunk(begin..end, size);
            problem.overwrite(next, chunk, offset);
            chunk = next;
        }
    }
    problem.build().unwrap()
}

/// The same problem with all sizes multiplied.
fn scaled(problem: &Problem, by: Bytes) -> Problem {
    let mut builder =
        Problem::builder().alignment(problem.alignment() * by).padding(problem.padding() * by);
    for id in problem.ids() {
        let chunk = problem.chunk(id);
        builder.chunk(chunk.begin..chunk.end, chunk.size * by);
        if let Some((old, offset)) = problem.overwritten(id) {
            builder.overwrite(id, old, u64::try_from(offset).unwrap() * by);
        }
    }
    builder.build().unwrap()
}

/// Two problems that share no step.
fn two_parts() -> Problem {
    let second = hard::uneven(60).into_iter().map(|(b, e, size)| (b + 300, e + 300, size / 3 + 1));
    plain(hard::uneven(80).into_iter().chain(second))
}

/// A tiling among so many small chunks that the problem is not searched as a whole.
fn crowd() -> Problem {
    let tiles = pinwheel(65, 3);
    let small = (0..5200).map(|at| (at * 3, at * 3 + 5, 1 + at * 7919 % 50_000));
    plain(tiles.iter().map(|t| (t.begin, t.end, t.high - t.low)).chain(small))
}

/// Problems that are large enough for engines in turns. Conflicts in them would take minutes.
const IN_TURNS: &str = "in turns";

/// Problems by kind, and the nodes for each.
fn problems() -> Vec<(&'static str, u64, Vec<Problem>)> {
    let chains = |seeds: Range<u64>, most| -> Vec<Problem> {
        seeds.map(|seed| random_chains(&mut Numbers(seed << 16), most)).collect()
    };
    vec![
        ("up to 12 chains", 2000, chains(0..300, 12)),
        ("up to 30 chains", 2000, chains(300..400, 30)),
        ("uneven", 4000, (4..11).map(|tens| plain(hard::uneven(tens * 10))).collect()),
        ("scattered", 4000, (6..16).map(hard::scattered).collect()),
        ("flat", 3000, vec![plain(hard::flat())]),
        (
            "the beginning of flat",
            60_000,
            [50, 60].map(|chunks| plain(hard::flat().into_iter().take(chunks))).into(),
        ),
        (
            "in steps of 64 bytes",
            2000,
            chains(400..500, 12).iter().map(|problem| scaled(problem, 64)).collect(),
        ),
        ("pinwheels", 1000, (1..13).map(|seed| tiled(&pinwheel(40, seed))).collect()),
        ("guillotine", 1000, (1..7).map(|seed| tiled(&guillotine(100, seed))).collect()),
        ("tilings with staircases", 2000, stepped().collect()),
        ("staircases", 4000, (5..16).map(staircases).collect()),
        (IN_TURNS, 200_000, vec![plain(hard::uneven(200)), staircases(200), plain(hard::flat())]),
        ("two parts", 2000, vec![two_parts()]),
        ("a crowd", 30_000, vec![crowd()]),
    ]
}

/// The results for the problems of a kind, added up.
#[derive(Debug, Default)]
struct Sum {
    pools: Bytes,
    bounds: Bytes,
    proven: usize,
    nodes: u64,
    /// All offsets.
    offsets: Bytes,
    /// The number of capacities that a plan fits.
    yes: usize,
    no: usize,
    /// The number of roots in conflicts, and of conflicts that are minimal.
    roots: usize,
    irreducible: usize,
}

impl Sum {
    /// Searches for the pool, and tries four capacities near it if `tries` is true.
    fn add(&mut self, problem: &Problem, limits: &Limits, tries: bool) {
        let outcome = optimize(problem, limits, Observer::default());
        self.pools += outcome.pool_size;
        self.bounds += outcome.lower_bound;
        self.proven += usize::from(outcome.proven_optimal);
        self.nodes += outcome.nodes;
        self.offsets += outcome.layout.offsets.iter().sum::<Bytes>();
        let (low, high) = (outcome.lower_bound, outcome.pool_size);
        let capacities = [low.saturating_sub(1), low, u64::midpoint(low, high), high];
        for capacity in capacities.into_iter().filter(|_| tries) {
            match fits(problem, capacity, limits, Observer::default()) {
                Fit::Yes(layout) => {
                    self.yes += 1;
                    self.offsets += layout.offsets.iter().sum::<Bytes>();
                }
                Fit::No => {
                    let set = conflict(problem, capacity, limits, Observer::default()).unwrap();
                    self.no += 1;
                    self.roots += set.roots.len();
                    self.irreducible += usize::from(set.irreducible);
                }
                Fit::Unknown => {}
            }
        }
    }
}

#[test]
fn every_effort_gives_the_results_in_the_table() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planners/optimal_effort.txt");
    let mut lines = String::new();
    for (kind, nodes, problems) in problems() {
        for nodes in [0, nodes / 10, nodes] {
            let mut sum = Sum::default();
            for problem in &problems {
                sum.add(problem, &Limits::default().nodes(nodes), kind != IN_TURNS);
            }
            writeln!(lines, "{kind}, {nodes} nodes: {sum:?}").unwrap();
        }
    }
    if std::env::var_os("SNAPSHOTS").is_some_and(|action| action == "overwrite") {
        fs::write(&table, &lines).unwrap();
    }
    let pinned = fs::read_to_string(&table).unwrap();
    let changed: Vec<(&str, &str)> =
        pinned.lines().zip(lines.lines()).filter(|(old, new)| old != new).collect();
    assert!(changed.is_empty(), "other than {}: {changed:#?}", table.display());
    assert_eq!(pinned, lines);
}
