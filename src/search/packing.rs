//! A packing of an instance, which several searches improve one after the other.

use tracing::debug;

use crate::{
    Bytes,
    monitor::Monitor,
    search::{
        Stage,
        contraction::Contraction,
        control::{
            descent::{Attempts, Packer, descend_from},
            limit_schedule,
            threads::{self, Incumbent, Snapshot},
        },
        guided::Guided,
        state::instance::Instance,
    },
};

/// The blocks of a perfect packing have one in this many nodes of the effort.
const OF_BLOCKS: u64 = 16;

/// The most of these nodes. More seldom pack blocks that fewer do not.
const MAX_OF_BLOCKS: u64 = 1_000_000;

/// The best packing so far.
pub struct Packing<'a> {
    pub inst: &'a Instance,
    /// The bound and the height, in units.
    pub snapshot: Snapshot,
    /// The offsets, in units by body, if it was found here.
    pub offsets: Option<Vec<u64>>,
    /// The pool to report in bytes, if the instance is only a part of the problem.
    pub whole: Option<Bytes>,
}

impl<'a> Packing<'a> {
    /// Begins with a bound and a pool in bytes.
    pub fn new(inst: &'a Instance, bound: Bytes, pool: Bytes) -> Self {
        let best = pool.div_ceil(inst.unit * inst.align) * inst.align;
        let snapshot = Snapshot { bound: bound / inst.unit, best };
        Self { inst, snapshot, offsets: None, whole: None }
    }

    /// Returns whether no packing is smaller.
    pub fn is_proven(&self) -> bool {
        self.snapshot.bound >= self.snapshot.best
    }

    /// The bound in bytes.
    pub fn bound(&self) -> Bytes {
        self.snapshot.bound * self.inst.unit
    }

    /// The pool to report, in bytes.
    pub fn pool(&self) -> Bytes {
        self.whole.unwrap_or(self.snapshot.best * self.inst.unit)
    }

    fn is_over(&self, nodes: u64, monitor: &mut Monitor<'_>) -> bool {
        nodes == 0 || self.is_proven() || monitor.must_stop()
    }

    /// Packs the blocks that a perfect packing contracts to at the bound, with a small part of the effort; returns the
    /// nodes.
    pub fn contract(&mut self, effort: u64, monitor: &mut Monitor<'_>) -> u64 {
        if self.is_over(effort, monitor) || !monitor.has(Stage::Contraction) {
            return 0;
        }
        let Some(contraction) = Contraction::of(self.inst, monitor) else { return 0 };
        let blocks = contraction.instance(self.inst);
        debug!(target: "memplan::best", bodies = self.inst.bodies(), blocks = blocks.bodies(), "contracted");
        // Start as if a packing one alignment above the bound were known.
        let bound = self.snapshot.bound;
        let snapshot = Snapshot { bound, best: bound + self.inst.align };
        let mut packing = Packing { inst: &blocks, snapshot, offsets: None, whole: self.whole };
        let nodes = (effort / OF_BLOCKS).clamp(1, MAX_OF_BLOCKS);
        let nodes = packing.tighten(nodes, 1, monitor);
        if let Some(offsets) = packing.offsets {
            self.snapshot.best = bound;
            self.offsets = Some(contraction.offsets(&offsets));
        }
        nodes
    }

    /// Packs all bodies below limits in the middle of the gap with this many nodes; returns the nodes.
    pub fn first_descent(&mut self, nodes: u64, monitor: &mut Monitor<'_>) -> u64 {
        if self.is_over(nodes, monitor) {
            return 0;
        }
        let Self { inst, snapshot: Snapshot { bound, best }, .. } = *self;
        let incumbent = Incumbent::new(bound, best);
        let mut stop = |nodes, Snapshot { bound, best }: Snapshot| {
            monitor.stop(nodes, bound * inst.unit, best * inst.unit)
        };
        let nodes = limit_schedule::descend(inst, nodes, &incumbent, &mut stop);
        monitor.add(nodes);
        self.snapshot = incumbent.snapshot();
        self.offsets = incumbent.into_offsets();
        nodes
    }

    /// Searches one limit after the other with this many nodes; returns the nodes of the first thread.
    pub fn tighten(&mut self, nodes: u64, threads: usize, monitor: &mut Monitor<'_>) -> u64 {
        if self.is_over(nodes, monitor) {
            return 0;
        }
        let Self { inst, snapshot: Snapshot { bound, best }, whole, .. } = *self;
        let incumbent = Incumbent::new(bound, best);
        let mut stop = |nodes, _| {
            let Snapshot { bound, best } = incumbent.snapshot();
            let pool = whole.unwrap_or(best * inst.unit);
            monitor.stop(nodes + incumbent.worker_nodes(), bound * inst.unit, pool)
        };
        let nodes = threads::together(threads, &incumbent, &mut stop, |thread, stop| {
            limit_schedule::tighten(inst, thread, nodes, &incumbent, stop)
        });
        monitor.add(nodes + incumbent.worker_nodes());
        self.snapshot = incumbent.snapshot();
        self.offsets = incumbent.into_offsets().or(self.offsets.take());
        nodes
    }

    /// Searches wider and wider cores with this many nodes, each guided by a packing of the one before; returns the
    /// nodes. The limits are 64ths of the gap.
    pub fn guide(&mut self, limits: &[u64], nodes: u64, monitor: &mut Monitor<'_>) -> u64 {
        if self.is_over(nodes, monitor) || !monitor.has(Stage::Guided) {
            return 0;
        }
        let Some(mut guided) = Guided::new(self.inst) else { return 0 };
        let attempts = Attempts { levels: limits, share: nodes, nodes };
        let nodes = self.descend(&mut guided, attempts, 0, monitor);
        let Snapshot { bound, best } = &mut self.snapshot;
        *bound = guided.bound.clamp(*bound, *best);
        nodes
    }

    /// Packs all bodies below lower and lower limits, until the pool has this many bytes; returns the nodes.
    pub fn descend(
        &mut self,
        packer: &mut impl Packer,
        attempts: Attempts<'_>,
        enough: Bytes,
        monitor: &mut Monitor<'_>,
    ) -> u64 {
        let Self { inst, snapshot: Snapshot { bound, best }, .. } = *self;
        let before = packer.nodes();
        let mut stop = |nodes, best| {
            let pool = best * inst.unit;
            monitor.stop(nodes - before, bound * inst.unit, pool) || pool <= enough
        };
        let found = descend_from(bound, best, attempts, packer, &mut stop);
        let nodes = packer.nodes() - before;
        monitor.add(nodes);
        if let Some(offsets) = found {
            self.snapshot.best = limit_schedule::height(inst, &offsets).max(bound);
            self.offsets = Some(offsets);
        }
        nodes
    }
}
