//! Among orders with the same peak, one near the given order is chosen.

use super::{any_order, built::wide, effort, graphs, unread};
use crate::{
    Bytes,
    order::{
        fewest::{MOST_WORDS, Search},
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

#[test]
fn the_search_for_the_fewest_ends_soon_in_wide_graphs() {
    let model = wide(500);
    let mut effort = effort();
    let end = effort.looks() + 300_000;
    let mut search = Search::new(&model);
    assert_eq!(search.run(250, 500, &mut effort, end), None);
    // It ends between two operators, and each stored word has been counted.
    assert!((end..end + 200).contains(&effort.looks()), "{} of {end}", effort.looks());
    assert!((50_000..end).contains(&search.words()), "{} words", search.words());
}

#[test]
fn the_search_for_the_fewest_takes_little_memory() {
    let model = wide(500);
    let mut search = Search::new(&model);
    assert_eq!(search.run(250, 500, &mut effort(), u64::MAX), None);
    let words = search.words();
    assert!((MOST_WORDS..MOST_WORDS + 200).contains(&words), "{words} words");
}
