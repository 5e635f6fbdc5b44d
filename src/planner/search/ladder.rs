//! The ladder: the smallest limit under which everything fits.
//!
//! The lower bound comes first: tight limits are often easier than loose ones, for waste is refuted
//! at once, and a packing at the bound is its own proof. Then limits between the bound and the best
//! packing are bisected, each with few nodes; what is not known counts as too small for now. Every
//! sweep has four times the nodes of the one before. A refuted limit raises the bound.

use super::{Report, instance::Instance, rounds::Rounds, tree::End};

/// The nodes of each limit in the first sweep.
const FIRST: u64 = 2000;

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
    let mut share = FIRST;
    let mut stopped = false;
    while !stopped && found.bound < found.best && rounds.nodes() < nodes {
        let mut low = found.bound;
        let mut limit = low;
        while low < found.best && rounds.nodes() < nodes {
            let budget = share.min(nodes - rounds.nodes());
            let (bound, best) = (found.bound * inst.unit, found.best * inst.unit);
            let end = rounds.decide(limit, budget, &mut |nodes| {
                stopped = stopped || report.stop(nodes, bound, best);
                stopped
            });
            match end {
                End::Packed => {
                    found.offsets = Some(rounds.offsets().to_vec());
                    found.best = height(inst, rounds.offsets()).max(found.bound);
                }
                End::Refuted => {
                    found.bound = limit + inst.align;
                    low = found.bound;
                }
                End::Spent if stopped => break,
                End::Spent => low = limit + inst.align,
            }
            let middle = low + (found.best.saturating_sub(low)) / 2;
            limit = middle / inst.align * inst.align;
        }
        share = share.saturating_mul(4);
    }
    found.nodes = rounds.nodes();
    found
}

/// The height of a packing, a multiple of the alignment.
fn height(inst: &Instance, offsets: &[u64]) -> u64 {
    let (items, odds) = offsets.split_at(inst.items.len());
    let items = inst.items.iter().zip(items).map(|(item, offset)| offset + item.size);
    let odds = inst.odds.iter().zip(odds).map(|(odd, offset)| {
        offset + odd.parts.iter().map(|part| part.high).max().unwrap_or(0)
    });
    items.chain(odds).max().unwrap_or(0).next_multiple_of(inst.align)
}
