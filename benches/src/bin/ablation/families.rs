//! Families of problems: files that lie beside the project, where they are there, and random relatives.

#[path = "../../../../tests/common/chains.rs"]
mod chains;
#[path = "../../../../tests/common/hard.rs"]
mod hard;
#[path = "../../../../tests/common/tilings.rs"]
mod tilings;

use std::fs;

use chains::Numbers;
use memplan::{
    Bytes, Input, Problem, Step, Strategy,
    import::{Format, ImportOptions, read_input},
    lower::{LoweringOptions, lower},
    problem::{Pool, PoolId, ProblemBuilder},
    search::{Limits, Observer, Stage, Without, lay_out},
};
use tilings::{guillotine, pinwheel};

/// Problems of a kind.
pub struct Family {
    pub name: &'static str,
    /// A tenth of the nodes of a second look, if more effort helps.
    pub nodes: Option<u64>,
    pub problems: Vec<(String, Problem)>,
}

/// The folder of the files that lie beside the project.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/problems");

/// Larger files take minutes.
const MAX_CHUNKS: usize = 20_000;

fn files(folder: &str) -> Vec<(String, Problem)> {
    let Ok(entries) = fs::read_dir(format!("{FILES}/{folder}")) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut problems = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(format) = Format::of_name(&name) else { continue };
        let input = fs::read(&path).ok();
        let input =
            input.and_then(|bytes| read_input(&bytes, format, &ImportOptions::default()).ok());
        let problem = match input {
            Some(Input::Problem(problem)) => problem,
            Some(Input::Sequence(sequence)) => match lower(&sequence, LoweringOptions::default()) {
                Ok(lowered) => lowered.problem,
                Err(_) => continue,
            },
            _ => continue,
        };
        if problem.len() <= MAX_CHUNKS {
            problems.push((name, problem));
        }
    }
    problems
}

fn built(build: impl FnOnce(&mut ProblemBuilder)) -> Problem {
    let mut builder = Problem::builder();
    build(&mut builder);
    builder.build().unwrap_or_else(|error| panic!("a generator is wrong: {error}"))
}

fn plain(lives: Vec<(u64, u64, u64)>) -> Problem {
    built(|problem| {
        for (begin, end, size) in lives {
            problem.chunk(begin..end, size);
        }
    })
}

/// Random lives, of which some are alive at once.
fn lives(chunks: u64, alive: u64, seed: u64) -> Problem {
    let mut numbers = Numbers(seed);
    plain(
        (0..chunks)
            .map(|_| {
                let begin = numbers.below(chunks);
                (begin, begin + 1 + numbers.below(2 * alive), 64 * (1 + numbers.below(1000)))
            })
            .collect(),
    )
}

/// The same problem with other sizes.
fn resized(problem: &Problem, size: &mut dyn FnMut(Bytes) -> Bytes) -> Problem {
    built(|builder| {
        for id in problem.ids() {
            let chunk = problem.chunk(id);
            builder.chunk(chunk.begin..chunk.end, size(chunk.size));
        }
    })
}

/// The same problem with some of its chunks pinned where a plan puts them, one in so many. It is not the plan that the
/// search would find without pins.
fn pinned(problem: &Problem, one_in: u64, seed: u64) -> Problem {
    let mut limits = Limits::default();
    limits.without = Without::stage(Stage::BodyOrders);
    let plan = lay_out(Strategy::Best, problem, &limits, Observer::default());
    let plan = plan.unwrap_or_else(|error| panic!("a problem without constraints: {error}"));
    let mut numbers = Numbers(seed);
    built(|builder| {
        for id in problem.ids() {
            let chunk = problem.chunk(id);
            let new = builder.chunk(chunk.begin..chunk.end, chunk.size);
            if numbers.below(one_in) == 0 {
                builder.pin(new, PoolId::default(), plan.offset(id));
            }
        }
    })
}

/// Tiles, one in so many of which are pinned where they were cut.
fn pinned_tiles(tiles: &[tilings::Tile], one_in: usize) -> Problem {
    built(|problem| {
        for (at, tile) in tiles.iter().enumerate() {
            let chunk = problem.chunk(tile.begin..tile.end, tile.high - tile.low);
            if at % one_in == 0 {
                problem.pin(chunk, PoolId::default(), tile.low);
            }
        }
    })
}

