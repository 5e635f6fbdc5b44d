//! A better order has the same operators and the peak that it states.

use std::time::Duration;

use crate::common::{random::random_sequence, seeds::bytes_of};
use arbitrary::Unstructured;
use memplan::{
    Bytes, OpSequence, Operator, Output, Planner, Strategy,
    lower::{LoweringOptions, lower},
    order::{Reordered, default_limits},
    search::Limits,
    verify::verify,
};

/// Random sequences that can be lowered.
fn sequences(count: u64, operators: usize) -> impl Iterator<Item = (u64, OpSequence)> {
    (0..count).filter_map(move |seed| {
        let bytes = bytes_of(seed);
        let sequence = random_sequence(&mut Unstructured::new(&bytes), operators).ok()?.ok()?;
        lower(&sequence, LoweringOptions::default()).is_ok().then_some((seed, sequence))
    })
}

/// The bytes that every plan of the order needs.
fn bound(sequence: &OpSequence, order: &[usize], alignment: Bytes) -> Bytes {
    let permuted = sequence.permuted(order).unwrap();
    let planner = Planner::new().alignment(alignment);
    planner.reorder(&permuted, Limits::default().nodes(0)).unwrap().given_peak
}

fn check(sequence: &OpSequence, found: &Reordered, alignment: Bytes, name: &str) {
    let given: Vec<usize> = (0..sequence.operators().len()).collect();
    assert_eq!(found.given_peak, bound(sequence, &given, alignment), "{name}: peak before");
    assert_eq!(found.peak, bound(sequence, &found.order, alignment), "{name}: peak after");
    assert!(found.lower_bound <= found.peak, "{name}: bound");
    assert!(found.peak <= found.given_peak, "{name}: never worse");
    assert_eq!(found.order == given, found.peak == found.given_peak, "{name}: ties");
    assert_eq!(found.moved == 0, found.order == given, "{name}: moved");
}

#[test]
fn the_least_peak_is_that_of_brute_force() {
    let (mut proven, mut better) = (0, 0);
    for (seed, sequence) in sequences(600, 5) {
        let found = Planner::new().reorder(&sequence, default_limits()).unwrap();
        let least = least_of_all_orders(&sequence, &mut Vec::new());
        check(&sequence, &found, 1, &format!("sequence {seed}"));
        assert!(found.lower_bound <= least && least <= found.peak, "sequence {seed}");
        proven += u32::from(found.is_proven());
        better += u32::from(found.is_better());
    }
    // Cases without a proof have unread inputs, or outputs with conflicting choices.
    assert!(proven > 200 && better > 20, "{proven} proven, {better} better");
}

#[test]
fn unread_inputs_are_live_in_the_first_step() {
    let operator = |name: &str, bytes| Operator::new(name).output(Output::new(name, bytes));
    for (unread, peak) in [(0, 31), (20, 31), (25, 35), (40, 50)] {
        let mut sequence = OpSequence::builder();
        sequence.input("unread", unread).operator(operator("a", 20)).operator(operator("b", 10));
        sequence.operator(operator("y", 1).inputs(["a", "b"]));
        let sequence = sequence.output("y").build().unwrap();
        let lowering = LoweringOptions::default().inputs_in_pool(true);
        let planner = Planner::new().lowering(lowering).alignment(1);
        let found = planner.reorder(&sequence, default_limits()).unwrap();
        let permuted = sequence.permuted(&found.order).unwrap();
        let plan = planner.plan(&permuted).unwrap();
        assert_eq!((found.peak, found.lower_bound), (peak, peak), "{unread} bytes");
        assert_eq!(plan.lower_bound(), peak, "{unread} bytes");
    }
}

/// Requests that some of the outputs begin below the first input of their operator.
fn with_overlaps(sequence: &OpSequence, seed: u64) -> Option<OpSequence> {
    let mut file = serde_json::to_value(sequence).unwrap();
    let mut random = seed;
    let mut overlaps = 0;
    for operator in file["operators"].as_array_mut().unwrap() {
        let Some(input) = operator["inputs"].get(0).cloned() else { continue };
        for output in operator["outputs"].as_array_mut().unwrap() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let is_plain = ["reads", "gathers"].iter().all(|key| output.get(key).is_none());
            if is_plain && random >> 62 > 0 {
                let below = 1 + (random >> 40) % 3;
                output["overwrites"] = serde_json::json!({ "input": input, "below": below });
                overlaps += 1;
            }
        }
    }
    file["format"] = "memplan-sequence/2".into();
    serde_json::from_value(file).ok().filter(|_| overlaps > 0)
}

/// The least peak of the orders that begin with these operators, by trying each.
fn least_of_all_orders(sequence: &OpSequence, begin: &mut Vec<usize>) -> Bytes {
    let predecessors = sequence.predecessors();
    if begin.len() == predecessors.len() {
        return bound(sequence, begin, 1);
    }
    let mut least = Bytes::MAX;
    for (step, first) in predecessors.iter().enumerate() {
        if !begin.contains(&step) && first.iter().all(|first| begin.contains(first)) {
            begin.push(step);
            least = least.min(least_of_all_orders(sequence, begin));
            begin.pop();
        }
    }
    least
}

