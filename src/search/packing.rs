//! A packing of an instance, which several engines improve one after the other.

use crate::{
    Bytes,
    monitor::Monitor,
    problem::ChunkId,
    search::{
        control::{
            descent::{Attempts, Packer, descend},
            meter::{Meter, watch},
        },
        incumbent::{Incumbent, Snapshot},
        solution::near,
        state::instance::Instance,
    },
};

/// The best packing so far.
pub struct Packing<'a> {
    inst: &'a Instance,
    /// The bound and the height, in units.
    snapshot: Snapshot,
    offsets: Option<Vec<u64>>,
    /// The bound and the pool to report instead of its own, in bytes.
    reported: (Option<Bytes>, Option<Bytes>),
    threads: usize,
}

impl<'a> Packing<'a> {
    /// Creates a packing of which only the bound and the pool size, in bytes, are known.
    pub fn new(inst: &'a Instance, bound: Bytes, pool: Bytes) -> Self {
        let best = pool.div_ceil(inst.unit * inst.align) * inst.align;
        Self::between(inst, bound / inst.unit, best)
    }

    /// The same with the bound and the height in the unit of limits.
    pub fn between(inst: &'a Instance, bound: u64, best: u64) -> Self {
        let snapshot = Snapshot { bound, best };
        Self { inst, snapshot, offsets: None, reported: (None, None), threads: 1 }
    }

    /// The same for engines that can use several threads.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The same for a part of a problem, or for a limit: reports the pool of the whole problem, and its bound if given,
    /// instead of its own. Both are in bytes.
    pub fn reporting(self, bound: Option<Bytes>, pool: Bytes) -> Self {
        Self { reported: (bound, Some(pool)), ..self }
    }

    /// Creates a packing of another instance with the same unit, as if a packing one alignment above the bound were
    /// known, so that only packings at the bound improve it.
    pub fn at_bound<'b>(&self, inst: &'b Instance) -> Packing<'b> {
        let bound = self.snapshot.bound;
        let snapshot = Snapshot { bound, best: bound + inst.align };
        Packing { inst, snapshot, offsets: None, ..*self }
    }

    pub fn inst(&self) -> &'a Instance {
        self.inst
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The offsets, in units by body, if the packing was found here.
    pub fn offsets(&self) -> Option<&[u64]> {
        self.offsets.as_deref()
    }

    /// The offsets in bytes by root, if the packing was found here.
    pub fn bases(&self) -> Option<Vec<(ChunkId, Bytes)>> {
        let bases = self.offsets()?.iter().map(|offset| offset * self.inst.unit);
        Some(self.inst.roots.iter().copied().zip(bases).collect())
    }

    /// Returns whether no packing is smaller.
    pub fn is_proven(&self) -> bool {
        self.snapshot.bound >= self.snapshot.best
    }

    /// Returns whether the pool is within a percent of the bound.
    pub fn is_near(&self) -> bool {
        self.snapshot.best * self.inst.unit <= near(self.bound())
    }

    /// The bound in bytes.
    pub fn bound(&self) -> Bytes {
        self.snapshot.bound * self.inst.unit
    }

    /// The pool to report, in bytes.
    pub fn pool(&self) -> Bytes {
        self.reported.1.unwrap_or(self.snapshot.best * self.inst.unit)
    }

    /// Takes a lower packing.
    pub fn improve(&mut self, offsets: Vec<u64>) {
        let Snapshot { bound, best } = self.snapshot;
        let height = self.inst.height_of(&offsets).max(bound);
        debug_assert!(height < best, "{height}, not below {best}");
        self.snapshot.best = height;
        self.offsets = Some(offsets);
    }

    /// Takes a better bound, in units.
    pub fn raise_bound(&mut self, bound: u64) {
        let Snapshot { bound: before, best } = self.snapshot;
        self.snapshot.bound = bound.clamp(before, best);
    }

    /// Runs a search with at most this many nodes, which improves the incumbent and ends as soon as the meter is over;
    /// returns the nodes of the first thread.
    pub fn search(
        &mut self,
        most: u64,
        monitor: &mut Monitor<'_>,
        search: impl FnOnce(&Incumbent, &mut Meter<'_>) -> u64,
    ) -> u64 {
        let Snapshot { bound, best } = self.snapshot;
        let incumbent = Incumbent::new(bound, best);
        let nodes = {
            let mut watch = watch(monitor, &incumbent, self.inst.unit, self.reported);
            search(&incumbent, &mut Meter::new(&mut watch).part(0, most))
        };
        monitor.add(nodes + incumbent.worker_nodes());
        self.snapshot = incumbent.snapshot();
        self.offsets = incumbent.into_offsets().or(self.offsets.take());
        nodes
    }

    /// Packs all bodies below lower and lower limits with at most this many nodes; returns the nodes.
    pub fn descend(
        &mut self,
        packer: &mut impl Packer,
        attempts: Attempts<'_>,
        most: u64,
        monitor: &mut Monitor<'_>,
    ) -> u64 {
        self.search(most, monitor, |incumbent, meter| descend(incumbent, attempts, packer, meter))
    }
}
