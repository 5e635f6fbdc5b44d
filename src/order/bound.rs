//! Lower bounds for every order.

use crate::effort::Effort;
use crate::{
    Bytes,
    order::{
        cut::{Cutter, Range, Toll},
        model::Model,
        mutations::{Mutation, has_mutation},
        sets::{has, insert, narrow},
    },
};

/// Finds for each operator the least bytes of its step over all downsets after which it can run, by
/// a minimum cut. Only steps of a known order that are above the current bound can raise it.
/// Returns the larger of `bound` and the result.
pub(super) fn cuts(
    model: &Model,
    steps: &[(u32, Bytes)],
    mut bound: Bytes,
    effort: &mut Effort,
) -> Bytes {
    let best = steps.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let mut steps = steps.to_vec();
    steps.sort_by_key(|&(operator, bytes)| (std::cmp::Reverse(bytes), operator));
    let mut cutter = Cutter::new(model);
    let mut related = Related::new(model);
    for (operator, bytes) in steps {
        if bytes <= bound || bound >= best || effort.is_spent() {
            break;
        }
        bound = bound.max(least_step(model, operator, &mut cutter, &mut related));
        effort.spend(cutter.work + 3 * model.operators() as u64);
        cutter.work = 0;
    }
    bound
}

/// Returns the least bytes of an operator's step in any order.
fn least_step(model: &Model, operator: u32, cutter: &mut Cutter, related: &mut Related) -> Bytes {
    related.find(model, operator);
    let Related { ancestors, free, others, .. } = &*related;
    let range = Range { inside: ancestors, free };
    let live = model.live_after(ancestors);
    let adds = model.adds[operator as usize];
    let overwrites = &model.overwrites[operator as usize][..];
    let single = overwrites.iter().all(|overwrite| overwrite.output == overwrites[0].output);
    let mut step = |adds: Bytes, toll: Option<&Toll>| {
        let least = cutter.least(model, &range, toll);
        live - least.touched_inside + least.touched + adds
    };
    if overwrites.is_empty() {
        return step(adds, None);
    }
    let mut granted = adds.saturating_sub(model.free_outputs(operator as usize));
    if has_mutation(Mutation::CutWithoutOverwriting) {
        granted = adds;
    }
    if !single || overwrites.len() > 4 || !model.exact {
        return step(granted, None);
    }
    // A single output is free if one of the chunks that it may overwrite dies; try each of them.
    let mut least = Bytes::MAX;
    for overwrite in overwrites {
        let mut unless: Vec<u32> = Vec::new();
        let mut never = model.kept[overwrite.chunk as usize];
        for &reader in model.readers.get(overwrite.chunk as usize) {
            if reader == operator || has(ancestors, reader) {
                continue;
            }
            never |= has(others, reader);
            unless.push(reader);
        }
        let bytes = if never {
            step(adds, None)
        } else if unless.is_empty() {
            step(granted, None)
        } else {
            step(granted, Some(&Toll { bytes: adds - granted, unless: &unless }))
        };
        least = least.min(bytes);
    }
    least
}

/// The operators that must run before an operator, those that must run after it, and those that may
/// do either.
struct Related {
    ancestors: Vec<u64>,
    /// The operator itself and its descendants.
    others: Vec<u64>,
    free: Vec<u32>,
    stack: Vec<u32>,
}

impl Related {
    fn new(model: &Model) -> Self {
        let words = model.words();
        let (ancestors, others) = (vec![0; words], vec![0; words]);
        Self { ancestors, others, free: Vec::new(), stack: Vec::new() }
    }

    fn find(&mut self, model: &Model, operator: u32) {
        for (lists, set) in
            [(&model.predecessors, &mut self.ancestors), (&model.successors, &mut self.others)]
        {
            set.fill(0);
            self.stack.push(operator);
            while let Some(next) = self.stack.pop() {
                for &other in lists.get(next as usize) {
                    if !has(set, other) {
                        insert(set, other);
                        self.stack.push(other);
                    }
                }
            }
        }
        insert(&mut self.others, operator);
        let (ancestors, others) = (&self.ancestors, &self.others);
        self.free.clear();
        self.free.extend(
            (0..narrow(model.operators())).filter(|&o| !has(ancestors, o) && !has(others, o)),
        );
    }
}
