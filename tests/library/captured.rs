//! Bodies that use tensors around them: their operators must list these, or a plan could put others over them.

use memplan::{
    OpSequence, Operator, Output, Planner, TensorPlace,
    lower::LoweringOptions,
    verify::{execute, verify},
};
use rstest::rstest;

/// A body with a weight of this name and size, and an operator that reads it.
fn reads(weight: &str, size: Option<u64>) -> OpSequence {
    let read = Operator::new("read").inputs([weight]).output(Output::new("r", 4));
    OpSequence::builder().weight(weight, size).operator(read).output("r").build().unwrap()
}

/// A body that writes `r` over a weight of 8 bytes.
fn updates(weight: &str) -> OpSequence {
    writes(weight, Some(8), 0, 8)
}

/// A body that writes `r` over a weight of this size.
fn writes(weight: &str, declared: Option<u64>, offset: u64, size: u64) -> OpSequence {
    let r = Output::new("r", size).updates(weight, offset);
    let update = Operator::new("update").inputs([weight]).output(r);
    OpSequence::builder().weight(weight, declared).operator(update).output("r").build().unwrap()
}

/// A body with a view of a weight of unknown size, and an operator that reads it.
fn views(weight: &str, offset: u64, size: u64) -> OpSequence {
    let view = Operator::new("view").inputs([weight]);
    let read = Operator::new("read").inputs(["v"]).output(Output::new("r", 4));
    OpSequence::builder()
        .weight(weight, None)
        .operator(view.output(Output::new("v", size).reads_at(weight, offset)))
        .operator(read)
        .output("r")
        .build()
        .unwrap()
}

/// A body whose operator runs a body, and that declares no size for `x`.
fn unsized_around(body: OpSequence) -> OpSequence {
    let inner = Operator::new("inner").inputs(["x"]).output(Output::new("m", 4));
    OpSequence::builder().weight("x", None).operator(inner.body(body)).build().unwrap()
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
    "operator 'if': its body 0 uses 'x', which is not among the operator's inputs; add it there";
const TOO_LARGE: &str =
    "operator 'if': its body 0 reads 9 B of 'x', which has 8 B; declare the weight of the body";
const CHANGED: &str = "operator 'if': 'r' of its body 0 must overwrite the bytes [0, 8) of 'x', but no output of the operator does; give it one that";

#[rstest]
#[case::listed(reads("x", Some(8)), &["x"], None)]
#[case::not_listed(reads("x", Some(8)), &["s"], Some(NOT_LISTED))]
#[case::of_unknown_size(reads("x", None), &[], Some(NOT_LISTED))]
#[case::returned(returns(), &[], Some(NOT_LISTED))]
#[case::never_used(unused(), &[], None)]
#[case::constant_of_the_body(reads("k", Some(8)), &[], None)]
#[case::made_later(reads("z", Some(4)), &[], Some("its body 0 uses 'z'"))]
#[case::nested(nested(&["x"], reads("x", Some(8))), &[], Some(NOT_LISTED))]
#[case::nested_and_listed(nested(&["x"], reads("x", Some(8))), &["x"], None)]
#[case::two_levels_up(nested(&[], reads("x", Some(8))), &[], Some(NOT_LISTED))]
#[case::two_levels_up_and_listed(nested(&[], reads("x", Some(8))), &["x"], None)]
#[case::of_the_body_around(own_x(), &[], None)]
#[case::part(reads("x", Some(3)), &["x"], None)]
#[case::too_large(reads("x", Some(9)), &["x"], Some(TOO_LARGE))]
#[case::two_levels_up_and_too_large(nested(&[], reads("x", Some(9))), &["x"], Some(TOO_LARGE))]
#[case::view_of_unknown_size(views("x", 4, 4), &["x"], None)]
#[case::view_beyond(views("x", 4, 5), &["x"], Some(TOO_LARGE))]
#[case::view_beyond_two_levels_up(unsized_around(views("x", 4, 5)), &["x"], Some(TOO_LARGE))]
#[case::too_large_two_levels_up(unsized_around(reads("x", Some(9))), &["x"], Some(TOO_LARGE))]
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
        (Err(error), Some(message)) => assert!(error.to_string().contains(message), "{error}"),
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
    assert_eq!(plan.pool_size(), 12);
}

