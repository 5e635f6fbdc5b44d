//! Engines: each improves a packing in its own way. The [schedule](crate::search::schedule) says which of them run
//! when, and with how many nodes.

use tracing::trace;

use crate::{
    Limits,
    monitor::Monitor,
    search::{Stage, packing::Packing, state::instance::Instance},
};

/// Improves packings of one instance. A schedule creates an engine when its first row runs, and keeps it, so that it
/// may continue where it stopped.
pub trait Engine {
    /// Improves a packing whose height is above the bound, within a share of the effort. Returns the nodes, which it
    /// also adds to the monitor. It may treat both numbers of the share as one.
    fn run(&mut self, packing: &mut Packing<'_>, share: Share, monitor: &mut Monitor<'_>) -> u64;
}

/// `None` is an engine that does nothing, for an instance that is not supported.
impl<E: Engine> Engine for Option<E> {
    fn run(&mut self, packing: &mut Packing<'_>, share: Share, monitor: &mut Monitor<'_>) -> u64 {
        self.as_mut().map_or(0, |engine| engine.run(packing, share, monitor))
    }
}

/// The nodes that an engine may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Nodes of the effort.
    pub nodes: u64,
    /// The most nodes on top of these, which are spent only while the pool is more than a percent above the bound.
    pub on_top: u64,
}

impl Share {
    pub const fn of(nodes: u64) -> Self {
        Self { nodes, on_top: 0 }
    }

    pub const fn on_top(self, on_top: u64) -> Self {
        Self { on_top, ..self }
    }

    pub const fn all(self) -> u64 {
        self.nodes.saturating_add(self.on_top)
    }
}

/// A row of the schedule: an engine, when it runs, and its share of the effort.
pub struct Row {
    /// The stage of the row; if it is switched off, the row is skipped. Rows of one stage share one engine.
    pub stage: Stage,
    /// Makes the engine for an instance.
    pub engine: for<'a> fn(&'a Instance) -> Box<dyn Engine + 'a>,
    pub when: fn(&Turn<'_>) -> bool,
    pub share: fn(&Turn<'_>) -> Share,
}

/// The state of a schedule, from which a row decides whether it runs and with how many nodes.
pub struct Turn<'a> {
    pub inst: &'a Instance,
    /// The nodes that this schedule may spend: the effort of the search, less what earlier schedules have spent.
    pub effort: u64,
    /// The same with the default effort, if that is less.
    pub usual: u64,
    /// True if the caller gave no effort. Then engines may have nodes on top of it.
    pub is_default: bool,
    /// The nodes of the effort that are spent.
    pub spent: u64,
    /// The number of earlier turns.
    pub number: u32,
}

impl<'a> Turn<'a> {
    /// The first turn of a search with this effort.
    pub const fn first(inst: &'a Instance, effort: u64, limits: &Limits) -> Self {
        let is_default = limits.is_default();
        Self { inst, effort, usual: effort, is_default, spent: 0, number: 0 }
    }

    /// The nodes that are left of the effort.
    pub const fn left(&self) -> u64 {
        self.effort.saturating_sub(self.spent)
    }

    /// Returns whether some body that can move is no rectangle.
    pub const fn has_staircases(&self) -> bool {
        self.inst.staircases.len() > self.inst.fixed.len()
    }

    /// Nodes that grow from turn to turn.
    pub const fn growing(&self, nodes: u64, times: u64) -> u64 {
        nodes.saturating_mul(times.saturating_pow(self.number))
    }
}

/// Rows of the schedule that run from top to bottom.
pub struct Schedule {
    pub rows: &'static [Row],
    /// True if the rows run again and again, until the pool is within a percent of the bound, the effort is spent, or a
    /// turn takes no nodes.
    pub in_turns: bool,
}

