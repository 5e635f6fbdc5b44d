//! Finds the downset with the fewest live bytes between two others, by a minimum cut.
//!
//! Live bytes are submodular, so their minimum over all downsets `R` with `inside ⊆ R ⊆ inside ∪ free`
//! is a minimum cut. The source side of the cut is `R`. Every operator has an edge of infinite capacity
//! to each of its predecessors. Every chunk is an edge from its producer to its readers whose capacity is
//! the chunk's size; it is cut if the producer has run and some reader has not.

use crate::{
    Bytes,
    flow::{NONE, Network, SINK, SOURCE, UNCUT},
    order::{
        model::Model,
        sets::{NOBODY, has, insert},
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
    /// The live bytes of the chunks that the free operators touch, plus the toll if it counts.
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
