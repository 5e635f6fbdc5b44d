//! Among orders with the same peak, one near the given order is chosen.

use super::{any_order, effort, graphs, unread};
use crate::{
    Bytes,
    order::{
        ladder,
        model::Model,
        nearest,
        sets::{has, insert},
    },
};

#[test]
fn a_nearer_order_needs_no_more_and_moves_no_more() {
    let mut nearer = 0;
    for (seed, model) in graphs(1_000, 11) {
        let order = any_order(&model, seed);
        let peak = model.peak(&order);
        let near = nearest::nearest(&model, order.clone(), peak, &mut effort());
        assert!(model.peak(&near) <= peak, "graph {seed}");
        let (before, after) = (nearest::moved(&order).len(), nearest::moved(&near).len());
        assert!(after <= before, "graph {seed}");
        nearer += usize::from(after < before);
        let mut set = vec![0; model.words()];
        for &operator in &near {
            let first = model.predecessors.get(operator as usize);
            assert!(first.iter().all(|&first| has(&set, first)), "graph {seed}");
            insert(&mut set, operator);
        }
    }
    assert!(nearer > 300, "{nearer} orders");
}

/// Returns the fewest operators that an order within a budget must move.
fn fewest_moved(model: &Model, order: &mut Vec<u32>, budget: Bytes) -> usize {
    let operators = u32::try_from(model.operators()).unwrap();
    if order.len() == model.operators() {
        return nearest::moved(order).len();
    }
    let mut set = vec![0; model.words()];
    for &operator in order.iter() {
        insert(&mut set, operator);
    }
    let live = model.live_after(&set) + unread(model, &set);
    let mut fewest = usize::MAX;
    for operator in (0..operators).filter(|&operator| !has(&set, operator)) {
        let first = model.predecessors.get(operator as usize);
        if first.iter().all(|&first| has(&set, first))
            && live + model.step_adds(operator, &set) <= budget
        {
            order.push(operator);
            fewest = fewest.min(fewest_moved(model, order, budget));
            order.pop();
        }
    }
    fewest
}

#[test]
fn the_fewest_operators_move_in_small_graphs() {
    let mut better = 0;
    for (seed, model) in graphs(2_000, 7) {
        let found = ladder::climb(&model, &mut effort());
        let moved = nearest::moved(&found.order).len();
        if moved > 0 {
            let fewest = fewest_moved(&model, &mut Vec::new(), found.peak);
            assert_eq!(moved, fewest, "graph {seed}");
            better += 1;
        }
    }
    assert!(better > 70, "{better}");
}
