//! Bodies that use tensors around them: their operators must list these, or a plan could put others over them.

use memplan::{OpSequence, Operator, Output, Planner, verify::verify};
use rstest::rstest;

/// A body with a weight of this name and size, and an operator that reads it.
fn reads(weight: &str, size: Option<u64>) -> OpSequence {
    let read = Operator::new("read").inputs([weight]).output(Output::new("r", 4));
    OpSequence::builder().weight(weight, size).operator(read).output("r").build().unwrap()
}

/// A body that writes `r` over a weight of 8 bytes.
fn updates(weight: &str) -> OpSequence {
    let r = Output::new("r", 8).updates(weight, 0);
    let update = Operator::new("update").inputs([weight]).output(r);
    OpSequence::builder().weight(weight, Some(8)).operator(update).output("r").build().unwrap()
}

/// A body whose operator runs a body, and lists these inputs.
fn nested(inputs: &[&str], body: OpSequence) -> OpSequence {
    let mut outer = OpSequence::builder();
    for &input in inputs {
        outer.weight(input, Some(8));
    }
    let inner = Operator::new("inner").inputs(inputs.iter().copied());
    outer.operator(inner.output(Output::new("m", 4)).body(body)).build().unwrap()
}

/// A body with a tensor `x` of its own, for which it runs another body.
fn own_x() -> OpSequence {
    let inner = Operator::new("inner").inputs(["x"]).output(Output::new("m", 4));
    OpSequence::builder()
        .operator(Operator::new("make").output(Output::new("x", 8)))
        .operator(inner.body(reads("x", Some(8))))
        .build()
        .unwrap()
}

/// A body that declares a weight and never uses it.
fn unused() -> OpSequence {
    OpSequence::builder().weight("x", Some(99)).build().unwrap()
}

fn returns() -> OpSequence {
    OpSequence::builder().weight("x", Some(8)).output("x").build().unwrap()
}

const NOT_LISTED: &str =
    "operator 'if': its body 0 reads 'x', which is not among the operator's inputs; add it there";
const TOO_LARGE: &str =
    "operator 'if': its body 0 reads 9 B of 'x', which has 8 B; declare the weight of the body";
const CHANGED: &str = "operator 'if': 'r' of its body 0 must overwrite 'x', but no output of the operator does; give it one that";

#[rstest]
#[case::listed(reads("x", Some(8)), &["x"], None)]
#[case::not_listed(reads("x", Some(8)), &["s"], Some(NOT_LISTED))]
#[case::of_unknown_size(reads("x", None), &[], Some(NOT_LISTED))]
#[case::returned(returns(), &[], Some(NOT_LISTED))]
#[case::never_used(unused(), &[], None)]
#[case::constant_of_the_body(reads("k", Some(8)), &[], None)]
#[case::made_later(reads("z", Some(4)), &[], Some("its body 0 reads 'z'"))]
#[case::nested(nested(&["x"], reads("x", Some(8))), &[], Some(NOT_LISTED))]
#[case::nested_and_listed(nested(&["x"], reads("x", Some(8))), &["x"], None)]
#[case::two_levels_up(nested(&[], reads("x", Some(8))), &[], Some(NOT_LISTED))]
#[case::two_levels_up_and_listed(nested(&[], reads("x", Some(8))), &["x"], None)]
#[case::of_the_body_around(own_x(), &[], None)]
#[case::part(reads("x", Some(3)), &["x"], None)]
#[case::too_large(reads("x", Some(9)), &["x"], Some(TOO_LARGE))]
#[case::two_levels_up_and_too_large(nested(&[], reads("x", Some(9))), &["x"], Some(TOO_LARGE))]
#[case::changed(updates("x"), &["x"], Some(CHANGED))]
#[case::changed_two_levels_up(nested(&[], updates("x")), &["x"], Some(CHANGED))]
fn an_operator_lists_what_its_bodies_use(
    #[case] body: OpSequence,
    #[case] inputs: &[&str],
    #[case] message: Option<&str>,
) {
    // Without `x` among the inputs of `if`, `y` lies over it.
    let run =
        Operator::new("if").inputs(inputs.iter().copied()).output(Output::new("y", 8)).body(body);
    let sequence = OpSequence::builder()
        .input("s", 8)
        .operator(Operator::new("load").inputs(["s"]).output(Output::new("x", 8)))
        .operator(run)
        .operator(Operator::new("end").inputs(["y"]).output(Output::new("z", 4)))
        .output("z")
        .build();
    match (sequence, message) {
        (Ok(sequence), None) => {
            let plan = Planner::new().plan(&sequence).unwrap();
            assert_eq!(verify(&sequence, &plan), []);
        }
        (Err(error), Some(message)) => assert!(
            error.to_string().starts_with(message) || error.to_string().contains(message),
            "{error}"
        ),
        (sequence, message) => panic!("{:?} instead of {message:?}", sequence.map(|_| ())),
    }
}

/// A body may change what its operator changes: later operators read the output instead.
#[test]
fn an_operator_that_updates_a_tensor_may_have_a_body_that_does() {
    let update = Operator::new("if").inputs(["x"]).output(Output::new("y", 8).updates("x", 0));
    let mut sequence = OpSequence::builder();
    sequence
        .operator(Operator::new("load").output(Output::new("x", 8)))
        .operator(update.body(updates("x")).body(nested(&[], updates("x"))))
        .operator(Operator::new("end").inputs(["y"]).output(Output::new("z", 4)))
        .output("z");
    let sequence = sequence.build().unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
    assert_eq!(plan.pool_size, 12);
}