impl Schedule {
    /// Improves a packing; returns the nodes that count against the effort.
    pub fn run<'a>(
        &self,
        mut turn: Turn<'a>,
        packing: &mut Packing<'a>,
        monitor: &mut Monitor<'_>,
    ) -> u64 {
        let mut engines: Vec<(Stage, Box<dyn Engine + 'a>)> = Vec::new();
        loop {
            let mut is_idle = true;
            for row in self.rows {
                let is_done = packing.is_proven() || self.in_turns && packing.is_near();
                if is_done || monitor.must_stop() {
                    return turn.spent;
                }
                if !monitor.has(row.stage) || !(row.when)(&turn) {
                    continue;
                }
                let Share { nodes, on_top } = (row.share)(&turn);
                let most = if turn.is_default { u64::MAX } else { turn.left() };
                let nodes = nodes.min(most);
                let share = Share { nodes, on_top: on_top.min(most - nodes) };
                if share.all() == 0 {
                    continue;
                }
                let at = engines.iter().position(|&(stage, _)| stage == row.stage);
                let at = at.unwrap_or_else(|| {
                    engines.push((row.stage, (row.engine)(turn.inst)));
                    engines.len() - 1
                });
                let nodes = engines[at].1.run(packing, share, monitor);
                trace!(target: "memplan::best", stage = ?row.stage, ?share, nodes, pool = packing.pool(), "ran");
                // By default, what comes on top does not count.
                let free = if turn.is_default { share.on_top } else { 0 };
                turn.spent += nodes.saturating_sub(free);
                is_idle &= nodes == 0;
            }
            turn.number += 1;
            if !self.in_turns || turn.left() == 0 || is_idle {
                return turn.spent;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Observer,
        search::{
            Without,
            samples::{instance, sawtooth},
        },
    };

    /// Takes all of its nodes, and packs nothing.
    struct Spends;

    impl Engine for Spends {
        fn run(&mut self, _: &mut Packing<'_>, share: Share, _: &mut Monitor<'_>) -> u64 {
            share.all()
        }
    }

    const ROWS: &[Row] = &[
        Row {
            stage: Stage::Guided,
            engine: |_| Box::new(Spends),
            when: |turn| turn.number > 0,
            share: |_| Share::of(1000),
        },
        Row {
            stage: Stage::Ejection,
            engine: |_| Box::new(Spends),
            when: |_| true,
            share: |_| Share::of(70),
        },
        Row {
            stage: Stage::LimitSchedule,
            engine: |_| Box::new(Spends),
            when: |_| true,
            share: |_| Share::of(70).on_top(30),
        },
        Row {
            stage: Stage::PinRepair,
            engine: |_| Box::new(None::<Spends>),
            when: |_| true,
            share: |_| Share::of(1000),
        },
    ];

    /// The nodes that the rows count for an effort of 100.
    fn spent(rows: &'static [Row], in_turns: bool, limits: &Limits) -> u64 {
        let inst = instance(&sawtooth(10));
        let mut packing = Packing::new(&inst, 100, 1000);
        let turn = Turn::first(&inst, 100, limits);
        let mut monitor = Monitor::new(limits, Observer::default());
        Schedule { rows, in_turns }.run(turn, &mut packing, &mut monitor)
    }

    #[test]
    fn rows_share_a_given_effort_and_exceed_a_default_one() {
        let (default, given) = (Limits::default(), Limits::default().nodes(100));
        assert_eq!([&given, &default].map(|limits| spent(ROWS, false, limits)), [100, 140]);
        let mut without = given;
        without.without = Without::stage(Stage::Ejection);
        // Nodes on top of a default effort are a part of a given one.
        assert_eq!(spent(ROWS, false, &without), 100);
        without.without = Without::stage(Stage::LimitSchedule);
        assert_eq!(spent(ROWS, false, &without), 70);
        assert_eq!(spent(ROWS, true, &without), 100);
    }

    #[test]
    fn a_turn_that_takes_no_nodes_is_the_last() {
        assert_eq!(spent(&ROWS[3..], true, &Limits::default()), 0);
    }
}
