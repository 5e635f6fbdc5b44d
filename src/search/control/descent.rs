//! The descent: packs all bodies below lower and lower limits.

use crate::search::{
    control::meter::Meter,
    effort::UNIT,
    incumbent::{Incumbent, Snapshot},
};

/// Packs all bodies of an instance below a limit, without proving anything.
pub trait Packer {
    /// The number of nodes so far; one takes about as long as a node of the search tree.
    fn nodes(&self) -> u64;

    /// Packs all bodies below a limit, perhaps beginning with the last packing. Returns the height, a multiple of the
    /// alignment, and the offsets, in units by body; `None` if the meter ends it first.
    fn pack(&mut self, attempt: Attempt, meter: &mut Meter<'_>) -> Option<(u64, Vec<u64>)>;

    /// The same without a caller, with at most this many nodes.
    #[cfg(test)]
    fn pack_alone(&mut self, limit: u64, seed: u64, nodes: u64) -> Option<(u64, Vec<u64>)> {
        let last = self.nodes().saturating_add(nodes);
        self.pack(Attempt { limit, seed }, &mut Meter::unwatched().part(0, last))
    }

    /// A height below which no attempt can succeed.
    fn floor(&self) -> u64;
}

/// One attempt to pack all bodies.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Nothing may end higher.
    pub limit: u64,
    /// Each seed makes other choices.
    pub seed: u64,
}

/// The attempts of a descent.
#[derive(Clone, Copy, Debug)]
pub struct Attempts<'a> {
    /// The limits to try, in 64ths of the gap between the bound and the best packing.
    pub levels: &'a [u64],
    /// The nodes of the first attempts; later ones get more.
    pub share: u64,
    /// No packing needs to be lower.
    pub enough: u64,
}

/// Packs all bodies below lower and lower limits, and records each packing on the incumbent. Returns the nodes.
pub fn descend(
    incumbent: &Incumbent,
    attempts: Attempts<'_>,
    packer: &mut impl Packer,
    meter: &mut Meter<'_>,
) -> u64 {
    let Attempts { levels, share, enough } = attempts;
    let Snapshot { bound, mut best } = incumbent.snapshot();
    let before = packer.nodes();
    let meter = &mut meter.since(before);
    let mut share = share.max(UNIT);
    let (mut level, mut seed) = (0, 0);
    while best > bound.max(enough) && !meter.is_over(packer.nodes()) {
        let part = levels.get(level).copied().unwrap_or(0);
        let floor = packer.floor().max(bound);
        if floor >= best {
            break;
        }
        let gap = u128::from(best - floor) * u128::from(part) / 64;
        let limit = floor + u64::try_from(gap).unwrap_or(0);
        seed += 1;
        let last = packer.nodes().saturating_add(share);
        let packed = packer.pack(Attempt { limit, seed }, &mut meter.part(0, last));
        if let Some((height, offsets)) = packed {
            best = height.max(bound);
            incumbent.packed(best, &offsets);
            level = 0;
        } else if level + 1 < levels.len() {
            level += 1;
        } else {
            level = 0;
            share = share.saturating_mul(2);
        }
    }
    packer.nodes() - before
}
