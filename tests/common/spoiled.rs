//! Plans of constrained problems, and the same plans with a change that usually makes them wrong.

use memplan::{Plan, PlannedLink, Problem, problem::PoolId};
use serde_json::Value;

use super::{
    constraints::Dice,
    judge::{Over, Spot, bodies},
};

/// Reads the text of a problem; `None` if it is not valid.
pub fn read(text: &Value) -> Option<Problem> {
    serde_json::from_value(text.clone()).ok()
}

/// The places of the chunks of a plan, as the judge reads them.
pub fn spots(plan: &Plan) -> Vec<Spot> {
    let over =
        |link: PlannedLink| (link.chunk, link.offset.cast_signed() - link.below.cast_signed());
    let spot = |chunk: &memplan::PlannedChunk| Spot {
        pool: chunk.pool,
        offset: chunk.offset,
        overwrites: chunk.overwrites.map(over),
    };
    plan.chunks().iter().map(spot).collect()
}

/// The overwrites that a plan has.
pub fn links_of(plan: &Plan) -> Vec<Option<Over>> {
    spots(plan).iter().map(|spot| spot.overwrites).collect()
}

/// The overwrites that a problem accepts.
pub fn links(problem: &Problem) -> Vec<Option<Over>> {
    let link = |chunk| {
        let (old, distance) = problem.overwritten(chunk)?;
        Some((old.index(), i64::try_from(distance).unwrap()))
    };
    problem.ids().map(link).collect()
}

fn places(plan: &Plan) -> Vec<(PoolId, u64)> {
    let place = |c: &memplan::PlannedChunk| (PoolId(u16::try_from(c.pool).unwrap()), c.offset);
    plan.chunks().iter().map(place).collect()
}

/// Changes a plan: moves a body or a chunk, drops a link, or writes a chunk over another one.
pub fn spoiled(dice: &mut Dice, text: &Value, problem: &Problem, plan: &Plan) -> Plan {
    let mut places = places(plan);
    let requests = problem.requests();
    if !requests.is_empty() && dice.roll(4) == 0 {
        let request = requests[usize::try_from(dice.roll(requests.len() as u64)).unwrap()];
        let (new, old) = (request.overwriter.index(), request.overwritten.index());
        let offset = (places[old].1 + request.offset).saturating_sub(request.below);
        if dice.roll(3) > 0 {
            places[new] = (places[old].0, offset);
        }
        let mut plan = Plan::from_places(problem, &places).unwrap();
        plan.chunks_mut()[new].overwrites = Some(match request.below {
            0 => PlannedLink::new(old, request.offset),
            below => PlannedLink::overlap(old, below),
        });
        return with_other_links(plan);
    }
    let bodies = bodies(text, &spots(plan));
    let chunk = usize::try_from(dice.roll(places.len() as u64)).unwrap();
    let moved = if dice.roll(3) == 0 { vec![chunk] } else { bodies[chunk].clone() };
    let low = moved.iter().map(|&at| places[at].1).min().unwrap();
    let new = dice.roll(4 + 2 * plan.pools().iter().map(|pool| pool.size).max().unwrap_or(0));
    let pools = problem.pools().len().max(1) as u64;
    let pool =
        if dice.roll(3) == 0 { Some(u16::try_from(dice.roll(pools)).unwrap()) } else { None };
    for at in moved {
        let offset = places[at].1 - low + new;
        places[at] = (pool.map_or(places[at].0, PoolId), offset);
    }
    let mut plan = Plan::from_places(problem, &places).unwrap();
    if dice.roll(6) == 0 {
        plan.chunks_mut()[chunk].overwrites = None;
    }
    with_other_links(plan)
}

/// Lets a plan claim nothing about the overwrites of its problem, as it may have others.
fn with_other_links(mut plan: Plan) -> Plan {
    *plan.lower_bound_mut() = plan.lower_bound().min(plan.pool_size());
    plan.peak_mut().clear();
    plan
}
