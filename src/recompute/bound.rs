//! Lower bounds on peak and cost of every expanded sequence in the given order, however often operators run again.
//!
//! *Peak*: while an operator runs, its operands and results are live, and so is what cannot be made again
//! later and is still read or is a result of the sequence. An operator may also wait while others pass it; what is no
//! longer read after those is not counted.
//!
//! *Cost*: when an operator `j` runs, everything that later operators read is either live or is made again after
//! `j`. What is live must fit into the room: the budget less what `j` itself needs. For any price of a byte, a minimum
//! cut minimizes the cost of what runs again plus the price of what is live. Minus the price of the whole room, this is
//! a lower bound on the cost of what runs again after `j` (Lagrangian relaxation).

use std::ops::Range;

use crate::{
    Bytes,
    effort::Effort,
    flow::{NONE, Network, SINK, SOURCE, UNCUT},
    lists::{NOBODY, narrow},
    recompute::model::Model,
    segment_tree::{ancestors, cover},
};

/// By operator: the fewest bytes that are live while it runs, and the operators that may [pass](passers) it.
struct Needs {
    bytes: Vec<Bytes>,
    passers: Vec<Range<u32>>,
}

/// Returns the least peak: no expanded sequence has fewer live bytes.
pub(super) fn peak(model: &Model) -> Bytes {
    Needs::of(model).bytes.into_iter().max().unwrap_or(0)
}

impl Needs {
    fn of(model: &Model) -> Self {
        let operators = model.operators();
        let mut bytes = Vec::with_capacity(operators);
        let passers = passers(model);
        let held = held(model, &passers);
        let mut seen = vec![NONE; model.storages.len()];
        for (operator, held) in held.into_iter().enumerate() {
            let mut sum = model.workspace[operator] + held;
            for storage in touched(model, operator) {
                let at = storage as usize;
                if std::mem::replace(&mut seen[at], narrow(operator)) != narrow(operator)
                    && !is_held(model, at, narrow(operator), &passers[operator])
                {
                    sum += model.storages[at].least;
                }
            }
            bytes.push(sum.saturating_sub(model.shared[operator]));
        }
        Self { bytes, passers }
    }
}

/// By operator: the range of the operators that may pass it, which means that they come after it and run before it. An
/// operator may wait until right before the first one that reads what it makes, and that one may wait, too. The
/// operators right behind it that read what it makes, directly or through each other, cannot pass it.
fn passers(model: &Model) -> Vec<Range<u32>> {
    let end = narrow(model.operators());
    let mut passers: Vec<Range<u32>> = (0..end).map(|at| at..at).collect();
    // The last producer of what each operator reads.
    let mut producers = vec![NOBODY; model.operators()];
    for at in (0..end).rev() {
        let operator = at as usize;
        let readers = model.readers.get(operator);
        for &reader in readers.iter().filter(|&&reader| reader > at) {
            let last = &mut producers[reader as usize];
            *last = if *last == NOBODY { at } else { *last };
        }
        // A view is made again with its storage.
        let is_view = model.leader[operator] != at;
        let latest = if is_view { end } else { model.latest[operator] };
        if latest > at && !model.makes_kept[operator] {
            let first = readers.iter().map(|&reader| passers[reader as usize].end).min();
            passers[operator].end = first.unwrap_or(end).min(latest);
        }
    }
    // The range begins with the first that reads nothing made by the operator or by those in between.
    let mut open: Vec<usize> = Vec::new();
    for (at, &last) in producers.iter().enumerate() {
        let reads = |before: usize| last != NOBODY && before <= last as usize;
        while let Some(before) = open.pop_if(|before| !reads(*before)) {
            passers[before].start = narrow(at);
        }
        open.push(at);
    }
    for before in open {
        passers[before].start = end;
    }
    passers
}

/// The storages that an operator reads or makes.
fn touched(model: &Model, operator: usize) -> impl Iterator<Item = u32> + '_ {
    let values = model.reads.get(operator).iter().chain(model.makes.get(operator));
    values.map(|&value| model.values[value as usize].storage)
}

/// Returns whether a storage is live while an operator runs, whatever runs again and whichever of the passers run before.
fn is_held(model: &Model, storage: usize, operator: u32, passers: &Range<u32>) -> bool {
    let (from, to) = held_span(model, storage);
    (from..=to).contains(&operator) && !passers.contains(&to)
}