const BEYOND: &str = "operator 'loop': 'r' of its body 0 must overwrite the bytes [";
const ALIAS: &str = "operator 'loop': its body 0 overwrites '";
const UNWRITTEN: &str = "operator 'loop': its body 0 reads 'y', an output of the operator to which nothing has been written; update it in the body first";

/// A body that writes `r` over one weight and reads another later.
fn writes_then_reads(written: &str, read: &str) -> OpSequence {
    let r = Output::new("r", 8).updates(written, 0);
    let late = Operator::new("late").inputs([read, "r"]).output(Output::new("q", 4));
    OpSequence::builder()
        .weight(written, None)
        .weight(read, None)
        .operator(Operator::new("u").inputs([written]).output(r))
        .operator(late)
        .output("q")
        .build()
        .unwrap()
}

/// `y` of 8 B updates `of`, which may be `x` or its views: all of it (`v`), the first half (`h`) and the second.
#[rstest]
#[case::whole("x", writes("x", None, 0, 8), None)]
#[case::part("x", writes("x", None, 4, 4), None)]
#[case::beyond("x", writes("x", None, 0, 64), Some(BEYOND))]
#[case::part_beyond("x", writes("x", None, 4, 5), Some(BEYOND))]
#[case::beyond_two_levels_up("x", nested(&[], writes("x", None, 0, 64)), Some(BEYOND))]
#[case::a_view_of_it("x", writes("v", None, 0, 8), None)]
#[case::half("x", writes("w", None, 0, 4), None)]
#[case::half_beyond("x", writes("w", None, 0, 5), Some(BEYOND))]
#[case::all_of_which_it_is_a_view("v", writes("x", None, 0, 8), None)]
#[case::alias("v", writes_then_reads("x", "v"), Some(ALIAS))]
#[case::part_alias("x", writes_then_reads("v", "x"), Some(ALIAS))]
#[case::no_alias("x", writes_then_reads("x", "s"), None)]
#[case::alias_two_levels_up("x", nested(&[], writes_then_reads("x", "v")), Some(ALIAS))]
#[case::output_unwritten("x", reads("y", Some(8)), Some(UNWRITTEN))]
#[case::output_unwritten_of_unknown_size("x", views("y", 0, 99), Some(UNWRITTEN))]
#[case::output_unwritten_two_levels_up("x", nested(&[], reads("y", None)), Some(UNWRITTEN))]
fn a_body_changes_what_its_operator_changes(
    #[case] of: &str,
    #[case] body: OpSequence,
    #[case] message: Option<&str>,
) {
    let y = Output::new("y", 8).updates(of, 0);
    // An operator that updates all of `x` may list its view only if that is all of `x` as well.
    let lists_half = body.tensor_id("w").is_some();
    let run = Operator::new("loop").inputs(["s", "x"]);
    let run = if lists_half { run.inputs(["w"]) } else { run.inputs(["v"]) };
    let sequence = OpSequence::builder()
        .input("s", 8)
        .operator(Operator::new("load").inputs(["s"]).output(Output::new("x", 8)))
        .operator(Operator::new("view").inputs(["x"]).output(Output::new("v", 8).reads("x")))
        .operator(Operator::new("half").inputs(["x"]).output(Output::new("w", 4).reads_at("x", 4)))
        .operator(Operator::new("keep").inputs(["s"]).output(Output::new("k", 56)))
        .operator(run.output(y).body(body))
        .operator(Operator::new("end").inputs(["y", "k"]).output(Output::new("z", 4)))
        .output("z")
        .build();
    match (sequence, message) {
        (Ok(sequence), None) => match Planner::new().plan(&sequence) {
            Ok(plan) => assert_eq!(verify(&sequence, &plan), []),
            Err(error) => assert!(lists_half, "{error}"),
        },
        (Err(error), Some(message)) => assert!(error.to_string().starts_with(message), "{error}"),
        (sequence, message) => panic!("{:?} instead of {message:?}", sequence.map(|_| ())),
    }
}

