//! The best plan in a fast pool and a slow one: the least traffic, then the smallest slow pool, then the smallest fast
//! one.

use super::{
    bodies::{Body, bodies},
    model::{Memory, Model},
    packing::{Packed, Sizes, TooMany, alive, smallest},
    ties::Link,
    truth::Best,
};

/// The most ways to spread the bodies of all choices over the pools.
const MAX_SPREADS: usize = 1 << 17;

/// The most bodies of a choice.
const MAX_BODIES: usize = 12;

/// A choice, and the pool of each of its bodies.
struct Spread<'c> {
    traffic: u128,
    links: &'c [Link],
    /// The bodies in the fast pool and in the slow one.
    pools: [Vec<&'c Body>; 2],
    outside: Vec<&'c Body>,
}

pub fn two_pools(
    model: &Model,
    choices: &[Vec<Link>],
    memories: [Memory; 2],
) -> Result<Option<Best>, TooMany> {
    let cases: Vec<(&Vec<Link>, Vec<Body>)> =
        choices.iter().filter_map(|links| Some((links, bodies(model, links)?))).collect();
    let mut spreads = Vec::new();
    for (links, all) in &cases {
        let (outside, inside): (Vec<&Body>, Vec<&Body>) =
            all.iter().partition(|body| body.outside.is_some());
        if inside.len() > MAX_BODIES || spreads.len() + (1 << inside.len()) > MAX_SPREADS {
            return Err(TooMany);
        }
        for chosen in 0..1_u32 << inside.len() {
            let mut pools = [Vec::new(), Vec::new()];
            let mut traffic = 0;
            for (at, body) in inside.iter().enumerate() {
                let pool = (chosen >> at & 1) as usize;
                pools[pool].push(*body);
                traffic += body.traffic * u128::from(memories[pool].cost);
            }
            spreads.push(Spread { traffic, links, pools, outside: outside.clone() });
        }
    }
    spreads.sort_by_key(|spread| spread.traffic);
    let mut best: Option<Best> = None;
    for spread in spreads {
        if best.as_ref().is_some_and(|best| best.objective[0] < spread.traffic) {
            break;
        }
        if let Some([fast, slow]) = packed(model, &spread, memories, best.as_ref())? {
            let objective = vec![spread.traffic, slow.size as u128, fast.size as u128];
            let mut found = Best::new(model, objective, spread.links);
            for (pool, packed) in [fast, slow].into_iter().enumerate() {
                for (body, address) in spread.pools[pool].iter().zip(packed.addresses) {
                    found.put(body, pool, address);
                }
            }
            for body in &spread.outside {
                found.put(body, 0, 0);
            }
            best = Some(found);
        }
    }
    Ok(best)
}

/// Packs both pools, if that is possible and better than another plan with as much traffic.
fn packed(
    model: &Model,
    spread: &Spread<'_>,
    memories: [Memory; 2],
    best: Option<&Best>,
) -> Result<Option<[Packed; 2]>, TooMany> {
    let limit = |pool: usize| memories[pool].capacity.map_or(i64::MAX, |bytes| bytes as i64);
    let least = [0, 1].map(|pool| alive(model, &spread.pools[pool]));
    let pack = |pool: usize, below: i64| {
        let sizes = Sizes { least: least[pool], below, capacity: limit(pool) };
        smallest(model, &spread.pools[pool], sizes)
    };
    let below = best.map_or(i64::MAX, |best| best.objective[1] as i64 + 1);
    if least[0] > limit(0) || least[1] > limit(1) || least[1] >= below {
        return Ok(None);
    }
    let Some(slow) = pack(1, below)? else { return Ok(None) };
    let below = match best {
        Some(best) if best.objective[1] == slow.size as u128 => best.objective[2] as i64,
        _ => i64::MAX,
    };
    Ok(pack(0, below)?.map(|fast| [fast, slow]))
}
