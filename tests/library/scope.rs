//! The plans that a proof speaks of.

use memplan::{
    Limits, OpSequence, Operator, Output, Plan, Planner, Problem, Strategy, lower::LoweringOptions,
    plan::Scope, problem::Request, recompute::Recomputed, report::summary,
};
use rstest::rstest;

use crate::common::{
    constraints::Dice,
    properties::is_impossible,
    random::{Wild, random_problem, random_sequence},
    rich::rich_sequence,
    seeds::times,
};

/// `b` over `a`, or a view of it, or around it.
#[rstest]
#[case::nothing(Output::new("b", 8))]
#[case::a_view(Output::new("b", 8).reads("a"))]
#[case::an_overwrite(Output::new("b", 8).overwrites("a"))]
#[case::an_update(Output::new("b", 8).updates("a", 0))]
#[case::a_concatenation(Output::new("b", 12).gathers("a", 0))]
#[case::a_view_of_an_input(Output::new("b", 8).reads("x"))]
#[case::without_bytes(Output::new("b", 0).reads("a"))]
fn what_is_optional_is_chosen(#[case] output: Output) {
    let sequence = OpSequence::builder()
        .input("x", 8)
        .operator(Operator::new("conv").inputs(["x"]).output(Output::new("a", 8)))
        .operator(Operator::new("op").inputs(["a", "x"]).output(output))
        .output("b")
        .build()
        .unwrap();
    let plan = |lowering| Planner::new().lowering(lowering).plan(&sequence).unwrap();
    let all = plan(LoweringOptions::default());
    assert_eq!((all.scope(), all.proven_optimal()), (Scope::AllChoices, true));
    let none = LoweringOptions::default().views(false).inplace(false).gathers(false);
    assert_eq!(plan(none).scope(), Scope::AllChoices);
    let file = serde_json::to_value(all).unwrap();
    assert_eq!(file["scope"], "all_choices");
    let read: Scope = serde_json::from_value(file["scope"].clone()).unwrap();
    assert_eq!(read, Scope::AllChoices);
}

#[test]
fn a_problem_is_proven_over_its_requests() {
    for required in [false, true] {
        let mut problem = Problem::builder();
        let (old, new) = (problem.chunk(0..2, 8), problem.chunk(1..3, 8));
        problem.request(Request::new(new, old, 0).required(required));
        let plan = Planner::new().plan(&problem.build().unwrap()).unwrap();
        assert_eq!((plan.scope(), plan.proven_optimal()), (Scope::AllChoices, true));
    }
}

/// A slice that may be a copy, and a tensor that two outputs may divide.
fn sliced_and_divided() -> OpSequence {
    let op = |name: &str| Operator::new(name);
    OpSequence::builder()
        .operator(op("make").output(Output::new("t", 128)))
        .operator(op("slice").inputs(["t"]).output(Output::new("a", 4).reads_at("t", 8)))
        .operator(op("conv").inputs(["t"]).output(Output::new("u", 64)))
        .operator(op("pad").inputs(["u"]).output(Output::new("v", 128)))
        .operator(
            op("split")
                .inputs(["v"])
                .output(Output::new("low", 64).overwrites("v"))
                .output(Output::new("high", 64).overwrites_at("v", 64)),
        )
        .operator(op("add").inputs(["a", "low", "high"]).output(Output::new("y", 4)))
        .output("y")
        .build()
        .unwrap()
}

/// A file can claim anything: of a plan with the first choices, these; of another one, only what holds over all.
#[test]
fn a_bound_is_counted_over_the_choices_of_the_plan() {
    let sequence = sliced_and_divided();
    let planner = Planner::new();
    let counted = |plan: &Plan| {
        let mut file = serde_json::to_value(plan).unwrap();
        file["scope"] = serde_json::to_value(Scope::AllChoices).unwrap();
        planner.count_bound(serde_json::from_value(file).unwrap(), &sequence).unwrap()
    };
    let first = planner.clone().strategy(Strategy::FirstFit).plan(&sequence).unwrap();
    assert_eq!((first.pool_size(), first.scope()), (320, Scope::TheseChoices));
    assert_eq!(counted(&first), first);
    let best = planner.plan(&sequence).unwrap();
    assert_eq!((best.pool_size(), best.scope()), (196, Scope::AllChoices));
    let claims = |plan: &Plan| (plan.lower_bound(), plan.proven_optimal(), plan.scope());
    assert_eq!(claims(&counted(&best)), claims(&best));
    assert_eq!(counted(&best).claimed_bound(), None);
}

