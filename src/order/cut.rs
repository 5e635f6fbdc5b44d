//! Finds the downset with the fewest live bytes between two others, by a minimum cut.
//!
//! Live bytes are submodular, so the least of them over all downsets `R` with `inside ⊆ R ⊆ inside
//! ∪ free` is a minimum cut. The source side of the cut is `R`. An operator leads to each of its
//! predecessors with an edge that cannot be cut; a chunk leads from its producer to its readers
//! with an edge of its size, which is cut if the producer has run and some reader has not.

use crate::{
    Bytes,
    order::{
        model::Model,
        sets::{NOBODY, has, insert, narrow},
    },
};

/// A range of downsets.
pub(super) struct Range<'a> {
    /// The operators that have run in all of them: a downset.
    pub(super) inside: &'a [u64],
    /// The operators that have run in some of them.
    pub(super) free: &'a [u32],
}

/// Bytes that count unless certain operators have all run.
pub(super) struct Toll<'a> {
    pub(super) bytes: Bytes,
    pub(super) unless: &'a [u32],
}

/// The minimum of a range.
pub(super) struct Least {
    /// The live bytes of the chunks that the free operators touch, plus the toll where it is paid.
    /// Other chunks do not count: their bytes are the same in the whole range.
    pub(super) touched: Bytes,
    /// The bytes of those chunks that are live after `inside`.
    pub(super) touched_inside: Bytes,
    /// The smallest downset with the minimum.
    pub(super) set: Vec<u64>,
}

/// Buffers for computing cuts.
pub(super) struct Cutter {
    network: Network,
    /// The node of each operator that is free.
    nodes: Vec<u32>,
    seen: Vec<bool>,
    /// The number of edges and nodes visited, for the effort.
    pub(super) work: u64,
}

const NONE: u32 = u32::MAX;

impl Cutter {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            network: Network::default(),
            nodes: vec![NONE; model.operators()],
            seen: vec![false; model.sizes.len()],
            work: 0,
        }
    }

    /// Finds the downset of a range with the least live bytes.
    pub(super) fn least(&mut self, model: &Model, range: &Range, toll: Option<&Toll>) -> Least {
        let network = &mut self.network;
        network.clear();
        for &operator in range.free {
            self.nodes[operator as usize] = network.add_node();
        }
        let mut chunks = Vec::new();
        for &operator in range.free {
            let operator = operator as usize;
            for &first in model.predecessors.get(operator) {
                if self.nodes[first as usize] != NONE {
                    network.add_edge(self.nodes[operator], self.nodes[first as usize], UNCUT);
                }
            }
            let touched = model.reads.get(operator).iter().chain(model.produces.get(operator));
            for &chunk in touched {
                if !std::mem::replace(&mut self.seen[chunk as usize], true) {
                    chunks.push(chunk);
                }
            }
        }
        let (mut constant, mut touched_inside) = (0, 0);
        for &chunk in &chunks {
            let chunk = chunk as usize;
            self.seen[chunk] = false;
            let (size, producer) = (model.sizes[chunk], model.producers[chunk]);
            let tail = if producer == NOBODY || has(range.inside, producer) {
                touched_inside += size;
                SOURCE
            } else {
                self.nodes[producer as usize]
            };
            if tail == NONE {
                continue;
            }
            let readers = model.readers.get(chunk);
            let waits = |&&r: &&u32| !has(range.inside, r);
            let barred = |&r: &u32| self.nodes[r as usize] == NONE;
            let forever = model.kept[chunk] || readers.iter().filter(waits).any(barred);
            if forever && tail == SOURCE {
                constant += size;
            } else if forever {
                network.add_edge(tail, SINK, size);
            } else {
                let mut waiting = readers.iter().filter(waits);
                if let (Some(&only), None) = (waiting.next(), waiting.next()) {
                    network.add_edge(tail, self.nodes[only as usize], size);
                } else {
                    let hub = network.add_node();
                    network.add_edge(tail, hub, size);
                    for &reader in readers.iter().filter(waits) {
                        network.add_edge(hub, self.nodes[reader as usize], UNCUT);
                    }
                }
            }
        }
        if let Some(toll) = toll {
            let hub = network.add_node();
            network.add_edge(SOURCE, hub, toll.bytes);
            for &operator in toll.unless {
                network.add_edge(hub, self.nodes[operator as usize], UNCUT);
            }
        }
        let flow = network.max_flow();
        let reached = network.reached();
        let mut set = range.inside.to_vec();
        for &operator in range.free {
            let node = std::mem::replace(&mut self.nodes[operator as usize], NONE);
            if reached[node as usize] {
                insert(&mut set, operator);
            }
        }
        self.work += network.work;
        Least { touched: constant + flow, touched_inside, set }
    }
}

