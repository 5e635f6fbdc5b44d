//! Rounds: does everything fit under a limit?
//!
//! The time of one search has a heavy tail: one order of trying finds a packing in a hundred nodes
//! where another needs a billion. So the search runs in rounds of few nodes, seldom more (Luby's
//! sequence), each with another order, another taste in sections and a little noise. Rounds
//! remember what was refuted, and where; any round that ends is a proof. Where there are staircases,
//! the orders take turns with the valleys.

#![allow(clippy::cast_precision_loss, reason = "an order of trying may round")]

use super::{
    instance::{Instance, Item},
    orders::Orders,
    refuted::Refuted,
    skyline::{Skyline, scramble},
    tree::{End, Tree},
    valley::{Taste, Valleys},
};

/// The nodes of the shortest round.
pub(super) const UNIT: u64 = 1000;

/// After so many nodes it is asked whether to stop.
const PAUSE: u64 = 256;

pub(super) struct Rounds<'a> {
    inst: &'a Instance,
    valleys: Valleys<'a>,
    tree: Tree,
    refuted: Refuted,
    /// The other way, if there are staircases.
    pub orders: Option<Orders>,
    /// Whether it found the last packing.
    in_order: bool,
    round: u64,
    rank: Vec<u32>,
}

/// What an order tries first.
const KEYS: [fn(&Item) -> f64; 6] = [
    |i| i.size as f64,
    |i| width(i) * 1e6 + i.size as f64,
    |i| -width(i) * 1e6 + i.size as f64,
    |i| width(i) * i.size as f64,
    |i| width(i).sqrt() * i.size as f64,
    |i| i.size as f64 / width(i),
];

const TASTES: [Taste; 4] = [Taste::Few, Taste::WasteHalf, Taste::Fault, Taste::WasteThrice];

fn width(item: &Item) -> f64 {
    f64::from(item.end - item.first)
}

impl<'a> Rounds<'a> {
    /// The rounds of a thread; each thread has other noise in its orders.
    pub(super) fn new(inst: &'a Instance, thread: u64) -> Self {
        Self {
            inst,
            valleys: Valleys::new(Skyline::new(inst, 0)),
            tree: Tree::new(),
            refuted: Refuted::new(),
            orders: Orders::new(inst),
            in_order: false,
            round: first_round(thread),
            rank: vec![0; inst.bodies()],
        }
    }

    /// Nodes so far. A node that looks at many bodies counts for several.
    pub(super) fn nodes(&self) -> u64 {
        self.spent().into_iter().sum()
    }

    /// The nodes of the orders and those in valleys.
    fn spent(&self) -> [u64; 2] {
        let in_order = self.orders.as_ref().map_or(0, Orders::nodes);
        [in_order, weigh(self.tree.nodes, self.valleys.work())]
    }

    /// Searches under a limit for so many rounds, until there are `last` nodes, or until `stop`.
    pub(super) fn decide(
        &mut self,
        limit: u64,
        rounds: u64,
        last: u64,
        stop: &mut impl FnMut(u64) -> bool,
    ) -> End {
        if stop(self.nodes()) {
            return End::Spent;
        }
        let (mut asked, mut stopped) = (self.nodes(), false);
        let mut stop = |nodes: u64| {
            if nodes >= asked + PAUSE {
                asked = nodes;
                stopped = stop(nodes);
            }
            stopped = stopped || nodes >= last;
            stopped
        };
        let [orders_before, valleys_before] = self.spent();
        let bodies = self.inst.bodies() as u64;
        let staircases = self.inst.odds.len() as u64;
        let mut run = self.orders.as_ref().map_or(0, |orders| orders.first_run(rounds));
        for round in 0..rounds {
            // The orders go first, and have the more nodes the more bodies are staircases.
            let [in_order, in_valleys] = loop {
                let [in_order, in_valleys] = self.spent();
                let had = (in_order - orders_before) * bodies;
                let due = (in_valleys - valleys_before) * staircases * 4;
                let Some(orders) = self.orders.as_mut().filter(|_| had <= due) else {
                    break [in_order, in_valleys];
                };
                let end = orders.decide(limit, run, &mut |nodes| stop(nodes + in_valleys));
                self.in_order = end == End::Packed;
                if end != End::Spent || stop(self.nodes()) {
                    return end;
                }
                run = run.saturating_mul(4);
            };
            if stop(in_order + in_valleys) {
                break;
            }
            let unit = UNIT + 2 * bodies;
            let budget = unit.saturating_mul(luby(round / KEYS.len() as u64 + 1));
            let budget = self.tree.nodes.saturating_add(budget);
            self.order();
            self.valleys.sky.reset(limit);
            let end = self.tree.run(
                self.inst,
                &mut self.valleys,
                &self.rank,
                &mut self.refuted,
                |nodes, work| stop(in_order + weigh(nodes, work)) || nodes >= budget,
            );
            if end != End::Spent {
                return end;
            }
            self.round += 1;
        }
        End::Spent
    }

    /// The offsets, in units by body, of the last packing.
    pub(super) fn offsets(&self) -> &[u64] {
        match &self.orders {
            Some(orders) if self.in_order => orders.offsets(),
            _ => &self.valleys.sky.offset,
        }
    }