/// Overwrites that a plan gives up are not counted: with a pin, they may need more bytes than the plan has.
#[rstest]
#[case::pinned(r#"{"format": "memplan-problem/2",
    "chunks": [{"id": 0, "begin": 0, "end": 3, "size": 3},
               {"id": 1, "begin": 2, "end": 5, "size": 4, "pin": {"offset": 4}}],
    "overwrites": [{"chunk": 1, "overwritten": 0, "below": 2}]}"#, (8, 2))]
#[case::aligned(r#"{"format": "memplan-problem/1", "alignment": 4,
    "chunks": [{"id": 0, "begin": 0, "end": 3, "size": 8},
               {"id": 1, "begin": 2, "end": 5, "size": 4},
               {"id": 2, "begin": 3, "end": 5, "size": 8}],
    "overwrites": [{"chunk": 1, "overwritten": 0, "offset": 2}]}"#, (12, 2))]
fn a_bound_is_counted_with_the_overwrites_of_the_plan(
    #[case] text: &str,
    #[case] right: (u64, u64),
) {
    let problem: Problem = serde_json::from_str(text).unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    assert!(plan.chunks().iter().all(|chunk| chunk.overwrites.is_none()));
    let figures = |plan: &Plan| (plan.lower_bound(), plan.peak_step());
    assert_eq!((figures(&plan), plan.pool_size()), (right, right.0));
    let counted = Planner::new().count_bound(plan, &problem).unwrap();
    assert_eq!((figures(&counted), counted.claimed_bound()), (right, None));
}

/// The pool of a body is a part of the pool around it.
#[test]
fn a_body_without_a_proof_proves_nothing_over_all() {
    let mut body = OpSequence::builder();
    body.operator(Operator::new("make").output(Output::new("s", 8)));
    body.operator(Operator::new("next").inputs(["s"]).output(Output::new("t", 8)));
    body.operator(Operator::new("end").inputs(["t"]).output(Output::new("u", 8))).output("u");
    let operator = Operator::new("if").output(Output::new("y", 8)).body(body.build().unwrap());
    let sequence = OpSequence::builder().operator(operator).output("y").build().unwrap();
    let plan = |strategy| Planner::new().strategy(strategy).plan(&sequence).unwrap();
    let (naive, best) = (plan(Strategy::Naive), plan(Strategy::Best));
    assert!(
        best.pool_size() < naive.lower_bound(),
        "{} and {}",
        best.pool_size(),
        naive.lower_bound()
    );
    assert_eq!((naive.scope(), best.scope()), (Scope::TheseChoices, Scope::AllChoices));
    // A planner that plans the body in a larger pool knows no bound for a plan that does better.
    let counted = Planner::new().strategy(Strategy::Naive).count_bound(best.clone(), &sequence);
    let counted = counted.unwrap();
    assert_eq!((counted.lower_bound(), counted.proven_optimal()), (0, false));
    assert_eq!(counted.claimed_bound(), Some(best.lower_bound()));
    assert!(summary(&counted, None, "").contains("no bound is known"));
}

/// The pool of a body is workspace of its operator, so what is proven of a body holds around it.
#[test]
fn a_body_with_a_choice_is_proven_over_all() {
    let body = |output: Output| {
        OpSequence::builder()
            .operator(Operator::new("make").output(Output::new("s", 8)))
            .operator(Operator::new("end").inputs(["s"]).output(output))
            .output("t")
            .build()
            .unwrap()
    };
    for output in [Output::new("t", 8), Output::new("t", 8).overwrites("s")] {
        let sequence = OpSequence::builder()
            .input("x", 8)
            .operator(
                Operator::new("if").inputs(["x"]).output(Output::new("y", 8)).body(body(output)),
            )
            .output("y")
            .build()
            .unwrap();
        assert_eq!(Planner::new().plan(&sequence).unwrap().scope(), Scope::AllChoices);
    }
}

