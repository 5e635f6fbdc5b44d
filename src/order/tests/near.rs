//! Among orders with the same peak, one near the given order is chosen.

use super::{any_order, built::wide, effort, graphs, least_peak, unread};
use crate::{
    Bytes,
    order::{
        fewest::{self, MAX_WORDS, Search},
        joins,
        model::Model,
        mutations::{self, Mutation},
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

/// Checks the order that moves the fewest operators of those with the least peak.
fn check(model: &Model, least: Bytes) -> Result<(), String> {
    let fewest = fewest_moved(model, &mut Vec::new(), least);
    let more = model.operators() + 1;
    for (limit, expected) in [(fewest, None), (fewest + 1, Some(fewest)), (more, Some(fewest))] {
        let found = fewest::fewest(model, least, limit, &mut effort(), u64::MAX);
        let moved = found.as_ref().map(|order| nearest::moved(order).len());
        if moved != expected || found.is_some_and(|order| model.peak(&order) > least) {
            return Err(format!("{moved:?} operators moved, not {expected:?} below {limit}"));
        }
    }
    let found = joins::best_order(model, &mut effort());
    let moved = nearest::moved(&found.order).len();
    let fewest =
        if found.peak == least { fewest } else { fewest_moved(model, &mut Vec::new(), found.peak) };
    if moved != fewest {
        return Err(format!("{moved} operators moved, not {fewest}"));
    }
    Ok(())
}

/// Graphs whose given order does not have the least peak, each with that peak.
fn improvable(count: u64, most: usize) -> impl Iterator<Item = (u64, Model, Bytes)> {
    graphs(count, most).filter_map(|(seed, model)| {
        let least = least_peak(&model);
        let given: Vec<u32> = (0..u32::try_from(model.operators()).unwrap()).collect();
        (least < model.peak(&given)).then_some((seed, model, least))
    })
}

#[test]
fn the_fewest_operators_move_in_small_graphs() {
    let mut checked = 0;
    for (seed, model, least) in improvable(2_000, 7) {
        assert_eq!(check(&model, least), Ok(()), "graph {seed}");
        checked += 1;
    }
    assert!(checked > 70, "{checked}");
}

#[test]
fn a_wrong_search_for_the_fewest_is_noticed() {
    for mutation in [
        Mutation::FewestWithoutPassed,
        Mutation::FewestByFirstWay,
        Mutation::FewestWithoutUnread,
        Mutation::FewestWithLooseBudget,
    ] {
        let mut graphs = improvable(4_000, 7);
        let is_wrong = |(_, model, least): (u64, Model, Bytes)| check(&model, least).is_err();
        assert!(mutations::with(Some(mutation), || graphs.any(is_wrong)), "{mutation:?}");
    }
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
    assert!((MAX_WORDS..MAX_WORDS + 200).contains(&words), "{words} words");
}
