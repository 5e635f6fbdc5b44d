//! Perfect packings that we cut ourselves: the optimum is known, and the optimal planner finds it.

use memplan::{
    Problem,
    planner::search::{Fit, Limits, Observer, fits, optimize},
};

/// A rectangle of steps and bytes.
#[derive(Clone, Copy)]
struct Tile {
    begin: u64,
    end: u64,
    low: u64,
    high: u64,
}

impl Tile {
    fn area(&self) -> u64 {
        (self.end - self.begin) * (self.high - self.low)
    }
}

struct Numbers(u64);

impl Numbers {
    /// A number in `low..high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + self.0 % (high - low).max(1)
    }
}

/// Cuts the largest tile again and again.
fn cut(tiles: usize, mut split: impl FnMut(Tile) -> Vec<Tile>) -> Vec<Tile> {
    // Time enough for cuts that do not meet.
    let end = 4096.max(tiles as u64 * 256);
    let mut all = vec![Tile { begin: 0, end, low: 0, high: 1 << 20 }];
    while all.len() < tiles {
        let largest = (0..all.len()).max_by_key(|&t| all[t].area()).unwrap();
        let tile = all.swap_remove(largest);
        all.extend(split(tile));
    }
    all
}

/// Straight cuts.
fn guillotine(tiles: usize, numbers: &mut Numbers) -> Vec<Tile> {
    cut(tiles, |tile| {
        let (w, h) = (tile.end - tile.begin, tile.high - tile.low);
        if (numbers.between(0, 2) == 0 && w > 4) || h < 5 {
            let at = tile.begin + numbers.between(w / 5 + 1, w - w / 5);
            vec![Tile { end: at, ..tile }, Tile { begin: at, ..tile }]
        } else {
            let at = tile.low + numbers.between(h / 5 + 1, h - h / 5);
            vec![Tile { high: at, ..tile }, Tile { low: at, ..tile }]
        }
    })
}

/// Four arms around a middle, which no straight cuts make.
fn pinwheel(tiles: usize, numbers: &mut Numbers) -> Vec<Tile> {
    cut(tiles, |t| {
        let (w, h) = (t.end - t.begin, t.high - t.low);
        let x1 = t.begin + numbers.between(w / 4, w * 9 / 20);
        let x2 = t.begin + numbers.between(w * 11 / 20 + 1, w * 3 / 4 + 2);
        let y1 = t.low + numbers.between(h / 4, h * 9 / 20);
        let y2 = t.low + numbers.between(h * 11 / 20 + 1, h * 3 / 4 + 2);
        vec![
            Tile { end: x2, high: y1, ..t },
            Tile { begin: x2, high: y2, ..t },
            Tile { begin: x1, low: y2, ..t },
            Tile { end: x1, low: y1, ..t },
            Tile { begin: x1, end: x2, low: y1, high: y2 },
        ]
    })
}

fn is_solved(tiles: &[Tile], nodes: u64) {
    let mut problem = Problem::builder();
    for tile in tiles {
        problem.chunk(tile.begin..tile.end, tile.high - tile.low);
    }
    let problem = problem.build().unwrap();
    let limits = Limits { nodes, ..Limits::default() };
    let outcome = optimize(&problem, None, &limits, Observer::default());
    assert_eq!((outcome.pool_size, outcome.proven_optimal), (1 << 20, true), "{}", tiles.len());
}

#[test]
fn guillotine_tilings_are_packed_perfectly() {
    for (tiles, seed) in [(16, 1), (64, 2), (64, 3), (256, 4), (256, 5), (1024, 6), (4096, 7)] {
        is_solved(&guillotine(tiles, &mut Numbers(seed * 7919)), 300_000);
    }
}

#[test]
fn pinwheel_tilings_are_packed_perfectly() {
    for (tiles, seed) in [(5, 1), (17, 2), (65, 3), (65, 4), (129, 5), (257, 6), (257, 7)] {
        is_solved(&pinwheel(tiles, &mut Numbers(seed * 7919)), 300_000);
    }
}

/// Of a problem too large to be searched whole, the crowded part is.
#[test]
fn a_tiling_is_packed_perfectly_among_thousands_of_small_chunks() {
    let tiles = pinwheel(17, &mut Numbers(2 * 7919));
    let mut problem = Problem::builder();
    let end = tiles.iter().map(|tile| tile.end).max().unwrap();
    for tile in tiles {
        problem.chunk(tile.begin..tile.end, tile.high - tile.low);
    }
    for at in 0..5000 {
        problem.chunk(end + at..end + at + 2, 1000);
    }
    let problem = problem.build().unwrap();
    let start = |nodes| {
        let limits = Limits { nodes, ..Limits::default() };
        optimize(&problem, None, &limits, Observer::default())
    };
    assert!(start(0).pool_size > 1 << 20, "there is something to search for");
    let outcome = start(300_000);
    assert_eq!((outcome.pool_size, outcome.proven_optimal), (1 << 20, true));
    assert!(outcome.nodes > 0);
}

/// A problem too large to be searched whole fits if its crowded part does.
#[test]
fn a_hard_part_of_a_large_problem_is_found() {
    let mut problem = Problem::builder();
    for tile in pinwheel(65, &mut Numbers(3 * 7919)) {
        problem.chunk(tile.begin..tile.end, tile.high - tile.low);
    }
    for at in 0..6_000 {
        problem.chunk(16_640 + at..16_642 + at, 1 + at % 7);
    }
    let problem = problem.build().unwrap();
    let fit = fits(&problem, 1 << 20, &Limits::default(), Observer::default());
    let Fit::Yes(layout) = fit else { panic!("{fit:?}") };
    assert_eq!(layout.pool_size(&problem), 1 << 20);
    assert_eq!(fits(&problem, (1 << 20) - 1, &Limits::default(), Observer::default()), Fit::No);
}
