//! Branches that are equal: heads, experts, members of an ensemble.
//!
//! Two branches are *symmetric* if exchanging their operators, one for one, leaves the model as it is:
//! sizes, dependencies, readers, and the requests to overwrite. An exchange turns an order into
//! another with the same steps. So if two states differ only by such exchanges, a search needs only one
//! of them, as long as both have the same goal. States are compared by their [`key`](Symmetry::key): the
//! state with the symmetric branches sorted, if the goal treats them the same.
//!
//! Candidates come from colour refinement: two operators have the same colour if they, their neighbours,
//! the neighbours of these and so on look the same. Without the operators whose colour is unique, the
//! graph falls into connected parts. These are compared one for one, and only exactly symmetric branches
//! are used.

use crate::effort::Effort;
use std::collections::{BTreeMap, HashMap};

use crate::order::{
    model::Model,
    mutations::{Mutation, has_mutation},
    overwrites::Overwrite,
    sets::{NOBODY, has, insert, narrow, remove},
};

/// The most operators of a branch: one bit each.
const LONGEST: usize = 64;

/// The most rounds of colour refinement.
const ROUNDS: usize = 64;

/// The symmetric branches of a model.
#[derive(Debug, Default)]
pub(super) struct Symmetry {
    /// Sets of branches that are symmetric, each with its operators in the same order.
    pub(super) families: Vec<Vec<Vec<u32>>>,
}

impl Symmetry {
    pub(super) fn new(model: &Model, effort: &mut Effort) -> Self {
        let colours = colours(model, effort);
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for &colour in &colours {
            *counts.entry(colour).or_default() += 1;
        }
        let is_single = |operator: u32| counts[&colours[operator as usize]] == 1;
        // Parts of equal colours, in the order of their first operators.
        let mut alike: BTreeMap<Vec<u64>, Vec<Vec<u32>>> = BTreeMap::new();
        let mut seen = vec![false; model.operators()];
        for first in 0..narrow(model.operators()) {
            if seen[first as usize] || is_single(first) {
                continue;
            }
            let mut part = vec![first];
            seen[first as usize] = true;
            let mut at = 0;
            while let Some(&operator) = part.get(at) {
                at += 1;
                let operator = operator as usize;
                let before = model.predecessors.get(operator).iter();
                for &other in before.chain(model.successors.get(operator)) {
                    if !is_single(other) && !std::mem::replace(&mut seen[other as usize], true) {
                        part.push(other);
                    }
                }
            }
            if part.len() <= LONGEST {
                part.sort_unstable_by_key(|&operator| (colours[operator as usize], operator));
                let key = part.iter().map(|&operator| colours[operator as usize]).collect();
                alike.entry(key).or_default().push(part);
            }
        }
        let mut families = Vec::new();
        for parts in alike.into_values() {
            let mut family: Vec<Vec<u32>> = Vec::new();
            for part in parts {
                let chunks = part.iter().flat_map(|&own| {
                    let made = model.produces.get(own as usize);
                    made.iter().map(|&chunk| 1 + model.readers.get(chunk as usize).len() as u64)
                });
                effort.spend(8 * part.len() as u64 + chunks.sum::<u64>());
                let is_symmetric = |first: &Vec<u32>| {
                    Exchange::new(first, &part).is_exact(model)
                        || has_mutation(Mutation::SymmetryByColour)
                };
                if family.first().is_none_or(is_symmetric) {
                    family.push(part);
                }
            }
            if family.len() > 1 {
                families.push(family);
            }
        }
        Self { families }
    }

    /// Returns the symmetric branches that are alike in a downset as well.
    pub(super) fn alike_in(&self, goal: &[u64]) -> Self {
        let mut families = Vec::new();
        for family in &self.families {
            let mut alike: BTreeMap<u64, Vec<Vec<u32>>> = BTreeMap::new();
            for branch in family {
                let in_goal =
                    if has_mutation(Mutation::SymmetryInAnyGoal) { 0 } else { bits(branch, goal) };
                alike.entry(in_goal).or_default().push(branch.clone());
            }
            families.extend(alike.into_values().filter(|family| family.len() > 1));
        }
        Self { families }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.families.is_empty()
    }

    /// The number of operators in branches, which a key visits.
    pub(super) fn operators(&self) -> usize {
        self.families.iter().map(|family| family.len() * family[0].len()).sum()
    }

    /// Sorts the branches of each family by which of their operators have run. Two states have the same key if
    /// exchanges of branches make them equal.
    pub(super) fn key(&self, set: &[u64], key: &mut Vec<u64>) {
        key.clear();
        key.extend_from_slice(set);
        let mut all: Vec<u64> = Vec::new();
        for family in &self.families {
            all.clear();
            all.extend(family.iter().map(|branch| bits(branch, set)));
            if all.is_sorted() {
                continue;
            }
            all.sort_unstable();
            for (branch, &bits) in family.iter().zip(&all) {
                for (at, &operator) in branch.iter().enumerate() {
                    if bits >> at & 1 == 1 {
                        insert(key, operator);
                    } else {
                        remove(key, operator);
                    }
                }
            }
        }
    }
}

/// Returns the operators of a branch that have run.
fn bits(branch: &[u32], set: &[u64]) -> u64 {
    let bit = |(at, &operator): (usize, &u32)| u64::from(has(set, operator)) << at;
    branch.iter().enumerate().map(bit).sum()
}

