//! An invalid operator sequence is rejected, with the names that a person needs.

use memplan::{
    OpSequence, Operator, Output, Plan, Planner, SequenceError, report::summary,
    sequence::SequenceBuilder,
};
use rstest::rstest;

type Declare = fn(&mut SequenceBuilder);

fn operator(name: &str, inputs: &[&str], output: Output) -> Operator {
    Operator::new(name).inputs(inputs.iter().copied()).output(output)
}

#[rstest]
#[case::unknown_input(
    |s: &mut SequenceBuilder| { s.operator(operator("conv", &["x"], Output::new("y", 1))); },
    "operator 'conv' names tensor 'x', which no operator produces and which is not declared as input or weight")]
#[case::unknown_output(
    |s: &mut SequenceBuilder| { s.output("y"); },
    "the list of graph outputs names tensor 'y', which no operator produces and which is not declared as input or weight")]
#[case::unknown_id(
    |s: &mut SequenceBuilder| { s.id("y"); },
    "the list of ids asked for names tensor 'y', which no operator produces and which is not declared as input or weight")]
#[case::produced_twice(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("y", 1))).operator(operator("b", &[], Output::new("y", 1))); },
    "tensor 'y' is defined twice: by operator 'a' and by operator 'b'")]
#[case::supplied_and_produced(
    |s: &mut SequenceBuilder| { s.input("y", 1).operator(operator("a", &[], Output::new("y", 1))); },
    "tensor 'y' is defined twice: by the list of inputs and by operator 'a'")]
#[case::cycle(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &["z"], Output::new("x", 1)))
           .operator(operator("b", &["x"], Output::new("y", 1)))
           .operator(operator("c", &["y"], Output::new("z", 1)))
           .operator(operator("d", &["z"], Output::new("w", 1))); },
    "the operators form a cycle: b -> c -> a")]
#[case::reads_no_input(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &[], Output::new("y", 4).reads("x"))); },
    "operator 'a': output 'y' depends on 'x', which is not among its inputs")]
#[case::view_too_large(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &["x"], Output::new("y", 3).reads_at("x", 2))); },
    "operator 'a': view 'y' (3 B at offset 2) does not fit in 'x' (4 B)")]
#[case::weight_and_produced(
    |s: &mut SequenceBuilder| { s.weight("y", None).operator(operator("a", &[], Output::new("y", 1))); },
    "tensor 'y' is defined twice: by operator 'a' and by the list of weights")]
#[case::input_and_weight(
    |s: &mut SequenceBuilder| { s.input("w", 3).weight("w", None); },
    "tensor 'w' is defined twice: by the list of inputs and by the list of weights")]
#[case::weight_with_and_without_size(
    |s: &mut SequenceBuilder| { s.weight("w", None).weight("w", Some(4)); },
    "tensor 'w' is defined twice: by the list of weights and by the list of weights")]
#[case::weight_twice(
    |s: &mut SequenceBuilder| { s.weight("w", None).weight("w", None); },
    "tensor 'w' is defined twice: by the list of weights and by the list of weights")]
#[case::reads_then_overwrites(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &["x"], Output::new("y", 4).reads("x").overwrites("x"))); },
    "output 'y' can have one of 'reads', 'overwrites' and 'gathers', but has more")]
#[case::updates_then_reads(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &["x"], Output::new("y", 4).updates("x", 0).reads("x"))); },
    "output 'y' can have one of 'reads', 'overwrites' and 'gathers', but has more")]
#[case::overwriter_too_large(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &["x"], Output::new("y", 8).overwrites("x"))); },
    "operator 'a': 'y' (8 B at offset 0) does not fit over 'x' (4 B)")]
#[case::update_too_large(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &["x"], Output::new("y", 3).updates("x", 2))); },
    "operator 'a': 'y' (3 B at offset 2) does not fit over 'x' (4 B)")]
#[case::overwriter_that_wraps(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &["x"], Output::new("y", 3).overwrites_at("x", u64::MAX))); },
    "operator 'a': 'y' (3 B at offset 18446744073709551615) does not fit over 'x' (4 B)")]
