//! The schedule of the search: which engine improves a packing when, and with how many nodes.
//!
//! | table | problems |
//! | --- | --- |
//! | [`FIRST`] | unconstrained |
//! | [`IN_TURNS`] | unconstrained, with [`SMALL`] to [`LONG`](super::sizes::LONG) chains; bodies of windows or parts |
//! | [`LIMITS_ALONE`] | unconstrained, with fewer chains; cores of more; all, with the nodes that the turns leave |
//! | [`BETWEEN_CORES`] | unconstrained, with more than [`LONG`](super::sizes::LONG) chains |
//! | [`AROUND_PINS`] | with one pool, pins and reserved ranges |

use crate::search::{
    Stage,
    contraction::Contract,
    control::limit_schedule::LimitSchedule,
    effort::MAX_ON_TOP,
    ejection::Ejection,
    engine::{Row, Schedule, Share, Turn},
    guided::Guide,
    repair_pins::PinRepair,
    sizes::{HUGE, LARGE, MAX_COVERED, MEDIUM, SMALL},
};

/// Returns whether a row runs in a turn.
type When = fn(&Turn<'_>) -> bool;
/// Returns the share of a row in a turn.
type Nodes = fn(&Turn<'_>) -> Share;

/// A row of the limit schedule.
const fn limits(when: When, share: Nodes) -> Row {
    Row { stage: Stage::LimitSchedule, engine: |_| Box::new(LimitSchedule), when, share }
}

/// A row of guided search.
const fn guided(when: When, share: Nodes) -> Row {
    Row { stage: Stage::Guided, engine: |_| Box::new(Guide), when, share }
}

/// A row of ejection.
const fn ejection(when: When, share: Nodes) -> Row {
    Row { stage: Stage::Ejection, engine: |inst| Box::new(Ejection::new(inst)), when, share }
}

/// A row of the repair of pins.
const fn pin_repair(when: When, share: Nodes) -> Row {
    Row { stage: Stage::PinRepair, engine: |inst| Box::new(PinRepair::new(inst)), when, share }
}

/// Contraction first: it finds most perfect packings in a small part of the effort, and more nodes seldom find others.
pub const FIRST: Schedule = Schedule {
    in_turns: false,
    rows: &[Row {
        stage: Stage::Contraction,
        engine: |_| Box::new(Contract),
        when: |turn| {
            turn.inst.bodies() <= HUGE && turn.inst.covered() <= MAX_COVERED && turn.effort > 0
        },
        share: |turn| Share::of((turn.effort / 16).clamp(1, 1_000_000)),
    }],
};

/// All chains of a problem, in turns of more and more nodes. The limit schedule proves what is easy. If all chains are
/// rectangles, most of the other nodes go to guided search, and few to ejection. Guided search seldom packs staircases
/// well, so with these, ejection replaces it.
pub const IN_TURNS: Schedule = Schedule {
    in_turns: true,
    rows: &[
        limits(
            |_| true,
            |turn| {
                let first = match turn {
                    _ if turn.has_staircases() => 10_000,
                    // Problem J of MiniMalloc's benchmarks needs nearly all of the default effort for its cores.
                    _ if is_guided_first(turn) => turn.effort / 8,
                    // Enough for the hardest public proof.
                    _ => 5_000_000,
                };
                Share::of(turn.left().min(turn.growing(first, LONGER)))
            },
        ),
        guided(is_guided_first, |turn| Share::of(turn.effort)),
        ejection(
            |_| true,
            |turn| {
                let is_on_top = turn.is_default && turn.number == 0;
                let on_top = |most| if is_on_top { most } else { 0 };
                if turn.has_staircases() {
                    let nodes = turn.growing(1_000_000, LONGER).min(turn.left() / 2);
                    Share::of(nodes).on_top(on_top(MAX_ON_TOP))
                } else {
                    // It packs hundreds of rectangles with a little room to spare, and seldom fewer or tighter ones.
                    Share::of(turn.left() / 16).on_top(on_top(500_000))
                }
            },
        ),
        guided(
            |turn| !turn.has_staircases(),
            |turn| Share::of(turn.growing(40_000_000, LONGER).min(turn.left() / 4 * 3)),
        ),
    ],
};

/// Each turn has this many times the nodes of the one before.
const LONGER: u64 = 32;

/// Returns whether guided search comes right after a short limit schedule: with the default effort, for 300 to 500
/// rectangles. Fewer are searched as a whole as fast as in cores, and more need more nodes than the default effort.
fn is_guided_first(turn: &Turn<'_>) -> bool {
    turn.is_default && !turn.has_staircases() && (2 * SMALL..=MEDIUM).contains(&turn.inst.bodies())
}

/// The limit schedule alone, also for the cores of a problem.
pub const LIMITS_ALONE: Schedule =
    Schedule { in_turns: false, rows: &[limits(|_| true, |turn| Share::of(turn.left()))] };

/// All chains of a problem of many, after its first cores.
pub const BETWEEN_CORES: Schedule = Schedule {
    in_turns: false,
    rows: &[ejection(
        |_| true,
        |turn| {
            let on_top = if turn.is_default { MAX_ON_TOP } else { 0 };
            Share::of((turn.effort / 2).min(80_000_000)).on_top(on_top)
        },
    )],
};

/// One pool with pins and reserved ranges. A larger effort than the usual one begins with the same shares.
pub const AROUND_PINS: Schedule = Schedule {
    in_turns: false,
    rows: &[
        limits(is_searched, |turn| Share::of(turn.usual.min(20_000))),
        pin_repair(
            is_searched,
            // A quarter of a small effort, a sixteenth of a large one; 200 000 nodes are often enough.
            |turn| Share::of((turn.usual / 4).min(200_000).max(turn.usual / 16)),
        ),
        limits(is_searched, |turn| Share::of(turn.usual.saturating_sub(turn.spent))),
        pin_repair(is_searched, |turn| Share::of(turn.usual / 2)),
        guided(is_searched, |turn| Share::of(turn.usual / 2)),
        ejection(is_searched, |turn| Share::of(turn.usual / 4 + MAX_ON_TOP)),
        limits(is_searched, |turn| Share::of(turn.left())),
        ejection(
            |turn| !is_searched(turn),
            |turn| Share::of(turn.effort.saturating_add(MAX_ON_TOP)),
        ),
    ],
};

/// Returns whether there are few enough bodies for all engines. For more, ejection alone runs.
fn is_searched(turn: &Turn<'_>) -> bool {
    turn.inst.bodies() <= LARGE
}
