//! Chooses what is made again by minimum cuts, given a price for every byte that is kept.
//!
//! The source side of a cut contains the operators that run again and the storages that are needed after
//! their gap. A needed storage is either kept, at the price of its bytes, or made again, at the cost of its
//! operator, whose operands are then needed as well. With one price for all steps, the cuts for all prices
//! form the lower convex hull of bytes against cost. With a price for each step, raised where too many
//! bytes are live, they are a Lagrangian relaxation of the budget.

use crate::{
    Bytes,
    flow::{NONE, Network, SINK, SOURCE, UNCUT},
    lists::NOBODY,
    recompute::{gaps::Estimate, model::Model, sweep::Sweep},
};

/// The scale of costs: the sum of all is this large.
const WHOLE: f64 = 1.1e12;

/// Makes choices by minimum cuts.
pub(super) struct Cuts<'m> {
    model: &'m Model,
    network: Network,
    /// By operator: its node, or [`NONE`] if it cannot run again.
    nodes: Vec<u32>,
    /// By operator: what it costs to run again, with the views of what it makes, as a part of [`WHOLE`].
    costs: Vec<u64>,
    estimate: Estimate,
    /// By storage: the steps between which it is kept if it is not made again.
    spans: Vec<(u32, u32)>,
    pub(super) work: u64,
}

impl<'m> Cuts<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        let total: u64 = model.cost.iter().sum();
        #[allow(clippy::cast_precision_loss, reason = "only a scale")]
        let scale = WHOLE / (total.max(1) as f64);
        let mut costs = vec![0; model.operators()];
        for (operator, &cost) in model.cost.iter().enumerate() {
            costs[model.leader[operator] as usize] += scaled(cost, scale);
        }
        let mut cuts = Self {
            model,
            network: Network::default(),
            nodes: vec![NONE; model.operators()],
            costs,
            estimate: Estimate::default(),
            spans: vec![(0, 0); model.storages.len()],
            work: 0,
        };
        cuts.follow(None);
        cuts
    }

    /// Updates thresholds and spans. Where the last walk has copies, they are taken from it; elsewhere, they are
    /// estimated.
    pub(super) fn follow(&mut self, known: Option<&Sweep<'_>>) {
        let model = self.model;
        self.estimate = Estimate::new(model, known);
        for (at, storage) in model.storages.iter().enumerate() {
            if storage.producer == NOBODY || storage.kept {
                continue;
            }
            let threshold = self.threshold(at);
            let (mut from, mut to) = (storage.producer, NOBODY);
            for &user in model.users.get(at) {
                for step in [user, self.estimate.slots[user as usize]] {
                    if step >= threshold {
                        to = to.min(step);
                    } else {
                        from = from.max(step);
                    }
                }
            }
            self.spans[at] = if to == NOBODY { (from, from) } else { (from, to) };
        }
    }

    /// Returns whether an operator would run later rather than twice.
    fn is_deferred(&self, operator: u32) -> bool {
        let at = operator as usize;
        let readers = self.model.readers.get(at);
        self.estimate.thresholds[at] == operator + 1
            && !self.model.makes_kept[at]
            && readers.iter().all(|&reader| reader >= self.estimate.slots[at])
    }

    /// The step from which on readers of a storage read its copy. If it cannot be made again, no operator of the
    /// given sequence is one of them.
    fn threshold(&self, storage: usize) -> u32 {
        let producer = self.model.storages[storage].producer as usize;
        match self.estimate.thresholds[producer] {
            0 => self.model.users.get(storage).last().map_or(0, |&last| last) + 1,
            threshold => threshold,
        }
    }

    /// Returns the choice of least cost plus price. `price` has the price of a byte that is kept over a span of
    /// steps, as a part of the cost of everything.
    pub(super) fn choose(&mut self, price: impl Fn(u32, u32) -> f64) -> Vec<u32> {
        let model = self.model;
        self.network.clear();
        self.nodes.fill(NONE);
        for operator in model.candidates() {
            let at = operator as usize;
            if self.estimate.thresholds[at] > 0 {
                self.nodes[at] = self.network.add_node();
                let cost = if self.is_deferred(operator) { 0 } else { self.costs[at] };
                self.network.add_edge(self.nodes[at], SINK, cost);
            }
        }
        for (at, storage) in model.storages.iter().enumerate() {
            if storage.producer == NOBODY || storage.kept {
                continue;
            }
            let producer = storage.producer as usize;
            let maker = self.nodes[producer];
            let threshold = self.threshold(at);
            let needed = self.network.add_node();
            let (from, to) = self.spans[at];
            let price = scaled(storage.bytes, WHOLE * price(from, to));
            self.network.add_edge(needed, if maker == NONE { SINK } else { maker }, price);
            for &user in model.users.get(at) {
                if user >= threshold && maker != NONE {
                    self.network.add_edge(SOURCE, needed, UNCUT);
                    break;
                }
                let node = self.nodes[user as usize];
                if node != NONE && self.estimate.slots[user as usize] >= threshold {
                    self.network.add_edge(node, needed, UNCUT);
                }
            }
        }
        self.network.max_flow();
        self.work += self.network.work;
        let reached = self.network.reached();
        let chosen = |(&node, &threshold): (&u32, &u32)| {
            if node != NONE && reached[node as usize] { threshold } else { 0 }
        };
        self.nodes.iter().zip(&self.estimate.thresholds).map(chosen).collect()
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a price needs no more digits"
)]
fn scaled(number: u64, scale: f64) -> u64 {
    // Sums of a million of them stay below the capacity of edges that are never cut.
    (number as f64 * scale).clamp(0.0, WHOLE) as u64
}

