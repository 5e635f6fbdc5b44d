//! The capacity is that of the planned pool.

use memplan::{
    Limits, OpSequence, Operator, Output, Planner,
    order::default_limits,
    planner::Replanned,
    recompute::{Recomputation, Recomputed},
    verify::verify,
};

use super::steps::random_step;
use crate::common::{constraints::Dice, expansion, project};

fn planner() -> Planner<'static> {
    Planner::new().alignment(4).padding(1)
}

/// Plans a step within a part of its pool; checks whatever is found.
fn fit(
    step: &OpSequence,
    capacity: u64,
    limits: Limits,
    orders: Option<Limits>,
) -> Option<Box<Replanned<Recomputation>>> {
    match planner().plan_recomputed(step, capacity, limits, orders).unwrap() {
        Recomputed::Found(found) => {
            assert!(found.plan.pool_size() <= capacity);
            let recomputation = &found.change;
            assert!(recomputation.peak_bound <= recomputation.peak);
            assert!(recomputation.peak <= found.plan.pool_size());
            assert!(verify(&found.sequence, &found.plan).is_empty());
            assert_eq!(planner().plan(step).unwrap().pool_size(), found.given.pool_size());
            let expanded = &found.change.sequence;
            assert_eq!(expansion::check(step, expanded), Ok(found.change.extra_cost));
            assert!(orders.is_some() || !found.is_reordered());
            Some(found)
        }
        Recomputed::Impossible { peak_bound } => {
            assert!(peak_bound > capacity && orders.is_none());
            None
        }
        Recomputed::NotFound { least, peak_bound } => {
            assert!(least > capacity && peak_bound <= least);
            None
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_pool_of_what_is_found_fits() {
    let mut dice = Dice(6);
    let (mut twice, mut cheaper) = (0, 0);
    for _ in 0..30 {
        let step = random_step(&mut dice, 10);
        let capacity = planner().plan(&step).unwrap().pool_size() * 7 / 10;
        let limits = Limits::default().nodes(3_000);
        let found = fit(&step, capacity, limits, None);
        twice += u64::from(found.as_ref().is_some_and(|fit| fit.change.extra_cost > 0));
        let reordered = fit(&step, capacity, limits, Some(default_limits()));
        // What a better order alone makes fit needs no recomputation.
        let in_order = planner().plan_reordered(&step, default_limits()).unwrap();
        if in_order.plan.pool_size() <= capacity {
            assert_eq!(reordered.as_ref().unwrap().change.extra_cost, 0);
        }
        let cost = |fit: &Option<Box<Replanned<Recomputation>>>| {
            fit.as_ref().map_or(u64::MAX, |fit| fit.change.extra_cost)
        };
        cheaper += u64::from(cost(&reordered) < cost(&found));
    }
    assert!(twice > 5, "only {twice} of 30 made anything again");
    assert!(cheaper > 0, "an order never helps");
}

#[test]
fn what_fits_as_given_runs_as_given() {
    let step = random_step(&mut Dice(8), 10);
    let pool = planner().plan(&step).unwrap().pool_size();
    let found = fit(&step, pool, Limits::default(), None).unwrap();
    assert!(found.is_proven() && found.change.later.is_empty());
    assert_eq!(found.plan.pool_size(), pool);
}

/// A slice keeps only its bytes of a tensor until it is read, so that the rest proves nothing about the peak.
#[test]
fn a_tensor_that_is_used_in_parts_counts_with_the_smallest_part() {
    let read = std::fs::read_to_string(
        project().join("tests/choices/graphs/slice_right_before_its_use.json"),
    );
    let sequence: OpSequence = serde_json::from_str(&read.unwrap()).unwrap();
    let planner = Planner::new().alignment(1);
    let fit =
        |capacity| planner.plan_recomputed(&sequence, capacity, Limits::default(), None).unwrap();
    assert!(matches!(fit(43), Recomputed::Impossible { peak_bound: 44 }));
    assert!(matches!(fit(44), Recomputed::NotFound { peak_bound: 44, .. }));
    for capacity in [75, 76] {
        let Recomputed::Found(found) = fit(capacity) else { panic!("{capacity}") };
        assert!(found.change.peak_bound <= found.plan.pool_size(), "{found:?}");
        assert!(found.change.peak <= found.plan.pool_size(), "{found:?}");
        assert!(found.change.given_peak <= found.given.pool_size(), "{found:?}");
    }
}

/// Two outputs that gather one input may share its bytes.
#[test]
fn bytes_in_two_outputs_count_once() {
    let both = Operator::new("both").inputs(["x", "first"]);
    let both = both.output(Output::new("a", 5)).output(Output::new("b", 5));
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("x", 6)))
        .operator(
            Operator::new("pad").inputs(["x"]).output(Output::new("first", 7).gathers("x", 0)),
        )
        .operator(both)
        .operator(
            Operator::new("concat")
                .inputs(["b", "x"])
                .output(Output::new("second", 11).gathers("b", 0).gathers("x", 5)),
        )
        .output("first")
        .output("a")
        .output("second")
        .build()
        .unwrap();
    let planner = Planner::new().alignment(1);
    assert_eq!(planner.plan(&sequence).unwrap().pool_size(), 17);
    let found = planner.plan_recomputed(&sequence, 16, Limits::default(), None).unwrap();
    assert!(matches!(found, Recomputed::Impossible { peak_bound: 17 }), "{found:?}");
}
