//! Assigns bodies to pools by branch and bound.

use crate::search::sizes::{MAX_KEPT, PAUSE, TINY, WORK_PER_NODE};
use std::collections::HashMap;

use crate::{
    Bytes,
    bodies::Body,
    monitor::Monitor,
    problem::constraints::Place,
    search::{
        control::meter::{Meter, watch},
        effort::{PROBE, SHORT, Verdict, weigh},
        first_fit::Packed,
        incumbent::Incumbent,
        pool_instance::PoolInstance,
        pools::{
            bins::Bin,
            shelf::{Section, Shelf, sections},
        },
    },
};

/// A search through the assignments of bodies to bins.
pub struct Assignment<'a> {
    instance: &'a PoolInstance<'a>,
    bins: Vec<Bin>,
    sections: Vec<Section>,
    /// By body: the sections that it has bytes in, each with the number of these bytes.
    loads: Vec<Vec<(usize, Bytes)>>,
    /// The bodies, in the order in which they are assigned.
    order: Vec<usize>,
    /// By body: the bins that it may lie in, each with the cost of its traffic there.
    choices: Vec<Vec<Choice>>,
    /// By position in the order: the least cost of the bodies from there on.
    rest: Vec<u128>,
    /// By body: its bin, while it is assigned.
    bin_of: Vec<Option<usize>>,
    /// By bin.
    filled: Vec<Filled>,
    cost: u128,
    shelves: HashMap<(usize, Vec<usize>), Shelf>,
    /// The number of pairs of bodies in the shelves.
    pairs: usize,
    best: Option<(Vec<u128>, Vec<Place>)>,
    /// A lower bound of the size, if there is one pool.
    bound: Bytes,
    budget: u64,
    /// The nodes of the shelves, and those for setting them up.
    nodes: u64,
    /// The number of assignments tried.
    work: u64,
    /// True if some branch was not searched completely.
    is_cut: bool,
    is_stopped: bool,
}

/// A bin that a body may lie in.
#[derive(Clone, Copy)]
struct Choice {
    bin: usize,
    cost: u128,
}

/// The bodies in a bin.
#[derive(Clone, Default)]
struct Filled {
    count: usize,
    /// By section: their bytes.
    loads: Vec<Bytes>,
    /// Their highest load, or the end of a pin above it.
    least: Bytes,
}

impl<'a> Assignment<'a> {
    /// Sets up the search. Returns `None` if the set-up alone exceeds the budget, or the search must stop.
    pub fn new(
        instance: &'a PoolInstance<'a>,
        best: Option<&Packed>,
        bound: Bytes,
        budget: u64,
        monitor: &mut Monitor<'_>,
    ) -> Option<Self> {
        let best = best.map(|best| (best.objective.clone(), best.places.clone()));
        let bins = Bin::all(instance);
        let sections = sections(instance, budget, monitor)?;
        let mut loads: Vec<Vec<(usize, Bytes)>> = vec![Vec::new(); instance.bodies.len()];
        for (at, section) in sections.iter().enumerate() {
            for interval in section {
                let bytes = interval.high - interval.low;
                match loads[interval.body].last_mut() {
                    Some((last, sum)) if *last == at => *sum += bytes,
                    _ => loads[interval.body].push((at, bytes)),
                }
            }
        }
        let choices_of = |body: &Body| -> Vec<Choice> {
            let allowed = body.pools.iter().flat_map(|allowed| {
                let pool = allowed.pool.index();
                let cost = instance.problem.cost_in(body, allowed.pool);
                let is_there = move |bin: &Bin| {
                    let is_in = |at: Bytes| {
                        at >= bin.base && bin.room.is_none_or(|room| at - bin.base < room)
                    };
                    bin.pool == pool && body.fixed.is_none_or(|place| is_in(place.offset))
                };
                let bins = bins.iter().enumerate().filter(move |(_, bin)| is_there(bin));
                bins.map(move |(bin, _)| Choice { bin, cost })
            });
            allowed.collect()
        };
        let choices: Vec<_> = instance.bodies.iter().map(choices_of).collect();
        // The bodies with the most cost to save per byte come first, then the largest.
        let saving = |at: usize| {
            let costs = || choices[at].iter().map(|choice| choice.cost);
            let span = costs().max().unwrap_or(0) - costs().min().unwrap_or(0);
            span.saturating_mul(1 << 20) / u128::from(instance.bodies[at].extent.max(1))
        };
        let size = |at: usize| {
            let sum = |sum: u128, &(_, bytes): &(usize, Bytes)| sum + u128::from(bytes);
            loads[at].iter().fold(0, sum)
        };
        let mut order: Vec<usize> = (0..instance.bodies.len()).collect();
        order.sort_by_key(|&at| {
            let is_free = instance.bodies[at].fixed.is_none();
            (is_free, std::cmp::Reverse((saving(at), size(at))), at)
        });
        let mut rest: Vec<u128> = vec![0; order.len() + 1];
        for (at, &body) in order.iter().enumerate().rev() {
            let least = choices[body].iter().map(|choice| choice.cost).min().unwrap_or(0);
            rest[at] = rest[at + 1].saturating_add(least);
        }
        let filled = Filled { loads: vec![0; sections.len()], ..Filled::default() };
        // Empty buffers are interchangeable only if their size is a multiple of each alignment. Otherwise the search
        // may skip a buffer that matters, and so proves nothing.
        let divides = |body: &Body| {
            body.pools.iter().all(|allowed| {
                let largest = instance.pools[allowed.pool.index()].largest;
                largest.is_none_or(|largest| largest.is_multiple_of(allowed.modulus))
            })
        };
        let is_cut = !instance.bodies.iter().all(divides);
        Some(Self {
            bin_of: vec![None; order.len()],
            filled: vec![filled; bins.len()],
            instance,
            bins,
            sections,
            loads,
            order,
            choices,
            rest,
            cost: 0,
            shelves: HashMap::new(),
            pairs: 0,
            best,
            bound,
            budget,
            nodes: 0,
            work: 0,
            is_cut,
            is_stopped: false,
        })
    }

