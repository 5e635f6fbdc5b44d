//! The best plan in a fast pool with a capacity and a slow one without: the least traffic, then the smallest slow
//! pool, then the smallest fast one.

use super::{
    bodies::{Body, bodies},
    model::Model,
    packing::{Sizes, TooMany, alive, smallest},
    ties::Link,
    truth::Best,
};

/// The most ways to spread the bodies of all choices over the pools.
const MAX_SPREADS: usize = 1 << 17;

pub fn two_pools(
    model: &Model,
    choices: &[Vec<Link>],
    [capacity, fast, slow]: [u64; 3],
) -> Result<Option<Best>, TooMany> {
    let cases: Vec<(&Vec<Link>, Vec<Body>)> =
        choices.iter().filter_map(|links| Some((links, bodies(model, links)?))).collect();
    // The traffic, the choice, and the bodies in the fast pool, by bits.
    let mut spreads: Vec<(u128, usize, u32)> = Vec::new();
    for (case, (_, all)) in cases.iter().enumerate() {
        let inside: Vec<&Body> = all.iter().filter(|body| body.outside.is_none()).collect();
        if inside.len() > 12 || spreads.len() + (1 << inside.len()) > MAX_SPREADS {
            return Err(TooMany);
        }
        for chosen in 0..1_u32 << inside.len() {
            let cost = |(at, body): (usize, &&Body)| {
                let cost = if chosen >> at & 1 == 1 { fast } else { slow };
                body.traffic * u128::from(cost)
            };
            spreads.push((inside.iter().enumerate().map(cost).sum(), case, chosen));
        }
    }
    spreads.sort_unstable();
    let mut best: Option<Best> = None;
    for (traffic, case, chosen) in spreads {
        if best.as_ref().is_some_and(|best| best.objective[0] < traffic) {
            break;
        }
        let (links, all) = &cases[case];
        let inside: Vec<&Body> = all.iter().filter(|body| body.outside.is_none()).collect();
        let of_pool = |is_fast: bool| -> Vec<&Body> {
            let chosen =
                inside.iter().enumerate().filter(|(at, _)| (chosen >> at & 1 == 1) == is_fast);
            chosen.map(|(_, body)| *body).collect()
        };
        let (in_fast, in_slow) = (of_pool(true), of_pool(false));
        let capacity = capacity as i64;
        let limit = best.as_ref().map(|best| best.objective.clone());
        let sizes = |bodies: &[&Body], below: i64, capacity: i64| Sizes {
            least: alive(model, bodies),
            below,
            capacity,
        };
        let below = limit.as_ref().map_or(i64::MAX, |limit| limit[1] as i64 + 1);
        if alive(model, &in_fast) > capacity || alive(model, &in_slow) >= below {
            continue;
        }
        let Some(slow) = smallest(model, &in_slow, sizes(&in_slow, below, i64::MAX))? else {
            continue;
        };
        let below = match &limit {
            Some(limit) if limit[1] == slow.size as u128 => limit[2] as i64,
            _ => i64::MAX,
        };
        let Some(fast) = smallest(model, &in_fast, sizes(&in_fast, below, capacity))? else {
            continue;
        };
        let mut found =
            Best::new(model, vec![traffic, slow.size as u128, fast.size as u128], links);
        for (pool, bodies, packed) in [(0, &in_fast, fast), (1, &in_slow, slow)] {
            for (body, address) in bodies.iter().zip(packed.addresses) {
                found.put(body, pool, address);
            }
        }
        for body in all.iter().filter(|body| body.outside.is_some()) {
            found.put(body, 0, 0);
        }
        best = Some(found);
    }
    Ok(best)
}