/// The operators during which a storage is live in every expanded sequence; empty if the first comes after
/// the last.
fn held_span(model: &Model, storage: usize) -> (u32, u32) {
    let storage_of = &model.storages[storage];
    let made = if storage_of.producer == NOBODY { 0 } else { storage_of.producer };
    if storage_of.kept {
        return (made, NOBODY);
    }
    // Copies run before an operator up to `latest`, so they are no longer possible while it runs.
    let latest = match storage_of.producer {
        // It is live in the first step, whichever operator runs then.
        NOBODY if model.users.get(storage).is_empty() => return (1, 0),
        NOBODY => 0,
        producer => model.latest[producer as usize],
    };
    let last = last_reader(model, storage);
    (made.max(latest), last)
}

/// The last operator that reads a storage or makes it.
fn last_reader(model: &Model, storage: usize) -> u32 {
    let producer = model.storages[storage].producer;
    let made = if producer == NOBODY { 0 } else { producer };
    model.users.get(storage).last().map_or(made, |&last| last.max(made))
}

/// By operator: the bytes of the storages that are live while it runs, whatever runs again and whichever of the passers
/// run before.
fn held(model: &Model, passers: &[Range<u32>]) -> Vec<Bytes> {
    let end = model.operators();
    let mut spans: Vec<Vec<(usize, Bytes)>> = vec![Vec::new(); end];
    for (at, storage) in model.storages.iter().enumerate() {
        let (from, to) = held_span(model, at);
        if let Some(spans) = spans.get_mut(from as usize).filter(|_| from <= to) {
            spans.push(((to as usize).min(end), storage.least));
        }
    }
    // By the last operator during which they are live.
    let leaves = end + 1;
    let mut sums = vec![0; 2 * leaves];
    let held = spans.into_iter().zip(passers).enumerate().map(|(at, (spans, passers))| {
        for (to, bytes) in spans {
            ancestors(leaves + to).for_each(|node| sums[node] += bytes);
        }
        let from = |last: Range<usize>| cover(leaves, last).map(|node| sums[node]).sum::<Bytes>();
        let (first, end) = (passers.start as usize, passers.end as usize);
        from(at..first.min(end).max(at)) + from(end.max(at)..leaves)
    });
    held.collect()
}

/// By operator: true if it may run for the first time after operator `after`, because no operator up to there must
/// read what it makes.
fn deferrable(model: &Model, after: u32) -> Vec<bool> {
    let mut deferrable = vec![false; model.operators()];
    for at in (0..=after as usize).rev() {
        let may_wait = |&reader: &u32| reader > after || deferrable[reader as usize];
        deferrable[at] = model.latest[at] > after
            && !model.makes_kept[at]
            && model.readers.get(at).iter().all(may_wait);
    }
    deferrable
}

/// The number of steps that are tried first, spread evenly.
const STEPS: usize = 24;

/// Prices that are tried for each step.
const PRICES: usize = 12;

/// Returns the least cost of what runs again, within a budget that some expanded sequence may keep to.
pub(super) fn cost(model: &Model, budget: Bytes, effort: &mut Effort<'_>) -> u64 {
    let needs = Needs::of(model);
    let mut cutter = Cutter::new(model);
    // If others pass an operator, what has run before it is not known.
    let is_fixed = |&operator: &usize| needs.passers[operator].is_empty();
    let fixed: Vec<usize> = (0..model.operators()).filter(is_fixed).collect();
    let mut best = (0_u64, 0_usize);
    let mut stride = fixed.len().div_ceil(STEPS).max(1);
    let mut tried = vec![false; fixed.len()];
    let mut steps: Vec<usize> = (0..fixed.len()).step_by(stride).collect();
    loop {
        for step in steps {
            let Some(&operator) = fixed.get(step) else { continue };
            if !std::mem::replace(&mut tried[step], true) && !effort.is_spent() {
                let bound = cutter.bound(operator, needs.bytes[operator], budget);
                effort.spend(std::mem::take(&mut cutter.work));
                best = best.max((bound, step));
            }
        }
        if stride == 1 || best.0 == 0 {
            return best.0;
        }
        // Continue with the neighbours of the best step so far.
        stride = stride.div_ceil(3);
        let near = -3_isize..=3;
        steps =
            near.filter_map(|by| best.1.checked_add_signed(by * stride.cast_signed())).collect();
    }
}

struct Cutter<'m> {
    model: &'m Model,
    network: Network,
    nodes: Vec<u32>,
    storages: Vec<u32>,
    work: u64,
    /// The factor of costs in the network.
    scale: f64,
}

