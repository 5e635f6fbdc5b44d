//! Orders by simple rules, which the search tries to improve.

use crate::effort::Effort;
use std::cmp::Reverse;

use crate::{
    Bytes,
    order::{
        lazy::Lazies,
        model::Model,
        sets::{full, has, insert, narrow, remove},
    },
};

/// Returns the order of every rule, except those that take too long for a large graph.
pub(super) fn orders(model: &Model, lazies: &Lazies, effort: &mut Effort) -> Vec<Vec<u32>> {
    // The rules together take no more than a part of the effort.
    let looks = effort.part(32);
    let mut orders = Vec::new();
    for rule in [Rule::LeastStep, Rule::LeastLive] {
        orders.extend(forwards(model, lazies, rule, looks, effort));
        orders.extend(backwards(model, rule, looks, effort));
    }
    let mut bytes: Vec<Bytes> = vec![0; model.operators()];
    let by_index: Vec<Bytes> = bytes.clone();
    orders.push(post_order(model, lazies, &by_index));
    for (operator, bytes) in bytes.iter_mut().enumerate() {
        *bytes = model.adds[operator];
    }
    orders.push(post_order(model, lazies, &bytes));
    orders.push(post_order(model, lazies, &tree_peaks(model, lazies)));
    effort.spend(12 * (model.operators() + model.predecessors.entries()) as u64);
    orders
}

/// Returns the order that runs the operator whose step raises the peak least; operators may be
/// numbered in any way.
pub(super) fn by_step(model: &Model, effort: &mut Effort) -> Option<Vec<u32>> {
    let looks = effort.part(32);
    forwards(model, &Lazies::new(model), Rule::LeastStep, looks, effort)
}

#[derive(Clone, Copy)]
enum Rule {
    /// The operator whose step raises the peak least.
    LeastStep,
    /// The operator that leaves the fewest live bytes.
    LeastLive,
}

impl Rule {
    fn key(self, step: Bytes, after: Bytes, peak: Bytes) -> (Bytes, Bytes) {
        match self {
            Self::LeastStep => (step.max(peak), after),
            Self::LeastLive => (after, step),
        }
    }
}

