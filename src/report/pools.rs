//! A plan of several pools: a plan for each, and the table of them.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write};

use crate::{
    Bytes, Plan, PlannedChunk, PlannedLink,
    plan::{PlannedPart, PlannedPool, PlannedWindow, TensorPlace},
    report::{
        Size,
        alive::{Peak, bytes_by_chunk},
        count,
        fit::wrapped,
        printable,
    },
};

/// The chunks of each pool as a plan of their own, in the order of [`Plan::pools`], or the plan itself if it
/// has no pools. If there are several pools, the bound of each is the most bytes of its own chunks alive at
/// one step.
#[must_use]
pub fn by_pool(plan: &Plan) -> Vec<Plan> {
    if plan.pools.is_empty() {
        return vec![plan.clone()];
    }
    let empty = Plan {
        tensors: Vec::new(),
        chunks: Vec::new(),
        pools: Vec::new(),
        parts: Vec::new(),
        peak: Vec::new(),
        windows: Vec::new(),
        pinned: Vec::new(),
        reserved: Vec::new(),
        bodies: Vec::new(),
        ..plan.clone()
    };
    let own = |pool: &PlannedPool| Plan { pool_size: pool.size, ..empty.clone() };
    let mut own: Vec<Plan> = plan.pools.iter().map(own).collect();
    // By chunk: its place among the chunks of its pool.
    let mut places = Vec::with_capacity(plan.chunks.len());
    for chunk in &plan.chunks {
        let inside = own.get_mut(chunk.pool).map(|own| &mut own.chunks);
        places.push(inside.as_ref().map_or(0, |inside| inside.len()));
        if let Some(inside) = inside {
            inside.push(PlannedChunk { pool: 0, ..chunk.clone() });
        }
    }
    let place = |chunk: usize| Some((plan.chunks.get(chunk)?.pool, *places.get(chunk)?));
    for (pool, own) in own.iter_mut().enumerate() {
        for chunk in &mut own.chunks {
            chunk.overwrites = chunk.overwrites.and_then(|link| {
                let (_, chunk) = place(link.chunk).filter(|&(other, _)| other == pool)?;
                Some(PlannedLink { chunk, ..link })
            });
        }
    }
    for tensor in &plan.tensors {
        if let TensorPlace::Pool { chunk, offset } = tensor.place
            && let Some((pool, chunk)) = place(chunk)
            && let Some(own) = own.get_mut(pool)
        {
            let mut tensor = tensor.clone();
            tensor.place = TensorPlace::Pool { chunk, offset };
            own.tensors.push(tensor);
        }
    }
    for part in &plan.parts {
        if let (Some((pool, chunk)), Some((around, whole))) = (place(part.chunk), place(part.whole))
            && pool == around
            && let Some(own) = own.get_mut(pool)
        {
            own.parts.push(PlannedPart { chunk, whole, ..*part });
        }
    }
    for window in &plan.windows {
        if let Some((pool, chunk)) = place(window.chunk)
            && let Some(own) = own.get_mut(pool)
        {
            own.windows.push(PlannedWindow { chunk, ..*window });
        }
    }
    for &chunk in &plan.pinned {
        if let Some((pool, chunk)) = place(chunk)
            && let Some(own) = own.get_mut(pool)
        {
            own.pinned.push(chunk);
        }
    }
    for (pool, bytes) in &plan.reserved {
        if let Some(own) = own.get_mut(*pool) {
            own.reserved.push((0, bytes.clone()));
        }
    }
    match &mut own[..] {
        [only] => only.peak.clone_from(&plan.peak),
        all => all.iter_mut().for_each(|own| set_figures(own, !plan.peak.is_empty())),
    }
    own
}

/// Sets the figures of one of several pools; its peak is a list of chunks if there are several streams.
fn set_figures(own: &mut Plan, on_streams: bool) {
    (own.claimed_bound, own.proven_optimal) = (None, false);
    own.peak_step = 0;
    let peak = Peak::of(own);
    own.peak_step = peak.step;
    own.lower_bound = peak.bytes.min(own.pool_size);
    if on_streams {
        // Chunks that are alive at one sum of clocks are alive together.
        own.peak = bytes_by_chunk(&peak.pieces(own)).into_iter().map(|(chunk, _)| chunk).collect();
    }
    let sizes = own.chunks.iter().map(|chunk| own.end_of(chunk) - chunk.offset);
    own.naive_size = sizes.fold(0, u64::saturating_add);
    // Their workspace is a chunk of one of the pools.
    own.bodies.clear();
}