#[case::overwriter_of_a_view_too_large_for_the_rest_of_its_chunk(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("x", 8)))
           .operator(operator("v", &["x"], Output::new("w", 4).reads_at("x", 2)))
           .operator(operator("b", &["w"], Output::new("y", 7).overwrites("w"))); },
    "operator 'b': 'y' (7 B at offset 0) does not fit over 'w' (6 B)")]
#[case::view_that_wraps(
    |s: &mut SequenceBuilder| { s.input("x", 4).operator(operator("a", &["x"], Output::new("y", 3).reads_at("x", u64::MAX))); },
    "operator 'a': view 'y' (3 B at offset 18446744073709551615) does not fit in 'x' (4 B)")]
#[case::sizes_overflow(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("x", u64::MAX))).operator(operator("b", &[], Output::new("y", 1))); },
    "the sizes of all tensors add up to 2^64 bytes or more (at 'y' of 1 B)")]
#[case::workspaces_overflow(
    |s: &mut SequenceBuilder| { s.operator(operator("", &[], Output::new("x", 1)).workspace(u64::MAX)); },
    "the sizes of all tensors add up to 2^64 bytes or more (at 'the workspace of operator 0' of 18446744073709551615 B)")]
#[case::unnamed_operator(
    |s: &mut SequenceBuilder| { s.operator(operator("", &["x"], Output::new("y", 1)).kind("Conv")); },
    "operator 'Conv (operator 0)' names tensor 'x', which no operator produces and which is not declared as input or weight")]
fn is_refused(#[case] declare: Declare, #[case] message: &str) {
    let mut sequence = OpSequence::builder();
    declare(&mut sequence);
    assert_eq!(sequence.build().unwrap_err().to_string(), message);
}

#[rstest]
#[case::required_but_read_later(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("x", 4)))
           .operator(operator("b", &["x"], Output::new("y", 4).updates("x", 0)))
           .operator(operator("c", &["x", "y"], Output::new("z", 4))); },
    "operator 'b': 'y' must overwrite 'x', but a later operator reads that chunk; update it after that operator, or let that operator read a copy")]
#[case::required_over_a_view_read_later(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("x", 4)))
           .operator(operator("v", &["x"], Output::new("w", 2).reads_at("x", 2).required()))
           .operator(operator("b", &["x"], Output::new("y", 4).updates("x", 0)))
           .operator(operator("c", &["w", "y"], Output::new("z", 4))); },
    "operator 'b': 'y' must overwrite 'x', but a later operator reads that chunk; update it after that operator, or let that operator read a copy")]
#[case::updated_twice(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("x", 4)))
           .operator(operator("b", &["x"], Output::new("y", 2).updates("x", 0)).output(Output::new("z", 2).updates("x", 1))); },
    "operator 'b': 'z' must overwrite 'x', but another chunk overwrites that one")]
#[case::required_over_a_graph_output(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("x", 4)))
           .operator(operator("b", &["x"], Output::new("y", 4).updates("x", 0))).output("x"); },
    "operator 'b': 'y' must overwrite 'x', but that chunk must be kept to the end")]
#[case::a_tensor_of_all_there_is(
    |s: &mut SequenceBuilder| { s.operator(operator("a", &[], Output::new("x", u64::MAX))); },
    "the sizes of all tensors add up to 2^64 bytes or more (at 'x' of 18446744073709551615 B)")]
fn cannot_be_lowered(#[case] declare: Declare, #[case] message: &str) {
    let mut sequence = OpSequence::builder();
    declare(&mut sequence);
    let error = memplan::lower::lower(
        &sequence.build().unwrap(),
        memplan::lower::LoweringOptions::default(),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), message);
}