/// Chains of overwriters without a common divisor of their sizes, of which half or more overwrite.
fn large_chains(chains: u64, one_in: u64, seed: u64) -> Problem {
    let mut numbers = Numbers(seed);
    let steps = chains;
    let mut problem = Problem::builder().alignment(64);
    for _ in 0..chains {
        let mut begin = numbers.below(steps);
        let mut end = begin + 1 + numbers.below(steps / 2 + 1);
        let mut size = 1 + numbers.below(1_000_000);
        let mut chunk = problem.chunk(begin..end, size);
        while numbers.below(one_in) > 0 {
            begin = end - 1;
            end += numbers.below(3);
            let offset = numbers.below(size);
            size = 1 + numbers.below(size - offset);
            let overwriter = problem.chunk(begin..end, size);
            problem.overwrite(overwriter, chunk, offset);
            chunk = overwriter;
        }
    }
    problem.build().unwrap_or_else(|error| panic!("a generator is wrong: {error}"))
}

/// A problem in a pool with bytes that are reserved in its middle.
fn reserved(tiles: &[tilings::Tile]) -> Problem {
    built(|problem| {
        let low = tilings::POOL / 2;
        problem.pool(Pool::new("pool").reserved(low..low + 4096));
        for tile in tiles {
            problem.chunk(tile.begin..tile.end, tile.high - tile.low);
        }
    })
}

/// Chunks with traffic that lie in a small fast pool or in a large slow one.
fn two_pools(chunks: u64, seed: u64) -> Problem {
    let mut numbers = Numbers(seed);
    built(|problem| {
        problem.pool(Pool::new("fast").capacity(1 << 12));
        problem.pool(Pool::new("slow").cost(10));
        for _ in 0..chunks {
            let begin = numbers.below(chunks);
            let end = begin + 1 + numbers.below(8);
            let size = 16 * (1 + numbers.below(100));
            let chunk = problem.chunk(begin..end, size);
            problem.traffic(chunk, size * (1 + numbers.below(4)));
        }
    })
}

/// Operators on some streams that wait for each other now and then.
fn streams(operators: u64, streams: usize, seed: u64) -> Problem {
    let mut numbers = Numbers(seed);
    built(|problem| {
        problem.streams(streams);
        let mut last: Vec<Vec<Step>> = vec![vec![0; streams]; streams];
        for _ in 0..operators {
            let draw =
                |numbers: &mut Numbers| usize::try_from(numbers.below(streams as u64)).unwrap_or(0);
            let (own, other) = (draw(&mut numbers), draw(&mut numbers));
            if numbers.below(4) == 0 {
                let known = last[other].clone();
                for (step, known) in last[own].iter_mut().zip(known) {
                    *step = known.max(*step);
                }
            }
            let begin = last[own].clone();
            last[own][own] += 1;
            let mut end = last[own].clone();
            end[own] += numbers.below(6);
            for (stream, step) in end.iter_mut().enumerate() {
                *step += if stream == own { 0 } else { numbers.below(4) };
            }
            let chunk = problem.chunk(0..1, 16 * (1 + numbers.below(500)));
            problem.clocks(chunk, begin, end, own);
        }
    })
}

/// Chunks that need no bytes in the middle of their lives.
fn holes(chunks: u64, seed: u64) -> Problem {
    let mut numbers = Numbers(seed);
    built(|problem| {
        for _ in 0..chunks {
            let begin = numbers.below(chunks);
            let end = begin + 3 + numbers.below(chunks / 10);
            let chunk = problem.chunk(begin..end, 64 * (1 + numbers.below(400)));
            if numbers.below(3) == 0 {
                let from = begin + 1 + numbers.below(end - begin - 2);
                problem.hole(chunk, from..end - 1);
            }
        }
    })
}

fn staircases(chunks: u64, seed: u64) -> Problem {
    let sequence = chains::sequence_of(&chains::staircases(chunks, seed));
    lower(&sequence, LoweringOptions::default())
        .unwrap_or_else(|error| panic!("a generator is wrong: {error}"))
        .problem
}

fn seeded(seeds: std::ops::Range<u64>, make: impl Fn(u64) -> Problem) -> Vec<(String, Problem)> {
    seeds.map(|seed| (format!("seed {seed}"), make(seed))).collect()
}

fn tiled(tiles: &[tilings::Tile], one_in: Option<usize>) -> Problem {
    built(|problem| match one_in {
        None => tilings::declare(problem, tiles),
        Some(one_in) => tilings::declare_stepped(problem, tiles, one_in),
    })
}

