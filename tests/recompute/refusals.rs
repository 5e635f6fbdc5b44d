//! What cannot be, what must not run twice, and how a search ends early.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memplan::{
    Limits, OpSequence, Operator, Output, PlanError, Planner, SequenceError,
    recompute::{LaterRun, Recomputation, Recomputed, expand},
};

use super::steps::{chain, random_step};
use crate::common::constraints::Dice;

#[test]
fn what_no_expansion_can_do_is_proven() {
    let step = chain(8, 10);
    let found = Planner::new().recompute(&step, 19, Limits::default()).unwrap();
    assert_eq!(found, Recomputed::Impossible { peak_bound: 30 });
}

#[test]
fn nothing_runs_twice_if_everything_fits() {
    let step = chain(8, 10);
    let found = Planner::new().recompute(&step, u64::MAX, Limits::default()).unwrap();
    let Recomputed::Found(found) = found else { panic!() };
    assert!(found.is_proven() && found.later.is_empty());
    assert_eq!(found.sequence, step);
}

/// The same chain, with one thing that forbids its second layer to run twice.
fn with_second_layer(change: impl Fn(Operator) -> Operator) -> Recomputed<Recomputation> {
    let mut step = OpSequence::builder();
    step.input("a0", 10);
    for (layer, name) in ["f1", "f2", "f3", "f4"].into_iter().enumerate() {
        let operator = Operator::new(name)
            .inputs([format!("a{layer}")])
            .output(Output::new(format!("a{}", layer + 1), 10));
        step.operator(if layer == 1 { change(operator) } else { operator });
    }
    step.operator(Operator::new("loss").inputs(["a4"]).output(Output::new("g", 1)));
    step.operator(Operator::new("b4").inputs(["g", "a3"]).output(Output::new("g4", 1)));
    step.operator(Operator::new("b3").inputs(["g4", "a2"]).output(Output::new("g3", 1)));
    step.operator(Operator::new("b2").inputs(["g3", "a1"]).output(Output::new("g2", 1)));
    Planner::new().recompute(&step.output("g2").build().unwrap(), 32, Limits::default()).unwrap()
}

#[test]
fn operators_that_must_not_run_twice_do_not() {
    let second_runs_twice = |found: &Recomputed<Recomputation>| match found {
        Recomputed::Found(found) => found.runs_twice().any(|step| step == 1),
        _ => false,
    };
    assert!(matches!(with_second_layer(|operator| operator), Recomputed::Found(_)));
    for change in [|one: Operator| one.once(), |one: Operator| one.after("f1")] {
        assert!(!second_runs_twice(&with_second_layer(change)));
    }
    // At a high price, everything else runs twice instead.
    assert!(!second_runs_twice(&with_second_layer(|operator| operator.cost(1000))));
}

/// A copy after the update would read the new value.
#[test]
fn nothing_reads_a_variable_again_after_its_update() {
    let build = |update: bool| {
        let mut step = OpSequence::builder();
        step.input("x", 4).weight("w", Some(4));
        step.operator(Operator::new("scale").inputs(["x", "w"]).output(Output::new("a", 50)));
        step.operator(Operator::new("wide").inputs(["a"]).output(Output::new("b", 60)));
        let new = Output::new("w2", 4);
        let new = if update { new.updates("w", 0) } else { new };
        step.operator(Operator::new("step").inputs(["w", "b"]).output(new));
        step.operator(Operator::new("other").inputs(["w2"]).output(Output::new("c", 60)));
        step.operator(Operator::new("last").inputs(["a", "c"]).output(Output::new("y", 1)));
        step.output("y").build().unwrap()
    };
    let found = |update| Planner::new().recompute(&build(update), 120, Limits::default()).unwrap();
    assert!(matches!(found(false), Recomputed::Found(_)));
    // The wider one of the two steps has to keep `a`.
    assert!(!matches!(found(true), Recomputed::Found(found) if found.extra_cost > 0));
}

