//! Chooses an order near the given one among those with the same peak: few moved operators are easy to
//! review, and runtimes fuse neighbours.

use crate::effort::Effort;
use crate::{
    Bytes,
    order::{fewest::fewest, model::Model, sets::narrow},
};

/// Returns an order with a peak of at most `most` bytes that moves no more operators than this one,
/// and as few as possible if a small part of the effort suffices to find that out. Operators are numbered
/// in the given order.
pub(super) fn nearest(
    model: &Model,
    order: Vec<u32>,
    most: Bytes,
    effort: &mut Effort,
) -> Vec<u32> {
    let order = put_all_back(model, order, most, effort);
    // A small part of the work that the search has taken, so that quick answers stay quick.
    let end = effort.looks() + 200_000 + (effort.looks() / 16).min(effort.part(32));
    fewest(model, most, moved(&order).len(), effort, end).unwrap_or(order)
}

/// Puts operators back to their places in the given order, one after another, as long as the peak allows it.
fn put_all_back(model: &Model, mut order: Vec<u32>, most: Bytes, effort: &mut Effort) -> Vec<u32> {
    let looks = model.reads.entries() + 4 * model.operators();
    // This may take a part of the search's effort, even if that is spent.
    let end = effort.looks() + 2_000_000 + effort.part(8);
    let fits = |order: &[u32], effort: &mut Effort| {
        if effort.is_stopped() {
            return false;
        }
        effort.spend(looks as u64);
        effort.looks() < end && model.peak(order) <= most
    };
    longest_prefix(&mut order, &mut |order| fits(order, effort));
    longest_suffix(&mut order, &mut |order| fits(order, effort));
    let mut stays = vec![true; order.len()];
    let mut moved = moved(&order);
    for &operator in &moved {
        stays[operator as usize] = false;
    }
    let mut left = Vec::new();
    while !moved.is_empty() {
        for &operator in &moved {
            match put_back(model, &order, &stays, operator) {
                _ if effort.is_stopped() || effort.looks() >= end => return order,
                Some(nearer) if fits(&nearer, effort) => {
                    order = nearer;
                    stays[operator as usize] = true;
                }
                _ => left.push(operator),
            }
            effort.spend(order.len() as u64);
        }
        if left.len() == moved.len() {
            break;
        }
        moved = std::mem::take(&mut left);
    }
    order
}

/// Returns the fewest operators that must be moved from the given order: those outside a longest
/// ascending run.
pub(super) fn moved(order: &[u32]) -> Vec<u32> {
    // For each length, the index of the lowest operator at which an ascending run of that length ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(order.len());
    for (place, &operator) in order.iter().enumerate() {
        let length = ends.partition_point(|&end| order[end] < operator);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(place);
        } else {
            ends[length] = place;
        }
    }
    let mut stays = vec![false; order.len()];
    let mut next = ends.last().copied();
    while let Some(place) = next {
        stays[order[place] as usize] = true;
        next = before[place];
    }
    (0..narrow(order.len())).filter(|&operator| !stays[operator as usize]).collect()
}

/// Starts with as many operators as possible in the given order.
fn longest_prefix(order: &mut Vec<u32>, fits: &mut impl FnMut(&[u32]) -> bool) {
    let candidate = |order: &[u32], length: u32| -> Vec<u32> {
        let rest = order.iter().copied().filter(|&operator| operator >= length);
        (0..length).chain(rest).collect()
    };
    let (mut good, mut bad) = (0, narrow(order.len()));
    while good + 1 < bad {
        let middle = u32::midpoint(good, bad);
        let nearer = candidate(order, middle);
        if fits(&nearer) {
            *order = nearer;
            good = middle;
        } else {
            bad = middle;
        }
    }
}

/// Ends with as many operators as possible in the given order.
fn longest_suffix(order: &mut Vec<u32>, fits: &mut impl FnMut(&[u32]) -> bool) {
    let operators = narrow(order.len());
    let candidate = |order: &[u32], first: u32| -> Vec<u32> {
        let rest = order.iter().copied().filter(|&operator| operator < first);
        rest.chain(first..operators).collect()
    };
    let (mut bad, mut good) = (0, operators);
    while bad + 1 < good {
        let middle = u32::midpoint(bad, good);
        let nearer = candidate(order, middle);
        if fits(&nearer) {
            *order = nearer;
            good = middle;
        } else {
            bad = middle;
        }
    }
}

/// Returns the order with an operator moved right after the last operator that precedes it in the given
/// order and stays, if it can run there. The operators that stay keep the given order among themselves,
/// and so does this operator then.
fn put_back(model: &Model, order: &[u32], stays: &[bool], operator: u32) -> Option<Vec<u32>> {
    let behind = (0..operator).rev().find(|&other| stays[other as usize]);
    let mut nearer: Vec<u32> = Vec::with_capacity(order.len());
    if behind.is_none() {
        nearer.push(operator);
    }
    for &other in order.iter().filter(|&&other| other != operator) {
        nearer.push(other);
        if Some(other) == behind {
            nearer.push(operator);
        }
    }
    // Everything else keeps its order, so only the operator's own neighbours can be violated.
    let mut waits = model.predecessors.get(operator as usize).len();
    for &other in &nearer {
        if other == operator {
            return (waits == 0).then_some(nearer);
        }
        if model.successors.get(operator as usize).contains(&other) {
            return None;
        }
        waits -= usize::from(model.predecessors.get(operator as usize).contains(&other));
    }
    None
}