/// Computes the colours of the operators by refinement: what they and their neighbours look like.
fn colours(model: &Model, effort: &mut Effort) -> Vec<u64> {
    let operators = model.operators();
    let sum = |items: &[u32], colours: &[u64], salt: u64| {
        let mixed = items.iter().map(|&item| mix(colours[item as usize], salt));
        mixed.fold(0, u64::wrapping_add)
    };
    let mut colours: Vec<u64> = model.adds.clone();
    let mut distinct = 0;
    for _ in 0..ROUNDS {
        let chunks: Vec<u64> = (0..model.sizes.len())
            .map(|chunk| {
                let producer = model.producers[chunk];
                let made = if producer == NOBODY { 0 } else { colours[producer as usize] };
                let own = mix(model.sizes[chunk], u64::from(model.kept[chunk]));
                mix(mix(own, made), sum(model.readers.get(chunk), &colours, 1))
            })
            .collect();
        colours = (0..operators)
            .map(|operator| {
                let before = sum(model.predecessors.get(operator), &colours, 2);
                let after = sum(model.successors.get(operator), &colours, 3);
                let reads = sum(model.reads.get(operator), &chunks, 4);
                let makes = sum(model.produces.get(operator), &chunks, 5);
                let own = mix(colours[operator], before);
                mix(mix(mix(own, after), reads), makes)
            })
            .collect();
        let edges = model.predecessors.entries() + model.reads.entries() + operators;
        effort.spend(4 * edges as u64);
        let mut sorted = colours.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() == distinct {
            break;
        }
        distinct = sorted.len();
    }
    colours
}

fn mix(a: u64, b: u64) -> u64 {
    let mixed = (a ^ b.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_add(b.wrapping_mul(0xbf58_476d_1ce4_e5b9))
}

/// The exchange of two branches.
struct Exchange<'a> {
    one: &'a [u32],
    /// The operators of both, each with the one that takes its place.
    image: HashMap<u32, u32>,
}

impl<'a> Exchange<'a> {
    fn new(one: &'a [u32], other: &'a [u32]) -> Self {
        let there = one.iter().copied().zip(other.iter().copied());
        let back = other.iter().copied().zip(one.iter().copied());
        Self { one, image: there.chain(back).collect() }
    }

    /// Returns whether the model is the same after the exchange.
    fn is_exact(&self, model: &Model) -> bool {
        // The chunks that the branches produce, each with the one that takes its place.
        let mut chunks: HashMap<u32, u32> = HashMap::new();
        for &operator in self.one {
            let (made, other) = (
                model.produces.get(operator as usize),
                model.produces.get(self.image[&operator] as usize),
            );
            if made.len() != other.len() {
                return false;
            }
            for (&chunk, &other) in made.iter().zip(other) {
                chunks.extend([(chunk, other), (other, chunk)]);
            }
        }
        let operator = |operator: u32| self.image.get(&operator).copied().unwrap_or(operator);
        let chunk = |chunk: u32| chunks.get(&chunk).copied().unwrap_or(chunk);
        let same = |from: &[u32], to: &[u32], image: &dyn Fn(u32) -> u32| {
            let mut from: Vec<u32> = from.iter().map(|&item| image(item)).collect();
            let mut to = to.to_vec();
            from.sort_unstable();
            to.sort_unstable();
            from == to
        };
        let same_operator = |&from: &u32| {
            let (from, to) = (from as usize, operator(from) as usize);
            model.adds[from] == model.adds[to]
                && same(model.predecessors.get(from), model.predecessors.get(to), &operator)
                && same(model.successors.get(from), model.successors.get(to), &operator)
                && same(model.reads.get(from), model.reads.get(to), &chunk)
                && model.overwrites[from].len() == model.overwrites[to].len()
                && { model.overwrites[from].iter() }
                    .zip(&model.overwrites[to])
                    .all(|(from, to)| from.becomes(to, chunk))
                // Outputs are grouped in the same way.
                && (1..model.overwrites[from].len()).all(|at| {
                    let joined = |overwrites: &[Overwrite]| {
                        overwrites[at].output == overwrites[at - 1].output
                    };
                    joined(&model.overwrites[from]) == joined(&model.overwrites[to])
                })
        };
        let same_chunk = |(&from, &to): (&u32, &u32)| {
            let (from, to) = (from as usize, to as usize);
            (model.sizes[from], model.kept[from]) == (model.sizes[to], model.kept[to])
                && same(model.readers.get(from), model.readers.get(to), &operator)
        };
        // If an operator outside may overwrite a chunk of the branches, it may also overwrite the one that takes its
        // place, and with the same effect.
        let readers = chunks.keys().flat_map(|&chunk| model.readers.get(chunk as usize));
        let mut outside: Vec<u32> =
            readers.copied().filter(|reader| !self.image.contains_key(reader)).collect();
        outside.sort_unstable();
        outside.dedup();
        self.image.keys().all(same_operator)
            && chunks.iter().all(same_chunk)
            && outside.iter().all(|&reader| {
                let overwrites = &model.overwrites[reader as usize];
                let named: Vec<u32> = overwrites.iter().map(|overwrite| overwrite.chunk).collect();
                overwrites.iter().all(|overwrite| overwrite.is_like(&overwrites[0]))
                    && same(&named, &named, &chunk)
            })
    }
}