/// What is proven about all plans holds for those of every strategy, whatever it copies.
#[test]
fn no_strategy_is_below_a_bound_of_all_choices() {
    let mut bounds = 0;
    times(40, |random| {
        let Ok(sequence) = random_sequence(random, 8)? else { return Ok(()) };
        let [views, inplace, gathers] =
            [random.ratio(1, 4)?, random.ratio(1, 4)?, random.ratio(1, 4)?];
        let given = LoweringOptions::default().views(views).inplace(inplace).gathers(gathers);
        let copies = given.views(false).inplace(false).gathers(false);
        let mut bound = 0;
        let mut pools = Vec::new();
        for &strategy in Strategy::ALL {
            for lowering in [given, copies] {
                match Planner::new().strategy(strategy).lowering(lowering).plan(&sequence) {
                    Ok(plan) => {
                        if plan.scope() == Scope::AllChoices && lowering == given {
                            bounds += 1;
                            bound = bound.max(plan.lower_bound());
                        }
                        pools.push(plan.pool_size());
                    }
                    Err(error) => assert!(is_impossible(&error), "{error}"),
                }
            }
        }
        assert!(pools.iter().all(|&pool| bound <= pool), "{bound}, {pools:?}\n{sequence:#?}");
        Ok(())
    });
    assert!(bounds > 100, "{bounds}");
}

/// A capacity that planning meets is never refuted.
#[test]
fn what_a_plan_takes_fits() {
    let (mut answers, mut dice) = ([0, 0, 0], Dice(10));
    times(30, |random| {
        let strategy = *random.choose(&[Strategy::Best, Strategy::Optimal, Strategy::FirstFit])?;
        let planner = Planner::new().strategy(strategy).alignment(1 << random.int_in_range(0..=4)?);
        let mut ask = |plan: Result<memplan::Plan, memplan::PlanError>,
                       fit: &dyn Fn(u64) -> memplan::Plan| {
            let Ok(plan) = plan else { return };
            let below = plan.pool_size().saturating_sub(1 + dice.roll(9));
            for capacity in [plan.pool_size(), below] {
                let found = fit(capacity);
                let at = match found.fits(capacity) {
                    Some(true) => {
                        assert!(found.pool_size() <= capacity);
                        0
                    }
                    Some(false) => {
                        let bound = found.content_bound().unwrap_or(0).max(found.lower_bound());
                        assert!(bound > capacity && found.pool_size() > capacity);
                        assert!(capacity < plan.pool_size(), "{plan:#?}");
                        1
                    }
                    None => {
                        assert!(found.pool_size() > capacity && capacity < plan.pool_size());
                        2
                    }
                };
                answers[at] += 1;
            }
        };
        if let Ok(sequence) = random_sequence(random, 10)? {
            ask(planner.plan(&sequence), &|capacity| planner.fit(&sequence, capacity).unwrap());
        }
        let wild = Wild { chunks: 12, steps: 9, size: 20, alignment: true };
        let problem = random_problem(random, wild)?;
        ask(planner.plan(&problem), &|capacity| planner.fit(&problem, capacity).unwrap());
        Ok(())
    });
    let [yes, no, _] = answers;
    assert!(yes > 50 && no > 20, "{answers:?}");
}

/// Two inputs lie side by side in `c`, and their padding on each other, while all of them are read.
fn gathered_with_padding() -> OpSequence {
    let op = |name: &str, inputs: &[&str]| Operator::new(name).inputs(inputs.iter().copied());
    let twice = Output::new("d", 59).gathers("c", 0).gathers("b", 26).gathers("c", 33);
    let sequence =
        op("cat", &["a", "b"]).output(Output::new("c", 26).gathers("a", 0).gathers("b", 19));
    OpSequence::builder()
        .input("a", 19)
        .input("b", 7)
        .operator(sequence)
        .operator(op("twice", &["c", "b"]).output(twice))
        .operator(op("end", &["c", "b", "a"]).output(Output::new("e", 38)))
        .build()
        .unwrap()
}

/// A copy of the view lies in two outputs.
fn copied_into_two() -> OpSequence {
    let op = |name: &str, input: &str| Operator::new(name).inputs([input]);
    OpSequence::builder()
        .input("x", 32)
        .operator(op("view", "x").output(Output::new("v", 32).reads("x")))
        .operator(op("one", "v").output(Output::new("y", 32).gathers("v", 0)).workspace(20))
        .operator(op("two", "v").output(Output::new("z", 32).gathers("v", 0)).workspace(7))
        .output("y")
        .build()
        .unwrap()
}

