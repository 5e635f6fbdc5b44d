//! Required views and gathered inputs: no plan copies them.

use memplan::{
    Limits, OpSequence, Operator, Output, Plan, PlanError, Planner, SequenceError, Strategy,
    lower::{LoweringOptions, lower},
    problem::RejectReason,
    sequence::SequenceBuilder,
    verify::{execute, verify},
};
use rstest::rstest;
use serde_json::json;

use crate::common::{properties::all_options, rich::rich_sequence, seeds::times};

/// An operator with one output that reads its inputs.
fn operator(sequence: &mut SequenceBuilder, inputs: &[&str], output: Output) {
    sequence.operator(Operator::new("op").inputs(inputs.iter().copied()).output(output));
}

/// While `a` lies in `c`, nothing can be written over `c`: 34 bytes instead of 33.
fn costly(concat: Output) -> OpSequence {
    let mut sequence = OpSequence::builder();
    operator(&mut sequence, &[], Output::new("a", 16));
    operator(&mut sequence, &["a"], concat);
    operator(&mut sequence, &["c"], Output::new("d", 17).overwrites("c"));
    operator(&mut sequence, &["d", "a"], Output::new("e", 16).overwrites("a"));
    sequence.build().unwrap()
}

fn is_inside(plan: &Plan, input: &str, output: &str, at: u64) -> bool {
    plan.offset(input).is_some() && plan.offset(input) == plan.offset(output).map(|low| low + at)
}

#[test]
fn a_required_input_lies_in_its_output_whatever_that_costs() {
    let planner = Planner::new();
    let optional = planner.plan(&costly(Output::new("c", 17).gathers("a", 0))).unwrap();
    assert_eq!((optional.pool_size(), optional.proven_optimal()), (33, true));
    let sequence = costly(Output::new("c", 17).holds("a", 0));
    for gathers in [true, false] {
        let lowering = LoweringOptions::default().gathers(gathers);
        let plan = planner.clone().lowering(lowering).plan(&sequence).unwrap();
        assert_eq!((plan.pool_size(), plan.proven_optimal()), (34, true));
        assert!(is_inside(&plan, "a", "c", 0) && plan.parts().len() == 1);
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    }
    let refused: Vec<String> =
        verify(&sequence, &optional).iter().map(ToString::to_string).collect();
    assert_eq!(refused, ["'a' must lie inside 'c', but is copied"]);
    assert_eq!(execute(&sequence, &optional).len(), 1);
}

/// Strategies that cannot put chunks inside others say so.
#[rstest]
fn strategies_hold_required_inputs_or_say_that_they_cannot() {
    let sequence = costly(Output::new("c", 17).holds("a", 0));
    for &strategy in Strategy::ALL {
        match Planner::new().strategy(strategy).plan(&sequence) {
            Ok(plan) => assert!(is_inside(&plan, "a", "c", 0), "{strategy}"),
            Err(PlanError::Unsupported { .. }) => assert!(!strategy.supports_parts(), "{strategy}"),
            Err(error) => panic!("{strategy}: {error}"),
        }
    }
}

#[rstest]
#[case::twice(
    |s: &mut SequenceBuilder| operator(s, &["a"], Output::new("c", 16).holds("a", 0).holds("a", 8)),
    "a", RejectReason::PartTwice)]
#[case::in_two_outputs(
    |s: &mut SequenceBuilder| {
        operator(s, &["a", "b"], Output::new("d", 16).holds("a", 0).holds("b", 8));
        operator(s, &["a", "b"], Output::new("c", 16).holds("a", 8).holds("b", 0));
    },
    "b", RejectReason::TwoPlaces)]
#[case::outside(
    |s: &mut SequenceBuilder| { s.input("x", 4); operator(s, &["x"], Output::new("c", 8).holds("x", 4)); },
    "x", RejectReason::OutsideThePool)]