    /// The places of the best plan.
    pub fn best(&self) -> Option<&[Place]> {
        self.best.as_ref().map(|(_, places)| &**places)
    }

    /// Returns whether every branch was searched, so that no plan is better than the best.
    pub fn is_whole(&self) -> bool {
        !self.is_cut
    }

    pub fn run(&mut self, monitor: &mut Monitor<'_>) {
        self.assign(0, monitor);
    }

    /// Assigns the bodies from position `at` of the order on.
    fn assign(&mut self, at: usize, monitor: &mut Monitor<'_>) {
        let Some(&body) = self.order.get(at) else { return self.pack(monitor) };
        let mut had_empty = vec![false; self.instance.pools.len()];
        for Choice { bin, cost } in self.choices[body].clone() {
            // Empty buffers of one pool are interchangeable: one is enough.
            let Bin { pool, room, .. } = self.bins[bin];
            let is_alike = self.filled[bin].count == 0
                && self.instance.bodies[body].fixed.is_none()
                && std::mem::replace(&mut had_empty[pool], true);
            if is_alike {
                continue;
            }
            self.work += 1;
            if self.stop(monitor) {
                return;
            }
            let before = (self.filled[bin].least, self.cost);
            self.put(body, bin);
            self.cost = self.cost.saturating_add(cost);
            let is_hopeless = room.is_some_and(|room| self.filled[bin].least > room)
                || !self.may_be_better(at + 1)
                || !self.may_fit(bin, monitor);
            if !is_hopeless {
                self.assign(at + 1, monitor);
            }
            self.take_back(body, bin);
            (self.filled[bin].least, self.cost) = before;
            if self.is_stopped {
                self.is_cut = true;
                return;
            }
        }
    }

    fn put(&mut self, body: usize, bin: usize) {
        self.bin_of[body] = Some(bin);
        let (filled, base) = (&mut self.filled[bin], self.bins[bin].base);
        filled.count += 1;
        for &(section, bytes) in &self.loads[body] {
            filled.loads[section] += bytes;
            filled.least = filled.least.max(filled.loads[section]);
        }
        let body = &self.instance.bodies[body];
        let lowest = body.fixed.map_or(0, |place| place.offset - base);
        filled.least = filled.least.max(lowest + body.extent);
    }

    fn take_back(&mut self, body: usize, bin: usize) {
        self.bin_of[body] = None;
        self.filled[bin].count -= 1;
        for &(section, bytes) in &self.loads[body] {
            self.filled[bin].loads[section] -= bytes;
        }
    }