/// `conv` may run after `log`, when the input that nothing reads is no longer needed.
fn unread() -> OpSequence {
    OpSequence::builder()
        .input("unread", 25)
        .input("x", 26)
        .operator(Operator::new("conv").inputs(["x"]).output(Output::new("y", 62)))
        .operator(Operator::new("log").output(Output::new("t", 1)))
        .operator(Operator::new("end").inputs(["y"]).output(Output::new("z", 12)))
        .output("z")
        .build()
        .unwrap()
}

#[rstest]
#[case::gathered_with_padding(gathered_with_padding(), 3, false)]
#[case::copied_into_two(copied_into_two(), 0, false)]
#[case::unread(unread(), 0, true)]
fn what_fits_is_not_refuted(
    #[case] sequence: OpSequence,
    #[case] padding: u64,
    #[case] fits_less: bool,
) {
    let is_in_pool = sequence.tensor_id("v").is_none();
    let lowering = LoweringOptions::default().inputs_in_pool(is_in_pool);
    let planner = Planner::new().padding(padding).lowering(lowering);
    let plan = planner.plan(&sequence).unwrap();
    for part in [100, 99, 90] {
        let (capacity, limits) = (plan.pool_size() * part / 100, Limits::default().nodes(1000));
        match planner.plan_recomputed(&sequence, capacity, limits, None).unwrap() {
            Recomputed::Found(found) => {
                assert!(
                    found.change.peak_bound <= found.plan.pool_size() && (fits_less || part == 100)
                );
            }
            Recomputed::Impossible { peak_bound } | Recomputed::NotFound { peak_bound, .. } => {
                assert!(peak_bound <= plan.pool_size() && !fits_less);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Neither the plan of a sequence nor that of a recomputation is below the bound of all recomputations.
#[test]
fn no_plan_is_below_a_bound_of_recomputation() {
    let (mut bounds, mut refuted) = (0, 0);
    times(100, |random| {
        let drawn =
            if random.ratio(1, 2)? { random_sequence(random, 8)? } else { rich_sequence(random)? };
        let Ok(sequence) = drawn else { return Ok(()) };
        let lowering = LoweringOptions::default()
            .inputs_in_pool(random.ratio(1, 2)?)
            .weights_in_pool(random.ratio(1, 4)?);
        let planner = Planner::new().alignment(1 << random.int_in_range(0..=1)?).lowering(lowering);
        let planner = planner.padding(random.int_in_range(0..=1)? * 16);
        let Ok(plan) = planner.plan(&sequence) else { return Ok(()) };
        for part in [2, 4] {
            let capacity = plan.pool_size() * part / 4;
            let limits = Limits::default().nodes(300);
            let (bound, pool) = match planner.plan_recomputed(&sequence, capacity, limits, None) {
                Ok(Recomputed::Found(found)) => {
                    (found.change.peak_bound, found.plan.pool_size().min(plan.pool_size()))
                }
                Ok(Recomputed::Impossible { peak_bound }) => {
                    refuted += 1;
                    (peak_bound, plan.pool_size())
                }
                Ok(Recomputed::NotFound { peak_bound, .. }) => (peak_bound, plan.pool_size()),
                _ => continue,
            };
            bounds += 1;
            assert!(bound <= pool, "{bound}, {pool}: {planner:?}\n{sequence:#?}");
        }
        Ok(())
    });
    assert!(bounds > 40 && refuted > 10, "{bounds}, {refuted}");
}

/// A choice cannot repair an alignment.
#[rstest]
#[case::none(0)]
#[case::three(3)]
fn an_alignment_that_is_no_power_of_two_is_an_error(#[case] alignment: u64) {
    let sequence = OpSequence::builder()
        .operator(Operator::new("conv").output(Output::new("a", 8)))
        .operator(Operator::new("relu").inputs(["a"]).output(Output::new("b", 8).overwrites("a")))
        .operator(Operator::new("slice").inputs(["b"]).output(Output::new("c", 4).reads("b")))
        .output("c")
        .build()
        .unwrap();
    let planner = Planner::new().alignment(alignment);
    let message = format!("alignment {alignment} is not a power of two");
    assert_eq!(planner.plan(&sequence).unwrap_err().to_string(), message);
    assert_eq!(planner.fit(&sequence, 8).unwrap_err().to_string(), message);
    assert_eq!(planner.content_bound(&sequence).unwrap_err().to_string(), message);
}