const SOURCE: u32 = 0;
const SINK: u32 = 1;

/// A capacity that no cut includes: all sizes together are smaller.
const UNCUT: Bytes = Bytes::MAX;

/// A flow network; Dinic's algorithm (1970).
#[derive(Default)]
struct Network {
    /// The first edge of each node.
    first: Vec<u32>,
    /// The next edge of the same node, for each edge. An edge and its reverse are neighbours.
    next: Vec<u32>,
    head: Vec<u32>,
    room: Vec<Bytes>,
    level: Vec<u32>,
    at: Vec<u32>,
    queue: Vec<u32>,
    work: u64,
}

impl Network {
    fn clear(&mut self) {
        self.first.clear();
        self.next.clear();
        self.head.clear();
        self.room.clear();
        self.work = 0;
        self.add_node();
        self.add_node();
    }

    fn add_node(&mut self) -> u32 {
        self.first.push(NONE);
        narrow(self.first.len() - 1)
    }

    fn add_edge(&mut self, from: u32, to: u32, room: Bytes) {
        for (from, to, room) in [(from, to, room), (to, from, 0)] {
            let edge = narrow(self.head.len());
            self.head.push(to);
            self.room.push(room);
            self.next.push(self.first[from as usize]);
            self.first[from as usize] = edge;
        }
    }

    fn max_flow(&mut self) -> Bytes {
        let mut flow = 0;
        while self.find_levels() {
            self.at.clone_from(&self.first);
            flow += self.blocking_flow();
        }
        flow
    }

    /// Finds the levels by distance from the source; returns whether the sink is reached.
    fn find_levels(&mut self) -> bool {
        self.level.clear();
        self.level.resize(self.first.len(), NONE);
        self.level[SOURCE as usize] = 0;
        self.queue.clear();
        self.queue.push(SOURCE);
        let mut at = 0;
        while let Some(&node) = self.queue.get(at) {
            at += 1;
            let mut edge = self.first[node as usize];
            while edge != NONE {
                self.work += 1;
                let head = self.head[edge as usize];
                if self.room[edge as usize] > 0 && self.level[head as usize] == NONE {
                    self.level[head as usize] = self.level[node as usize] + 1;
                    self.queue.push(head);
                }
                edge = self.next[edge as usize];
            }
        }
        self.level[SINK as usize] != NONE
    }

    /// Fills all shortest paths, without recursion.
    fn blocking_flow(&mut self) -> Bytes {
        let mut total = 0;
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        loop {
            self.work += 1;
            if node == SINK {
                let room = |&edge: &u32| self.room[edge as usize];
                let flow = path.iter().map(room).min().unwrap_or(0);
                total += flow;
                for &edge in &path {
                    if self.room[edge as usize] != UNCUT {
                        self.room[edge as usize] -= flow;
                    }
                    if self.room[edge as usize ^ 1] != UNCUT {
                        self.room[edge as usize ^ 1] += flow;
                    }
                }
                // Go back to where the first edge is full.
                let full = path.iter().position(|&edge| self.room[edge as usize] == 0);
                path.truncate(full.unwrap_or(0));
                node = path.last().map_or(SOURCE, |&edge| self.head[edge as usize]);
                continue;
            }
            let edge = self.at[node as usize];
            if edge == NONE {
                let Some(back) = path.pop() else { return total };
                node = self.head[back as usize ^ 1];
                self.at[node as usize] = self.next[self.at[node as usize] as usize];
                continue;
            }
            let head = self.head[edge as usize];
            if self.room[edge as usize] > 0
                && self.level[head as usize] == self.level[node as usize] + 1
            {
                path.push(edge);
                node = head;
            } else {
                self.at[node as usize] = self.next[edge as usize];
            }
        }
    }

    /// Returns the nodes on the source's side of the cut with the fewest nodes there.
    fn reached(&self) -> Vec<bool> {
        // The last search for levels found no path to the sink.
        self.level.iter().map(|&level| level != NONE).collect()
    }
}
