//! Joins operators with those that only rewrite their result, and chunks with those that replace them.
//!
//! An operator *rewrites* a chunk if it waits only for the chunk's producer, no other operator reads the
//! chunk, and the operator's only result is of the same size and overwrites the chunk. Right after the
//! producer, the step of such an operator adds nothing and the live bytes do not change, whatever the
//! state: it is a forced move (see `moves`). So no peak is lost if both run as one operator, with the
//! step of the first and the result of the second. Without this, an activation, which lets its input
//! die, would hide that a convolution can wait (see `blocks`).
//!
//! An operator *updates* a chunk if the same holds except that it also waits for other operators and
//! reads other chunks, such as the gate of an expert. Its result and the chunk then count as one chunk,
//! from the chunk's producer to the readers of the result, which wait for the operator. In every order,
//! the bytes of all steps stay the same, because the chunk dies where the result appears. What remains of
//! the operator only consumes the other chunks that it reads (see `lazy`). In trees, which have an order
//! of their own (see `trees`), operators stay as they are.

use crate::order::{
    model::{Model, Parts},
    mutations::{Mutation, has_mutation},
    overwrites::Overwrite,
    sets::{Lists, NOBODY, full, narrow},
    trees,
};

/// A model in which operators are joined.
pub(super) struct Fused {
    pub(super) model: Model,
    /// The operators that each one stands for, in order.
    pub(super) runs: Vec<Vec<u32>>,
}

impl Fused {
    /// Joins each operator with the operators that rewrite its results. `None` if there are none, or if
    /// the model is not exact, so that the moves are not forced.
    pub(super) fn new(model: &Model) -> Option<Self> {
        if !model.exact {
            return None;
        }
        let all = full(model.operators());
        let mut runs: Vec<Vec<u32>> = Vec::new();
        // The run of each operator, and the chunk that each chunk rewrites in the end.
        let mut run_of: Vec<u32> = Vec::new();
        let mut first: Vec<u32> = (0..narrow(model.sizes.len())).collect();
        let mut last = first.clone();
        // The operators that update a chunk.
        let mut updating = vec![false; model.operators()];
        let parents = trees::parents(model);
        let is_in_tree = |operator: u32| parents[operator as usize].is_some();
        // Operators are numbered in an executable order.
        for operator in 0..narrow(model.operators()) {
            if let Some((old, new)) = rewrites(model, operator, &all) {
                let run = run_of[model.producers[old as usize] as usize];
                run_of.push(run);
                runs[run as usize].push(operator);
                first[new as usize] = first[old as usize];
                last[first[old as usize] as usize] = new;
                continue;
            }
            if let Some((old, new)) = updates(model, operator).filter(|_| !is_in_tree(operator)) {
                updating[operator as usize] = true;
                first[new as usize] = first[old as usize];
                last[first[old as usize] as usize] = new;
            }
            run_of.push(narrow(runs.len()));
            runs.push(vec![operator]);
        }
        if runs.len() == run_of.len() && !updating.contains(&true) {
            return None;
        }
        let run = |&operator: &u32| run_of[operator as usize];
        let mut parts = Parts::new(runs.len());
        (parts.base, parts.unread) = (model.base, model.unread);
        let mut numbers = vec![NOBODY; first.len()];
        for chunk in (0..first.len()).filter(|&chunk| first[chunk] == narrow(chunk)) {
            let last = last[chunk] as usize;
            let producer = Some(model.producers[chunk]).filter(|&producer| producer != NOBODY);
            let producer = producer.map_or(NOBODY, |producer| run(&producer));
            let readers = model.readers.get(last).iter().map(run).collect();
            let number = parts.chunk(model.sizes[chunk], producer, model.kept[last], readers);
            numbers[chunk] = number.unwrap_or(NOBODY);
        }
        let number = |chunk: u32| numbers[first[chunk as usize] as usize];
        for (at, operators) in runs.iter().enumerate() {
            let leader = operators[0] as usize;
            if updating[leader] {
                // Its step adds nothing.
                continue;
            }
            parts.adds[at] = model.adds[leader];
            let renumbered = |overwrite: &Overwrite| overwrite.renumbered(number);
            parts.overwrites[at] = model.overwrites[leader].iter().map(renumbered).collect();
        }
        let predecessors = runs.iter().map(|operators| {
            let mut list: Vec<u32> =
                model.predecessors.get(operators[0] as usize).iter().map(run).collect();
            list.sort_unstable();
            list.dedup();
            list
        });
        let model = parts.finish(Lists::new(predecessors));
        Some(Self { model, runs })
    }

    /// Returns the order of the single operators.
    pub(super) fn expanded(&self, order: &[u32]) -> Vec<u32> {
        order.iter().flat_map(|&run| &self.runs[run as usize]).copied().collect()
    }
}

/// Returns the chunk that an operator rewrites, and its result.
fn rewrites(model: &Model, operator: u32, all: &[u64]) -> Option<(u32, u32)> {
    let at = operator as usize;
    let (&[before], &[old], &[new]) =
        (model.predecessors.get(at), model.reads.get(at), model.produces.get(at))
    else {
        return None;
    };
    let alone =
        model.producers[old as usize] == before && model.readers.get(old as usize).len() == 1;
    let same = model.sizes[old as usize] == model.sizes[new as usize];
    let free = model.step_adds(operator, all) == 0 || has_mutation(Mutation::RewriteWithHill);
    (alone && same && free).then_some((old, new))
}

/// Returns the chunk that an operator updates, and its result.
fn updates(model: &Model, operator: u32) -> Option<(u32, u32)> {
    let at = operator as usize;
    let &[new] = model.produces.get(at) else { return None };
    let bytes = model.sizes[new as usize];
    let overwrites = &model.overwrites[at];
    // Whichever request is granted, the step adds nothing.
    let free = overwrites.iter().all(|w| w.is_like(&overwrites[0]) && w.bytes == bytes);
    let alone = |&old: &u32| {
        let old = old as usize;
        model.sizes[old] == bytes
            && (model.readers.get(old).len() == 1 || has_mutation(Mutation::UpdateBesideReaders))
            && !model.kept[old]
            && model.producers[old] != NOBODY
    };
    let mut chunks = overwrites.iter().map(|overwrite| overwrite.chunk);
    let old = chunks.find(alone).filter(|_| free && model.adds[at] == bytes);
    old.map(|old| (old, new))
}