#[test]
fn a_cancelled_search_returns_what_it_has() {
    let step = random_step(&mut Dice(4), 200);
    let cancel = AtomicBool::new(true);
    let planner = Planner::new().cancel(&cancel);
    match planner.recompute(&step, 100, Limits::default()).unwrap() {
        Recomputed::NotFound { least, peak_bound } => assert!(peak_bound <= least),
        Recomputed::Impossible { .. } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_effort_ends_the_search_and_is_reported() {
    let step = random_step(&mut Dice(4), 200);
    let given = Planner::new().recompute(&step, u64::MAX, Limits::default()).unwrap();
    let Recomputed::Found(given) = given else { panic!() };
    let capacity = given.given_peak * 8 / 10;
    let reported = AtomicU64::new(0);
    let progress = |progress: &memplan::Progress| {
        reported.fetch_max(progress.nodes, Ordering::Relaxed);
    };
    let planner = Planner::new().progress(&progress);
    let found = planner.recompute(&step, capacity, Limits::default().nodes(20_000)).unwrap();
    let Recomputed::Found(found) = found else { panic!() };
    assert!((10_000..40_000).contains(&found.nodes), "{} nodes", found.nodes);
    assert!(reported.into_inner() > 5_000);
}

#[test]
fn sequences_that_cannot_be_searched_are_refused() {
    let two = |operator: Operator| {
        OpSequence::builder()
            .operator(Operator::new("a").cost(u64::MAX / 2).output(Output::new("x", 8)))
            .operator(operator.inputs(["x"]).output(Output::new("y", 8)))
            .output("y")
            .build()
            .unwrap()
    };
    let run = |sequence: &OpSequence| {
        Planner::new().recompute(sequence, u64::MAX, Limits::default()).unwrap_err()
    };
    assert_eq!(run(&two(Operator::new("b").cost(2))), PlanError::CostOverflow);
    let streams = run(&two(Operator::new("b").on_stream(1)));
    assert_eq!(streams, SequenceError::SeveralStreams.into());
    for huge in [u64::MAX / 2, u64::MAX / 4 * 3, u64::MAX - 1024] {
        let huge = |workspace| {
            OpSequence::builder()
                .operator(
                    Operator::new("a")
                        .workspace(workspace)
                        .output(Output::new("x", huge - workspace)),
                )
                .output("x")
                .build()
                .unwrap()
        };
        for step in [huge(0), huge(1 << 62)] {
            assert_eq!(run(&step), PlanError::TooLargeTwice);
            let curve = Planner::new().recompute_curve(&step, 3, Limits::default());
            assert_eq!(curve, Err(PlanError::TooLargeTwice));
        }
    }
    let step = two(Operator::new("b").cost(0));
    let odd = Planner::new().alignment(3).recompute(&step, u64::MAX, Limits::default());
    assert!(matches!(odd, Err(PlanError::Problem(_))), "{odd:?}");
}

#[test]
fn later_runs_that_are_not_later_are_refused() {
    let step = chain(3, 10);
    for later in [
        &[LaterRun::again(2, 2)][..],
        &[LaterRun::again(2, 1)],
        &[LaterRun::again(2, 6)],
        &[LaterRun::again(0, 3), LaterRun::again(0, 4)],
    ] {
        assert!(matches!(expand(&step, later), Err(SequenceError::WrongRerun { .. })), "{later:?}");
    }
}

/// A bound on what deferring can save does not count with operators that make outputs.
#[test]
fn what_makes_an_output_is_not_deferred() {
    let from = |name: &str, input: &str, output: &str| {
        Operator::new(name).inputs([input]).output(Output::new(output, 8))
    };
    let mut sequence = OpSequence::builder();
    sequence.input("x", 8).output("y").output("w");
    for operator in [from("a", "x", "y"), from("b", "x", "z"), from("c", "z", "w")] {
        sequence.operator(operator);
    }
    let sequence = sequence.build().unwrap();
    assert!(expand(&sequence, &[LaterRun::deferred(1, 2)]).is_ok());
    let refused = expand(&sequence, &[LaterRun::deferred(0, 2)]);
    assert_eq!(refused, Err(SequenceError::WrongRerun { step: 0, before: 2 }));
}

#[test]
fn files_keep_costs_and_what_must_not_run_twice() {
    let text = r#"{"format": "memplan-sequence/1", "operators": [
        {"name": "a", "outputs": [{"name": "x", "size": 8}], "cost": 7},
        {"name": "b", "inputs": ["x"], "outputs": [{"name": "y", "size": 8}], "once": true}
    ], "outputs": ["y"]}"#;
    let sequence: OpSequence = serde_json::from_str(text).unwrap();
    let of = |step: usize| (sequence.operators()[step].cost, sequence.operators()[step].once);
    assert_eq!((of(0), of(1)), ((7, false), (1, true)));
    let written = serde_json::to_string(&sequence).unwrap();
    assert_eq!(serde_json::from_str::<OpSequence>(&written).unwrap(), sequence);
    assert_eq!((written.matches("cost").count(), written.matches("once").count()), (1, 1));
}