fn impossible_requirements_are_named(
    #[case] more: fn(&mut SequenceBuilder),
    #[case] input: &str,
    #[case] expected: RejectReason,
) {
    let mut sequence = OpSequence::builder();
    operator(&mut sequence, &[], Output::new("a", 8));
    operator(&mut sequence, &[], Output::new("b", 8));
    more(&mut sequence);
    let sequence = sequence.build().unwrap();
    let error = lower(&sequence, LoweringOptions::default().gathers(false)).unwrap_err();
    let SequenceError::RequiredGather { operator, input: found, output, reason } = &error else {
        panic!("{error}")
    };
    assert_eq!((&**operator, &**output, &**found, *reason), ("op", "c", input, expected));
    let planned = Planner::new().plan(&sequence).unwrap_err().to_string();
    assert!(planned.starts_with(&format!("operator 'op': '{input}' must lie inside 'c', but ")));
}

/// A view lies inside the output with the bytes that it shows; the others stay outside.
#[test]
fn a_required_input_may_be_a_view() {
    let mut sequence = OpSequence::builder();
    operator(&mut sequence, &[], Output::new("x", 64));
    operator(&mut sequence, &["x"], Output::new("v", 16).reads_at("x", 16).required());
    operator(&mut sequence, &["v"], Output::new("c", 24).holds("v", 8));
    let sequence = sequence.output("c").build().unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert!(is_inside(&plan, "v", "c", 8) && is_inside(&plan, "v", "x", 16));
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// A view of a tensor outside the pool may be a copy, which can lie inside the output.
#[test]
fn a_copy_of_what_is_supplied_may_lie_inside() {
    let mut sequence = OpSequence::builder();
    sequence.input("x", 16);
    operator(&mut sequence, &["x"], Output::new("v", 8).reads_at("x", 8));
    operator(&mut sequence, &["v"], Output::new("c", 12).holds("v", 4));
    let sequence = sequence.output("c").build().unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert!(is_inside(&plan, "v", "c", 4) && plan.pool_size() == 12 && plan.proven_optimal());
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
}

/// With bytes of its own, a required view is a copy, which `verify` refuses.
#[test]
fn copies_of_required_views_are_found() {
    let sequence = |view: Output| {
        let mut sequence = OpSequence::builder();
        operator(&mut sequence, &[], Output::new("x", 64));
        operator(&mut sequence, &["x"], view);
        operator(&mut sequence, &["v", "x"], Output::new("y", 8));
        sequence.build().unwrap()
    };
    let view = || Output::new("v", 16).reads_at("x", 16);
    let copies = Planner::new().lowering(LoweringOptions::default().views(false));
    let plan = copies.plan(&sequence(view())).unwrap();
    let given = sequence(view().required());
    for refused in [verify(&given, &plan), execute(&given, &plan)] {
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(refused, ["'v' must be a view of 'x', but is a copy"]);
    }
}

#[test]
fn files_say_what_must_lie_inside() {
    let sequence = costly(Output::new("c", 17).gathers("a", 0).required());
    assert_eq!(sequence, costly(Output::new("c", 17).holds("a", 0)));
    let file = serde_json::to_value(&sequence).unwrap();
    let gathers = &file["operators"][1]["outputs"][0]["gathers"];
    assert_eq!(*gathers, json!([{"input": "a", "offset": 0, "required": true}]));
    assert_eq!(serde_json::from_value::<OpSequence>(file).unwrap(), sequence);
}

/// Both halves of `x` are updated, the first while the second is still to be read: whole chunks would be in the way.
fn halves() -> OpSequence {
    let view = |name: &str, low| Output::new(name, 32).reads_at("x", low).required();
    OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("x", 64)))
        .operator(Operator::new("split").inputs(["x"]).output(view("a", 0)).output(view("b", 32)))
        .operator(Operator::new("first").inputs(["a"]).output(Output::new("p", 32).updates("a", 0)))
        .operator(Operator::new("last").inputs(["b"]).output(Output::new("q", 32).updates("b", 0)))
        .operator(Operator::new("end").inputs(["p", "q"]).output(Output::new("y", 8)))
        .output("y")
        .build()
        .unwrap()
}