impl<'m> Cutter<'m> {
    #[allow(clippy::cast_precision_loss, reason = "only a scale")]
    fn new(model: &'m Model) -> Self {
        let total: u64 = model.cost.iter().sum();
        Self {
            model,
            network: Network::default(),
            nodes: vec![NONE; model.operators()],
            storages: vec![NONE; model.storages.len()],
            work: 0,
            scale: (1_u64 << 44) as f64 / total.max(1) as f64,
        }
    }

    /// The least cost of what runs again after a step.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded so that the bound holds"
    )]
    fn bound(&mut self, step: usize, needs: Bytes, budget: Bytes) -> u64 {
        let room = budget.saturating_sub(needs) as f64;
        let total: u64 = self.model.cost.iter().sum();
        let bytes: Bytes = self.model.storages.iter().map(|storage| storage.least).sum();
        let middle = total.max(1) as f64 / bytes.max(1) as f64;
        let (mut low, mut high) = (middle / 64.0, middle * 256.0);
        let mut best = 0.0_f64;
        for _ in 0..PRICES {
            let price = (low * high).sqrt();
            let (value, kept) = self.cut(step, price);
            best = best.max(value - price * room);
            if kept as f64 > room {
                low = price;
            } else {
                high = price;
            }
        }
        // Sums of doubles are off by less than this.
        let safe = best - 1e-9 * (total as f64) - 1e-6;
        if safe <= 0.0 { 0 } else { safe.ceil() as u64 }
    }

    /// Returns the minimum of cost plus price after a step, and the bytes that are kept over the step to reach it.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded down, so that the bound holds"
    )]
    fn cut(&mut self, step: usize, price: f64) -> (f64, Bytes) {
        let model = self.model;
        let now = narrow(step);
        self.network.clear();
        self.nodes.fill(NONE);
        self.storages.fill(NONE);
        let most = (1_u64 << 50) as f64;
        let is_free = |storage: usize| is_held(model, storage, now, &(0..0));
        let deferrable = deferrable(model, now);
        let mut waiting: Vec<u32> = Vec::new();
        for (at, storage) in model.storages.iter().enumerate() {
            let is_made = storage.producer == NOBODY || storage.producer < now;
            if is_made && !is_free(at) && last_reader(model, at) > now {
                waiting.push(narrow(at));
            }
        }
        for storage in touched(model, step) {
            waiting.retain(|&other| other != storage);
        }
        let free: Vec<u32> = touched(model, step).collect();
        let mut next = 0;
        for &storage in &waiting {
            let node = self.needed(storage);
            self.network.add_edge(SOURCE, node, UNCUT);
        }
        let mut list = waiting;
        // Whatever is needed may run again; its operands are needed then.
        while next < list.len() {
            let storage = list[next] as usize;
            next += 1;
            let producer = model.storages[storage].producer;
            if producer == NOBODY || model.latest[producer as usize] <= now {
                // It is kept.
                continue;
            }
            let maker = self.nodes[producer as usize];
            if maker != NONE {
                continue;
            }
            let maker = self.network.add_node();
            self.nodes[producer as usize] = maker;
            let cost = if deferrable[producer as usize] {
                0.0
            } else {
                model.cost[producer as usize] as f64
            };
            let cost = (cost * self.scale).min(most) as u64;
            self.network.add_edge(maker, SINK, cost);
            for &value in model.reads.get(producer as usize) {
                let operand = model.values[value as usize].storage;
                if is_free(operand as usize) || free.contains(&operand) {
                    continue;
                }
                if self.storages[operand as usize] == NONE {
                    self.needed(operand);
                    list.push(operand);
                }
                self.network.add_edge(maker, self.storages[operand as usize], UNCUT);
            }
        }
        let mut kept_edges = Vec::new();
        for &storage in &list {
            let at = storage as usize;
            let producer = model.storages[at].producer;
            let maker = if producer == NOBODY { NONE } else { self.nodes[producer as usize] };
            let to = if maker == NONE { SINK } else { maker };
            let bytes = model.storages[at].least;
            let room = (bytes as f64 * price * self.scale).min(most) as u64;
            self.network.add_edge(self.storages[at], to, room);
            kept_edges.push((self.storages[at], to, bytes));
        }
        let flow = self.network.max_flow();
        self.work += self.network.work;
        let reached = self.network.reached();
        let kept = kept_edges
            .iter()
            .filter(|&&(from, to, _)| reached[from as usize] && !reached[to as usize])
            .map(|&(_, _, bytes)| bytes)
            .sum();
        (flow as f64 / self.scale, kept)
    }

    /// Adds a node for a storage that is needed.
    fn needed(&mut self, storage: u32) -> u32 {
        let node = self.network.add_node();
        self.storages[storage as usize] = node;
        node
    }
}