#[test]
fn no_order_with_overlaps_is_below_the_bound() {
    let (mut proven, mut better) = (0, 0);
    for (seed, sequence) in sequences(600, 6) {
        let Some(sequence) = with_overlaps(&sequence, seed) else { continue };
        if sequence.operators().len() > 6 || lower(&sequence, LoweringOptions::default()).is_err() {
            continue;
        }
        let found = Planner::new().reorder(&sequence, default_limits()).unwrap();
        let least = least_of_all_orders(&sequence, &mut Vec::new());
        assert_eq!(found.peak, bound(&sequence, &found.order, 1), "sequence {seed}");
        assert!(found.lower_bound <= least && least <= found.peak, "sequence {seed}");
        proven += u32::from(found.is_proven());
        better += u32::from(found.is_better());
    }
    assert!(proven > 100 && better > 20, "{proven} proven, {better} better");
}

/// In the given order the overlap saves nothing, because another step needs more; in the best order
/// it saves 30 bytes.
#[test]
fn an_overlap_that_saves_nothing_in_the_given_order_counts_in_others() {
    let operator = |name: &str, inputs: &[&str], output: Output| {
        Operator::new(name).inputs(inputs.iter().copied()).output(output)
    };
    let sequence = OpSequence::builder()
        .operator(operator("wide a", &[], Output::new("a1", 40)))
        .operator(operator("wide b", &[], Output::new("b1", 39)))
        .operator(operator("narrow a", &["a1"], Output::new("a2", 1)))
        .operator(operator("narrow b", &["b1"], Output::new("b2", 1)))
        .operator(operator("join", &["a2", "b2"], Output::new("m", 40)))
        .operator(operator("blur", &["m"], Output::new("n", 40).overlaps("m", 10)))
        .operator(operator("end", &["n"], Output::new("y", 1)))
        .output("y")
        .build()
        .unwrap();
    let found = Planner::new().reorder(&sequence, default_limits()).unwrap();
    assert_eq!(found.peak, bound(&sequence, &found.order, 1));
    assert_eq!((found.given_peak, found.peak, found.lower_bound), (80, 50, 50));
}

#[test]
fn the_peak_of_an_order_is_right_with_any_alignment() {
    for (seed, sequence) in sequences(400, 30) {
        let alignment = [1, 8, 64][usize::try_from(seed).unwrap() % 3];
        let planner = Planner::new().alignment(alignment);
        let found = planner.reorder(&sequence, Limits::default().nodes(20_000)).unwrap();
        check(&sequence, &found, alignment, &format!("sequence {seed}"));
    }
}