/// What a plan can do, everything that lowers alone can do as well.
#[test]
fn what_is_required_of_parts_is_lowered_byte_by_byte() {
    let sequence = halves();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (72, true));
    let lowered = lower(&sequence, LoweringOptions::default()).unwrap();
    assert_eq!(lowered.problem.lower_bound(), 72);
    let comparison = Planner::new().compare(&sequence).unwrap();
    let best = comparison.rows.iter().find(|(strategy, _)| *strategy == Strategy::Best).unwrap();
    assert_eq!(best.1.map(|one| one.pool_size), Ok(72));
    let reordered = Planner::new().reorder(&sequence, memplan::order::default_limits());
    assert!(reordered.is_ok(), "{reordered:?}");
    let error = Planner::new().strategy(Strategy::Pushdown).plan(&sequence).unwrap_err();
    assert!(matches!(error, PlanError::Unsupported { .. }), "{error}");
}

/// A state `s` of 64 bytes that `update` replaces by `t`, and views of the old state that are read later.
fn updated(views: &[(&str, Output)], late: &[&str]) -> SequenceBuilder {
    let mut sequence = OpSequence::builder();
    sequence.input("s", 64).input("x", 8);
    for (input, view) in views {
        operator(&mut sequence, &[input], view.clone());
    }
    operator(&mut sequence, &["s", "x"], Output::new("t", 64).updates("s", 0));
    operator(&mut sequence, late, Output::new("y0", 8));
    // More operators than are worth trying all choices.
    for at in 0..100 {
        let (old, new) = (format!("y{at}"), format!("y{}", at + 1));
        operator(&mut sequence, &[&old], Output::new(new, 8));
    }
    sequence
}

/// Whatever the strategy and wherever the state lies.
fn is_planned_with_copies(sequence: &OpSequence, copies: &[&str]) {
    for in_pool in [true, false] {
        let lowering = LoweringOptions::default().inputs_in_pool(in_pool);
        for strategy in [Strategy::Best, Strategy::Optimal, Strategy::FirstFit, Strategy::Naive] {
            let planner = Planner::new().strategy(strategy).lowering(lowering);
            let plan = planner.plan(sequence).unwrap();
            let copied: Vec<&str> = plan.copies().map(|(output, ..)| output).collect();
            assert_eq!(copied, copies, "{strategy}");
            assert_eq!((verify(sequence, &plan), execute(sequence, &plan)), (vec![], vec![]));
        }
        lower(sequence, lowering).unwrap();
    }
}

#[rstest]
#[case::that_is_read_later(&[("s", Output::new("v", 8).reads("s"))], &["v"], &["v"])]
#[case::that_is_read_with_the_new_state(&[("s", Output::new("v", 64).reads("s"))], &["v", "t"], &["v"])]
#[case::through_which_others_are_read(
    &[
        ("s", Output::new("v", 64).reads("s")),
        ("v", Output::new("a", 64).reads("v")),
        ("v", Output::new("b", 64).reads("v")),
    ],
    &["a", "b"],
    &["v"]
)]
#[case::if_it_is_the_smallest(
    &[("s", Output::new("v", 64).reads("s")), ("v", Output::new("a", 8).reads_at("v", 8))],
    &["a"],
    &["a"]
)]
#[case::if_others_cannot_be_copied(
    &[
        ("s", Output::new("v", 64).reads("s")),
        ("v", Output::new("a", 8).reads_at("v", 8).required()),
    ],
    &["a"],
    &["v"]
)]
#[case::only_of_bytes_that_are_read(
    &[
        ("s", Output::new("v", 64).reads("s")),
        ("v", Output::new("a", 8).reads("v")),
        ("v", Output::new("b", 8).reads_at("v", 8)),
    ],
    &["b"],
    &["b"]
)]
fn a_view_is_copied_before_an_update(
    #[case] views: &[(&str, Output)],
    #[case] late: &[&str],
    #[case] copies: &[&str],
) {
    is_planned_with_copies(&updated(views, late).build().unwrap(), copies);
}

#[test]
fn a_view_that_is_returned_is_copied_before_an_update() {
    let view = [("s", Output::new("v", 8).reads("s"))];
    let sequence = updated(&view, &["x"]).output("v").build().unwrap();
    is_planned_with_copies(&sequence, &["v"]);
}

