//! Crowded cores: with many chains, the search first packs those that live in the most crowded steps. The other chains
//! usually have enough room around them.

use crate::search::{
    Stage,
    engine::Turn,
    schedule::BETWEEN_CORES,
    sizes::{MEDIUM, WORK_PER_NODE},
    state::instance::Instance,
    tighten::tighten_and_complete,
    under_way::Search,
};
use crate::{Bytes, Limits, limits::NODES, problem::ChunkId};

/// A core has the chains that live in some step with at least this many live bytes, in thousandths of the maximum. The
/// last is the whole problem.
const CORE_LEVELS: [Bytes; 16] =
    [990, 980, 970, 960, 950, 940, 930, 920, 900, 880, 850, 800, 700, 600, 400, 0];

/// The levels of a few cores, for a start.
pub const FIRST_LEVELS: [Bytes; 3] = [CORE_LEVELS[4], CORE_LEVELS[8], CORE_LEVELS[12]];

/// Searches crowded cores until the effort is spent or the pool is proven. A small core is often
/// packed at the bound at once, and the chains of less crowded steps have room enough around it.
pub fn search_cores(search: &mut Search<'_, '_>, inst: &Instance, nodes: u64, given: &Limits) {
    let limits = given.nodes(nodes);
    // Use the live bytes, not the raised bound: each core contains the one before, and the peak.
    let live = search.solution.lower_bound;
    // The first three cores together take no more than the least default effort.
    let mut left = limits.effort().min(NODES);
    let mut most_chains = usize::MAX;
    let mut searched = 0;
    let has_cores = search.monitor.has(Stage::Cores);
    for level in FIRST_LEVELS.into_iter().filter(|_| has_cores) {
        let core = search.greedy.crowded(thousandths(live, level));
        let nodes = left / 3 * 2;
        if core.len() == searched {
            continue;
        }
        // A node places one chain.
        if nodes < core.len() as u64 {
            break;
        }
        searched = core.len();
        let limits = limits.nodes(nodes);
        let found = tighten_and_complete(search, &core, &limits);
        left = left.saturating_sub(found.nodes);
        if search.is_over() {
            return;
        }
        if found.is_too_large {
            most_chains = core.len() - 1;
            break;
        }
    }
    let mut limits = limits.nodes(limits.effort().saturating_sub(NODES));
    let turn = Turn::first(inst, limits.effort(), given);
    let ejected = search.run(inst, &BETWEEN_CORES, turn, 1);
    limits = limits.nodes(limits.effort().saturating_sub(ejected));
    if search.is_over() {
        return;
    }
    if !search.solution.is_near() {
        let (_, orders) = search.greedy.orders();
        search.pack(orders, search.solution.lower_bound);
        if search.monitor.must_stop() {
            return;
        }
    }
    if !search.monitor.has(Stage::MoreCores) {
        return;
    }
    let cores = CORE_LEVELS.map(|level| search.greedy.crowded(thousandths(live, level)));
    let mut open: Vec<_> = cores.iter().filter(|core| core.len() <= most_chains).collect();
    // Skip duplicate cores.
    open.dedup_by_key(|core| core.len());
    search_more_cores(search, open, &limits);
}

/// Searches more cores, given from the smallest to the largest, each with the least default effort, and repeatedly with
/// more nodes. Completing their packings counts as nodes too.
fn search_more_cores(search: &mut Search<'_, '_>, mut open: Vec<&Vec<ChunkId>>, limits: &Limits) {
    let (mut left, mut share) = (limits.effort(), NODES);
    while left > 0 && !open.is_empty() {
        let mut at = 0;
        while at < open.len() && left > 0 {
            let core = open[at];
            let chains = core.len() as u64;
            let weight = node_weight(core.len());
            let limits = limits.nodes(share.min(left) / weight);
            let before = search.greedy.work;
            let found = tighten_and_complete(search, core, &limits);
            if search.is_over() {
                return;
            }
            let completed = (search.greedy.work - before) / WORK_PER_NODE as u64;
            let cost = found.nodes.saturating_mul(weight) + completed + chains;
            left = left.saturating_sub(cost);
            if found.is_too_large {
                open.truncate(at);
            } else if found.is_over {
                // A core that is packed at the bound is done.
                open.remove(at);
            } else {
                at += 1;
            }
        }
        share = share.saturating_mul(4);
    }
}

/// The number of nodes that one node counts for, with this many chains, because it examines all their sections.
pub fn node_weight(chains: usize) -> u64 {
    1 + (chains / MEDIUM) as u64
}

/// Some thousandths of a number of bytes, rounded down.
pub fn thousandths(bytes: Bytes, part: Bytes) -> Bytes {
    bytes / 1000 * part + bytes % 1000 * part / 1000
}
