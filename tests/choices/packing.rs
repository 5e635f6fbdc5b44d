//! The smallest pool for some bodies, by trying all places.
//!
//! Placing a body removes the places of the others that disturb it. The body with the fewest places left comes
//! next. In a plan in which no body can move down, every body lies at a sum of sizes and distances, rounded up to the
//! alignment, so places on a grid are enough.

use super::{
    bodies::{Body, Need},
    model::Model,
};

/// The most places of a body.
const MAX_PLACES: i64 = 128;

/// The most bodies.
const MAX_BODIES: usize = 20;

/// The most places that are tried.
const MAX_NODES: u64 = 100_000;

/// There are too many places to try.
#[derive(Clone, Copy, Debug)]
pub struct TooMany;

/// The size of a pool, and the address of each body in it.
#[derive(Clone, Debug)]
pub struct Packed {
    pub size: i64,
    pub addresses: Vec<i64>,
}

/// The sizes that are of interest.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// No smaller size is possible.
    pub least: i64,
    /// Only sizes below this one are of interest.
    pub below: i64,
    /// No byte may lie at this address or above.
    pub capacity: i64,
}

/// The most bytes that bodies need at one step, whatever their places.
pub fn alive(model: &Model, bodies: &[&Body]) -> i64 {
    let is_alive = |need: &Need, step: usize| {
        let is_written = need
            .writer
            .is_none_or(|writer| writer == step || model.before[step] >> writer & 1 == 1);
        let is_used = |at: usize| {
            need.uses >> at & 1 == 1 && (at == step || model.before[at] >> step & 1 == 1)
        };
        is_written && (need.uses & model.end() != 0 || (0..model.operators.len()).any(is_used))
    };
    let bytes = |body: &Body, step: usize| -> i64 {
        let needed = body
            .segments
            .iter()
            .filter(|segment| segment.needs.iter().any(|need| is_alive(need, step)));
        needed.map(|segment| segment.high - segment.low).sum()
    };
    (0..model.operators.len())
        .map(|step| bodies.iter().map(|body| bytes(body, step)).sum())
        .max()
        .unwrap_or(0)
}

/// The smallest pool of a size that is of interest, if there is one.
pub fn smallest(model: &Model, bodies: &[&Body], sizes: Sizes) -> Result<Option<Packed>, TooMany> {
    if bodies.is_empty() {
        let is_wanted = sizes.below > 0;
        return Ok(is_wanted.then(|| Packed { size: 0, addresses: Vec::new() }));
    }
    if bodies.len() > MAX_BODIES {
        return Err(TooMany);
    }
    let mut search = Search::new(model, bodies, &sizes)?;
    let extent = bodies.iter().map(|body| body.extent + body.residue).max().unwrap_or(0);
    let mut size = model.round_up(sizes.least.max(extent));
    loop {
        let end = size.min(sizes.capacity);
        if end >= sizes.below {
            return Ok(None);
        }
        if let Some(addresses) = search.packed(end)? {
            return Ok(Some(Packed { size: end, addresses }));
        }
        if size >= sizes.capacity {
            return Ok(None);
        }
        size += model.alignment.max(model.grid());
    }
}

struct Search<'b> {
    bodies: &'b [&'b Body],
    grid: i64,
    places: i64,
    /// By body, its place, and another body: the places of the other that get along with it.
    beside: Vec<Vec<Vec<u128>>>,
    nodes: u64,
    chosen: Vec<i64>,
}

impl<'b> Search<'b> {
    fn new(model: &Model, bodies: &'b [&'b Body], sizes: &Sizes) -> Result<Self, TooMany> {
        let grid = model.grid();
        let all: i64 = bodies.iter().map(|body| body.extent + 2 * model.alignment).sum();
        let top = all.min(sizes.below).min(sizes.capacity);
        let places = top / grid + 1;
        if places > MAX_PLACES {
            return Err(TooMany);
        }
        let beside = bodies.iter().map(|&one| {
            let forbidden: Vec<Vec<(i64, i64)>> =
                bodies.iter().map(|other| forbidden(model, one, other)).collect();
            let free = |at: i64, (other, forbidden): (&&Body, &Vec<(i64, i64)>)| {
                let is_free = |place: &i64| {
                    let distance = other.residue - one.residue + (place - at) * grid;
                    !forbidden.iter().any(|&(low, high)| low < distance && distance < high)
                };
                (0..places).filter(is_free).fold(0_u128, |mask, place| mask | 1 << place)
            };
            (0..places)
                .map(|at| bodies.iter().zip(&forbidden).map(|pair| free(at, pair)).collect())
                .collect()
        });
        let chosen = vec![0; bodies.len()];
        Ok(Self { bodies, grid, places, beside: beside.collect(), nodes: 0, chosen })
    }

    /// The addresses of the bodies below an end, if there are any.
    fn packed(&mut self, end: i64) -> Result<Option<Vec<i64>>, TooMany> {
        let left = self.bodies.iter().map(|body| {
            let fits = |place: &i64| body.residue + place * self.grid + body.extent <= end;
            (0..self.places).filter(fits).fold(0_u128, |mask, place| mask | 1 << place)
        });
        let left: Vec<u128> = left.collect();
        let open: Vec<usize> = (0..self.bodies.len()).collect();
        let is_packed = self.place(&open, &left)?;
        let address = |(body, at): (&&Body, &i64)| body.residue + at * self.grid;
        Ok(is_packed.then(|| self.bodies.iter().zip(&self.chosen).map(address).collect()))
    }

    fn place(&mut self, open: &[usize], left: &[u128]) -> Result<bool, TooMany> {
        let Some(&next) = open.iter().min_by_key(|&&body| left[body].count_ones()) else {
            return Ok(true);
        };
        let rest: Vec<usize> = open.iter().copied().filter(|&body| body != next).collect();
        let mut places = left[next];
        while places != 0 {
            let at = places.trailing_zeros();
            places &= places - 1;
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return Err(TooMany);
            }
            let beside = &self.beside[next][at as usize];
            let now: Vec<u128> = left.iter().zip(beside).map(|(left, free)| left & free).collect();
            if rest.iter().any(|&body| now[body] == 0) {
                continue;
            }
            self.chosen[next] = i64::from(at);
            if self.place(&rest, &now)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The distances from one body to another that are too small and too large by one, for each pair of their segments
/// that may be needed at the same time.
fn forbidden(model: &Model, one: &Body, other: &Body) -> Vec<(i64, i64)> {
    let disturb =
        |a: &Need, b: &Need| !model.are_over(a.uses, b.writer) && !model.are_over(b.uses, a.writer);
    let mut forbidden = Vec::new();
    for a in &one.segments {
        for b in &other.segments {
            if a.needs.iter().any(|x| b.needs.iter().any(|y| disturb(x, y))) {
                forbidden.push((a.low - b.high, a.high - b.low));
            }
        }
    }
    forbidden
}
