//! Trees: operators whose results flow into one, and that nothing else touches.
//!
//! Among the operators of such a tree there is one best order, whatever runs between them (Liu,
//! 1987). The order of a subtree falls into segments, each a *hill*, the most bytes it needs, and
//! the *valley* that it leaves; hills fall and valleys rise. Segments of siblings are merged by
//! falling hill less valley; the parent comes last, and its list is cut again at its largest hill, the
//! least valley after that, and so on. By submodularity the segments can be kept together in any
//! order of the whole graph, and none of its orders is lost if the tree runs in this one. So the
//! tree becomes a chain: each of its operators waits for the one before.

use crate::{
    Bytes,
    order::{
        model::{Model, NOBODY},
        sets::{Lists, full, narrow},
    },
};

/// A piece of an order: the bytes that it needs, and leaves, above those before its tree's first
/// operator.
#[derive(Clone, Debug)]
struct Segment {
    hill: Bytes,
    valley: Bytes,
    operators: Vec<u32>,
}

/// The model with every tree turned into a chain; `None` if it has no tree.
pub(super) fn chained(model: &Model) -> Option<Model> {
    let operators = model.operators();
    let parents = parents(model);
    let all = full(operators);
    let mut lists: Vec<Vec<Segment>> = vec![Vec::new(); operators];
    let mut before: Vec<Option<u32>> = vec![None; operators];
    let mut chained = false;
    // Operators are numbered in an order in which they can run, so that children come first.
    for operator in 0..operators {
        let Some(parent) = parents[operator] else { continue };
        let children = model.predecessors.get(operator);
        let mut list = match children {
            [only] => std::mem::take(&mut lists[*only as usize]),
            _ => merged(children.iter().map(|&child| std::mem::take(&mut lists[child as usize]))),
        };
        let live = list.last().map_or(0, |segment| segment.valley);
        // All that it reads dies.
        let hill = live + model.step_adds(narrow(operator), &all);
        push(
            &mut list,
            Segment { hill, valley: model.produced[operator], operators: vec![narrow(operator)] },
        );
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

/// By operator of a tree, its parent, and [`NOBODY`] for the root of a largest tree.
///
/// An operator is in a tree if all operators before it are, each with it alone behind, and all that
/// it reads can die and comes from those.
fn parents(model: &Model) -> Vec<Option<u32>> {
    let operators = model.operators();
    let mut parents: Vec<Option<u32>> = vec![None; operators];
    for operator in 0..operators {
        let reads = model.reads.get(operator);
        let alone = |&chunk: &u32| {
            model.readers.get(chunk as usize).len() == 1
                && model.producers[chunk as usize] != NOBODY
        };
        let children = model.predecessors.get(operator);
        let inner = |&child: &u32| {
            let kept = model.produces.get(child as usize).iter();
            parents[child as usize].is_some()
                && model.successors.get(child as usize).len() == 1
                && !{ kept }.any(|&chunk| model.kept[chunk as usize])
        };
        if reads.iter().all(alone) && children.iter().all(inner) {
            for &child in children {
                parents[child as usize] = Some(narrow(operator));
            }
            parents[operator] = Some(NOBODY);
        }
    }
    parents
}

/// The segments of siblings in their best order.
fn merged(lists: impl Iterator<Item = Vec<Segment>>) -> Vec<Segment> {
    // Segments with the bytes that their own tree has live before them.
    let mut segments: Vec<(Bytes, Segment)> = Vec::new();
    for list in lists {
        let mut live = 0;
        for segment in list {
            let valley = segment.valley;
            segments.push((live, segment));
            live = valley;
        }
    }
    // Within a list hill less valley falls, so that a stable sort keeps its order.
    segments.sort_by_key(|(_, segment)| std::cmp::Reverse(segment.hill - segment.valley));
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

/// Adds a segment behind others, and joins what no longer falls and rises.
fn push(list: &mut Vec<Segment>, mut segment: Segment) {
    // A segment with a hill no higher than the one behind it, or with a valley no lower, is no stop.
    while let Some(last) =
        list.pop_if(|last| last.hill <= segment.hill || last.valley >= segment.valley)
    {
        let mut operators = last.operators;
        operators.append(&mut segment.operators);
        segment = Segment { hill: last.hill.max(segment.hill), valley: segment.valley, operators };
    }
    list.push(segment);
}