#[test]
fn a_proven_peak_does_not_depend_on_the_order_given() {
    let mut compared = 0;
    for (seed, sequence) in sequences(300, 12) {
        let found = Planner::new().reorder(&sequence, default_limits()).unwrap();
        if !(found.is_proven() && found.is_better()) {
            continue;
        }
        let permuted = sequence.permuted(&found.order).unwrap();
        let again = Planner::new().reorder(&permuted, default_limits()).unwrap();
        assert_eq!((again.peak, again.is_better()), (found.peak, false), "sequence {seed}");
        assert!(again.is_proven(), "sequence {seed}");
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}

/// The pool of a better order is smaller, its plan is right and states the order; without a better
/// order, the plan stays as it is.
#[test]
fn a_plan_in_a_better_order_is_never_larger() {
    let mut better = 0;
    for (seed, sequence) in sequences(150, 14) {
        let lowering = LoweringOptions::default()
            .inputs_in_pool(seed % 2 == 0)
            .weights_in_pool(seed % 5 == 0)
            .inplace(seed % 7 != 0)
            .views(seed % 11 != 0);
        let strategy = [Strategy::Best, Strategy::Pushdown, Strategy::TfliteGreedyBySize];
        let planner = Planner::new()
            .strategy(strategy[usize::try_from(seed % 3).unwrap()])
            .alignment(1 << (seed % 4))
            .lowering(lowering);
        let Ok(given) = planner.plan(&sequence) else { continue };
        let found = planner.plan_reordered(&sequence, Limits::default().nodes(20_000)).unwrap();
        assert_eq!(found.given, given, "sequence {seed}");
        let order = &found.change.order;
        assert_eq!(found.sequence, sequence.permuted(order).unwrap(), "sequence {seed}");
        assert_eq!(verify(&found.sequence, &found.plan), [], "sequence {seed}");
        if found.change.is_better() {
            assert!(found.plan.pool_size() < given.pool_size(), "sequence {seed}");
            assert_eq!(found.plan.order(), order, "sequence {seed}");
            better += 1;
        } else {
            assert_eq!((&found.plan, found.change.moved), (&given, 0), "sequence {seed}");
        }
        // A given order is kept only if it is better.
        let kept = found.clone().with_order((0..order.len()).collect(), &sequence, &planner);
        let kept = kept.unwrap();
        assert_eq!((kept.plan, kept.change.moved), (given, 0), "sequence {seed}");
    }
    assert!(better > 15, "{better} better");
}

/// A tree of loads and sums, a stage at a time.
fn tree(depth: u32) -> OpSequence {
    let mut sequence = OpSequence::builder();
    for level in (0..=depth).rev() {
        for at in 0..1_u64 << level {
            let name = format!("{level}.{at}");
            let mut operator = Operator::new(name.as_str());
            if level < depth {
                let children = [2 * at, 2 * at + 1].map(|child| format!("{}.{child}", level + 1));
                operator = operator.inputs(children);
            }
            sequence.operator(operator.output(Output::new(name, 100 + at * 7 % 13)));
        }
    }
    sequence.output("0.0").build().unwrap()
}

#[test]
fn a_long_sequence_is_never_worse_and_takes_bounded_effort() {
    let sequence = tree(14);
    let found = Planner::new().reorder(&sequence, Limits::default().nodes(100_000)).unwrap();
    check(&sequence, &found, 1, "tree");
    assert!(found.peak < found.given_peak / 100, "{found:?}");
}

#[test]
fn a_long_tree_is_proven() {
    let sequence = tree(13);
    let found = Planner::new().reorder(&sequence, Limits::default().nodes(200_000)).unwrap();
    check(&sequence, &found, 1, "tree");
    assert!(found.is_proven(), "{} and {}", found.peak, found.lower_bound);
}

/// Sums of many branches that are listed side by side, so that many operators can run at once.
fn wide(branches: u64) -> OpSequence {
    let mut sequence = OpSequence::builder();
    for (name, from, size) in [("wide", "", 1000), ("narrow", "wide", 10)] {
        for at in 0..branches {
            let operator = Operator::new(format!("{name}{at}"));
            let inputs = (!from.is_empty()).then(|| format!("{from}{at}"));
            let output = Output::new(format!("{name}{at}"), size + at % 7);
            sequence.operator(operator.inputs(inputs).output(output));
        }
    }
    let narrow = (0..branches).map(|at| format!("narrow{at}"));
    sequence.operator(Operator::new("join").inputs(narrow).output(Output::new("y", 10)));
    sequence.output("y").build().unwrap()
}

#[test]
fn a_cancelled_search_keeps_what_it_has() {
    let cancel = std::sync::atomic::AtomicBool::new(true);
    let planner = Planner::new().cancel(&cancel);
    for sequence in [tree(6), wide(1500)] {
        for limits in [Limits::default(), Limits::default().time(Duration::from_hours(1))] {
            let found = planner.reorder(&sequence, limits).unwrap();
            check(&sequence, &found, 1, "cancelled");
            assert!(found.is_better());
            assert!(found.nodes < 3_000, "{} nodes", found.nodes);
        }
    }
}

/// Real and generated graphs with the best peaks known.
#[test]
fn every_known_graph_has_the_recorded_peaks_and_bounds() {
    let Some(index) = crate::common::shared("data/order/INDEX.json") else {
        eprintln!("skipped: ../shared/data/order is not there");
        return;
    };
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    for (name, row) in index.as_object().unwrap() {
        let text = crate::common::shared(&format!("data/order/{name}.json")).unwrap();
        let sequence: OpSequence = serde_json::from_str(&text).unwrap();
        // The record copies all gathered inputs.
        let lowering = LoweringOptions::default().gathers(false);
        let limits = Limits::default().nodes(60_000);
        let found = Planner::new().lowering(lowering).reorder(&sequence, limits).unwrap();
        check(&sequence, &found, 1, name);
        let number = |key: &str| crate::common::number(&row[key]);
        // The record needs each tensor as a whole.
        assert!(found.given_peak <= number("given"), "{name}");
        assert!(found.lower_bound <= number("best"), "{name}: a bound above a known order");
        assert!(found.peak >= number("lower"), "{name}: an order below a known bound");
    }
}

/// A plan may give the first output the second input, so that the other one gets the first, in any order.
#[test]
fn outputs_that_compete_for_an_input_have_no_bound() {
    let operator = |name: &str, bytes| Operator::new(name).output(Output::new(name, bytes));
    let both = Operator::new("both").inputs(["a", "b"]);
    let both = both.output(Output::new("x", 8).overwrites("a").overwrites("b"));
    let sequence = OpSequence::builder()
        .operator(operator("a", 8))
        .operator(operator("b", 8))
        .operator(both.output(Output::new("y", 8).overwrites("a")))
        .build()
        .unwrap();
    let found = Planner::new().reorder(&sequence, default_limits()).unwrap();
    let plan = Planner::new().alignment(1).plan(&sequence).unwrap();
    assert_eq!((found.peak, found.lower_bound, plan.pool_size()), (24, 0, 16));
}
