//! Min-cost flow: records take over objects so that the total growth is smallest.
//!
//! **Idea.** Every record either opens an object, at the cost of its size, or takes over the object
//! of a record that has ended, at the cost of the growth. The cheapest combination is a min-cost
//! flow from a source to the left node of each record (it passes its object on), to the right node
//! of another (it takes over), to a sink. Growth counts against the predecessor only, so the total
//! is not optimal.
//!
//! **Cost.** There are n augmentations, each a queue of relaxations over up to n^2 pairs: O(n^3)
//! and more.
//!
//! **When.** For up to about a thousand tensors, when shared objects must be small.
//!
//! **Source.** TFLite GPU delegate, `MINCOSTFLOW` (2019). The original counts costs in 32 bits.

use std::ops::{Add, Sub};

use crate::{
    Bytes, Problem,
    baselines::{
        boxes::Boxes,
        records::InUse,
        tflite::{Objects, Records},
    },
    budget::{Budget, Stop},
    plan::Layout,
};

/// Shares objects along a min-cost flow.
#[must_use]
pub fn objects(records: &Records) -> Objects {
    Budget::unlimited(|budget| share(records, budget))
}

fn share(records: &Records, budget: &mut Budget<'_>) -> Result<Objects, Stop> {
    let sum: Bytes = records.iter().map(|record| record.size).sum();
    // No path costs more than the sum of all sizes, positive or negative.
    if sum < 1 << 61 { flow::<i64>(records, budget) } else { flow::<i128>(records, budget) }
}

fn flow<C: Cost>(records: &Records, budget: &mut Budget<'_>) -> Result<Objects, Stop> {
    let order = records.by_first_use();
    let mut network = Network::<C>::new(records, &order);
    while network.augment(budget)? {}
    let mut objects = Objects::for_records(records.len());
    for (opener, giver) in network.giver.iter().enumerate() {
        if *giver != Giver::Source {
            continue;
        }
        let object = objects.add(0);
        let mut next = Some(opener);
        while let Some(at) = next {
            objects.grow(object, records[order[at]].size);
            objects.assign(order[at], object);
            next = network.taker[at];
        }
    }
    Ok(objects)
}

/// A signed number of bytes.
trait Cost: Copy + Ord + Add<Output = Self> + Sub<Output = Self> {
    /// More than the cost of any path.
    const FAR: Self;
    const NOTHING: Self;

    fn of(bytes: Bytes) -> Self;
}

impl Cost for i64 {
    const FAR: Self = Self::MAX;
    const NOTHING: Self = 0;

    fn of(bytes: Bytes) -> Self {
        bytes.cast_signed()
    }
}

impl Cost for i128 {
    const FAR: Self = Self::MAX;
    const NOTHING: Self = 0;

    fn of(bytes: Bytes) -> Self {
        bytes.into()
    }
}

/// The origin of the flow through a right node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Giver {
    /// No flow passes yet.
    Nobody,
    /// The record opens an object.
    Source,
    /// The record takes over the object of this one.
    Left(usize),
}

/// The network with its flow. All capacities are 1, so edges are not stored.
///
/// Left node i is vertex `i` and right node i is `n + i`, followed by source and sink. Edges leave
/// a vertex in the order in which the original adds them, which decides ties: for each record
/// source to left, right to sink, source to right, then from the left nodes that have ended.
struct Network<C> {
    /// The size of each record, by first use like every list here.
    sizes: Vec<C>,
    /// The first record that may take over from each one; all later ones may as well.
    takers_from: Vec<usize>,
    giver: Vec<Giver>,
    /// The record that takes over from each record.
    taker: Vec<Option<usize>>,
    /// The buffers of a search, by vertex: its cost from the source, and the vertex before it.
    costs: Vec<C>,
    before: Vec<usize>,
    /// The last round that queued each vertex.
    queued: Vec<usize>,
    rounds: usize,
    /// The queues of this round and the next.
    queue: Vec<usize>,
    next_queue: Vec<usize>,
}

impl<C: Cost> Network<C> {
    fn new(records: &Records, order: &[usize]) -> Self {
        let count = order.len();
        let mut takers_from = vec![count; count];
        let mut in_use = InUse::default();
        for (at, &index) in order.iter().enumerate() {
            while let Some(ended) = in_use.ended_before(records[index].first) {
                takers_from[ended] = at;
            }
            in_use.until(records[index].last, at);
        }
        Self {
            sizes: order.iter().map(|&index| C::of(records[index].size)).collect(),
            takers_from,
            giver: vec![Giver::Nobody; count],
            taker: vec![None; count],
            costs: vec![C::FAR; 2 * count + 2],
            before: vec![0; 2 * count + 2],
            queued: vec![0; 2 * count + 2],
            rounds: 0,
            queue: Vec::new(),
            next_queue: Vec::new(),
        }
    }