/// A result is read in the output only once the body has made it.
#[rstest]
#[case::first(true, None)]
#[case::later(
    false,
    Some("operator 'loop': its body 0 reads 'y', an output of the operator to which")
)]
fn a_body_writes_an_output_before_it_reads_it(
    #[case] is_first: bool,
    #[case] message: Option<&str>,
) {
    let early = Operator::new("early").inputs(["y"]).output(Output::new("e", 4));
    let late = Operator::new("late").inputs(["r"]).output(Output::new("e", 4));
    let r = Output::new("r", 8).updates("y", 0);
    let update = Operator::new("update").inputs(["y"]).output(r);
    let mut body = OpSequence::builder();
    body.weight("y", Some(8));
    if is_first {
        body.operator(update).operator(late);
    } else {
        body.operator(early).operator(update);
    }
    let body = body.output("e").build().unwrap();
    let sequence = OpSequence::builder()
        .operator(Operator::new("loop").output(Output::new("y", 8)).body(body))
        .output("y")
        .build();
    let error = sequence.err().map(|error| error.to_string());
    match (error, message) {
        (Some(error), Some(message)) => assert!(error.starts_with(message), "{error}"),
        (error, message) => assert_eq!(error.as_deref(), message),
    }
}

/// A branch makes `made` in `y`, views it, and runs a body that views it too: `y` itself is written before it is read.
#[test]
fn a_result_made_in_an_output_may_be_viewed() {
    let make = Operator::new("make").inputs(["y"]).output(Output::new("made", 8).updates("y", 0));
    let view =
        Operator::new("view").inputs(["made"]).output(Output::new("w", 4).reads_at("made", 4));
    let inner = Operator::new("inner").inputs(["made", "w"]).output(Output::new("m", 4));
    let branch = OpSequence::builder()
        .weight("y", Some(8))
        .operator(make)
        .operator(view)
        .operator(inner.body(views("made", 0, 8)))
        .output("made")
        .build()
        .unwrap();
    let sequence = OpSequence::builder()
        .operator(Operator::new("if").output(Output::new("y", 8)).body(branch))
        .output("y")
        .build()
        .unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(verify(&sequence, &plan), []);
}

/// An update of no bytes changes nothing, and makes nothing in an output either.
#[rstest]
#[case::of_a_tensor_around(&["x"], "x", None)]
#[case::of_an_output(&[], "y", Some("reads 'y', an output of the operator to which nothing has been written"))]
fn an_update_of_no_bytes_writes_nothing(
    #[case] inputs: &[&str],
    #[case] weight: &str,
    #[case] message: Option<&str>,
) {
    let run = Operator::new("if").inputs(inputs.iter().copied()).output(Output::new("y", 8));
    let sequence = OpSequence::builder()
        .operator(Operator::new("load").output(Output::new("x", 8)))
        .operator(run.body(writes(weight, Some(8), 0, 0)))
        .output("y")
        .build();
    let error = sequence.err().map(|error| error.to_string());
    assert_eq!(error.is_some(), message.is_some(), "{error:?}");
    assert!(error.unwrap_or_default().contains(message.unwrap_or_default()));
}

/// Tensors outside the pool, which a plan does not list, are updated by bodies as well, also through views that are
/// copies elsewhere.
#[rstest]
fn a_body_updates_a_tensor_outside_the_pool(
    #[values("x", "v")] written: &str,
    #[values(false, true)] views: bool,
) {
    let update =
        Operator::new("if").inputs(["x", written]).output(Output::new("y", 8).updates("x", 0));
    let sequence = OpSequence::builder()
        .input("x", 8)
        .operator(Operator::new("view").inputs(["x"]).output(Output::new("v", 8).reads("x")))
        .operator(update.body(updates(written)))
        .output("y")
        .build()
        .unwrap();
    let lowering = LoweringOptions::default().views(views);
    let plan = Planner::new().lowering(lowering).plan(&sequence).unwrap();
    assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
    // A copy of the view is made only if nothing is updated through it.
    assert_eq!(plan.pool_size(), if views || written == "v" { 0 } else { 8 });
    let mut wrong = plan.clone();
    let inner = &mut wrong.bodies_mut()[0].plan.tensors_mut()[0];
    inner.place = TensorPlace::Supplied { tensor: written.into(), offset: 1 };
    assert_ne!(verify(&sequence, &wrong), []);
}