/// An overwriter may reach beyond a view that it is written over, into the rest of the chunk. Without views there is no
/// rest, and the request is rejected.
#[test]
fn without_views_an_overwriter_does_not_reach_beyond_the_view() {
    let sequence = OpSequence::builder()
        .operator(operator("a", &[], Output::new("x", 8)))
        .operator(operator("v", &["x"], Output::new("w", 4).reads_at("x", 2)))
        .operator(operator("b", &["w"], Output::new("y", 6).overwrites("w")))
        .build()
        .unwrap();
    let lower = |views| {
        let options = memplan::lower::LoweringOptions::default().views(views);
        memplan::lower::lower(&sequence, options).unwrap().problem.links_taken()
    };
    assert_eq!((lower(true), lower(false)), (1, 0));
}

/// A declared weight is known even without a size or a reader.
#[test]
fn a_weight_may_be_a_graph_output() {
    for size in [None, Some(4)] {
        let mut builder = OpSequence::builder();
        let sequence = builder.weight("w", size).output("w").build().unwrap();
        assert_eq!(sequence.outputs().len(), 1);
        let plan = memplan::Planner::new().plan(&sequence).unwrap();
        assert_eq!(plan.pool_size(), 0);
        assert_eq!(memplan::verify::verify(&sequence, &plan), []);
        // Building left the builder as it was.
        assert_eq!(builder.build(), Ok(sequence));
    }
}

#[test]
fn an_unread_weight_of_unknown_size_is_not_written_to_files() {
    let sequence = OpSequence::builder()
        .weight("read", None)
        .weight("unread", None)
        .operator(operator("a", &["read"], Output::new("x", 4)))
        .output("x")
        .output("read")
        .output("unread")
        .build()
        .unwrap();
    let file = serde_json::to_value(sequence).unwrap();
    assert_eq!(file["outputs"], serde_json::json!(["x", "read"]));
    assert!(serde_json::from_value::<OpSequence>(file).is_ok());
}

#[test]
fn a_weight_in_the_pool_needs_a_size() {
    let mut sequence = OpSequence::builder();
    sequence.weight("w", None).operator(operator("a", &["w"], Output::new("x", 4)));
    let options = memplan::lower::LoweringOptions::default().weights_in_pool(true);
    let error = memplan::lower::lower(&sequence.build().unwrap(), options).unwrap_err();
    assert_eq!(error, SequenceError::WeightWithoutSize { tensor: "w".to_owned() });
}

#[test]
fn operators_in_execution_order_keep_it() {
    let mut sequence = OpSequence::builder();
    sequence
        .operator(operator("b", &[], Output::new("y", 1)))
        .operator(operator("a", &[], Output::new("x", 1)))
        .operator(operator("c", &["x", "y"], Output::new("z", 1)));
    assert_eq!(names(&sequence.build().unwrap()), ["b", "a", "c"]);
}

/// Of the operators that are ready, the first in the given order comes next.
#[test]
fn operators_out_of_order_are_sorted_stably() {
    let mut sequence = OpSequence::builder();
    sequence
        .operator(operator("d", &["b", "c"], Output::new("d", 1)))
        .operator(operator("c", &["a"], Output::new("c", 1)))
        .operator(operator("b", &["a"], Output::new("b", 1)))
        .operator(operator("e", &[], Output::new("e", 1)))
        .operator(operator("a", &[], Output::new("a", 1)));
    assert_eq!(names(&sequence.build().unwrap()), ["e", "a", "c", "b", "d"]);
}

fn names(sequence: &OpSequence) -> Vec<&str> {
    sequence.operators().iter().map(|operator| &*operator.name).collect()
}

