//! The ladder: the smallest limit under which everything fits.
//!
//! The lower bound comes first: tight limits are often easier than loose ones, for waste is refuted
//! at once, and a packing at the bound is its own proof. Then limits a little above it, and more, until
//! something packs, and lower again. Every sweep has twice the rounds of the one before. A refuted
//! limit raises the bound.

use super::{Report, instance::Instance, rounds::Rounds, tree::End};

/// The limits of a sweep, in 64ths of the way from the bound to the best packing.
const RUNGS: [u128; 5] = [0, 1, 8, 32, 52];

/// What the ladder found, in units.
pub(super) struct Climb {
    /// No pool is smaller.
    pub bound: u64,
    /// The size of the best packing known.
    pub best: u64,
    /// Its offsets, by body, if it is better than what was known before.
    pub offsets: Option<Vec<u64>>,
    pub nodes: u64,
}

/// Searches from a bound and the size of a packing that is known, both multiples of the alignment.
pub(super) fn climb(
    inst: &Instance,
    (bound, best): (u64, u64),
    nodes: u64,
    report: &mut Report<'_>,
) -> Climb {
    let mut found = Climb { bound, best, offsets: None, nodes: 0 };
    let mut rounds = Rounds::new(inst);
    let mut share = 6;
    let mut stopped = false;
    let mut rung = 0;
    while !stopped && found.bound < found.best && rounds.nodes() < nodes {
        let gap = u128::from(found.best - found.bound) * RUNGS[rung] / 64;
        let step = u64::try_from(gap).unwrap_or(0) / inst.align * inst.align;
        let limit = found.bound + step;
        let (bound, best) = (found.bound * inst.unit, found.best * inst.unit);
        let rounds_now = if rung == 0 { 2 * share } else { share };
        let end = rounds.decide(limit, rounds_now, nodes, &mut |nodes| {
            stopped = stopped || report.stop(nodes, bound, best);
            stopped
        });
        match end {
            // The same rung is lower now.
            End::Packed => {
                found.offsets = Some(rounds.offsets().to_vec());
                found.best = height(inst, rounds.offsets()).max(found.bound);
            }
            End::Refuted => found.bound = limit + inst.align,
            End::Spent if rung + 1 < RUNGS.len() => rung += 1,
            End::Spent => {
                rung = 0;
                share = share.saturating_mul(2);
            }
        }
    }
    found.nodes = rounds.nodes();
    found
}

/// The height of a packing, a multiple of the alignment.
fn height(inst: &Instance, offsets: &[u64]) -> u64 {
    let (items, odds) = offsets.split_at(inst.items.len());
    let items = inst.items.iter().zip(items).map(|(item, offset)| offset + item.size);
    let odds =
        inst.odds.iter().zip(odds).map(|(odd, offset)| {
            offset + odd.parts.iter().map(|part| part.high).max().unwrap_or(0)
        });
    items.chain(odds).max().unwrap_or(0).next_multiple_of(inst.align)
}
