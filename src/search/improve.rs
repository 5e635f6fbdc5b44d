//! Improves the packing of a problem by searches.

use crate::{
    Limits,
    search::{
        Stage,
        control::limit_schedule,
        cores::{node_weight, search_cores},
        effort::SHORT,
        engine::Turn,
        schedule::{FIRST, IN_TURNS, LIMITS_ALONE},
        sizes::{LONG, SMALL},
        solution::Solution,
        state::instance::Instance,
        tighten::tighten_rounded,
        under_way::Search,
    },
};

/// Searches the whole problem, or, if it is large, one crowded core after the other.
pub fn improve(search: &mut Search<'_, '_>, limits: &Limits) {
    // A search that repeats with more effort gives each stage all nodes, because ejection gains more the longer it
    // runs.
    let limits = &if limits.times > 1 { limits.nodes(u64::MAX) } else { *limits };
    let roots: Vec<_> = search.problem.roots().collect();
    let weight = if roots.len() > LONG { 1 } else { node_weight(roots.len()) };
    let effort = |search: &Search<'_, '_>, weight| {
        let Solution { lower_bound, pool_size, .. } = *search.solution;
        limits.scaled_to_gap(lower_bound, pool_size, weight).effort()
    };
    let Ok(inst) = Instance::new(search.problem, &roots, search.monitor) else { return };
    let turn = Turn::first(&inst, effort(search, 1), limits);
    let mut spent = search.run(&inst, &FIRST, turn, 1);
    if search.is_over() {
        return;
    }
    if roots.len() > LONG {
        let nodes = effort(search, 1).saturating_sub(spent);
        return search_cores(search, &inst, nodes, limits);
    }
    // The later stages do not see this packing, so their results stay the same. It serves short limits.
    let before = search.solution.clone();
    let early = first_descent(search, &inst, effort(search, 1).saturating_sub(spent));
    if search.is_over() {
        return;
    }
    search.monitor.found(search.solution.pool_size);
    let early_layout = std::mem::replace(search.solution, before).layout;
    if !limits.is_default() {
        spent += early;
    }
    let nodes = effort(search, weight).saturating_sub(spent);
    spent += tighten_rounded(search, &inst, &limits.nodes(nodes));
    if roots.len() >= SMALL && !search.is_over() {
        let left = effort(search, 1).saturating_sub(spent);
        spent += search.run(&inst, &IN_TURNS, Turn::first(&inst, left, limits), limits.threads);
    }
    if !search.is_over() {
        // The gap may be smaller now.
        let left = effort(search, weight).saturating_sub(spent);
        search.run(&inst, &LIMITS_ALONE, Turn::first(&inst, left, limits), limits.threads);
    }
    search.solution.improve(search.problem, early_layout);
}

/// If the pool is more than a percent above the bound, packs all chains below limits in the middle of the gap, with at
/// most `most` nodes; returns the nodes spent.
fn first_descent(search: &mut Search<'_, '_>, inst: &Instance, most: u64) -> u64 {
    let has_stage = search.monitor.has(Stage::FirstDescent);
    if search.solution.is_near() || !has_stage || most == 0 || inst.bodies() < SMALL {
        return 0;
    }
    search.improve(inst, 1, |packing, monitor| {
        packing.search(SHORT.min(most), monitor, |incumbent, meter| {
            limit_schedule::first_descent(inst, incumbent, meter)
        })
    })
}