/// A mistyped input becomes a weight, and the pool too small: the sequence, its plan and a permuted sequence say so.
#[test]
fn names_that_nobody_makes_or_declares_are_known() {
    let mut builder = OpSequence::builder();
    let body = {
        let mut body = OpSequence::builder();
        body.undeclared_are_weights()
            .operator(operator("inner", &["x", "captrued"], Output::new("r", 8)))
            .output("r");
        body.build().unwrap()
    };
    builder
        .input("x", 8)
        .weight("declared", None)
        .operator(operator("first", &["x", "declared"], Output::new("y", 8)))
        .operator(operator("second", &["yy", "x"], Output::new("z", 8)).body(body))
        .output("z");
    let error = builder.clone().build().unwrap_err();
    assert!(matches!(error, SequenceError::UnknownTensor { tensor, .. } if tensor == "yy"));
    let sequence = builder.undeclared_are_weights().build().unwrap();
    assert_eq!(sequence.undeclared(), ["yy", "captrued"]);
    assert!(!sequence.is_sorted());
    let plan = Planner::new().plan(&sequence).unwrap();
    assert_eq!(plan.undeclared(), ["yy".into(), "captrued".into()]);
    assert!(plan.bodies().iter().all(|body| body.plan.undeclared().is_empty()));
    assert_eq!(sequence.permuted(&[1, 0]).unwrap().undeclared(), ["yy", "captrued"]);
    let words = summary(&plan, Some(&sequence), "as declared");
    assert!(
        words.contains("the pool):\n  yy, captrued\n") && !words.contains("numbered"),
        "{words}"
    );
    assert_eq!(in_file(&plan).undeclared(), plan.undeclared());
}

/// The plan after it was written and read.
fn in_file(plan: &Plan) -> Plan {
    serde_json::from_value(serde_json::to_value(plan).unwrap()).unwrap()
}

#[test]
fn operators_that_are_sorted_are_known() {
    let mut builder = OpSequence::builder();
    builder
        .operator(operator("second", &["y"], Output::new("z", 8)))
        .operator(operator("first", &[], Output::new("y", 8)))
        .output("z");
    let sequence = builder.build().unwrap();
    let plan = Planner::new().plan(&sequence).unwrap();
    assert!(sequence.is_sorted() && plan.is_sorted() && in_file(&plan).is_sorted());
    assert!(!sequence.permuted(&[0, 1]).unwrap().is_sorted());
    let words = summary(&plan, Some(&sequence), "as declared");
    assert!(words.contains("numbered in the order of execution"), "{words}");
    assert!(!words.contains("neither made"), "{words}");
    let host = operator("host", &[], Output::new("r", 8)).body(sequence);
    let around = OpSequence::builder().operator(host).build().unwrap();
    assert!(around.is_sorted() && Planner::new().plan(&around).unwrap().is_sorted());
}

/// In any order, for tensors of any origin, and without a change to anything else.
#[test]
fn the_builder_hands_out_the_ids_of_the_sequence() {
    let names = ["view", "weight", "y", "unread", "x", "late"];
    let declare = |builder: &mut SequenceBuilder| {
        builder
            .operator(operator("second", &["y", "late"], Output::new("view", 4).reads("y")))
            .operator(operator("first", &["x", "weight"], Output::new("y", 8).overwrites("x")))
            .input("x", 8)
            .weight("weight", Some(16))
            .weight("unread", None)
            .undeclared_are_weights()
            .output("view");
    };
    let mut plain = OpSequence::builder();
    declare(&mut plain);
    let plain = plain.build().unwrap();
    for asked_first in [false, true] {
        let mut builder = OpSequence::builder();
        if !asked_first {
            declare(&mut builder);
        }
        let ids = names.map(|name| builder.id(name));
        assert_eq!(ids, names.map(|name| builder.id(name)));
        if asked_first {
            declare(&mut builder);
        }
        let sequence = builder.build().unwrap();
        for (name, id) in names.into_iter().zip(ids) {
            assert_eq!(sequence.tensor_id(name), Some(id));
            let (tensor, same) = (sequence.tensor(id), plain.tensor_id(name).unwrap());
            assert_eq!((&*tensor.name, tensor.size), (name, plain.tensor(same).size));
        }
        assert_eq!(sequence.tensors().len(), plain.tensors().len());
        let plan = |sequence: &OpSequence| memplan::Planner::new().plan(sequence).unwrap();
        assert_eq!(plan(&sequence), plan(&plain));
    }
}
