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
            ladder,
            threads::{self, Incumbent, Standing},
        },
        guided::Guided,
        state::instance::Instance,
    },
};

/// The blocks of a perfect packing have one in this many nodes of the effort.
const OF_BLOCKS: u64 = 64;

/// The best packing so far.
pub struct Packing<'a> {
    pub inst: &'a Instance,
    /// The bound and the height, in units.
    pub standing: Standing,
    /// The offsets, in units by body, if it was found here.
    pub offsets: Option<Vec<u64>>,
    /// The pool to report in bytes, if the instance is only a part of the problem.
    pub whole: Option<Bytes>,
}

impl<'a> Packing<'a> {
    /// Begins with a bound and a pool in bytes.
    pub fn new(inst: &'a Instance, bound: Bytes, pool: Bytes) -> Self {
        let best = pool.div_ceil(inst.unit * inst.align) * inst.align;
        let standing = Standing { bound: bound / inst.unit, best };
        Self { inst, standing, offsets: None, whole: None }
    }

    /// Returns whether no packing is smaller.
    pub fn is_proven(&self) -> bool {
        self.standing.bound >= self.standing.best
    }

    /// The bound in bytes.
    pub fn bound(&self) -> Bytes {
        self.standing.bound * self.inst.unit
    }

    /// The pool to report, in bytes.
    pub fn pool(&self) -> Bytes {
        self.whole.unwrap_or(self.standing.best * self.inst.unit)
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
        let Some(contraction) = Contraction::of(self.inst) else { return 0 };
        let blocks = contraction.instance(self.inst);
        debug!(target: "memplan::best", bodies = self.inst.bodies(), blocks = blocks.bodies(), "contracted");
        // Start as if a packing one alignment above the bound were known.
        let bound = self.standing.bound;
        let standing = Standing { bound, best: bound + self.inst.align };
        let mut packing = Packing { inst: &blocks, standing, offsets: None, whole: self.whole };
        let nodes = packing.climb((effort / OF_BLOCKS).max(1), 1, monitor);
        if let Some(offsets) = packing.offsets {
            self.standing.best = bound;
            self.offsets = Some(contraction.offsets(&offsets));
        }
        nodes
    }

    /// Packs all bodies below limits in the middle of the gap with this many nodes; returns the nodes.
    pub fn first_descent(&mut self, nodes: u64, monitor: &mut Monitor<'_>) -> u64 {
        if self.is_over(nodes, monitor) {
            return 0;
        }
        let Self { inst, standing: Standing { bound, best }, .. } = *self;
        let board = Incumbent::new(bound, best);
        let mut stop = |nodes, Standing { bound, best }: Standing| {
            monitor.stop(nodes, bound * inst.unit, best * inst.unit)
        };
        let nodes = ladder::descend(inst, nodes, &board, &mut stop);
        monitor.add(nodes);
        self.standing = board.standing();
        self.offsets = board.into_offsets();
        nodes
    }

    /// Searches one limit after the other with this many nodes; returns the nodes of the first thread.
    pub fn climb(&mut self, nodes: u64, threads: usize, monitor: &mut Monitor<'_>) -> u64 {
        if self.is_over(nodes, monitor) {
            return 0;
        }
        let Self { inst, standing: Standing { bound, best }, whole, .. } = *self;
        let board = Incumbent::new(bound, best);
        let mut stop = |nodes, _| {
            let Standing { bound, best } = board.standing();
            let pool = whole.unwrap_or(best * inst.unit);
            monitor.stop(nodes + board.worker_nodes(), bound * inst.unit, pool)
        };
        let nodes = threads::together(threads, &board, &mut stop, |thread, stop| {
            ladder::climb(inst, thread, nodes, &board, stop)
        });
        monitor.add(nodes + board.worker_nodes());
        self.standing = board.standing();
        self.offsets = board.into_offsets().or(self.offsets.take());
        nodes
    }

    /// Searches wider and wider cores with this many nodes, each guided by a packing of the one before; returns the
    /// nodes. The limits are 64ths of the gap.
    pub fn guide(&mut self, limits: &[u64], nodes: u64, monitor: &mut Monitor<'_>) -> u64 {
        if self.is_over(nodes, monitor) || !monitor.has(Stage::Guided) {
            return 0;
        }
        let Some(mut guided) = Guided::new(self.inst) else { return 0 };
        let attempts = Attempts { rungs: limits, share: nodes, nodes };
        let nodes = self.descend(&mut guided, attempts, 0, monitor);
        let Standing { bound, best } = &mut self.standing;
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
        let Self { inst, standing: Standing { bound, best }, .. } = *self;
        let before = packer.nodes();
        let mut stop = |nodes, best| {
            let pool = best * inst.unit;
            monitor.stop(nodes - before, bound * inst.unit, pool) || pool <= enough
        };
        let found = descend_from(bound, best, attempts, packer, &mut stop);
        let nodes = packer.nodes() - before;
        monitor.add(nodes);
        if let Some(offsets) = found {
            self.standing.best = ladder::height(inst, &offsets).max(bound);
            self.offsets = Some(offsets);
        }
        nodes
    }
}