    fn records(&self) -> usize {
        self.sizes.len()
    }

    fn source(&self) -> usize {
        2 * self.records()
    }

    fn sink(&self) -> usize {
        2 * self.records() + 1
    }

    /// Returns the cost of `right` taking over from `left`.
    fn growth(&self, left: usize, right: usize) -> C {
        (self.sizes[right] - self.sizes[left]).max(C::NOTHING)
    }

    /// Sends one more unit of flow along a cheapest path; returns false if there is no path.
    fn augment(&mut self, budget: &mut Budget<'_>) -> Result<bool, Stop> {
        self.search(budget)?;
        let (count, source, sink) = (self.records(), self.source(), self.sink());
        if self.costs[sink] == C::FAR {
            return Ok(false);
        }
        // Follows the path back from the sink. A step from left to right gives the right node a new
        // giver; the step before it, from right to left, removed the old one.
        let mut right = self.before[sink];
        loop {
            let left = self.before[right];
            if left == source {
                self.giver[right - count] = Giver::Source;
                return Ok(true);
            }
            self.giver[right - count] = Giver::Left(left);
            self.taker[left] = Some(right - count);
            right = self.before[left];
            if right == source {
                return Ok(true);
            }
        }
    }

    /// Finds the costs from the source by rounds of relaxation: a vertex whose cost falls is queued
    /// for the next round, once.
    fn search(&mut self, budget: &mut Budget<'_>) -> Result<(), Stop> {
        let (count, source, sink) = (self.records(), self.source(), self.sink());
        self.costs.fill(C::FAR);
        self.costs[source] = C::NOTHING;
        self.queue.push(source);
        while !self.queue.is_empty() {
            self.rounds += 1;
            let queue = std::mem::take(&mut self.queue);
            for &vertex in &queue {
                // No vertex has more edges.
                budget.spend(count)?;
                if vertex == source {
                    self.relax_from_source();
                } else if vertex == sink {
                    self.relax_from_sink();
                } else if vertex < count {
                    self.relax_takers(vertex);
                } else {
                    self.relax_from_right(vertex);
                }
            }
            self.queue = std::mem::replace(&mut self.next_queue, queue);
            self.next_queue.clear();
        }
        Ok(())
    }

    fn relax(&mut self, from: usize, to: usize, cost: C) {
        if cost < self.costs[to] {
            self.costs[to] = cost;
            self.before[to] = from;
            if self.queued[to] != self.rounds {
                self.queued[to] = self.rounds;
                self.next_queue.push(to);
            }
        }
    }

    fn relax_from_source(&mut self) {
        let (count, source) = (self.records(), self.source());
        for record in 0..count {
            if self.taker[record].is_none() {
                self.relax(source, record, C::NOTHING);
            }
            if self.giver[record] != Giver::Source {
                self.relax(source, count + record, self.sizes[record]);
            }
        }
    }

    /// Relaxes backwards along every unit that has arrived. No cheapest path to the sink uses these
    /// edges, but the costs found here decide ties.
    fn relax_from_sink(&mut self) {
        let (count, sink) = (self.records(), self.sink());
        for record in 0..count {
            if self.giver[record] != Giver::Nobody {
                self.relax(sink, count + record, self.costs[sink]);
            }
        }
    }

    /// Relaxes the edges from a left node to every record that may take over. This is the innermost
    /// loop.
    fn relax_takers(&mut self, left: usize) {
        let count = self.records();
        let (cost, size) = (self.costs[left], self.sizes[left]);
        let from = self.takers_from[left];
        let rights = &mut self.costs[count + from..2 * count];
        for ((right, known), &taker_size) in (from..).zip(rights).zip(&self.sizes[from..]) {
            let cost = cost + (taker_size - size).max(C::NOTHING);
            if cost < *known && self.taker[left] != Some(right) {
                let vertex = count + right;
                *known = cost;
                self.before[vertex] = left;
                if self.queued[vertex] != self.rounds {
                    self.queued[vertex] = self.rounds;
                    self.next_queue.push(vertex);
                }
            }
        }
    }

    /// Relaxes the edge from a right node to the sink if it has no flow, otherwise back to its
    /// giver.
    fn relax_from_right(&mut self, vertex: usize) {
        let (cost, right) = (self.costs[vertex], vertex - self.records());
        match self.giver[right] {
            Giver::Nobody => self.relax(vertex, self.sink(), cost),
            // The source costs 0, and no cycle has a negative cost.
            Giver::Source => {}
            Giver::Left(left) => self.relax(vertex, left, cost - self.growth(left, right)),
        }
    }
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem, budget: &mut Budget<'_>) -> Result<Layout, Stop> {
    let boxes = Boxes::of(problem);
    Ok(boxes.share(problem, share(&boxes.records, budget)?))
}
