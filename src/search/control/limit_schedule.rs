//! The schedule of limits: the smallest limit under which everything fits.
//!
//! The lower bound comes first: tight limits are often easier than loose ones, because waste is refuted at
//! once, and a packing at the bound is its own proof. Higher limits follow until everything fits, then lower
//! ones again. Each sweep over the limits has twice the rounds of the one before. A refuted limit raises the
//! bound, and the next limit is further above it, so that limits are not refuted byte by byte. Several
//! threads have schedules of their own and share their packings and bounds.

use crate::{
    monitor::Monitor,
    search::{
        control::{meter::Meter, restarts::Restarts, threads},
        effort::{PATIENCE, Verdict},
        engine::{Engine, Share},
        incumbent::{Incumbent, Snapshot},
        packing::Packing,
        state::instance::Instance,
    },
};

/// The limits of a sweep, in 64ths of the gap between the bound and the best packing.
const LEVELS: [u128; 5] = [0, 1, 8, 32, 52];

/// The limit at the bound gets this many times the rounds of other limits. It gets more if some bodies cannot
/// move, because higher limits then hardly make packing easier; but in the first sweep, no more than three
/// quarters of the nodes.
const AT_BOUND: u64 = 2;
const AT_BOUND_WITH_FIXED: u64 = 8;

/// The rounds at the bound in the first sweep.
pub const ROUNDS_AT_BOUND: u64 = AT_BOUND * PATIENCE;

/// Searches one limit after the other. Each turn begins with the first sweep.
pub struct LimitSchedule;

impl Engine for LimitSchedule {
    /// Returns the nodes of the first thread.
    fn run(&mut self, packing: &mut Packing<'_>, share: Share, monitor: &mut Monitor<'_>) -> u64 {
        let (inst, threads) = (packing.inst(), packing.threads());
        packing.search(share.all(), monitor, |incumbent, meter| {
            threads::together(threads, incumbent, meter, |thread, meter| {
                tighten(inst, thread, incumbent, meter)
            })
        })
    }
}

/// Improves the packing and the bound of the incumbent until they meet; returns the number of nodes. Thread 0, the
/// first, uses only its own results; other threads also continue from results that others record.
fn tighten(inst: &Instance, thread: u64, incumbent: &Incumbent, meter: &mut Meter<'_>) -> u64 {
    let Snapshot { mut bound, mut best } = incumbent.snapshot();
    let mut rounds = Restarts::new(inst, thread);
    let (at_bound, mut last_at_bound) = if inst.fixed.is_empty() {
        (AT_BOUND, u64::MAX)
    } else {
        let last = meter.left(0);
        (AT_BOUND_WITH_FIXED, last - last / 4)
    };
    let mut share = PATIENCE;
    let mut level = 0;
    while bound < best && !meter.is_over(rounds.nodes()) {
        rounds.pin_below(bound);
        let gap = u128::from(best - bound) * LEVELS[level] / 64;
        let step = u64::try_from(gap).unwrap_or(0) / inst.step() * inst.step();
        let limit = bound + step;
        let (rounds_now, last) =
            if level == 0 { (at_bound * share, last_at_bound) } else { (share, u64::MAX) };
        let verdict = rounds.decide(limit, rounds_now, &mut meter.part(0, last));
        match verdict {
            // Stay at this level: its limit is lower now.
            Verdict::Packed => {
                best = inst.height_of(rounds.offsets()).max(bound);
                incumbent.packed(best, rounds.offsets());
            }
            Verdict::Refuted => {
                bound = limit + inst.step();
                incumbent.refuted(bound);
                level = (level + 1).min(LEVELS.len() - 1);
            }
            Verdict::NodeLimit if level + 1 < LEVELS.len() => level += 1,
            Verdict::NodeLimit => {
                level = 0;
                last_at_bound = u64::MAX;
                share = share.saturating_mul(2);
            }
        }
        if thread > 0 {
            Snapshot { bound, best } = incumbent.snapshot();
        }
    }
    rounds.nodes()
}

/// Packs everything below lower and lower limits in the middle of the gap, each for a few rounds: the best packing of a
/// short search is seldom near the bound. Proves nothing. Returns the nodes.
pub fn first_descent(inst: &Instance, incumbent: &Incumbent, meter: &mut Meter<'_>) -> u64 {
    let Snapshot { bound, mut best } = incumbent.snapshot();
    let mut rounds = Restarts::new(inst, 0);
    let (levels, mut level) = (&LEVELS[2..], 0);
    while bound < best && level < levels.len() && !meter.is_over(rounds.nodes()) {
        let gap = u128::from(best - bound) * levels[level] / 64;
        let limit = bound + u64::try_from(gap).unwrap_or(0) / inst.step() * inst.step();
        let verdict = rounds.decide(limit, PATIENCE, meter);
        if let Verdict::Packed = verdict {
            best = inst.height_of(rounds.offsets()).max(bound);
            incumbent.packed(best, rounds.offsets());
        } else {
            level += 1;
        }
    }
    rounds.nodes()
}
