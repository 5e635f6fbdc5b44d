//! The best plan of a graph over some choices of ties.

use super::{
    bodies::{Body, bodies},
    model::Model,
    packing::{Sizes, TooMany, alive, smallest},
    ties::Link,
};

/// A best plan.
#[derive(Clone, Debug)]
pub struct Best {
    /// The size of the only pool; or the traffic, then the sizes of the slow pool and of the fast one.
    pub objective: Vec<u128>,
    pub links: Vec<Link>,
    /// By tensor: its pool and its address, if it lies in one.
    pub places: Vec<Option<(usize, i64)>>,
    /// By tensor: the tensor outside the pools in whose memory it lies, and its address there.
    pub outside: Vec<Option<(usize, i64)>>,
}

impl Best {
    pub fn new(model: &Model, objective: Vec<u128>, links: &[Link]) -> Self {
        let none = vec![None; model.tensors.len()];
        Self { objective, links: links.to_vec(), places: none.clone(), outside: none }
    }

    /// Puts a body into a pool, or outside.
    pub fn put(&mut self, body: &Body, pool: usize, address: i64) {
        for &(tensor, at) in &body.tensors {
            match body.outside {
                Some(outside) => self.outside[tensor] = Some((outside, at)),
                None => self.places[tensor] = Some((pool, address + at)),
            }
        }
    }

    /// The size of the only pool.
    pub fn pool(&self) -> u64 {
        self.objective.last().map_or(0, |&size| size as u64)
    }
}

/// The smallest plan in one pool, if one is smaller than `below`.
pub fn one_pool(model: &Model, choices: &[Vec<Link>], below: i64) -> Result<Option<Best>, TooMany> {
    let mut cases: Vec<(i64, &Vec<Link>, Vec<Body>)> = Vec::new();
    for links in choices {
        if let Some(all) = bodies(model, links) {
            let inside: Vec<&Body> = all.iter().filter(|body| body.outside.is_none()).collect();
            cases.push((alive(model, &inside), links, all));
        }
    }
    cases.sort_by_key(|&(alive, ..)| alive);
    let (mut best, mut below) = (None, below);
    for (least, links, all) in cases {
        if least >= below {
            break;
        }
        let inside: Vec<&Body> = all.iter().filter(|body| body.outside.is_none()).collect();
        let sizes = Sizes { least, below, capacity: i64::MAX };
        if let Some(packed) = smallest(model, &inside, sizes)? {
            below = packed.size;
            let mut found = Best::new(model, vec![packed.size as u128], links);
            for (body, address) in inside.iter().zip(packed.addresses) {
                found.put(body, 0, address);
            }
            for body in all.iter().filter(|body| body.outside.is_some()) {
                found.put(body, 0, 0);
            }
            best = Some(found);
        }
    }
    Ok(best)
}