/// A price for each step, and their sums.
pub(super) struct Prices {
    /// By step: the price of a byte that is live there, as a part of the cost of everything.
    prices: Vec<f64>,
    /// By step: the sum of the prices of the steps before it.
    sums: Vec<f64>,
}

impl Prices {
    pub(super) fn new(operators: usize) -> Self {
        Self { prices: vec![0.0; operators], sums: vec![0.0; operators + 1] }
    }

    pub(super) fn set(&mut self, step: usize, price: f64) {
        self.prices[step] = price;
        self.add_up();
    }

    /// The price of a byte that is kept between two steps.
    pub(super) fn between(&self, from: u32, to: u32) -> f64 {
        if to <= from { 0.0 } else { self.sums[to as usize] - self.sums[from as usize + 1] }
    }

    /// Raises the prices of steps with more live bytes than the budget and lowers the others, by a subgradient
    /// step of Polyak's length (1969), in proportion to `gap`: how far the Lagrangian bound is below a known cost.
    #[allow(clippy::cast_precision_loss, reason = "a direction")]
    pub(super) fn follow(&mut self, sweep: &Sweep<'_>, budget: Bytes, gap: impl Fn(f64) -> f64) {
        let mut run = 0;
        let mut over = Vec::with_capacity(self.prices.len());
        for (step, &place) in sweep.places.iter().enumerate() {
            let next = place as usize + usize::from(!sweep.deferred[step]);
            let slot = &sweep.live[run..next.max(run)];
            run = next.max(run);
            let live = slot.iter().copied().max().unwrap_or(0);
            over.push(live as f64 - budget as f64);
        }
        let both = || self.prices.iter().zip(&over);
        let paid: f64 = both().map(|(price, over)| price * over).sum();
        let square: f64 = both()
            .filter(|(price, over)| **price > 0.0 || **over > 0.0)
            .map(|(_, over)| over * over)
            .sum();
        let step = gap(paid) / square.max(1.0);
        for (price, over) in self.prices.iter_mut().zip(&over) {
            *price = (*price + step * over).max(0.0);
        }
        self.add_up();
    }

    fn add_up(&mut self) {
        let mut sum = 0.0;
        for (at, price) in self.prices.iter().enumerate() {
            self.sums[at] = sum;
            sum += price;
        }
        if let Some(last) = self.sums.last_mut() {
            *last = sum;
        }
    }
}
