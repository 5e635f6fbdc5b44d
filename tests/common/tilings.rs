//! Perfect packings: a rectangle of steps and bytes, cut into tiles.

#![allow(dead_code, reason = "each test file uses its own part")]

use memplan::problem::ProblemBuilder;

/// The height of the rectangle that is cut, which is the smallest pool.
pub const POOL: u64 = 1 << 20;

/// A rectangle of steps and bytes.
#[derive(Clone, Copy)]
pub struct Tile {
    pub begin: u64,
    pub end: u64,
    pub low: u64,
    pub high: u64,
}

impl Tile {
    fn area(&self) -> u64 {
        (self.end - self.begin) * (self.high - self.low)
    }
}

/// Pseudo-random numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(seed * 7919)
    }

    /// Returns a number in `low..high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + self.0 % (high - low).max(1)
    }
}

/// Repeatedly cuts the largest tile of a rectangle of some steps.
fn cut(tiles: usize, end: u64, mut split: impl FnMut(Tile) -> Vec<Tile>) -> Vec<Tile> {
    let mut all = vec![Tile { begin: 0, end, low: 0, high: POOL }];
    while all.len() < tiles {
        let largest = (0..all.len()).max_by_key(|&t| all[t].area()).unwrap();
        let tile = all.swap_remove(largest);
        all.extend(split(tile));
    }
    all
}

/// Enough steps for cuts that do not meet.
fn many_steps(tiles: usize) -> u64 {
    4096.max(tiles as u64 * 256)
}

/// Cuts a tile in two.
fn halves(numbers: &mut Numbers, tile: Tile) -> Vec<Tile> {
    let (w, h) = (tile.end - tile.begin, tile.high - tile.low);
    if (numbers.between(0, 2) == 0 && w > 4) || h < 5 {
        let at = tile.begin + numbers.between(w / 5 + 1, w - w / 5);
        vec![Tile { end: at, ..tile }, Tile { begin: at, ..tile }]
    } else {
        let at = tile.low + numbers.between(h / 5 + 1, h - h / 5);
        vec![Tile { high: at, ..tile }, Tile { low: at, ..tile }]
    }
}

/// Cuts a tile into four arms around a middle, which no straight cuts produce.
fn arms(numbers: &mut Numbers, t: Tile) -> Vec<Tile> {
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
}

/// Tiles a rectangle by straight cuts.
pub fn guillotine(tiles: usize, seed: u64) -> Vec<Tile> {
    let mut numbers = Numbers::new(seed);
    cut(tiles, many_steps(tiles), |tile| halves(&mut numbers, tile))
}

/// Tiles a rectangle by pinwheels.
pub fn pinwheel(tiles: usize, seed: u64) -> Vec<Tile> {
    let mut numbers = Numbers::new(seed);
    cut(tiles, many_steps(tiles), |tile| arms(&mut numbers, tile))
}

/// Tiles a rectangle of some steps by straight cuts and, one in three, pinwheels.
pub fn mixed(tiles: usize, steps: u64, seed: u64) -> Vec<Tile> {
    let mut numbers = Numbers::new(seed);
    cut(tiles, steps, |tile| {
        let is_wide = tile.end - tile.begin > 8 && tile.high - tile.low > 8;
        let split = if is_wide && numbers.between(0, 3) == 0 { arms } else { halves };
        split(&mut numbers, tile)
    })
}

pub fn declare(problem: &mut ProblemBuilder, tiles: &[Tile]) {
    for tile in tiles {
        problem.chunk(tile.begin..tile.end, tile.high - tile.low);
    }
}

/// Declares the tiles as chunks, but some as staircases: halfway through its lifetime such a tile
/// keeps the upper or lower two thirds of its bytes, and another chunk has the rest.
pub fn declare_stepped(problem: &mut ProblemBuilder, tiles: &[Tile], one_in: usize) {
    for (at, &Tile { begin, end, low, high }) in tiles.iter().enumerate() {
        let (half, size, rest) = (u64::midpoint(begin, end), high - low, (high - low) / 3);
        if at % one_in > 0 || half == begin || half + 1 == end || rest == 0 {
            problem.chunk(begin..end, size);
            continue;
        }
        let whole = problem.chunk(begin..half + 1, size);
        let part = problem.chunk(half..end, size - rest);
        problem.overwrite(part, whole, if (at / one_in).is_multiple_of(2) { rest } else { 0 });
        problem.chunk(half + 1..end, rest);
    }
}
