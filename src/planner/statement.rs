//! A problem as the planners that support every feature read it: bodies with their boxes, and pools to place
//! them in. A plain problem is one pool, and its chains are the bodies.

use std::{borrow::Cow, collections::HashMap};

use crate::problem::{
    ChunkId, Problem,
    demands::{AllowedPool, Body, Pool, PoolId, TimedBox, ranks},
};

/// Bodies to place in pools.
pub(super) struct Statement<'p> {
    pub(super) problem: &'p Problem,
    pub(super) pools: Cow<'p, [Pool]>,
    pub(super) bodies: Cow<'p, [Body]>,
    /// By body.
    pub(super) boxes: Vec<Vec<TimedBox>>,
    /// By body, with several streams: the places of its boxes in a tree over clocks.
    pub(super) ranks: Vec<Vec<usize>>,
    /// By chunk: the groups of chunks kept apart that it is in.
    pub(super) groups: HashMap<ChunkId, Vec<usize>>,
}

impl<'p> Statement<'p> {
    pub(super) fn of(problem: &'p Problem) -> Self {
        if problem.is_plain() {
            let bodies: Vec<Body> = problem.roots().map(|root| chain(problem, root)).collect();
            let boxes = problem.roots().map(|root| chain_boxes(problem, root)).collect();
            let pools = vec![Pool::new("pool")];
            let (bodies, ranks, groups) = (bodies.into(), Vec::new(), HashMap::new());
            return Self { problem, pools: pools.into(), bodies, boxes, ranks, groups };
        }
        let bodies = problem.bodies();
        let boxes: Vec<_> = bodies.iter().map(|body| problem.boxes(body)).collect();
        let is_line = problem.demands().is_none_or(|demands| demands.streams == 1);
        let ranks = if is_line { Vec::new() } else { ranks(&boxes) };
        let mut groups: HashMap<ChunkId, Vec<usize>> = HashMap::new();
        let apart = problem.demands().map_or(&[][..], |demands| &demands.apart);
        for (group, chunks) in apart.iter().enumerate() {
            for &chunk in chunks {
                let groups = groups.entry(chunk).or_default();
                if groups.last() != Some(&group) {
                    groups.push(group);
                }
            }
        }
        let (pools, bodies) = (problem.pools().into(), bodies.into());
        Self { problem, pools, bodies, boxes, ranks, groups }
    }

    /// The groups of chunks kept apart.
    pub(super) fn apart(&self) -> &'p [Vec<ChunkId>] {
        self.problem.demands().map_or(&[], |demands| &demands.apart)
    }

    /// The number of streams.
    pub(super) fn streams(&self) -> usize {
        self.problem.demands().map_or(1, |demands| demands.streams)
    }

    /// The cost of a body's traffic if it lies in a pool.
    pub(super) fn cost(&self, body: &Body, pool: PoolId) -> u128 {
        let cost = u128::from(self.pools[pool.index()].cost);
        let bytes = body.members.iter().map(|&(chunk, _)| u128::from(self.problem.traffic(chunk)));
        bytes.map(|bytes| bytes * cost).fold(0, u128::saturating_add)
    }
}

/// A chain of a plain problem.
fn chain(problem: &Problem, root: ChunkId) -> Body {
    let at = |chunk| problem.place_in_chain(chunk).1;
    let allowed = AllowedPool { pool: PoolId(0), modulus: problem.alignment(), rest: 0 };
    Body {
        members: problem.chain(root).map(|chunk| (chunk, at(chunk))).collect(),
        pools: vec![allowed],
        fixed: None,
        extent: problem.padded_size(root),
    }
}

fn chain_boxes(problem: &Problem, root: ChunkId) -> Vec<TimedBox> {
    let timed = |segment: crate::problem::Segment| TimedBox {
        begin: Box::new([segment.begin]),
        end: Box::new([segment.end]),
        bytes: segment.low..segment.high,
    };
    problem.segments(root).map(timed).collect()
}