/// The plan with each buffer of a pool as a pool of its own, whose addresses count from the first byte of the buffer;
/// buffers without chunks are left out. In the plan itself, the addresses of a pool that is a row of buffers reach
/// beyond the size of the pool, which is the sum of the bytes that its buffers need.
#[must_use]
pub fn in_buffers(plan: &Plan) -> Cow<'_, Plan> {
    let buffer = |chunk: &PlannedChunk| {
        let largest = plan.pools.get(chunk.pool)?.largest.filter(|_| chunk.size > 0)?;
        chunk.offset.checked_div(largest)
    };
    // By pool: the highest byte of each buffer in use. A pool without buffers is one.
    let mut tops: Vec<BTreeMap<u64, Bytes>> = vec![BTreeMap::new(); plan.pools.len()];
    for chunk in &plan.chunks {
        if let (Some(at), Some(largest)) =
            (buffer(chunk), plan.pools.get(chunk.pool).and_then(|pool| pool.largest))
        {
            let top = tops[chunk.pool].entry(at).or_default();
            *top = (*top).max(plan.end_of(chunk).saturating_sub(at * largest));
        }
    }
    if tops.iter().all(|tops| tops.keys().all(|&at| at == 0)) {
        return Cow::Borrowed(plan);
    }
    let mut split = plan.clone();
    split.pools.clear();
    // By pool: the place of its first buffer, and of each buffer in use.
    let mut firsts = Vec::with_capacity(tops.len());
    let mut places: Vec<BTreeMap<u64, usize>> = Vec::with_capacity(tops.len());
    for (pool, tops) in plan.pools.iter().zip(&tops) {
        let first = split.pools.len();
        firsts.push(first);
        places.push(tops.keys().copied().zip(first..).collect());
        if tops.is_empty() {
            split.pools.push(pool.clone());
        }
        let sizes = buffer_sizes(plan, pool, tops);
        split.pools.extend(tops.keys().zip(sizes).map(|(at, size)| PlannedPool {
            name: format!("{}, buffer {at}", pool.name).into(),
            size,
            capacity: pool.largest,
            largest: None,
            ..pool.clone()
        }));
    }
    for (chunk, old) in split.chunks.iter_mut().zip(&plan.chunks) {
        let Some(&first) = firsts.get(old.pool) else { continue };
        let place = buffer(old).and_then(|at| places[old.pool].get(&at).copied());
        chunk.pool = place.unwrap_or(first);
        if let Some(largest) = plan.pools[old.pool].largest.filter(|&largest| largest > 0) {
            chunk.offset %= largest;
        }
    }
    for (pool, _) in &mut split.reserved {
        *pool = firsts.get(*pool).copied().unwrap_or(*pool);
    }
    Cow::Owned(split)
}

/// The sizes of the buffers of a pool: the end of each, rounded up to the alignment of the pool. So their sum is the
/// size of the pool.
fn buffer_sizes(plan: &Plan, pool: &PlannedPool, tops: &BTreeMap<u64, Bytes>) -> Vec<Bytes> {
    let largest = pool.largest.unwrap_or(Bytes::MAX);
    let sizes = |unit: Bytes| -> Vec<Bytes> {
        let size = |&top: &Bytes| {
            top.checked_next_multiple_of(unit).unwrap_or(Bytes::MAX).min(largest.max(top))
        };
        tops.values().map(size).collect()
    };
    let sum = |unit| sizes(unit).into_iter().fold(0, Bytes::saturating_add);
    let units = (0..Bytes::BITS).map(|bit| 1 << bit).filter(|&unit| unit >= plan.alignment);
    sizes(units.into_iter().find(|&unit| sum(unit) == pool.size).unwrap_or(1))
}

/// The title of a pool's map.
#[must_use]
pub fn pool_title(plan: &Plan, pool: usize) -> String {
    if plan.pools.len() < 2 {
        return String::new();
    }
    plan.pools.get(pool).map_or_else(String::new, |pool| format!("pool {}", printable(&pool.name)))
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