    /// Chooses order and taste of a round.
    fn order(&mut self) {
        let keys = KEYS.len() as u64;
        let (key, lap) = (index(self.round % keys), self.round / keys);
        self.valleys.taste = TASTES[index((self.round / 2 + lap) % 4)];
        let noise = if lap == 0 { 0.0 } else { 0.6 };
        let mut order: Vec<(f64, u32)> = Vec::with_capacity(self.inst.bodies());
        for (id, item) in (0u32..).zip(&self.inst.items) {
            let random = scramble((self.round << 32) ^ u64::from(id)) >> 11;
            let random = random as f64 / (1u64 << 53) as f64 - 0.5;
            let value = KEYS[key](item);
            order.push((value + noise * value.abs() * random, id));
        }
        // Odd bodies first.
        let items = self.inst.items.len();
        order.extend((0u32..).take(self.inst.bodies()).skip(items).map(|id| (f64::INFINITY, id)));
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (rank, (_, id)) in (0u32..).zip(order) {
            self.rank[id as usize] = rank;
        }
    }
}

/// The first round of a thread; that of the first thread is 0.
fn first_round(thread: u64) -> u64 {
    // Any numbers would do that lie far apart; these are lucky on the hardest public problem.
    if thread == 0 { 0 } else { (thread + 4) << 20 }
}

/// A small number as an index.
fn index(small: u64) -> usize {
    usize::try_from(small).unwrap_or(0)
}

/// Nodes, and what was looked at in them.
pub(super) fn weigh(nodes: u64, work: u64) -> u64 {
    nodes + work / 64
}

/// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..., from 1 (Luby, Sinclair, Zuckerman 1993).
pub(super) fn luby(mut i: u64) -> u64 {
    loop {
        let power = (i + 1).next_power_of_two();
        if power == i + 1 {
            return power / 2;
        }
        i -= power / 2 - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::search::{
        instance::tests::{instance, random_problem},
        orders::tests::interlocking,
    };

    #[test]
    fn rounds_have_the_lengths_of_lubys_sequence() {
        let lengths: Vec<u64> = (1..=31).map(luby).collect();
        let half = [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8];
        assert_eq!(lengths, [&half[..], &half[..], &[16]].concat());
    }

    #[test]
    fn sixty_four_bodies_looked_at_are_a_node_more() {
        assert_eq!([weigh(5, 0), weigh(5, 63), weigh(5, 64), weigh(5, 640)], [5, 5, 6, 15]);
    }

    /// Neither way is kept waiting: the orders begin, and then go on when it is their turn again.
    #[test]
    fn orders_and_valleys_take_turns() {
        let problem = interlocking(30);
        let inst = instance(&problem);
        let mut rounds = Rounds::new(&inst, 0);
        let (mut told, mut last, mut spent) = (Vec::new(), [0, 0], 0);
        for limit in (inst.bound()..).step_by(60) {
            let end = rounds.decide(limit, 4, u64::MAX, &mut |nodes| {
                told.push(nodes);
                false
            });
            let now = rounds.spent();
            let [in_order, in_valleys] = [now[0] - last[0], now[1] - last[1]];
            last = now;
            match end {
                End::Packed => break,
                End::Refuted => {}
                // All bodies are staircases.
                End::Spent => {
                    spent += 1;
                    assert!(in_valleys > 4 * UNIT && in_order > 2 * in_valleys, "{now:?}");
                    assert!(in_order < 16 * in_valleys, "{now:?}");
                }
            }
        }
        assert!(spent > 0 && told.is_sorted(), "{told:?}");
    }

    /// The bodies in the order of the present round.
    fn order_of(rounds: &mut Rounds<'_>) -> Vec<u32> {
        rounds.order();
        let mut bodies: Vec<u32> = (0u32..).take(rounds.inst.bodies()).collect();
        bodies.sort_by_key(|&body| rounds.rank[body as usize]);
        let ranks: Vec<u32> = bodies.iter().map(|&body| rounds.rank[body as usize]).collect();
        assert_eq!(ranks, (0u32..).take(bodies.len()).collect::<Vec<_>>());
        bodies
    }

    #[test]
    fn the_first_rounds_try_the_large_the_long_or_the_short_first_and_odd_bodies_before_all() {
        type Value = fn(&Item) -> f64;
        let values: [Value; 6] = [
            |i| i.size as f64,
            |i| f64::from(i.end - i.first),
            |i| -f64::from(i.end - i.first),
            |i| f64::from(i.end - i.first) * i.size as f64,
            |i| f64::from(i.end - i.first).sqrt() * i.size as f64,
            |i| i.size as f64 / f64::from(i.end - i.first),
        ];
        arbtest::arbtest(|random| {
            let problem = random_problem(random)?;
            let inst = instance(&problem);
            let mut rounds = Rounds::new(&inst, 0);
            for value in values {
                let order = order_of(&mut rounds);
                let (odds, items) = order.split_at(inst.odds.len());
                assert!(odds.iter().all(|&body| inst.is_odd(body)));
                let items = items.iter().map(|&body| value(&inst.items[body as usize]));
                assert!(items.is_sorted_by(|a, b| a >= b), "{order:?} of {inst:?}");
                rounds.round += 1;
            }
            Ok(())
        });
    }

    /// Later ones differ, from each other too, but never much.
    #[test]
    fn later_rounds_try_large_bodies_first_with_some_noise() {
        let mut problem = crate::Problem::builder();
        for size in 0..40 {
            problem.chunk(0..1, 100 + size);
        }
        problem.chunk(0..1, 10_000);
        problem.chunk(0..1, 1);
        let problem = problem.build().unwrap();
        let inst = instance(&problem);
        let orders = || {
            let mut rounds = Rounds::new(&inst, 0);
            let mut orders = Vec::new();
            for round in (0..30).step_by(KEYS.len()) {
                rounds.round = round;
                orders.push(order_of(&mut rounds));
            }
            orders
        };
        let (first, again) = (orders(), orders());
        assert_eq!(first, again);
        for (at, order) in first.iter().enumerate() {
            assert!(!first[..at].contains(order));
            assert_eq!((order[0], order[41]), (41, 0));
        }
    }
}