/// The operator reads bytes that it overwrites, except those that it has at the same place.
#[rstest]
#[case::of_other_bytes(0, &["v"])]
#[case::of_the_same_bytes(8, &[])]
fn a_view_that_the_update_reads_is_copied(#[case] offset: u64, #[case] copies: &[&str]) {
    let mut sequence = OpSequence::builder();
    sequence.input("s", 64).input("x", 8);
    operator(&mut sequence, &["s"], Output::new("v", 12).reads_at("s", offset));
    operator(&mut sequence, &["s", "v"], Output::new("t", 12).updates("s", 8));
    is_planned_with_copies(&sequence.build().unwrap(), copies);
}

#[test]
fn a_view_is_copied_before_an_update_on_another_stream() {
    for waits in [true, false] {
        let on = |name: &str, stream| Operator::new(name).on_stream(stream);
        let mut sequence = OpSequence::builder();
        sequence.input("s", 64);
        sequence.operator(on("view", 0).inputs(["s"]).output(Output::new("v", 64).reads("s")));
        sequence.operator(on("read", 1).inputs(["v"]).output(Output::new("y", 8)));
        let update = on("update", 0).inputs(["s"]).output(Output::new("t", 64).updates("s", 0));
        sequence.operator(if waits { update.after("read") } else { update });
        is_planned_with_copies(&sequence.build().unwrap(), if waits { &[] } else { &["v"] });
    }
}

/// The rest of the state is read later, through a view of it.
#[rstest]
#[case::of_the_low_bytes(0, 8)]
#[case::of_the_middle(8, 8)]
#[case::of_the_high_bytes(56, 8)]
#[case::of_many_bytes(8, 56)]
fn the_first_operator_may_update_a_part(#[case] low: u64, #[case] size: u64) {
    let mut sequence = OpSequence::builder();
    sequence.input("s", 64);
    operator(&mut sequence, &["s"], Output::new("t", size).updates("s", low));
    let (from, bytes) = if low == 0 { (size, 64 - size) } else { (0, low) };
    operator(&mut sequence, &["s"], Output::new("v", bytes).reads_at("s", from));
    operator(&mut sequence, &["v"], Output::new("y", 8));
    let sequence = sequence.output("t").build().unwrap();
    let lowering = LoweringOptions::default().inputs_in_pool(true);
    for strategy in [Strategy::Best, Strategy::Optimal, Strategy::FirstFit] {
        let plan = Planner::new().strategy(strategy).lowering(lowering).plan(&sequence).unwrap();
        assert_eq!(plan.offset("t"), plan.offset("s").map(|at| at + low));
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
        assert!(plan.proven_optimal() && plan.copies().len() == 0);
    }
}

/// The first operator updates a part of the state, which nothing reads, and makes a view of the rest.
#[rstest]
#[case::of_the_caller(false)]
#[case::in_the_pool(true)]
fn one_operator_may_update_a_part_and_view_the_rest(#[case] inputs_in_pool: bool) {
    let both = Operator::new("both").inputs(["s"]).output(Output::new("v", 24).reads("s"));
    let sequence = OpSequence::builder()
        .input("s", 64)
        .operator(both.output(Output::new("t", 8).updates("s", 28)))
        .operator(Operator::new("read").inputs(["v"]).output(Output::new("y", 8)))
        .build()
        .unwrap();
    let lowering = LoweringOptions::default().inputs_in_pool(inputs_in_pool);
    for strategy in [Strategy::Best, Strategy::FirstFit] {
        let plan = Planner::new().strategy(strategy).lowering(lowering).plan(&sequence).unwrap();
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
        assert!(plan.proven_optimal() && plan.copies().len() == 0);
    }
}