/// All families.
pub fn all() -> Vec<Family> {
    let hard_files = files("challenging");
    let noisy = hard_files.iter().filter(|(name, _)| !name.starts_with(['D', 'J'])).map(
        |(name, problem)| {
            let mut numbers = Numbers(1);
            let mut size = |size: Bytes| size * 1000 + numbers.below(1000);
            (name.clone(), resized(problem, &mut size))
        },
    );
    let (noisy, mut pins): (Vec<_>, Vec<_>) = (noisy.collect(), Vec::new());
    for (name, problem) in hard_files.iter().filter(|(name, _)| !name.starts_with('J')) {
        for seed in [7, 30] {
            pins.push((format!("{name}, one in ten, {seed}"), pinned(problem, 10, seed)));
        }
    }
    let family = |name, nodes, problems| Family { name, nodes, problems };
    let mut stepped = Vec::new();
    for one_in in [10, 4, 2] {
        stepped.extend(seeded(1..4, |seed| tiled(&guillotine(50, seed), Some(one_in))));
        stepped.extend(seeded(1..3, |seed| tiled(&pinwheel(129, seed), Some(one_in))));
        stepped.extend(seeded(1..3, |seed| tiled(&guillotine(300, seed), Some(one_in))));
    }
    let mut small = seeded(0..60, |seed| chains::random_chains(&mut Numbers(seed << 16), 12));
    small.extend(seeded(60..100, |seed| {
        chains::random_chains_of(&mut Numbers(seed << 16), 30, 1000)
    }));
    let mut uneven: Vec<(String, Problem)> =
        [50, 100, 300].map(|count| (format!("{count}"), plain(hard::uneven(count)))).into();
    uneven.push(("flat".to_owned(), plain(hard::flat())));
    uneven
        .extend([10, 40, 400].map(|count| (format!("scattered {count}"), hard::scattered(count))));
    let mut fixed = seeded(1..4, |seed| pinned(&tiled(&guillotine(200, seed), None), 10, seed));
    for one_in in [3, 10, 30] {
        fixed.extend(seeded(1..4, |seed| pinned_tiles(&guillotine(200, seed), one_in)));
        fixed.extend(seeded(1..3, |seed| pinned_tiles(&pinwheel(129, seed), one_in)));
    }
    fixed.extend(seeded(1..2, |seed| reserved(&pinwheel(65, seed))));
    let mut long: Vec<(String, Problem)> = seeded(1..3, |seed| lives(6000, 20, seed));
    long.push(("dense".to_owned(), lives(5000, 1000, 3)));
    long.push(("short".to_owned(), plain(hard::short_lives(10_000))));
    long.push(("many".to_owned(), lives(100_000, 30, 1)));
    long.push(("many short".to_owned(), plain(hard::short_lives(100_000))));
    let mut on_streams: Vec<(String, Problem)> = Vec::new();
    for count in [2, 4] {
        on_streams.extend(seeded(1..4, |seed| streams(60, count, seed)));
        on_streams.extend(seeded(1..3, |seed| streams(600, count, seed)));
    }
    let mut pools = seeded(1..7, |seed| two_pools(14, seed));
    pools.extend(seeded(1..5, |seed| two_pools(60, seed)));
    pools.extend(seeded(1..3, |seed| two_pools(600, seed)));
    let mut tight = seeded(1..4, |seed| tiled(&guillotine(400, seed), None));
    tight.extend(seeded(1..4, |seed| tiled(&pinwheel(257, seed), None)));
    tight.extend(seeded(1..2, |seed| tiled(&guillotine(1500, seed), None)));
    vec![
        family("hard", Some(500_000), hard_files),
        family("noisy", Some(20_000), noisy),
        family("edges", None, files("edges")),
        family("training", None, files("training")),
        family("tilings", None, tight),
        family("stepped", Some(20_000), stepped),
        family("small", Some(2_000), small),
        family("uneven", Some(100_000), uneven),
        family(
            "lives",
            Some(100_000),
            seeded(1..5, |seed| lives(1000, if seed % 2 == 0 { 100 } else { 25 }, seed)),
        ),
        family("long", None, long),
        family("staircases", Some(100_000), {
            let mut problems = seeded(1..4, |seed| staircases(200, seed));
            problems.extend(seeded(1..3, |seed| staircases(600, seed)));
            problems
        }),
        family("chains", Some(2_000), {
            let mut problems = Vec::new();
            for (chains, count) in [(8, 20), (12, 20), (16, 20), (40, 10)] {
                problems.extend(seeded(0..count, |seed| {
                    large_chains(chains, 2, chains << 20 | seed << 8 | 1)
                }));
            }
            problems.extend(seeded(0..20, |seed| large_chains(8, 4, 77 << 20 | seed << 8 | 1)));
            problems
        }),
        family("pins", None, pins),
        family("fixed", None, fixed),
        family("holes", None, seeded(1..4, |seed| holes(300, seed))),
        family("streams", None, on_streams),
        family("pools", None, pools),
    ]
}
