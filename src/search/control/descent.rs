//! The descent: packs all bodies below lower and lower limits.

use crate::search::effort::UNIT;
use crate::search::sizes::PAUSE;

/// Packs all bodies of an instance below a limit, without proving anything.
pub trait Packer {
    /// The number of nodes so far; one takes about as long as a node of the search tree.
    fn nodes(&self) -> u64;

    /// Packs all bodies below a limit, perhaps beginning with the last packing. Returns false if the nodes of the
    /// attempt are spent, or if `stop`, called with the nodes so far, returns true.
    fn pack(&mut self, attempt: Attempt, stop: &mut impl FnMut(u64) -> bool) -> bool;

    /// No attempt below this height has a chance.
    fn floor(&self) -> u64;

    /// The height of the last packing, a multiple of the alignment.
    fn height(&self) -> u64;

    /// The offsets, in units by body, of the last packing.
    fn offsets(&self) -> Vec<u64>;
}

/// One attempt to pack all bodies.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Nothing may end higher.
    pub limit: u64,
    /// Each seed makes other choices.
    pub seed: u64,
    /// The most nodes it may take.
    pub nodes: u64,
}

/// The attempts of a descent.
#[derive(Clone, Copy, Debug)]
pub struct Attempts<'a> {
    /// The limits to try, in 64ths of the gap between the bound and the best packing.
    pub levels: &'a [u64],
    /// The nodes of the first attempts; later ones get more.
    pub share: u64,
    /// The most nodes of the packer.
    pub nodes: u64,
}

/// Packs all bodies lower and lower than `best`, until the nodes are spent, or until `stop` returns true;
/// returns the offsets of the last packing. `stop` is called with the nodes so far and the best height.
pub fn descend_from(
    bound: u64,
    mut best: u64,
    attempts: Attempts<'_>,
    packer: &mut impl Packer,
    stop: &mut impl FnMut(u64, u64) -> bool,
) -> Option<Vec<u64>> {
    let Attempts { levels, share, nodes } = attempts;
    let mut found = None;
    let mut share = share.max(UNIT);
    let (mut level, mut seed) = (0, 0);
    let mut asked = packer.nodes();
    let mut stopped = stop(asked, best);
    while !stopped && bound < best && packer.nodes() < nodes {
        let part = levels.get(level).copied().unwrap_or(0);
        let floor = packer.floor().max(bound);
        if floor >= best {
            break;
        }
        let gap = u128::from(best - floor) * u128::from(part) / 64;
        let limit = floor + u64::try_from(gap).unwrap_or(0);
        seed += 1;
        let attempt = Attempt { limit, seed, nodes: share.min(nodes - packer.nodes()) };
        let is_packed = packer.pack(attempt, &mut |nodes| {
            if nodes >= asked + PAUSE {
                asked = nodes;
                stopped = stop(nodes, best);
            }
            stopped
        });
        // An attempt without a chance ends before it asks.
        stopped = stopped || stop(packer.nodes(), best);
        if is_packed {
            best = packer.height().max(bound);
            found = Some(packer.offsets());
            level = 0;
        } else if level + 1 < levels.len() {
            level += 1;
        } else {
            level = 0;
            share = share.saturating_mul(2);
        }
    }
    found
}