    /// Returns whether the rest could still make the plan better than the best.
    fn may_be_better(&self, at: usize) -> bool {
        if !self.fits_capacities() {
            return false;
        }
        let Some((best, _)) = &self.best else { return true };
        self.least_objective(at) < *best
    }

    /// A lower bound of the objective of all plans that continue this one.
    fn least_objective(&self, at: usize) -> Vec<u128> {
        let mut objective = vec![self.cost.saturating_add(self.rest[at])];
        objective.extend((0..self.instance.pools.len()).rev().map(|pool| self.least(pool)));
        if let [_, size] = &mut *objective {
            *size = (*size).max(self.bound.into());
        }
        objective
    }

    /// Returns whether the buffers of each pool stay within its capacity.
    fn fits_capacities(&self) -> bool {
        self.instance.pools.iter().enumerate().all(|(at, pool)| {
            let (Some(capacity), Some(_)) = (pool.capacity, pool.largest) else { return true };
            self.least(at) <= u128::from(capacity)
        })
    }

    /// The sum of the least sizes of the bins of a pool.
    fn least(&self, pool: usize) -> u128 {
        let of_pool = self.bins.iter().zip(&self.filled).filter(|(bin, _)| bin.pool == pool);
        of_pool.map(|(bin, filled)| u128::from(bin.size(filled.least))).sum()
    }

    /// Returns false if a short search proves that the bodies of a bin do not fit into it.
    fn may_fit(&mut self, bin: usize, monitor: &mut Monitor<'_>) -> bool {
        let is_looked_at = self.bins.len() > 1 && self.filled[bin].count <= TINY;
        let Some(room) = self.bins[bin].room.filter(|_| is_looked_at) else { return true };
        self.decide(bin, room, PROBE, monitor) != Verdict::Refuted
    }

    /// Searches for a packing of a bin that ends no higher than a limit.
    fn decide(
        &mut self,
        bin: usize,
        limit: Bytes,
        nodes: u64,
        monitor: &mut Monitor<'_>,
    ) -> Verdict {
        let (spent, budget) = (self.nodes(), self.budget);
        let (bound, best) = self.figures();
        let bodies: Vec<usize> = self.bodies_of(bin).collect();
        let Self { instance, bins, sections, shelves, pairs, nodes: counted, .. } = self;
        let new = || {
            let count = bodies.len() * bodies.len() / 2;
            *pairs += count;
            *counted += count as u64 / WORK_PER_NODE as u64;
            Shelf::new(instance, sections, &bins[bin], &bodies, monitor)
        };
        let shelf = shelves.entry((bin, bodies.clone())).or_insert_with(new);
        let before = shelf.nodes();
        let open = Incumbent::new(0, u64::MAX);
        let verdict = {
            let mut watch = watch(monitor, &open, 1, (Some(bound), Some(best)));
            let mut meter = Meter::new(&mut watch);
            let mut meter = meter.part(spent, budget.saturating_sub(spent));
            shelf.decide(&bins[bin], limit, nodes, &mut meter.since(before))
        };
        self.nodes += shelf.nodes() - before;
        self.is_stopped = self.is_stopped || self.nodes() >= self.budget || monitor.stopped();
        verdict
    }

    /// Packs the bins once every body has one. Bins of the pools that matter most come first.
    fn pack(&mut self, monitor: &mut Monitor<'_>) {
        // A pair takes as much memory as some entries of a table.
        if 4 * self.pairs > MAX_KEPT {
            self.shelves.clear();
            self.pairs = 0;
        }
        let mut objective = vec![self.cost];
        let mut is_better = self.best.as_ref().is_none_or(|(best, _)| self.cost < best[0]);
        let pools = self.instance.pools.len();
        for pool in (0..pools).rev() {
            let bins: Vec<usize> =
                (0..self.bins.len()).filter(|&bin| self.bins[bin].pool == pool).collect();
            let least = |bin: usize| self.bins[bin].size(self.filled[bin].least);
            let mut others: Bytes = bins.iter().map(|&bin| least(bin)).sum();
            // The largest size with which the plan can still be better than the best. A pool that is
            // not the last to be packed may be as large as in the best.
            let best = self.best.as_ref().filter(|_| !is_better).map(|(best, _)| best);
            let most = best.map(|best| {
                let size = u64::try_from(best[objective.len()]).unwrap_or(u64::MAX);
                if pool == 0 { size.checked_sub(1) } else { Some(size) }
            });
            let Some(most) = most.unwrap_or(Some(Bytes::MAX)) else { return };
            let most = most.min(self.instance.pools[pool].capacity.unwrap_or(Bytes::MAX));
            let mut sum = 0;
            for bin in bins {
                others -= self.bins[bin].size(self.filled[bin].least);
                let Some(most) = most.checked_sub(sum + others) else { return };
                let Some(size) = self.lowest(bin, most, monitor) else { return };
                sum += size;
            }
            objective.push(sum.into());
            let before = self.best.as_ref().map(|(best, _)| best[objective.len() - 1]);
            is_better = is_better || before.is_some_and(|before| u128::from(sum) < before);
        }
        if is_better {
            self.best = Some((objective, self.places()));
        }
    }

