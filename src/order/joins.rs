//! The search of a whole graph: joins operators where that loses no peak, then searches the smaller graph.

use crate::effort::Effort;
use crate::{
    Bytes,
    order::{
        budgets::{self, Best, MAX_OPERATORS},
        fuse::Fused,
        model::Model,
        modules, nearest,
    },
};

/// Searches for the order that needs the fewest bytes, starting with the given one.
pub(super) fn best_order(model: &Model, effort: &mut Effort) -> Best {
    let mut best = Best::given(model);
    effort.best = best.peak;
    best.raise(model.operands(), effort);
    let found = match Fused::new(model) {
        Some(fused) => {
            let found = order_fused(&fused.model, best.lower_bound, effort);
            Best { order: fused.expanded(&found.order), ..found }
        }
        None => order_fused(model, best.lower_bound, effort),
    };
    best.raise(found.lower_bound, effort);
    if best.better(found.order, model, effort) {
        best.order = nearest::nearest(model, best.order, best.peak, effort);
        best.peak = model.peak(&best.order);
    }
    best
}

/// As [`best_order`], for a model in which operators that only rewrite a result are already joined.
fn order_fused(model: &Model, bound: Bytes, effort: &mut Effort) -> Best {
    let (mut best, chained) = budgets::set_out(model, bound, effort);
    if best.is_proven() {
        return best;
    }
    // Windows improve the best order so far, which joined operators need not have.
    let joined = (model.operators() <= MAX_OPERATORS).then(|| modules::joined(model, effort));
    match joined.flatten() {
        Some(joined) => {
            let found = budgets::least_budget(&joined.model, best.lower_bound, effort);
            best.raise(found.lower_bound, effort);
            best.better(joined.expanded(&found.order), model, effort);
        }
        None => budgets::search(model, chained.as_ref().unwrap_or(model), &mut best, effort),
    }
    best
}
