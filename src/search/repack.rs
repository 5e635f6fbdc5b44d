//! Repacking all chains below lower and lower limits.

use crate::search::{
    Stage,
    control::descent::{Attempts, Packer},
    ejection::{Ejection, LEVELS},
    guided,
    packing::Packing,
    solution::Solution,
    state::instance::Instance,
    under_way::Search,
};
use crate::{Bytes, Limits, monitor::Monitor, plan::Layout, problem::ChunkId};

/// By default, ejection comes on top of the effort, with as many nodes as this many first attempts, up to a limit.
const ON_TOP: u64 = 25;

/// The most nodes on top of the effort.
pub const MAX_ON_TOP: u64 = 3_200_000;

/// Repacks all chains of a problem.
pub struct Repack {
    inst: Instance,
    ejection: Ejection,
}

impl Repack {
    /// Returns `None` if there are too many chains, or if the search is stopped.
    pub fn new(search: &mut Search<'_, '_>, roots: &[ChunkId]) -> Option<Self> {
        let Search { problem, monitor, .. } = search;
        let inst = Instance::new_until(problem, roots, &mut || monitor.must_stop())?;
        let inst = inst.without(monitor.without());
        let ejection = Ejection::new(&inst)?;
        Some(Self { inst, ejection })
    }

    pub fn has_staircases(&self) -> bool {
        !self.inst.staircases.is_empty()
    }

    /// The nodes that come on top of the effort.
    pub fn on_top(&self, limits: &Limits) -> u64 {
        on_top(self.ejection.share(), MAX_ON_TOP, limits)
    }

    /// If the pool is more than a percent above the bound, repacks all chains, and lets those that do not fit
    /// eject others, with this many nodes, and more on top. Returns the nodes that count against the effort.
    pub fn eject(&mut self, search: &mut Search<'_, '_>, nodes: u64, more: u64) -> u64 {
        let Self { inst, ejection } = self;
        let is_short = ejection.placing() > nodes.saturating_add(more);
        let is_on = search.monitor.has(Stage::Ejection);
        if !is_on || is_near(search.solution) || is_short || search.monitor.stopped() {
            return 0;
        }
        let bound = search.solution.lower_bound;
        let enough = if more > 0 { near(bound) } else { bound };
        let nodes = ejection.nodes().saturating_add(nodes).saturating_add(more);
        let attempts = Attempts { levels: &LEVELS, share: ejection.share(), nodes };
        let spent = improve(search, inst, |packing, monitor| {
            packing.descend(ejection, attempts, enough, monitor)
        });
        spent.saturating_sub(more)
    }

    /// Searches wider and wider cores with these many nodes, each guided by a packing of the one before; returns the
    /// nodes.
    pub fn guide(&self, search: &mut Search<'_, '_>, nodes: u64) -> u64 {
        improve(search, &self.inst, |packing, monitor| {
            packing.guide(&guided::LEVELS, nodes, monitor)
        })
    }
}

/// Improves the packing of all chains in some way, which returns its nodes.
fn improve(
    search: &mut Search<'_, '_>,
    inst: &Instance,
    run: impl FnOnce(&mut Packing<'_>, &mut Monitor<'_>) -> u64,
) -> u64 {
    let Search { problem, solution, monitor, .. } = search;
    let mut packing = Packing::new(inst, solution.lower_bound, solution.pool_size);
    let nodes = run(&mut packing, monitor);
    solution.nodes = monitor.add(0);
    if let Some(offsets) = packing.offsets.take() {
        let mut bases = vec![0; problem.len()];
        for (root, offset) in inst.roots.iter().zip(offsets) {
            bases[root.index()] = offset * inst.unit;
        }
        solution.improve(problem, Layout::from_roots(problem, |root| bases[root.index()]));
    }
    solution.lower_bound = solution.lower_bound.max(packing.bound().min(solution.pool_size));
    nodes
}

/// Returns whether the pool is within a percent of the bound.
pub fn is_near(solution: &Solution) -> bool {
    solution.pool_size <= near(solution.lower_bound)
}

/// A pool of this size is within a percent of a bound.
pub fn near(bound: Bytes) -> Bytes {
    bound.saturating_add(bound / 100)
}

/// The nodes of ejection that come on top of the default effort, with first attempts of this many nodes.
pub fn on_top(share: u64, most: u64, limits: &Limits) -> u64 {
    let nodes = share.saturating_mul(ON_TOP).min(most).saturating_mul(limits.times);
    if limits.is_default() { nodes } else { 0 }
}