/// Orders of a sequence with an overlap are compared by whole chunks, but the update needs those of bytes.
#[test]
fn orders_are_compared_beside_an_update_of_a_part() {
    let on = |name: &str, input: &str| Operator::new(name).inputs([input]);
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("s", 64)))
        .operator(on("view", "s").output(Output::new("v", 24).reads("s").required()))
        .operator(on("wide", "s").output(Output::new("w", 64)))
        .operator(on("update", "s").output(Output::new("t", 8).updates("s", 28)))
        .operator(on("read", "v").output(Output::new("y", 8)))
        .operator(on("conv", "w").output(Output::new("z", 32).overlaps("w", 16)))
        .output("y")
        .output("z")
        .build()
        .unwrap();
    let planner = Planner::new();
    let found = planner.plan_reordered(&sequence, Limits::default().nodes(1000)).unwrap();
    assert!(found.plan.pool_size() <= found.given.pool_size());
    assert_eq!(found.change.lower_bound, 0);
    let ordered = sequence.permuted(&found.change.order).unwrap();
    assert_eq!(verify(&ordered, &found.plan), []);
}

/// An update is an error only where copies do not help.
#[rstest]
#[case::of_a_required_view(Output::new("v", 8).reads("s").required(), &["v"])]
#[case::of_the_state(Output::new("v", 8).reads("s"), &["s"])]
fn an_update_that_destroys_what_is_read_is_refused(#[case] view: Output, #[case] late: &[&str]) {
    let sequence = updated(&[("s", view)], late).build().unwrap();
    for strategy in [Strategy::Best, Strategy::FirstFit] {
        let error = Planner::new().strategy(strategy).plan(&sequence).unwrap_err();
        let is_expected = matches!(
            error,
            PlanError::Sequence(SequenceError::RequiredOverwrite {
                reason: RejectReason::NotLastReader,
                ..
            })
        );
        assert!(is_expected, "{error}");
    }
}

/// A required gather of a view that cannot be one.
#[rstest]
#[case::outside_the_pool(false, Output::new("v", 64).reads("s"))]
#[case::of_a_part_outside_the_pool(false, Output::new("v", 8).reads_at("s", 8))]
#[case::of_a_part_of_a_variable(true, Output::new("v", 8).reads_at("s", 8))]
fn what_an_output_must_hold_is_copied(#[case] weights_in_pool: bool, #[case] view: Output) {
    let of_held = Operator::new("cat").inputs(["v"]).output(Output::new("z", 80).holds("v", 8));
    let sequence = OpSequence::builder()
        .weight("s", Some(64))
        .operator(Operator::new("view").inputs(["s"]).output(view))
        .operator(of_held)
        .output("z")
        .build()
        .unwrap();
    let lowering = LoweringOptions::default().weights_in_pool(weights_in_pool);
    for strategy in [Strategy::Best, Strategy::FirstFit] {
        let plan = Planner::new().strategy(strategy).lowering(lowering).plan(&sequence).unwrap();
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
        let copies: Vec<&str> = plan.copies().map(|(output, ..)| output).collect();
        assert_eq!(copies, ["v"]);
    }
}

/// An output holds a tensor once as it is, and once as a copy.
#[test]
fn a_view_of_what_is_held_is_copied() {
    let twice = Output::new("z", 16).holds("s", 0).holds("v", 8);
    let sequence = OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("s", 8)))
        .operator(Operator::new("view").inputs(["s"]).output(Output::new("v", 8).reads("s")))
        .operator(Operator::new("cat").inputs(["s", "v"]).output(twice))
        .output("z")
        .build()
        .unwrap();
    for strategy in [Strategy::Best, Strategy::FirstFit] {
        let plan = Planner::new().strategy(strategy).plan(&sequence).unwrap();
        assert!(is_inside(&plan, "s", "z", 0) && is_inside(&plan, "v", "z", 8));
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
        assert_eq!(plan.pool_size(), 16);
    }
}

/// The search over choices finds no plan of a random sequence that a single lowering does not.
#[test]
fn one_lowering_plans_what_choices_plan() {
    let limits = Limits::default().nodes(1);
    times(100, |random| {
        let Ok(sequence) = rich_sequence(random)? else { return Ok(()) };
        for lowering in all_options() {
            let planner = Planner::new().lowering(lowering).limits(limits);
            let first_fit = planner.clone().strategy(Strategy::FirstFit).plan(&sequence);
            if let Err(error) = first_fit {
                let plan = planner.plan(&sequence);
                assert!(plan.is_err(), "{error}");
            }
        }
        Ok(())
    });
}
