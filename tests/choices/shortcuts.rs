//! The oracle's shortcuts lose nothing: places on a grid, and bounds that skip choices and orders.

use super::{
    draw::{World, case},
    model::Model,
    orders::{best_order, orders},
    packing::{Sizes, TooMany, smallest},
    ties::{Link, choices, questions},
    truth::one_pool,
};

/// The smallest pool of all choices, without any bound.
fn unbounded(model: &Model, choices: &[Vec<Link>]) -> Result<Option<i64>, TooMany> {
    let mut best = None;
    for links in choices {
        let Some(all) = super::bodies::bodies(model, links) else { continue };
        let inside: Vec<_> = all.iter().filter(|body| body.outside.is_none()).collect();
        let sizes = Sizes { least: 0, below: i64::MAX, capacity: i64::MAX };
        let packed = smallest(model, &inside, sizes)?.map(|packed| packed.size);
        best = best.into_iter().chain(packed).min();
    }
    Ok(best)
}

#[test]
fn a_grid_and_a_bound_lose_nothing() {
    let mut compared = [0, 0];
    for number in 0..600 {
        for world in [World::OneStream, World::TwoStreams] {
            let case = case(world, number);
            let mut model = case.model();
            let all = choices(&questions(&model)).unwrap();
            let Ok(found) = one_pool(&model, &all, i64::MAX) else { continue };
            let found = found.map(|best| best.pool() as i64);
            if all.len() <= 16
                && let Ok(best) = unbounded(&model, &all)
            {
                assert_eq!(found, best, "graph {number} of {world:?}");
                compared[0] += 1;
            }
            let is_coarse = model.grid() > model.alignment;
            model.unit = 1;
            let all = choices(&questions(&model)).unwrap_or_default();
            if is_coarse
                && !all.is_empty()
                && let Ok(best) = one_pool(&model, &all, i64::MAX)
            {
                let best = best.map(|best| best.pool() as i64);
                assert_eq!(found, best, "graph {number} of {world:?}");
                compared[1] += 1;
            }
        }
    }
    assert!(compared.iter().all(|&count| count > 100), "{compared:?}");
}

#[test]
fn a_bound_of_orders_loses_nothing() {
    let mut compared = 0;
    for number in 0..600 {
        let case = case(World::Orders, number);
        let mut model = case.model();
        let questions = questions(&model);
        let all = choices(&questions).unwrap();
        if all.len() > 16 || model.operators.len() > 5 {
            continue;
        }
        let Ok(found) = best_order(&mut model, &questions, &all) else { continue };
        let mut best = None;
        for order in orders(&model).unwrap() {
            model.run_in(&order);
            let Ok(of_order) = unbounded(&model, &all) else { continue };
            best = best.into_iter().chain(of_order).min();
        }
        assert_eq!(found.map(|found| found.best.pool() as i64), best, "graph {number}");
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}
