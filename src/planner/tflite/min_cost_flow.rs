//! Min-cost flow: who hands its object on to whom, with the least growth in sum.
//!
//! **Idea.** Every record either opens an object, which costs its size, or takes over the object of
//! one that has ended, which costs what it is larger. The cheapest choice for all is a flow of
//! least cost: from a source to the left side of each record (it hands on), to the right side of
//! another (it takes over), to a sink. It counts growth against the predecessor only, so it is
//! no optimum of the total.
//!
//! **Cost.** n augmentations, each a queue of relaxations over up to n^2 pairs: O(n^3) and more.
//!
//! **When.** Up to a thousand tensors or so, when shared objects must be small.
//!
//! **Source.** TFLite GPU delegate, `MINCOSTFLOW` (2019). The original counts costs in 32 bits.

use std::ops::{Add, Sub};

use crate::{
    Bytes, Problem,
    planner::{
        Layout,
        records::{Boxes, InUse},
        tflite::{Objects, Records},
    },
};

/// Shares objects along a flow of least cost.
#[must_use]
pub fn objects(records: &Records) -> Objects {
    let sum: Bytes = records.iter().map(|record| record.size).sum();
    // No path costs more than all sizes, with either sign.
    if sum < 1 << 61 { share::<i64>(records) } else { share::<i128>(records) }
}

fn share<C: Cost>(records: &Records) -> Objects {
    let order = records.by_first_use();
    let mut network = Network::<C>::new(records, &order);
    while network.augment() {}
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
    objects
}

/// A signed number of bytes.
trait Cost: Copy + Ord + Add<Output = Self> + Sub<Output = Self> {
    /// More than any path costs.
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

/// From where the unit of flow comes that passes a right node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Giver {
    /// None passes yet.
    Nobody,
    /// The record opens an object.
    Source,
    /// The record takes over the object of this one.
    Left(usize),
}

/// The network with its flow. All capacities are 1, so edges need not be stored.
///
/// Vertices: left node i is `i`, right node i is `n + i`, then source and sink. Edges leave a
/// vertex in the order in which the original adds them, which decides ties: for each record
/// source to left, right to sink, source to right, then from the left nodes that have ended.
struct Network<C> {
    /// By first use, as everything here.
    sizes: Vec<C>,
    /// The first record that may take over from each one; all later ones may, too.
    takers_from: Vec<usize>,
    giver: Vec<Giver>,
    /// Who takes over from each record.
    taker: Vec<Option<usize>>,
    /// The work space of a search: cost from the source and vertex before, by vertex.
    costs: Vec<C>,
    before: Vec<usize>,
    /// The last round into whose queue each vertex was put.
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

    /// What it costs that `right` takes over from `left`.
    fn growth(&self, left: usize, right: usize) -> C {
        (self.sizes[right] - self.sizes[left]).max(C::NOTHING)
    }

    /// Sends one more unit along a cheapest path; false if there is none.
    fn augment(&mut self) -> bool {
        self.search();
        let (count, source, sink) = (self.records(), self.source(), self.sink());
        if self.costs[sink] == C::FAR {
            return false;
        }
        // Walks the path from the sink back. A step from left to right gives the right node a
        // new giver; the step from right back to left before it took the old one away.
        let mut right = self.before[sink];
        loop {
            let left = self.before[right];
            if left == source {
                self.giver[right - count] = Giver::Source;
                return true;
            }
            self.giver[right - count] = Giver::Left(left);
            self.taker[left] = Some(right - count);
            right = self.before[left];
            if right == source {
                return true;
            }
        }
    }

    /// Costs from the source by rounds of relaxation: a vertex whose cost falls is put into the
    /// queue of the next round, once.
    fn search(&mut self) {
        let (count, source, sink) = (self.records(), self.source(), self.sink());
        self.costs.fill(C::FAR);
        self.costs[source] = C::NOTHING;
        self.queue.push(source);
        while !self.queue.is_empty() {
            self.rounds += 1;
            let queue = std::mem::take(&mut self.queue);
            for &vertex in &queue {
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

    /// Back along every unit that has arrived. No cheapest path to the sink goes here, but the
    /// costs found on the way decide ties.
    fn relax_from_sink(&mut self) {
        let (count, sink) = (self.records(), self.sink());
        for record in 0..count {
            if self.giver[record] != Giver::Nobody {
                self.relax(sink, count + record, self.costs[sink]);
            }
        }
    }

    /// From a left node to every record that may take over from it. The innermost loop.
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

    /// From a right node to the sink, if nothing passes yet, else back to its giver.
    fn relax_from_right(&mut self, vertex: usize) {
        let (cost, right) = (self.costs[vertex], vertex - self.records());
        match self.giver[right] {
            Giver::Nobody => self.relax(vertex, self.sink(), cost),
            // The source costs 0, and no cycle costs less than nothing.
            Giver::Source => {}
            Giver::Left(left) => self.relax(vertex, left, cost - self.growth(left, right)),
        }
    }
}

/// Plans a problem, every chain a box.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.share(problem, objects(&boxes.records))
}