/// Builds an order from its beginning, one ready operator at a time.
fn forwards(
    model: &Model,
    lazies: &Lazies,
    rule: Rule,
    looks: u64,
    effort: &mut Effort,
) -> Option<Vec<u32>> {
    let operators = model.operators();
    let end = effort.looks() + looks;
    let mut order: Vec<u32> = Vec::with_capacity(operators);
    let mut set = vec![0; model.words()];
    let mut waits: Vec<u32> =
        (0..operators).map(|operator| narrow(lazies.predecessors.get(operator).len())).collect();
    let mut ready: Vec<u32> = (0..narrow(operators))
        .filter(|&o| waits[o as usize] == 0 && !lazies.lazy[o as usize])
        .collect();
    let (mut live, mut peak) = (model.live_at_start(), 0);
    while !ready.is_empty() {
        let mut best: Option<(_, usize, Bytes, Bytes)> = None;
        for (at, &operator) in ready.iter().enumerate() {
            let needed = lazies.needs.get(operator as usize).iter();
            let lazy = needed.filter(|&&lazy| !has(&set, lazy));
            let lazy: Bytes = lazy.map(|&lazy| model.produced[lazy as usize]).sum();
            let step = live + lazy + model.step_adds(operator, &set);
            let after =
                live + lazy + model.produced[operator as usize] - model.frees(operator, &set);
            let key = (rule.key(step, after, peak), operator);
            if best.is_none_or(|(other, ..)| key < other) {
                best = Some((key, at, step, after));
            }
        }
        effort.spend(6 * ready.len() as u64);
        let (_, at, step, after) = best.filter(|_| effort.looks() < end && !effort.is_spent())?;
        let operator = ready.swap_remove(at);
        for &lazy in lazies.needs.get(operator as usize) {
            if !has(&set, lazy) {
                insert(&mut set, lazy);
                order.push(lazy);
            }
        }
        insert(&mut set, operator);
        order.push(operator);
        (live, peak) = (after, peak.max(step));
        for &next in lazies.successors.get(operator as usize) {
            waits[next as usize] -= 1;
            if waits[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    Some(order)
}

/// Builds an order from its end, one operator at a time.
fn backwards(model: &Model, rule: Rule, looks: u64, effort: &mut Effort) -> Option<Vec<u32>> {
    let operators = model.operators();
    let end = effort.looks() + looks;
    let mut order: Vec<u32> = Vec::with_capacity(operators);
    let mut set = full(operators);
    let mut waits: Vec<u32> =
        (0..operators).map(|operator| narrow(model.successors.get(operator).len())).collect();
    let mut ready: Vec<u32> =
        (0..narrow(operators)).filter(|&operator| waits[operator as usize] == 0).collect();
    let (mut live, mut peak) = (model.live_after(&set), 0);
    while !ready.is_empty() {
        let mut best: Option<(_, usize, Bytes, Bytes)> = None;
        for (at, &operator) in ready.iter().enumerate() {
            let before = live + model.frees(operator, &set) - model.produced[operator as usize];
            let step = before + model.step_adds(operator, &set);
            let key = (rule.key(step, before, peak), Reverse(operator));
            if best.is_none_or(|(other, ..)| key < other) {
                best = Some((key, at, step, before));
            }
        }
        effort.spend(6 * ready.len() as u64);
        let (_, at, step, before) = best.filter(|_| effort.looks() < end && !effort.is_spent())?;
        let operator = ready.swap_remove(at);
        remove(&mut set, operator);
        order.push(operator);
        (live, peak) = (before, peak.max(step));
        for &first in model.predecessors.get(operator as usize) {
            waits[first as usize] -= 1;
            if waits[first as usize] == 0 {
                ready.push(first);
            }
        }
    }
    order.reverse();
    Some(order)
}

/// Visits the predecessors of each final operator first, those with the largest key before the
/// others.
fn post_order(model: &Model, lazies: &Lazies, keys: &[Bytes]) -> Vec<u32> {
    let operators = model.operators();
    let mut order: Vec<u32> = Vec::with_capacity(operators);
    let mut seen = vec![false; operators];
    let mut stack: Vec<(u32, bool)> = (0..narrow(operators))
        .rev()
        .filter(|&operator| model.successors.get(operator as usize).is_empty())
        .map(|operator| (operator, false))
        .collect();
    while let Some((operator, done)) = stack.pop() {
        if done {
            order.push(operator);
        } else if !std::mem::replace(&mut seen[operator as usize], true) {
            stack.push((operator, true));
            let mut first: Vec<u32> = model.predecessors.get(operator as usize).to_vec();
            // The last on the stack runs first; lazy operators run last.
            first.sort_by_key(|&o| (!lazies.lazy[o as usize], keys[o as usize], Reverse(o)));
            stack.extend(first.into_iter().map(|operator| (operator, false)));
        }
    }
    order
}

/// Computes the peak of an operator with all its ancestors as if nothing else read their results
/// (Sethi and Ullman, 1970), so that the operand that needs most comes first.
fn tree_peaks(model: &Model, lazies: &Lazies) -> Vec<Bytes> {
    let mut peaks: Vec<Bytes> = Vec::with_capacity(model.operators());
    for operator in 0..model.operators() {
        let mut operands: Vec<(Bytes, Bytes)> = { lazies.predecessors.get(operator).iter() }
            .map(|&first| (peaks[first as usize], model.produced[first as usize]))
            .collect();
        operands.sort_by_key(|&(peak, kept)| Reverse(peak.saturating_sub(kept)));
        let (mut live, mut peak): (Bytes, Bytes) = (0, 0);
        for (operand, kept) in operands {
            peak = peak.max(live.saturating_add(operand));
            live = live.saturating_add(kept);
        }
        peaks.push(peak.max(live.saturating_add(model.adds[operator])));
    }
    peaks
}
