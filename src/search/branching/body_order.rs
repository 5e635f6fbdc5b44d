//! The orders in which a round of the search tries bodies.

#![allow(clippy::cast_precision_loss, reason = "an order of trying may round")]

use crate::search::state::{
    fingerprint::scramble,
    instance::{Instance, Item},
};

/// The key of an order: the item with the largest key comes first.
const KEYS: [fn(&Item) -> f64; 6] = [
    |i| i.size as f64,
    |i| width(i) * 1e6 + i.size as f64,
    |i| -width(i) * 1e6 + i.size as f64,
    |i| width(i) * i.size as f64,
    |i| width(i).sqrt() * i.size as f64,
    |i| i.size as f64 / width(i),
];

/// The number of rounds in which every key is used once.
pub const LAP: u64 = KEYS.len() as u64;

fn width(item: &Item) -> f64 {
    f64::from(item.end - item.first)
}

/// The noise in the offsets of a guide, as a fraction of the limit; rounds use these values in turn.
const STRAYS: [f64; 3] = [0.03, 0.08, 0.2];

/// Writes the rank of every body in a round. Staircases come first. After the first lap, random
/// noise makes every order a new one.
pub fn rank_bodies(inst: &Instance, round: u64, rank: &mut [u32]) {
    let key = KEYS[usize::try_from(round % LAP).unwrap_or(0)];
    let noise = if round < LAP { 0.0 } else { 0.6 };
    let mut order: Vec<(f64, u32)> = Vec::with_capacity(inst.bodies());
    for (id, item) in (0u32..).zip(&inst.items) {
        let value = key(item);
        order.push((value + noise * value.abs() * noise_of(round, id), id));
    }
    let staircases = (0u32..).take(inst.bodies()).skip(inst.items.len());
    order.extend(staircases.map(|id| (f64::INFINITY, id)));
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    write_ranks(&order, rank);
}

/// Writes the rank of every body in a round: bodies that lie lower in the guide come first, with a little random
/// noise. Bodies that the guide does not place get a random rank.
pub fn rank_by_guide(guide: &[Option<u64>], limit: u64, round: u64, rank: &mut [u32]) {
    let stray = STRAYS[usize::try_from(round / 2 % 3).unwrap_or(0)];
    let mut order: Vec<(f64, u32)> = Vec::with_capacity(guide.len());
    for (id, offset) in (0u32..).zip(guide) {
        let noise = noise_of(round, id);
        let place =
            offset.map_or(noise + 0.5, |offset| offset as f64 / limit as f64 + stray * noise);
        order.push((place, id));
    }
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    write_ranks(&order, rank);
}

/// A number from -1/2 to 1/2 for a body in a round.
fn noise_of(round: u64, body: u32) -> f64 {
    let random = scramble((round << 32) ^ u64::from(body)) >> 11;
    random as f64 / (1u64 << 53) as f64 - 0.5
}

fn write_ranks(order: &[(f64, u32)], rank: &mut [u32]) {
    for (place, (_, id)) in (0u32..).zip(order) {
        rank[*id as usize] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        search::samples::{instance, random_problem},
        seeds::times,
    };

    /// The bodies in the order of a round.
    fn order_of(inst: &Instance, round: u64) -> Vec<u32> {
        let mut rank = vec![0; inst.bodies()];
        rank_bodies(inst, round, &mut rank);
        let mut bodies: Vec<u32> = (0u32..).take(inst.bodies()).collect();
        bodies.sort_by_key(|&body| rank[body as usize]);
        let ranks: Vec<u32> = bodies.iter().map(|&body| rank[body as usize]).collect();
        assert_eq!(ranks, (0u32..).take(bodies.len()).collect::<Vec<_>>());
        bodies
    }

    #[test]
    fn the_first_rounds_try_the_large_the_long_or_the_short_first_and_staircases_before_all() {
        type Value = fn(&Item) -> f64;
        let values: [Value; 6] = [
            |i| i.size as f64,
            |i| f64::from(i.end - i.first),
            |i| -f64::from(i.end - i.first),
            |i| f64::from(i.end - i.first) * i.size as f64,
            |i| f64::from(i.end - i.first).sqrt() * i.size as f64,
            |i| i.size as f64 / f64::from(i.end - i.first),
        ];
        times(500, |random| {
            let inst = instance(&random_problem(random)?);
            for (round, value) in (0..).zip(values) {
                let order = order_of(&inst, round);
                let (staircases, items) = order.split_at(inst.staircases.len());
                assert!(staircases.iter().all(|&body| inst.is_staircase(body)));
                let items = items.iter().map(|&body| value(&inst.items[body as usize]));
                assert!(items.is_sorted_by(|a, b| a >= b), "{order:?} of {inst:?}");
            }
            Ok(())
        });
    }

    /// Later orders differ from the first ones and from each other, but only a little.
    #[test]
    fn later_rounds_try_large_bodies_first_with_some_noise() {
        let mut problem = crate::Problem::builder();
        for size in 0..40 {
            problem.chunk(0..1, 100 + size);
        }
        problem.chunk(0..1, 10_000);
        problem.chunk(0..1, 1);
        let inst = instance(&problem.build().unwrap());
        let orders = || -> Vec<Vec<u32>> {
            (0..30).step_by(KEYS.len()).map(|round| order_of(&inst, round)).collect()
        };
        let (first, again) = (orders(), orders());
        assert_eq!(first, again);
        for (at, order) in first.iter().enumerate() {
            assert!(!first[..at].contains(order));
            assert_eq!((order[0], order[41]), (41, 0));
        }
    }
}
