//! Offsets (the book, Offsets and front space): every chain sinks until it rests on its front
//! space.
//!
//! `base(root)` is the least aligned offset at which every member `m` of the chain, at offset
//! `o(m)` from the root, lies above the ends of all chunks in its front space. The definition is
//! recursive; the call stack here is a list, so that a tower of a million chunks cannot overflow
//! it.

use crate::{
    Bytes,
    baselines::{
        chunk_order::{ChunkOrder, Rank},
        pushdown::simulate::Above,
        replay::CHUNK,
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// Computes the offset of every chunk.
pub(super) fn resolve(
    order: &ChunkOrder<'_>,
    front_space: &[Above],
    budget: &mut Budget<'_>,
) -> Result<Layout, Stop> {
    let fronts = Fronts::by_root(order, front_space);
    let mut bases: Vec<Base> = vec![Base { low: 0, state: State::Untouched }; order.len()];
    let mut calls: Vec<(Rank, usize)> = Vec::new();
    for root in order.ranks().filter(|&rank| order.link_of(rank).is_none()) {
        budget.spend(CHUNK)?;
        calls.push((root, fronts.first(root)));
        while let Some((root, next)) = calls.pop() {
            if bases[root.index()].state == State::Known {
                continue;
            }
            bases[root.index()].state = State::Open;
            let Some(Above { upper, lower }) = fronts.get(root, next) else {
                let base = &mut bases[root.index()];
                *base = Base { low: order.align_up(base.low), state: State::Known };
                continue;
            };
            let (lower_root, lower_offset) = order.place(lower);
            let below = bases[lower_root.index()];
            if below.state == State::Known {
                let end = below.low + lower_offset + order.get(lower).size;
                let (_, offset) = order.place(upper);
                let base = &mut bases[root.index()];
                base.low = base.low.max(end.saturating_sub(offset));
                calls.push((root, next + 1));
            } else {
                debug_assert!(below.state == State::Untouched, "chains lie above each other");
                calls.push((root, next));
                calls.push((lower_root, fronts.first(lower_root)));
            }
        }
    }
    Ok(order.layout(|root| bases[root.index()].low))
}

/// The state of a root's offset.
#[derive(Clone, Copy)]
struct Base {
    /// The offset if `Known`, otherwise the highest demand of any front space seen so far.
    low: Bytes,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Untouched,
    /// Waiting for the chains below it.
    Open,
    Known,
}

/// The front space grouped by the root of the upper chunk.
struct Fronts {
    /// The start of each root's entries: they are `entries[starts[root]..starts[root + 1]]`.
    starts: Vec<usize>,
    entries: Vec<Above>,
}

impl Fronts {
    /// Groups the entries by a counting sort.
    fn by_root(order: &ChunkOrder<'_>, front_space: &[Above]) -> Self {
        let root = |above: &Above| order.place(above.upper).0.index();
        let mut starts = vec![0; order.len() + 1];
        for above in front_space {
            starts[root(above) + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![Above { upper: Rank(0), lower: Rank(0) }; front_space.len()];
        for above in front_space {
            let slot = &mut next[root(above)];
            entries[*slot] = *above;
            *slot += 1;
        }
        Self { starts, entries }
    }

    fn first(&self, root: Rank) -> usize {
        self.starts[root.index()]
    }

    fn get(&self, root: Rank, at: usize) -> Option<Above> {
        (at < self.starts[root.index() + 1]).then(|| self.entries[at])
    }
}
