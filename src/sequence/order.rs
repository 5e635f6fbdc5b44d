//! Execution order: the given order if it is topological, otherwise a stable sort.

use std::{cmp::Reverse, collections::BinaryHeap};

use tracing::warn;

use crate::{Operator, sequence::SequenceError};

/// Returns the order in which to run the operators, by their indices in the list; `None` if the
/// list is already in execution order. `producer` finds the operator that makes a tensor.
pub(super) fn execution_order(
    operators: &[Operator],
    producer: &dyn Fn(&str) -> Option<usize>,
    after: &[Vec<usize>],
) -> Result<Option<Vec<usize>>, SequenceError> {
    let graph = Graph { operators, producer, after };
    if graph.is_topological() {
        return Ok(None);
    }
    let order = graph.stable_order()?;
    warn!(target: "memplan::sequence", "the operators are not in execution order; steps count in the sorted order");
    Ok(Some(order))
}

struct Graph<'a> {
    operators: &'a [Operator],
    producer: &'a dyn Fn(&str) -> Option<usize>,
    after: &'a [Vec<usize>],
}

/// Converts the operators that each operator must run after into indices in the sorted list.
pub(super) fn renumbered(after: &[Vec<usize>], order: &[usize]) -> Vec<Vec<usize>> {
    let mut places = vec![0; order.len()];
    for (place, &operator) in order.iter().enumerate() {
        places[operator] = place;
    }
    let renumber = |&operator: &usize| {
        let mut after: Vec<usize> = after[operator].iter().map(|&first| places[first]).collect();
        after.sort_unstable();
        after
    };
    order.iter().map(renumber).collect()
}

impl Graph<'_> {
    /// The producers of an operator's inputs, and the operators that it must run after.
    fn producers(&self, operator: usize) -> impl Iterator<Item = usize> + '_ {
        let producers =
            self.operators[operator].inputs.iter().filter_map(|name| (self.producer)(name));
        producers.chain(self.after[operator].iter().copied())
    }

    fn is_topological(&self) -> bool {
        (0..self.operators.len())
            .all(|operator| self.producers(operator).all(|producer| producer < operator))
    }

    /// Repeatedly takes the first operator, in the order given, whose predecessors have all been
    /// taken.
    fn stable_order(&self) -> Result<Vec<usize>, SequenceError> {
        let count = self.operators.len();
        let mut waiting = vec![0_usize; count];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (operator, waiting) in waiting.iter_mut().enumerate() {
            for producer in self.producers(operator) {
                *waiting += 1;
                readers[producer].push(operator);
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..count).filter(|&operator| waiting[operator] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse(operator)) = ready.pop() {
            order.push(operator);
            for &reader in &readers[operator] {
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.push(Reverse(reader));
                }
            }
        }
        if order.len() == count {
            Ok(order)
        } else {
            Err(SequenceError::Cycle { operators: self.cycle(&waiting) })
        }
    }

    /// Walks back from a waiting operator to a predecessor that waits as well, until an operator
    /// repeats.
    fn cycle(&self, waiting: &[usize]) -> Vec<String> {
        let mut seen_at = vec![usize::MAX; waiting.len()];
        let mut walk = Vec::new();
        let mut next = waiting.iter().position(|&count| count > 0);
        while let Some(operator) = next {
            if seen_at[operator] != usize::MAX {
                return walk[seen_at[operator]..]
                    .iter()
                    .rev()
                    .map(|&operator: &usize| self.operators[operator].display_name(operator))
                    .collect();
            }
            seen_at[operator] = walk.len();
            walk.push(operator);
            next = self.producers(operator).find(|&producer| waiting[producer] > 0);
        }
        Vec::new()
    }
}
