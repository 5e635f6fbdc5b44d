//! A plan of several pools: a plan for each, and the table of them.

use std::fmt::Write;

use crate::{
    Plan, PlannedChunk, PlannedLink, Step,
    plan::{PlannedReserve, PlannedWindow, TensorPlace},
    report::{
        Size, count,
        fit::wrapped,
        printable,
        profile::{live_bytes, placed_at_peak},
    },
};

/// The chunks of each pool as a plan of their own, in the order of [`Plan::pools`], or the plan itself if it
/// has no pools. If there are several pools, the bound of each is the most bytes of its own chunks alive at
/// one step.
#[must_use]
pub fn by_pool(plan: &Plan) -> Vec<Plan> {
    match plan.pools.len() {
        0 => vec![plan.clone()],
        pools => (0..pools).map(|pool| of_pool(plan, pool)).collect(),
    }
}

/// The title of a pool's map.
#[must_use]
pub fn pool_title(plan: &Plan, pool: usize) -> String {
    if plan.pools.len() < 2 {
        return String::new();
    }
    plan.pools.get(pool).map_or_else(String::new, |pool| format!("pool {}", printable(&pool.name)))
}

/// The steps until which the chunks are drawn. A part is drawn until its whole begins, which has the same
/// bytes from then on.
pub(super) fn drawn_ends(plan: &Plan) -> impl Iterator<Item = Step> {
    let mut ends: Vec<Step> = plan.chunks.iter().map(|chunk| chunk.end).collect();
    for part in &plan.parts {
        if let (Some(chunk), Some(whole)) =
            (plan.chunks.get(part.chunk), plan.chunks.get(part.whole))
        {
            let end = whole.begin.max(chunk.begin.saturating_add(1));
            ends[part.chunk] = ends[part.chunk].min(end);
        }
    }
    ends.into_iter()
}

fn of_pool(plan: &Plan, pool: usize) -> Plan {
    // The new place of each chunk.
    let mut places = vec![None; plan.chunks.len()];
    let mut chunks: Vec<PlannedChunk> = Vec::new();
    for (at, chunk) in plan.chunks.iter().enumerate().filter(|(_, chunk)| chunk.pool == pool) {
        places[at] = Some(chunks.len());
        chunks.push(PlannedChunk { pool: 0, ..chunk.clone() });
    }
    let place = |chunk: usize| places.get(chunk).copied().flatten();
    for (at, end) in drawn_ends(plan).enumerate() {
        if let Some(chunk) = place(at) {
            chunks[chunk].end = end;
        }
    }
    for chunk in &mut chunks {
        let link = chunk
            .overwrites
            .and_then(|link| Some(PlannedLink { chunk: place(link.chunk)?, ..link }));
        chunk.overwrites = link;
    }
    let tensors = plan.tensors.iter().filter_map(|tensor| match tensor.place {
        TensorPlace::Pool { chunk, offset } => {
            let mut tensor = tensor.clone();
            tensor.place = TensorPlace::Pool { chunk: place(chunk)?, offset };
            Some(tensor)
        }
        TensorPlace::Supplied { .. } | TensorPlace::Nowhere => None,
    });
    let windows = plan.windows.iter();
    let windows =
        windows.filter_map(|window| Some(PlannedWindow { chunk: place(window.chunk)?, ..*window }));
    let reserved = plan.reserved.iter().filter(|reserve| reserve.pool == pool);
    let is_only = plan.pools.len() == 1;
    let mut own = Plan {
        tensors: tensors.collect(),
        chunks,
        pool_size: plan.pools[pool].size,
        pools: Vec::new(),
        parts: Vec::new(),
        peak: Vec::new(),
        windows: windows.collect(),
        pinned: plan.pinned.iter().filter_map(|&chunk| place(chunk)).collect(),
        reserved: reserved.map(|reserve| PlannedReserve { pool: 0, ..*reserve }).collect(),
        bodies: Vec::new(),
        ..plan.clone()
    };
    if is_only {
        own.peak = plan.peak.iter().filter_map(|&chunk| place(chunk)).collect();
        return own;
    }
    (own.claimed_bound, own.proven_optimal) = (None, false);
    let mut live = live_bytes(&own);
    // The first of the largest.
    live.reverse();
    let (step, alive) = live.into_iter().max_by_key(|&(_, bytes)| bytes).unwrap_or_default();
    own.peak_step = step;
    own.lower_bound = alive.min(own.pool_size);
    if !plan.peak.is_empty() {
        // Chunks that are alive at one sum of clocks are alive together.
        own.peak = placed_at_peak(&own).map(|(chunk, _)| chunk).collect();
    }
    let sizes = own.chunks.iter().map(|chunk| own.end_of(chunk) - chunk.offset);
    own.naive_size = sizes.fold(0, u64::saturating_add);
    own
}

/// The pools of a plan in a table, and their traffic.
pub(super) fn table(plan: &Plan) -> String {
    let name = |name: &str| format!("{:<16}", crate::report::short(name));
    let capacity = |capacity: Option<u64>| match capacity {
        Some(bytes) => format!("of {:#}", Size(bytes)),
        None => String::new(),
    };
    let mut text = String::new();
    for (at, pool) in plan.pools.iter().enumerate() {
        let inside = plan.chunks.iter().filter(|chunk| chunk.pool == at && chunk.size > 0);
        let cost = match pool.cost {
            0 => String::new(),
            cost => format!(", cost {cost}"),
        };
        let row = format!(
            "{}{:>12} {:<14}{}{cost}",
            name(&pool.name),
            format!("{:#}", Size(pool.size)),
            capacity(pool.capacity),
            count(inside.count() as u64, "chunk"),
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    if plan.traffic > 0 {
        let words = format!("traffic times cost: {}", plan.traffic);
        text.push_str(&wrapped(&words, 2));
    }
    text
}