    /// The smallest size that was found for a bin; `None` if no packing of at most `most` bytes was found. It is the
    /// smallest that exists unless the search was cut short.
    fn lowest(&mut self, bin: usize, most: Bytes, monitor: &mut Monitor<'_>) -> Option<Bytes> {
        if self.filled[bin].count == 0 {
            return Some(0);
        }
        let Bin { room, pool, .. } = self.bins[bin];
        let is_only = self.instance.pools.len() == 1 && self.instance.pools[pool].largest.is_none();
        let least = self.filled[bin].least.max(if is_only { self.bound } else { 0 });
        let least = self.bins[bin].size(least);
        let mut limit = match room {
            Some(room) if most >= room => room,
            _ => most - most % self.bins[bin].alignment,
        };
        if limit < least {
            return None;
        }
        let mut found = None;
        // Many packings are as low as the bound.
        let first = self.decide(bin, least, SHORT, monitor);
        if first == Verdict::Packed {
            return self.size(bin);
        }
        loop {
            match self.decide(bin, limit, u64::MAX, monitor) {
                Verdict::Packed => {
                    let size = self.size(bin)?;
                    found = Some(size);
                    match self.bins[bin].below(size).filter(|&below| below >= least) {
                        Some(below) => limit = below,
                        None => return found,
                    }
                }
                verdict => {
                    self.is_cut |= verdict == Verdict::NodeLimit;
                    return found;
                }
            }
        }
    }

    fn shelf(&self, bin: usize) -> Option<&Shelf> {
        self.shelves.get(&(bin, self.bodies_of(bin).collect()))
    }

    fn bodies_of(&self, bin: usize) -> impl Iterator<Item = usize> {
        (0..self.bin_of.len()).filter(move |&body| self.bin_of[body] == Some(bin))
    }

    fn size(&self, bin: usize) -> Option<Bytes> {
        self.shelf(bin)?.packed.as_ref().map(|&(size, _)| size)
    }

    /// The places in the packings of the bins.
    fn places(&self) -> Vec<Place> {
        let mut places = vec![Place::default(); self.bin_of.len()];
        for (at, bin) in self.bins.iter().enumerate() {
            let Some((_, offsets)) = self.shelf(at).and_then(|shelf| shelf.packed.as_ref()) else {
                continue;
            };
            for (body, offset) in self.bodies_of(at).zip(offsets) {
                places[body] = bin.place(*offset);
            }
        }
        places
    }

    fn nodes(&self) -> u64 {
        self.nodes + weigh(0, self.work * self.bins.len() as u64)
    }

    /// The bound and the best size, for the observer.
    fn figures(&self) -> (Bytes, Bytes) {
        let best = self.best.as_ref().map(|(best, _)| best[1..].iter().sum::<u128>());
        (self.bound, best.and_then(|best| Bytes::try_from(best).ok()).unwrap_or(Bytes::MAX))
    }

    fn stop(&mut self, monitor: &mut Monitor<'_>) -> bool {
        let (bound, best) = self.figures();
        let nodes = self.nodes();
        self.is_stopped = self.is_stopped || nodes >= self.budget;
        if self.work.is_multiple_of(PAUSE) {
            self.is_stopped = self.is_stopped || monitor.stop(nodes, bound, best);
        }
        self.is_cut = self.is_cut || self.is_stopped;
        self.is_stopped
    }
}
