//! Trees: operators whose results all flow into one operator, and which no other operator uses.
//!
//! The operators of such a tree have one best order, whatever runs between them (Liu, 1987). The
//! order of a subtree divides into segments, each with a *hill*, the most bytes that it needs, and
//! a *valley*, the bytes that it leaves; hills fall and valleys rise. Segments of siblings are
//! merged by falling hill less valley; the parent comes last, and its list is divided again at its
//! largest hill, the least valley after that, and so on. By submodularity, the segments can be kept
//! together in any order of the whole graph, and no peak is lost if the tree runs in this order. So
//! the tree becomes a chain: each of its operators waits for the one before.

use crate::{
    Bytes,
    order::{
        model::Model,
        mutations::{Mutation, has_mutation},
        sets::{Lists, NOBODY, full, narrow},
    },
};

/// A piece of an order: the bytes that it needs and leaves, above those before its tree's first
/// operator.
#[derive(Clone, Debug)]
struct Segment {
    hill: Bytes,
    valley: Bytes,
    operators: Vec<u32>,
}

/// Returns the model with every tree turned into a chain; `None` if it has no tree.
pub(super) fn chained(model: &Model) -> Option<Model> {
    let operators = model.operators();
    let parents = parents(model);
    let all = full(operators);
    let mut lists: Vec<Vec<Segment>> = vec![Vec::new(); operators];
    let mut before: Vec<Option<u32>> = vec![None; operators];
    let mut chained = false;
    // Operators are numbered in an executable order, so children come first.
    for operator in 0..operators {
        let Some(parent) = parents[operator] else { continue };
        let children = model.predecessors.get(operator);
        let mut list = match children {
            [only] => std::mem::take(&mut lists[*only as usize]),
            _ => merged(children.iter().map(|&child| std::mem::take(&mut lists[child as usize]))),
        };
        let live = list.last().map_or(0, |segment| segment.valley);
        // Everything that it reads dies.
        let valley = model.produced[operator];
        // An output may be written over bytes that other chunks count.
        let hill = valley.max(live + model.step_adds(narrow(operator), &all));
        push(&mut list, Segment { hill, valley, operators: vec![narrow(operator)] });
        if parent == NOBODY {
            let order = list.iter().flat_map(|segment| &segment.operators);
            let order: Vec<u32> = order.copied().collect();
            for pair in order.windows(2) {
                before[pair[1] as usize] = Some(pair[0]);
                chained = true;
            }
        } else {
            lists[operator] = list;
        }
    }
    chained.then(|| {
        let predecessors = (0..operators).map(|operator| {
            let mut list = model.predecessors.get(operator).to_vec();
            list.extend(before[operator]);
            list.sort_unstable();
            list.dedup();
            list
        });
        let predecessors = Lists::new(predecessors);
        let successors = predecessors.inverted(operators);
        Model { predecessors, successors, ..model.clone() }
    })
}

/// Returns the order of a model that allows only one.
pub(super) fn only_order(model: &Model) -> Option<Vec<u32>> {
    let mut waits: Vec<usize> =
        (0..model.operators()).map(|operator| model.predecessors.get(operator).len()).collect();
    let mut sources = (0..narrow(model.operators())).filter(|&o| waits[o as usize] == 0);
    let mut next = sources.next().filter(|_| sources.next().is_none());
    let mut order = Vec::with_capacity(model.operators());
    while let Some(operator) = next {
        order.push(operator);
        next = None;
        for &after in model.successors.get(operator as usize) {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 && next.replace(after).is_some() {
                return None;
            }
        }
    }
    (order.len() == model.operators()).then_some(order)
}

/// Returns the parent of each operator in a tree, and [`NOBODY`] for the root of a largest tree.
///
/// An operator is in a tree if it is the only successor of each of its predecessors, these are in
/// trees themselves, and it alone reads what they produce, and nothing live from the start. Where
/// operators update chunks (see `fuse`), a chunk may outlive its producer's only successor.
pub(super) fn parents(model: &Model) -> Vec<Option<u32>> {
    let operators = model.operators();
    let mut parents: Vec<Option<u32>> = vec![None; operators];
    for operator in 0..operators {
        let reads = model.reads.get(operator);
        let supplied = |&chunk: &u32| model.producers[chunk as usize] == NOBODY;
        let children = model.predecessors.get(operator);
        let dies_here = |&chunk: &u32| {
            let readers = model.readers.get(chunk as usize);
            !model.kept[chunk as usize]
                && (readers == [narrow(operator)] || has_mutation(Mutation::ReadAboveParent))
        };
        let inner = |&child: &u32| {
            parents[child as usize].is_some()
                && model.successors.get(child as usize).len() == 1
                && model.produces.get(child as usize).iter().all(dies_here)
        };
        if !reads.iter().any(supplied) && children.iter().all(inner) {
            for &child in children {
                parents[child as usize] = Some(narrow(operator));
            }
            parents[operator] = Some(NOBODY);
        }
    }
    parents
}

/// Merges the segments of siblings into their best order.
fn merged(lists: impl Iterator<Item = Vec<Segment>>) -> Vec<Segment> {
    // The segments, each with the bytes that are live in its own tree before it.
    let mut segments: Vec<(Bytes, Segment)> = Vec::new();
    for list in lists {
        let mut live = 0;
        for segment in list {
            let valley = segment.valley;
            segments.push((live, segment));
            live = valley;
        }
    }
    // Within a list, hill less valley falls, so a stable sort keeps its order.
    segments.sort_by_key(|(_, segment)| {
        let valley = if has_mutation(Mutation::TreeByHill) { 0 } else { segment.valley };
        std::cmp::Reverse(segment.hill - valley)
    });
    let mut live = 0;
    let mut list = Vec::new();
    for (own, segment) in segments {
        let others = live - own;
        live = others + segment.valley;
        push(
            &mut list,
            Segment { hill: others + segment.hill, valley: live, operators: segment.operators },
        );
    }
    list
}

/// Adds a segment after others and joins those that no longer fall and rise.
fn push(list: &mut Vec<Segment>, mut segment: Segment) {
    // A segment is not a stopping point if its hill is no higher than the next one's, or its valley
    // no lower.
    while let Some(last) =
        list.pop_if(|last| last.hill <= segment.hill || last.valley >= segment.valley)
    {
        let mut operators = last.operators;
        operators.append(&mut segment.operators);
        segment = Segment { hill: last.hill.max(segment.hill), valley: segment.valley, operators };
    }
    list.push(segment);
}
